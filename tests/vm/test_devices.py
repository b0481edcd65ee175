# SPDX-License-Identifier: LGPL-2.1-or-later
"""The packaged agent and the stock libvirtd on a real kernel: NUMA nodes, virtual functions and mediated devices.

The level boot has an artificial /sys, which is what the author of a test knows of a kernel. Here the kernel makes each file: functions
appear and vanish when sriov_numvfs is written, drivers bind, guests open VFIO groups, and mdevs disappear with a reboot.
"""

import json
import re
import time
import unittest
import uuid

from tests.boot.case import package
from tests.boot.machine import UNIT
from tests.env.libvirtd import guest_xml
from tests.env.placement import Placement
from tests.env.scratch import Scratch, wait_until
from tests.vm.machine import CARD, NODES, NVME, NVME_NODE, VFS_MAX, Vm

VF_CLASS = 'CUSTOM_NVME_VF'
MDEVS_MAX = 24  # of the sample driver
SECONDS = 600  # for one change, on a machine that runs other tests
TAINT_DIE = 128  # of the kernel: it had an oops or a bug
CONFIG = '''[compute]
cpu_shared_set = 0-3
numa_in_placement = true
[agent]
device_hold_sec = 1
device_settle_sec = 1
[pci]
device_spec = {"address": {"domain": "0000", "bus": "41", "slot": "00", "function": "[1-7]"}, "resource_class": "%s", "managed": "no"}
report_in_placement = true
''' % VF_CLASS


def libvirt_name(address):
    return 'pci_' + re.sub('[:.]', '_', address)


def setUpModule():
    scratch = Scratch()
    unittest.addModuleCleanup(scratch.close)
    VmCase.placement = Placement(scratch)
    VmCase.placement.start(wait=False)
    began = time.monotonic()
    VmCase.vm = vm = Vm(VmCase.placement, package(), scratch)
    unittest.addModuleCleanup(vm.kill)
    log('disk', began)
    vm.start()
    log('boot', began)
    VmCase.placement.wait_ready()
    vm.configure(CONFIG)
    vm.run('systemctl', 'enable', '--now', UNIT)
    vm.wait_state('synced')
    log('first cycle', began)
    unittest.addModuleCleanup(log, 'all tests', began)


def log(name, began):
    computed = VmCase.vm.cpu_seconds() if VmCase.vm.running() else 0
    print('%s: ended after %.0f s, QEMU has computed for %.0f s' % (name, time.monotonic() - began, computed), flush=True)


class VmCase(unittest.TestCase):
    """A test case in the machine. The tests share it, and each test restores its changes. When a test begins, the agent is synced."""

    maxDiff = None

    def setUp(self):
        self.vm.wait_state('synced')

    def tearDown(self):
        # An error of the sample driver would show itself later, in another test.
        self.assertEqual(int(self.vm.read('/proc/sys/kernel/tainted')) & TAINT_DIE, 0, 'the kernel had an oops')

    def inventory(self, device):
        """Returns {class: (capacity, used)} of the provider of a device in Placement. Without a provider it is empty."""
        names = ('machine_%s' % device, 'machine_%s' % libvirt_name(device))
        tree = self.placement.tree_by_name(self.root())
        found = next((provider for name, provider in tree.items() if name in names), {'inventories': {}, 'usages': {}})
        return {rc: (record['total'] - record['reserved'], found['usages'].get(rc, 0)) for rc, record in found['inventories'].items()}

    def root(self):
        return self.vm.read('/var/lib/compute-agent/compute_id').strip()

    def wait_inventory(self, device, expected):
        """Waits until inventory() of the device has this value."""
        def seen():
            self.last = self.inventory(device)
            return self.last == expected
        try:
            wait_until(seen, SECONDS, 'the inventory %s' % expected, step=1)
        except TimeoutError as error:
            raise AssertionError('%s, last: %s\n%s' % (error, self.last, self.vm.journal_text()[-3000:])) from error
        self.vm.wait_state('synced')

    def make_vfs(self, number):
        self.vm.write_kernel('/sys/bus/pci/devices/%s/sriov_numvfs' % NVME, number)

    def claim(self, consumer, rc):
        """Claims one device of this class, and releases the claim after the test. Returns the claim and the XML for libvirt."""
        done = self.vm.run('computectl', 'claim', '--consumer', consumer, '--group', 'device:%s=1' % rc, '--xml')
        claim = next(claim for claim in self.claims() if claim['consumer'] == consumer)
        self.addCleanup(self.vm.run, 'computectl', 'release', claim['id'], check=False)
        return claim, done.stdout

    def claims(self):
        return self.vm.ctl_json('claims')['claims']

    def define(self, name, consumer, hostdev):
        """Defines a guest with this device until the end of the test."""
        path = '/root/%s.xml' % name
        self.vm.write(path, guest_xml(name, uuid=consumer, extra='<devices>%s</devices>' % hostdev))
        self.vm.run('virsh', 'define', path)
        self.addCleanup(self.vm.run, 'virsh', 'undefine', name, check=False)
        self.addCleanup(self.vm.run, 'virsh', 'destroy', name, check=False)

    def start(self, name, claim):
        """Starts a guest and confirms its claim. The guest is paused: it has its devices, and uses no CPU."""
        self.vm.run('virsh', 'start', name, '--paused', timeout=SECONDS)
        self.vm.run('computectl', 'confirm', claim['id'])

    def create_mdev(self, text):
        """Defines and starts the mdev of the XML of "claim --xml". Returns its uuid and libvirt's name."""
        device = re.search('<device>.*</device>', text, re.S).group()
        mdev = re.search('<uuid>(.*)</uuid>', device).group(1)
        name = 'mdev_%s_%s' % (mdev.replace('-', '_'), CARD.replace(':', '_').replace('.', '_'))
        self.vm.write('/root/mdev.xml', device)
        self.vm.run('virsh', 'nodedev-define', '/root/mdev.xml')
        self.addCleanup(self.vm.run, 'virsh', 'nodedev-undefine', name, check=False)
        self.vm.run('virsh', 'nodedev-start', name)
        self.addCleanup(self.vm.run, 'virsh', 'nodedev-destroy', name, check=False)
        return mdev, name

    def wait_problems(self, device=None):
        """Waits until claims and guests differ in this device, or in nothing."""
        def seen():
            self.last = [problem['text'] for problem in self.vm.ctl_json('claims', '--problems', check=False)['problems']]
            return any(device in text for text in self.last) if device else not self.last
        try:
            wait_until(seen, SECONDS, 'problems of %s' % device, step=1)
        except TimeoutError as error:
            raise AssertionError('%s, last: %s' % (error, self.last)) from error


class TestHost(VmCase):
    def test_each_node_of_the_kernel_is_a_provider(self):
        tree = self.placement.tree_by_name(self.root())
        for node in range(NODES):
            provider = tree['machine_NUMA%d' % node]
            self.assertEqual(provider['inventories']['VCPU']['total'], 1)
            text = self.vm.read('/sys/devices/system/node/node%d/meminfo' % node)
            kib = int(re.search(r'MemTotal:\s+(\d+) kB', text).group(1))
            self.assertAlmostEqual(provider['inventories']['MEMORY_MB']['total'], kib / 1024, delta=1)  # the sum is exact


class TestVirtualFunctions(VmCase):
    def test_appear_are_used_and_vanish(self):
        self.assertIn(self.inventory(NVME), ({}, {VF_CLASS: (0, 0)}))
        self.make_vfs(VFS_MAX)
        self.addCleanup(self.make_vfs, 0)
        self.wait_inventory(NVME, {VF_CLASS: (VFS_MAX, 0)})
        tree = self.placement.tree_by_name(self.root())
        provider = next(provider for name, provider in tree.items() if NVME.lower() in name.lower())
        self.assertEqual(provider['parent'], tree['machine_NUMA%d' % NVME_NODE]['uuid'])

        consumer = str(uuid.uuid4())
        claim, hostdev = self.claim(consumer, VF_CLASS)
        self.assertEqual(self.inventory(NVME), {VF_CLASS: (VFS_MAX, 1)})
        address = claim['devices'][0]['address']
        self.assertTrue(self.vm.exists('/sys/bus/pci/devices/%s/physfn' % address))
        self.vm.run('virsh', 'nodedev-detach', libvirt_name(address))
        self.define('with-vf', consumer, hostdev)
        self.start('with-vf', claim)
        group = self.vm.run('readlink', '/sys/bus/pci/devices/%s/iommu_group' % address).stdout.strip().rpartition('/')[2]
        self.assertIn('/dev/vfio/%s\n' % group, self.vm.run('sh', '-c', 'ls -l /proc/[0-9]*/fd 2>/dev/null', check=False).stdout)
        self.assertIn(consumer[:8], self.vm.run('computectl', 'who', address).stdout)

        # Without functions nothing is offered, and the claim keeps its allocation.
        self.vm.run('virsh', 'destroy', 'with-vf')
        self.make_vfs(0)
        self.wait_inventory(NVME, {VF_CLASS: (0, 1)})
        self.wait_problems(address)
        self.make_vfs(VFS_MAX)
        self.wait_inventory(NVME, {VF_CLASS: (VFS_MAX, 1)})
        self.wait_problems()


class TestMediatedDevices(VmCase):
    def test_of_a_driver_that_is_reloaded_are_withheld(self):
        driver = '/sys/bus/pci/drivers/mtty'
        self.wait_inventory(CARD, {'VGPU': (MDEVS_MAX, 0)})
        self.addCleanup(self.vm.run, 'sh', '-c', 'test -e %s/%s || echo %s >%s/bind' % (driver, CARD, CARD, driver))
        self.vm.write_kernel(driver + '/unbind', CARD)
        self.wait_inventory(CARD, {'VGPU': (0, 0)})
        self.vm.write_kernel(driver + '/bind', CARD)
        self.wait_inventory(CARD, {'VGPU': (MDEVS_MAX, 0)})


class TestHealth(VmCase):
    """Lines that are written to /dev/kmsg reach the packaged agent through journald, with the rights of its unit."""

    def status(self):
        """Returns the status, whose exit code is not 0 while a device is withheld."""
        return json.loads(self.vm.run('computectl', 'status', '--json=short', check=False).stdout)

    def test_a_line_of_the_kernel_withholds_its_device(self):
        self.wait_inventory(CARD, {'VGPU': (MDEVS_MAX, 0)})
        self.assertEqual(self.status()['health_error'], '')
        for line in ('vfio-pci %s: not ready 65535ms after FLR; giving up' % CARD,
                     # journald takes "NVRM" for the identifier of the process that writes it.
                     'NVRM: Xid (PCI:%s): 79, pid=4711, GPU has fallen off the bus.' % CARD[:-2]):
            self.vm.write_kernel('/dev/kmsg', line)
            self.addCleanup(self.vm.run, 'computectl', 'uncordon', CARD, check=False)
            self.wait_inventory(CARD, {'VGPU': (0, 0)})
            self.assertIn(line, self.status()['devices_unhealthy'])
            self.vm.run('computectl', 'uncordon', CARD)
            self.wait_inventory(CARD, {'VGPU': (MDEVS_MAX, 0)})


class TestReboot(VmCase):
    """A reboot removes all virtual functions and mdevs. libvirt keeps the definition of an mdev, and the operator starts it again: the rule
    of udev for this in Debian 12's mdevctl names a program that the package does not have."""

    def test_keeps_the_claim_of_an_mdev_and_withholds_the_functions(self):
        self.wait_inventory(CARD, {'VGPU': (MDEVS_MAX, 0)})
        self.make_vfs(VFS_MAX)
        consumer = str(uuid.uuid4())
        claim, text = self.claim(consumer, 'VGPU')
        mdev, name = self.create_mdev(text)
        self.assertEqual(claim['devices'][0]['mdev'], mdev)
        available = self.vm.read('/sys/class/mdev_bus/%s/mdev_supported_types/mtty-1/available_instances' % CARD)
        self.assertEqual(int(available), MDEVS_MAX - 1)
        self.define('with-mdev', consumer, re.search('<hostdev.*</hostdev>', text, re.S).group())
        self.start('with-mdev', claim)
        self.assertEqual(self.inventory(CARD), {'VGPU': (MDEVS_MAX, 1)})
        self.wait_inventory(NVME, {VF_CLASS: (VFS_MAX, 0)})

        before = self.claims()
        self.vm.reboot()
        self.wait_inventory(NVME, {VF_CLASS: (0, 0)})
        self.wait_problems(mdev)
        self.assertEqual(self.inventory(CARD), {'VGPU': (MDEVS_MAX, 1)})
        self.vm.run('virsh', 'nodedev-start', name)
        self.assertTrue(self.vm.exists('/sys/bus/mdev/devices/' + mdev))
        self.wait_problems()
        self.vm.run('virsh', 'start', 'with-mdev', '--paused', timeout=SECONDS)
        self.assertEqual(self.claims(), [{**before[0], 'boot_id': self.claims()[0]['boot_id']}])
        self.assertEqual(self.inventory(CARD), {'VGPU': (MDEVS_MAX, 1)})
