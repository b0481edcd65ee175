# SPDX-License-Identifier: LGPL-2.1-or-later
"""The hook of libvirt: a real libvirtd runs computectl for real guests, which virsh starts and stops."""

from tests.env.scratch import wait_until
from tests.integration.hook.hook_case import HookCase

TYPE = 'LIBVIRT'


class TestGuests(HookCase):
    def some_mdev(self):
        return next(one for gpu in self.libvirtd.host.gpus
                    for one in gpu.types['nvidia-35'].existing)

    def test_a_start_claims_and_a_stop_releases(self):
        guest = self.define('one', vcpus=2, memory_mib=48)
        self.agent.ctl('sync')
        self.assertEqual(self.agent.claims(), [])
        self.assertEqual(self.start('one'), '')
        claim = self.claim_of(guest)
        self.assertEqual((claim['state'], claim['consumer_type']), ('confirmed', TYPE))
        self.assertEqual(claim['allocations'][0]['resources'], {'VCPU': 2, 'MEMORY_MB': 48})
        self.agent.ctl('sync')
        self.assertEqual(self.claim_of(guest)['id'], claim['id'])
        self.libvirtd.virsh('destroy', 'one')
        self.assertEqual(self.agent.claims(), [])
        self.agent.ctl('sync')
        self.assertEqual(self.agent.claims(), [])
        ended = self.agent.ctl_json('show', claim['id'])
        self.assertTrue(ended['end_reason'].startswith('its guest stopped'))

    def test_no_room_is_told_by_virsh(self):
        self.define('big', vcpus=17)
        words = self.start('big')
        self.assertIn('no capacity on this host for guest big: VCPU', words)
        self.assertIn('max_unit', words)
        self.assertEqual(self.agent.claims(), [])
        self.assertIn('Guest big cannot start', self.agent.log())

    def test_a_cordoned_host_lets_guests_start(self):
        """A cordon rejects claims of schedulers. An operator who starts a guest with virsh decides for it."""
        guest = self.define('meant')
        done = self.agent.ctl('cordon', '--reason', 'the fan is broken')
        self.assertIn("does not stop running guests, or guests that virsh or libvirt's hook starts", done.stdout)
        self.addCleanup(self.agent.ctl, 'uncordon')
        self.assertEqual(self.start('meant'), '')
        self.assertEqual(self.claim_of(guest)['state'], 'confirmed')
        self.assertIn('Guest meant starts on this host, which is cordoned', self.agent.log())

    def test_the_very_mdev_of_the_domain(self):
        mdev = self.some_mdev()
        self.define('vgpu', devices=[mdev])
        # There is no such hardware. QEMU fails after the hook, and the hook releases the claim.
        self.assertNotIn('compute-agent', self.start('vgpu'))
        self.assertEqual(self.agent.claims(), [])
        ended = self.agent.ctl_json('claims', '--history')['claims']
        ended = self.agent.ctl_json('show', max(one['id'] for one in ended))
        self.assertEqual([one['mdev'] for one in ended['devices']], [mdev])

    def test_a_device_of_another_claim_is_refused(self):
        mdev = self.some_mdev()
        held = []
        while mdev not in held:
            held += [one['mdev'] for one in self.agent.claim('VGPU=1')['devices']]
        self.define('vgpu', devices=[mdev])
        self.assertIn('belongs to another claim', self.start('vgpu'))

    def test_a_claim_of_the_layer_above_stays(self):
        guest = self.define('above')
        claim = self.agent.claim('VCPU=1,MEMORY_MB=32', guest, '--consumer-type', 'INSTANCE')
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
        self.assertEqual(self.agent.claims(), [])
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
        self.assertEqual(self.agent.claims(), [])

    def wait_held(self, guest, resources):
        """Waits for the allocation of the guest on the root provider."""
        wait_until(lambda: self.held(guest).get(self.agent.root(), {}) == resources, 30, 'Placement to have %s' % resources)

    def test_placement_is_told_of_what_starts_and_stops(self):
        guest = self.define('told', vcpus=2, memory_mib=48)
        self.assertEqual(self.start('told'), '')
        self.wait_held(guest, {'VCPU': 2, 'MEMORY_MB': 48})
        self.libvirtd.virsh('destroy', 'told')
        self.wait_held(guest, {})

    def test_a_guest_started_during_an_outage_is_written_later(self):
        guest = self.define('owed')
        with self.proxy.refusing():
            self.assertEqual(self.start('owed'), '')
        self.agent.ctl('sync')
        self.wait_held(guest, {'VCPU': 1, 'MEMORY_MB': 32})
        self.libvirtd.virsh('destroy', 'owed')
        self.wait_held(guest, {})

    def test_a_start_after_a_stop_that_nobody_saw(self):
        guest = self.define('anew', vcpus=1, memory_mib=32)
        self.assertEqual(self.start('anew'), '')
        self.wait_held(guest, {'VCPU': 1, 'MEMORY_MB': 32})
        self.agent.kill()
        self.libvirtd.delete_guest('anew')
        self.define('anew', vcpus=2, memory_mib=48, uuid=guest)
        self.agent.start('synced')
        self.assertEqual(self.start('anew'), '')
        self.wait_held(guest, {'VCPU': 2, 'MEMORY_MB': 48})
        self.libvirtd.virsh('destroy', 'anew')
        self.wait_held(guest, {})

    def test_allocations_of_a_scheduler_stay(self):
        guest = self.define('placed', vcpus=1, memory_mib=32)
        placed = {self.agent.root(): {'VCPU': 4, 'MEMORY_MB': 64}}
        self.place(guest, placed)
        self.assertEqual(self.start('placed'), '')
        self.agent.ctl('sync')
        self.libvirtd.virsh('destroy', 'placed')
        self.agent.ctl('sync')
        self.assertEqual(self.held(guest), placed)

    def test_a_stopped_server_keeps_its_claim_in_an_outage(self):
        """Only Placement can say that a stopped guest has no allocations of a scheduler any more."""
        started, early = self.define('placed', vcpus=1, memory_mib=32), self.define('early', vcpus=1, memory_mib=32)
        for guest in (started, early):
            self.place(guest, {self.agent.root(): {'VCPU': 1, 'MEMORY_MB': 32}})
        self.assertEqual(self.start('placed'), '')
        self.agent.ctl('sync')
        with self.proxy.refusing():
            self.libvirtd.virsh('destroy', 'placed')
            self.assertEqual(self.start('placed'), '')
            self.libvirtd.virsh('destroy', 'placed')
            self.claim_of(started)
            # The agent adopts a guest that started without it.
            self.agent.stop()
            self.assertEqual(self.start('early'), '')
            self.agent.start('offline')
            wait_until(lambda: self.agent.claims(early), 30, 'the guest to be adopted')
            self.libvirtd.virsh('destroy', 'early')
            self.claim_of(early)
        for guest in (started, early):
            self.agent.ctl('sync')
            self.claim_of(guest)
            self.place(guest, {})
        wait_until(lambda: self.agent.ctl('sync') and self.agent.claims() == [], 30, 'both claims to end', step=0.5)

    def test_a_stopped_server_gets_its_claim_back(self):
        """A lost database, or the first start of the agent, with a server that is off and has its allocations."""
        guest = self.define('placed', vcpus=1, memory_mib=32)
        self.define('free', vcpus=1, memory_mib=32)
        self.place(guest, {self.agent.root(): {'VCPU': 4, 'MEMORY_MB': 64}})
        self.agent.stop()
        self.agent.lose_claims()
        self.agent.start('synced')
        wait_until(lambda: self.agent.claims(guest), 30, 'the claim')
        self.assertEqual(self.claim_of(guest)['allocations'][0]['resources'], {'VCPU': 4, 'MEMORY_MB': 64})
        self.assertEqual(len(self.agent.claims()), 1)
        self.agent.ctl('sync')
        self.claim_of(guest)
        self.place(guest, {})
        wait_until(lambda: self.agent.ctl('sync') and self.agent.claims() == [], 30, 'the end of the claim', step=0.5)

    def test_a_failed_start_keeps_no_claim(self):
        """QEMU fails after the hook. Placement was not read for the claim, so it stays until Placement has no allocations of it."""
        self.addCleanup(self.agent.ctl, 'reload')
        self.addCleanup(self.agent.configure, {'agent': {'claim_mode': None}, 'DEFAULT': {'claim_expiry_time': None}})
        for options in ({'claim_mode': 'verify'}, {'claim_mode': None}):
            with self.subTest(**options):
                self.agent.configure({'agent': options, 'DEFAULT': {'claim_expiry_time': 0}})
                self.agent.ctl('reload')
                guest = self.define('vgpu', devices=[self.some_mdev()])
                if not options['claim_mode']:
                    self.place(guest, {self.agent.root(): {'VCPU': 1, 'MEMORY_MB': 32}})
                self.assertNotIn('compute-agent', self.start('vgpu'))
                if not options['claim_mode']:
                    self.agent.ctl('sync')
                    self.place(guest, {})
                wait_until(lambda: self.agent.ctl('sync') and self.agent.claims() == [], 30, 'the end of the claim', step=0.5)
                self.libvirtd.delete_guests()
                self.agent.ctl('sync')

    def test_started_and_stopped_at_once(self):
        guest = self.define('brief')
        for _ in range(2):
            self.assertEqual(self.start('brief'), '')
            self.libvirtd.virsh('destroy', 'brief')
        self.agent.ctl('sync')
        self.wait_held(guest, {})
        self.assertEqual(self.agent.claims(), [])


class TestAway(HookCase):
    shared = ('scratch', 'bus')

    def test_allow(self):
        guest = self.define('early')
        self.agent.stop()
        self.assertEqual(self.start('early'), '')
        self.agent.start()
        wait_until(lambda: self.agent.claims(guest), 30, 'the guest to be found')
        self.assertEqual(self.claim_of(guest)['consumer_type'], TYPE)
        self.libvirtd.virsh('destroy', 'early')
        self.assertEqual(self.agent.claims(), [])

    def test_deny(self):
        self.define('late')
        self.configure(when_agent_is_away='deny')
        self.agent.stop()
        self.assertIn('compute-agent is not running', self.start('late'))

    def test_a_configuration_that_cannot_be_read(self):
        """A running agent uses the configuration that it has read. The hook asks the agent, which decides."""
        self.configure(when_agent_is_away='deny')
        self.agent.ctl('reload')
        good = self.agent.config.read_text()
        self.addCleanup(self.agent.config.write_text, good)
        self.agent.config.write_text(good + 'when_agent_is_awry deny\n')
        big = self.define('big', memory_mib=1 << 40)
        self.assertIn('no capacity on this host', self.start('big'))
        self.assertEqual(self.agent.claims(big), [])
        small = self.define('small')
        self.assertEqual(self.start('small'), '')
        self.assertEqual(self.claim_of(small)['consumer_type'], TYPE)
        self.libvirtd.virsh('destroy', 'small')
        self.assertEqual(self.agent.claims(small), [])
        # Without agent and configuration the hook cannot know whether it is enabled, so it allows the start.
        self.agent.stop()
        self.assertEqual(self.start('small'), '')
        self.agent.config.write_text(good)

    def test_an_agent_that_hangs(self):
        self.define('slow')
        self.configure(when_agent_is_away='deny', timeout=1)
        with self.agent.paused():
            self.assertIn('did not answer in time', self.start('slow'))

    def test_a_bus_that_hangs(self):
        self.define('stuck')
        self.configure(when_agent_is_away='allow', timeout=1)
        with self.bus.paused():
            self.assertEqual(self.start('stuck'), '')

    def test_stopped_while_the_agent_was_away(self):
        guest = self.define('gone')
        self.assertEqual(self.start('gone'), '')
        claim = self.claim_of(guest)
        self.agent.stop()
        self.libvirtd.virsh('destroy', 'gone')
        self.agent.start()
        self.agent.ctl('sync')
        # The claim of the earlier start does not prevent the next one.
        self.assertEqual(self.claim_of(guest)['id'], claim['id'])
        self.assertEqual(self.start('gone'), '')
        self.assertGreater(self.claim_of(guest)['id'], claim['id'])

    def test_off(self):
        self.configure(enabled=False)
        guest = self.define('free', vcpus=17)
        self.assertEqual(self.start('free'), '')
        self.agent.ctl('reload')
        self.addCleanup(self.agent.ctl, 'reload')
        wait_until(lambda: self.agent.claims(guest), 30, 'the guest to be found')

    def test_a_bad_configuration_stops_no_guest(self):
        self.define('any')
        self.configure(timeout='soon')
        self.assertEqual(self.start('any'), '')
