# SPDX-License-Identifier: LGPL-2.1-or-later
"""Claims with a real Placement: placed by a scheduler or by the agent, moved and released, also with faults."""

import contextlib
import json
import uuid

from tests.env import faults
from tests.env.agent import Agent
from tests.env.bus import Bus
from tests.env.hosts import recorded_host
from tests.env.scratch import wait_until
from tests.integration.claims.placement_case import PlacementCase

PCI = [{'name': 'pci_0000_%d1_00_0' % n, 'address': '0000:%d1:00.0' % n} for n in (4, 8)]


class PlacementClaimCase(PlacementCase):
    """One Placement, one bus and one agent of a static host for each class. Each test ends without claims."""

    mode = 'auto'

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.bus = Bus(cls.scratch).start()
        cls.agent = cls.make_agent('one')
        cls.agent.start('synced')
        cls.root = cls.agent.root()
        cls.add_nics()

    @classmethod
    def make_agent(cls, name, **kwargs):
        return Agent(cls.scratch, cls.proxy, bus=kwargs.pop('bus', cls.bus), host=recorded_host(name), options={
            'DEFAULT': {'update_resources_interval': 3600}, 'agent': {'claim_mode': cls.mode, **kwargs}})

    @classmethod
    def add_nics(cls):
        """Creates two providers below the host, as Neutron does, and another host."""
        cls.api('PUT', '/resource_classes/CUSTOM_BW')
        cls.nics = [cls.placement.make_provider('one_eth%d' % n, {'CUSTOM_BW': 1000}, cls.root) for n in range(2)]
        cls.other = cls.placement.make_provider('another-host', {'VCPU': 64})
        cls.agent.ctl('sync')

    def setUp(self):
        self.addCleanup(self.clean)

    def clean(self):
        self.proxy.clear()
        if not self.agent.status():
            self.agent.start('synced')
        self.agent.release_all()
        self.agent.ctl('sync')
        self.delete_consumers(self.root, *self.nics, self.other)

    def claim(self, resources, consumer, *more, agent=None, check=True):
        return (agent or self.agent).claim(resources, consumer, *more, check=check)

    def refused(self, resources, consumer, words, *more, agent=None, code=1):
        done = self.claim(resources, consumer, *more, agent=agent, check=False)
        self.assertEqual(done.returncode, code, done.stdout)
        self.assertIn(words, done.stderr)

    def requests(self, mark):
        return [request[:2] for request in self.placement.requests_since(mark)]

    def call(self, method, signature, *arguments, agent=None):
        return (agent or self.agent).bus.call_agent(method, signature, *arguments)

    def move(self, source, target, agent=None):
        return (agent or self.agent).ctl_json('move', source, target, '--quiet')['id']

    def assert_nothing_left(self, consumer):
        self.assertEqual(self.held(consumer), {})
        self.assertEqual(self.agent.claims(consumer), [])


class TestClaims(PlacementClaimCase):
    def test_by_a_scheduler_is_one_read_and_no_write(self):
        consumer = str(uuid.uuid4())
        self.place(consumer, {self.root: {'VCPU': 2}, self.nics[1]: {'CUSTOM_BW': 100},
                              self.other: {'VCPU': 2}})
        mark = self.placement.mark()
        claim = self.claim('VCPU=2', consumer, '--group', '_P:CUSTOM_BW=100')
        self.assertEqual(self.requests(mark), [('GET', '/allocations/' + consumer)])
        self.assertEqual({item['provider'] for item in claim['allocations']},
                         {self.root, self.nics[1]})
        # The second call reads again, because the scheduler can have placed the consumer again.
        mark = self.placement.mark()
        self.assertEqual(self.claim('VCPU=2', consumer, '--group', '_P:CUSTOM_BW=100')['id'],
                         claim['id'])
        self.assertEqual(self.requests(mark), [('GET', '/allocations/' + consumer)])
        # The agent does not remove allocations that a scheduler wrote.
        self.agent.ctl('release', claim['id'])
        self.agent.ctl('sync')
        self.assertIn(self.root, self.held(consumer))

    def test_release_with_allocations_removes_this_hosts_share_alone(self):
        consumer = str(uuid.uuid4())
        self.place(consumer, {self.root: {'VCPU': 2}, self.other: {'VCPU': 2}})
        claim = self.claim('VCPU=2', consumer)
        self.agent.ctl('release', claim['id'], '--allocations', '--reason', 'gone')
        wait_until(lambda: self.held(consumer) == {self.other: {'VCPU': 2}}, 20, 'the share')

    def test_an_allocation_that_differs_from_the_request_is_refused(self):
        consumer = str(uuid.uuid4())
        self.place(consumer, {self.root: {'VCPU': 2}})
        self.refused('VCPU=3', consumer, 'has 2 of VCPU allocated here, but the request asks for 3')
        self.assertEqual(self.agent.claims(), [])
        self.assertEqual(self.held(consumer), {self.root: {'VCPU': 2}})

    def test_by_the_agent(self):
        consumer = str(uuid.uuid4())
        claim = self.claim('VCPU=2,MEMORY_MB=64', consumer, '--group', '_A:CUSTOM_BW=600',
                           '--group', '_B:CUSTOM_BW=600', '--isolate')
        held = self.held(consumer)
        self.assertEqual(held[self.root], {'VCPU': 2, 'MEMORY_MB': 64})
        self.assertEqual({nic: held[nic] for nic in self.nics},
                         {nic: {'CUSTOM_BW': 600} for nic in self.nics})
        stored = self.api('GET', '/allocations/' + consumer)
        self.assertEqual(stored['consumer_type'], 'INSTANCE')
        self.assertEqual(claim['allocations'], self.agent.claims()[0]['allocations'])
        self.agent.ctl('confirm', claim['id'])
        self.agent.ctl('release', claim['id'])
        wait_until(lambda: self.held(consumer) == {}, 20, 'the removal')

    def test_beside_what_is_held_elsewhere(self):
        # In an evacuation the agent must not change the allocation of the dead host.
        consumer = str(uuid.uuid4())
        self.place(consumer, {self.other: {'VCPU': 2}})
        claim = self.claim('VCPU=2', consumer)
        self.assertEqual(self.held(consumer), {self.other: {'VCPU': 2}, self.root: {'VCPU': 2}})
        self.agent.ctl('release', claim['id'])
        wait_until(lambda: self.held(consumer) == {self.other: {'VCPU': 2}}, 20, 'the removal')

    def test_another_writer_takes_the_capacity_first(self):
        """Another consumer gets the last unit between the read and the write. Then there is none left."""
        thief, consumer = str(uuid.uuid4()), str(uuid.uuid4())
        with self.proxy.held(lambda: self.refused('CUSTOM_BW=1000', consumer, 'other consumers have allocations of the free resources'),
                             method='PUT', path='^/allocations/' + consumer) as claiming:
            self.place(thief, {self.nics[0]: {'CUSTOM_BW': 1000}, self.nics[1]: {'CUSTOM_BW': 1000}})
        claiming.result()
        self.assert_nothing_left(consumer)

    def test_conflicts_are_tried_again(self):
        consumer = str(uuid.uuid4())
        fault = faults.conflict(method='PUT', path='^/allocations/' + consumer, times=2)
        self.proxy.add(fault)
        self.claim('VCPU=1', consumer)
        self.assertEqual(fault.hits, 2)
        self.assertEqual(self.held(consumer), {self.root: {'VCPU': 1}})

    def test_placement_is_away(self):
        """In mode "auto" the agent grants the claim from its own knowledge and writes it later."""
        consumer = str(uuid.uuid4())
        with self.proxy.fault(faults.server_error(503)):
            self.claim('VCPU=1', consumer)
        self.assertEqual(self.held(consumer), {})
        self.agent.ctl('sync')
        wait_until(lambda: self.held(consumer) == {self.root: {'VCPU': 1}}, 20, 'the pending write')

    def owe(self):
        """Returns the consumer of a claim whose allocation is not written yet."""
        consumer = str(uuid.uuid4())
        with self.proxy.fault(faults.Cut()):
            self.claim('VCPU=2', consumer)
        return consumer

    def test_a_write_that_arrived_without_an_answer_is_ours(self):
        consumer = self.owe()
        self.proxy.add(faults.Cut('after', method='PUT', path='^/allocations/', times=1))
        self.agent.ctl('sync', check=False)
        wait_until(lambda: self.held(consumer), 20, 'the pending write')
        self.proxy.clear()
        self.agent.ctl('sync')
        self.agent.ctl('release', self.agent.claims()[0]['id'])
        wait_until(lambda: not self.held(consumer), 20, 'the removal')

    def test_a_write_that_arrived_twice_is_ours(self):
        consumer = str(uuid.uuid4())
        self.agent.ctl('sync')
        fault = faults.Cut('after', method='PUT', path='^/allocations/', times=1)
        self.proxy.add(fault)
        self.claim('VCPU=2', consumer)
        self.assertEqual(fault.hits, 1)
        self.assertEqual(self.held(consumer), {self.root: {'VCPU': 2}})
        self.agent.ctl('release', self.agent.claims()[0]['id'])
        wait_until(lambda: not self.held(consumer), 20, 'the removal')

    def test_a_claim_that_ends_while_it_is_written(self):
        consumer = self.owe()
        hang = faults.Hang('after', method='PUT', path='^/allocations/', times=1)
        self.proxy.add(hang)
        self.agent.ctl('sync')
        wait_until(lambda: self.held(consumer), 20, 'the pending write')
        self.agent.ctl('release', self.agent.claims()[0]['id'])
        self.assertTrue(self.held(consumer))
        hang.release()
        wait_until(lambda: not self.held(consumer), 20, 'the removal')

    def test_1679750_delete_while_placement_is_down(self):
        consumer = str(uuid.uuid4())
        claim = self.claim('VCPU=1', consumer)
        with self.proxy.fault(faults.Cut()):
            self.agent.ctl('release', claim['id'])
            self.agent.ctl('sync', check=False)
            self.assertNotEqual(self.held(consumer), {})
            # The pending removal is stored in the database.
            self.agent.kill()
            self.agent.start()
        self.agent.ctl('sync')
        wait_until(lambda: self.held(consumer) == {}, 20, 'the removal')

    def test_1679750_delete_while_the_agent_is_down(self):
        """The layer above removed the allocations itself, so the release has nothing left to remove."""
        consumer = str(uuid.uuid4())
        claim = self.claim('VCPU=1', consumer)
        self.agent.kill()
        self.placement.request('DELETE', '/allocations/' + consumer, record=False)
        self.agent.start('synced')
        self.agent.ctl('release', claim['id'])
        self.agent.ctl('sync')
        self.assert_nothing_left(consumer)

    def test_1848343_nothing_is_left_of_a_release_that_raced(self):
        """The consumer changed between the read and the write of the removal, so the agent reads it again."""
        consumer = str(uuid.uuid4())
        claim = self.claim('VCPU=1', consumer)
        fault = faults.conflict(method='PUT', path='^/allocations/' + consumer, times=2)
        self.proxy.add(fault)
        self.agent.ctl('release', claim['id'])
        wait_until(lambda: self.held(consumer) == {}, 20, 'the removal')
        self.assertEqual(fault.hits, 2)

    def release_in_trouble(self, claim, consumer, rest, fault, *options):
        """Releases a claim with a fault at its n-th request. Returns False if the removal ended before the fault."""
        before = self.agent.status()['n_pending_removals']  # including those of other tests
        self.proxy.add(fault)
        self.agent.ctl('release', claim, *options)
        wait_until(lambda: fault.hits or self.held(consumer) == rest, 20, 'trouble or removal')
        self.agent.ctl('sync', check=False)
        self.assertEqual(self.held(consumer).get(self.other), rest[self.other])
        self.proxy.clear()
        self.agent.ctl('sync')
        wait_until(lambda: self.held(consumer) == rest, 20, 'the removal')
        # A removal without an answer is checked once more after the answer to "sync".
        wait_until(lambda: self.agent.status()['n_pending_removals'] <= before, 20, 'the agent to know')
        self.assertEqual(self.agent.claims(consumer), [])
        mark = self.placement.mark()
        self.agent.ctl('sync')
        self.assertFalse([path for _, path in self.requests(mark) if consumer in path])
        return fault.hits > 0

    def walk_release(self, make, *options):
        """Releases a claim with a fault at each request. make() returns the claim, its consumer, and the allocation that must stay."""
        n_requests = []
        for kind in range(len(faults.outages())):
            n, came = 0, True
            while came:
                claim, consumer, rest = make()
                # The fault matches only this consumer, because the agent still checks those of other tests.
                fault = faults.outages(path='^/allocations/' + consumer, skip=n)[kind]
                came = self.release_in_trouble(claim, consumer, rest, fault, *options)
                n += came
            n_requests.append(n)
        # Removals send two requests, a read and a write. Each of them failed once.
        self.assertEqual(n_requests, [2] * len(n_requests))

    def test_a_release_failing_at_each_request(self):
        def make():
            consumer, rest = str(uuid.uuid4()), {self.other: {'VCPU': 2}}
            self.place(consumer, rest)
            claim = self.claim('VCPU=2', consumer, '--group', '_P:CUSTOM_BW=100')
            self.assertEqual(len(self.held(consumer)), 3)
            return claim['id'], consumer, rest

        self.walk_release(make)

    def test_a_release_of_what_was_placed_failing_at_each_request(self):
        def make():
            consumer, rest = str(uuid.uuid4()), {self.other: {'VCPU': 2}}
            self.place(consumer, {self.root: {'VCPU': 2}, **rest})
            return self.claim('VCPU=2', consumer)['id'], consumer, rest

        self.walk_release(make, '--allocations')

    def test_a_consumer_that_comes_back_before_its_release_is_told(self):
        """The rest of the first claim belongs to the agent. It must not be taken for an allocation of a scheduler."""
        consumer = str(uuid.uuid4())
        claim = self.claim('VCPU=1', consumer)
        with self.proxy.fault(faults.Cut(path='^/allocations/')) as fault:
            self.agent.ctl('release', claim['id'])
            wait_until(lambda: fault.hits, 20, 'the trouble')
            self.agent.ctl('sync', check=False)
        again = self.claim('VCPU=2', consumer)
        self.assertEqual(self.held(consumer), {self.root: {'VCPU': 2}})
        self.agent.ctl('release', again['id'])
        wait_until(lambda: not self.held(consumer), 20, 'the removal')

    def test_a_next_claim_replaces_the_allocations_of_an_ended_one_after_a_failure(self):
        """One request writes the next claim in place of the ended one. It is refused once, or its answer is lost, or the agent is
        killed during it. Until it succeeds, the claim is a pending write, and its end removes its allocations."""
        troubles = {
            'refused': lambda **match: faults.Answer(409, faults.placement_error(
                409, 'Conflict', "There was a conflict when trying to complete your request.\n\n Unable to allocate inventory: Unable"
                " to create allocation for 'VCPU' on resource provider", 'placement.undefined_code'), times=1, **match),
            'conflict': lambda **match: faults.conflict(times=1, **match),
            'not received': lambda **match: faults.Cut('before', **match),
            'not answered': lambda **match: faults.Cut('after', **match),
            'killed before': lambda **match: faults.Hang('before', **match),
            'killed after': lambda **match: faults.Hang('after', **match),
        }
        for name, trouble in troubles.items():
            with self.subTest(name):
                consumer = str(uuid.uuid4())
                claim = self.claim('VCPU=2', consumer)
                with self.proxy.fault(faults.Cut()):
                    self.agent.ctl('sync', check=False)
                    self.agent.ctl('release', claim['id'])
                    again = self.claim('VCPU=4', consumer)
                self.assertEqual(self.held(consumer), {self.root: {'VCPU': 2}})
                fault = self.proxy.add(trouble(method='PUT', path='^/allocations/' + consumer))
                self.agent.ctl('sync')
                wait_until(lambda fault=fault: fault.hits, 20, 'the trouble')
                if name.startswith('killed'):
                    self.assertTrue(fault.reached.wait(20))
                    self.agent.kill()
                self.proxy.clear()
                if name.startswith('killed'):
                    self.agent.start('synced')
                self.agent.ctl('sync')
                wait_until(lambda consumer=consumer: self.held(consumer) == {self.root: {'VCPU': 4}}, 20, 'the next claim')
                wait_until(lambda: not self.agent.status()['n_pending_writes'], 20, 'the agent to know')
                self.agent.ctl('release', again['id'])
                wait_until(lambda consumer=consumer: not self.held(consumer), 20, 'the removal')

    @contextlib.contextmanager
    def release_unheard(self, resources, consumer):
        """Ends a claim whose allocation the agent wrote, while requests for allocations fail."""
        claim = self.claim(resources, consumer)
        with self.proxy.fault(faults.Cut(path='^/allocations/')):
            self.agent.ctl('release', claim['id'])
            wait_until(lambda: self.agent.status()['pending_writes_error'], 20, 'the trouble')
            yield

    def test_an_allocation_written_before_a_late_release_stays(self):
        """The agent removes the allocation late. At that time the consumer has a new one, which can have the same amounts."""
        for amounts in ({'VCPU': 1}, {'VCPU': 3}):
            consumer = str(uuid.uuid4())
            words = 'Consumer %s was placed here again' % consumer
            with self.release_unheard('VCPU=1', consumer):
                self.place(consumer, {self.root: amounts})
            self.agent.ctl('sync')
            wait_until(lambda: words in self.agent.log(), 20, 'the release')
            self.assertEqual(self.held(consumer), {self.root: amounts})
            mark = self.placement.mark()
            claim = self.claim('VCPU=%d' % amounts['VCPU'], consumer)
            self.agent.ctl('release', claim['id'])
            self.agent.ctl('sync')
            self.assertEqual(self.held(consumer), {self.root: amounts})
            self.assertEqual(self.placement.writes_since(mark), [])

    def test_an_allocation_created_again_before_a_late_release_stays(self):
        """The new allocation has the amounts and the generation of the agent's. Only the time of the last change differs (E1), if
        it is more than two minutes later."""
        share = {self.root: {'VCPU': 1}}
        for seconds, left in ((3600, share), (0, {})):
            with self.subTest(seconds):
                consumer = str(uuid.uuid4())
                words = 'Consumer %s was placed here again' % consumer
                with self.release_unheard('VCPU=1', consumer):
                    generation = self.generation(consumer)
                    self.placement.request('DELETE', '/allocations/' + consumer, record=False)
                    self.place(consumer, share)
                    self.placement.written_later(consumer, seconds)
                    self.assertEqual((self.held(consumer), self.generation(consumer)), (share, generation))
                self.agent.ctl('sync')
                wait_until(lambda: words in self.agent.log() or not self.held(consumer), 20, 'the release')
                self.assertEqual(self.held(consumer), left)
                # A claim of the consumer still succeeds.
                claim = self.claim('VCPU=1', consumer)['id']
                self.assertEqual(self.held(consumer), share)
                self.agent.ctl('release', claim)
                self.agent.ctl('sync')
                wait_until(lambda: self.held(consumer) == left, 20, 'whose it is')

    def test_the_share_of_an_evacuated_consumer_goes_at_a_late_release(self):
        consumer = str(uuid.uuid4())
        with self.release_unheard('VCPU=1', consumer):
            self.place(consumer, {self.root: {'VCPU': 1}, self.other: {'VCPU': 1}})
        self.agent.ctl('sync')
        wait_until(lambda: self.held(consumer) == {self.other: {'VCPU': 1}}, 20, 'the removal')

    def test_a_claim_takes_over_what_an_earlier_one_left(self):
        consumer = str(uuid.uuid4())
        with self.release_unheard('VCPU=1', consumer):
            mark = self.placement.mark()
        again = self.claim('VCPU=1', consumer)
        self.assertEqual(len(self.placement.writes_since(mark)), 1)
        self.agent.ctl('sync')
        self.assertEqual(self.held(consumer), {self.root: {'VCPU': 1}})
        self.agent.ctl('release', again['id'])
        wait_until(lambda: not self.held(consumer), 20, 'the removal')

    def test_moved_for_a_claim_that_a_scheduler_placed_is_the_agents_to_remove(self):
        instance, migration = str(uuid.uuid4()), str(uuid.uuid4())
        self.place(instance, {self.root: {'VCPU': 1}})
        claim = self.claim('VCPU=1', instance)['id']
        self.assertEqual(self.move(instance, migration), claim)
        self.agent.ctl('release', claim)
        wait_until(lambda: not self.held(migration), 20, 'the removal')

    def test_released_while_it_changes_hands(self):
        instance, migration = str(uuid.uuid4()), str(uuid.uuid4())
        claim = self.claim('VCPU=1', instance)['id']
        with self.proxy.held(lambda: self.agent.ctl('move', instance, migration, check=False),
                             where='after', method='POST', path='^/allocations$'):
            self.agent.ctl('release', claim)
        wait_until(lambda: not self.held(migration), 20, 'the removal')
        self.assert_nothing_left(instance)

    def test_1825537_a_failed_start_leaves_nothing(self):
        """A failed finish_resize releases its claim. Afterwards the consumer claims again."""
        consumer = str(uuid.uuid4())
        for _ in range(3):
            claim = self.claim('VCPU=1', consumer)
            self.agent.ctl('release', claim['id'], '--reason', 'the guest did not start')
        wait_until(lambda: self.held(consumer) == {}, 20, 'the removal')
        self.claim('VCPU=2', consumer)
        self.assertEqual(self.held(consumer), {self.root: {'VCPU': 2}})

    def test_2025480_a_cycle_in_the_middle_changes_nothing(self):
        consumer = str(uuid.uuid4())
        with self.proxy.held(lambda: self.claim('VCPU=1', consumer), method='PUT', path='^/allocations/' + consumer) as claiming:
            self.assertEqual([c['state'] for c in self.agent.claims()], ['pending'])
            self.agent.ctl('sync')
            self.assertEqual([c['state'] for c in self.agent.claims()], ['pending'])
        claiming.result()
        self.assertEqual([c['state'] for c in self.agent.claims()], ['claimed'])
        self.assertEqual(self.held(consumer), {self.root: {'VCPU': 1}})

    def test_a_write_of_a_claim_is_no_publication(self):
        """A claim is written while a cycle reads Placement. The journal names no publication, because the tree did not change."""
        self.placement.set_part(self.nics[0], 'inventories', {'CUSTOM_BW': {'total': 1000}})  # another generation
        published = self.agent.log().count('Published ')
        with self.proxy.held(lambda: self.agent.ctl('sync'), method='GET', path='in_tree') as cycle:
            n_requests = self.agent.status()['n_requests']
            claiming = self.agent.begin('claim', '--consumer', str(uuid.uuid4()), '--resources', 'VCPU=1')
            wait_until(lambda: self.agent.status()['n_requests'] > n_requests, 4, 'the request of the claim')
        cycle.result()
        with claiming:
            self.assertEqual(claiming.wait(20), 0)
        self.assertEqual(self.agent.log().count('Published '), published)

    def test_the_caller_of_a_claim_disconnects(self):
        """The claim is still created. A caller that repeats the request gets it, and it expires as any other."""
        consumer = str(uuid.uuid4())
        hang = self.proxy.add(faults.Hang(method='PUT', path='^/allocations/', times=1))
        with self.agent.begin('claim', '--consumer', consumer, '--resources', 'VCPU=1') as process:
            self.assertTrue(hang.reached.wait(20))
            process.kill()
        hang.release()
        wait_until(lambda: [c['state'] for c in self.agent.claims()] == ['claimed'], 20, 'the claim')
        self.assertEqual(self.claim('VCPU=1', consumer)['id'], self.agent.claims()[0]['id'])
        self.assertEqual(self.held(consumer), {self.root: {'VCPU': 1}})

    def test_killed_between_write_and_answer(self):
        """The caller has no answer, so the agent rolls its write back."""
        for when in ('before', 'after'):
            consumer = str(uuid.uuid4())
            with self.proxy.held(lambda consumer=consumer: self.claim('VCPU=1', consumer, check=False),
                                 where=when, method='PUT', path='^/allocations/' + consumer) as claiming:
                self.agent.kill()
                claiming.result()
            self.agent.start('synced')
            wait_until(lambda: self.held(consumer) == {}, 20, 'the removal')
            self.assert_nothing_left(consumer)

    def test_the_agent_ends_while_claims_wait(self):
        """The callers get the end of the connection, and the next start rolls the claim back."""
        consumer = str(uuid.uuid4())
        words = ('claim', '--consumer', consumer, '--resources', 'VCPU=1')
        with self.proxy.held(lambda: self.agent.ctl(*words, check=False), method='PUT', path='^/allocations/' + consumer) as claiming, \
                self.agent.begin(*words) as process:
            self.agent.stop()
            self.assertIn('stopped during the call', claiming.result().stderr)
            self.assertNotEqual(process.wait(20), 0)
        self.agent.start('synced')
        wait_until(lambda: self.held(consumer) == {}, 20, 'the removal')
        self.assert_nothing_left(consumer)


class TestMoves(PlacementClaimCase):
    def test_revert_while_the_other_host_still_holds_its_share(self):
        instance, migration = str(uuid.uuid4()), str(uuid.uuid4())
        claim = self.claim('VCPU=1', instance)['id']
        self.move(instance, migration)
        self.place(instance, {self.other: {'VCPU': 1}})
        self.assertEqual(self.move(migration, instance), claim)
        self.assertEqual(self.held(instance), {self.root: {'VCPU': 1}, self.other: {'VCPU': 1}})

    def test_moved_by_somebody_else(self):
        instance, migration = str(uuid.uuid4()), str(uuid.uuid4())
        self.place(instance, {self.root: {'VCPU': 1}})
        claim = self.claim('VCPU=1', instance)['id']
        self.api('POST', '/allocations', {
            instance: {'allocations': {}, 'project_id': 'p', 'user_id': 'u',
                       'consumer_generation': self.generation(instance), 'consumer_type': 'INSTANCE'},
            migration: {'allocations': {self.root: {'resources': {'VCPU': 1}}}, 'project_id': 'p',
                        'user_id': 'u', 'consumer_generation': None, 'consumer_type': 'MIGRATION'}})
        mark = self.placement.mark()
        self.assertEqual(self.move(instance, migration), claim)
        self.assertEqual(self.placement.writes_since(mark), [])

    def test_a_pending_write_comes_before_a_move(self):
        """Until then the consumer has the amounts of an ended claim in Placement. They must not become the target's."""
        instance, migration = str(uuid.uuid4()), str(uuid.uuid4())
        claim = self.claim('VCPU=2', instance)
        with self.proxy.fault(faults.Cut()):
            self.agent.ctl('sync', check=False)
            self.agent.ctl('release', claim['id'])
            claim = self.claim('VCPU=4', instance)
        with self.proxy.fault(faults.Cut(method='PUT', path='^/allocations/' + instance)):
            done = self.call('MoveClaim', 'sss', instance, migration, '')
            self.assertNotEqual(done.returncode, 0)
            self.assertIn('not written yet', done.stderr)
            self.assertEqual((self.held(instance), self.held(migration)), ({self.root: {'VCPU': 2}}, {}))
        self.agent.ctl('sync')
        wait_until(lambda: self.held(instance) == {self.root: {'VCPU': 4}}, 20, 'the pending write')
        wait_until(lambda: not self.agent.status()['n_pending_writes'], 20, 'the agent to know')
        self.assertEqual(self.move(instance, migration), claim['id'])
        self.assertEqual((self.held(instance), self.held(migration)), ({}, {self.root: {'VCPU': 4}}))
        self.agent.ctl('release', claim['id'])
        wait_until(lambda: not self.held(migration), 20, 'the removal')

    def test_failing_at_each_step(self):
        """1953359: after a failure the state is that before or after the move, and none between."""
        for n in range(3):
            for when in ('before', 'after'):
                instance, migration = str(uuid.uuid4()), str(uuid.uuid4())
                claim = self.claim('VCPU=1', instance)['id']
                path = ('/' + instance, '/' + migration, '^/allocations$')[n]
                self.proxy.add(faults.Cut(when, path=path))
                done = self.call('MoveClaim', 'sss', instance, migration, '')
                self.assertNotEqual(done.returncode, 0)
                self.assertIn('connection', done.stderr)
                self.proxy.clear()
                self.agent.ctl('sync')
                self.agent.ctl('sync')
                moved = when == 'after' and n == 2
                has, hasnot = (migration, instance) if moved else (instance, migration)
                self.assertEqual((self.held(has), self.held(hasnot)), ({self.root: {'VCPU': 1}}, {}))
                self.assertEqual([(c['id'], c['consumer']) for c in self.agent.claims()], [(claim, has)])
                # The move can be repeated.
                self.assertEqual(self.move(instance, migration), claim)
                self.agent.ctl('release', claim)
                wait_until(lambda: self.held(migration) == {}, 20, 'the removal')


class TestWrite(PlacementClaimCase):
    mode = 'write'

    def test_failing_at_each_request(self):
        """After a failure the state is as before, and nothing is left after the next cycle."""
        self.place(str(uuid.uuid4()), {self.nics[0]: {'CUSTOM_BW': 1000}})
        claimed = 'VCPU=1,CUSTOM_BW=1000'
        held = {self.root: {'VCPU': 1}, self.nics[1]: {'CUSTOM_BW': 1000}}
        for method, path in (('GET', '^/allocations/'), ('PUT', '^/allocations/'), ('GET', '^/allocation_candidates')):
            for fault in faults.outages(method=method, path=path):
                consumer = str(uuid.uuid4())
                self.proxy.add(fault)
                done = self.claim(claimed, consumer, check=False)
                self.assertEqual(done.returncode, 1, (method, path, done.stdout))
                self.assertGreaterEqual(fault.hits, 1)
                self.proxy.clear()
                self.agent.ctl('sync')
                wait_until(lambda: self.held(consumer) == {}, 20, 'the removal')
                self.assert_nothing_left(consumer)
                self.claim(claimed, consumer)
                self.assertEqual(self.held(consumer), held)
                self.agent.ctl('release', self.agent.claims()[0]['id'])

    def test_nothing_while_placement_is_away(self):
        with self.proxy.fault(faults.html(503)):
            self.refused('VCPU=1', str(uuid.uuid4()), '503')
        self.assertEqual(self.agent.claims(), [])

    def test_isolate_counts_groups_without_resources_as_placement_does(self):
        self.api('PUT', '/traits/CUSTOM_NET')
        for nic in self.nics:
            self.placement.set_part(nic, 'traits', ['CUSTOM_NET'])
            self.addCleanup(self.placement.set_part, nic, 'traits', [])
        self.agent.ctl('sync')
        fits = []
        for policy in ('none', 'isolate'):
            for subtree in ('_T,_A', '_T,_A,_R', '_T,_B'):
                query = ('resources_A=CUSTOM_BW:1&required_T=CUSTOM_NET&group_policy=%s'
                         '&same_subtree=%s' % (policy, subtree))
                words = ['--resources', 'VCPU=1', '--group', '_A:CUSTOM_BW=1', '--required',
                         '_T:CUSTOM_NET', '--same-subtree', subtree]
                for suffix, asked in (('_R', 'VCPU=1'), ('_B', 'CUSTOM_BW=1')):
                    if suffix in subtree:
                        query += '&resources%s=%s' % (suffix, asked.replace('=', ':'))
                        words += ['--group', '%s:%s' % (suffix, asked)]
                found = self.api('GET', '/allocation_candidates?resources=VCPU:1&in_tree=%s&%s'
                                 % (self.root, query))['allocation_requests']
                done = self.agent.ctl('explain', *words,
                                      *(['--isolate'] if policy == 'isolate' else []), check=False)
                self.assertEqual(done.returncode == 0, bool(found),
                                 '%s, %s: %s' % (policy, subtree, done.stdout + done.stderr))
                fits.append(bool(found))
        self.assertEqual(fits, [True, True, True, False, True, False])


class TestWide(PlacementClaimCase):
    """Many groups on many equal devices. The write itself shows whether Placement has enough capacity.

    Placement lists only one candidate. The limit exists since 2025.1. The Placement of Debian 12 has no limit (facts I2).
    """

    mode = 'write'
    placement_config = '[placement]\nmax_allocation_candidates = 1\nallocation_candidates_generation_strategy = breadth-first\n'
    n_devices = 64

    @classmethod
    def add_nics(cls):
        super().add_nics()
        cls.api('PUT', '/resource_classes/CUSTOM_WIDE')
        cls.api('PUT', '/traits/CUSTOM_EVEN')
        cls.devices = [cls.placement.make_provider('one_dev%02d' % n, {'CUSTOM_WIDE': 1}, cls.root, () if n % 2 else ['CUSTOM_EVEN'])
                       for n in range(cls.n_devices)]
        cls.agent.ctl('sync')

    def clean(self):
        super().clean()
        self.delete_consumers(*self.devices)

    @staticmethod
    def groups(n, trait=None):
        return [word for i in range(n) for word in (
            '--group', '_D%02d:CUSTOM_WIDE=1' % i, *(['--required', '_D%02d:%s' % (i, trait)] if trait else []))]

    def test_a_wide_claim_is_one_read_and_one_write(self):
        earlier = '-'
        for n in (8, self.n_devices):
            with self.subTest(n):
                consumer = str(uuid.uuid4())
                mark = self.placement.mark()
                claim = self.claim('VCPU=1', consumer, *self.groups(n))
                # The removal of the earlier claim can be logged after its effect was read.
                requests = [request for request in self.requests(mark) if not request[1].endswith(earlier)]
                self.assertEqual(requests, [('GET', '/allocations/' + consumer), ('PUT', '/allocations/' + consumer)])
                earlier = consumer
                held = self.held(consumer)
                self.assertEqual(held.pop(self.root), {'VCPU': 1})
                self.assertEqual(len(held), n)
                self.assertLessEqual(held.keys(), set(self.devices))
                self.agent.ctl('release', claim['id'])
                wait_until(lambda: not self.held(consumer), 20, 'the removal')

    def test_allocations_of_other_writers_stay(self):
        """A scheduler allocated most devices, and no claim here shows that. The agent sends one rejected write, one read and one
        more write."""
        free = self.devices[5::9]
        self.place(str(uuid.uuid4()), {device: {'CUSTOM_WIDE': 1} for device in self.devices
                                       if device not in free})
        consumer = str(uuid.uuid4())
        mark = self.placement.mark()
        self.claim('VCPU=1', consumer, *self.groups(len(free)))
        self.assertEqual(set(self.held(consumer)), {self.root, *free})
        self.assertEqual([method for method, _ in self.requests(mark)], ['GET', 'PUT', 'GET', 'PUT'])
        # No device is left.
        self.refused('VCPU=1', str(uuid.uuid4()), 'other consumers have allocations of the free resources', *self.groups(1))

    def test_traits_and_isolation_hold_beside_others(self):
        even = self.devices[::2]
        self.place(str(uuid.uuid4()), {device: {'CUSTOM_WIDE': 1} for device in even[:-2]})
        consumer = str(uuid.uuid4())
        self.claim('VCPU=1', consumer, *self.groups(2, 'CUSTOM_EVEN'), '--isolate')
        self.assertEqual(set(self.held(consumer)), {self.root, *even[-2:]})

    def test_a_scheduler_that_is_faster_leaves_the_rest(self):
        """Another client takes the chosen devices between the read and the write, three times. The claim gets some of the remaining
        ones."""
        consumer, taken = str(uuid.uuid4()), []

        def steal(body):
            chosen = [provider for provider in json.loads(body)['allocations'] if provider != self.root]
            taken.extend(chosen)
            self.place(str(uuid.uuid4()), {provider: {'CUSTOM_WIDE': 1} for provider in chosen})
        self.proxy.add(faults.Meanwhile(steal, method='PUT', path='^/allocations/' + consumer, times=3))
        self.claim('VCPU=1', consumer, *self.groups(4))
        self.assertEqual(len(taken), 12)
        held = set(self.held(consumer))
        self.assertEqual((len(held), held & set(taken)), (5, set()))

    def test_a_full_provider_is_not_written(self):
        for device in self.devices:
            self.assertEqual(self.held(device), {})
        consumer = str(uuid.uuid4())
        self.claim('VCPU=1', consumer, *self.groups(self.n_devices))
        mark = self.placement.mark()
        self.refused('VCPU=1', str(uuid.uuid4()), 'CUSTOM_WIDE', *self.groups(1))
        self.assertEqual([method for method, _ in self.requests(mark)], ['GET'])


class TestVerify(PlacementClaimCase):
    mode = 'verify'

    def test_only_what_was_placed(self):
        consumer = str(uuid.uuid4())
        self.refused('VCPU=1', consumer, 'claim_mode is verify')
        self.place(consumer, {self.root: {'VCPU': 1}})
        mark = self.placement.mark()
        claim = self.claim('VCPU=1', consumer)
        self.refused('VCPU=1', str(uuid.uuid4()), 'has no allocations on this host')
        done = self.call('MoveClaim', 'sss', consumer, str(uuid.uuid4()), '')
        self.assertIn('were not moved yet', done.stderr)
        self.assertEqual(self.agent.claims()[0]['id'], claim['id'])
        self.agent.ctl('release', claim['id'])
        self.assertEqual(self.placement.writes_since(mark), [])
