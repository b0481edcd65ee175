# SPDX-License-Identifier: LGPL-2.1-or-later
"""A lost claim database is rebuilt from guests, from consumers without a guest, and from migrations.

Placement is real. The host is a recording in tests without guests, and a real libvirtd in the other tests.
"""

import json
import time
import uuid

from tests.env.agent import Agent
from tests.env.case import EnvCase
from tests.env.hosts import recorded_cells, recorded_host
from tests.env.libvirtd import guest_xml
from tests.env.scratch import wait_until
from tests.integration.claims.test_resize_here import VFS, ResizeCase

GPU, GPU_CLASS = '0000:41:00.0', 'CUSTOM_PCI_10DE_1EB8'
GROUP = ('--group', 'g:%s=1' % GPU_CLASS)
UNREAD = 'Placement has not been read since the claim database was created'


class TestConsumers(EnvCase):
    """A host with one GPU that is allocated as a whole."""

    shared = ('scratch', 'bus')

    def living(self):
        return {claim['consumer']: claim for claim in self.agent.claims()}

    def make_agent(self, placement=None, **options):
        agent = Agent(self.scratch, placement, bus=self.bus, host=recorded_host('h', cells=recorded_cells(1), devices=[
            {'name': 'pci_0000_41_00_0', 'address': GPU, 'vendor_id': 0x10de, 'product_id': 0x1eb8}]),
            options={'pci': {'report_in_placement': True, 'device_spec': json.dumps({'vendor_id': '10de'})}, **options})
        self.addCleanup(agent.stop)
        return agent

    def setUp(self):
        self.agent = self.make_agent(self.placement, DEFAULT={'cpu_allocation_ratio': 1.0, 'claim_expiry_time': 2,
                                                              'update_resources_interval': 1}).start('synced')
        self.root = self.agent.root()
        self.gpu = self.placement.tree_by_name(self.root)['h_' + GPU]['uuid']
        self.server = str(uuid.uuid4())

    def place(self, **more):
        """Writes the allocation of a server, as a scheduler does."""
        self.placement.place(self.server, {self.root: {'VCPU': 6, 'MEMORY_MB': 1024}, self.gpu: {GPU_CLASS: 1}}, **more)

    def claim_server(self, check=True):
        return self.agent.claim('VCPU=6,MEMORY_MB=1024', self.server, *GROUP, check=check)

    def claim_another(self):
        return self.agent.claim('VCPU=1', None, *GROUP, check=False)

    def start_without_claims(self, damaged=False):
        self.agent.stop()
        self.agent.lose_claims(damaged)
        self.agent.start('synced')

    def check_rebuilt(self, project='demo'):
        wait_until(lambda: self.server in self.living(), 20, 'the claim')
        claim = self.living()[self.server]
        self.assertEqual((claim['state'], claim['project']), ('claimed', project))
        self.assertEqual([device['address'] for device in claim['devices']], [GPU])
        self.assertEqual({held['name']: held['resources'] for held in claim['allocations']},
                         {'h': {'VCPU': 6, 'MEMORY_MB': 1024}, 'h_' + GPU: {GPU_CLASS: 1}})
        return claim

    def test_a_consumer_without_a_guest_gets_its_claim_again(self):
        for damaged in (False, True):
            with self.subTest(damaged=damaged):
                self.place()
                self.claim_server()
                self.start_without_claims(damaged)
                claim = self.check_rebuilt()
                self.assertIn('Consumer %s had no claim; created claim %d from its allocation in Placement'
                              % (self.server, claim['id']), self.agent.log())
                # The claim does not expire while Placement has the allocation.
                time.sleep(5)
                self.assertEqual(self.living()[self.server]['id'], claim['id'])
                self.placement.stop()
                done = self.claim_another()
                self.assertEqual(done.returncode, 1, done.stdout)
                self.placement.start()
                # It ends when Placement has no allocation of the consumer.
                self.placement.place(self.server, {})
                wait_until(lambda: not self.agent.claims(), 30, 'the end of the claim')

    def test_the_request_of_the_caller_replaces_the_claim(self):
        self.place()
        self.claim_server()
        self.start_without_claims()
        first = self.check_rebuilt()
        claim = self.claim_server()
        self.assertGreater(claim['id'], first['id'])
        self.assertEqual([(device['group'], device['address']) for device in claim['devices']], [('g', GPU)])
        self.assertEqual(list(self.living()), [self.server])
        self.assertEqual(self.claim_server()['id'], claim['id'])

    def test_a_request_that_is_refused_leaves_the_consumer_a_claim(self):
        self.place()
        self.start_without_claims()
        self.check_rebuilt()
        self.agent.claim('VCPU=5,MEMORY_MB=1024', self.server, *GROUP, code=1)
        self.check_rebuilt()

    def test_a_request_of_the_same_amounts_while_placement_is_away(self):
        self.place()
        self.start_without_claims()
        first = self.check_rebuilt()
        self.placement.stop()
        self.assertEqual(self.claim_server()['id'], first['id'])
        self.agent.claim('VCPU=1', self.server, code=1)

    def test_an_allocation_that_was_left_behind_is_still_found(self):
        self.place(project='gone')
        self.start_without_claims()
        claim = self.check_rebuilt('gone')
        finding, = wait_until(
            lambda: self.agent.ctl_json('audit', check=False)['findings'], 30, 'a finding')
        self.assertEqual((finding['type'], finding['claim'], finding['consumer']),
                         ('leaked', claim['id'], self.server))

    def test_devices_are_refused_until_placement_was_read(self):
        self.place()
        self.claim_server()
        self.agent.stop()
        self.placement.stop()
        self.agent.lose_claims()
        # The second start finds the new database and still rejects claims, because Placement was not read.
        for _ in range(2):
            self.agent.start()
            wait_until(lambda: any(UNREAD in text for text in self.agent.problems()), 30, 'the problem')
            self.assertIn(UNREAD, self.agent.log())
            self.assertNotIn('disagree: ' + UNREAD, self.agent.log())
            done = self.claim_another()
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn(UNREAD, done.stderr)
            done = self.agent.ctl('explain', '--resources', 'VCPU=1', *GROUP, code=1)
            self.assertIn(UNREAD, done.stdout)
            self.agent.kill()
        self.agent.start()
        plain = self.agent.claim('VCPU=1')
        self.agent.ctl('release', plain['id'])
        self.placement.start()
        self.agent.wait_state('synced')
        self.check_rebuilt()
        self.assertFalse([text for text in self.agent.problems() if UNREAD in text])

    def test_a_new_host_whose_placement_answers_refuses_nothing(self):
        self.assertEqual(self.agent.problems(), [])
        claim = self.claim_another()
        self.assertEqual(claim.returncode, 0, claim.stderr)
        self.assertNotIn(UNREAD, self.agent.log())

    def test_a_host_without_placement_refuses_nothing(self):
        alone = self.make_agent()
        self.agent.stop()
        for _ in range(2):
            alone.start('standalone')
            claim = alone.claim('VCPU=1', None, *GROUP)
            self.assertEqual(alone.problems(), [])
            alone.ctl('release', claim['id'])
            alone.stop()
            alone.lose_claims()


class TestGuestsAndMigrations(ResizeCase):
    """A host with virtual functions and a real libvirtd."""

    def setUp(self):
        super().setUp()
        self.held = self.amounts(1, 32, 1)
        self.other = {self.placement.make_provider('other-host', {'VCPU': 64, 'MEMORY_MB': 65536}): {
            'VCPU': 1, 'MEMORY_MB': 32}}

    def start_without_claims(self):
        self.agent.stop()
        self.agent.lose_claims()
        self.agent.start('synced')
        self.agent.ctl('sync')

    def devices(self):
        return {claim['consumer']: [device['address'] for device in claim['devices']] for claim in self.agent.claims()}

    def test_a_guest_that_left_and_its_migration_are_counted_once(self):
        """VERIFY_RESIZE on the source: the domain is shut off, and the migration has the former allocation of the server."""
        self.libvirtd.define(guest_xml('left', uuid=self.server, devices=[VFS[0]]))
        self.placement.write({self.server: self.other, self.migration: self.held})
        self.start_without_claims()
        self.assertEqual(self.devices(), {self.server: [VFS[0]]})
        # A consumer of the same project and size has no guest.
        another = str(uuid.uuid4())
        self.placement.write({another: self.held})
        self.start_without_claims()
        self.assertEqual(sorted(self.devices().values()), [[VFS[0]], [VFS[1]]])

    def test_a_migration_whose_guest_is_not_here(self):
        self.placement.write({self.migration: self.held})
        self.start_without_claims()
        self.assertEqual(list(self.devices()), [self.migration])
        self.placement.write({self.migration: {}})
        wait_until(lambda: not self.agent.claims(), 30, 'the end of the claim')

    def test_a_guest_that_arrives_confirms_its_claim(self):
        self.placement.write({self.server: self.held})
        self.start_without_claims()
        address, = self.devices()[self.server]
        self.libvirtd.define(guest_xml('arrives', uuid=self.server, devices=[address]))
        wait_until(lambda: [claim['state'] for claim in self.agent.claims()] == ['confirmed'], 30, 'the confirmation')
        self.assertEqual(self.agent.problems(), [])

    def test_guests_come_first(self):
        """The consumer without a guest gets the device that no guest has."""
        self.libvirtd.define(guest_xml('here', devices=[VFS[0]]))
        here = self.libvirtd.virsh('domuuid', 'here').strip()
        self.placement.write({here: self.held, self.server: self.held})
        self.start_without_claims()
        self.assertEqual(self.devices(), {here: [VFS[0]], self.server: [VFS[1]]})
