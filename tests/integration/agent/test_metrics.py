# SPDX-License-Identifier: LGPL-2.1-or-later
"""The metrics of a running agent, checked by promtool. The dashboard, the alert rules and the manual page use the same names."""

import json
import re
import subprocess
from pathlib import Path

from tests.env.agent import Agent, build_folder
from tests.env.case import EnvCase
from tests.env.fakesys import demo_host
from tests.env.faults import server_error
from tests.env.hosts import recorded_host
from tests.env.libvirtd import testdriver_xml
from tests.env.scratch import wait_until

RULES, CASES = build_folder() / 'doc/compute-agent.rules.yml', Path(__file__).resolve().parents[2] / 'fixtures/compute-agent.rules.test.yml'
CONSUMER = '0a3fd8c2-1f2b-4a53-8a0a-35b6a3a6f0d1'


def promtool(*args, **kwargs):
    done = subprocess.run(['promtool', *map(str, args)], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT, check=False, timeout=180, **kwargs)
    return done.returncode, done.stdout


class Metrics(EnvCase):
    shared = ('scratch', 'bus')

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.file = cls.scratch.folder('metrics') / 'compute-agent.prom'
        cls.agent = Agent(cls.scratch, bus=cls.bus, options={'agent': {'metrics_file': cls.file}}).start()
        wait_until(cls.file.exists, 20, 'the metrics')

    def names(self):
        return re.findall(r'^# TYPE (\w+)', self.file.read_text(), re.M)

    def test_promtool_has_nothing_to_say(self):
        self.assertEqual(promtool('check', 'metrics', input=self.file.read_text()), (0, ''))

    def test_a_claim_is_counted(self):
        # The test driver has a guest of two CPUs, which gets its own claim.
        wait_until(lambda: 'compute_agent_claims 1\n' in self.file.read_text(), 10, "the guest's")
        claim = self.agent.ctl_json('claim', '--consumer', CONSUMER, '--resources', 'VCPU=1')
        self.agent.ctl('sync')
        wait_until(lambda: 'compute_agent_claims 2\n' in self.file.read_text(), 10, 'the claim')
        used = re.findall(r'_used_units\{.*class="VCPU"\} (\d+)', self.file.read_text())
        self.assertEqual(used, ['3'])
        self.agent.ctl('release', claim['id'])

    def test_the_rules_are_good(self):
        code, text = promtool('check', 'rules', RULES)
        self.assertEqual(code, 0, text)

    def test_each_alert_is_raised_when_it_should_and_not_on_a_host_that_is_well(self):
        text = CASES.read_text()
        for alert in re.findall(r'alert: (\w+)', RULES.read_text()):
            self.assertIn('alertname: %s\n' % alert, text)
            self.assertIn('eval_time: 100m, alertname: %s, exp_alerts: []' % alert, text)
        file = self.scratch.folder('rules') / 'test.yml'
        file.write_text(text.replace('RULES', str(RULES)))
        code, text = promtool('test', 'rules', file)
        self.assertEqual(code, 0, text)

    def test_those_of_the_list_are_there_and_no_others(self):
        manual = (build_folder() / 'man/compute-agentd.8').read_text()
        self.assertEqual(re.findall(r'^\.B compute_agent_(\w+)', manual, re.M), [name[14:] for name in self.names()])

    def test_a_panel_and_an_alert_may_name_only_what_there_is(self):
        for make, line in (('dashboard', 'panel s T\nquery x = compute_agent_b'), ('rules', 'alert A info 1m\nexpr compute_agent_b')):
            done = subprocess.run(['awk', '-v', 'make=' + make, '-f', CASES.parents[2] / 'agent/cycle/metrics.awk'], text=True,
                                  input='metric a gauge\nhelp A.\n%s == 0\n' % line, capture_output=True, check=False, timeout=20)
            self.assertEqual(done.returncode, 1)
            self.assertIn('compute_agent_b is no metric', done.stderr)

    def test_the_dashboard_asks_for_what_there_is(self):
        panels = json.loads((build_folder() / 'doc/compute-agent-dashboard.json').read_text())['panels']
        self.assertEqual([panel['id'] for panel in panels], list(range(1, len(panels) + 1)))
        asked = ' '.join(target['expr'] for panel in panels for target in panel['targets'])
        self.assertEqual(set(re.findall(r'compute_agent_\w+', asked)), set(re.findall(r'(compute_agent_\w+)\{instance=~"\$instance"\}', asked)))


class WithPlacement(EnvCase):
    """Metrics that depend on Placement: pending writes, findings of an audit, and devices with their consumers."""

    shared = ('scratch', 'bus', 'placement', 'proxy')

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.file = cls.scratch.folder('metrics') / 'compute-agent.prom'
        cls.agent = Agent(cls.scratch, cls.proxy, testdriver_xml(demo_host(), cls.scratch.path), cls.bus,
                          {'agent': {'metrics_file': cls.file}}).start('synced')

    def setUp(self):
        self.addCleanup(self.proxy.listen)
        self.addCleanup(self.proxy.clear)

    def wait_metric(self, name, value):
        """Waits for the value of a metric. The agent writes its metrics once in each cycle."""
        def seen():
            self.agent.ctl('sync', check=False)
            found = re.findall(r'^compute_agent_%s (\S+)$' % re.escape(name),
                               self.file.read_text(), re.M)
            return found == [value]
        wait_until(seen, 20, '%s %s' % (name, value), step=0.2)

    def test_pending_writes_are_a_metric(self):
        self.proxy.refuse()
        self.agent.ctl('sync', check=False)
        claim = self.agent.ctl_json('claim', '--consumer', CONSUMER, '--resources', 'VCPU=1')
        self.wait_metric('placement_pending_writes{action="write"}', '1')
        self.proxy.add(server_error(500, method='PUT', path='^/allocations/'))
        self.proxy.listen()
        wait_until(lambda: self.agent.ctl('sync', check=False) and
                   'Cannot report all claims to Placement: ' in self.agent.log(), 20, 'a try', step=0.2)
        self.wait_metric('placement_pending_writes{action="write"}', '1')
        shown = self.agent.status()
        self.assertEqual((shown['state'], shown['n_pending_writes'], shown['n_pending_removals'],
                          shown['n_pending_moves']), ('degraded', 1, 0, 0))
        self.assertIn('500', shown['pending_writes_error'])
        self.assertIn('1 not reported yet', shown['status'])
        done = self.agent.ctl('status', code=4)
        self.assertIn('not all claims are reported to Placement yet', done.stdout)
        self.assertIn('Pending: 1 to write to Placement', done.stdout)
        self.proxy.clear()
        self.wait_metric('placement_pending_writes{action="write"}', '0')
        self.proxy.refuse()
        self.agent.ctl('release', claim['id'])
        self.wait_metric('placement_pending_writes{action="remove"}', '1')
        self.proxy.listen()
        self.wait_metric('placement_pending_writes{action="remove"}', '0')
        self.assertIn('All claims are reported to Placement', self.agent.log())
        shown = self.agent.status()
        self.assertEqual((shown['state'], shown['n_pending_removals'], shown['pending_writes_error']),
                         ('ok', 0, ''))

    def test_findings_of_an_audit_are_metrics(self):
        # An audit treats young consumers as in flight.
        self.agent.configure({'DEFAULT': {'claim_expiry_time': 1}})
        self.addCleanup(self.agent.ctl, 'reload')
        self.addCleanup(self.agent.configure, {'DEFAULT': {'claim_expiry_time': None}})
        self.agent.ctl('reload')
        consumer = self.placement.place(None, {self.agent.root(): {'VCPU': 1}})
        wait_until(lambda: self.agent.ctl('audit', check=False).returncode == 3, 20, 'a finding',
                   step=0.2)
        self.wait_metric('audit_findings', '1')
        self.agent.ctl('heal', consumer, check=False)
        self.wait_metric('audit_findings', '0')
        self.assertEqual(self.placement.held(consumer), {})

    def test_devices_and_who_has_them(self):
        claim = self.agent.ctl_json('claim', '--consumer', CONSUMER, '--resources', 'VGPU=1')
        self.agent.ctl('sync')
        text = self.file.read_text()
        self.assertRegex(text, r'_device_up\{provider="[^"]*_pci_0000_41_00_0",'
                               r'resource_class="VGPU"\} 1\n')
        self.assertRegex(text, r'_device_claimed_units\{device="pci_0000_\d\d_00_0",'
                               r'consumer="%s",claim="%d"\} 1\n' % (CONSUMER, claim['id']))
        self.assertEqual(promtool('check', 'metrics', input=text), (0, ''))
        self.agent.ctl('release', claim['id'])


class Drift(EnvCase):
    """Hosts of a group are compared by digests. Each agent sees its own folder at the same path, as on hosts of their own."""

    def start(self, name, options=None, **more):
        agent = Agent(self.scratch, self.placement, bus=self.bus, host=recorded_host(name, **more))
        common = self.scratch.path / 'common'
        common.mkdir(exist_ok=True)
        agent.configure({
            'DEFAULT': {'host': name, 'state_path': common / 'nova', 'instances_path': common},
            'agent': {'state_dir': common / 'state', 'metrics_file': common / 'compute-agent.prom'},
            'static': {'path': common / 'host.json'}})
        agent.configure(options or {})
        agent.within = ['unshare', '--mount', 'sh', '-c', 'mount --bind "$0" "$1" && shift && exec "$@"', str(agent.folder), str(common)]
        return agent.start('synced')

    def label(self, agent, metric, label):
        """Returns a label of the only sample of a metric."""
        agent.ctl('sync')
        text = (agent.folder / 'compute-agent.prom').read_text()
        value, = re.findall(r'^compute_agent_%s\{%s="([^"]+)"\} 1$' % (metric, label), text, re.M)
        return value

    def digests(self, agent):
        return self.label(agent, 'config_info', 'digest'), self.label(agent, 'host_info', 'hardware_digest')

    def test_equal_hosts_have_equal_digests(self):
        digests = []
        for name, options, more in (('first', {}, {}), ('second', {}, {}),
                                    ('third', {'DEFAULT': {'claim_expiry_time': 301}}, {'memory_kib': 1 << 30})):
            agent = self.start(name, options, **more)
            digests.append(self.digests(agent))
            agent.stop()  # because one agent at a time owns the name on the bus
        self.assertEqual(digests[0], digests[1])
        self.assertNotEqual(digests[0][0], digests[2][0])
        self.assertNotEqual(digests[0][1], digests[2][1])

    def test_a_reload_changes_the_digest_and_a_change_back_restores_it(self):
        agent = self.start('first')
        before = self.digests(agent)
        agent.configure({'DEFAULT': {'reserved_host_memory_mb': 600}})
        agent.ctl('reload')
        self.assertNotEqual(self.digests(agent)[0], before[0])
        agent.configure({'DEFAULT': {'reserved_host_memory_mb': None}})
        agent.ctl('reload')
        self.assertEqual(self.digests(agent), before)

    def test_the_reason_of_a_start(self):
        agent = self.start('first')
        self.assertEqual(self.label(agent, 'start_info', 'reason'), 'first')
        agent.ctl('reload')
        self.assertEqual(self.label(agent, 'start_info', 'reason'), 'first')
        agent.restart('synced')
        self.assertEqual(self.label(agent, 'start_info', 'reason'), 'clean')
        agent.kill()
        agent.start('synced')
        self.assertEqual(self.label(agent, 'start_info', 'reason'), 'crash')
