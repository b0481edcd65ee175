# SPDX-License-Identifier: LGPL-2.1-or-later
"""Inventory that is in use and vanishes from the host is withheld, reported and offered again, with libvirt and with plain Linux.

A device that offers nothing with an unchanged configuration is missing. A device that the configuration no longer names is not
missing.
"""

import json
import shutil
import uuid

from tests.env import fakesys, faults
from tests.env.agent import Agent
from tests.env.case import EnvCase
from tests.env.fakesys import Gpu, Host, m10_types, simple_host, sriov
from tests.env.hosts import recorded_host
from tests.env.libvirtd import guest_xml
from tests.env.scratch import wait_until

PF, PF_NAME = '0000:05:00.0', 'compute-1_0000:05:00.0'
VFS = ['0000:05:01.%d' % number for number in range(4)]
GPU, GPU_NAME = '0000:41:00.0', 'compute-1_pci_0000_41_00_0'
VF_SPEC = json.dumps({'product_id': '154c', 'resource_class': 'CUSTOM_VF'})


class VanishCase(EnvCase):
    """An agent that polls only on request. Subclasses choose the driver."""

    def start(self, **options):
        self.metrics = self.scratch.folder('metrics') / 'metrics'
        self.agent.configure({'DEFAULT': {'update_resources_interval': -1},
                              'agent': {'device_hold_sec': 1, 'device_settle_sec': 0, 'metrics_file': self.metrics}, **options})
        self.agent.bus = self.bus
        self.agent.start('synced')

    def cycles(self, number=2):
        for _ in range(number):
            self.agent.ctl('sync', check=False)

    def tree(self):
        return self.placement.tree_by_name(self.agent.root())

    def record(self, name, resource_class):
        """Returns (total, reserved), or None."""
        record = self.tree().get(name, {'inventories': {}})['inventories'].get(resource_class)
        return record and (record['total'], record['reserved'])

    def assert_deletion_is_logged(self, name):
        wait_until(lambda: 'Deleted provider %s (' % name in self.agent.log(), 10, 'the deletion in the journal')

    def wait_record(self, name, resource_class, expected):
        def look():
            self.cycles(1)
            return self.record(name, resource_class) == expected
        wait_until(look, 30, '%s of %s to be %s' % (resource_class, name, expected))

    def candidates(self, resource_class, amount=1):
        found = self.placement.get('/allocation_candidates?resources=%s:%d&in_tree=%s' % (
            resource_class, amount, self.agent.root()))
        return len(found['allocation_requests'])

    def assert_quiet(self, number=3):
        """Checks that more cycles write nothing, and that Placement rejects none of their requests."""
        mark = self.placement.mark()
        self.cycles(number)
        self.assertEqual(self.placement.writes_since(mark), [])
        self.assertEqual(self.refused_since(mark), [])

    def refused_since(self, mark):
        return [line for line in self.placement.requests_since(mark) if 400 <= line[2] < 500]

    def status(self):
        return self.agent.ctl('status', check=False).stdout

    def audit(self):
        return self.agent.ctl('audit', check=False).stdout


class HostCase(VanishCase):
    """A private libvirtd. The driver reads its /sys."""

    driver = 'libvirt'

    def begin(self, **options):
        self.agent = Agent(self.scratch, self.placement, self.libvirtd.uri, within=self.libvirtd.enter('-m', '-u', '-p'))
        self.agent.configure({'DEFAULT': {'compute_driver': self.driver}})
        self.start(**options)

    def claim(self, resource_class):
        consumer = str(uuid.uuid4())
        self.agent.claim('MEMORY_MB=64', consumer, '--group', 'g:%s=1' % resource_class)
        return consumer


class TestFunctions(HostCase):
    """A card with four VFs. device_spec matches only these."""

    PCI = {'pci': {'device_spec': [VF_SPEC], 'report_in_placement': 'true'}}

    @staticmethod
    def make_host():
        return Host(cells=simple_host().cells, pci=sriov(PF, 4))

    def remove_functions(self, addresses=VFS):
        """Removes functions, as a write of 0 to sriov_numvfs does, and returns them."""
        gone = [device for device in self.host.pci if device.address in addresses]
        for address in addresses:
            self.libvirtd.remove_device(address)
        return gone

    def test_functions_that_vanish_while_a_guest_has_one(self):
        self.begin(**self.PCI)
        card = self.tree()[PF_NAME]
        record = {**card['inventories']['CUSTOM_VF'], 'reserved': 1, 'allocation_ratio': 2.0}
        self.placement.set_part(card['uuid'], 'inventories', {'CUSTOM_VF': record})
        consumer = self.claim('CUSTOM_VF')
        if self.driver == 'libvirt':
            self.libvirtd.define(guest_xml('g1', memory_mib=64, uuid=consumer, devices=[VFS[0]]))
        self.cycles()
        mark = self.placement.mark()
        gone = self.remove_functions()
        self.cycles()
        self.assertEqual(self.record(PF_NAME, 'CUSTOM_VF'), (4, 4), self.agent.log()[-2000:])
        self.assertEqual(self.refused_since(mark), [])
        self.assertEqual(self.candidates('CUSTOM_VF'), 0)
        refused = self.agent.claim('CUSTOM_VF=1', check=False)
        self.assertNotEqual(refused.returncode, 0, refused.stdout)
        self.assert_quiet()
        said = self.status()
        self.assertIn('%s is missing' % PF_NAME, said)
        self.assertIn('guest g1' if self.driver == 'libvirt' else consumer, said)
        self.assertIn('0000:05:01.', ' '.join(self.agent.problems()))
        self.assertRegex(self.audit(), 'g1.*has PCI device %s, which' % VFS[0] if self.driver == 'libvirt'
                         else '%s has PCI device' % consumer)
        for device in gone:
            self.libvirtd.plug_device(device)
        self.wait_record(PF_NAME, 'CUSTOM_VF', (4, 1))
        self.assertEqual(self.tree()[PF_NAME]['inventories']['CUSTOM_VF']['allocation_ratio'], 2.0)
        self.assertNotIn('is missing', self.status())

    def test_one_function_of_several_vanishes(self):
        """The card offers the other functions, and the agent names the guest."""
        self.begin(**self.PCI)
        consumer = self.claim('CUSTOM_VF')
        self.libvirtd.define(guest_xml('g1', memory_mib=64, uuid=consumer, devices=[VFS[0]]))
        self.cycles()
        self.remove_functions([VFS[0]])
        self.cycles()
        self.assertEqual(self.record(PF_NAME, 'CUSTOM_VF'), (3, 0))
        self.assertIn('PCI device %s of guest g1 is no longer on this host' % VFS[0], self.agent.problems())
        self.assertIn('guest g1', self.audit())

    def test_a_changed_device_spec_ends_it(self):
        """Allocated inventory stays, with all of it reserved, until it is free. The other inventory is removed at once. All of it
        returns with its earlier values."""
        self.begin(**self.PCI)
        card = self.tree()[PF_NAME]
        record = {**card['inventories']['CUSTOM_VF'], 'reserved': 1}
        self.placement.set_part(card['uuid'], 'inventories', {'CUSTOM_VF': record})
        consumer = self.placement.place(None, {card['uuid']: {'CUSTOM_VF': 1}})
        self.agent.configure({'pci': {'device_spec': None}})
        mark = self.placement.mark()
        self.agent.ctl('reload')
        self.wait_record(PF_NAME, 'CUSTOM_VF', (4, 4))
        self.assertEqual(self.refused_since(mark), [])
        self.assertIn('CUSTOM_VF of %s (1 used by consumer %s)' % (PF_NAME, consumer), self.status())
        self.assertNotIn('is missing', self.status())
        self.assert_quiet()
        self.agent.configure(self.PCI)
        self.agent.ctl('reload')
        self.wait_record(PF_NAME, 'CUSTOM_VF', (4, 1))
        self.agent.configure({'pci': {'device_spec': None}})
        self.agent.ctl('reload')
        self.wait_record(PF_NAME, 'CUSTOM_VF', (4, 4))
        self.placement.delete(consumer)
        self.cycles(1)
        self.assertIsNone(self.record(PF_NAME, 'CUSTOM_VF'))
        self.assertRegex(self.agent.log(), 'No consumer in Placement has CUSTOM_VF of %s' % PF_NAME)


class TestFunctionsLinux(TestFunctions):
    """The same without libvirt. A claim then has no guest."""

    driver = 'linux'

    def test_one_function_of_several_vanishes(self):
        self.begin(**self.PCI)
        consumer = self.claim('CUSTOM_VF')
        self.remove_functions([VFS[0]])
        self.cycles()
        self.assertEqual(self.record(PF_NAME, 'CUSTOM_VF'), (3, 0))
        self.assertIn('names PCI device %s, which this host does not list' % VFS[0], ' '.join(self.agent.problems()))
        self.assertIn('of %s has PCI device %s, which' % (consumer, VFS[0]), self.audit())


class TestTypes(HostCase):
    """A GPU with mdev types."""

    @staticmethod
    def make_host():
        return Host(cells=simple_host().cells, gpus=[Gpu(GPU, types=m10_types())])

    def types(self):
        return self.libvirtd.sys / 'bus/pci/devices' / GPU / 'mdev_supported_types'

    def stop_offering(self):
        """Stops the offers of the GPU, and returns a function that undoes this."""
        aside = self.scratch.folder('aside') / 'types'
        if self.driver == 'libvirt':  # the vGPU manager crashed
            shutil.copytree(self.types(), aside, symlinks=True)
            shutil.rmtree(self.types())
            return lambda: shutil.copytree(aside, self.types(), symlinks=True)
        # A card that fell off the bus. The read fails with EISDIR in place of EIO.
        file = self.types() / 'nvidia-35/available_instances'
        text = file.read_text()
        file.unlink()
        file.mkdir()

        def undo():
            file.rmdir()
            file.write_text(text)
        return undo

    def test_types_that_vanish_are_missing(self):
        self.begin()
        gpu = self.tree()[GPU_NAME]
        self.placement.api('PUT', '/traits/CUSTOM_RACK')
        self.placement.edit(gpu['uuid'], 'traits', lambda traits: traits.append('CUSTOM_RACK'))
        self.cycles()
        mark = self.placement.mark()
        undo = self.stop_offering()
        self.cycles()
        self.assertEqual(self.record(GPU_NAME, 'VGPU'), (4, 4), self.agent.log()[-2000:])
        self.assertIn('CUSTOM_RACK', self.tree()[GPU_NAME]['traits'])
        self.assertEqual(self.refused_since(mark), [])
        self.assertIn('%s (missing: the host lists it without capacity)' % GPU_NAME, self.status())
        self.assertIn('Device %s is missing' % GPU_NAME, self.agent.log())
        self.assertIn('compute_agent_device_up{provider="%s",resource_class="VGPU"} 0' % GPU_NAME, self.metrics.read_text())
        self.assert_quiet()
        undo()
        self.wait_record(GPU_NAME, 'VGPU', (4, 0))
        self.assertIn('CUSTOM_RACK', self.tree()[GPU_NAME]['traits'])

    def test_a_card_that_carries_another_type(self):
        """The card can make no more mdevs of the configured type. Allocated inventory stays until it is free."""
        self.begin()
        consumer = self.claim('VGPU')
        mdev = str(uuid.uuid4())
        self.libvirtd.create_mdev(GPU, 'nvidia-36', mdev)
        mark = self.placement.mark()
        fakesys.set_available(self.libvirtd.sys, GPU, 'nvidia-35', 0)
        self.cycles()
        self.assertEqual(self.record(GPU_NAME, 'VGPU'), (4, 4), self.agent.log()[-2000:])
        self.assertEqual(self.refused_since(mark), [])
        self.assertEqual(self.candidates('VGPU'), 0)
        self.assertIn(consumer, self.status())
        self.assertIn(GPU_NAME, self.audit())
        self.assert_quiet()
        self.agent.release_all()
        self.placement.delete(consumer)
        self.cycles(1)
        self.assertNotIn(GPU_NAME, self.tree())
        self.assert_deletion_is_logged(GPU_NAME)
        self.libvirtd.remove_mdev(mdev)
        fakesys.set_available(self.libvirtd.sys, GPU, 'nvidia-35', 4)
        self.wait_record(GPU_NAME, 'VGPU', (4, 0))


class TestTypesLinux(TestTypes):
    """The same without libvirt. The types exist, and one of them cannot be read."""

    driver = 'linux'


class TestStatic(VanishCase):
    """The static driver: the description of the host loses classes and a GPU."""

    def describe(self, gpus=2, disk=1 << 38):
        devices = [{'name': 'pci_0000_%02x_00_0' % number, 'address': '0000:%02x:00.0' % number, 'mdev_types': [
            {'id': 'nvidia-35', 'name': 'GRID', 'device_api': 'vfio-pci', 'available_instances': 4}]}
            for number in range(0x41, 0x41 + gpus)]
        return recorded_host('compute-1', devices=devices, disk_total_bytes=disk)

    def begin(self, **more):
        self.agent = Agent(self.scratch, self.placement, host=self.describe())
        self.start(devices={'enabled_mdev_types': 'nvidia-35'}, **more)

    def test_a_class_and_a_device_that_vanish(self):
        self.begin()
        tree, gpu = self.tree(), 'compute-1_pci_0000_42_00_0'
        root = tree['compute-1']['uuid']
        record = {**tree['compute-1']['inventories']['DISK_GB'], 'allocation_ratio': 3.0}
        self.placement.set_part(root, 'inventories', {**tree['compute-1']['inventories'], 'DISK_GB': record})
        consumer = self.placement.place(None, {root: {'DISK_GB': 10}, tree[gpu]['uuid']: {'VGPU': 1}})
        self.agent.configure({'agent': {'device_hold_sec': 0}})
        self.agent.ctl('reload')
        mark = self.placement.mark()
        self.agent.record(self.describe(gpus=1, disk=0))
        self.cycles()
        self.assertEqual(self.record('compute-1', 'DISK_GB'), (256, 256), self.agent.log()[-2000:])
        self.assertEqual(self.record(gpu, 'VGPU'), (4, 4))
        self.assertEqual((self.candidates('DISK_GB', 200), self.candidates('VGPU', 5)), (0, 0))
        self.assertEqual(self.refused_since(mark), [])
        self.assertEqual(self.placement.put(str(uuid.uuid4()), {root: {'DISK_GB': 1}}), 409)
        said = self.status()
        self.assertIn('DISK_GB of compute-1 (10 used by consumer %s)' % consumer, said)
        self.assertIn('%s is missing. Placement has 1 used by consumer %s' % (gpu, consumer), said)
        self.assert_quiet()
        # A restart keeps the reserved amounts from before.
        self.agent.restart('synced')
        self.agent.record(self.describe())
        self.cycles()
        self.assertEqual(self.record('compute-1', 'DISK_GB'), (256, 0))
        self.assertEqual(self.tree()['compute-1']['inventories']['DISK_GB']['allocation_ratio'], 3.0)
        self.assertEqual(self.record(gpu, 'VGPU'), (4, 0))
        self.agent.record(self.describe(gpus=1, disk=0))
        self.cycles()
        self.assertEqual(self.record(gpu, 'VGPU'), (4, 4))
        self.placement.delete(consumer)
        self.cycles(1)
        self.assertIsNone(self.record('compute-1', 'DISK_GB'))
        self.assertNotIn(gpu, self.tree())
        self.assertEqual(self.agent.status()['sync_state'], 'synced')

    def test_an_allocation_that_comes_while_the_class_goes(self):
        """An allocation appears between the read and the write. Placement rejects the write once, and the same cycle retains the
        inventory."""
        self.agent = Agent(self.scratch, self.proxy, host=self.describe())
        self.start(devices={'enabled_mdev_types': 'nvidia-35'})
        root = self.agent.root()

        held = []
        self.proxy.add(faults.Meanwhile(lambda body: held.append(self.placement.place(None, {root: {'DISK_GB': 10}})),
                                        method='PUT', path='/inventories', times=1))
        self.agent.record(self.describe(disk=0))
        self.cycles(1)
        self.assertEqual(len(held), 1)
        self.assertEqual(self.record('compute-1', 'DISK_GB'), (256, 256), self.agent.log()[-2000:])
