# SPDX-License-Identifier: LGPL-2.1-or-later
"""The providers of PCI devices and GPUs in a real Placement: devices that come, go and change their configuration.

The IDs (F5, C7, ...) are those of the facts that the tests follow.
"""

import json
import subprocess

from tests.env.agent import Agent, build_folder
from tests.env.case import EnvCase
from tests.env.fakesys import (Gpu, Host, Pci, m10_types, set_vgpu, simple_host, sriov,
                               vgpu_card)
from tests.env.libvirtd import guest_xml
from tests.env.scratch import wait_until

MANAGED = {'OWNER_NOVA', 'COMPUTE_MANAGED_PCI_DEVICE'}
CARD, CARD_NAME = '0000:8a:00.0', 'compute-1_0000:8A:00.0'
T4, T4_NAME = '0000:c1:00.0', 'compute-1_0000:C1:00.0'
MDEV_A = '2a1f4b9e-6c41-4f0b-9a53-8f8f0f6c1d01'
MDEV_B = '2a1f4b9e-6c41-4f0b-9a53-8f8f0f6c1d02'


def spec(**keys):
    return json.dumps(keys)


class DeviceCase(EnvCase):
    """One libvirtd for each class, and a new Placement and agent for each test."""

    shared = ('host', 'libvirtd')

    def setUp(self):
        self.agent = Agent(self.scratch, self.placement, self.libvirtd.uri)

    def configure(self, *specs, report='true', **devices):
        self.agent.configure({'pci': {'device_spec': list(specs), 'report_in_placement': report},
                              'devices': devices})

    def run_once(self, code=0):
        """Runs one cycle, and returns the tree by names and the output of the agent."""
        done = self.agent.run('--once', code=code)
        return self.placement.tree_by_name(self.agent.root()), done.stderr

    def devices(self, tree):
        """Returns {name: {class: total}} of all providers except the root."""
        return {name: {rc: record['total'] for rc, record in provider['inventories'].items()}
                for name, provider in tree.items() if name != 'compute-1'}

    def guest(self, address):
        """Defines a guest with this device until the test ends."""
        self.libvirtd.define(guest_xml('guest', devices=[address]))
        self.addCleanup(self.libvirtd.virsh, 'undefine', 'guest', check=False)


class TestRemoteManaged(DeviceCase):
    """A card with two VFs. The first one shows the serial number of the card."""

    @staticmethod
    def make_host():
        card = sriov(CARD, 2)
        card[1].serial = 'MT1234X00001'
        return Host(cells=simple_host().cells, pci=card)

    def test_a9_the_trait_is_there_with_a_port_that_is(self):
        """Nova's tracker keeps the trait if a function matches that the driver would offer as remote-managed."""
        cases = [(spec(address='0000:8a:01.0', remote_managed='true'), True, {'CUSTOM_PCI_8086_154C': 1}),
                 (spec(address='0000:8a:01.1', remote_managed='true'), False, None),
                 (spec(address='0000:8a:01.0'), False, {'CUSTOM_PCI_8086_154C': 1}),
                 (spec(product_id='154c', remote_managed='true'), True, {'CUSTOM_PCI_8086_154C': 1})]
        for device_spec, on, told in cases:
            with self.subTest(device_spec):
                self.configure(device_spec)
                tree, _ = self.run_once()
                self.assertEqual('COMPUTE_REMOTE_MANAGED_PORTS' in tree['compute-1']['traits'], on)
                self.assertEqual(self.devices(tree), {CARD_NAME: told} if told else {})


class TestPci(DeviceCase):
    """A network card with 64 VFs and a T4."""

    @staticmethod
    def make_host():
        host = simple_host(cells=2)
        return Host(cells=host.cells, pci=[
            *sriov(CARD, 64, numa_node=1),
            Pci(T4, 0, vendor=0x10de, device=0x1eb8, pci_class=0x030200, driver='nvidia')])

    def test_f5_pf_with_64_vfs_and_a_pci_device(self):
        self.configure(spec(product_id='154c', resource_class='vf', traits='blue,HW_NIC_SRIOV'),
                       spec(vendor_id='10de'))
        tree, _ = self.run_once()
        self.assertEqual(self.devices(tree), {CARD_NAME: {'CUSTOM_VF': 64},
                                              T4_NAME: {'CUSTOM_PCI_10DE_1EB8': 1}})
        card = tree[CARD_NAME]
        self.assertEqual(set(card['traits']), MANAGED | {'CUSTOM_BLUE', 'HW_NIC_SRIOV'})
        record = card['inventories']['CUSTOM_VF']
        self.assertEqual((record['max_unit'], record['reserved'], record['allocation_ratio']),
                         (64, 0, 1.0))
        mark = self.placement.mark()
        self.run_once()
        self.assertEqual(self.placement.writes_since(mark), [])

    def test_f5_pf(self):
        self.configure(spec(address=CARD, product_id='1572'))
        self.assertEqual(self.devices(self.run_once()[0]), {CARD_NAME: {'CUSTOM_PCI_8086_1572': 1}})

    def test_f5_classes_standard_and_normalised(self):
        self.configure(spec(product_id='1eb8', resource_class='pgpu'),
                       spec(address={'bus': '8a', 'slot': '0[1-2]'}, resource_class='My VF'))
        self.assertEqual(self.devices(self.run_once()[0]),
                         {CARD_NAME: {'CUSTOM_MY_VF': 16}, T4_NAME: {'PGPU': 1}})

    def test_f5_physical_networks_are_ignored(self):
        self.configure(spec(product_id='154c', physical_network='physnet0'))
        self.assertEqual(self.devices(self.run_once()[0]), {})

    def test_f5_disabled_reports_nothing(self):
        self.configure(spec(product_id='154c'), report='false')
        self.assertEqual(self.devices(self.run_once()[0]), {})

    def test_f5_cannot_be_disabled_after_enabling(self):
        self.configure(spec(vendor_id='10de'))
        self.run_once()
        self.configure(spec(vendor_id='10de'), report='false')
        tree, words = self.run_once(code=1)
        self.assertIn('report_in_placement is false', words)
        self.assertEqual(self.devices(tree), {T4_NAME: {'CUSTOM_PCI_10DE_1EB8': 1}})

    def test_f5_devname_is_refused_before_anything_starts(self):
        self.configure(spec(devname='eth0'))
        done = self.agent.run('--once', code=78)
        self.assertIn('needs an address instead of a name', done.stderr)

    def test_c7_refused_configurations_cost_one_card_only(self):
        for words, specs in (
                ('both match', [spec(vendor_id='8086')]),
                ('has the resource class', [spec(address='8a:01.0', resource_class='a'),
                                            spec(address='8a:02.0', resource_class='b')]),
                ('the traits of', [spec(address='8a:01.0', traits='a', resource_class='x'),
                                   spec(address='8a:02.0', traits='b', resource_class='x')])):
            with self.subTest(words):
                self.configure(*specs, spec(vendor_id='10de'))
                tree, said = self.run_once(code=1)
                self.assertIn(words, said)
                self.assertEqual(self.devices(tree), {T4_NAME: {'CUSTOM_PCI_10DE_1EB8': 1}})

    def test_f5_reconfiguration(self):
        vfs, pf = spec(product_id='154c'), spec(product_id='1572')
        for specs, expected in (([vfs], {CARD_NAME: {'CUSTOM_PCI_8086_154C': 64}}),
                                ([pf], {CARD_NAME: {'CUSTOM_PCI_8086_1572': 1}}),
                                ([vfs], {CARD_NAME: {'CUSTOM_PCI_8086_154C': 64}}),
                                ([spec(address='8a:08.7')], {CARD_NAME: {'CUSTOM_PCI_8086_154C': 1}}),
                                ([], {})):
            self.configure(*specs)
            self.assertEqual(self.devices(self.run_once()[0]), expected)

    def test_f5_g4_18_spec_of_a_device_in_use_removed(self):
        self.configure(spec(vendor_id='10de'))
        self.run_once()
        self.guest(T4)
        self.configure()
        self.assertEqual(self.devices(self.run_once()[0]), {T4_NAME: {'CUSTOM_PCI_10DE_1EB8': 1}})
        self.libvirtd.virsh('undefine', 'guest')
        self.assertEqual(self.devices(self.run_once()[0]), {})

    def test_f5_spec_of_an_allocated_device_removed(self):
        """No guest here has the device, but Placement has an allocation of it."""
        self.configure(spec(vendor_id='10de'))
        tree, _ = self.run_once()
        consumer = self.placement.place(None, {tree[T4_NAME]['uuid']: {'CUSTOM_PCI_10DE_1EB8': 1}})
        self.configure()
        tree, words = self.run_once()
        self.assertEqual(self.devices(tree), {T4_NAME: {'CUSTOM_PCI_10DE_1EB8': 1}})
        self.assertEqual(tree[T4_NAME]['inventories']['CUSTOM_PCI_10DE_1EB8']['reserved'], 1)
        self.assertIn(consumer, words)
        self.placement.delete(consumer)
        self.assertEqual(self.devices(self.run_once()[0]), {})

    def test_f5_one_time_use(self):
        self.configure(spec(vendor_id='10de', one_time_use='yes'))
        reserved = lambda tree: tree[T4_NAME]['inventories']['CUSTOM_PCI_10DE_1EB8']['reserved']
        self.assertEqual(reserved(self.run_once()[0]), 0)
        self.guest(T4)
        self.assertEqual(reserved(self.run_once()[0]), 1)
        self.libvirtd.virsh('undefine', 'guest')
        self.assertEqual(reserved(self.run_once()[0]), 1)

    def test_g2_18_what_an_operator_set_survives(self):
        self.configure(spec(product_id='154c'))
        tree, _ = self.run_once()
        card = tree[CARD_NAME]
        record = {**card['inventories']['CUSTOM_PCI_8086_154C'], 'reserved': 3}
        self.placement.set_part(card['uuid'], 'inventories', {'CUSTOM_PCI_8086_154C': record})
        self.configure(spec(address={'bus': '8a', 'slot': '0[1-4]'}))
        record = self.run_once()[0][CARD_NAME]['inventories']['CUSTOM_PCI_8086_154C']
        self.assertEqual((record['total'], record['reserved']), (32, 3))


class TestGpus(DeviceCase):
    """Two GPUs with three types each. The first one has mdevs of two types."""

    @staticmethod
    def make_host():
        host = simple_host(cells=2)
        types = m10_types(small=3, medium=1, large=0, existing=[MDEV_A])
        types['nvidia-36'].existing = [MDEV_B]
        return Host(cells=host.cells, gpus=[Gpu('0000:41:00.0', 0, types=types),
                                            Gpu('0000:81:00.0', 1, types=m10_types())])

    def test_c4_two_gpus_three_types(self):
        names = ['compute-1_pci_0000_41_00_0', 'compute-1_pci_0000_81_00_0']
        for types, totals in (('nvidia-35', [4, 4]), ('nvidia-36', [2, 2]), ('nvidia-37', [0, 1])):
            self.configure(enabled_mdev_types=types)
            expected = {name: {'VGPU': total} for name, total in zip(names, totals) if total}
            self.assertEqual(self.devices(self.run_once()[0]), expected, types)

    def test_c4_f4_a_type_for_each(self):
        self.configure(enabled_mdev_types='nvidia-35,nvidia-36')
        self.agent.configure({'mdev_nvidia-36': {'device_addresses': '0000:81:00.0',
                                                 'mdev_class': 'CUSTOM_BIG'}})
        self.assertEqual(self.devices(self.run_once()[0]),
                         {'compute-1_pci_0000_41_00_0': {'VGPU': 4},
                          'compute-1_pci_0000_81_00_0': {'CUSTOM_BIG': 2}})

    def test_g2_6_max_instances_never_below_what_exists(self):
        self.configure(enabled_mdev_types='nvidia-35')
        for most, totals in ((5, [4, 1]), (2, [2, None]), (1, [1, None])):
            self.agent.configure({'mdev_nvidia-35': {'max_instances': most}})
            expected = {name: {'VGPU': total} for name, total in zip(
                ('compute-1_pci_0000_41_00_0', 'compute-1_pci_0000_81_00_0'), totals) if total}
            self.assertEqual(self.devices(self.run_once()[0]), expected, most)


class TestManaged(DeviceCase):
    """The key "managed" of [pci] device_spec: it says whether libvirt detaches a device from its driver for a guest."""

    @staticmethod
    def make_host():
        host = simple_host()
        host.pci = [Pci(T4, 0, 0x10de, 0x1eb8, 0x030200, 'vfio-pci')]
        return host

    def test_claim_tells_libvirt(self):
        self.agent.bus = self.bus
        for number, (managed, words) in enumerate(((None, 'yes'), ('yes', 'yes'), ('no', 'no'))):
            keys = {'managed': managed} if managed else {}
            self.configure(spec(vendor_id='10de', resource_class='gpu', **keys))
            if number == 0:
                self.agent.start()
            else:
                self.agent.ctl('reload')
            self.agent.wait_state('synced')
            consumer = '5d0b6c3e-8a53-4c0f-9d62-3a1d7b6b4e0%d' % number
            done = self.agent.ctl('claim', '--consumer', consumer, '--resources=CUSTOM_GPU=1', '--xml')
            self.assertIn("<hostdev mode='subsystem' type='pci' managed='%s'>" % words, done.stdout)
            claim, = self.agent.claims()
            self.agent.ctl('release', claim['id'])


class TestVgpuFunctions(DeviceCase):
    """An NVIDIA GPU whose VFs become vGPUs without mdevs. The programs see libvirtd's /sys."""

    TYPES = {1155: 'NVIDIA L40S-1B', 1156: 'NVIDIA L40S-2B', 1436: 'NVIDIA L40S-48Q'}
    CARD = 'compute-1_pci_0000_41_00_0'

    @staticmethod
    def make_host():
        return Host(cells=simple_host(cells=2).cells,
                    pci=vgpu_card('0000:41:00.0', 3, TestVgpuFunctions.TYPES, numa_node=1))

    def setUp(self):
        super().setUp()
        # The programs also need its /proc. computectl finds its helper there, and a sanitizer finds its program.
        self.agent.within = self.libvirtd.enter('-m', '-p')
        for number in range(3):
            self.set(number, self.TYPES)

    def set(self, number, creatable, current=0):
        set_vgpu(self.libvirtd.sys, '0000:41:01.%d' % number, creatable, current)

    def test_c4_functions_that_become_vgpus(self):
        self.configure(enabled_mdev_types='nvidia-1155')
        tree, _ = self.run_once()
        self.assertEqual(self.devices(tree), {self.CARD: {'VGPU': 3}})
        uuid = tree[self.CARD]['uuid']
        # A vGPU is created, and Placement does not change.
        self.set(0, {}, 1155)
        mark = self.placement.mark()
        self.run_once()
        self.assertEqual(self.placement.writes_since(mark), [])
        # Another function becomes a vGPU of another type, and the GPU can create no more of the configured type.
        self.set(1, {}, 1156)
        self.set(2, {1156: 'NVIDIA L40S-2B'})
        tree, _ = self.run_once()
        self.assertEqual(self.devices(tree), {self.CARD: {'VGPU': 3}})
        self.assertEqual(tree[self.CARD]['inventories']['VGPU']['reserved'], 2)
        self.assertEqual(tree[self.CARD]['uuid'], uuid)

    def test_g2_6_max_instances(self):
        self.set(1, {}, 1155)
        self.configure(enabled_mdev_types='nvidia-1155')
        for most in (3, 2, 1):
            self.agent.configure({'mdev_nvidia-1155': {'max_instances': most}})
            self.assertEqual(self.devices(self.run_once()[0]), {self.CARD: {'VGPU': most}}, most)

    def test_c7_not_as_a_pci_device_as_well(self):
        self.configure(spec(vendor_id='10de', address='0000:41:01.*'),
                       enabled_mdev_types='nvidia-1155')
        tree, words = self.run_once(code=1)
        self.assertIn('is also a vGPU of [devices] enabled_mdev_types', words)
        self.assertEqual(self.devices(tree), {self.CARD: {'VGPU': 3}})

    def test_a_running_agent_sees_what_is_made(self):
        """The kernel sends no event for this, so the next poll sees it."""
        self.configure(enabled_mdev_types='nvidia-1156')
        self.agent.configure({'DEFAULT': {'update_resources_interval': 1}})
        self.agent.start()

        def reserved():
            provider = self.placement.tree_by_name(self.agent.root()).get(self.CARD, {'inventories': {}})
            return provider['inventories'].get('VGPU', {'reserved': None})['reserved']
        wait_until(lambda: reserved() == 0, 30, 'the provider')
        self.set(2, {}, 1155)
        wait_until(lambda: reserved() == 1, 30, 'the vGPU of another type')
        self.set(2, self.TYPES)
        wait_until(lambda: reserved() == 0, 30, 'the function without a type')

    def test_discover_and_verify(self):
        self.set(0, {}, 1156)
        self.configure(enabled_mdev_types='nvidia-1155,nvidia-9')
        self.agent.configure({'mdev_nvidia-9': {'device_addresses': '0000:41:01.2'}})
        shown = self.agent.ctl('discover', '--config', self.agent.config).stdout
        self.assertRegex(shown, r'nvidia-1155 +1  NVIDIA L40S-1B')
        self.assertRegex(shown, r'nvidia-1156 +0  \(created\)')
        told = self.agent.ctl_json('discover', '--config', self.agent.config)
        device = next(item for item in told['devices'] if item['address'] == '0000:41:01.0')
        self.assertTrue(device['is_vgpu_function'])
        self.assertEqual([(item['id'], item['available_instances'], item['created_instances'])
                          for item in device['mdev_types']], [('nvidia-1156', 0, 1)])
        done = self.agent.ctl('doctor', '--hardware-only', '--all', '--config', self.agent.config, check=False)
        self.assertIn('No device offers nvidia-9', done.stdout)


class TestFixedProfiles(DeviceCase):
    """A GPU of Intel whose functions are equal parts of it: the driver splits the card when sriov_numvfs is written. One class counts them.
    This is also true for AMD, whose driver has no further files."""

    XE, XE_NAME = '0000:03:00.0', 'compute-1_0000:03:00.0'
    FUNCTIONS = ['0000:03:00.%d' % n for n in range(1, 5)]

    @staticmethod
    def pci(address, **more):
        return Pci(address, 0, vendor=0x8086, device=0xe212, pci_class=0x030000, driver='xe', **more)

    @staticmethod
    def make_host():
        return Host(cells=simple_host().cells, pci=[TestFixedProfiles.pci(TestFixedProfiles.XE, total_vfs=7)])

    def setUp(self):
        self.agent = Agent(self.scratch, self.placement, self.libvirtd.uri, self.bus)

    def prepare(self, *args):
        done = subprocess.run([build_folder() / 'compute-agent-prepare', '--config', self.agent.config, '--sys', self.libvirtd.sys,
                               '--run', self.scratch.folder('run'), *args], env=self.agent.env(), capture_output=True, text=True,
                              check=False, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout + done.stderr

    def test_functions_of_a_prepared_card_are_one_class(self):
        self.configure(spec(vendor_id='8086', address={'domain': '0000', 'bus': '03', 'slot': '00', 'function': '[1-7]'},
                            resource_class='CUSTOM_XE_VF', managed='no'))
        self.agent.configure({'device_prepare xe': {'device_addresses': self.XE, 'virtual_functions': 4}})
        self.assertEqual(self.devices(self.run_once()[0]), {})
        self.assertIn('Card %s: 4 virtual functions' % self.XE, self.prepare('--dry-run'))
        self.prepare()
        card = self.libvirtd.sys / 'bus/pci/devices' / self.XE
        self.assertEqual((card / 'sriov_numvfs').read_text(), '4\n')
        # The kernel makes the functions, and has a quota for each.
        for number, address in enumerate(self.FUNCTIONS, 1):
            (card / ('virtfn%d' % (number - 1))).symlink_to('../' + address)
            quota = card / ('sriov_admin/vf%d/profile/vram_quota' % number)
            quota.parent.mkdir(parents=True)
            quota.write_text('%d\n' % (4 << 30))
            self.libvirtd.plug_device(self.pci(address, physfn=self.XE))
        self.assertEqual(self.devices(self.run_once()[0]), {self.XE_NAME: {'CUSTOM_XE_VF': 4}})
        self.agent.start('synced')
        self.agent.claim('CUSTOM_XE_VF=1')
        self.assertEqual(self.agent.ctl_json('show', 1)['devices'][0]['address'], self.FUNCTIONS[0])
        self.assertIn("type='pci' managed='no'", self.agent.ctl('show', 1, '--xml').stdout)
        self.assertIn('CUSTOM_XE_VF', self.agent.ctl('who', self.XE).stdout)
        # The card has its functions, so another run changes nothing.
        self.assertNotIn('Card %s: 4 virtual functions' % self.XE, self.prepare('--dry-run'))


class TestLedger(DeviceCase):
    """Devices that are missing after a reboot, or unplugged (pain 2)."""

    @staticmethod
    def make_host():
        return simple_host(cells=1, gpus=2)

    NAME = 'compute-1_pci_0000_41_00_0'

    def unplug(self):
        """Unplugs a GPU. It is plugged again when the test ends, or before."""
        gpu = next(gpu for gpu in self.host.gpus if gpu.address == '0000:41:00.0')
        self.libvirtd.remove_device(gpu.address)
        self.addCleanup(self.plug, gpu)
        return gpu

    def plug(self, gpu):
        if not (self.libvirtd.sys / 'bus/pci/devices' / gpu.address).exists():
            self.libvirtd.plug_device(gpu)

    def record(self, tree):
        record = tree[self.NAME]['inventories'].get('VGPU')
        return record and (record['total'], record['reserved'])

    def test_missing_after_a_reboot_and_back(self):
        self.configure(enabled_mdev_types='nvidia-35')
        tree, _ = self.run_once()
        uuid = tree[self.NAME]['uuid']
        self.assertEqual(self.record(tree), (4, 0))
        gpu = self.unplug()
        self.agent.reboot()
        tree, words = self.run_once()
        self.assertEqual(self.record(tree), (4, 4))
        self.assertEqual(tree[self.NAME]['uuid'], uuid)
        self.assertIn('Device %s is missing' % self.NAME, words)
        mark = self.placement.mark()
        self.assertNotIn('is missing', self.run_once()[1])
        self.assertEqual(self.placement.writes_since(mark), [])
        self.plug(gpu)
        tree, words = self.run_once()
        self.assertEqual(self.record(tree), (4, 0))
        self.assertIn('is back', words)

    def test_unplugged_and_plugged_by_udev(self):
        self.configure(enabled_mdev_types='nvidia-35')
        self.agent.configure({'agent': {'device_hold_sec': 0}})
        self.assertEqual(len(self.devices(self.run_once()[0])), 2)
        self.agent.start()
        told = lambda: self.devices(self.placement.tree_by_name(self.agent.root()))
        other = {'compute-1_pci_0000_42_00_0': {'VGPU': 4}}
        gpu = self.unplug()
        path = '/resource_providers?in_tree=' + self.agent.root()
        wait_until(lambda: len(self.placement.get(path)['resource_providers']) == 2, 20,
                   'the provider to go')
        self.assertEqual(told(), other)
        self.plug(gpu)
        wait_until(lambda: told() == {self.NAME: {'VGPU': 4}, **other}, 20, 'it to come back')

    def start_held(self, hold):
        """Starts a daemon that polls only after an event or a request."""
        self.configure(enabled_mdev_types='nvidia-35')
        self.agent.configure({'DEFAULT': {'update_resources_interval': -1},
                              'agent': {'device_hold_sec': hold}})
        self.agent.bus = self.bus
        self.agent.start('synced')

    def end_hold(self):
        self.agent.configure({'agent': {'device_hold_sec': 1}})
        self.agent.ctl('reload')
        self.wait_told((4, 0))

    def told(self):
        """Returns (total, reserved) of the GPU in Placement, or None."""
        path = '/resource_providers'
        found = self.placement.get('%s?in_tree=%s' % (path, self.agent.root()))[path[1:]]
        uuids = [provider['uuid'] for provider in found if provider['name'] == self.NAME]
        inventories = uuids and self.placement.get('%s/%s/inventories' % (path, uuids[0]))
        return self.record({self.NAME: inventories}) if inventories else None

    def wait_told(self, expected):
        wait_until(lambda: self.told() == expected, 60, '%s of the GPU' % (expected,), step=0.1)

    def test_pain_9_a_device_that_comes_and_goes(self):
        """Several losses cause two writes in all, and the device is not offered between them."""
        self.start_held(600)
        uuid = self.placement.tree_by_name(self.agent.root())[self.NAME]['uuid']
        mark = self.placement.mark()
        for _ in range(3):
            gpu = self.unplug()
            self.agent.ctl('sync')
            self.assertEqual(self.told(), (4, 4))
            self.agent.ctl('claim', '--consumer', uuid, '--group', '_G:VGPU=1', '--mapping', '_G=' + uuid, code=1)
            self.plug(gpu)
            self.agent.ctl('sync')
            self.assertEqual(self.told(), (4, 4))
        self.end_hold()
        writes = self.placement.writes_since(mark)
        self.assertEqual([(method, path.split('/')[2], status) for method, path, status in writes],
                         [('PUT', uuid, 200)] * 2, writes)
        self.assertEqual(self.agent.log().count('%s is missing' % self.NAME), 1)
        self.assertEqual(self.agent.log().count('%s is back' % self.NAME), 1)

    def test_pain_9_a_device_that_stays_away(self):
        """A device stays away, and later it stays long enough to be offered. Only the timer starts these cycles."""
        self.start_held(1)
        gpu = self.unplug()
        self.wait_told((4, 4))
        self.plug(gpu)
        self.wait_told((4, 0))
        gpu = self.unplug()
        self.wait_told((4, 4))
        self.wait_told(None)
        self.plug(gpu)
        self.wait_told((4, 0))

    def test_pain_9_cordoned_while_it_is_away(self):
        """The end of a cordon does not end the withholding of a missing device."""
        self.start_held(600)
        self.agent.ctl('cordon', '0000:41:00.0')
        gpu = self.unplug()
        self.agent.ctl('sync')
        self.agent.ctl('uncordon', '0000:41:00.0')
        for _ in range(2):
            self.agent.ctl('sync')
            self.assertEqual(self.told(), (4, 4))
        self.plug(gpu)
        self.agent.ctl('sync')
        self.assertEqual(self.told(), (4, 4))
        self.end_hold()

    def test_a_corrupt_list_begins_anew(self):
        self.configure(enabled_mdev_types='nvidia-35')
        self.run_once()
        (self.agent.state / 'devices.json').write_text('{"format": 5')
        tree, words = self.run_once()
        self.assertEqual(len(self.devices(tree)), 2)
        self.assertIn('Starting a new list of expected devices', words)
        self.assertTrue((self.agent.state / 'devices.json.corrupt').exists())


class TestProviderYaml(DeviceCase):
    """The contents of provider.yaml, and their place in Placement."""

    @staticmethod
    def make_host():
        return simple_host()

    def write(self, traits, inventories='', target='uuid: $COMPUTE_NODE'):
        folder = self.agent.folder / 'provider_config'
        folder.mkdir(exist_ok=True)
        (folder / 'a.yaml').write_text(
            "meta: {schema_version: '1.0'}\nproviders:\n- identification: {%s}\n"
            "  inventories: {additional: [%s]}\n  traits: {additional: [%s]}\n"
            "- {identification: {name: nobody}, traits: {additional: [CUSTOM_X]}}\n"
            % (target, inventories, traits))
        self.agent.configure({'compute': {'provider_config_location': folder}})

    def test_a12_g2_13_added_and_taken_back(self):
        self.configure()
        self.write('CUSTOM_A, CUSTOM_B', 'CUSTOM_WIDGET: {total: 7, reserved: 1}')
        tree, words = self.run_once()
        self.assertIn('nobody: there is no such provider, ignoring', words)
        root = tree['compute-1']
        self.assertLessEqual({'CUSTOM_A', 'CUSTOM_B'}, set(root['traits']))
        self.assertEqual(root['inventories']['CUSTOM_WIDGET']['reserved'], 1)
        mark = self.placement.mark()
        self.run_once()
        self.assertEqual(self.placement.writes_since(mark), [])
        self.write('CUSTOM_B, CUSTOM_C')
        half = self.agent.folder / 'provider_config/half.yaml'
        half.write_text('meta: {')
        tree, words = self.run_once()
        self.assertIn('provider_config: earlier additions stay until all files can be read', words)
        root = tree['compute-1']
        self.assertLessEqual({'CUSTOM_A', 'CUSTOM_B', 'CUSTOM_C'}, set(root['traits']))
        self.assertEqual(root['inventories']['CUSTOM_WIDGET']['total'], 7)
        half.unlink()
        root = self.run_once()[0]['compute-1']
        self.assertNotIn('CUSTOM_A', root['traits'])
        self.assertIn('CUSTOM_B', root['traits'])
        self.assertIn('OWNER_NOVA', root['traits'])
        self.assertNotIn('CUSTOM_WIDGET', root['inventories'])

    def test_g2_13_a_provider_of_somebody_else(self):
        self.configure()
        self.run_once()
        self.placement.make_provider('agent', parent=self.agent.root())
        self.write('CUSTOM_A', 'CUSTOM_WIDGET: {total: 7}', 'name: agent')
        for _ in range(2):
            tree, words = self.run_once()
            self.assertNotIn('of this class from another source', words)
            self.assertEqual(self.devices(tree), {'agent': {'CUSTOM_WIDGET': 7}})
        self.write('CUSTOM_B', target='name: agent')
        tree, _ = self.run_once()
        self.assertEqual(self.devices(tree), {'agent': {}})
        self.assertEqual(set(tree['agent']['traits']), {'CUSTOM_B', 'OWNER_NOVA'})
