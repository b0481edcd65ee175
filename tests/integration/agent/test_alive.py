# SPDX-License-Identifier: LGPL-2.1-or-later
"""Healing keeps the allocation of a server that is being built or copied. It also keeps that of each server of which this host has
no evidence that it ended. Each agent heals with each cycle."""

import re
import uuid

from tests.env.scratch import wait_until
from tests.integration.agent.test_audit import OPTIONS, AuditCase
from tests.integration.agent.test_heal_guests import SOON, findings_of, run_cycles

AMOUNTS = {'VCPU': 1, 'MEMORY_MB': 32}


class AliveCase(AuditCase):
    def start(self):
        self.agent = self.start_agent({**OPTIONS, **SOON})
        self.instances = self.agent.folder  # [DEFAULT] instances_path
        self.root = self.agent.root()

    def place(self, consumer=None, **options):
        return self.allocate({self.root: AMOUNTS}, consumer, **options)

    def check_kept(self, consumer, n=6):
        run_cycles(self.agent, n)
        self.agent.ctl('heal', check=False)
        self.assertEqual(self.holds(consumer), {self.root: AMOUNTS})

    def wait_released(self, consumer):
        wait_until(lambda: not self.holds(consumer), 30, 'the removal of the allocation')


class TestBuilds(AliveCase):
    def test_a_slow_build_with_a_folder(self):
        """Nova downloads the image. The folder of the server outweighs even an ended claim."""
        self.start()
        server = self.place()
        (self.instances / server).mkdir()
        self.agent.end_claims(self.placement, {server: 'VCPU=1,MEMORY_MB=32'})
        self.check_kept(server)
        self.assertEqual(findings_of(self.agent), {})
        # Nova renames the folder when it deletes the server.
        (self.instances / server).rename(self.instances / (server + '_del'))
        self.wait_released(server)
        words = 'Removed allocations from Placement: consumer %s .* Evidence: claim [0-9]+ was released at .* by root' % server
        wait_until(lambda: re.search(words, self.agent.log()), 10, 'the message')  # Placement shows the removal before its answer arrives

    def test_a_slow_build_without_a_folder(self):
        """Nova creates the volume, so the server has neither folder nor domain on this host yet."""
        self.start()
        server = self.place()
        self.check_kept(server)
        finding = findings_of(self.agent, 'heal')[server]
        self.assertEqual((finding['type'], finding['remedy'], finding['outcome'], finding['evidence']),
                         ('leaked', 'none', 'found', ''))
        self.assertIn('no record that its server was deleted', finding['text'])
        self.assertIn('computectl heal %s' % server, finding['text'])
        self.agent.restart('synced')
        self.check_kept(server)

    def test_a_server_that_is_placed_here_again(self):
        """Nova unshelves the server. Its last claim ended here, and its image is downloaded again."""
        self.start()
        server = self.place()
        self.agent.end_claims(self.placement, {server: 'VCPU=1,MEMORY_MB=32'})
        self.place(consumer=server)
        self.check_kept(server)
        self.assertIn('written after its claim ended', findings_of(self.agent)[server]['text'])

    def test_a_lost_database(self):
        self.start()
        server = self.place()
        self.agent.end_claims(self.placement, {server: 'VCPU=1,MEMORY_MB=32'})
        self.agent.stop()
        self.agent.lose_claims()
        self.agent.start('synced')
        self.check_kept(server)


class TestCopies(AliveCase):
    def test_a_cold_migration_to_this_host(self):
        """Nova copies the disk to this host, while the migration has the allocation of the other host."""
        self.start()
        other = self.placement.make_provider('other-host', {'VCPU': 8, 'MEMORY_MB': 1024})
        server = self.place()
        self.allocate({other: AMOUNTS}, consumer_type='MIGRATION')
        self.check_kept(server)

    def test_a_cold_migration_from_this_host(self):
        """The migration keeps its allocation here until the move is confirmed, also when the domain is gone."""
        self.start()
        other = self.placement.make_provider('other-host', {'VCPU': 8, 'MEMORY_MB': 1024})
        server = self.libvirtd.start_guest('moved', memory_mib=32, vcpus=1)
        self.allocate({self.root: AMOUNTS}, server)
        wait_until(lambda: self.of_guest(self.agent, server), 20, 'the claim')
        migration = self.place(consumer_type='MIGRATION')
        self.allocate({other: AMOUNTS}, server)
        self.libvirtd.virsh('destroy', 'moved')
        self.check_kept(migration)
        self.assertEqual(self.holds(server), {other: AMOUNTS})
        self.libvirtd.virsh('undefine', 'moved')
        self.check_kept(migration)


class TestDeleted(AliveCase):
    def test_a_guest_that_is_deleted_while_the_agent_is_off(self):
        """The claim proves that the server was here. A server that Nova rebuilds looks the same, so the operator decides."""
        self.start()
        server = self.libvirtd.start_guest('gone', memory_mib=32, vcpus=1)
        self.allocate({self.root: AMOUNTS}, server)
        wait_until(lambda: self.of_guest(self.agent, server), 20, 'the claim')
        self.agent.stop()
        self.libvirtd.delete_guest('gone')
        self.agent.start('synced')
        self.check_kept(server)
        claim, = self.of_guest(self.agent, server)
        done = self.agent.ctl('heal', server, code=1)
        self.assertIn('computectl release %d --allocations' % claim['id'], done.stderr)
        self.agent.ctl('release', claim['id'])
        self.wait_released(server)

    def test_the_operator_names_a_consumer(self):
        self.start()
        server, other = self.place(), self.place()
        self.check_kept(server)
        self.agent.ctl('heal', server, code=4)
        self.assertEqual((self.holds(server), self.holds(other)), ({}, {self.root: AMOUNTS}))
        self.assertRegex(self.agent.log(), 'consumer %s has allocations .* Evidence: root .* asked to heal it' % server)
        self.assertIn('has no allocations on this host', self.agent.ctl('heal', server).stdout)
        self.assertIn('has no allocations on this host', self.agent.ctl('heal', str(uuid.uuid4())).stdout)
