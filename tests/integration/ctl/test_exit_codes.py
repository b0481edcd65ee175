# SPDX-License-Identifier: LGPL-2.1-or-later
"""The exit codes of computectl are those of the table in its manual page. Each line of the table has one case."""

import json
import re
from pathlib import Path

from tests.env.scratch import wait_until
from tests.integration.agent.test_agent import AgentCase

MANUAL = Path(__file__).resolve().parents[3] / 'man/computectl.1'


def table():
    """Returns {code: the verbs in its text} of the manual page."""
    text = MANUAL.read_text(encoding='utf-8').split('.SH EXIT STATUS\n')[1].split('.SH ')[0]
    codes = {}
    for part in text.split('.TP\n.B ')[1:]:
        code, words = part.split('\n', 1)
        heads = ' '.join(line for line in words.splitlines() if re.match(r'\.BR? .* :$', line))
        codes[int(code)] = set(re.findall(r'[a-z]+(?:-[a-z]+)?', heads.replace('\\-', '-').replace('.BR', '').replace('.B', '')))
    return codes


class TestExitCodes(AgentCase):
    def setUp(self):
        super().setUp()
        self.seen = {}

    def check(self, code, verb, *args):
        done = self.agent.ctl(verb, *args, check=False)
        self.assertEqual(done.returncode, code, (verb, args, done.stdout, done.stderr))
        self.seen.setdefault(code, set()).update([verb, *(str(arg)[2:] for arg in args if str(arg).startswith('--'))])

    def check_doctor(self):
        """Checks that doctor returns 0, or 4 if the clock of the test machine is the only problem."""
        findings = json.loads(self.agent.ctl('doctor', '--config', self.agent.config, '--json=short', check=False).stdout)['findings']
        bad = {one['check'] for one in findings if one['state'] != 'ok'}
        self.assertLessEqual(bad, {'clock'}, findings)
        self.check(4 if bad else 0, 'doctor', '--config', self.agent.config)
        self.seen.setdefault(0, set()).update(['doctor', 'config'])

    def leak(self):
        return self.placement.place(None, {self.agent.root(): {'VCPU': 1}})

    def test_each_code_of_the_manual(self):
        self.agent = self.start_agent()
        # 0: success, and no problem
        for verb in ('status', 'audit', 'heal', 'claims', 'drain', 'plan', 'tree'):
            self.check(0, verb)
        self.check(0, 'claims', '--problems')
        self.check_doctor()
        # 1: failure, or no result
        self.check(1, 'show', '4711')
        self.check(1, 'retire')  # it is not cordoned
        self.check(1, 'who', '0000:41:00.0')
        self.check(1, 'history', '4711')
        self.check(1, 'explain', '--resources', 'VCPU=4711')
        self.check(1, 'explain', '--resources', 'VCPU=1', '--cpu-policy', 'x')  # the agent judges it
        self.check(1, 'doctor', '--config-only', '--config', '/nowhere')
        # 2: wrong usage
        self.check(2, 'statsu')
        self.check(2, 'release')
        self.check(2, 'drain', 'a', 'b')
        self.check(2, 'sync', '--timeout', '0')
        self.check(2, 'explain', '--resources', 'vcpu=1')
        self.check(2, 'claim', '--consumer', 'a', '--group', 'VGPU=1')
        # 3: claims or consumers are left
        number = self.agent.claim('VGPU=1')['id']
        self.check(3, 'drain')
        self.agent.ctl('cordon')
        self.check(3, 'retire', '--dry-run')
        self.check(4, 'status')
        self.check(4, 'doctor', '--config', self.agent.config)
        self.agent.ctl('uncordon')
        self.agent.ctl('release', number)
        self.check(3, 'migrate-inventory')  # the service runs
        # An audit lists findings (3), and heal repairs them (4).
        self.agent.configure({'DEFAULT': {'claim_expiry_time': 1}})  # so that a young consumer is a finding
        self.agent.ctl('reload')
        leaked = self.leak()
        wait_until(lambda: self.agent.ctl('audit', check=False).returncode == 3, 30, 'a finding', step=0.2)
        self.check(3, 'audit')
        self.check(3, 'claims', '--problems')
        self.check(3, 'heal', '--dry-run')
        self.check(3, 'heal')  # there is no evidence that its server is deleted
        self.check(2, 'heal', 'x')
        self.check(2, 'heal', '--dry-run', leaked)
        self.check(4, 'heal', leaked)
        self.check(0, 'heal', leaked)
        self.check(0, 'heal')
        self.agent.stop()
        self.check(3, 'status')
        self.check(3, 'doctor', '--config', self.agent.config)
        self.check(1, 'tree')
        manual = table()
        # Two cases have their own tests: a request that is too hard (integration.agent.test_bus_limits), and a private Placement
        # that does not start (integration.reshape.test_reshape).
        self.assertEqual(manual.pop(5), {'claim', 'explain'})
        manual[4].remove('migrate-inventory')
        self.assertEqual(set(manual), set(self.seen))
        for code, verbs in manual.items():
            self.assertLessEqual(verbs, self.seen[code], code)
