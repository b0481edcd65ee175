# SPDX-License-Identifier: LGPL-2.1-or-later
"""Guests that run in a real libvirtd, and what a real Placement has of them: placed by a scheduler, claimed by the agent,
raced for, deleted while nobody looked. The names are those of the facts (F4, F8)."""

import uuid

from tests.env import faults
from tests.env.agent import Agent
from tests.env.hosts import DEMO_MDEV
from tests.env.libvirtd import guest_xml
from tests.env.scratch import EnvError, wait_until
from tests.integration.claims.placement_case import HostCase
from tests.integration.agent.test_agent import GPU_A, GPU_B

GUEST = {'VCPU': 1, 'MEMORY_MB': 32}  # of tests.env.libvirtd.guest_xml()
RESOURCES = 'VCPU=1,MEMORY_MB=32'


class TestGuestsPlaced(HostCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.libvirtd.start()
        cls.addClassCleanup(cls.libvirtd.destroy_guests)
        cls.agent = Agent(cls.scratch, cls.proxy.endpoint, cls.libvirtd.uri, cls.bus, {
            'DEFAULT': {'claim_expiry_time': 3600, 'update_resources_interval': 3600}}).start('synced')
        cls.root = cls.agent.root()
        tree = cls.placement.tree_by_name(cls.root)
        cls.vgpus = {tree[name]['uuid']: tree[name]['inventories']['VGPU']['total']
                     for name in (GPU_A, GPU_B)}
        cls.other = cls.placement.make_provider('another-host', {'VCPU': 8})

    def setUp(self):
        self.guest = str(uuid.uuid4())
        self.addCleanup(self.start_over)

    def start_over(self):
        self.proxy.clear()
        self.agent.configure({'DEFAULT': {'claim_expiry_time': 3600}})
        self.agent.stop()
        self.libvirtd.delete_guests()
        self.agent.start('synced')
        self.agent.release_all()
        self.agent.ctl('sync')
        self.delete_consumers(self.root, self.other, *self.vgpus)

    def wait_held(self, held):
        wait_until(lambda: self.held(self.guest) == held, 30, 'Placement to have %s' % held)

    def claim(self, resources=RESOURCES, consumer=None, check=True):
        return self.agent.claim(resources, consumer or self.guest, check=check)

    def start_guest(self, claim):
        """And the layer above says that it is there."""
        self.libvirtd.start_guest('guest', uuid=self.guest)
        self.agent.ctl('confirm', claim['id'])
        self.agent.ctl('sync')

    def delete_guest(self):
        self.libvirtd.delete_guest('guest')

    def assert_confirmed(self, claim):
        self.assertEqual([(one['id'], one['state']) for one in self.agent.claims(self.guest)],
                         [(claim['id'], 'confirmed')])
        self.assertEqual(self.agent.ctl_json('audit')['findings'], [])

    def test_placed_by_a_scheduler(self):
        placed = {self.root: GUEST, self.other: {'VCPU': 2}}
        self.place(self.guest, placed)
        mark = self.placement.mark()
        claim = self.claim()
        self.start_guest(claim)
        self.assert_confirmed(claim)
        self.delete_guest()
        self.agent.ctl('release', claim['id'])
        self.agent.ctl('sync')
        self.assertEqual(self.agent.claims(self.guest), [])
        self.assertEqual(self.placement.writes_since(mark), [])
        self.assertEqual(self.held(self.guest), placed)

    def test_placed_here_anew_on_another_gpu(self):
        """A migration that was reverted and begun again: the first claim is there yet."""
        first, last = self.vgpus
        self.place(self.guest, {self.root: GUEST, first: {'VGPU': 1}})
        before = self.claim(RESOURCES + ',VGPU=1')
        self.assertEqual(self.claim(RESOURCES + ',VGPU=1')['id'], before['id'])
        self.place(self.guest, {self.root: GUEST, last: {'VGPU': 1}})
        claim = self.claim(RESOURCES + ',VGPU=1')
        self.assertEqual([device['provider'] for device in claim['devices']], [last])
        self.assertEqual([one['id'] for one in self.agent.claims(self.guest)], [claim['id']])

    def leave_one_vgpu(self):
        """The provider that has it, after others hold all the rest."""
        (first, n_first), (last, n_last) = self.vgpus.items()
        self.place(str(uuid.uuid4()), {first: {'VGPU': n_first}, last: {'VGPU': n_last - 1}})
        return last

    def test_the_last_vgpu_goes_to_somebody_faster(self):
        last, thief = self.leave_one_vgpu(), str(uuid.uuid4())
        with self.proxy.held(lambda: self.claim(RESOURCES + ',VGPU=1', check=False), method='PUT', path='^/allocations/') as claiming:
            self.place(thief, {last: {'VGPU': 1}})
        done = claiming.result()
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn('other consumers hold in Placement', done.stderr)
        self.assertEqual((self.held(self.guest), self.agent.claims(self.guest)), ({}, []))
        self.assertEqual(self.held(thief), {last: {'VGPU': 1}})

    def test_the_last_vgpu_goes_to_the_agent(self):
        last, late = self.leave_one_vgpu(), str(uuid.uuid4())
        with self.proxy.held(lambda: self.claim(RESOURCES + ',VGPU=1'), where='after', method='PUT', path='^/allocations/') as claiming:
            self.assertEqual(self.put(late, {last: {'VGPU': 1}}), 409)
        claim = claiming.result()
        self.assertEqual(self.held(self.guest), {self.root: GUEST, last: {'VGPU': 1}})
        self.assertEqual([device['device'] for device in claim['devices']], [GPU_B[len('demo_'):]])
        done = self.claim('VGPU=1', consumer=late, check=False)
        self.assertIn('other consumers hold in Placement', done.stderr)

    def delete_while_the_agent_is_down(self):
        """A guest that the agent told Placement of, and which holds something elsewhere, too."""
        elsewhere = {self.other: {'VCPU': 2}}
        self.place(self.guest, elsewhere)
        claim = self.claim(RESOURCES + ',VGPU=1')
        self.start_guest(claim)
        self.assert_confirmed(claim)
        self.agent.stop()
        self.delete_guest()
        self.agent.configure({'DEFAULT': {'claim_expiry_time': 1}})
        self.assertEqual(len(self.held(self.guest)), 3)
        return claim, elsewhere

    def orphaned(self):
        """Whether a further poll found that nobody has the claim any more."""
        self.agent.ctl('sync', check=False)
        return self.agent.claims(self.guest) == []

    def test_1679750_deleted_while_the_agent_is_down(self):
        claim, elsewhere = self.delete_while_the_agent_is_down()
        self.agent.start()
        wait_until(self.orphaned, 30, 'the end of the claim')
        self.wait_held(elsewhere)
        ended = self.agent.ctl_json('show', claim['id'])
        self.assertEqual(ended['end_reason'], 'orphan: its guest is gone')

    def test_1679750_deleted_while_agent_and_placement_are_down(self):
        _, elsewhere = self.delete_while_the_agent_is_down()
        with self.proxy.fault(faults.Cut()):
            self.agent.start()
            wait_until(self.orphaned, 30, 'the end of the claim')
            self.assertEqual(len(self.held(self.guest)), 3)
        self.agent.ctl('sync')
        self.wait_held(elsewhere)

    def test_1862633_an_unshelve_that_fails(self):
        """The guest comes to a host and does not start there: nothing of it stays, and it can come again."""
        xml = guest_xml('guest', uuid=self.guest, devices=[DEMO_MDEV])
        for placed in (True, False):
            if placed:
                self.place(self.guest, {self.root: GUEST})
            claim = self.claim()
            self.libvirtd.define(xml)
            # There is no such hardware behind the mdev.
            with self.assertRaises(EnvError):
                self.libvirtd.virsh('start', 'guest')
            self.libvirtd.virsh('undefine', 'guest')
            self.agent.ctl('release', claim['id'], '--allocations', '--reason', 'unshelve failed')
            self.wait_held({})
            self.agent.ctl('sync')
            self.assertEqual(self.agent.claims(self.guest), [])
        claim = self.claim()
        self.start_guest(claim)
        self.assert_confirmed(claim)
        self.assertEqual(self.held(self.guest), {self.root: GUEST})
