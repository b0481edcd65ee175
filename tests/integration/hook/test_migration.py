# SPDX-License-Identifier: LGPL-2.1-or-later
"""Live migration between two libvirtds, each with its agent and its hook, and one Placement for both."""

import subprocess
import uuid

from tests.env.agent import Agent
from tests.env.bus import Bus
from tests.env.fakesys import simple_host
from tests.env.libvirtd import Libvirtd, guest_xml
from tests.env.scratch import wait_until
from tests.integration.hook.hook_case import install_hook, virsh_words
from tests.integration.claims.placement_case import PlacementCase

GUEST = {'VCPU': 1, 'MEMORY_MB': 32}


class Side:
    """A host with its libvirtd, bus and agent."""

    def __init__(self, scratch, name, endpoint):
        self.bus = Bus(scratch).start()
        self.libvirtd = Libvirtd(simple_host(name=name), scratch)
        self.agent = Agent(scratch, endpoint, bus=self.bus, uri=self.libvirtd.uri, options={
            'DEFAULT': {'update_resources_interval': 3600, 'reserved_host_memory_mb': 0},
            'devices': {'enabled_mdev_types': None}, 'hook': {'enabled': True, 'timeout': 20}})
        install_hook(self.libvirtd, self.bus, self.agent)
        self.libvirtd.start()
        self.agent.start('synced')
        self.root = self.agent.root()

    def consumers(self):
        return [claim['consumer'] for claim in self.agent.claims()]

    def running(self):
        return self.libvirtd.virsh('list', '--name').split()


class TestMigration(PlacementCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.source, cls.target = [Side(cls.scratch, name, cls.proxy.endpoint)
                                  for name in ('source', 'target')]

    def setUp(self):
        self.guest = str(uuid.uuid4())
        self.addCleanup(self.start_over)
        self.source.libvirtd.define(guest_xml('vm', uuid=self.guest))
        self.source.libvirtd.virsh('start', 'vm', timeout=90)
        self.wait_held({self.source.root: GUEST})

    def start_over(self):
        self.proxy.clear()
        for side in (self.source, self.target):
            side.agent.start()
            side.libvirtd.delete_guests()
            side.agent.ctl('sync')
            side.agent.release_all()

    def wait_held(self, expected):
        wait_until(lambda: self.held(self.guest) == expected, 60, 'Placement to have %s' % expected, step=0.1)

    def migrate(self, source, target, *options, channel=None):
        """Migrates the guest. Returns virsh's error message, or '' after success."""
        channel = channel or self.scratch.path / 'channel'
        return virsh_words(source.libvirtd, 'migrate', '--live', '--persistent', '--undefinesource',
                           *options, 'vm', target.libvirtd.uri, '--migrateuri', 'unix://%s' % channel)

    def check_on(self, here, there):
        """Checks that the guest, its claim and its allocation are on one side only."""
        self.assertEqual((here.running(), there.running()), (['vm'], []))
        for side in (here, there):
            side.agent.ctl('sync')
        self.assertEqual((here.consumers(), there.consumers()), ([self.guest], []))
        self.assertEqual(here.agent.claims()[0]['state'], 'confirmed')
        self.wait_held({here.root: GUEST})
        for side in (here, there):
            self.assertEqual(side.agent.ctl('audit', check=False).returncode, 0)

    def test_there_and_back(self):
        self.assertEqual(self.migrate(self.source, self.target), '')
        self.check_on(self.target, self.source)
        self.assertEqual(self.migrate(self.target, self.source), '')
        self.check_on(self.source, self.target)

    def test_no_room_at_the_target(self):
        taken = self.target.agent.claim('MEMORY_MB=4090')
        words = self.migrate(self.source, self.target)
        self.assertIn('no capacity on this host for guest vm: MEMORY_MB', words)
        self.target.agent.ctl('release', taken['id'])
        self.check_on(self.source, self.target)

    def test_a_migration_that_fails_behind_prepare(self):
        self.assertIn('nowhere', self.migrate(self.source, self.target,
                                              channel=self.scratch.path / 'nowhere' / 'channel'))
        self.check_on(self.source, self.target)

    def test_while_placement_is_away(self):
        with self.proxy.refusing():
            self.assertEqual(self.migrate(self.source, self.target), '')
        self.check_on(self.target, self.source)

    def test_while_an_agent_is_away(self):
        for side in (self.source, self.target):
            with self.subTest(side.libvirtd.host.name):
                here = self.source if self.source.running() else self.target
                there = self.target if here is self.source else self.source
                side.agent.kill()
                self.assertEqual(self.migrate(here, there), '')
                side.agent.start('synced')
                self.assertIn(self.guest, there.consumers())

    def test_aborted(self):
        """The migration is slow enough for an abort while both sides have the claim."""
        self.source.libvirtd.virsh('migrate-setspeed', 'vm', 1)
        migrating = subprocess.Popen(
            ['virsh', '-c', self.source.libvirtd.uri, '-q', 'migrate', '--live', 'vm',
             self.target.libvirtd.uri, '--migrateuri', 'unix://%s' % (self.scratch.path / 'channel')],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(migrating.kill)
        wait_until(lambda: self.target.consumers() == [self.guest], 60, 'the claim of the target')
        self.wait_held({self.source.root: GUEST, self.target.root: GUEST})
        self.source.libvirtd.virsh('domjobabort', 'vm')
        self.assertNotEqual(migrating.communicate(timeout=60)[0], '')
        self.check_on(self.source, self.target)
