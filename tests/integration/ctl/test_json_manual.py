# SPDX-License-Identifier: LGPL-2.1-or-later
"""The manual page computectl-json(5) names each member that each verb prints."""

import json
import re
import uuid
from pathlib import Path

from tests.integration.agent.test_agent import GPU_A, AgentCase

MANUAL = Path(__file__).resolve().parents[3] / 'man/computectl-json.5'
DATA = re.compile(r'[A-Z][A-Z0-9_]*|[0-9a-f]{8}-[0-9a-f-]{27}|')  # resource classes, uuids and suffixes of groups


def entries():
    """Returns {verb: the text of its entry}. The text includes the entries of the verbs that it names."""
    text = MANUAL.read_text(encoding='utf-8').replace('\\-', '-')
    section = text.partition('.SH DOCUMENTS\n')[2].partition('.SH ')[0]
    heads, bodies = {}, {}
    for part in section.split('.TP\n')[1:]:
        head, body = part.split('\n', 1)
        for verb in re.findall(r'(?<![\w-])[a-z]+(?:-[a-z]+)*', head):
            heads[verb] = body
        for line in re.findall(r'^\.BR? .*', body, re.M):
            for verb in re.findall(r'(?<![\w-])[a-z]+(?:-[a-z]+)*', line):
                bodies.setdefault(verb, []).append(body)
    found = {}
    for verb in {*heads, *bodies}:
        own = [heads[verb]] if verb in heads else bodies[verb]
        named = re.findall(r'^\.BR? ([a-z-]+)', '\n'.join(own), re.M)
        found[verb] = '\n'.join([*own, *(heads[one] for one in named if one in heads)])
    return found


def members(value):
    if isinstance(value, dict):
        for key, item in value.items():
            if not DATA.fullmatch(key):
                yield key
            yield from members(item)
    elif isinstance(value, list):
        for item in value:
            yield from members(item)


class TestManual(AgentCase):
    def check(self, *args):
        shown = self.agent.ctl(*args, '--json=short', check=False)
        for line in shown.stdout.splitlines():
            names = set(members(json.loads(line)))
            self.assertTrue(names, args)
            missing = {name for name in names if not re.search(r'"%s"|--%s' % (name, name), self.manual[args[0]])}
            self.assertEqual(missing, set(), args)
        self.assertTrue(shown.stdout, (args, shown.stderr))

    def test_each_member_is_in_the_manual(self):
        self.manual = entries()
        self.agent = self.start_agent()
        consumer, migration = str(uuid.uuid4()), str(uuid.uuid4())
        # The documents contain each kind of object: a claim with a device, CPUs and a group; an event; a finding.
        self.check('claim', '--consumer', consumer, '--group', 'GPU:VGPU=1', '--resources', 'VCPU=1,MEMORY_MB=64', '--numa-nodes', '1')
        number = self.agent.claims(consumer)[0]['id']
        self.placement.place(None, {self.agent.root(): {'VCPU': 1}})
        for args in (('status',), ('tree',), ('doctor', '--hardware-only', '--config', self.agent.config), ('sync',), ('claims',), ('claims', '--problems'),
                     ('show', str(number)), ('who', consumer), ('who', GPU_A), ('drain',), ('history',),
                     ('explain', '--resources', 'VCPU=1'), ('confirm', str(number)), ('move', consumer, migration),
                     ('audit',), ('heal',), ('audit', '--all'), ('cordon',), ('retire', '--dry-run'), ('uncordon',),
                     ('release', str(number)), ('claims', '--history'), ('history',), ('reload',),
                     ('doctor', '--config-only', '--config', self.agent.config), ('identity', 'show', '--config', self.agent.config),
                     ('doctor', '--config', self.agent.config),
                     ('report', self.agent.folder / 'report.tar.gz')):
            with self.subTest(args):
                self.check(*args)
