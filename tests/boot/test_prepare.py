# SPDX-License-Identifier: LGPL-2.1-or-later
"""compute-agent-prepare in a booted machine: its order at a boot, its hardening, the path unit, and a database that cannot be read.

The cards are plain files below /cards, which the service uses in place of /sys. COMPUTE_AGENT_BOOTS sets the number of boots with crashes
at random moments, and COMPUTE_AGENT_SEED their seed ("make soak-boots").
"""

import json
import os
import random
import stat
import subprocess
import sys
import time
import uuid

from tests.boot.case import BootCase
from tests.boot.machine import UNIT
from tests.env.scratch import wait_until

PREPARE, PATH = 'compute-agent-prepare.service', 'compute-agent-prepare.path'
CARD = '0000:c1:00.0'
FUNCTIONS = ['0000:c1:00.%d' % i for i in (4, 5, 6, 7)]
DATABASE = '/var/lib/compute-agent/claim.sqlite'
# SQLite follows the link /proc/PID/root to this machine's root, so a child enters the machine's mount namespace.
INSERT = '''
import ctypes, os, sqlite3, sys
namespace, path, *values = sys.argv[1:]
if ctypes.CDLL(None, use_errno=True).setns(os.open(namespace, os.O_RDONLY), 0x20000) != 0:
    sys.exit(os.strerror(ctypes.get_errno()))
with sqlite3.connect(path, timeout=10) as db:
    db.execute('INSERT INTO claim_devices (claim_id, provider_uuid, request_group, device, address, mdev_type, mdev_uuid)'
               ' VALUES (?, ?, "", ?, ?, ?, "")', values)
'''
DROP_IN = '''[Service]
ExecStart=
ExecStart=/usr/sbin/compute-agent-prepare --sys /cards
ReadWritePaths=/cards
'''
SECTION = '''[device_prepare gpus]
device_addresses = %s
virtual_functions = 4
unit = layout@.service
vgpu_types = true
''' % CARD
LAYOUT = '''[Service]
Type=oneshot
ExecStart=/bin/true
'''

BOOTS = int(os.environ.get('COMPUTE_AGENT_BOOTS', '3'))
SEED = int(os.environ.get('COMPUTE_AGENT_SEED', '1'))
TYPES = (5, 7, 1428)
# libvirtd starts guests after this command. A write to a plain file can leave the end of a longer text behind it.
LIBVIRTD_DROP_IN = '''[Service]
ExecStartPre=/bin/sh -c "head -qn1 /cards/bus/pci/devices/0000:c1:00.[4-7]/nvidia/current_vgpu_type >/run/types"
'''
# A process of the host that has the function FUNCTIONS[2] open since the begin of the boot.
OWNER = '''[Unit]
Before=compute-agent-prepare.service
[Service]
ExecStart=/bin/sleep infinity
StandardInput=file:/var/tmp/vfio/902
[Install]
WantedBy=multi-user.target
'''
# The Fabric Manager of NVIDIA takes long to start.
FABRIC = '''[Unit]
Requires=network-online.target
After=network-online.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sleep 3
[Install]
WantedBy=multi-user.target
'''


def setUpModule():
    BootCase.boot()
    PrepareCase.set_up()


class PrepareCase(BootCase):
    @classmethod
    def set_up(cls):
        cls.install()
        cls.machine.configure(SECTION)
        cls.machine.write('/etc/systemd/system/%s.d/test.conf' % PREPARE, DROP_IN)
        cls.machine.write('/etc/systemd/system/layout@.service', LAYOUT)
        cls.lose_cards()
        cls.link(CARD, 'driver', '../drivers/nvidia')
        for i, address in enumerate(FUNCTIONS):
            cls.link(CARD, 'virtfn%d' % i, '../' + address)
            cls.link(address, 'iommu_group', '../groups/%d' % (900 + i))
        cls.machine.run('systemctl', 'daemon-reload')
        cls.machine.run('systemctl', 'enable', '--now', UNIT)
        cls.machine.run('systemctl', 'enable', '--now', PREPARE, PATH)

    def setUp(self):
        self.machine.wait_state('synced')

    def make_group(self):
        """Makes the device of the VFIO group of FUNCTIONS[2], with the number of /dev/null."""
        number, device = (self.machine.path(path) for path in ('/cards/class/vfio/902/dev', '/var/tmp/vfio/902'))
        for path in (number, device):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
        number.write_text('1:3\n')
        os.mknod(device, stat.S_IFCHR, os.makedev(1, 3))
        device.chmod(0o666)

    @classmethod
    def card_file(cls, address, name):
        return cls.machine.path('/cards/bus/pci/devices/%s/%s' % (address, name))

    @classmethod
    def put(cls, address, name, text):
        path = cls.card_file(address, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + '\n')

    @classmethod
    def link(cls, address, name, target):
        cls.card_file(address, name).symlink_to(target)

    @classmethod
    def lose_cards(cls):
        """Takes functions and types away, as a reboot or a driver reload does."""
        cls.put(CARD, 'sriov_totalvfs', '4')
        cls.put(CARD, 'sriov_numvfs', '0')
        for address in FUNCTIONS:
            cls.put(address, 'nvidia/current_vgpu_type', '0')

    def types(self):
        return [int(self.card_file(address, 'nvidia/current_vgpu_type').read_text().split()[0]) for address in FUNCTIONS]

    def claim_function(self, address, name):
        """Creates a claim, gives it a function in the database, and confirms it. Returns its number."""
        claim = int(self.claim_cpu().stdout)
        subprocess.run([sys.executable, '-c', INSERT, '/proc/%d/ns/mnt' % self.machine.leader, DATABASE,
                        str(claim), str(uuid.uuid4()), 'pci_' + address, address, name], check=True, timeout=60)
        self.machine.run('computectl', 'confirm', claim)
        self.addCleanup(self.machine.run, 'computectl', 'release', claim, check=False)
        return claim

    def record(self):
        return json.loads(self.machine.path('/run/compute-agent-prepare/prepared.json').read_text())

    def findings(self):
        """Returns the texts of doctor's check "prepare"."""
        document = self.machine.run('computectl', 'doctor', '--json=short', check=False).stdout
        return [finding['text'] for finding in json.loads(document)['findings'] if finding['check'] == 'prepare']

    def reboot(self, before=lambda: None):
        """Stops the machine, and starts it with the same files. before() is called after the stop of the agent."""
        self.machine.run('systemctl', 'stop', PATH, PREPARE, UNIT)
        self.lose_cards()
        before()
        self.machine.kill()
        self.machine.start()

    def times(self):
        """Returns the monotonic times of the end of the last run and of the starts of libvirtd and the agent."""
        ended = int(self.machine.show('ExecMainExitTimestampMonotonic', unit=PREPARE)['ExecMainExitTimestampMonotonic'])
        starts = [int(self.machine.show('ExecMainStartTimestampMonotonic', unit=unit)['ExecMainStartTimestampMonotonic'])
                  for unit in ('libvirtd.service', UNIT)]
        return ended, starts


class Prepare(PrepareCase):
    def test_1_a_claim_starts_the_service(self):
        self.assertEqual(self.machine.show('UnitFileState', unit=PATH)['UnitFileState'], 'enabled')
        claim = self.claim_function(FUNCTIONS[1], 'nvidia-1428')
        wait_until(lambda: self.types() == [0, 1428, 0, 0], 60, 'the type of the claim')
        entry = next(entry for entry in self.machine.journal(unit=PREPARE) if entry.get('AGENT_CLAIM_ID') == str(claim))
        self.assertEqual(entry['AGENT_DEVICE'], FUNCTIONS[1])
        self.assertEqual(entry['MESSAGE'], 'Function %s of %s: type nvidia-1428: done, because claim %d needs it' % (FUNCTIONS[1], CARD, claim))
        self.machine.run('computectl', 'release', claim)
        wait_until(lambda: self.types() == [0, 0, 0, 0], 60, 'the end of the vGPU')
        owners = self.machine.run('find', '/var/lib/compute-agent', '!', '-user', 'compute-agent').stdout
        self.assertEqual(owners, '')

    def test_2_a_handle_of_another_user_is_seen(self):
        """A process with a VFIO group open keeps its function, and the agent starts the service until it is closed."""
        claim = self.claim_function(FUNCTIONS[2], 'nvidia-5')
        wait_until(lambda: self.types()[2] == 5, 60, 'the type of the claim')
        self.make_group()
        self.machine.run('systemd-run', '--unit=guest', '--uid=nobody', '--property=StandardInput=file:/var/tmp/vfio/902', 'sleep', '1000')
        self.machine.run('computectl', 'release', claim)
        wait_until(lambda: any(function['waiting'] for function in self.record()['functions']), 60, 'a function that waits')
        self.assertEqual(self.types()[2], 5)
        self.assertTrue(any('a process has it open' in text for text in self.findings()), self.findings())
        self.machine.run('systemctl', 'stop', 'guest')
        wait_until(lambda: self.types()[2] == 0, 60, 'the end of the vGPU')

    def test_3_kills_lose_nothing(self):
        self.claim_function(FUNCTIONS[0], 'nvidia-7')
        self.claim_function(FUNCTIONS[3], 'nvidia-7')
        for _ in range(5):
            self.lose_cards()
            self.machine.run('systemctl', 'start', '--no-block', PREPARE)
            self.machine.run('systemctl', 'kill', '--signal=KILL', PREPARE, check=False)
            # A start while systemd has not noticed the kill yet waits for the killed one, and fails.
            wait_until(lambda: self.machine.show('ActiveState', unit=PREPARE)['ActiveState'] in ('inactive', 'failed'), 60,
                       'the end of the killed run')
            self.machine.run('systemctl', 'start', PREPARE)
            self.assertEqual(self.types(), [7, 0, 0, 7])
        # libvirt's /sys does not have the card of this test.
        self.assertIn('Card %s has 0 of 4 virtual functions' % CARD, self.findings())

    def test_4_a_restart_of_the_agent_does_not_wait(self):
        """The path unit starts the service at the removal of its folder, and the agent starts after the service."""
        self.claim_function(FUNCTIONS[0], 'nvidia-7')
        wait_until(lambda: self.types()[0] == 7, 60, 'the type of the claim')
        self.assertTrue(self.machine.path('/run/compute-agent/prepare-wanted').exists())
        slow = '/etc/systemd/system/%s.d/slow.conf' % PREPARE
        self.machine.write(slow, '[Service]\nExecStartPre=/bin/sleep 60\n')
        self.addCleanup(self.machine.run, 'systemctl', 'stop', PREPARE, check=False)
        self.addCleanup(self.machine.run, 'systemctl', 'daemon-reload')
        self.addCleanup(self.machine.run, 'rm', slow)
        self.machine.run('systemctl', 'daemon-reload')
        begin = time.monotonic()
        self.machine.run('systemctl', 'restart', UNIT, timeout=120)
        self.assertLess(time.monotonic() - begin, 10)
        wait_until(lambda: self.machine.show('ActiveState', unit=PREPARE)['ActiveState'] == 'activating', 30, 'a run after the start')

    def test_4_hardening(self):
        self.machine.run('systemd-analyze', 'verify', PREPARE, PATH)
        self.machine.run('systemd-analyze', 'security', '--threshold=25', PREPARE)

    def test_5_a_boot_prepares_after_the_fabric_manager_and_before_libvirtd(self):
        self.claim_function(FUNCTIONS[1], 'nvidia-1428')
        self.machine.write('/etc/systemd/system/nvidia-fabricmanager.service', FABRIC)
        self.machine.run('systemctl', 'enable', 'nvidia-fabricmanager.service')
        self.addCleanup(self.machine.run, 'systemctl', 'disable', '--now', 'nvidia-fabricmanager.service')
        self.reboot()
        wait_until(lambda: self.types() == [0, 1428, 0, 0], 60, 'the type of the claim')
        self.machine.wait_state('synced')
        self.assertEqual(self.card_file(CARD, 'sriov_numvfs').read_text(), '4\n')
        first = self.machine.journal('--boot', unit=PREPARE)
        for step in ('unit layout@.service: done', '4 virtual functions: done'):
            self.assertTrue(any(step in entry['MESSAGE'] for entry in first), step)
        done = next(int(entry['__MONOTONIC_TIMESTAMP']) for entry in first if 'type nvidia-1428: done' in entry['MESSAGE'])
        self.assertLess(done, min(self.times()[1]))
        fabric = self.machine.show('ActiveEnterTimestampMonotonic', unit='nvidia-fabricmanager.service')
        self.assertGreater(int(first[0]['__MONOTONIC_TIMESTAMP']), int(fabric['ActiveEnterTimestampMonotonic']))
        self.assertNotIn('ordering cycle', self.machine.run('journalctl', '--boot', '--output=cat').stdout)

    def test_6_a_boot_with_a_damaged_database_changes_nothing(self):
        self.reboot(lambda: self.machine.path(DATABASE).write_bytes(b'nonsense' * 1000))
        entries = self.machine.journal('--boot', unit=PREPARE)
        refused = next(entry for entry in entries if 'No card was changed' in entry['MESSAGE'])
        self.assertIn('is damaged', refused['MESSAGE'])
        self.assertEqual(self.machine.show('ActiveState', unit='libvirtd.service')['ActiveState'], 'active')
        self.assertLess(int(refused['__MONOTONIC_TIMESTAMP']), min(self.times()[1]))
        self.assertFalse(any('done' in entry['MESSAGE'] for entry in entries
                             if int(entry['__MONOTONIC_TIMESTAMP']) < min(self.times()[1])))


class Boots(PrepareCase):
    """Boots after crashes at random moments. A boot finds no functions, or the functions and types of the crashed system."""

    def setUp(self):
        super().setUp()
        self.random, self.owned = random.Random(SEED), {}

    def change_claims(self):
        """Releases some claims, and confirms claims of other free functions."""
        for address in list(self.owned):
            if self.random.random() < 0.4:
                self.machine.run('computectl', 'release', self.owned.pop(address)[0])
        for address in sorted(set(FUNCTIONS) - {FUNCTIONS[2]} - set(self.owned)):
            if self.random.random() < 0.6:
                number = self.random.choice(TYPES)
                self.owned[address] = (self.claim_function(address, 'nvidia-%d' % number), number)

    def crash(self):
        """Crashes at a random moment: soon after the changes, while the service runs, or during the next boot."""
        way = self.random.choice(('run', 'service', 'boot'))
        if way == 'service':
            self.machine.run('systemctl', 'start', '--no-block', PREPARE)
        time.sleep(self.random.uniform(0, 0.3))
        if way == 'service' and self.random.random() < 0.5:
            self.machine.run('systemctl', 'kill', '--signal=KILL', PREPARE, check=False)
        self.machine.crash()
        if way == 'boot':
            self.machine.start(wait=False)
            time.sleep(self.random.uniform(0, 6))
            self.machine.crash()
        return way

    def lay_out(self, lost):
        """Sets the files of the cards for the next boot. Returns the type of the open function."""
        path = self.machine.upper / 'cards/bus/pci/devices'
        if lost:
            (path / CARD / 'sriov_numvfs').write_text('0\n')
            for address in FUNCTIONS:
                (path / address / 'nvidia/current_vgpu_type').write_text('0\n')
        number = 0 if lost else self.random.choice((0, *TYPES))
        (path / FUNCTIONS[2] / 'nvidia/current_vgpu_type').write_text('%d\n' % number)
        return number

    def test_each_confirmed_claim_has_its_type_before_libvirtd(self):
        print('%d boots, seed %d' % (BOOTS, SEED), file=sys.stderr)
        self.make_group()
        self.machine.write('/etc/systemd/system/libvirtd.service.d/types.conf', LIBVIRTD_DROP_IN)
        self.machine.write('/etc/systemd/system/owner.service', OWNER)
        self.machine.run('systemctl', 'enable', 'owner.service')
        self.addCleanup(self.machine.run, 'rm', '-r', '/etc/systemd/system/libvirtd.service.d/types.conf', '/var/tmp/vfio')
        self.addCleanup(self.machine.run, 'systemctl', 'disable', '--now', 'owner.service')
        for number in range(BOOTS):
            self.machine.wait_state('synced')
            self.change_claims()
            lost, way = self.random.random() < 0.6, self.crash()
            opened = self.lay_out(lost)
            self.machine.start()
            wait_until(lambda: self.machine.path('/run/types').exists(), 60, 'libvirtd')
            expected = [self.owned.get(address, (0, 0))[1] for address in FUNCTIONS]
            expected[2] = opened
            where = 'boot %d, crash: %s, functions lost: %s' % (number, way, lost)
            self.assertEqual([int(line) for line in self.machine.path('/run/types').read_text().split()], expected, where)
            self.assertEqual(self.types(), expected, where)
            self.machine.wait_state('synced')
            living = {claim['id'] for claim in self.machine.ctl_json('claims')['claims']}
            self.assertEqual(living, {claim for claim, _number in self.owned.values()}, where)
