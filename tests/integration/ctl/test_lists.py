# SPDX-License-Identifier: LGPL-2.1-or-later
"""The lists of computectl: filters and columns of claims and history, and the archive of report."""

import json
import os
import subprocess
import tarfile
import uuid

from tests.env.agent import build_folder
from tests.env.scratch import wait_until
from tests.integration.agent.test_agent import AgentCase


class TestFilters(AgentCase):
    def setUp(self):
        super().setUp()
        self.agent = self.start_agent()
        self.consumers = [str(uuid.uuid4()) for _ in range(3)]
        for consumer, request in zip(self.consumers, (('--resources', 'VCPU=1'), ('--group', 'GPU:VGPU=1'), ('--resources', 'VCPU=1'))):
            self.agent.ctl('claim', '--consumer', consumer, *request)
        self.agent.ctl('confirm', self.number(0))
        self.agent.ctl('release', self.number(2))

    def gpu(self):
        claim = next(claim for claim in self.agent.ctl_json('claims')['claims'] if claim['consumer'] == self.consumers[1])
        return claim['allocations'][0]['name']

    def number(self, i):
        claims = self.agent.ctl_json('claims', '--history')['claims']
        return next(claim['id'] for claim in claims if claim['consumer'] == self.consumers[i])

    def listed(self, *args):
        return {self.consumers.index(claim['consumer']) for claim in self.agent.ctl_json('claims', *args)['claims']}

    def test_claims(self):
        for args, wanted in (((), {0, 1}),
                             (('--history',), {0, 1, 2}),
                             (('--guest', self.consumers[1]), {1}),
                             (('--state', 'confirmed'), {0}),
                             (('--state', 'released'), {2}),
                             (('--device', self.gpu()), {1}),
                             (('--device', 'pci_0000_ff_00_0'), set()),
                             (('--since', '-1h'), {0, 1}),
                             (('--since', '2999-01-01'), set()),
                             (('--since=-1h', '--state=claimed'), {1})):
            with self.subTest(args):
                self.assertEqual(self.listed(*args), wanted)

    def test_history(self):
        def kinds(*args):
            return [event['event'] for event in self.agent.ctl_json('history', *args)['events']]
        self.assertEqual(kinds(), ['released', 'claimed', 'claimed', 'claimed'])
        self.assertEqual(kinds('--state=released'), ['released'])
        self.assertEqual(kinds('--guest', self.consumers[2]), ['released', 'claimed'])
        self.assertEqual(kinds(self.consumers[2], '--state', 'claimed'), ['claimed'])
        self.assertEqual(kinds('--device', self.gpu()), ['claimed'])
        self.assertEqual(kinds('--since=today'), kinds())
        for nothing in (('--guest', str(uuid.uuid4())), ('--state', 'healed'), ('--since', '2999-01-01'), ('4711',)):
            self.assertEqual(self.agent.ctl_json('history', *nothing, code=1)['events'], [], nothing)

    def test_an_ended_claim_has_no_xml(self):
        self.assertIn('claim %d has ended' % self.number(2), self.agent.ctl('show', self.number(2), '--xml', code=1).stderr.lower())
        self.assertIn('<', self.agent.ctl('show', self.number(1), '--xml').stdout)

    def test_columns(self):
        lines = self.agent.ctl('claims', '--columns=state,consumer', '--no-legend').stdout.splitlines()
        self.assertEqual([line.split() for line in lines if line], [['confirmed', self.consumers[0]], ['claimed', self.consumers[1]]])
        done = self.agent.ctl('claims', '--columns=ID,SIZE', code=2)
        self.assertIn('Unknown column "SIZE". The columns are ID,', done.stderr)
        self.assertEqual(done.stdout, '\n2 claims.\n')

    def test_a_claim_that_a_migration_took_over_belongs_to_its_guest(self):
        guest, migration = str(uuid.uuid4()), str(uuid.uuid4())
        self.libvirtd.start_guest('web-1', uuid=guest)
        self.addCleanup(self.libvirtd.delete_guest, guest)
        self.agent.ctl('sync')
        wait_until(lambda: self.agent.claims(guest), 20, 'the adoption')
        number = self.agent.claims(guest)[0]['id']
        self.agent.ctl('move', guest, migration)
        for owner in (guest, guest.upper(), migration, 'web-1'):
            for words in (('claims', '--guest', owner), ('who', owner)):
                self.assertEqual([claim['id'] for claim in self.agent.ctl_json(*words)['claims']], [number], words)
        self.assertEqual(self.agent.ctl_json('show', str(number))['of'], guest)

    def test_report(self):
        archive = self.agent.folder / 'report.tar.gz'
        done = self.agent.ctl('report', archive)
        self.assertIn(str(archive), done.stdout)
        self.assertEqual(archive.stat().st_mode & 0o777, 0o600)
        with tarfile.open(archive) as tar:
            parts = {name.partition('/')[2]: tar.extractfile(name).read() for name in tar.getnames() if '/' in name}
        self.assertEqual(len(json.loads(parts['claims.json'])['claims']), 3)
        self.assertEqual(json.loads(parts['tree.json']), self.agent.ctl_json('tree'))
        self.assertEqual(json.loads(parts['audit.json'])['format'], 'compute-agent-audit/1')
        self.assertIn(b'compute-agent', parts['version.txt'])
        index = {part['file']: part for part in json.loads(parts['index.json'])}
        self.assertEqual(index['history.json'], {'file': 'history.json', 'code': 0, 'timed_out': False})
        # It never replaces a file, and it deletes its temporary files.
        self.assertIn('already exists', self.agent.ctl('report', archive, code=1).stderr)
        empty = self.agent.folder / 'empty'
        empty.mkdir()
        work = self.agent.folder / 'work'
        work.mkdir()
        done = subprocess.run([str(build_folder() / 'computectl'), 'report', '--json'], cwd=empty, capture_output=True, text=True, check=True,
                              env={**self.agent.env(), 'TMPDIR': str(work)}, timeout=120)
        made, = os.listdir(empty)
        self.assertEqual(json.loads(done.stdout)['file'], made)
        self.assertEqual(os.listdir(work), [])
