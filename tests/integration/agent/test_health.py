# SPDX-License-Identifier: LGPL-2.1-or-later
"""Health rules with the real agent, helper and journal files: a line of the kernel withholds a device in Placement, a person or the rule
lifts it, and nothing is lost while the agent or the helper does not run."""

import json
import os
import signal
import subprocess
import threading
import time
import uuid
from pathlib import Path

from tests.env.agent import Agent, build_folder
from tests.env.case import EnvCase
from tests.env.hosts import recorded_host
from tests.env.kernel_journal import SHIPPED, KernelJournal, helper, new_boot
from tests.env.scratch import wait_until
from tests.integration.agent.test_agent import GPU_A, GPU_B, AgentCase

ADDRESS = '0000:41:00.0'
LOST = 'NVRM: Xid (PCI:0000:41:00): 79, pid=4711, GPU has fallen off the bus.'
LATENCY_SEC = 5
REPLAY_MAX = 20000  # of agent/health/main.c
WINDOW_SEC = 7 * 86400  # longest "within" of the rules of the package

RECOVERS = r"""
rules:
  - name: fan
    pattern: '^gpu (?<address>\S+): fan stopped'
    lift: recovery
    recovery_pattern: '^gpu (?<address>\S+): fan runs'
  - name: warm
    pattern: '^gpu (?<address>\S+): warm'
    action: report
  - name: often
    pattern: '^gpu (?<address>\S+): retry'
    count: 3
    within: 1min
"""


class HealthCase(AgentCase):
    def setUp(self):
        self.rules = self.scratch.path / ('rules-%s' % uuid.uuid4().hex)
        self.rules.mkdir()
        self.journal = KernelJournal(self.scratch.path / ('journal-%s' % uuid.uuid4().hex))
        self.addCleanup(self.journal.stop)
        # The reader needs a file.
        self.journal.write('Linux version 6.1.0 (made up)', ago_sec=3600)

    def make(self, options=None, **kwargs):
        agent = self.make_agent(options, **kwargs)
        agent.more_env.update(helper(agent.folder, self.journal.folder, rules=(self.rules, SHIPPED)))
        self.addCleanup(agent.stop)
        return agent

    def start_watching(self, options=None, state='synced', **kwargs):
        return self.make(options, **kwargs).start(state)

    def add_rules(self, text, name='test.yaml'):
        (self.rules / name).write_text(text)

    def reserved(self, agent, name=GPU_A):
        record = self.placement.tree_by_name(agent.root())[name]['inventories']['VGPU']
        return record['reserved'], record['total']

    def wait_reserved(self, agent, reserved, name=GPU_A):
        """Waits until Placement has this reserved amount. Returns the seconds."""
        begin = time.monotonic()
        wait_until(lambda: self.reserved(agent, name)[0] == reserved, LATENCY_SEC, 'reserved %d; %s' % (reserved, agent.log()[-1000:]))
        return time.monotonic() - begin

    def settle(self, agent):
        """Returns when the agent has read all lines: those of other devices come after them."""
        self.journal.write(LOST.replace('41', '81'))
        self.wait_reserved(agent, 5, GPU_B)
        agent.ctl('uncordon', GPU_B)
        self.wait_reserved(agent, 0, GPU_B)


class TestWithheld(HealthCase):
    def test_a_line_withholds_its_device_until_a_person_lifts_it(self):
        metrics = self.scratch.path / 'agent.prom'
        agent = self.start_watching({'agent': {'metrics_file': metrics}})
        self.assertEqual(agent.status()['devices_unhealthy'], '')
        self.journal.write(LOST)
        self.wait_reserved(agent, 4)
        self.assertEqual(self.reserved(agent, GPU_B), (0, 5))
        shown = agent.ctl('status', code=4).stdout
        self.assertIn('cordoned by rule nvidia-xid-bus since', shown)
        self.assertIn(LOST, shown)
        self.assertIn(LOST, agent.status()['devices_unhealthy'])
        doctor = agent.ctl('doctor', '--all', '--config', agent.config, check=False).stdout
        self.assertIn('Withheld: %s cordoned by rule' % ADDRESS, ' '.join(doctor.split()))
        self.assertIn('Device %s was cordoned by health rule nvidia-xid-bus: %s' % (ADDRESS, LOST), agent.log())
        self.assertIn('compute_agent_devices_unhealthy 1\n', metrics.read_text())
        self.assertIn(LOST, agent.ctl('history', '--json=short').stdout)
        # A claim gets the other card.
        self.assertEqual(agent.claim('VGPU=1')['allocations'][0]['name'], GPU_B)
        agent.restart('synced')
        self.assertEqual(self.reserved(agent), (4, 4))
        # A person lifts it. The old line is read again after a restart, and changes nothing.
        agent.ctl('uncordon', ADDRESS)
        self.assertEqual(self.reserved(agent), (0, 4))
        agent.stop()
        path = agent.state / 'health.json'
        path.write_text(json.dumps({**json.loads(path.read_text()), 'cursor': ''}))
        agent.start('synced')
        self.settle(agent)
        self.assertEqual(self.reserved(agent), (0, 4))
        # Only new evidence counts.
        self.journal.write(LOST)
        self.wait_reserved(agent, 4)

    def test_the_cordon_of_a_person_stays_theirs(self):
        agent = self.start_watching()
        self.journal.write(LOST)
        self.wait_reserved(agent, 4)
        agent.ctl('cordon', 'pci_0000_41_00_0', '--reason', 'sent to the maker')
        self.assertEqual(agent.status()['devices_unhealthy'], '')
        self.journal.write(LOST)
        self.settle(agent)
        self.assertNotIn('rule', agent.status()['devices_cordoned'])
        self.assertIn('sent to the maker', agent.status()['devices_cordoned'])

    def test_evidence_under_the_cordon_of_a_person_is_reported(self):
        agent = self.start_watching()
        agent.ctl('cordon', ADDRESS, '--reason', 'new firmware')
        self.journal.write(LOST)
        wait_until(lambda: agent.status()['devices_reported'], LATENCY_SEC, 'the report')
        self.assertIn(LOST, agent.status()['devices_reported'])
        self.assertIn('. It is cordoned already. Check it before "computectl uncordon"', agent.log())
        self.assertEqual(agent.status()['devices_unhealthy'], '')
        # The person who lifts the cordon sees the evidence, also later. Only new evidence withholds the device.
        agent.ctl('uncordon', ADDRESS)
        self.assertEqual(self.reserved(agent), (0, 4))
        self.assertIn(LOST, agent.status()['devices_reported'])
        # Evidence under a second cordon is new to its owner.
        agent.ctl('cordon', ADDRESS)
        self.journal.write(LOST + ' again')
        wait_until(lambda: LOST + ' again' in agent.log(), LATENCY_SEC, 'the second report')
        self.assertEqual(agent.status()['devices_reported'].count(LOST), 1)
        agent.ctl('uncordon', ADDRESS)
        self.journal.write(LOST)
        self.wait_reserved(agent, 4)

    def test_lines_are_not_missed_while_the_agent_does_not_run(self):
        agent = self.start_watching()
        self.settle(agent)
        agent.stop()
        self.journal.write(LOST)
        agent.start('synced')
        self.wait_reserved(agent, 4)

    def test_a_cordon_of_the_boot_ends_with_it(self):
        agent = self.start_watching()
        self.journal.write(LOST)
        self.wait_reserved(agent, 4)
        agent.stop()
        # The boot of the line is now another one. Its lines are no evidence any more.
        path = agent.state / 'cordon.json'
        cordons = json.loads(path.read_text())
        cordons['cordons'][0]['boot_id'] = new_boot()
        path.write_text(json.dumps(cordons))
        self.journal.write(LOST, boot=new_boot())
        agent.start('synced')
        self.wait_reserved(agent, 0)
        self.assertIn('was uncordoned, because health rule nvidia-xid-bus ends with the boot', agent.log())
        self.settle(agent)
        self.assertEqual(self.reserved(agent), (0, 4))

    def test_lines_that_are_no_evidence(self):
        agent = self.start_watching()
        self.journal.write('NVRM: Xid (PCI:0000:41:00): 31, pid=1, an error of the application',
                           'usb 1-1: Product: ' + LOST, LOST.replace('41', '99'))
        self.journal.write(LOST, transport='syslog')
        self.settle(agent)
        self.assertEqual(self.reserved(agent), (0, 4))
        self.assertEqual(agent.status()['devices_cordoned'], '')


class TestReplay(HealthCase):
    def run_helper(self, address, *options):
        """Runs compute-agent-health until it has printed a finding about the address and its state after it. Returns the addresses of all
        findings, and the position."""
        words = [str(build_folder() / 'compute-agent-health'), '--rules=%s' % SHIPPED, '--journal=%s' % self.journal.folder, *options]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as child:
            timer = threading.Timer(30, child.kill)
            timer.start()
            found, position = [], None
            while address not in found or not position:
                message = json.loads(child.stdout.readline())
                if message['kind'] == 'finding':
                    found.append(message['address'])
                position = message.get('cursor') if address in found else None
            timer.cancel()
            child.kill()
        return found, position

    def find_new(self):
        """Returns the addresses of the findings about a line that follows the position of an earlier run."""
        _, position = self.run_helper(ADDRESS)
        self.journal.write(LOST.replace('41', '81'))
        return self.run_helper('0000:81:00.0', '--cursor=%s' % position)[0]

    def test_only_lines_after_the_position_are_new_if_the_limit_of_entries_ends_the_replay(self):
        self.journal.write(*['line %d' % number for number in range(REPLAY_MAX)], LOST)
        self.assertEqual(self.find_new(), ['0000:81:00.0'])

    def test_only_lines_after_the_position_are_new_if_the_time_of_the_rules_ends_the_replay(self):
        self.journal.write(*['line %d' % number for number in range(3)], LOST.replace('41', '42'), ago_sec=WINDOW_SEC + 60)
        self.journal.write(LOST)
        self.assertEqual(self.find_new(), ['0000:81:00.0'])


class TestRules(HealthCase):
    def test_recovery_report_and_count(self):
        self.add_rules(RECOVERS)
        agent = self.start_watching()
        self.journal.write('gpu %s: fan stopped' % ADDRESS)
        self.wait_reserved(agent, 4)
        self.journal.write('gpu %s: fan runs' % ADDRESS)
        self.wait_reserved(agent, 0)
        self.assertIn('Device %s works again by health rule fan, and was uncordoned' % ADDRESS, agent.log())
        self.journal.write('gpu %s: warm' % ADDRESS)
        wait_until(lambda: agent.status()['devices_reported'], LATENCY_SEC, 'the report')
        self.assertIn('gpu %s: warm' % ADDRESS, agent.ctl('status', code=4).stdout)
        self.assertEqual(self.reserved(agent), (0, 4))
        agent.restart('synced')
        self.assertIn('rule warm', agent.status()['devices_reported'])
        # Two cases before a restart and one after it are three.
        self.journal.write('gpu %s: retry 1' % ADDRESS, 'gpu %s: retry 2' % ADDRESS)
        self.settle(agent)
        self.assertEqual(self.reserved(agent), (0, 4))
        agent.restart('synced')
        self.journal.write('gpu %s: retry 3' % ADDRESS)
        self.wait_reserved(agent, 4)
        # A rule lifts only its own cordon.
        self.journal.write('gpu %s: fan runs' % ADDRESS)
        self.settle(agent)
        self.assertEqual(self.reserved(agent), (4, 4))

    def test_files_of_the_operator_override_and_mask_files_of_the_package(self):
        agent = self.start_watching()
        (self.rules / 'vfio.yaml').symlink_to('/dev/null')
        self.add_rules('rules:\n  - {name: bad, pattern: "(", count: 1}\n', 'nvidia.yaml')
        agent.ctl('reload')
        wait_until(lambda: 'nvidia.yaml:2: bad: pattern: not a regular expression' in agent.log(), LATENCY_SEC, 'the problem')
        self.journal.write(LOST, 'vfio-pci %s: not ready 65535ms after FLR; giving up' % ADDRESS)
        self.journal.write('pcieport %s: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer' % ADDRESS.replace('41', '81'))
        self.wait_reserved(agent, 5, GPU_B)
        self.assertEqual(self.reserved(agent), (0, 4))


def has_ended(pid):
    """Returns whether the process has ended, also if its parent did not take its exit code yet."""
    try:
        return Path('/proc/%d/stat' % pid).read_text().rpartition(')')[2].split()[0] == 'Z'
    except FileNotFoundError:
        return True


class TestHelper(HealthCase):
    def child(self, agent):
        """Returns the pid of the helper, or 0."""
        for path in Path('/proc/%d/task/%d/children' % (agent.child.pid, agent.child.pid)).read_text().split():
            if 'compute-agent-health' in Path('/proc/%s/cmdline' % path).read_text():
                return int(path)
        return 0

    def test_a_helper_that_is_killed_is_started_again(self):
        agent = self.start_watching()
        wait_until(lambda: self.child(agent), LATENCY_SEC, 'the helper')
        first = self.child(agent)
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: 'ended with signal 9' in agent.log(), LATENCY_SEC, 'the message')
        wait_until(lambda: self.child(agent) not in (0, first), LATENCY_SEC, 'another helper')
        self.journal.write(LOST)
        self.wait_reserved(agent, 4)
        self.assertEqual(agent.status()['health_error'], '')
        # The helper ends with the agent.
        last = self.child(agent)
        os.kill(agent.child.pid, signal.SIGKILL)
        wait_until(lambda: has_ended(last), 30, 'the end of the helper')

    def test_no_position_covers_a_finding_that_waits(self):
        command = [build_folder() / 'compute-agent-health', '--rules=%s' % SHIPPED, '--sysfs=/nonexistent',
                   '--journal=%s' % self.journal.folder]

        def watch(cursor, *lines):
            """Writes each line after the finding before it. Kills the helper after its last finding and state. Returns these and the cursor."""
            found = []
            with subprocess.Popen(command + ['--cursor=%s' % cursor], stdout=subprocess.PIPE, text=True) as child:
                for text in lines:
                    self.journal.write(*text)
                    for message in map(json.loads, child.stdout):
                        if message['kind'] == 'finding':
                            found.append((message['address'], message['line']))
                        cursor = message.get('cursor') or cursor
                        if message['kind'] == 'state' and found and found[-1][1] == text[-1]:
                            break
                child.kill()
            return found, cursor

        repeated = LOST.replace('4711', '4712')
        other, last = LOST.replace('41:00', '81:00'), LOST.replace('41:00', '82:00')
        found, cursor = watch('', [LOST], [repeated, other])
        self.assertEqual(found, [(ADDRESS, LOST), (ADDRESS.replace('41', '81'), other)])
        found, cursor = watch(cursor, [last])
        self.assertIn((ADDRESS, repeated), found)

    def test_the_status_says_why_rules_are_not_applied(self):
        agent = self.make_agent()
        path = agent.folder / 'broken-helper'
        path.write_text('#!/bin/sh\nexit 3\n')
        path.chmod(0o755)
        agent.more_env['COMPUTE_AGENT_HEALTH'] = str(path)
        agent.start('synced')
        wait_until(lambda: agent.status()['health_error'], LATENCY_SEC, 'the error')
        self.assertIn('compute-agent-health ended with exit code 3', agent.ctl('status', code=4).stdout)

    def test_findings_that_cannot_be_stored(self):
        """A full disk does not end the helper. The message and its end appear once."""
        self.add_rules(RECOVERS)
        agent = self.start_watching()
        self.settle(agent)
        first = self.child(agent)
        blocked = agent.state / 'health.json.new'
        blocked.mkdir()
        self.journal.write('gpu %s: warm' % ADDRESS)
        wait_until(lambda: agent.status()['devices_reported'], LATENCY_SEC, 'the report')
        self.settle(agent)
        self.journal.write('gpu %s: warm' % ADDRESS.replace('41', '81'))
        wait_until(lambda: '81:00.0' in agent.status()['devices_reported'], LATENCY_SEC, 'the other report')
        self.assertIn('health.json', agent.status()['health_error'])
        self.assertEqual(self.child(agent), first)
        self.assertEqual(agent.log().count('Findings of health rules cannot be stored'), 1)
        blocked.rmdir()
        self.add_rules(RECOVERS.replace('warm', 'hot'))
        agent.ctl('reload')
        self.journal.write('gpu %s: hot' % ADDRESS)
        wait_until(lambda: not agent.status()['health_error'], LATENCY_SEC, 'the end of the error')
        self.assertEqual(agent.log().count('Findings of health rules are stored again'), 1)

    def test_the_status_says_why_the_agent_ended_the_helper(self):
        agent = self.make_agent()
        path = agent.folder / 'talking-helper'
        path.write_text("#!/bin/sh\necho '{\"kind\": \"poem\"}'\nexec sleep 60\n")
        path.chmod(0o755)
        agent.more_env['COMPUTE_AGENT_HEALTH'] = str(path)
        agent.start('synced')
        wait_until(lambda: agent.status()['health_error'], LATENCY_SEC, 'the error')
        wait_until(lambda: self.child(agent) == 0, LATENCY_SEC, 'the end of the helper')
        self.assertEqual(agent.status()['health_error'], 'A message of compute-agent-health: unknown kind of message')

    def test_a_host_without_rules_is_well(self):
        agent = self.make_agent()
        agent.more_env.update(helper(agent.folder, self.journal.folder, rules=(self.rules,)))
        agent.start('synced')
        time.sleep(1)
        self.assertEqual(self.child(agent), 0)
        self.assertEqual((agent.status()['state'], agent.status()['health_error']), ('ok', ''))


class TestNova(HealthCase):
    def test_a_device_of_nova_compute_is_reported(self):
        agent = self.start_watching()
        agent.configure({'agent': {'nova': 'beside'}})
        agent.ctl('reload')
        agent.wait_state('left-to-nova')
        self.journal.write(LOST)
        wait_until(lambda: agent.status()['devices_reported'], LATENCY_SEC, 'the report')
        self.assertIn('. Not withheld: ', agent.log())
        self.assertEqual(self.reserved(agent), (0, 4))


class TestStandalone(EnvCase):
    """A recorded host with a card of two functions, lines of a pipe, and no Placement."""

    shared = ('bus',)

    def start(self, rules=None):
        self.pipe = self.scratch.path / ('kernel-%s.pipe' % uuid.uuid4().hex)
        os.mkfifo(self.pipe)
        card = {'name': 'pci_0000_8a_00_0', 'is_pci': True, 'address': '0000:8a:00.0', 'vendor_id': 0x8086, 'product_id': 0x1572,
                'class_code': 0x020000, 'is_physical_function': True, 'max_virtual_functions': 2}
        functions = [{'name': 'pci_0000_8a_02_%d' % n, 'is_pci': True, 'address': '0000:8a:02.%d' % n, 'vendor_id': 0x8086,
                      'product_id': 0x154c, 'class_code': 0x020000, 'physical_function': '0000:8a:00.0'} for n in range(2)]
        agent = Agent(self.scratch, bus=self.bus, host=recorded_host('alone', devices=[card, *functions]), options={
            'DEFAULT': {'debug': 'true'},
            'pci': {'device_spec': '{"vendor_id": "8086", "product_id": "154c", "resource_class": "CUSTOM_VF"}',
                    'report_in_placement': 'true'}})
        self.addCleanup(agent.stop)
        folder = self.scratch.path / ('rules-%s' % uuid.uuid4().hex)
        folder.mkdir()
        if rules:
            (folder / 'test.yaml').write_text(rules)
        agent.more_env.update(helper(agent.folder, pipe=self.pipe, rules=(folder, SHIPPED)))
        return agent.start('standalone')

    def write(self, line):
        with open(self.pipe, 'w', encoding='ascii') as kernel:
            kernel.write(line + '\n')

    def test_a_function_withholds_its_card_from_claims(self):
        agent = self.start()
        agent.claim('CUSTOM_VF=1')
        self.write('vfio-pci 0000:8a:02.1: not ready 65535ms after FLR; giving up')
        wait_until(lambda: agent.status()['devices_unhealthy'], LATENCY_SEC, 'the cordon')
        self.assertIn('0000:8a:00.0 cordoned by rule vfio-reset-failed', agent.status()['devices_unhealthy'])
        self.assertIn('its function 0000:8a:02.1: vfio-pci', agent.status()['devices_unhealthy'])
        self.assertIn('giving up', agent.claim('CUSTOM_VF=1', code=1).stderr)

    def test_the_recovery_of_a_function_lifts_no_cordon_for_another_one(self):
        agent = self.start(RECOVERS)
        first, second = '0000:8a:02.0', '0000:8a:02.1'

        self.write('gpu %s: fan stopped' % first)
        wait_until(lambda: agent.status()['devices_unhealthy'], LATENCY_SEC, 'the cordon')
        self.write('gpu %s: fan stopped' % second)
        wait_until(lambda: 'Ignoring a finding of health rule fan about %s' % second in agent.log(), LATENCY_SEC, 'the other finding')
        self.write('gpu %s: fan runs' % second)
        expected = 'Function %s of device 0000:8a:00.0 works again by health rule fan, but %s does not' % (second, first)
        wait_until(lambda: expected in agent.log(), LATENCY_SEC, 'the message')
        agent.restart('standalone')
        self.assertIn('0000:8a:00.0 cordoned by rule fan', agent.status()['devices_unhealthy'])
        self.write('gpu %s: fan runs' % first)
        wait_until(lambda: not agent.status()['devices_unhealthy'], LATENCY_SEC, 'the end of the cordon')

    def test_a_device_that_fails_for_two_guests(self):
        agent = self.start()
        first = agent.claim('CUSTOM_VF=1')
        address = first['devices'][0]['address']
        line = 'vfio-pci %s: timed out waiting for pending transaction; performing function level reset anyway' % address
        for _ in range(3):
            self.write(line)
            time.sleep(1)
        # A migration that takes the claim over is no other guest.
        agent.ctl('move', first['consumer'], str(uuid.uuid4()))
        self.write(line)
        time.sleep(1)
        self.assertEqual(agent.status()['devices_unhealthy'], '')
        agent.ctl('release', first['id'])
        self.assertEqual(agent.claim('CUSTOM_VF=1')['devices'][0]['address'], address)
        self.write(line)
        wait_until(lambda: 'rule vfio-reset-two-guests' in agent.status()['devices_unhealthy'], LATENCY_SEC, 'the cordon')
