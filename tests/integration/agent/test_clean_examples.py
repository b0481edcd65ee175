# SPDX-License-Identifier: LGPL-2.1-or-later
"""The shipped examples that clean devices, over plain files in place of /sys and a script in place of nvme-cli."""

import os
import signal
import subprocess
from pathlib import Path

from tests.env.case import EnvCase
from tests.env.scratch import wait_until

ROOT = Path(__file__).resolve().parents[3]
A, B = '0000:41:00.0', '0000:41:00.1'
NVME = '''
echo "$*" >>"${0%/*}/called"
case "$1" in
id-ctrl) cat "${0%/*}/controller" ;;
list-ns) cat "${0%/*}/active${3:-}" ;;
list-ctrl) cat "${0%/*}/controllers" ;;
sanitize-log)
    echo "Sanitize Status                        (SSTAT) :  $(head -n 1 "${0%/*}/sstat")"
    [ "$(wc -l <"${0%/*}/sstat")" -lt 2 ] || sed -i 1d "${0%/*}/sstat"
    ;;
esac
'''


class ExampleCase(EnvCase):
    def setUp(self):
        self.sys, self.bin = self.scratch.folder('sys'), self.scratch.folder('bin')
        self.devices = self.sys / 'bus/pci/devices'
        for address in (A, B):
            (self.devices / address).mkdir(parents=True)

    def put(self, path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run_example(self, name, code=0, **env):
        with self.start_example(name, **env) as running:
            text = running.communicate(timeout=60)[0]
        self.assertEqual(running.returncode, code, text)
        return text

    def start_example(self, name, start_new_session=False, **env):
        return subprocess.Popen([ROOT / 'systemd/clean' / name, A, self.sys], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                env={**os.environ, 'PATH': '%s:%s' % (self.bin, os.environ['PATH']), **env},
                                start_new_session=start_new_session)


class TestReset(ExampleCase):
    def offer(self, methods):
        self.put(self.devices / A / 'reset_method', methods)
        self.put(self.devices / A / 'reset', '')

    def test_a_function_level_reset_comes_before_the_bus(self):
        self.offer('bus flr\n')
        self.assertIn('reset with flr', self.run_example('clean-reset'))
        self.assertEqual((self.devices / A / 'reset').read_text(), '1\n')
        self.assertEqual((self.devices / A / 'reset_method').read_text(), 'default\n')

    def test_a_shared_bus_is_not_reset(self):
        self.offer('bus\n')
        (self.devices / B / 'driver').symlink_to('../../drivers/snd_hda_intel')
        (self.sys / 'bus/pci/drivers/snd_hda_intel').mkdir(parents=True)
        self.assertIn('would reset %s too' % B, self.run_example('clean-reset', 1))
        self.assertEqual((self.devices / A / 'reset').read_text(), '')
        (self.devices / B / 'driver').unlink()
        self.assertIn('reset with bus', self.run_example('clean-reset'))

    def test_no_known_method_is_a_failure(self):
        self.assertIn('knows no reset', self.run_example('clean-reset', 1))
        self.offer('\n')
        self.assertIn('none of its reset methods is known', self.run_example('clean-reset', 1))


class TestNvme(ExampleCase):
    def setUp(self):
        super().setUp()
        self.program('nvme', NVME)
        self.program('wipefs', 'cat "${0%/*}/signatures" 2>/dev/null || true')
        (self.sys / 'bus/pci/drivers/nvme').mkdir(parents=True)
        (self.devices / A / 'driver').symlink_to('../../drivers/nvme')
        (self.devices / A / 'nvme/nvme77').mkdir(parents=True)
        (self.sys / 'block/nvme77n1/holders').mkdir(parents=True)
        self.program('udevadm', 'exit 0')
        self.program('sleep', 'exit 0')
        self.state = self.devices / A / 'nvme/nvme77/state'
        self.put(self.state, 'live\n')
        self.put(self.bin / 'active', '[   0]:0x1\n')
        self.put(self.bin / 'sstat', '0x101\n')

    def program(self, name, text):
        (self.bin / name).write_text('#!/bin/sh\n%s\n' % text)
        (self.bin / name).chmod(0o755)

    def controller(self, sanicap, fna, cmic='0', oacs='0', unvmcap='0'):
        fields = (('vid', '0x144d'), ('cmic', cmic), ('oacs', oacs), ('unvmcap', unvmcap), ('fna', fna), ('sanicap', sanicap))
        self.put(self.bin / 'controller', ''.join('%-10s: %s\n' % field for field in fields))

    def called(self):
        """Returns the commands that erase."""
        called = self.bin / 'called'
        return [line for line in called.read_text().splitlines() if line.startswith(('sanitize ', 'format '))] if called.exists() else []

    def test_sanitizes_by_capability(self):
        for sanicap, action in (('0x7', 4), ('0x6', 2), ('0x4', 3)):
            with self.subTest(sanicap=sanicap):
                (self.bin / 'called').unlink(missing_ok=True)
                self.controller(sanicap, '0')
                self.run_example('clean-nvme')
                self.assertEqual(self.called(), ['sanitize /dev/nvme77 --sanact=%d' % action])
                self.run_example('prove-nvme')

    def test_formats_without_sanitize(self):
        for fna, erase in (('0x4', 2), ('0', 1)):
            with self.subTest(fna=fna):
                (self.bin / 'called').unlink(missing_ok=True)
                self.controller('0', fna)
                self.run_example('clean-nvme')
                self.assertEqual(self.called(), ['format /dev/nvme77n1 --ses=%d --force' % erase])
        self.run_example('prove-nvme')
        self.put(self.bin / 'signatures', '0x438 ext4\n')
        self.assertIn('still has signatures', self.run_example('prove-nvme', 1))

    def test_a_failed_sanitize_and_later_writes_are_no_proof(self):
        self.controller('0x2', '0')
        for sstat, name, words in (('0x3', 'clean-nvme', 'sanitize failed'), ('0x3', 'prove-nvme', 'has not succeeded'),
                                   ('0x1', 'prove-nvme', 'was written to'), ('0x2', 'prove-nvme', 'has not succeeded')):
            self.put(self.bin / 'sstat', sstat)
            self.assertIn(words, self.run_example(name, 1))

    def test_a_sanitize_that_runs_is_waited_for(self):
        self.controller('0x2', '0')
        self.put(self.bin / 'sstat', '0x2\n0x2\n0x101\n')
        self.program('nvme', '[ "$1" != sanitize ] || [ "$(head -n 1 "${0%/*}/sstat")" != 0x2 ] || exit 1\n' + NVME)
        self.run_example('clean-nvme')
        self.assertEqual(self.called(), ['sanitize /dev/nvme77 --sanact=2'])

    def test_a_namespace_that_the_guest_detached_or_deleted_is_a_failure(self):
        for sanicap in ('0', '0x2'):
            self.controller(sanicap, '0', oacs='0x1f')
            self.assert_both_fail('detached namespaces cannot be listed')
            self.put(self.bin / 'active--all', '[   0]:0x1\n[   1]:0x2\n')
            self.assert_both_fail('has a namespace that is not attached to this controller')
            self.put(self.bin / 'active--all', '[   0]:0x1\n')
            self.controller(sanicap, '0', oacs='0x1f', unvmcap='3840755982336')
            self.assert_both_fail('3840755982336 bytes of it are in no namespace')
            self.controller(sanicap, '0', oacs='0x1f')
            self.run_example('clean-nvme')
            self.run_example('prove-nvme')
            (self.bin / 'active--all').unlink()
            (self.bin / 'called').unlink()

    def test_the_operator_accepts_a_number_of_unused_bytes(self):
        """A drive that is over-provisioned has capacity in no namespace."""
        self.put(self.bin / 'active--all', '[   0]:0x1\n')
        for name in ('clean-nvme', 'prove-nvme'):
            self.controller('0x2', '0', oacs='0x1f', unvmcap='320000000000')
            self.run_example(name, NVME_UNUSED_BYTES='320000000000')
            for accepted in ('', '0', '320 GB'):
                self.assertIn('320000000000 bytes of it are in no namespace', self.run_example(name, 1, NVME_UNUSED_BYTES=accepted))
            self.controller('0x2', '0', oacs='0x1f', unvmcap='320000000001')
            self.assertIn('more than NVME_UNUSED_BYTES', self.run_example(name, 1, NVME_UNUSED_BYTES='320000000000'))

    def test_a_namespace_of_another_controller_is_not_one_of_the_guest(self):
        """An operator who deletes it deletes the disk of another guest."""
        self.put(self.bin / 'active--all', '[   0]:0x1\n[   1]:0x2\n')
        self.put(self.bin / 'controllers', 'num of ctrls present: 2\n[   0]:0x41\n[   1]:0x42\n')
        for sanicap in ('0', '0x2'):
            self.controller(sanicap, '0', cmic='0x2', oacs='0x1f')
            self.assert_both_fail('its subsystem has other controllers')
        self.controller('0', '0', cmic='0x2')
        self.run_example('prove-nvme')

    def test_a_controller_without_namespaces_is_a_failure(self):
        (self.sys / 'block/nvme77n1/holders').rmdir()
        (self.sys / 'block/nvme77n1').rmdir()
        self.put(self.bin / 'active', '')
        for sanicap in ('0', '0x2'):
            self.controller(sanicap, '0')
            self.assert_both_fail('it has no namespace')

    def test_a_disk_of_the_host_is_not_erased(self):
        self.controller('0x2', '0')
        (self.sys / 'block/nvme77n1/holders/dm-0').mkdir()
        text = self.run_example('clean-nvme', 1)
        self.assertIn('nvme77n1 is used by dm-0', text)
        self.assertIn('If this is LVM or RAID of the guest', text)
        self.assertEqual(self.called(), [])

    def assert_both_fail(self, words):
        for name in ('clean-nvme', 'prove-nvme'):
            with self.subTest(name=name):
                self.assertIn(words, self.run_example(name, 1))
        self.assertEqual(self.called(), [])

    def test_a_controller_that_is_not_identified_is_not_one_without_sanitize(self):
        self.program('nvme', '[ "$1" != id-ctrl ] || { echo Resource temporarily unavailable >&2; exit 1; }\n' + NVME)
        self.assert_both_fail('cannot be identified')
        self.program('nvme', NVME)
        self.put(self.bin / 'controller', 'vid       : 0x144d\ncmic      : 0\n')
        self.assert_both_fail('nvme-cli shows no oacs')

    def test_a_missing_controller_is_named(self):
        self.controller('0', '0')
        self.put(self.state, 'connecting\n')
        self.assert_both_fail('no controller of it that is live')
        self.state.unlink()
        self.state.parent.rmdir()
        self.assert_both_fail('no controller of it that is live')

    def test_a_namespace_that_the_kernel_has_not_found_yet_is_waited_for(self):
        self.controller('0', '0')
        self.put(self.bin / 'active', '[   0]:0x1\n[   1]:0x2\n')
        self.assert_both_fail('has not found exactly the active namespaces')
        self.program('sleep', 'mkdir "%s"' % (self.sys / 'block/nvme77n2'))
        self.run_example('clean-nvme')
        self.assertEqual(self.called(), ['format /dev/nvme77n%d --ses=1 --force' % i for i in (1, 2)])
        self.assertIn('2 namespaces', self.run_example('prove-nvme'))

    def test_a_subsystem_with_several_controllers_is_not_erased(self):
        self.put(self.bin / 'controllers', 'num of ctrls present: 2\n[   0]:0x41\n[   1]:0x42\n')
        for sanicap in ('0', '0x2'):
            self.controller(sanicap, '0', cmic='0x3')
            self.assertIn('has other controllers', self.run_example('clean-nvme', 1))
            self.assertEqual(self.called(), [])

    def test_a_drive_with_two_ports_in_a_slot_with_one_is_erased(self):
        self.controller('0x2', '0', cmic='0x3')
        self.assertIn('cannot be listed', self.run_example('clean-nvme', 1))
        self.put(self.bin / 'controllers', '')
        self.assertIn('nvme-cli shows no num of ctrls present', self.run_example('clean-nvme', 1))
        self.assertEqual(self.called(), [])
        self.put(self.bin / 'controllers', 'num of ctrls present: 1\n[   0]:0x41\n')
        self.run_example('clean-nvme')
        self.assertEqual(self.called(), ['sanitize /dev/nvme77 --sanact=2'])

    def with_the_driver_of_a_guest(self):
        """Returns the path of driver_override."""
        (self.devices / A / 'driver').unlink()
        (self.devices / A / 'driver').symlink_to('../../drivers/vfio-pci')
        self.put(self.sys / 'bus/pci/drivers/vfio-pci/unbind', '')
        return self.devices / A / 'driver_override'

    def test_the_driver_of_the_guest_is_bound_again(self):
        override = self.with_the_driver_of_a_guest()
        self.controller('0x2', '0')
        for name in ('clean-nvme', 'prove-nvme'):
            self.put(override, '')
            self.run_example(name)
            self.assertEqual(override.read_text(), 'vfio-pci\n')
            self.assertEqual((self.sys / 'bus/pci/drivers_probe').read_text(), A + '\n')

    def test_a_stopped_unit_binds_the_driver_of_the_guest_again(self):
        override = self.with_the_driver_of_a_guest()
        self.program('nvme', 'echo "$*" >>"${0%/*}/called"; exec /bin/sleep 60')
        for name in ('clean-nvme', 'prove-nvme'):
            (self.bin / 'called').unlink(missing_ok=True)
            with self.start_example(name, start_new_session=True) as running:
                wait_until((self.bin / 'called').exists, 10, 'a call of nvme-cli')
                self.assertEqual(override.read_text(), 'nvme\n')
                os.killpg(running.pid, signal.SIGTERM)
                text = running.communicate(timeout=60)[0]
            self.assertNotEqual(running.returncode, 0, text)
            self.assertEqual(override.read_text(), 'vfio-pci\n')
