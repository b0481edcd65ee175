# SPDX-License-Identifier: LGPL-2.1-or-later
"""The hook of libvirt: a real libvirtd that runs computectl for real guests, which virsh starts and stops."""

import concurrent.futures
import math
import os
import subprocess
import unittest
import uuid

from tests.env.agent import Agent, build_folder
from tests.env.bus import Bus
from tests.env.fakesys import demo_host
from tests.env.libvirtd import Libvirtd, guest_xml, mdev_xml
from tests.env.placement import Placement
from tests.env.scratch import Scratch, wait_until

GUESTS = int(os.environ.get('COMPUTE_AGENT_GUESTS', '6'))  # that start at once
CPUS = 64  # of the demo host, with its ratio
TYPE = 'LIBVIRT'


class HookCase(unittest.TestCase):
    with_placement = False

    @classmethod
    def setUpClass(cls):
        cls.scratch = Scratch()
        cls.addClassCleanup(cls.scratch.close)
        cls.bus = Bus(cls.scratch)
        cls.bus.start()
        cls.libvirtd = Libvirtd(demo_host(), cls.scratch)
        cls.placement = Placement(cls.scratch) if cls.with_placement else None
        if cls.placement:
            cls.placement.start()
        cls.agent = Agent(cls.scratch, cls.placement, bus=cls.bus, uri=cls.libvirtd.uri,
                          options={'hook': {'enabled': True, 'timeout': 20}})
        cls.install_hook()
        cls.libvirtd.start()
        cls.agent.start()
        cls.agent.wait_state('synced' if cls.placement else 'standalone')
        cls.addClassCleanup(cls.libvirtd.destroy_guests)

    @classmethod
    def install_hook(cls):
        """As the package does it; libvirt gives a hook no environment, so that the bus and the configuration are where they always are."""
        for name, target in (
                ('etc/hooks/qemu.d/compute-agent', build_folder() / 'computectl'),
                ('run/dbus/system_bus_socket', cls.bus.socket_path),
                ('run/compute-agent/compute-agent.conf', cls.agent.config)):
            link = cls.libvirtd.folder / name
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(target)

    def setUp(self):
        self.addCleanup(self.start_over)

    def start_over(self):
        self.agent.start()
        self.libvirtd.destroy_guests()
        for name in self.libvirtd.virsh('list', '--all', '--name').split():
            self.libvirtd.virsh('undefine', name)
        self.agent.ctl('sync')
        for claim in self.claims():
            self.agent.ctl('release', claim['id'])

    def claims(self, consumer=None):
        claims = self.agent.ctl_json('claims')['claims']
        return [one for one in claims if consumer in (None, one['consumer'])]

    def claim_of(self, consumer):
        """Its claim, with all that is known of it."""
        found = self.claims(consumer)
        self.assertEqual(len(found), 1, self.agent.log())
        return self.agent.ctl_json('show', found[0]['id'])

    def define(self, name, **kwargs):
        kwargs.setdefault('uuid', str(uuid.uuid4()))
        self.libvirtd.define(guest_xml(name, **kwargs))
        return kwargs['uuid']

    def start(self, name):
        """virsh start; what it said when it failed, else ''."""
        done = subprocess.run(['virsh', '-c', self.libvirtd.uri, '-q', 'start', name], timeout=120,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode == 0, done.stderr == '', done.stderr)
        return done.stderr

    def configure(self, **options):
        before = dict(self.agent.options['hook'])
        self.addCleanup(self.agent.configure, {'hook': before})
        self.agent.configure({'hook': options})


class TestGuests(HookCase):
    with_placement = True

    def some_mdev(self):
        return next(one for gpu in self.libvirtd.host.gpus
                    for one in gpu.types['nvidia-35'].existing)

    def test_a_start_claims_and_a_stop_releases(self):
        guest = self.define('one', vcpus=2, memory_mib=48)
        self.agent.ctl('sync')
        self.assertEqual(self.claims(), [])
        self.assertEqual(self.start('one'), '')
        claim = self.claim_of(guest)
        self.assertEqual((claim['state'], claim['consumer_type']), ('confirmed', TYPE))
        self.assertEqual(claim['allocations'][0]['resources'], {'VCPU': 2, 'MEMORY_MB': 48})
        self.agent.ctl('sync')
        self.assertEqual(self.claim_of(guest)['id'], claim['id'])
        self.libvirtd.virsh('destroy', 'one')
        self.assertEqual(self.claims(), [])
        self.agent.ctl('sync')
        self.assertEqual(self.claims(), [])
        ended = self.agent.ctl_json('show', claim['id'])
        self.assertTrue(ended['end_reason'].startswith('its guest stopped'))

    def test_no_room_is_told_by_virsh(self):
        self.define('big', vcpus=17)
        words = self.start('big')
        self.assertIn('no room on this host for big: VCPU', words)
        self.assertIn('max_unit', words)
        self.assertEqual(self.claims(), [])
        self.assertIn('Guest big may not start', self.agent.log())

    def test_a_cordoned_host_lets_guests_start(self):
        """Who cordons keeps schedulers away; whoever starts a guest by hand means it."""
        guest = self.define('meant')
        self.agent.ctl('cordon', '--reason', 'the fan is broken')
        self.addCleanup(self.agent.ctl, 'uncordon')
        self.assertEqual(self.start('meant'), '')
        self.assertEqual(self.claim_of(guest)['state'], 'confirmed')

    def test_the_very_mdev_of_the_domain(self):
        mdev = self.some_mdev()
        self.define('vgpu', extra=mdev_xml(mdev))
        # There is no such hardware: QEMU fails behind the hook, which gives back what it claimed.
        self.assertNotIn('compute-agent', self.start('vgpu'))
        self.assertEqual(self.claims(), [])
        ended = self.agent.ctl_json('claims', '--history')['claims']
        ended = self.agent.ctl_json('show', max(one['id'] for one in ended))
        self.assertEqual([one['mdev'] for one in ended['devices']], [mdev])

    def test_what_another_has_is_refused(self):
        mdev = self.some_mdev()
        held = []
        while mdev not in held:
            held += [one['mdev'] for one in self.agent.ctl_json(
                'claim', '--consumer', uuid.uuid4(), '--resources', 'VGPU=1')['devices']]
        self.define('vgpu', extra=mdev_xml(mdev))
        self.assertIn('promised to another', self.start('vgpu'))

    def test_a_claim_of_the_layer_above_stays(self):
        guest = self.define('above')
        claim = self.agent.ctl_json('claim', '--consumer', guest, '--resources',
                                    'VCPU=1,MEMORY_MB=32', '--consumer-type', 'INSTANCE')
        self.assertEqual(self.start('above'), '')
        self.assertEqual(self.claim_of(guest)['id'], claim['id'])
        self.assertEqual(self.claim_of(guest)['state'], 'confirmed')
        self.libvirtd.virsh('destroy', 'above')
        self.agent.ctl('sync')
        self.assertEqual(self.claim_of(guest)['id'], claim['id'])

    def test_save_and_restore(self):
        guest = self.define('saved')
        self.assertEqual(self.start('saved'), '')
        first = self.claim_of(guest)
        self.libvirtd.virsh('managedsave', 'saved')
        self.assertEqual(self.claims(), [])
        self.assertEqual(self.start('saved'), '')
        self.assertNotEqual(self.claim_of(guest)['id'], first['id'])

    def test_libvirtd_restarts(self):
        guest = self.define('stays')
        self.assertEqual(self.start('stays'), '')
        claim = self.claim_of(guest)
        self.libvirtd.restart()
        wait_until(lambda: not self.agent.status()['hypervisor_error'], 60, 'the next poll')
        self.agent.ctl('sync')
        self.assertEqual(self.claim_of(guest)['id'], claim['id'])
        self.libvirtd.virsh('destroy', 'stays')
        self.assertEqual(self.claims(), [])

    def test_many_at_once_never_get_more_than_there_is(self):
        vcpus = math.ceil(CPUS * 1.5 / GUESTS)
        names = ['guest-%d' % i for i in range(GUESTS)]
        for name in names:
            self.define(name, vcpus=vcpus, memory_mib=16)
        with concurrent.futures.ThreadPoolExecutor(GUESTS) as pool:
            words = dict(zip(names, pool.map(self.start, names)))
        started = [name for name in names if not words[name]]
        self.assertEqual(len(started), min(GUESTS, CPUS // vcpus), words)
        self.assertEqual({'no room' in said for said in words.values() if said}, {True}, words)
        self.assertEqual(len(self.claims()), len(started))
        self.assertEqual({one['state'] for one in self.claims()}, {'confirmed'})
        with concurrent.futures.ThreadPoolExecutor(GUESTS) as pool:
            list(pool.map(lambda name: self.libvirtd.virsh('destroy', name, timeout=120), started))
        self.assertEqual(self.claims(), [])

    def held(self, guest):
        """What it has of the root provider in Placement."""
        found = self.placement.get('/allocations/' + guest)['allocations']
        return found.get(self.agent.root(), {}).get('resources', {})

    def wait_held(self, guest, resources):
        wait_until(lambda: self.held(guest) == resources, 30, 'Placement to have %s' % resources)

    def test_placement_is_told_of_what_starts_and_stops(self):
        guest = self.define('told', vcpus=2, memory_mib=48)
        self.assertEqual(self.start('told'), '')
        self.wait_held(guest, {'VCPU': 2, 'MEMORY_MB': 48})
        self.libvirtd.virsh('destroy', 'told')
        self.wait_held(guest, {})

    def test_what_starts_while_placement_is_away_is_told_later(self):
        guest = self.define('owed')
        self.placement.kill()
        try:
            self.assertEqual(self.start('owed'), '')
        finally:
            self.placement.start()
        self.agent.ctl('sync')
        self.wait_held(guest, {'VCPU': 1, 'MEMORY_MB': 32})
        self.libvirtd.virsh('destroy', 'owed')
        self.wait_held(guest, {})

    def test_a_start_after_a_stop_that_nobody_saw(self):
        guest = self.define('anew', vcpus=1, memory_mib=32)
        self.assertEqual(self.start('anew'), '')
        self.wait_held(guest, {'VCPU': 1, 'MEMORY_MB': 32})
        self.agent.kill()
        self.libvirtd.virsh('destroy', 'anew')
        self.libvirtd.virsh('undefine', 'anew')
        self.define('anew', vcpus=2, memory_mib=48, uuid=guest)
        self.agent.start()
        self.agent.wait_state('synced')
        self.assertEqual(self.start('anew'), '')
        self.wait_held(guest, {'VCPU': 2, 'MEMORY_MB': 48})
        self.libvirtd.virsh('destroy', 'anew')
        self.wait_held(guest, {})

    def test_what_a_scheduler_wrote_is_its_own(self):
        guest = self.define('placed', vcpus=1, memory_mib=32)
        placed = {'VCPU': 4, 'MEMORY_MB': 64}
        answer = self.placement.request('PUT', '/allocations/' + guest, {
            'allocations': {self.agent.root(): {'resources': placed}}, 'project_id': 'p',
            'user_id': 'u', 'consumer_generation': None, 'consumer_type': 'INSTANCE'}, record=False)
        self.assertEqual(answer.status, 204, answer.text)
        self.assertEqual(self.start('placed'), '')
        self.agent.ctl('sync')
        self.libvirtd.virsh('destroy', 'placed')
        self.agent.ctl('sync')
        self.assertEqual(self.held(guest), placed)

    def test_started_and_stopped_at_once(self):
        guest = self.define('brief')
        for _ in range(2):
            self.assertEqual(self.start('brief'), '')
            self.libvirtd.virsh('destroy', 'brief')
        self.agent.ctl('sync')
        self.wait_held(guest, {})
        self.assertEqual(self.claims(), [])


class TestAway(HookCase):
    def test_allow(self):
        guest = self.define('early')
        self.agent.stop()
        self.assertEqual(self.start('early'), '')
        self.agent.start()
        wait_until(lambda: self.claims(guest), 30, 'the guest to be found')
        self.assertEqual(self.claim_of(guest)['consumer_type'], TYPE)
        self.libvirtd.virsh('destroy', 'early')
        self.assertEqual(self.claims(), [])

    def test_deny(self):
        self.define('late')
        self.configure(when_agent_is_away='deny')
        self.agent.stop()
        self.assertIn('compute-agent is not running', self.start('late'))

    def test_an_agent_that_hangs(self):
        self.define('slow')
        self.configure(when_agent_is_away='deny', timeout=1)
        self.agent.pause()
        self.addCleanup(self.agent.resume)
        self.assertIn('did not answer in time', self.start('slow'))

    def test_a_bus_that_hangs(self):
        self.define('stuck')
        self.configure(when_agent_is_away='allow', timeout=1)
        self.bus.pause()
        try:
            self.assertEqual(self.start('stuck'), '')
        finally:
            self.bus.resume()

    def test_stopped_while_the_agent_was_away(self):
        guest = self.define('gone')
        self.assertEqual(self.start('gone'), '')
        claim = self.claim_of(guest)
        self.agent.stop()
        self.libvirtd.virsh('destroy', 'gone')
        self.agent.start()
        self.agent.ctl('sync')
        # The claim of the earlier start is in nobody's way.
        self.assertEqual(self.claim_of(guest)['id'], claim['id'])
        self.assertEqual(self.start('gone'), '')
        self.assertGreater(self.claim_of(guest)['id'], claim['id'])

    def test_off(self):
        self.configure(enabled=False)
        guest = self.define('free', vcpus=17)
        self.assertEqual(self.start('free'), '')
        self.agent.ctl('reload')
        self.addCleanup(self.agent.ctl, 'reload')
        wait_until(lambda: self.claims(guest), 30, 'the guest to be found')

    def test_a_bad_configuration_stops_no_guest(self):
        self.define('any')
        self.configure(timeout='soon')
        self.assertEqual(self.start('any'), '')

    def test_by_hand(self):
        guest = str(uuid.uuid4())
        for operation, sub, xml, code in (
                ('migrate', 'begin', guest_xml('m', uuid=guest), 0),
                ('reconnect', 'begin', guest_xml('m', uuid=guest), 0),
                ('prepare', 'begin', '<domain', 1), ('started', 'begin', '', 0),
                ('release', 'end', guest_xml('m', uuid=guest), 0),
                ('prepare', 'begin', 'x' * (5 << 20), 0)):
            done = subprocess.run(
                [build_folder() / 'computectl', '--config', self.agent.config, 'hook', 'm',
                 operation, sub, '-'], input=xml, env=self.agent.env(), capture_output=True,
                text=True, timeout=30, check=False)
            self.assertEqual((done.returncode, done.stdout), (code, ''), (operation, done.stderr))
        self.assertEqual(self.claims(), [])


if __name__ == '__main__':
    unittest.main()
