# SPDX-License-Identifier: LGPL-2.1-or-later
"""Single requests for consumers at a real Placement (facts E5, E8)."""

import json
import subprocess

from tests.env.agent import build_folder
from tests.integration.report.report_case import ReportCase, inventory, provider, uid


def tree():
    return [provider('host', None, {'VCPU': inventory(8)}, ['COMPUTE_NODE']),
            provider('host_a', 'host', {'VGPU': inventory(1)}, ['CUSTOM_FAST']),
            provider('host_b', 'host', {'VGPU': inventory(4)})]


def document(name, allocations, generation, **fields):
    return json.dumps({
        'uuid': uid(name), 'project_id': 'project', 'user_id': 'user',
        'consumer_generation': -1 if generation is None else generation,
        'allocations': {uid(key): {'resources': value} for key, value in allocations.items()},
        **fields})


class TestReportConsumers(ReportCase):
    def setUp(self):
        super().setUp()
        self.publish_done(tree())

    def probe(self, *arguments, endpoint=None):
        done = subprocess.run([str(build_folder() / 'tests/probes/consumers-probe'),
                               endpoint or self.placement.endpoint, *arguments],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60,
                              check=False)
        self.assertEqual((done.returncode, done.stderr), (0, b''))
        return json.loads(done.stdout)

    def held(self, name):
        return self.placement.held(uid(name))

    def test_write_read_and_remove(self):
        self.assertEqual(self.probe('read', uid('guest'))['generation'], -1)
        line = self.probe('write', document('guest', {'host': {'VCPU': 2}}, None))
        self.assertEqual((line['outcome'], line['status']), ('done', 204))
        line = self.probe('read', uid('guest'))
        self.assertEqual((line['n_allocations'], line['type']), (1, 'INSTANCE'))
        # A second write as a new consumer is a conflict.
        again = self.probe('write', document('guest', {'host': {'VCPU': 3}}, None))
        self.assertEqual((again['outcome'], again['status']), ('conflict', 409))
        self.assertEqual(self.held('guest'), {uid('host'): {'VCPU': 2}})
        # The write asks for more than the capacity.
        more = self.probe('write', document('more', {'host_a': {'VGPU': 2}}, None))
        self.assertEqual((more['outcome'], more['status']), ('refused', 409))
        gone = self.probe('write', document('guest', {}, line['generation']))
        self.assertEqual(gone['outcome'], 'done', gone['error'])
        self.assertEqual(self.probe('read', uid('guest'))['generation'], -1)

    def test_move_is_whole_or_not_at_all(self):
        self.allocate('guest', {'host': {'VCPU': 2}, 'host_b': {'VGPU': 1}})
        held, generation = self.held('guest'), self.consumer('guest')['consumer_generation']
        away = document('guest', {}, generation)
        bad = self.probe('move', away, document('migration', {'host_a': {'VGPU': 2}}, None))
        self.assertEqual(bad['outcome'], 'refused')
        self.assertEqual(self.held('guest'), held)
        done = self.probe('move', away, document('migration', {'host': {'VCPU': 2},
                                                              'host_b': {'VGPU': 1}}, None,
                                                 consumer_type='MIGRATION'))
        self.assertEqual(done['outcome'], 'done', done['error'])
        self.assertEqual((self.held('guest'), self.held('migration')), ({}, held))
        self.assertEqual(self.probe('read', uid('migration'))['type'], 'MIGRATION')

    def test_room(self):
        """One candidate would be enough. The answer still has the free amounts of all providers in the tree and of all their classes."""
        self.allocate('guest', {'host': {'VCPU': 2}, 'host_b': {'VGPU': 1}})
        left = {uid('host'): {'VCPU': 6}, uid('host_a'): {'VGPU': 1}, uid('host_b'): {'VGPU': 3}}
        for resource_class in ('VCPU', 'VGPU'):
            self.assertEqual(self.probe('room', uid('host'), resource_class, '1')['held'], left)
        self.assertEqual(self.probe('room', uid('host'), 'VGPU', '4')['held'], {})
        self.assertEqual(self.probe('room', uid('host'), 'CUSTOM_NO', '1')['outcome'], 'refused')
