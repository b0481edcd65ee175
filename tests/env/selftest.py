# SPDX-License-Identifier: LGPL-2.1-or-later
"""Start each environment for real and see that it works and leaves nothing behind.

    python3 -m unittest tests.env.selftest
"""

import contextlib
import http.client
import json
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
import unittest.mock as mock
import uuid
import xml.etree.ElementTree as ET
from pathlib import Path

from tests.env import fakesys, faults, libvirtd
from tests.env.agent import refuse_sanitizers
from tests.env.bus import Bus
from tests.env.libvirtd import (Libvirtd, guest_xml, mdev_xml, mount_namespaces_allowed,
                                testdriver_xml)
from tests.env.placement import Placement
from tests.env.proxy import Proxy
from tests.env.scratch import (PREFIX, EnvError, EnvTimeout, Scratch, open_folders, preloaded,
                               running, wait_until)

ROOT = Path(__file__).resolve().parents[2]
PROVIDER = '4f1f8b90-4a4f-4b6a-9d7e-000000000001'
NAMESPACES = mount_namespaces_allowed()


def children():
    """The pids of this process's children that run."""
    ret = []
    for pid in running():
        with contextlib.suppress(OSError):
            stat = Path('/proc/%d/stat' % pid).read_text().rpartition(')')[2].split()
            if int(stat[1]) == os.getpid():
                ret.append(pid)
    return ret


def folders():
    """The names of all scratch folders, of other runs too."""
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
        assert not children(), 'processes are left: %s' % children()
        assert not open_folders(), 'folders are left: %s' % open_folders()
        left = [name for name in folders() - cls.folders if _ownerless(name)]
        assert not left, 'folders are left: %s' % left
        lost = [pid for pid in set(running()) - cls.before if _uses_scratch(pid)]
        assert not lost, 'processes are left: %s' % lost

    @classmethod
    def tearDownClass(cls):
        cls.assert_clean()


def _ownerless(name):
    """Whether nobody holds the lock of a folder: what made it ended without removing it."""
    path = Path(tempfile.gettempdir(), name, '.lock')
    done = subprocess.run(['flock', '-n', str(path), 'true'], check=False)
    return done.returncode == 0


def _uses_scratch(pid):
    """Whether a process names one of our scratch folders that is gone or has no owner.

    Another run at the same time may have its own in another temp folder.
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
    def test_only_what_libvirt_loses_is_no_leak_of_ours(self):
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

    def test_next_run_sweeps_what_a_killed_one_left(self):
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
            self.assertEqual(list(placement.tree_by_name(PROVIDER)), ['one'])

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

    def test_simple(self):
        with Placement(server='simple') as placement:
            self.create(placement)
            self.assertEqual(placement.writes_since(), [('POST', '/resource_providers', 200)])
            placement.restart()
            self.assertIn(PROVIDER, placement.tree(PROVIDER))

    def test_ends_with_what_forked_it(self):
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

    def test_unix_socket(self):
        with Placement(server='uwsgi-unix') as placement:
            self.create(placement)
            self.assertEqual(placement.writes_since(), [('POST', '/resource_providers', 200)])
            self.assertTrue(os.path.exists(placement.socket_path))


class BusTest(Clean):
    def test_names_may_be_owned(self):
        with Bus() as bus:
            self.call(bus, 'RequestName', 'su', 'org.example.Test', '0')
            pid = bus.child.pid
            bus.restart()
            self.assertNotEqual(bus.child.pid, pid)
            self.call(bus, 'ListNames')

    def call(self, bus, method, *args):
        name = 'org.freedesktop.DBus'
        done = bus.busctl('call', name, '/org/freedesktop/DBus', name, method, *args)
        self.assertEqual(done.returncode, 0, done.stderr)


class CleanAtEnd(Clean):
    """The same with a scratch for the class."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.scratch = Scratch()
        cls.addClassCleanup(cls.assert_clean)
        cls.addClassCleanup(cls.scratch.close)

    @classmethod
    def tearDownClass(cls):
        """The cleanups do it."""


class ProxyTest(CleanAtEnd):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.placement = Placement(cls.scratch, server='simple').start()

    def setUp(self):
        self.proxy = self.enterContext(Proxy(self.placement.port))

    def ask(self, method='GET', path='/resource_providers', body=None, timeout=5):
        connection = http.client.HTTPConnection('127.0.0.1', self.proxy.port, timeout=timeout)
        self.addCleanup(connection.close)
        connection.request(method, path, json.dumps(body) if body else None, {
            'X-Auth-Token': 'admin', 'Content-Type': 'application/json',
            'OpenStack-API-Version': 'placement 1.39'})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()

    def test_passes_on_and_counts(self):
        mark = self.placement.mark()
        status, headers, body = self.ask()
        self.assertEqual((status, json.loads(body)), (200, {'resource_providers': []}))
        self.assertEqual(headers['OpenStack-API-Version'], 'placement 1.39')
        self.assertEqual(self.proxy.requests_since(), [('GET', '/resource_providers', 200)])
        self.assertEqual(self.proxy.requests_since(), self.placement.requests_since(mark))
        self.assertEqual(self.proxy.count('GET', 'providers'), 1)
        self.assertEqual(self.proxy.requests[0].headers['X-Auth-Token'], 'admin')

    def test_answers(self):
        mark = self.placement.mark()
        for fault, expected, start in ((faults.server_error(), 500, b'{"errors"'),
                                       (faults.html(), 503, b'<html>'),
                                       (faults.garbage(), 200, b'{"resource_providers": [')):
            with self.proxy.fault(fault):
                status, _, body = self.ask()
            self.assertEqual((status, body[:len(start)], fault.hits), (expected, start, 1))
        with self.proxy.fault(faults.oversized(1 << 20)):
            self.assertGreater(len(self.ask()[2]), 1 << 20)
        self.assertEqual(self.placement.requests_since(mark), [])

    def test_every_second_write_conflicts(self):
        fault = self.proxy.add(faults.conflict(every=2))
        got = [self.ask('PUT', '/traits/CUSTOM_%d' % i)[0] for i in range(4)]
        self.assertEqual(got, [201, 409, 201, 409])
        self.assertEqual(fault.hits, 2)
        self.assertEqual(self.ask()[0], 200)

    def test_cuts(self):
        mark = self.placement.mark()
        with self.proxy.fault(faults.Cut('before')), self.assertRaises(ConnectionError):
            self.ask('PUT', '/traits/CUSTOM_BEFORE')
        self.assertEqual(self.placement.requests_since(mark), [])
        with self.proxy.fault(faults.Cut('after')), self.assertRaises(ConnectionError):
            self.ask('PUT', '/traits/CUSTOM_AFTER')
        self.assertEqual(self.placement.requests_since(mark),
                         [('PUT', '/traits/CUSTOM_AFTER', 201)])
        with self.proxy.fault(faults.Cut('middle')):
            with self.assertRaises((http.client.IncompleteRead, ConnectionError)):
                self.ask()

    def test_hangs_and_delays(self):
        with self.proxy.fault(faults.Hang()) as hang:
            with self.assertRaises(TimeoutError):
                self.ask(timeout=0.1)
            self.assertTrue(hang.reached.is_set())
        with self.proxy.fault(faults.Delay(0.2, times=1)):
            began = time.monotonic()
            self.assertEqual(self.ask()[0], 200)
            self.assertGreaterEqual(time.monotonic() - began, 0.2)

    def test_refuses_and_listens_again(self):
        port = self.proxy.port
        self.proxy.refuse()
        with self.assertRaises(ConnectionRefusedError):
            self.ask()
        self.proxy.listen()
        self.assertEqual(self.proxy.port, port)
        self.assertEqual(self.ask()[0], 200)

    def test_rewrites(self):
        def older(status, headers, _body):
            return status, headers, b'{}'
        with self.proxy.fault(faults.Rewrite(older)):
            self.assertEqual(self.ask()[2], b'{}')


@unittest.skipUnless(NAMESPACES, 'namespaces are not allowed')
class LibvirtdTest(CleanAtEnd):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.host = fakesys.demo_host()
        cls.host.pci = fakesys.sriov('0000:21:00.0', 2, numa_node=0, total_vfs=8)
        cls.daemon = Libvirtd(cls.host, cls.scratch)
        cls.addClassCleanup(cls.daemon.close)
        cls.daemon.start()

    def xml(self, *args):
        return ET.fromstring(self.daemon.virsh(*args))

    def types(self, name):
        found = self.xml('nodedev-dumpxml', name).findall('.//capability/type')
        return {item.get('id'): int(item.findtext('availableInstances')) for item in found}

    def test_cells(self):
        cells = self.xml('capabilities').findall('host/topology/cells/cell')
        self.assertEqual(len(cells), 4)
        for cell, asked in zip(cells, self.host.cells):
            self.assertEqual(int(cell.findtext('memory')), asked.memory_kib)
            cpus = sorted(int(cpu.get('id')) for cpu in cell.findall('cpus/cpu'))
            self.assertEqual(cpus, asked.cpus)
            pages = {int(page.get('size')): int(page.text) for page in cell.findall('pages')}
            pages.pop(4)
            self.assertEqual(pages, asked.hugepages)
            self.assertEqual([int(item.get('value')) for item in
                              cell.findall('distances/sibling')], asked.distances)
        self.assertEqual(cells[0].find('cpus/cpu').get('siblings'), '0,8')

    def test_gpus(self):
        names = self.daemon.nodedevs('mdev_types')
        self.assertEqual(names, ['pci_0000_41_00_0', 'pci_0000_81_00_0'])
        for name, gpu in zip(names, self.host.gpus):
            self.assertEqual(self.types(name),
                             {key: value.available for key, value in gpu.types.items()})
            numa = self.xml('nodedev-dumpxml', name).find('.//numa')
            self.assertEqual(int(numa.get('node')), gpu.numa_node)
        mdevs = self.daemon.nodedevs('mdev')
        self.assertEqual(len(mdevs), 1)
        mdev = self.xml('nodedev-dumpxml', mdevs[0])
        self.assertEqual(mdev.find('capability/type').get('id'), 'nvidia-35')
        self.assertEqual(mdev.findtext('capability/uuid'), fakesys.DEMO_MDEV)

    def test_sriov(self):
        pf = self.xml('nodedev-dumpxml', 'pci_0000_21_00_0')
        functions = pf.find(".//capability[@type='virt_functions']")
        self.assertEqual(functions.get('maxCount'), '8')
        self.assertEqual(len(functions.findall('address')), 2)
        vf = self.xml('nodedev-dumpxml', 'pci_0000_21_01_0')
        self.assertEqual(vf.find(".//capability[@type='phys_function']/address").get('bus'),
                         '0x21')

    def test_live_edits(self):
        address, name = '0000:41:00.0', 'pci_0000_41_00_0'
        uuid = '0b0f9f3c-98c4-4f5a-8f0c-000000000002'
        fakesys.set_available(self.daemon.sys, address, 'nvidia-36', 1)
        self.assertEqual(self.types(name)['nvidia-36'], 1)
        self.daemon.create_mdev(address, 'nvidia-35', uuid)
        self.assertEqual(self.types(name)['nvidia-35'], 3)
        self.assertEqual(len(self.daemon.nodedevs('mdev')), 2)
        self.daemon.remove_mdev(uuid)
        self.assertEqual(self.types(name)['nvidia-35'], 4)
        fakesys.set_available(self.daemon.sys, address, 'nvidia-36', 2)
        gpu = self.host.gpus[1]
        self.daemon.remove_device(gpu.address)
        self.assertEqual(self.daemon.nodedevs('mdev_types'), [name])
        self.assertEqual(self.daemon.nodedevs('mdev'), [])
        self.daemon.plug_device(gpu)
        self.assertEqual(len(self.daemon.nodedevs('mdev_types')), 2)
        self.assertEqual(len(self.daemon.nodedevs('mdev')), 1)

    def test_guest_outlives_the_daemon(self):
        self.daemon.start_guest('tiny')
        self.daemon.restart()
        self.assertEqual(self.daemon.virsh('list', '--name').split(), ['tiny'])
        self.daemon.kill()
        with self.assertRaises(EnvError):
            self.daemon.virsh('list')
        self.daemon.start()
        self.assertEqual(self.daemon.virsh('list', '--name').split(), ['tiny'])
        self.daemon.destroy_guests()
        self.daemon.virsh('undefine', 'tiny')

    def test_memory_and_pages_change(self):
        fakesys.set_memory(self.daemon.sys, 3, 6 << 20, 5 << 20)
        fakesys.set_hugepages(self.daemon.sys, 3, 2048, 128)
        cell = self.xml('capabilities').findall('host/topology/cells/cell')[3]
        self.assertEqual(int(cell.findtext('memory')), 6 << 20)
        self.assertEqual(cell.findtext("pages[@size='2048']"), '128')
        fakesys.set_memory(self.daemon.sys, 3, 8 << 20, 7 << 20)
        fakesys.set_hugepages(self.daemon.sys, 3, 2048, 256)

    def test_guest_with_mdev_is_defined(self):
        self.daemon.define(guest_xml('vgpu', extra=mdev_xml(fakesys.DEMO_MDEV)))
        source = self.xml('dumpxml', 'vgpu').find('devices/hostdev/source/address')
        self.assertEqual(source.get('uuid'), fakesys.DEMO_MDEV)
        self.daemon.virsh('undefine', 'vgpu')

    def test_pause(self):
        with self.daemon.paused():
            with self.assertRaises(subprocess.TimeoutExpired):
                self.daemon.virsh('version', timeout=0.3)
        self.daemon.virsh('version')

    def test_command_inside_sees_the_tree(self):
        done = subprocess.run([*self.daemon.enter(), 'cat', '/sys/devices/system/node/online'],
                              capture_output=True, text=True, timeout=10, check=True)
        self.assertEqual(done.stdout, '0-3\n')

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
        # what was there still is; /var/lib/libvirt may be one more that this machine lacks
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


class TestDriverTest(Clean):
    def test_gpus(self):
        with Scratch() as scratch:
            uri = testdriver_xml(fakesys.demo_host(), scratch.path)
            for gpu in fakesys.demo_host().gpus:
                name = 'pci_' + gpu.address.replace(':', '_').replace('.', '_')
                done = subprocess.run(['virsh', '-c', uri, 'nodedev-dumpxml', name], text=True,
                                      capture_output=True, timeout=10, check=True)
                types = ET.fromstring(done.stdout).findall('.//capability/type')
                self.assertEqual([item.get('id') for item in types], list(gpu.types))


class LabTest(Clean):
    def test_starts_and_ends(self):
        with Scratch() as scratch:
            description = scratch.path / 'host.json'
            description.write_text(json.dumps(fakesys.simple_host(2, 1, 'mine').to_dict()))
            process = subprocess.Popen(
                [sys.executable, '-m', 'tests.env.lab', '--host', str(description)], cwd=ROOT,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            try:
                lab = json.loads(process.stdout.readline())
                self.assertTrue(os.path.isdir(lab['folder']))
                self.assertEqual(lab['hostname'], 'mine')
                self.assertTrue(lab['uri'] and lab['endpoint'] and lab['bus'])
            finally:
                process.stdin.close()
                self.assertEqual(process.wait(20), 0)
                process.stdout.close()
            self.assertFalse(os.path.exists(lab['folder']))
