# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests of the environments that no other test covers: after each end they leave nothing behind, and a failed start names its reason.

    python3 -m unittest tests.env.selftest
"""

import contextlib
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import uuid
from pathlib import Path
from unittest import mock

from tests.env import fakesys, libvirtd
from tests.env.agent import refuse_sanitizers
from tests.env.libvirtd import Libvirtd
from tests.env.placement import Placement
from tests.env.scratch import (PREFIX, EnvError, EnvTimeout, Scratch, open_folders, preloaded,
                               running, wait_until)

ROOT = Path(__file__).resolve().parents[2]
PROVIDER = '4f1f8b90-4a4f-4b6a-9d7e-000000000001'


def folders():
    """Returns the names of all scratch folders, including those of other runs."""
    return {path.name for path in Path(tempfile.gettempdir()).glob(PREFIX + '*')}


class Clean(unittest.TestCase):
    """Asserts that each class leaves no process, mount or folder."""

    @classmethod
    def setUpClass(cls):
        cls.mounts = Path('/proc/self/mounts').read_text()
        cls.folders = folders()
        cls.before = set(running())

    @classmethod
    def assert_clean(cls):
        preloaded.end()
        assert Path('/proc/self/mounts').read_text() == cls.mounts, 'a mount is left'
        children = running(parent=os.getpid())
        assert not children, 'processes are left: %s' % children
        assert not open_folders(), 'folders are left: %s' % open_folders()
        left = [name for name in folders() - cls.folders if _ownerless(name)]
        assert not left, 'folders are left: %s' % left
        lost = [pid for pid in set(running()) - cls.before if _uses_scratch(pid)]
        assert not lost, 'processes are left: %s' % lost

    @classmethod
    def tearDownClass(cls):
        cls.assert_clean()


def _ownerless(name):
    """Returns whether the lock of a folder is free: its process ended without removing it."""
    path = Path(tempfile.gettempdir(), name, '.lock')
    done = subprocess.run(['flock', '-n', str(path), 'true'], check=False)
    return done.returncode == 0


def _uses_scratch(pid):
    """Returns whether a process names a scratch folder that does not exist or has no owner.

    The folder must be in the temporary folder of this run: a parallel run can use another one.
    """
    try:
        line = Path('/proc/%d/cmdline' % pid).read_bytes().decode(errors='replace')
    except OSError:
        return False
    start = re.escape(os.path.join(tempfile.gettempdir(), PREFIX))
    names = [PREFIX + rest for rest in re.findall(r'(?<![\w./-])%s(\w{8})' % start, line)]
    return any(not Path(tempfile.gettempdir(), name).exists() or _ownerless(name)
               for name in names)


class SanitizerTest(unittest.TestCase):
    def test_only_losses_of_libvirt_are_allowed(self):
        said = ('Published.\n\n====\n==4==ERROR: LeakSanitizer: detected memory leaks\n\n'
                'Direct leak of 160 byte(s) in 2 object(s) allocated from:\n'
                '    #0 0x7ffff78f4610 in calloc ../asan_malloc_linux.cpp:77\n'
                '    #1 0x7ffff630c879 in g_malloc0 (/lib/libglib-2.0.so.0+0x65879)\n\n'
                'SUMMARY: AddressSanitizer: 160 byte(s) leaked in 2 allocation(s).\n')
        refuse_sanitizers('agent', said)
        for ours in (said.replace('160', '144'), said.replace('calloc', 'malloc'),
                     said.replace('\n\nSUMMARY', '\n    #2 0x8 in f ../a.c:1\n\nSUMMARY'), said + 'a.c:1: runtime error: x\n',
                     said.replace('\n\nSUMMARY', '\n\nDirect leak of 8 byte(s) in 1 object(s) allocated from:\n    #0 a\n\nSUMMARY')):
            with self.subTest(ours), self.assertRaises(EnvError):
                refuse_sanitizers('agent', ours)


class ScratchTest(Clean):
    def test_wait_until_says_what(self):
        with self.assertRaisesRegex(EnvTimeout, 'a miracle'):
            wait_until(lambda: False, 0.05, 'a miracle')

    def test_child_log_is_in_the_error(self):
        with Scratch() as scratch:
            child = scratch.spawn(['sh', '-c', 'echo because; exit 3'], 'failing')
            with self.assertRaisesRegex(EnvError, 'because'):
                child.wait_ready(lambda: False, 5, 'nothing')

    def test_everything_is_undone_last_first(self):
        done = []
        scratch = Scratch()
        scratch.on_close(done.append, 1)
        scratch.on_close(lambda: 1 // 0)
        scratch.on_close(done.append, 2)
        child = scratch.spawn(['sh', '-c', 'trap "" TERM; sleep 100 & wait'], 'stubborn')
        with self.assertRaises(ZeroDivisionError):
            scratch.close()
        self.assertEqual(done, [2, 1])
        self.assertFalse(running(group=child.pid))
        self.assertFalse(scratch.path.exists())

    def test_child_outlives_the_thread_that_spawned_it(self):
        with Scratch() as scratch:
            box = []
            thread = threading.Thread(
                target=lambda: box.append(scratch.spawn(['sleep', '100'], 'sleeper')))
            thread.start()
            thread.join()
            time.sleep(0.1)
            self.assertTrue(box[0].alive())

    def _run_and_signal(self, number):
        code = ('import sys, time\nfrom tests.env.scratch import Scratch\n'
                'scratch = Scratch()\nchild = scratch.spawn(["sleep", "100"], "sleeper")\n'
                'print(child.pid, scratch.path, flush=True)\ntime.sleep(100)\n')
        process = subprocess.Popen([sys.executable, '-c', code], cwd=ROOT, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        pid, path = process.stdout.readline().split()
        process.send_signal(number)
        process.wait(10)
        process.stdout.close()
        wait_until(lambda: not running(group=int(pid)), 5, 'the child to die')
        return Path(path)

    def test_signals_clean_up(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            self.assertFalse(self._run_and_signal(number).exists())

    def test_the_next_run_removes_leftovers_of_a_killed_one(self):
        path = self._run_and_signal(signal.SIGKILL)
        self.assertTrue(path.exists())
        Scratch().close()
        self.assertFalse(path.exists())


class PlacementTest(Clean):
    def create(self, placement):
        answer = placement.request('POST', '/resource_providers',
                                   {'name': 'one', 'uuid': PROVIDER})
        self.assertEqual(answer.status, 200, answer.text)

    def test_gunicorn(self):
        with Placement() as placement:
            mark = placement.mark()
            self.create(placement)
            path = '/resource_providers/%s/inventories' % PROVIDER
            answer = placement.request('PUT', path, {
                'resource_provider_generation': 0, 'inventories': {'VCPU': {'total': 4}}})
            self.assertEqual(answer.status, 200, answer.text)
            self.assertEqual(placement.requests_since(mark), [
                ('POST', '/resource_providers', 200), ('PUT', path, 200)])
            provider = placement.tree(PROVIDER)[PROVIDER]
            self.assertEqual(provider['generation'], 1)
            self.assertEqual(provider['inventories']['VCPU']['total'], 4)
            self.assertEqual(provider['usages'], {'VCPU': 0})
            self.assertEqual(len(placement.requests_since(mark)), 2)
            with placement.paused(), self.assertRaises(OSError):
                placement.request('GET', '/', timeout=0.2)
            self.assertEqual(placement.request('GET', '/').status, 200)
            port = placement.port
            placement.kill()
            with self.assertRaises(OSError):
                placement.request('GET', '/')
            placement.start()
            self.assertEqual(placement.port, port)
            self.assertEqual(list(placement.requested_tree(PROVIDER)), [PROVIDER])

    def test_the_tree_in_the_database_is_that_of_the_requests(self):
        with Placement() as placement:
            self.create(placement)
            child = placement.make_provider('child', {'VCPU': 4, 'DISK_GB': 9}, PROVIDER, ['HW_NUMA_ROOT', 'COMPUTE_NODE'])
            placement.make_provider('other', {'VCPU': 4})
            placement.edit(child, 'inventories', lambda now: now['VCPU'].update(allocation_ratio=1.5, reserved=1))
            placement.set_part(child, 'aggregates', [str(uuid.uuid4()), str(uuid.uuid4())])
            consumers = [placement.place(None, {child: {'VCPU': number}}) for number in (1, 2)]
            tree = placement.tree(child)
            self.assertEqual(tree, placement.requested_tree(PROVIDER))
            self.assertEqual((list(tree), tree[child]['usages'], set(tree[child]['allocations'])),
                             ([PROVIDER, child], {'VCPU': 3, 'DISK_GB': 0}, set(consumers)))
            self.assertEqual(placement.held(consumers[1]), {child: {'VCPU': 2}})
            self.assertEqual((placement.tree(str(uuid.uuid4())), placement.held(PROVIDER)), ({}, {}))
            placement.empty()
            self.assertEqual(placement.get('/resource_providers')['resource_providers'], [])

    def test_no_two_allocations_have_one_number(self):
        with Placement(server='simple') as placement:
            self.create(placement)
            placement.set_part(PROVIDER, 'inventories', {'VCPU': {'total': 4}})
            numbers = []
            for _ in range(2):
                consumer = placement.place(None, {PROVIDER: {'VCPU': 1}})
                with contextlib.closing(sqlite3.connect(
                        placement.folder / 'placement.sqlite')) as database:
                    numbers += database.execute('SELECT id FROM allocations').fetchall()
                placement.delete(consumer)
            self.assertEqual(len(set(numbers)), 2)

    def test_a_child_ends_with_its_parent(self):
        with Placement() as placement:
            self.create(placement)
            preloaded.end()
            wait_until(placement.child.gone, 10, 'Placement and its workers to end')
            placement.start()
            self.assertIn(PROVIDER, placement.tree(PROVIDER))

    def test_words_of_one_that_does_not_start(self):
        placement = Placement()
        self.addCleanup(placement.close)
        (placement.folder / 'placement.conf').write_text('no section\n')
        with self.assertRaisesRegex(EnvError, '(?s)placement|gunicorn ended:.*no section'):
            placement.start()


class LibvirtdTest(Clean):
    def test_folders_that_this_machine_lacks(self):
        target = '/var/lib/compute-agent-no-such-folder'
        with Scratch() as scratch, mock.patch.dict(libvirtd._TARGETS, {'extra': target}):
            daemon = Libvirtd(fakesys.simple_host(), scratch)
            (daemon.folder / 'extra').mkdir()
            (daemon.folder / 'extra' / 'file').write_text('seen\n')
            daemon.start()
            done = subprocess.run([*daemon.enter(), 'sh', '-c', 'cat "$0"/file; ls /var/lib', target],
                                  capture_output=True, text=True, timeout=10, check=True)
            self.assertFalse(os.path.exists(target))
        self.assertEqual(done.stdout.splitlines()[0], 'seen')
        # The old entries are still visible. The machine can lack /var/lib/libvirt too, so the list can have more.
        self.assertLessEqual({*os.listdir('/var/lib'), os.path.basename(target)},
                             set(done.stdout.splitlines()[1:]))

    def test_close_ends_a_guest(self):
        daemon = Libvirtd(fakesys.simple_host(2, 1))
        self.addCleanup(daemon.close)
        daemon.start()
        daemon.start_guest()
        inside = daemon.processes()
        self.assertGreaterEqual(len(inside), 3)
        daemon.close()
        self.assertFalse(set(inside) & set(running()))
