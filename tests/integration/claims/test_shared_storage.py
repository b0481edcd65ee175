# SPDX-License-Identifier: LGPL-2.1-or-later
"""A sharing provider with DISK_GB in an aggregate of the host (specification 1): the providers that offer disk space, and the
claims that use it.

Placement is real, and the static driver reads the host.
"""

import uuid

from tests.env import faults
from tests.env.agent import Agent
from tests.env.case import EnvCase
from tests.env.hosts import recorded_cells, recorded_host
from tests.env.scratch import wait_until

SHARES = 'MISC_SHARES_VIA_AGGREGATE'
NO_TIMER = {'update_resources_interval': 3600}


class SharedStorageCase(EnvCase):
    def start_agent(self, option=None, nova=None):
        self.agent = Agent(self.scratch, placement=self.placement, bus=self.bus,
                           host=recorded_host('h', cells=recorded_cells(1)),
                           options={'DEFAULT': NO_TIMER,
                                    **({'compute': {'report_local_disk': option}} if option else {}),
                                    **({'agent': {'nova': nova}} if nova else {})})
        self.agent.start('left-to-nova' if nova else 'synced')
        self.root = self.agent.root()
        return self.agent

    def make_pool(self, total=1000):
        """Creates a sharing provider in an aggregate of the host, and runs a cycle."""
        self.aggregate = str(uuid.uuid4())
        self.pool = self.placement.make_provider('nfs', {'DISK_GB': total}, traits=[SHARES])
        for provider in (self.pool, self.root):
            self.placement.set_part(provider, 'aggregates', [self.aggregate])
        self.agent.ctl('sync')

    def local(self):
        """Returns the host's own inventory of DISK_GB, or None."""
        return self.placement.tree(self.root)[self.root]['inventories'].get('DISK_GB')

    def offers(self):
        """Returns the providers with which Placement offers DISK_GB to a guest of this host."""
        found = self.placement.get('/allocation_candidates?resources=VCPU:1,DISK_GB:10')
        return {name for request in found['allocation_requests'] for name in ('pool', 'host')
                if 'DISK_GB' in request['allocations'].get({'pool': self.pool, 'host': self.root}[name],
                                                           {'resources': {}})['resources']}

    def disk(self):
        return self.agent.status()['local_disk']

    def storage(self):
        """Returns the texts of the check "storage" of doctor."""
        return [f['text'] for f in self.agent.ctl_json('doctor', check=False)['findings'] if f['check'] == 'storage']


class TestInventory(SharedStorageCase):
    def test_local_disk_is_left_out_beside_a_sharing_provider(self):
        self.start_agent()
        self.assertEqual(self.disk(), '')
        self.make_pool()
        self.assertIsNone(self.local())
        self.assertEqual(self.offers(), {'pool'})
        self.assertEqual(self.disk(), 'Local DISK_GB is not reported: provider nfs shares DISK_GB')
        self.assertEqual(self.storage(), [self.disk()])
        self.assertIn(self.disk() + '. No consumer has an allocation of local DISK_GB.', self.agent.log())
        self.assertEqual(self.agent.status()['state'], 'ok')
        self.assertEqual(self.agent.ctl_json('tree')['shares'], ['nfs'])
        mark = self.placement.mark()
        self.agent.ctl('sync')
        self.assertEqual(self.placement.writes_since(mark), [])
        self.assertEqual(len(self.placement.requests_since(mark)), 2)

    def test_a_start_does_not_report_local_disk_again(self):
        self.start_agent()
        self.make_pool()
        mark = self.placement.mark()
        self.agent.restart('synced')
        self.assertEqual(self.placement.writes_since(mark), [])
        self.assertIsNone(self.local())

    def test_a_start_that_cannot_read_the_pool_changes_nothing(self):
        """Placement answers for the tree, but not for its sharing providers. They are unknown then, not absent."""
        self.start_agent()
        self.make_pool()
        self.agent.configure({'placement': {'endpoint_override': self.proxy.endpoint}})
        for path, loses in (('required=MISC_SHARES', False), (self.pool + '/inventories', False), ('required=MISC_SHARES', True)):
            with self.subTest(path=path, loses=loses):
                self.agent.stop()
                if loses:
                    self.agent.lose_claims()
                mark = self.placement.mark()
                with self.proxy.fault(faults.Answer(503, path=path)) as fault:
                    self.agent.start('synced')
                    self.assertGreater(fault.hits, 0)
                    self.assertIn('Local DISK_GB is not reported', self.disk())
                self.agent.ctl('sync')
                self.assertEqual(self.placement.writes_since(mark), [])
                self.assertEqual(self.disk(), 'Local DISK_GB is not reported: provider nfs shares DISK_GB')
                self.assertIsNone(self.local())
        self.assertNotIn('is reported again', self.agent.log())

    def test_local_disk_comes_back_without_the_sharing_provider(self):
        def lose_trait():
            self.placement.set_part(self.pool, 'traits', [])

        def lose_inventory():
            self.placement.set_part(self.pool, 'inventories', {})

        def lose_aggregate():
            self.placement.set_part(self.root, 'aggregates', [])

        def lose_provider():
            self.placement.api('DELETE', '/resource_providers/' + self.pool)

        for lose in (lose_trait, lose_inventory, lose_aggregate, lose_provider):
            with self.subTest(lose.__name__):
                if lose is lose_trait:
                    self.start_agent()
                    before = self.local()
                    self.make_pool()
                else:
                    self.placement.set_part(self.pool, 'inventories', {'DISK_GB': {'total': 1000}})
                    self.placement.set_part(self.pool, 'traits', [SHARES])
                    self.placement.set_part(self.root, 'aggregates', [self.aggregate])
                    self.agent.ctl('sync')
                self.assertIsNone(self.local())
                lose()
                self.agent.ctl('sync')
                self.assertEqual(self.local(), before)
                self.assertEqual(self.disk(), '')
        self.assertIn('Local DISK_GB is reported again: no sharing provider has DISK_GB.', self.agent.log())

    def test_a_pool_that_is_full_or_reserved_still_counts(self):
        self.start_agent()
        self.make_pool(10)
        self.placement.place(None, {self.pool: {'DISK_GB': 10}})
        self.agent.ctl('sync', '--full')
        self.assertIsNone(self.local())
        self.placement.edit(self.pool, 'inventories', lambda all_: all_['DISK_GB'].update(reserved=10))
        self.agent.ctl('sync', '--full')
        self.assertIsNone(self.local())

    def test_a_sharing_provider_of_another_class_changes_nothing(self):
        self.start_agent()
        before = self.local()
        self.make_pool()
        self.placement.set_part(self.pool, 'inventories', {'IPV4_ADDRESS': {'total': 8}})
        self.agent.ctl('sync')
        self.assertEqual(self.local(), before)

    def test_allocated_local_disk_is_withheld_until_the_last_allocation_is_gone(self):
        self.start_agent()
        guests = [self.placement.place(None, {self.root: {'VCPU': 1, 'DISK_GB': 5}}) for _ in range(2)]
        self.make_pool()
        self.assertEqual(self.local()['reserved'], self.local()['total'])
        self.assertEqual(self.offers(), {'pool'})
        self.assertEqual(self.disk(), 'Local DISK_GB is withheld: provider nfs shares DISK_GB; 10 of it is still allocated')
        self.assertIn('Local DISK_GB is withheld', self.agent.log())
        mark = self.placement.mark()
        self.agent.ctl('sync')
        self.assertEqual(self.placement.writes_since(mark), [])
        self.placement.delete(guests[0])
        self.agent.ctl('sync')
        self.assertEqual(self.local()['reserved'], self.local()['total'])
        self.placement.delete(guests[1])
        mark = self.placement.mark()
        self.agent.ctl('sync')
        self.assertIsNone(self.local())
        self.assertEqual([item[2] for item in self.placement.writes_since(mark)], [200])

    def test_withheld_local_disk_is_offered_again_without_the_pool(self):
        self.start_agent()
        before = self.local()
        self.placement.place(None, {self.root: {'DISK_GB': 5}})
        self.make_pool()
        self.assertEqual(self.local()['reserved'], self.local()['total'])
        self.agent.restart('synced')
        self.assertEqual(self.local()['reserved'], self.local()['total'])
        self.placement.set_part(self.pool, 'traits', [])
        self.agent.ctl('sync')
        self.assertEqual(self.local(), before)

    def test_the_options_no_and_yes(self):
        self.start_agent('yes')
        self.make_pool()
        self.assertEqual(self.offers(), {'pool', 'host'})
        self.agent.stop()
        self.agent.configure({'compute': {'report_local_disk': 'no'}})
        self.agent.start('synced')
        self.assertIsNone(self.local())
        self.placement.set_part(self.root, 'aggregates', [])
        self.agent.ctl('sync')
        self.assertIsNone(self.local())
        self.assertEqual(self.disk(), 'Local DISK_GB is not reported: report_local_disk is no')

    def test_no_withholds_what_is_allocated(self):
        self.start_agent('yes')
        guest = self.placement.place(None, {self.root: {'DISK_GB': 5}})
        self.agent.stop()
        self.agent.configure({'compute': {'report_local_disk': 'no'}})
        self.agent.start('synced')
        self.assertEqual(self.local()['reserved'], self.local()['total'])
        self.placement.delete(guest)
        self.agent.ctl('sync')
        self.assertIsNone(self.local())

    def test_an_option_of_another_word_is_refused(self):
        self.start_agent()
        self.agent.configure({'compute': {'report_local_disk': 'never'}})
        done = self.agent.ctl('doctor', '--config-only', '--config', self.agent.config, code=1)
        self.assertIn('auto, yes or no', done.stdout)

    def test_beside_nova_compute_its_inventory_stays(self):
        self.root = self.placement.make_provider('h', {'VCPU': 4, 'MEMORY_MB': 1024, 'DISK_GB': 50})
        aggregate = str(uuid.uuid4())
        pool = self.placement.make_provider('nfs', {'DISK_GB': 1000}, traits=[SHARES])
        for provider in (pool, self.root):
            self.placement.set_part(provider, 'aggregates', [aggregate])
        agent = Agent(self.scratch, placement=self.placement, bus=self.bus,
                      host=recorded_host('h', cells=recorded_cells(1)),
                      options={'DEFAULT': NO_TIMER, 'agent': {'nova': 'beside'}})
        (agent.state / 'compute_id').write_text(self.root + '\n')
        agent.start('left-to-nova')
        agent.ctl('sync')
        self.assertEqual(agent.status()['local_disk'], '')
        self.assertEqual(self.placement.tree(self.root)[self.root]['inventories']['DISK_GB']['total'], 50)
        self.assertNotIn('DISK_GB', [word for step in agent.ctl_json('plan') for word in step['summary'].split()
                                     if 'no longer' in step['summary']])


class TestClaims(SharedStorageCase):

    def held(self, consumer):
        names = {self.root: 'host', self.pool: 'pool'}
        return {names[provider]: amounts for provider, amounts in self.placement.held(consumer).items()}

    def wait_held(self, consumer, expected):
        wait_until(lambda: self.held(consumer) == expected, 10, 'the allocations %s' % expected)

    def test_a_claim_takes_the_pool_and_gives_it_back(self):
        self.start_agent()
        self.make_pool()
        consumer = str(uuid.uuid4())
        claim = self.agent.claim('VCPU=1,DISK_GB=10', consumer)
        self.assertEqual(self.held(consumer), {'host': {'VCPU': 1}, 'pool': {'DISK_GB': 10}})
        self.assertEqual(self.agent.problems(), [])
        self.agent.ctl('sync')
        self.agent.ctl('audit')
        self.agent.ctl('heal')
        self.assertEqual(self.held(consumer), {'host': {'VCPU': 1}, 'pool': {'DISK_GB': 10}})
        self.agent.ctl('release', claim['id'])
        self.wait_held(consumer, {})

    def test_a_claim_of_disk_space_alone(self):
        self.start_agent()
        self.make_pool()
        consumer = str(uuid.uuid4())
        claim = self.agent.claim('DISK_GB=10', consumer)
        self.assertEqual(self.held(consumer), {'pool': {'DISK_GB': 10}})
        again = self.agent.claim('DISK_GB=10', consumer)
        self.assertEqual(again['id'], claim['id'])
        self.assertEqual(self.held(consumer), {'pool': {'DISK_GB': 10}})
        self.agent.ctl('release', claim['id'])
        self.wait_held(consumer, {})

    def test_withheld_local_disk_sends_claims_to_the_pool(self):
        self.start_agent()
        self.placement.place(None, {self.root: {'DISK_GB': 5}})
        self.make_pool()
        consumer = str(uuid.uuid4())
        self.agent.claim('VCPU=1,DISK_GB=10', consumer)
        self.assertEqual(self.held(consumer), {'host': {'VCPU': 1}, 'pool': {'DISK_GB': 10}})

    def test_local_disk_comes_first_when_both_are_offered(self):
        self.start_agent('yes')
        self.make_pool(5000)
        consumer, large = str(uuid.uuid4()), str(uuid.uuid4())
        self.agent.claim('VCPU=1,DISK_GB=10', consumer)
        self.assertEqual(self.held(consumer), {'host': {'VCPU': 1, 'DISK_GB': 10}})
        self.agent.claim('VCPU=1,DISK_GB=%d' % (self.local()['total'] - 5), large)
        self.assertEqual(set(self.held(large)), {'host', 'pool'})

    def test_a_claim_follows_what_a_scheduler_placed_on_the_pool(self):
        for option in ('auto', 'yes'):
            with self.subTest(option):
                if option == 'auto':
                    self.start_agent(option)
                    self.make_pool()
                else:
                    self.agent.stop()
                    self.agent.configure({'compute': {'report_local_disk': option}})
                    self.agent.start('synced')
                placed = {self.root: {'VCPU': 1}, self.pool: {'DISK_GB': 10}}
                consumer = self.placement.place(None, placed)
                mark = self.placement.mark()
                claim = self.agent.claim('VCPU=1,DISK_GB=10', consumer)
                self.assertEqual(self.placement.writes_since(mark), [])
                self.assertEqual({a['provider'] for a in claim['allocations']}, set(placed))
                self.agent.ctl('release', claim['id'])
                self.assertEqual(self.placement.held(consumer), placed)
                self.placement.delete(consumer)

    def test_a_pool_that_other_hosts_filled_refuses_a_claim(self):
        self.start_agent()
        self.make_pool(20)
        self.placement.place(None, {self.pool: {'DISK_GB': 15}})
        consumer = str(uuid.uuid4())
        done = self.agent.claim('VCPU=1,DISK_GB=10', consumer, code=1)
        self.assertIn('DISK_GB', done.stderr)
        self.assertEqual(self.held(consumer), {})
        self.assertEqual(self.agent.claims(), [])

    def test_explain_names_the_pool(self):
        self.start_agent()
        self.make_pool(20)
        done = self.agent.ctl('explain', '--resources', 'VCPU=1,DISK_GB=30', check=False)
        self.assertIn('nfs', done.stdout)

    def test_claims_of_local_disk_keep_it_withheld(self):
        """A claim of local disk counts like an allocation, because its write can still be pending."""
        self.start_agent()
        consumer = str(uuid.uuid4())
        claim = self.agent.claim('VCPU=1,DISK_GB=7', consumer)
        self.make_pool()
        self.assertEqual(self.local()['reserved'], self.local()['total'])
        self.agent.ctl('sync')
        self.agent.ctl('audit')
        self.assertEqual(self.held(consumer), {'host': {'VCPU': 1, 'DISK_GB': 7}})
        self.agent.ctl('release', claim['id'])
        self.wait_held(consumer, {})
        self.agent.ctl('sync')
        self.assertIsNone(self.local())

    def test_a_claim_of_the_pool_outlives_its_loss_and_a_restart(self):
        self.start_agent()
        self.make_pool()
        consumer = str(uuid.uuid4())
        claim = self.agent.claim('VCPU=1,DISK_GB=10', consumer)
        self.agent.restart('synced')
        self.assertEqual([c['id'] for c in self.agent.claims()], [claim['id']])
        self.placement.set_part(self.root, 'aggregates', [])
        self.agent.ctl('sync')
        self.assertIsNotNone(self.local())
        self.assertEqual(self.held(consumer), {'host': {'VCPU': 1}, 'pool': {'DISK_GB': 10}})
        self.assertEqual([c['id'] for c in self.agent.claims()], [claim['id']])
        other = str(uuid.uuid4())
        self.agent.claim('VCPU=1,DISK_GB=10', other)
        self.assertEqual(self.held(other), {'host': {'VCPU': 1, 'DISK_GB': 10}})
        self.agent.ctl('release', claim['id'])
        self.wait_held(consumer, {})

    def test_a_claim_without_placement_takes_the_pool_and_is_written_later(self):
        self.start_agent()
        self.make_pool()
        self.placement.stop()
        self.agent.restart()
        consumer = str(uuid.uuid4())
        self.agent.claim('VCPU=1,DISK_GB=10', consumer)
        self.assertEqual([p['name'] for p in self.agent.ctl_json('tree')['providers']], ['h'])
        self.placement.start()
        self.agent.ctl('sync')
        self.wait_held(consumer, {'host': {'VCPU': 1}, 'pool': {'DISK_GB': 10}})
        self.assertIsNone(self.local())
