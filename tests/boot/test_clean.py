# SPDX-License-Identifier: LGPL-2.1-or-later
"""Devices are cleaned after their guests in a booted machine: the path unit, the hardening, and real units of systemd.

The device is invented: the static driver lists it to the agent, and plain files below /cards are its /sys.
"""

import contextlib
import json
import uuid

from tests.boot.case import BootCase
from tests.boot.machine import UNIT
from tests.env.hosts import recorded_host
from tests.env.scratch import EnvError, wait_until

CLEAN, PATH = 'compute-agent-clean.service', 'compute-agent-clean.path'
DISK = '0000:81:00.0'
DROP_IN = '''[Service]
ExecStart=
ExecStart=/usr/sbin/compute-agent-prepare --clean --sys /cards
'''
SECTION = '''[pci]
report_in_placement = true
device_spec = {"vendor_id": "144d", "resource_class": "CUSTOM_NVME"}
[device_clean disks]
resource_classes = CUSTOM_NVME
clean = wipe@.service
prove = prove@.service
timeout_sec = 300
[DEFAULT]
compute_driver = static
[static]
path = /etc/compute-agent/host.json
'''
WIPE = '''[Service]
Type=oneshot
ExecStart=/bin/sh -c 'echo %i >>/var/tmp/wiped; while [ -e /var/tmp/hold ]; do sleep 0.1; done'
TimeoutStartSec=infinity
'''
PROVE = '''[Service]
Type=oneshot
ExecStart=/bin/sh -c 'for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo line $i; done; test ! -e /var/tmp/bad'
'''

setUpModule = BootCase.boot


class Clean(BootCase):
    @classmethod
    def setUpClass(cls):
        cls.install()
        cls.machine.write('/etc/compute-agent/host.json', json.dumps(recorded_host('host1', devices=[
            {'name': 'pci_0000_81_00_0', 'is_pci': True, 'address': DISK, 'vendor_id': 0x144d, 'product_id': 0xa808}])))
        cls.machine.configure(SECTION)
        cls.machine.write('/etc/systemd/system/%s.d/test.conf' % CLEAN, DROP_IN)
        cls.machine.write('/etc/systemd/system/wipe@.service', WIPE)
        cls.machine.write('/etc/systemd/system/prove@.service', PROVE)
        for name, text in (('vendor', '0x144d'), ('device', '0xa808')):
            path = cls.machine.path('/cards/bus/pci/devices/%s/%s' % (DISK, name))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + '\n')
        cls.machine.run('systemctl', 'daemon-reload')
        cls.machine.run('systemctl', 'enable', '--now', UNIT)
        cls.machine.run('systemctl', 'enable', '--now', PATH)

    def setUp(self):
        self.machine.wait_state('synced')

    def file(self, name):
        path = self.machine.path('/var/tmp/' + name)
        return path.read_text() if path.exists() else ''

    def use(self):
        """Claims and releases the disk."""
        claim = self.machine.run('computectl', 'claim', '--quiet', '--resources', 'VCPU=1', '--group', '_d:CUSTOM_NVME=1',
                                 '--consumer', uuid.uuid4()).stdout.strip()
        self.machine.run('computectl', 'release', claim)

    def unclean(self):
        return self.machine.ctl_json('status', check=False)['devices_unclean']

    def count_clean(self):
        return sum('is clean: its units have succeeded' in entry['MESSAGE'] for entry in self.machine.journal())

    def wait_clean(self, before):
        wait_until(lambda: self.count_clean() > before, 120, 'the device to be offered')
        wait_until(lambda: not self.unclean(), 60, 'the status without the device')

    def serves(self):
        """Returns whether the agent runs in the machine, also before the end of the boot."""
        with contextlib.suppress(EnvError):
            self.machine.answers()
            return bool(self.machine.leader) and self.machine.show('ActiveState')['ActiveState'] == 'active'
        return False

    def test_1_units_run_and_the_device_is_offered(self):
        before = self.count_clean()
        self.use()
        self.wait_clean(before)
        self.assertEqual(self.file('wiped'), DISK + '\n')
        owners = self.machine.run('find', '/var/lib/compute-agent', '!', '-user', 'compute-agent').stdout
        self.assertEqual(owners, '')

    def test_2_a_failed_proof_cordons_with_the_last_ten_lines(self):
        self.machine.run('touch', '/var/tmp/bad')
        self.use()
        wait_until(lambda: any('cleaning failed' in text for text in self.unclean()), 90, 'the failure')
        message = next(entry['MESSAGE'] for entry in reversed(self.machine.journal()) if 'was not proved to be clean' in entry['MESSAGE'])
        self.assertIn('prove@%s.service failed' % DISK, message)
        self.assertIn('line 12', message)
        self.assertNotIn('line 2 ', message)
        self.machine.run('rm', '/var/tmp/bad')
        before = self.count_clean()
        self.machine.run('computectl', 'uncordon', DISK)
        self.wait_clean(before)

    def test_3_a_reboot_starts_the_units_again(self):
        self.machine.run('touch', '/var/tmp/hold')
        count, before = self.file('wiped').count(DISK), self.count_clean()
        self.use()
        wait_until(lambda: self.file('wiped').count(DISK) == count + 1, 90, 'the unit')
        self.machine.kill()
        self.machine.start(wait=False)  # it is "starting" as long as the unit runs
        wait_until(self.serves, 120, 'the agent after the boot')
        self.machine.wait_state('synced')
        wait_until(lambda: self.file('wiped').count(DISK) == count + 2, 90, 'the unit after the boot')
        self.machine.run('rm', '/var/tmp/hold')
        self.wait_clean(before)
        self.assertEqual(self.file('wiped').count(DISK), count + 2)

    def test_4_a_unit_that_runs_is_not_started_twice(self):
        self.machine.run('touch', '/var/tmp/hold')
        count, before = self.file('wiped').count(DISK), self.count_clean()
        self.use()
        wait_until(lambda: self.file('wiped').count(DISK) == count + 1, 90, 'the unit')
        self.machine.run('systemctl', 'kill', '--signal=KILL', CLEAN)
        self.machine.run('systemctl', 'restart', UNIT)
        self.machine.wait_state('synced')
        wait_until(lambda: self.machine.show('ActiveState', unit=CLEAN)['ActiveState'] == 'activating', 90, 'another run')
        self.machine.run('rm', '/var/tmp/hold')
        self.wait_clean(before)
        self.assertEqual(self.file('wiped').count(DISK), count + 1)

    def waiting_pid(self):
        """Returns the pid of the systemctl that waits for a unit, or ''."""
        return self.machine.run('pgrep', '--full', '--newest', 'no-ask-password [s]tart', check=False).stdout.strip()

    def test_5_a_restart_of_systemd_is_no_failure(self):
        self.machine.run('touch', '/var/tmp/hold')
        count, before = self.file('wiped').count(DISK), self.count_clean()
        self.use()
        wait_until(lambda: self.file('wiped').count(DISK) == count + 1, 90, 'the unit')
        former = self.waiting_pid()
        self.assertTrue(former)
        self.machine.run('systemctl', 'daemon-reexec')
        wait_until(lambda: self.waiting_pid() not in ('', former), 60, 'systemctl again')
        self.machine.run('rm', '/var/tmp/hold')
        self.wait_clean(before)
        self.assertEqual(self.file('wiped').count(DISK), count + 1)

    def test_6_a_unit_with_a_condition_is_refused(self):
        count = self.file('wiped').count(DISK)
        self.machine.write('/etc/systemd/system/wipe@.service.d/test.conf', '[Unit]\n  ConditionPathExists=/nonexistent\n')
        self.machine.run('systemctl', 'daemon-reload')
        self.use()
        wait_until(lambda: any('cleaning failed' in text for text in self.unclean()), 90, 'the failure')
        message = next(entry['MESSAGE'] for entry in reversed(self.machine.journal()) if 'was not proved to be clean' in entry['MESSAGE'])
        self.assertIn('wipe@%s.service has a condition' % DISK, message)
        self.assertEqual(self.file('wiped').count(DISK), count)
