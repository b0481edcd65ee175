# SPDX-License-Identifier: LGPL-2.1-or-later
"""The simulated GPUs (tests/env/vgpu_sim.py) follow the documented rules of NVIDIA's driver and of SR-IOV in the kernel. Shells and
other real processes read and write their files."""

import errno
import os
import subprocess
import time
import unittest
from pathlib import Path

from tests.env.scratch import Scratch, wait_until
from tests.env.vgpu_cards import EQUAL_SIZE, MIXED_SIZE, SAME_TYPE, Card, CardError
from tests.env.vgpu_sim import VgpuSim

CARD = '0000:c1:00.0'
B2, Q2, Q4, Q8, Q16, Q24, Q48 = 1426, 1428, 1430, 1432, 1434, 1435, 1436


def vf(index, card=CARD):
    return Card(card).function_address(index)


class TestRules(unittest.TestCase):
    """The rules without files."""

    def card(self, mode=EQUAL_SIZE, model='L40S', **more):
        return Card(CARD, model, mode, n_functions=32 if model == 'L40S' else 16, **more)

    def names(self, card, index):
        return [one.name.rpartition('-')[2] for one in card.creatable(vf(index))]

    def refused(self, number, call, *args):
        with self.assertRaises(CardError) as caught:
            call(*args)
        self.assertEqual(caught.exception.errno, number)

    def fill(self, card, number):
        """Creates vGPUs of a type until the driver refuses one. Returns how many there are."""
        for function in card.functions:
            try:
                card.set_type(function.address, number)
            except CardError as error:
                self.assertEqual(error.errno, errno.EINVAL)
                self.assertNotIn(card.kind.type(number), card.creatable(function.address))
                break
        return len(card.vgpus())

    def test_addresses_are_those_of_nvidia(self):
        self.assertEqual([vf(index) for index in (0, 3, 4, 31)], ['0000:c1:00.4', '0000:c1:00.7', '0000:c1:01.0', '0000:c1:04.3'])

    def test_each_mode_allows_the_documented_types_beside_a_vgpu(self):
        for mode, beside in ((SAME_TYPE, ['2Q']), (EQUAL_SIZE, ['2B', '2Q', '2A']), (MIXED_SIZE, None)):
            with self.subTest(mode):
                card = self.card(mode)
                every = self.names(card, 0)
                self.assertEqual(len(every), 22)
                card.set_type(vf(0), Q2)
                self.assertEqual(self.names(card, 0), [])
                self.assertEqual(self.names(card, 1), beside or [name for name in every if not name.startswith('48')])

    def test_a_type_fills_the_framebuffer_or_all_functions(self):
        for mode, counts in ((EQUAL_SIZE, {1427: 32, Q2: 24, Q4: 12, Q8: 6, Q16: 3, Q24: 2, Q48: 1}),
                             (MIXED_SIZE, {1427: 32, Q2: 16, Q4: 8, Q8: 4, Q16: 2, Q24: 2, Q48: 1})):
            for number, count in counts.items():
                with self.subTest(mode=mode, number=number):
                    card = self.card(mode)
                    self.assertEqual(card.count_creatable(number), count)
                    self.assertEqual(self.fill(card, number), count)

    def test_mixed_sizes_begin_at_their_placements(self):
        card = self.card(MIXED_SIZE)
        for index, number in enumerate((Q8, Q24, Q2, Q4)):
            card.set_type(vf(index), number)
        self.assertEqual([one.start // 1024 for one in card.vgpus()], [0, 24, 9, 12])
        self.assertFalse(card.can_become({vf(4): Q8}))
        self.assertTrue(card.can_become({vf(4): Q4}))
        self.assertFalse(card.can_become({vf(4): Q4, vf(5): Q2}))  # 4 GiB are left, at no placement

    def test_a_wrong_number_is_refused_and_changes_nothing(self):
        card = self.card()
        for number in (1, 99999, Q48):
            with self.subTest(number):
                card.set_type(vf(0), Q2)
                self.refused(errno.EINVAL, card.set_type, vf(1), number)
                self.refused(errno.EINVAL, card.set_type, vf(0), Q2)  # it is a vGPU already
                self.assertEqual([one.type for one in card.vgpus()], [Q2])
                card.set_type(vf(0), 0)
                self.assertEqual(len(self.names(card, 0)), 22)

    def test_the_mode_is_lost_when_the_driver_or_the_functions_change(self):
        card = self.card()
        card.set_mode(MIXED_SIZE)
        card.set_type(vf(0), Q2)
        self.refused(errno.EBUSY, card.set_mode, EQUAL_SIZE)
        card.unload()
        self.refused(errno.ENODEV, card.set_type, vf(0), Q2)
        card.load()
        self.assertEqual((card.mode, card.vgpus()), (EQUAL_SIZE, []))
        card.set_mode(MIXED_SIZE)
        card.set_functions(0)
        card.set_functions(4)
        self.assertEqual((card.mode, len(card.functions)), (EQUAL_SIZE, 4))

    def test_an_open_vgpu_stays(self):
        card = self.card()
        card.set_type(vf(0), Q2)
        card.function(vf(0)).opened = 1
        for call in (lambda: card.set_type(vf(0), 0), card.unload, lambda: card.set_functions(0)):
            self.refused(errno.EBUSY, call)
        self.assertEqual([one.type for one in card.vgpus()], [Q2])

    def test_functions_change_only_from_and_to_0(self):
        card = self.card()
        self.refused(errno.EBUSY, card.set_functions, 4)
        self.refused(errno.ERANGE, card.set_functions, 33)
        card.set_functions(32)

    def test_mig_backed_types_use_gpu_instances(self):
        card = self.card(model='A100', instances=['1g.5gb', '1g.5gb', '3g.20gb'])
        self.assertEqual(self.names(card, 0), ['5C', '20C'])
        self.assertEqual(self.fill(card, 700), 2)
        self.assertEqual(self.names(card, 2), ['20C'])
        self.refused(errno.EBUSY, card.set_instances, [])
        card.set_type(vf(2), 703)
        self.assertEqual(self.names(card, 3), [])


class TestFiles(unittest.TestCase):
    """The files, used by other processes."""

    def setUp(self):
        self.scratch = Scratch.of(self)
        self.sim = VgpuSim([Card(CARD, n_functions=4, serial='0320317060550'), Card('0000:c2:00.0', 'A100', n_functions=2)],
                           self.scratch).start()

    def shell(self, command, code=0):
        """Runs a shell in the folder of the PCI devices. Returns its output."""
        done = subprocess.run([*self.sim.enter(), 'sh', '-c', 'cd /sys/bus/pci/devices && ' + command], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=30, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout

    def test_reads_and_writes_of_a_shell(self):
        read = 'cat 0000:c1:00.5/nvidia/c*_vgpu_type*'
        lines = self.shell(read).splitlines()
        self.assertEqual((lines[0], lines[4], lines[-1]), ('ID    : vGPU Name', '1428  : NVIDIA L40S-2Q', '0'))
        self.shell('echo 1428 > 0000:c1:00.4/nvidia/current_vgpu_type && echo 0x1 > 0000:c1:00.5/nvidia/current_vgpu_type', 1)
        self.shell('echo 1436 > 0000:c1:00.5/nvidia/current_vgpu_type', 1)
        self.assertEqual(len(self.shell(read).splitlines()), 5)
        self.assertEqual(self.shell('cat 0000:c1:00.4/nvidia/c*'), 'ID    : vGPU Name\n1428\n')
        with self.assertRaises(OSError) as caught:
            self.sim.write_type(vf(1), Q48)
        self.assertEqual(caught.exception.errno, errno.EINVAL)
        self.sim.write_type(vf(0), 0)
        self.assertEqual(len(self.shell(read).splitlines()), 24)

    def test_links_are_those_of_sysfs(self):
        self.assertEqual(self.shell('readlink -f 0000:c1:00.4/physfn 0000:c1:00.0/virtfn3 0000:c1:00.0/driver; cat 0000:c1:00.4/uevent'), (
            '/sys/devices/pci0000:c1/0000:c1:00.0\n/sys/devices/pci0000:c1/0000:c1:00.7\n/sys/bus/pci/drivers/nvidia\n'
            'DRIVER=nvidia\nPCI_CLASS=30200\nPCI_ID=10DE:26B9\nPCI_SUBSYS_ID=10DE:0000\nPCI_SLOT_NAME=0000:c1:00.4\n'))

    def test_functions_appear_and_vanish(self):
        count = 'ls | wc -l; ls -d 0000:c1:00.0/virtfn* | wc -l'
        self.assertEqual(self.shell(count).split(), ['8', '4'])
        self.shell('stat 0000:c1:00.4/nvidia && echo 0 > 0000:c1:00.0/sriov_numvfs')
        wait_until(lambda: not (self.sim.device(vf(0)) / 'nvidia').exists(), 5, 'the function to vanish')
        self.assertEqual(self.shell('ls; cat */sriov_numvfs').split(), ['0000:c1:00.0', '0000:c2:00.0', '0000:c2:00.4', '0000:c2:00.5', '0', '2'])
        self.shell('echo 32 > 0000:c1:00.0/sriov_numvfs')
        self.assertEqual(self.shell(count).split(), ['36', '32'])
        self.assertIn('L40S-48Q', self.shell('cat 0000:c1:04.3/nvidia/creatable_vgpu_types'))

    def test_a_process_with_the_vfio_group_open_prevents_changes(self):
        self.sim.write_type(vf(0), Q2)
        with open(self.sim.vfio(vf(0)), 'rb') as file:
            guest = self.scratch.spawn(['sleep', '60'], 'guest', stdin=file)
        wait_until(lambda: self.sim.state()[CARD].function(vf(0)).opened, 5, 'the open file')
        for path, text in (('0000:c1:00.4/nvidia/current_vgpu_type', '0'), ('0000:c1:00.0/sriov_numvfs', '0')):
            with self.assertRaises(OSError) as caught:
                (self.sim.sys / 'bus/pci/devices' / path).write_text(text)
            self.assertEqual(caught.exception.errno, errno.EBUSY)
        with self.assertRaises(CardError):
            self.sim.control('unload', card=CARD)
        guest.kill()
        wait_until(lambda: not self.sim.state()[CARD].function(vf(0)).opened, 5, 'the closed file')
        self.sim.write_type(vf(0), 0)

    def test_the_driver_is_reloaded(self):
        self.sim.control('mode', card=CARD, mode=MIXED_SIZE)
        self.sim.write_type(vf(0), Q2)
        late = os.open(self.sim.device(vf(0)) / 'nvidia/current_vgpu_type', os.O_RDONLY)
        self.addCleanup(os.close, late)
        self.sim.control('unload', card=CARD)
        self.assertRaises(OSError, os.read, late, 100)
        self.assertEqual(self.shell('ls -d 0000:c1:00.4/*').count('nvidia'), 0)
        self.assertNotIn('DRIVER', self.shell('cat 0000:c1:00.4/uevent'))
        self.sim.control('load', card=CARD)
        self.assertEqual(self.shell('cat 0000:c1:00.4/nvidia/current_vgpu_type'), '0\n')
        self.assertEqual(self.sim.state()[CARD].mode, EQUAL_SIZE)

    def test_injected_errors_and_delays(self):
        path = self.sim.device(vf(0)) / 'nvidia/creatable_vgpu_types'
        self.sim.control('inject', rule={'op': 'read', 'path': '*/creatable_vgpu_types', 'errno': 'EIO', 'count': 1})
        self.assertRaises(OSError, path.read_text)
        self.assertIn('L40S', path.read_text())
        self.sim.control('inject', rule={'op': 'read', 'path': '*:c1:00.4/*', 'delay': 0.3})
        begin = time.monotonic()
        path.read_text()
        self.assertGreaterEqual(time.monotonic() - begin, 0.3)
        self.sim.control('heal')
        self.sim.control('inject', rule={'op': 'write', 'path': '*/sriov_numvfs', 'errno': 'EPERM'})
        self.shell('echo 0 > 0000:c1:00.0/sriov_numvfs', 1)

    def test_mig_instances_are_set_by_the_operator(self):
        self.assertEqual(self.shell('cat 0000:c2:00.4/nvidia/creatable_vgpu_types'), 'ID    : vGPU Name\n')
        self.sim.control('instances', card='0000:c2:00.0', profiles=['7g.40gb'])
        self.assertEqual(self.shell('cat 0000:c2:00.4/nvidia/creatable_vgpu_types'), 'ID    : vGPU Name\n705   : NVIDIA A100-7-40C\n')

    def test_a_killed_server_leaves_no_mount(self):
        before = Path('/proc/self/mounts').read_text()
        self.assertNotIn('vgpu-sim', before)
        self.sim.kill()
        self.assertEqual(Path('/proc/self/mounts').read_text(), before)
