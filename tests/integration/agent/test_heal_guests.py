# SPDX-License-Identifier: LGPL-2.1-or-later
"""Healing removes no allocation from a guest that might be alive. The tests cover a tree that waits for a reshape, Nova's moves of
guests, and allocations that another client deleted.

The IDs (F8, G1, ...) are those of the facts that the tests follow.
"""

import json
import time
import uuid

from tests.env import faults
from tests.env.libvirtd import guest_xml
from tests.env.scratch import wait_until
from tests.integration.reshape import test_reshape as reshape
from tests.integration.agent.test_audit import OPTIONS, AuditCase

SOON = {'DEFAULT': {'claim_expiry_time': 1, 'update_resources_interval': 1},
        'agent': {'heal_each_cycles': 1}}


def findings_of(agent, verb='audit'):
    """Returns {consumer: finding}."""
    done = agent.ctl(verb, '--json=short', check=False)
    return {item['consumer']: item for item in json.loads(done.stdout)['findings']}


def run_cycles(agent, n=4):
    """Runs n cycles with pauses, so that the consumers become old enough for healing."""
    for _ in range(n):
        agent.ctl('sync', check=False)
        time.sleep(0.4)


class TestReshapeThatWaits(reshape.ReshapeCase):
    """VGPU on the root, two guests that have one each, and an agent that heals with each cycle."""

    make_host = staticmethod(reshape.TestVgpus.make_host)
    make_old_shape = reshape.TestVgpus.make_old_shape

    def setUp(self):
        super().setUp()
        self.agent.configure({'placement': {'endpoint_override': self.proxy.endpoint}})

    def look(self, old):
        """Checks that healing writes nothing in several cycles, and that the disagreements are listed."""
        mark = self.placement.mark()
        run_cycles(self.agent)
        self.assertEqual([item for item in self.placement.writes_since(mark)
                          if item[1].startswith('/allocations')], [])
        self.assertEqual([self.held(guest) for guest in self.guests], [old, old])
        found = findings_of(self.agent, 'heal')
        self.assertEqual({item['outcome'] for item in found.values()} - {'found'}, set())
        self.assertEqual({item['remedy'] for item in found.values()} - {'none'}, set())
        problems = json.dumps(self.agent.problems())
        for mdev in reshape.MDEVS[1:3]:
            self.assertIn('has mdev %s, which its claim does not name' % mdev, problems)
        self.assertEqual([self.held(guest) for guest in self.guests], [old, old])

    def test_14_1_a_guest_keeps_its_vgpu_until_the_reshape(self):
        self.make_old_shape()
        old = {reshape.ROOT: {'VGPU': 1, 'VCPU': 1, 'MEMORY_MB': 32}}
        self.proxy.add(faults.server_error(403, method='POST', path='^/reshaper$'))
        self.start('stale', devices={'enabled_mdev_types': 'nvidia-35'}, **SOON)
        self.look(old)
        self.proxy.clear()
        self.agent.ctl('reshape')
        self.agent.wait_state('synced')
        run_cycles(self.agent)
        for guest, gpu in zip(self.guests, reshape.GPUS[1:]):
            self.assertEqual(self.held(guest), {reshape.ROOT: {'VCPU': 1, 'MEMORY_MB': 32},
                                                gpu: {'VGPU': 1}})
        # The devices of the guests are right. The agent creates their claims again from the guests.
        for finding in findings_of(self.agent).values():
            self.assertEqual(finding['remedy'], 'none')
            self.agent.ctl('release', finding['claim'])
        wait_until(lambda: findings_of(self.agent) == {}, 30, 'all to agree')
        self.assertEqual(sorted(self.claimed()), sorted(self.guests))

    def test_14_1_a_class_that_stays_where_it_is(self):
        """The reshape cannot finish, because a consumer without a guest keeps VGPU on the root."""
        self.make_old_shape()
        stranger = str(uuid.uuid4())
        self.put(stranger, {reshape.ROOT: {'VGPU': 1}})
        self.start('stale', devices={'enabled_mdev_types': 'nvidia-35'}, **SOON)
        self.look({reshape.ROOT: {'VGPU': 1, 'VCPU': 1, 'MEMORY_MB': 32}})
        self.assertEqual(self.held(stranger), {reshape.ROOT: {'VGPU': 1}})
        self.assertEqual(findings_of(self.agent)[stranger]['remedy'], 'none')


class TestMigrations(AuditCase):
    """The allocations as Nova writes them: the instance has those of the target host, and its migration those of this host. Nova
    sends no consumer types (G1)."""

    def setUp(self):
        super().setUp()
        self.agent = self.start_agent({**OPTIONS, **SOON})
        self.root = self.agent.root()
        self.other = self.placement.make_provider('other-host', {'VCPU': 64, 'MEMORY_MB': 65536})
        self.held_here = {self.root: {'VCPU': 1, 'MEMORY_MB': 32, 'DISK_GB': 1}}
        self.held_there = {self.other: {'VCPU': 1, 'MEMORY_MB': 32}}

    def boot(self, n):
        """Starts n servers of one flavor, placed as Nova's scheduler does."""
        servers = [str(uuid.uuid4()) for _ in range(n)]
        for number, server in enumerate(servers):
            self.placement.write({server: self.held_here})
            self.libvirtd.start_guest('server%d' % number, uuid=server)
        wait_until(lambda: len(self.agent.claims()) == n, 60, 'the claims')
        return servers

    def migrate(self, number, server):
        """Begins a cold migration and stops where it waits for its confirmation. Returns the uuid of the migration."""
        migration = str(uuid.uuid4())
        self.placement.write({server: {}, migration: self.held_here})
        self.placement.write({server: self.held_there})
        self.libvirtd.virsh('destroy', 'server%d' % number)
        return migration

    def test_14_2_five_guests_of_one_flavor_that_wait_for_confirmation(self):
        servers = self.boot(5)
        migrations = [self.migrate(number, server) for number, server in enumerate(servers)]
        self.check_in_flight(servers, migrations)
        self.agent.restart('synced')
        self.check_in_flight(servers, migrations)
        self.end_all(servers, migrations)

    # Checks that healing changes nothing while the migrations wait for their confirmation.
    def check_in_flight(self, servers, migrations):
        run_cycles(self.agent)
        for _ in range(3):
            self.assertEqual(findings_of(self.agent, 'heal'), {})
        self.assertEqual([self.holds(migration) for migration in migrations],
                         [self.held_here] * len(migrations))
        self.assertEqual([self.holds(server) for server in servers],
                         [self.held_there] * len(servers))
        self.assertEqual(sorted(claim['consumer'] for claim in self.agent.claims()),
                         sorted(servers))

    def end_all(self, servers, migrations):
        """Reverts the first two migrations and confirms the other three, one after another."""
        for number, (server, migration) in enumerate(zip(servers, migrations)):
            if number < 2:
                self.placement.write({server: self.held_here, migration: {}})
                self.libvirtd.virsh('start', 'server%d' % number)
            else:
                self.placement.write({migration: {}})
                self.libvirtd.virsh('undefine', 'server%d' % number)
            run_cycles(self.agent, 2)
        wait_until(lambda: sorted(claim['consumer'] for claim in self.agent.claims()) ==
                   sorted(servers[:2]), 60, 'the claims of those that came back')
        run_cycles(self.agent)
        self.assertEqual([self.holds(server) for server in servers],
                         [self.held_here] * 2 + [self.held_there] * 3)
        self.assertEqual(findings_of(self.agent), {})

    def test_14_2_a_resize_on_this_host(self):
        """F8 1790204: the instance has the allocation of the new flavor and the migration that of the old one. The guest still has,
        or has again, the old size."""
        server, = self.boot(1)
        migration = str(uuid.uuid4())
        new = {self.root: {'VCPU': 2, 'MEMORY_MB': 48, 'DISK_GB': 1}}
        self.placement.write({server: new, migration: self.held_here})
        run_cycles(self.agent)
        self.agent.ctl('heal', check=False)
        self.assertEqual((self.holds(server), self.holds(migration)), (new, self.held_here))
        # The guest has the new flavor and gets a new claim. The resize waits for its confirmation.
        self.become('server0', 48, 2, server)
        self.check_resize({server: new, migration: self.held_here})
        # After the revert the guest has the allocation of the migration again.
        self.placement.write({server: self.held_here, migration: {}})
        self.become('server0', 32, 1, server)
        self.check_resize({server: self.held_here})

    def become(self, name, memory_mib, vcpus, server):
        self.libvirtd.virsh('destroy', name)
        self.libvirtd.define(guest_xml(name, memory_mib=memory_mib, vcpus=vcpus, uuid=server))
        self.libvirtd.virsh('start', name)
        wait_until(lambda: [claim['allocations'][0]['resources'] for claim in self.agent.claims()] ==
                   [{'VCPU': vcpus, 'MEMORY_MB': memory_mib, 'DISK_GB': 1}], 30, 'the claim')

    def check_resize(self, held):
        """Checks that each consumer keeps its allocations, before and after a restart."""
        for again in (True, False):
            run_cycles(self.agent)
            self.assertEqual(findings_of(self.agent, 'heal'), {})
            self.assertEqual({consumer: self.holds(consumer) for consumer in held}, held)
            if again:
                self.agent.restart('synced')

    def test_14_2_a_leak_beside_a_migration_is_found_when_that_is_over(self):
        server, = self.boot(1)
        leaked = str(uuid.uuid4())
        migration = self.migrate(0, server)
        self.placement.write({leaked: self.held_here})
        self.agent.end_claims(self.placement, {leaked: 'VCPU=1,MEMORY_MB=32,DISK_GB=1'})
        run_cycles(self.agent)
        self.assertEqual(self.holds(leaked), self.held_here)
        # An allocation of another project is not a migration of this project.
        stranger = str(uuid.uuid4())
        self.placement.write({stranger: self.held_here}, 'another')
        self.agent.end_claims(self.placement, {stranger: 'VCPU=1,MEMORY_MB=32,DISK_GB=1'})
        wait_until(lambda: not self.holds(stranger), 30, 'the end of a leak')
        self.assertEqual((self.holds(leaked), self.holds(migration)),
                         (self.held_here, self.held_here))
        self.placement.write({server: self.held_here, migration: {}})
        wait_until(lambda: not self.holds(leaked), 30, 'the end of the other')
        self.assertEqual(self.holds(server), self.held_here)


class TestDeleted(AuditCase):
    def test_14_4_a_guest_that_nova_deleted_is_not_written_again(self):
        """F8 1679750: the domain still runs, because nova-compute was down during the deletion."""
        agent, guest = self.start_with_guest()
        self.placement.request('DELETE', '/allocations/%s' % guest)
        self.wait_findings(agent, {guest: 'unallocated'})
        for verb in ('audit', 'heal'):
            found = findings_of(agent, verb)[guest]
            self.assertEqual((found['remedy'], found['outcome']), ('none', 'found'))
            self.assertIn('but has no allocations in Placement', found['text'])
        self.assertEqual(self.holds(guest), {})
        self.assertEqual(len(self.of_guest(agent, guest)), 1)


class TestCertain(AuditCase):
    def test_a_guest_with_more_than_its_claim_keeps_what_placement_has(self):
        """Placement, the guest and its claim have three sizes. Later the guest has the size in Placement."""
        agent, guest = self.start_with_guest()
        self.libvirtd.virsh('destroy', 'good')
        self.libvirtd.define(guest_xml('good', memory_mib=56, vcpus=4, uuid=guest))
        self.libvirtd.virsh('start', 'good')
        held = {agent.root(): {'VCPU': 3, 'MEMORY_MB': 56, 'DISK_GB': 1}}
        self.allocate(held, guest)
        # The claim follows Placement, which has less than the guest.
        wait_until(lambda: [text for text in agent.problems() if 'has 4 VCPUs, but its claim has' in text], 20, 'the problem')
        self.agent_heals_nothing(agent, guest, held)
        # A resize on this host explains the difference. The claim was behind.
        held[agent.root()]['VCPU'] = 4
        self.allocate(held, guest)
        self.wait_findings(agent, {})
        self.assertEqual([claim['allocations'][0]['resources'] for claim in self.of_guest(agent, guest)],
                         [held[agent.root()]])
        self.assertEqual(self.holds(guest), held)

    def agent_heals_nothing(self, agent, guest, held):
        for _ in range(3):
            found = findings_of(agent, 'heal').get(guest, {'remedy': 'none', 'outcome': 'found'})
            self.assertEqual((found['remedy'], found['outcome']), ('none', 'found'))
            agent.ctl('sync')
        self.assertEqual(self.holds(guest), held)

    def test_nothing_is_written_while_the_hypervisor_is_away(self):
        """A guest that started during the outage is unseen. Its allocation must not be treated as a leak."""
        self.agent = agent = self.start_agent({**OPTIONS, **SOON})
        self.addCleanup(self.libvirtd.restart)
        self.libvirtd.kill()
        wait_until(lambda: agent.status()['hypervisor_error'], 30, 'the loss')
        unseen = self.leak(agent, {agent.root(): {'VCPU': 1, 'MEMORY_MB': 32}})
        found = wait_until(lambda: findings_of(agent, 'heal').get(unseen), 30, 'the finding')
        self.assertEqual((found['type'], found['remedy']), ('leaked', 'none'))
        self.assertEqual(self.holds(unseen), {agent.root(): {'VCPU': 1, 'MEMORY_MB': 32}})
        self.libvirtd.restart()
        wait_until(lambda: not self.holds(unseen), 60, 'healing')

    def test_an_evacuated_guest_that_is_still_defined_is_not_adopted_by_healing(self):
        agent, guest = self.start_with_guest(running=False)
        agent.stop()
        other = self.placement.make_provider('other-host', {'VCPU': 8, 'MEMORY_MB': 1024})
        self.allocate({other: {'VCPU': 2, 'MEMORY_MB': 40}}, guest)
        agent.configure(SOON)
        agent.start('synced')
        wait_until(lambda: not self.of_guest(agent, guest), 20, 'the end of the claim')
        last = agent.ctl_json('claims', '--history')['claims'][0]['id']
        run_cycles(agent, 6)
        self.assertEqual(self.audit(agent)[1], {guest: ('evacuated', 'none', 'found')})
        self.assertEqual(agent.ctl_json('claims', '--history')['claims'][0]['id'], last)
        self.assertEqual(agent.claims(), [])
