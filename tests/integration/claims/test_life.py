# SPDX-License-Identifier: LGPL-2.1-or-later
"""The end of a claim, and the contents of a new one. A real libvirtd shows whether the guest is here, and a real Placement shows
whether the consumer still has an allocation here. Neither of the two is certain alone."""

import time
import uuid

from tests.env import faults
from tests.env.agent import Agent
from tests.env.hosts import DEMO_MDEV
from tests.env.scratch import EnvError, wait_until
from tests.integration.claims.placement_case import HostCase
from tests.integration.agent.test_agent import GPU_A, GPU_B

CELL = 'demo_NUMA%d'


class LifeCase(HostCase):
    options = {}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.libvirtd.start()
        cls.addClassCleanup(cls.libvirtd.destroy_guests)
        cls.agent = Agent(cls.scratch, cls.proxy.endpoint, cls.libvirtd.uri, cls.bus, cls.options).start('synced')
        cls.root = cls.agent.root()
        tree = cls.placement.tree_by_name(cls.root)
        cls.uuids = {name: provider['uuid'] for name, provider in tree.items()}
        cls.gpu = cls.uuids[GPU_A]
        cls.n_vgpus = tree[GPU_A]['inventories']['VGPU']['total']

    def setUp(self):
        self.addCleanup(self.clean)

    def clean(self):
        self.proxy.clear()
        self.libvirtd.delete_guests()
        self.delete_consumers(*self.uuids.values())
        for claim in self.agent.claims():
            self.agent.ctl('release', claim['id'], check=False)
        self.agent.ctl('sync')

    def claim_of(self, consumer):
        """Returns the active claim of a consumer, or None."""
        return next(iter(self.agent.claims(consumer)), None)

    def build(self, held, resources):
        """Places a consumer as a scheduler does, and returns its claim."""
        consumer = str(uuid.uuid4())
        self.place(consumer, held)
        return self.agent.claim(resources, consumer)

    def end_reason(self, claim):
        return self.agent.ctl_json('show', claim['id'])['end_reason']

    def mdev(self, claim):
        device, = claim['devices']
        return device['mdev']


class TestSlowBuild(LifeCase):
    options = {'DEFAULT': {'claim_expiry_time': 1, 'update_resources_interval': 1}, 'agent': {'heal_each_cycles': 1}}

    def test_a_slow_build_keeps_its_claim_and_its_allocations(self):
        slow = self.build({self.gpu: {'VGPU': 1}}, 'VGPU=1')
        expires = self.claim_of(slow['consumer'])['expires_usec']
        wait_until(lambda: self.claim_of(slow['consumer'])['expires_usec'] > expires, 30, 'a longer life')
        second = self.build({self.gpu: {'VGPU': 1}}, 'VGPU=1')
        self.assertNotEqual(self.mdev(slow), self.mdev(second))
        time.sleep(3)  # several times the expiry, with several rounds of healing
        self.assertEqual(self.claim_of(slow['consumer'])['id'], slow['id'])
        self.assertEqual(self.held(slow['consumer']), {self.gpu: {'VGPU': 1}})

        self.placement.delete(slow['consumer'])
        wait_until(lambda: not self.claim_of(slow['consumer']), 30, 'the end of the claim')
        self.assertEqual(self.end_reason(slow), 'expired')
        self.assertTrue(self.claim_of(second['consumer']))

    def test_while_placement_is_away_nothing_ends_that_is_not_certain(self):
        slow = self.build({self.gpu: {'VGPU': 1}}, 'VGPU=1')
        with self.proxy.fault(faults.Cut()):
            self.agent.wait_state('offline')
            time.sleep(3)
            self.agent.ctl('sync', check=False)
            self.assertTrue(self.claim_of(slow['consumer']))
        self.agent.wait_state('synced')
        self.assertTrue(self.claim_of(slow['consumer']))

    def test_allocations_of_the_agent_itself_expire(self):
        consumer = str(uuid.uuid4())
        self.agent.claim('VCPU=1', consumer)
        wait_until(lambda: not self.claim_of(consumer), 30, 'the end of the claim')
        wait_until(lambda: self.held(consumer) == {}, 30, 'the removal')

    def test_a_confirmed_claim_stays_while_its_guest_is_rebuilt(self):
        claim = self.build({self.root: {'VCPU': 1, 'MEMORY_MB': 32}, self.gpu: {'VGPU': 1}},
                           'VCPU=1,MEMORY_MB=32,VGPU=1')
        self.libvirtd.start_guest('rebuilt', uuid=claim['consumer'])
        self.agent.ctl('confirm', claim['id'])
        self.agent.ctl('sync')
        self.libvirtd.delete_guest('rebuilt')
        time.sleep(4)
        self.agent.ctl('sync')
        self.assertEqual(self.claim_of(claim['consumer'])['id'], claim['id'])
        problems = self.agent.problems()
        self.assertTrue([text for text in problems if 'has had no guest here' in text], problems)


class TestFullHost(LifeCase):
    """Cycles run only on request, and claims expire after an hour."""

    options = {'DEFAULT': {'claim_expiry_time': 3600, 'update_resources_interval': 3600}}
    HELD, RESOURCES = {'VCPU': 1, 'MEMORY_MB': 32}, 'VCPU=1,MEMORY_MB=32,VGPU=1'

    def fill(self, confirm=True):
        """Claims all vGPUs of a GPU for a guest that runs and for consumers that are being built."""
        held = {self.root: self.HELD, self.gpu: {'VGPU': 1}}
        first = self.build(held, self.RESOURCES)
        self.libvirtd.start_guest('first', uuid=first['consumer'])
        if confirm:
            self.agent.ctl('confirm', first['id'])
        self.agent.ctl('sync')
        return held, first, [self.build(held, self.RESOURCES) for _ in range(self.n_vgpus - 1)]

    # Checks that a new guest gets the devices of one that is gone from the host and from Placement.
    def succeed(self, confirm):
        held, first, others = self.fill(confirm)
        self.libvirtd.delete_guest('first')
        self.placement.delete(first['consumer'])
        next_one = str(uuid.uuid4())
        self.place(next_one, held)
        began = time.monotonic()
        claim = self.agent.claim(self.RESOURCES, next_one)
        print('# the next guest waited %.0f ms' % ((time.monotonic() - began) * 1000))
        self.assertIsNone(self.claim_of(first['consumer']))
        self.assertIn('it has no allocations in Placement', self.end_reason(first))
        self.assertEqual({one['id'] for one in self.agent.claims()}, {claim['id'], *(other['id'] for other in others)})

    def test_the_next_guest_gets_the_room_of_one_that_is_gone(self):
        self.succeed(confirm=True)

    def test_the_same_of_one_that_was_never_confirmed(self):
        self.succeed(confirm=False)

    def test_claim_without_allocations_stays_while_its_guest_runs(self):
        held, first, _ = self.fill()
        answer = self.placement.get('/resource_providers/%s/inventories' % self.gpu)
        self.assertEqual(answer['inventories']['VGPU']['total'], self.n_vgpus)
        # Placement has no allocation of the guest, but it runs. Another consumer has an allocation in its place.
        self.placement.delete(first['consumer'])
        next_one = str(uuid.uuid4())
        self.place(next_one, held)
        self.agent.claim(self.RESOURCES, next_one, code=1)
        self.assertEqual(self.claim_of(first['consumer'])['id'], first['id'])

    def test_it_ends_at_once_when_both_are_known(self):
        _, first, others = self.fill()
        self.placement.delete(first['consumer'])
        self.libvirtd.delete_guest('first')
        self.agent.ctl('sync')
        self.assertIsNone(self.claim_of(first['consumer']))
        self.assertEqual(len(self.agent.claims()), len(others))

    def test_a_quiet_cycle_asks_about_nobody(self):
        self.fill()
        self.agent.ctl('sync')
        mark = self.placement.mark()
        self.agent.ctl('sync')
        self.assertEqual(len(self.placement.requests_since(mark)), 1)


class TestGuestThatGoes(LifeCase):
    """A guest that runs, or that fails to start. The names are those of the facts (F8)."""

    options = TestFullHost.options
    HELD, RESOURCES = {'VCPU': 1, 'MEMORY_MB': 32}, 'VCPU=1,MEMORY_MB=32'

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.uuids['another-host'] = cls.other = cls.placement.make_provider('another-host', {'VCPU': 8})

    def setUp(self):
        super().setUp()
        self.guest = str(uuid.uuid4())

    def claim(self, resources=RESOURCES):
        return self.agent.claim(resources, self.guest)

    def start_guest(self, claim):
        """Starts the guest and confirms its claim. Claim, guest and Placement then agree."""
        self.libvirtd.start_guest('guest', uuid=self.guest)
        self.agent.ctl('confirm', claim['id'])
        self.agent.ctl('sync')
        self.assertEqual([(one['id'], one['state']) for one in self.agent.claims(self.guest)], [(claim['id'], 'confirmed')])
        self.assertEqual(self.agent.ctl_json('audit')['findings'], [])

    def wait_held(self, held):
        wait_until(lambda: self.held(self.guest) == held, 30, 'Placement to have %s' % held)

    def test_placed_here_anew_on_another_gpu(self):
        """A migration was reverted and began again. The first claim still exists."""
        last = self.uuids[GPU_B]
        self.place(self.guest, {self.root: self.HELD, self.gpu: {'VGPU': 1}})
        before = self.claim(self.RESOURCES + ',VGPU=1')
        self.assertEqual(self.claim(self.RESOURCES + ',VGPU=1')['id'], before['id'])
        self.place(self.guest, {self.root: self.HELD, last: {'VGPU': 1}})
        claim = self.claim(self.RESOURCES + ',VGPU=1')
        self.assertEqual([device['provider'] for device in claim['devices']], [last])
        self.assertEqual([one['id'] for one in self.agent.claims(self.guest)], [claim['id']])

    def delete_while_the_agent_is_down(self):
        """Deletes a guest while the agent is stopped. The agent wrote its allocation, and the consumer has another one on another host."""
        elsewhere = {self.other: {'VCPU': 2}}
        self.place(self.guest, elsewhere)
        claim = self.claim(self.RESOURCES + ',VGPU=1')
        self.start_guest(claim)
        self.addCleanup(self.agent.restart, 'synced')
        self.addCleanup(self.agent.configure, self.options)
        self.agent.stop()
        self.libvirtd.delete_guest('guest')
        self.agent.configure({'DEFAULT': {'claim_expiry_time': 1}})
        self.assertEqual(len(self.held(self.guest)), 3)
        return claim, elsewhere

    def orphaned(self):
        """Runs a cycle, and returns whether the consumer has no claim any more."""
        self.agent.ctl('sync', check=False)
        return self.agent.claims(self.guest) == []

    def test_1679750_deleted_while_the_agent_is_down(self):
        claim, elsewhere = self.delete_while_the_agent_is_down()
        self.agent.start()
        wait_until(self.orphaned, 30, 'the end of the claim')
        self.wait_held(elsewhere)
        self.assertEqual(self.end_reason(claim), 'orphan: its guest is gone')

    def test_1679750_deleted_while_agent_and_placement_are_down(self):
        _, elsewhere = self.delete_while_the_agent_is_down()
        with self.proxy.fault(faults.Cut()):
            self.agent.start()
            wait_until(self.orphaned, 30, 'the end of the claim')
            self.assertEqual(len(self.held(self.guest)), 3)
        self.agent.ctl('sync')
        self.wait_held(elsewhere)

    def test_1862633_an_unshelve_that_fails(self):
        """The guest comes to this host and fails to start. No allocation stays, and the guest can come again."""
        for placed in (True, False):
            if placed:
                self.place(self.guest, {self.root: self.HELD})
            claim = self.claim()
            # There is no hardware behind the mdev.
            with self.assertRaises(EnvError):
                self.libvirtd.start_guest('guest', uuid=self.guest, devices=[DEMO_MDEV])
            self.libvirtd.virsh('undefine', 'guest')
            self.agent.ctl('release', claim['id'], '--allocations', '--reason', 'unshelve failed')
            self.wait_held({})
            self.agent.ctl('sync')
            self.assertEqual(self.agent.claims(self.guest), [])
        self.start_guest(self.claim())
        self.assertEqual(self.held(self.guest), {self.root: self.HELD})


class TestAdoption(LifeCase):
    """The cells are providers, and a scheduler allocated VCPU of one and MEMORY_MB of another."""

    options = {'DEFAULT': {'update_resources_interval': 3600}, 'compute': {'numa_in_placement': 'true'},
               'libvirt': {'virt_type': 'qemu'}}

    def setUp(self):
        super().setUp()
        self.placed = {self.uuids[CELL % 2]: {'VCPU': 1}, self.uuids[CELL % 1]: {'MEMORY_MB': 32},
                       self.root: {'DISK_GB': 3}}

    def holding(self, consumer):
        claim = self.claim_of(consumer)
        return claim and {part['provider']: part['resources'] for part in claim['allocations']}

    def assert_as_placed(self, consumer):
        self.assertEqual(self.holding(consumer), self.placed)
        self.assertEqual(self.agent.ctl_json('audit')['findings'], [])
        self.assertEqual(self.held(consumer), self.placed)

    def start_placed(self, name):
        consumer = str(uuid.uuid4())
        self.place(consumer, self.placed)
        return self.libvirtd.start_guest(name, uuid=consumer)

    def test_a_guest_that_is_met_is_claimed_as_it_was_placed(self):
        mark = self.placement.mark()
        consumer = self.start_placed('met')
        self.agent.ctl('sync')
        self.assertEqual(self.holding(consumer), self.placed)
        reads = [path for method, path, *_ in self.placement.requests_since(mark)
                 if (method, path) == ('GET', '/allocations/' + consumer)]
        self.assertEqual(len(reads), 1)
        self.assert_as_placed(consumer)

    def test_the_same_when_placement_is_away_first(self):
        with self.proxy.fault(faults.Cut()):
            consumer = self.start_placed('away')
            self.agent.ctl('sync', check=False)
            claim = self.claim_of(consumer)
            self.assertEqual(claim['state'], 'confirmed')
            # After a restart the agent still knows that it must read Placement.
            self.agent.stop()
            self.agent.start()
            self.agent.ctl('sync', check=False)
        self.agent.ctl('sync')
        self.assertEqual(self.claim_of(consumer)['id'], claim['id'])
        self.assert_as_placed(consumer)

    def test_the_same_at_a_first_start(self):
        self.agent.stop()
        self.agent.lose_claims()
        consumers = [self.start_placed('guest%d' % i) for i in range(3)]
        self.agent.start('synced')
        self.agent.ctl('sync')
        for consumer in consumers:
            self.assert_as_placed(consumer)
