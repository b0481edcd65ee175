# SPDX-License-Identifier: LGPL-2.1-or-later
"""The parts of a host that are no devices: storage pools, instances_path, guests, encrypted memory, and the wait for late devices.

The IDs (C2, C6) are those of the facts that the tests follow.
"""

import json
import os
import time

from tests.env.fakesys import simple_host
from tests.env.libvirtd import guest_xml
from tests.env.scratch import wait_until
from tests.integration.driver.test_devices import DeviceCase

GPU, GPU_NAME = '0000:41:00.0', 'compute-1_pci_0000_41_00_0'


class TestStorage(DeviceCase):
    """[libvirt] images_storage_pool names a pool of the real libvirtd."""

    @staticmethod
    def make_host():
        return simple_host()

    def setUp(self):
        super().setUp()
        self.target = self.scratch.folder('pool')
        self.libvirtd.virsh('pool-define-as', 'guests', 'dir', '--target', self.target)
        self.addCleanup(self.libvirtd.virsh, 'pool-undefine', 'guests')

    def start_pool(self):
        self.libvirtd.virsh('pool-start', 'guests')
        self.addCleanup(self.libvirtd.virsh, 'pool-destroy', 'guests')

    def test_c2_disk_of_a_pool(self):
        self.start_pool()
        told = os.statvfs(self.target)
        gib = told.f_frsize * told.f_blocks >> 30
        self.assertGreater(gib, 0)
        for kind in (None, 'lvm', 'rbd'):
            # The folder does not exist, so the size is that of the pool.
            self.agent.configure({'DEFAULT': {'instances_path': self.target / 'nowhere',
                                              'reserved_host_disk_mb': 1025},
                                  'libvirt': {'images_storage_pool': 'guests',
                                              'images_type': kind}})
            tree, _ = self.run_once()
            record = tree['compute-1']['inventories']['DISK_GB']
            self.assertEqual((record['total'], record['reserved']), (gib, 2), kind)

    def test_c2_a_pool_that_is_not_started_or_not_there(self):
        for name, words in (('guests', 'the pool is not active'), ('nobody', 'Cannot find')):
            self.agent.configure({'libvirt': {'images_storage_pool': name}})
            done = self.agent.run('--once', code=1)
            self.assertIn(words, done.stderr)
            self.assertIn('images_storage_pool = ' + name, done.stderr)

    def test_c2_a_kind_of_images_that_needs_a_pool(self):
        self.agent.configure({'libvirt': {'images_type': 'lvm'}})
        done = self.agent.run('--once')
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('images_storage_pool', done.stderr)


class TestInstancesPath(DeviceCase):
    """[DEFAULT] instances_path: DISK_GB stays while the file system is away for a moment."""

    @staticmethod
    def make_host():
        return simple_host()

    def disk(self):
        tree = self.placement.tree_by_name(self.agent.root())
        return tree['compute-1']['inventories'].get('DISK_GB')

    def test_disk_of_a_folder_that_is_away_stays_and_is_said(self):
        folder = self.scratch.folder('instances')
        away = folder.with_name('away')
        self.agent.configure({'DEFAULT': {'instances_path': folder}})
        tree, _ = self.run_once()
        before = tree['compute-1']['inventories']['DISK_GB']
        folder.rename(away)
        for _ in range(2):
            done = self.agent.run('--once', code=1)
            self.assertIn('instances_path: %s: No such file or directory; DISK_GB stays unchanged'
                          % folder, done.stderr)
            self.assertEqual(self.disk()['total'], before['total'])
        away.rename(folder)
        self.run_once()
        self.assertEqual(self.disk()['total'], before['total'])

    def test_a_host_that_never_had_the_folder(self):
        self.agent.configure({'DEFAULT': {'instances_path': self.scratch.path / 'nowhere'}})
        self.run_once()
        self.assertIsNone(self.disk())


class TestMisplacedGuests(DeviceCase):
    """Guests whose pins do not fit the configured CPUs."""

    count = 490

    @staticmethod
    def make_host():
        return simple_host()

    def virsh_each(self, command):
        """Runs the command for all guests in one virsh."""
        self.libvirtd.virsh('; '.join(command % number for number in range(self.count)), timeout=120)

    def test_490_of_them_are_two_warnings(self):
        folder = self.scratch.folder('guests')
        for number in range(self.count):
            pinned = "<cputune><vcpupin vcpu='0' cpuset='0'/></cputune>" if number % 2 else ''
            (folder / ('%d.xml' % number)).write_text(guest_xml('g%d' % number, extra=pinned))
        self.addCleanup(self.virsh_each, 'undefine g%d')
        self.virsh_each('define %s/%%d.xml' % folder)
        self.agent.configure({'DEFAULT': {'instances_path': folder},
                              'compute': {'cpu_shared_set': '0-1', 'cpu_dedicated_set': '2-3'}})
        done = self.agent.ctl('doctor', '--hardware-only', '-c', self.agent.config, '--json=short', code=4)
        told = [finding['text'].partition(': ')[2] for finding in json.loads(done.stdout)['findings'] if 'guests' in finding['text']]
        self.assertEqual(len(told), 2, told)
        self.assertRegex(told[0], r'^245 guests \(g\d+, g\d+, g\d+, g\d+, g\d+, …\) are pinned to CPUs that are not in the set')
        self.assertRegex(told[1], r'^245 guests \(.*, …\) are not pinned and can run on dedicated CPUs')


MANY = 250000
METADATA = "<metadata><x:all xmlns:x='urn:example'>%s</x:all></metadata>"
STRINGS = "<sysinfo type='smbios'><oemStrings>%s</oemStrings></sysinfo>"


class TestParts(DeviceCase):
    """If a part of the host cannot be read, the agent names it and publishes the rest."""

    @staticmethod
    def make_host():
        return simple_host(cells=1, gpus=1)

    def define(self, name, extra):
        self.libvirtd.define(guest_xml(name, extra=extra))
        self.addCleanup(self.libvirtd.virsh, 'undefine', name)

    def start(self, **options):
        self.agent.bus = self.bus
        self.configure(enabled_mdev_types='nvidia-35', **options)
        self.agent.start()

    def findings(self, check):
        return [finding for finding in self.agent.ctl_json('doctor', check=False)['findings'] if finding['check'] == check]

    def test_metadata_of_a_domain_is_not_read(self):
        self.define('noted', METADATA % ("<x:y/>" * MANY))
        self.start()
        self.agent.wait_state('synced')
        guests = self.agent.ctl_json('discover')['domains']
        self.assertEqual([guest['name'] for guest in guests], ['noted'])

    def test_a_domain_that_cannot_be_read(self):
        # This is longer than libvirt sends.
        self.define('long', STRINGS % ("<entry>a</entry>" * 200000))
        self.define('short', '')
        self.start()
        self.agent.wait_state('stale')
        status = self.agent.status()
        self.assertIn('Guest long', status['host_unread'])
        self.assertIn('cannot be read', status['sync_error'])
        self.assertIn('A part of this host could not be read: Guest long', self.agent.log())
        self.assertEqual(len(self.findings('host')), 1)
        tree = self.placement.tree_by_name(self.agent.root())
        self.assertEqual(tree['compute-1']['inventories']['VCPU']['total'],
                         len(self.host.cells[0].cpus))
        self.assertEqual([claim['consumer'] for claim in self.agent.claims()],
                         [self.libvirtd.virsh('domuuid', 'short').strip()])
        # The unread guest can have any mdev.
        done = self.agent.ctl('claim', '--consumer=5d0b6c3e-8a53-4c0f-9d62-3a1d7b6b4e09', '--resources=VGPU=1',
                              check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('cannot read guest long', done.stderr)
        # A claim has the devices of its guest, also while a migration has the claim.
        guest = self.libvirtd.virsh('domuuid', 'long').strip()
        self.agent.ctl('claim', '--consumer', guest, '--resources=VCPU=1')
        self.agent.ctl('claim', '--consumer=5d0b6c3e-8a53-4c0f-9d62-3a1d7b6b4e09', '--resources=VGPU=1')
        self.agent.ctl('move', guest, '5d0b6c3e-8a53-4c0f-9d62-3a1d7b6b4e0a')
        self.agent.ctl('claim', '--consumer=5d0b6c3e-8a53-4c0f-9d62-3a1d7b6b4e0b', '--resources=VGPU=1')
        self.libvirtd.define(guest_xml('long', uuid=guest))
        self.agent.wait_state('synced')
        self.assertEqual(self.agent.status()['host_unread'], '')

    def test_a_call_refused_to_readers_is_a_finding_and_its_values_stay(self):
        self.start()
        self.agent.wait_state('synced')
        before = set(self.placement.tree_by_name(self.agent.root())['compute-1']['traits'])
        self.assertGreater(len(before), 30)
        self.agent.configure({'libvirt': {'connection_uri': self.libvirtd.uri_readonly}})
        self.agent.ctl('reload', check=False)
        self.agent.wait_state('stale')
        self.assertIn('read-only', self.agent.status()['host_unread'])
        self.assertIn('read-only', self.findings('host')[0]['text'])
        self.assertEqual(set(self.placement.tree_by_name(self.agent.root())['compute-1']['traits']),
                         before)

    def test_more_reserved_than_there_is(self):
        self.agent.configure({'DEFAULT': {'reserved_host_memory_mb': 1 << 30}})
        tree, said = self.run_once(1)
        self.assertIn('reserved_host_memory_mb reserves', said)
        root = tree['compute-1']['inventories']
        self.assertEqual(root['MEMORY_MB']['reserved'], root['MEMORY_MB']['total'])
        self.assertEqual(root['VCPU']['reserved'], 0)

    def test_all_that_is_bad_is_named_at_once(self):
        """A report of only the first error would cost the operator one restart for each error."""
        for name in ('long-1', 'long-2'):
            self.define(name, STRINGS % ("<entry>a</entry>" * 200000))
        self.agent.configure({'DEFAULT': {'reserved_host_memory_mb': 1 << 30, 'reserved_host_disk_mb': 2147483647},
                              'compute': {'cpu_shared_set': '0,4711'}})
        _, said = self.run_once(1)
        guests = 'Guest long-1', 'Guest long-2'
        for words in guests:
            self.assertIn('could not be read: ' + words, said)
        last = said.strip().splitlines()[-1]
        for words in ('reserved_host_memory_mb reserves', 'reserved_host_disk_mb reserves', 'cpu_shared_set names CPU 4711'):
            self.assertIn(words, last)
        self.agent.configure({'DEFAULT': {'reserved_host_memory_mb': None, 'reserved_host_disk_mb': None},
                              'compute': {'cpu_shared_set': None}})
        last = self.run_once(1)[1].strip().splitlines()[-1]
        for words in guests:
            self.assertIn(words, last)

    def test_capabilities_without_machine_types(self):
        """Containers have no machine types. The agent gets QEMU's capabilities without them, and publishes the same tree."""
        before, _ = self.run_once()
        cut = self.scratch.path / 'cut'
        self.agent.preload('no-machine', NO_MACHINE_SHIM=str(cut))
        after, said = self.run_once()
        self.assertNotIn('could not be read', said)
        self.assertGreater(cut.stat().st_size, 10)
        for tree in (before, after):
            for provider in tree.values():
                provider.pop('generation')
        self.assertEqual(after, before)


class TestEncryptedMemory(DeviceCase):
    """A recorded host with made-up domain capabilities, because no test machine has SEV."""

    @staticmethod
    def make_host():
        return simple_host()

    def record(self, **capabilities):
        """Makes the static driver read this host, with these capabilities in place of those of its emulators."""
        self.agent.configure({'DEFAULT': {'compute_driver': None}, 'static': {'path': None}})
        told = self.agent.ctl_json('discover', '--config', self.agent.config)
        for emulator in told['emulators']:
            emulator.update(sev=False, sev_es=False, sev_snp=False)
            emulator.update(capabilities)
        self.agent.record(told)
        self.agent.configure({'DEFAULT': {'compute_driver': 'static'}})

    def test_c6_models_come_and_go(self):
        cases = (
            ({}, {}),
            ({'sev': True, 'sev_max_guests': 15}, {'sev': 15}),
            ({'sev': True, 'sev_max_guests': 15, 'sev_es': True, 'sev_es_max_guests': 5},
             {'sev': 15, 'sev_es': 5}),
            # SNP replaces ES.
            ({'sev': True, 'sev_max_guests': 15, 'sev_es': True, 'sev_snp': True,
              'sev_es_max_guests': 5}, {'sev': 15, 'sev_snp': 5}),
            ({}, {}))
        for capabilities, models in cases:
            self.record(**capabilities)
            tree, _ = self.run_once()
            self.assertEqual(self.devices(tree), {
                'compute-1_amd_' + model: {'MEM_ENCRYPTION_CONTEXT': total}
                for model, total in models.items()}, capabilities)
            for model in models:
                # An older Placement knows only the first of the three names.
                self.assertIn(set(tree['compute-1_amd_' + model]['traits']) - {'OWNER_NOVA'},
                              ({'HW_CPU_X86_AMD_' + model.upper()},
                               *([set()] if model != 'sev' else [])))


class TestSettling(DeviceCase):
    """[agent] device_settle_sec: the time that the first publish waits for devices (pain 2)."""

    @staticmethod
    def make_host():
        return simple_host(cells=1, gpus=2)

    def setUp(self):
        super().setUp()
        self.agent.bus = self.bus
        self.configure(enabled_mdev_types='nvidia-35')
        self.run_once()
        self.agent.reboot()
        self.gpu = next(gpu for gpu in self.host.gpus if gpu.address == GPU)
        self.libvirtd.remove_device(GPU)
        self.plugged = False
        self.addCleanup(self.plug)

    def plug(self):
        if not self.plugged:
            self.libvirtd.plug_device(self.gpu)
        self.plugged = True

    def inventory(self):
        record = self.placement.tree_by_name(self.agent.root())[GPU_NAME]['inventories']['VGPU']
        return record['total'], record['reserved']

    def test_a_device_that_comes_in_time_is_never_withheld(self):
        mark = self.placement.mark()
        self.agent.configure({'agent': {'device_settle_sec': 3600}})
        self.agent.start()
        first = self.agent.status()['last_poll_usec']
        wait_until(lambda: self.agent.status()['last_poll_usec'] > first, 30, 'another poll')
        self.assertEqual(self.agent.status()['sync_state'], 'pending')
        self.assertEqual(self.placement.writes_since(mark), [])
        self.plug()
        self.agent.wait_state('synced')
        self.assertEqual(self.inventory(), (4, 0))
        self.assertEqual(self.placement.writes_since(mark), [])

    def test_sync_fails_at_its_time_limit_and_names_the_device(self):
        self.agent.configure({'agent': {'device_settle_sec': 3600}})
        self.agent.start()
        words = 'waiting for device %s \\(3[0-9]{3} s left\\)' % GPU_NAME
        done = self.agent.ctl('sync', '--timeout', 2, code=1)
        self.assertRegex(done.stderr, 'Sync failed: Not published within 2 s. Not published yet: ' + words)
        answer = json.loads(self.agent.ctl('sync', '--timeout', 2, '--json=short', code=1).stdout)
        self.assertIs(answer['published'], False)
        self.assertRegex(answer['error'], words)
        self.assertRegex(self.agent.ctl('status', check=False).stdout, words)
        self.assertRegex(self.agent.ctl('doctor', '--all', check=False).stdout, words)
        self.assertRegex(self.agent.ctl('reshape', code=1).stderr, words)
        self.assertRegex(self.agent.ctl('heal', code=1).stderr, words)
        for wrong in ('0', '-1', 'x', '99999999'):
            self.assertIn('--timeout must be 1 to 86400 seconds', self.agent.ctl('sync', '--timeout=' + wrong, code=2).stderr)

    def test_sync_names_no_time_limit_if_the_agent_stops(self):
        self.agent.configure({'agent': {'device_settle_sec': 3600}})
        self.agent.start()
        first = self.agent.status()['last_poll_usec']
        with self.agent.begin('sync', '--timeout', 3600) as sync:
            wait_until(lambda: self.agent.status()['last_poll_usec'] > first, 30, 'the poll of the call')
            self.agent.kill()
            words = sync.communicate(timeout=30)[1]
        self.assertEqual(sync.returncode, 1)
        self.assertNotIn('Not published within', words)

    def test_sync_waits_until_a_device_was_waited_for(self):
        mark = self.placement.mark()
        self.agent.configure({'agent': {'device_settle_sec': 5}})
        self.agent.start()
        answer = json.loads(self.agent.ctl('sync', '--json=short').stdout)
        self.assertEqual(answer, {'published': True, 'error': ''})
        self.assertEqual(self.inventory(), (4, 4))
        self.assertNotEqual(self.placement.writes_since(mark), [])

    def test_a_device_that_does_not_come_is_withheld_then(self):
        self.agent.configure({'agent': {'device_settle_sec': 4}})
        began = time.monotonic()
        self.agent.start()
        wait_until(lambda: self.inventory() == (4, 4), 60, 'the GPU to be withheld')
        self.assertGreaterEqual(time.monotonic() - began, 3.5)
