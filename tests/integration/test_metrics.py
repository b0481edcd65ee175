# SPDX-License-Identifier: LGPL-2.1-or-later
"""The metrics of a running agent, judged by promtool; and what doc/ makes of them."""

import json
import re
import subprocess
import unittest
from pathlib import Path

from tests.env.agent import Agent
from tests.env.bus import Bus
from tests.env.scratch import Scratch, wait_until

DOC = Path(__file__).resolve().parents[2] / 'doc'
CONSUMER = '0a3fd8c2-1f2b-4a53-8a0a-35b6a3a6f0d1'


def promtool(*args, **kwargs):
    done = subprocess.run(['promtool', *map(str, args)], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT, check=False, timeout=60, **kwargs)
    return done.returncode, done.stdout


class Metrics(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = Scratch()
        cls.addClassCleanup(cls.scratch.close)
        bus = Bus(cls.scratch)
        bus.start()
        cls.file = cls.scratch.folder('metrics') / 'compute-agent.prom'
        cls.agent = Agent(cls.scratch, bus=bus, options={'agent': {'metrics_file': cls.file}})
        cls.agent.start()
        wait_until(cls.file.exists, 20, 'the metrics')

    def names(self):
        return set(re.findall(r'^# TYPE (\w+)', self.file.read_text(), re.M))

    def test_promtool_has_nothing_to_say(self):
        self.assertEqual(promtool('check', 'metrics', input=self.file.read_text()), (0, ''))

    def test_a_claim_is_counted(self):
        # The test driver has a guest of two CPUs, which is given a claim of its own.
        wait_until(lambda: 'compute_agent_claims 1\n' in self.file.read_text(), 10, "the guest's")
        claim = self.agent.ctl_json('claim', '--consumer', CONSUMER, '--resources', 'VCPU=1')
        self.agent.ctl('sync')
        wait_until(lambda: 'compute_agent_claims 2\n' in self.file.read_text(), 10, 'the claim')
        used = re.findall(r'_used_units\{.*class="VCPU"\} (\d+)', self.file.read_text())
        self.assertEqual(used, ['3'])
        self.agent.ctl('release', claim['id'])

    def test_the_rules_are_good(self):
        code, text = promtool('check', 'rules', DOC / 'compute-agent.rules.yml')
        self.assertEqual(code, 0, text)

    def test_rules_and_dashboard_know_no_other_names(self):
        dashboard = (DOC / 'compute-agent-dashboard.json').read_text()
        json.loads(dashboard)
        rules = (DOC / 'compute-agent.rules.yml').read_text()
        used = set(re.findall(r'\bcompute_agent_\w+', dashboard + rules))
        self.assertLessEqual(used, self.names())

    def test_the_manual_lists_them(self):
        manual = (DOC.parent / 'man/compute-agentd.8').read_text()
        self.assertEqual(set(re.findall(r'\bcompute_agent_\w+', manual)), self.names())


if __name__ == '__main__':
    unittest.main()
