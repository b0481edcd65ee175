# SPDX-License-Identifier: LGPL-2.1-or-later
"""A real Prometheus scrapes the agent's metrics and evaluates the queries of the dashboard and of the alert rules."""

import json
import re

from tests.env.agent import Agent, build_folder
from tests.env.case import EnvCase
from tests.env.fakesys import demo_host
from tests.env.libvirtd import testdriver_xml
from tests.env.prometheus import Prometheus
from tests.env.scratch import wait_until

RULES, DASHBOARD = (build_folder() / 'doc' / name for name in ('compute-agent.rules.yml', 'compute-agent-dashboard.json'))
SELECTOR = re.compile(r'(?:compute_agent|node_textfile)_\w+(?:\{[^}]*\})?')


class TestPrometheus(EnvCase):
    def setUp(self):
        self.file = self.scratch.folder('metrics') / 'compute-agent.prom'
        self.agent = Agent(self.scratch, self.proxy, testdriver_xml(demo_host(), self.scratch.path), self.bus,
                           {'agent': {'metrics_file': self.file}}).start('synced')
        self.prometheus = Prometheus(self.file, RULES, self.scratch).start()
        self.addCleanup(self.prometheus.stop)

    def data(self, expression):
        return wait_until(lambda: self.prometheus.query(expression), 30, 'data of ' + expression)

    def wait_alerts(self, *names):
        def raised():
            self.agent.ctl('sync', check=False)
            return self.prometheus.alerts() == set(names)
        wait_until(raised, 60, 'the alerts ' + ', '.join(names), step=0.5)

    def undo(self):
        """Overwrites a value of the agent and runs a cycle, as a second reporter would."""
        self.placement.edit(self.agent.root(), 'inventories', lambda inventories: inventories['MEMORY_MB'].update(reserved=17))
        self.agent.ctl('sync', check=False)

    def rules(self):
        return [rule for group in self.prometheus.get('rules')['groups'] for rule in group['rules']]

    def test_each_panel_and_each_alert_finds_what_it_asks_for(self):
        self.agent.claim('VGPU=1')
        dashboard = json.loads(DASHBOARD.read_text())
        asked, = [one['query'] for one in dashboard['templating']['list'] if one['name'] == 'instance']
        instance, = [labels['instance'] for labels, _ in self.data(re.fullmatch(r'label_values\((\w+), instance\)', asked)[1])]
        for panel in dashboard['panels']:
            for target in panel['targets']:
                named = set(re.findall(r'{{(\w+)}}', target['legendFormat']))
                with self.subTest(panel=panel['title'], query=target['expr']):
                    for labels, value in self.data(target['expr'].replace('$instance', instance)):
                        self.assertLessEqual(named, set(labels))
                        self.assertRegex(value, r'^[0-9.e+-]+$')
        for _ in range(3):
            self.undo()
        self.assertEqual([rule['name'] for rule in self.rules()], re.findall(r'(?:record|alert): ([\w:]+)', RULES.read_text()))
        for rule in self.rules():
            with self.subTest(rule=rule['name']):
                for selector in SELECTOR.findall(rule['query']):
                    self.data(selector)
        wait_until(lambda: all(rule['health'] == 'ok' for rule in self.rules()), 30, 'the rules to be evaluated')
        # No other alert is raised.
        self.wait_alerts('ComputeAgentSecondReporter', 'ComputeAgentDegraded')

    def test_trouble_raises_its_alerts_and_no_others(self):
        self.wait_alerts()
        self.agent.configure({'DEFAULT': {'claim_expiry_time': 1}})  # so that a young consumer is a finding
        self.agent.ctl('reload')
        self.placement.place(None, {self.agent.root(): {'VCPU': 1}})
        wait_until(lambda: self.agent.ctl('audit', check=False).returncode == 3, 20, 'a finding', step=0.2)
        self.wait_alerts('ComputeAgentAuditFindings')
        self.proxy.refuse()
        self.agent.claim('VCPU=1')
        self.wait_alerts('ComputeAgentAuditFindings', 'ComputeAgentWritesPending', 'ComputeAgentDegraded')
        self.agent.stop()
        self.file.unlink()  # systemd also removes the folder of a service that ended
        wait_until(lambda: self.prometheus.alerts() == {'ComputeAgentSilent'}, 60, 'the alert of an agent that ended', step=0.5)
