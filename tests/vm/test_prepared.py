# SPDX-License-Identifier: LGPL-2.1-or-later
"""A card that compute-agent-prepare makes ready at each boot of a real kernel. It reboots the machine twice, so only "make vm" runs it."""

import uuid

from tests.boot.machine import UNIT
from tests.vm import test_devices
from tests.vm.machine import NVME, VFS_MAX
from tests.vm.test_devices import CONFIG, SECONDS, VF_CLASS

PREPARED = '''[device_prepare nvme]
device_addresses = %s
virtual_functions = %d
driver_override = vfio-pci
''' % (NVME, VFS_MAX)
PREPARE_UNITS = ('compute-agent-prepare.service', 'compute-agent-prepare.path')

setUpModule = test_devices.setUpModule


class TestRebootOfPreparedCard(test_devices.VmCase):
    """compute-agent-prepare makes the functions again at a boot, before libvirtd starts guests."""

    def driver(self, address):
        return self.vm.run('readlink', '/sys/bus/pci/devices/%s/driver' % address, check=False).stdout.strip().rpartition('/')[2]

    def started(self, unit):
        return int(self.vm.show('ExecMainStartTimestampMonotonic', unit=unit)['ExecMainStartTimestampMonotonic'])

    def restore(self):
        self.vm.run('systemctl', 'disable', '--now', *PREPARE_UNITS)
        self.vm.configure(CONFIG)
        self.vm.run('systemctl', 'reload', UNIT)
        self.make_vfs(0)

    def test_the_function_of_a_confirmed_claim_is_ready_before_libvirtd(self):
        self.addCleanup(self.restore)
        self.vm.configure(CONFIG + PREPARED)
        self.vm.run('systemctl', 'reload', UNIT)
        self.vm.run('systemctl', 'enable', '--now', *PREPARE_UNITS)
        self.wait_inventory(NVME, {VF_CLASS: (VFS_MAX, 0)})
        consumer = str(uuid.uuid4())
        claim, hostdev = self.claim(consumer, VF_CLASS)
        address = claim['devices'][0]['address']
        self.assertEqual(self.driver(address), 'vfio-pci')
        self.define('prepared', consumer, hostdev)
        self.start('prepared', claim)
        # A run beside a guest changes nothing.
        self.vm.run('systemctl', 'start', PREPARE_UNITS[0])
        self.assertEqual(self.vm.run('virsh', 'domstate', 'prepared').stdout.strip(), 'paused')

        before = self.claims()
        self.vm.reboot()
        self.wait_inventory(NVME, {VF_CLASS: (VFS_MAX, 1)})
        done = [entry for entry in self.vm.journal('--boot', unit=PREPARE_UNITS[0]) if '%d virtual functions: done' % VFS_MAX in entry['MESSAGE']]
        self.assertLess(int(done[0]['__MONOTONIC_TIMESTAMP']), min(self.started('libvirtd.service'), self.started(UNIT)))
        self.assertEqual(self.driver(address), 'vfio-pci')
        self.vm.run('virsh', 'start', 'prepared', '--paused', timeout=SECONDS)
        self.assertEqual(self.claims(), [{**before[0], 'boot_id': self.claims()[0]['boot_id']}])
