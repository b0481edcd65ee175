# SPDX-License-Identifier: LGPL-2.1-or-later
"""The linux driver and the libvirt driver find the same host and make the same providers from it.

Both read the same made-up /sys. The results are compared with libvirtd, and cells and CPUs also with hwloc. DIFFERENCES lists the
rows of the table of differences in the manual.
"""

import json
import os
import re
import subprocess
import time
from pathlib import Path
from xml.etree import ElementTree

from tests.env import fakesys
from tests.env.agent import Agent, build_folder
from tests.env.case import EnvCase
from tests.env.hosts import (DEMO_MDEV, Cell, Gpu, Host, Pci, demo_host, m10_types, simple_host, sriov,
                             vgpu_card)
from tests.env.libvirtd import Libvirtd, guest_xml
from tests.env.scratch import wait_until
from tests.integration.driver.test_libvirtd import DriverCase

ROOT = Path(__file__).resolve().parents[3]
BUILD = build_folder()
MDEV = '2a1f4b9e-6c41-4f0b-9a53-8f8f0f6c1d01'

# Rows of the table in the manual, with the members of the snapshots that differ: those of the host, and those of a device.
DIFFERENCES = {
    'Traits COMPUTE_*, HW_ARCH_*': (['emulators', 'emulators_incomplete', 'libvirt_version'], []),
    'Traits HW_CPU_*': (['cpu_features', 'features_incomplete'], []),
    'MEM_ENCRYPTION_CONTEXT': ([], []),  # test_memory_encryption
    'DISK_GB of images_storage_pool': ([], []),  # test_a_pool_is_libvirts
    'Guests': (['domains'], []),
    'Devices with remote_managed': ([], ['has_card_serial', 'serial']),  # TestTree
    'Names in discover': (['driver', 'hypervisor', 'hypervisor_version', 'cpu_model'], ['vendor', 'product']),
}
OF_HOST = {member for host, _ in DIFFERENCES.values() for member in host}
OF_DEVICE = {member for _, device in DIFFERENCES.values() for member in device}


def rows_of_manual():
    """Returns the first cell of each row of the table."""
    text = (ROOT / 'man/compute-agent.conf.5.tail').read_text()
    table = text.partition('.TS\n')[2].partition('.TE\n')[0]
    return re.findall(r'^T\{\n(.*)\n', table, re.M)


def without(members, item):
    return {key: value for key, value in item.items() if key not in members}


def comparable(snapshot):
    ret = without(OF_HOST | {'taken_realtime_usec'}, snapshot)
    ret['devices'] = {device['name']: without(OF_DEVICE, device) for device in snapshot['devices']}
    return ret


def differing(found, told):
    """Returns the members of DIFFERENCES that differ between two snapshots."""
    devices = {device['name']: device for device in told['devices']}
    ret = {member for member in OF_HOST if found.get(member) != told.get(member)}
    return ret | {member for device in found['devices'] for member in OF_DEVICE
                  if device.get(member) != devices[device['name']].get(member)}


def sparse_host():
    return Host(name='sparse', cells=[Cell(0, [0, 1, 2, 3], 2 << 20, {2048: 16}, threads=2), Cell(3, [4, 5], (1 << 20) + 512),
                                      Cell(8, [], 1 << 20, {2048: 8, 1048576: 0})])


def card_host():
    """Returns a host with cards with and without functions, and a card that could have some. It also has an NVIDIA card with vGPU
    functions, and a card without a driver."""
    host = simple_host(cells=2, gpus=1)
    host.pci = [*sriov('0000:8a:00.0', 12, numa_node=1), Pci('0000:8b:00.0', -1, total_vfs=64), Pci('0000:8c:00.0', driver=''),
                *vgpu_card('0000:c1:00.0', 3, {1428: 'NVIDIA L40S-2Q', 1436: 'NVIDIA L40S-48Q'})]
    host.pci[-1].current_vgpu_type = 1428
    host.gpus.append(Gpu('0000:42:00.0', 1, types=m10_types(existing=[MDEV])))
    for device in host.pci:
        if device.address.startswith('0000:8a:00.0'):
            device.serial = 'MT1234X00001'
    return host


def wide_host():
    """Returns a host with more CPUs than a word has bits. The numbers of sibling threads are far apart."""
    return Host(name='wide', cells=[Cell(number, [*range(16 * number, 16 * number + 16), *range(64 + 16 * number, 80 + 16 * number)],
                                         4 << 20, {2048: 64}, threads=2) for number in range(4)])


HOSTS = {'wide': wide_host, 'simple': simple_host, 'demo': demo_host, 'sparse': sparse_host, 'cards': card_host}


def cells_of(snapshot):
    return {cell['id']: {'memory_kib': cell['memory_kib'], 'pages': {page['size_kib']: page['count'] for page in cell['pages']},
                         'cpus': {cpu['id']: (cpu['socket_id'], cpu['siblings']) for cpu in cell['cpus']}}
            for cell in snapshot['cells']}


def hwloc_cells(sys, folder):
    """Returns the cells as hwloc reads them. hwloc shares no code with libvirt or the agent."""
    (folder / 'proc').mkdir()
    (folder / 'sys').symlink_to(sys)
    text = subprocess.run(['lstopo-no-graphics', '--input', folder, '--of', 'xml'], stdout=subprocess.PIPE, text=True, timeout=60,
                          check=True).stdout
    topology = ElementTree.fromstring(text)

    def find(kind):
        """Returns {CPUs: object} of all objects of a kind."""
        found = {}
        for item in topology.iter('object'):
            if item.get('type') == kind:
                # The words have 32 bits, the highest first.
                words = [int(word or '0', 16) for word in item.get('cpuset').split(',')]
                mask = sum(word << 32 * i for i, word in enumerate(reversed(words)))
                found[frozenset(cpu for cpu in range(mask.bit_length()) if mask >> cpu & 1)] = item
        return found
    sockets = {cpu: int(item.get('os_index')) for cpus, item in find('Package').items() for cpu in cpus}
    siblings = {cpu: fakesys.cpu_list(cpus) for cpus in find('Core') for cpu in cpus}
    return {int(node.get('os_index')): {
        'memory_kib': int(node.get('local_memory')) // 1024,
        'pages': {int(page.get('size')) // 1024: int(page.get('count')) for page in node.iter('page_type')},
        'cpus': {cpu: (sockets[cpu], siblings[cpu]) for cpu in cpus}} for cpus, node in find('NUMANode').items()}


class TestAgrees(DriverCase):
    maxDiff = None

    def probe_in(self, libvirtd, driver, *options):
        return self.probe(libvirtd.uri, *options, driver=driver, within=libvirtd.enter('-m', '-n', '-u', '-p'))

    def test_snapshots(self):
        """The snapshots differ exactly in the rows of the manual."""
        differ = set()
        for name, make in HOSTS.items():
            with self.subTest(name), Libvirtd(make(), self.scratch) as libvirtd:
                libvirtd.define(guest_xml('guest'))
                told, found = (self.probe_in(libvirtd, driver, '--once').snapshot() for driver in ('libvirt', 'linux'))
                self.assertEqual(comparable(found), comparable(told))
                self.assertEqual(cells_of(found), hwloc_cells(libvirtd.sys, self.scratch.folder('hwloc')))
                differ |= differing(found, told)
        self.assertEqual(differ, OF_HOST | OF_DEVICE)
        self.assertEqual(rows_of_manual(), list(DIFFERENCES))

    def test_events(self):
        """The next poll sees changes without an event, and an event of udev starts a poll for the other changes."""
        with Libvirtd(card_host(), self.scratch) as libvirtd:
            sys, gpu, card = libvirtd.sys, Gpu('0000:43:00.0', 0, driver='', types={}), '0000:8b:00.0'
            libvirtd.plug_device(gpu)
            probe = self.probe_in(libvirtd, 'linux', '--interval', '0.2')

            def wait(look):
                probe.wait_snapshot(lambda host: look(comparable(host)['devices']), 30)

            wait(lambda devices: devices['pci_0000_43_00_0']['driver'] == '')
            (fakesys.device_path(sys, card) / 'numa_node').write_text('1\n')
            fakesys.bind_driver(sys, gpu, 'nvidia', m10_types())
            path = fakesys.device_path(sys, gpu.address) / 'uevent'
            path.write_text('DRIVER=nvidia\n' + path.read_text())
            wait(lambda devices: len(devices['pci_0000_43_00_0']['mdev_types']) == 3 and
                 devices['pci_0000_43_00_0']['driver'] == 'nvidia')  # this sends no event
            self.assertNotIn('changed', probe.lines())
            for _ in range(300):
                libvirtd.announce('change', card, wait=False)
            wait(lambda devices: devices['pci_0000_8b_00_0']['numa_node'] == 1)
            self.assertIn('changed', probe.lines())


class TestFlood(EnvCase):
    """Many events in a short time, as at the boot of a machine with many virtual functions, cause one poll. An endless series does
    not prevent polls."""

    make_host = staticmethod(card_host)

    # Sends a short burst of events and then a long series, and counts the polls of each.
    def check(self, driver):
        card = '0000:8b:00.0'
        metrics = self.scratch.path / 'metrics'
        agent = Agent(self.scratch, uri=self.libvirtd.uri, within=self.libvirtd.enter('-m', '-n', '-u', '-p'), bus=self.bus, options={
            'DEFAULT': {'compute_driver': driver, 'update_resources_interval': 600}, 'agent': {'metrics_file': metrics}}).start('standalone')

        def polls():
            return int(re.search('^compute_agent_cycles_total ([0-9]+)$', metrics.read_text(), re.M)[1])

        def send(count, pause):
            """Sends events, and returns the number of polls that can begin during them: one for each pause, and one for each
            interval of an endless series."""
            begin = last = time.monotonic()
            pauses = 0
            for _ in range(count):
                self.libvirtd.announce('change', card, wait=False)
                time.sleep(pause)
                now = time.monotonic()
                pauses, last = pauses + (now - last > 0.15), now
            return pauses + int((last - begin) / 2)

        agent.ctl('sync')
        time.sleep(1)
        before = polls()
        more = send(300, 0.001)
        wait_until(lambda: polls() > before, 30, 'a poll')
        time.sleep(2)
        self.assertLessEqual(polls() - before, 1 + more)
        before = polls()
        send(160, 0.05)
        self.assertGreaterEqual(polls() - before, 2)

    def test_libvirt(self):
        self.check('libvirt')

    def test_linux(self):
        self.check('linux')


class TestHere(EnvCase):
    """The machine that runs the tests, read by a user without rights."""

    def run_as_nobody(self, argv, folder):
        rights = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'] if os.getuid() == 0 else []
        done = subprocess.run([*rights, *map(str, argv)], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False,
                              env={**os.environ, 'TMPDIR': str(folder), 'PYTHONDONTWRITEBYTECODE': '1',
                                   'COMPUTE_AGENT_TEST_CACHE': str(folder / 'cache')})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def setUp(self):
        # The scratch folder itself is used. In a subfolder the path of the demo's bus would be too long for a socket.
        self.folder = self.scratch.path
        self.folder.chmod(0o1777)

    def test_discover(self):
        found = json.loads(self.run_as_nobody([BUILD / 'computectl', 'discover', '--driver=linux', '--json=short'], self.folder))
        self.assertEqual((found['driver'], found['arch']), ('linux', os.uname().machine))
        self.assertEqual(sum(len(cell['cpus']) for cell in found['cells']), os.sysconf('SC_NPROCESSORS_ONLN'))

    def test_demo(self):
        text = self.run_as_nobody(['/usr/bin/python3', '-B', '-m', 'tests.run.demo', '--here'], self.folder)
        self.assertEqual(len(re.findall('^  yes  ', text, re.M)), 3, text)
        pictures = list(self.folder.glob('compute-agent-host-*.svg'))
        self.assertEqual(len(pictures), 1)
        self.assertIn('NUMA cell 0', pictures[0].read_text())


class TestTree(EnvCase):
    """Changes in Placement after a change of the driver."""
    maxDiff = None
    make_host = staticmethod(card_host)

    def setUp(self):
        self.agent = Agent(self.scratch, self.placement, self.libvirtd.uri, within=self.libvirtd.enter('-m', '-u', '-p'))

    def run_once(self, driver, numa, code=0):
        self.agent.configure({
            'DEFAULT': {'compute_driver': driver},
            'compute': {'numa_in_placement': numa, 'cpu_dedicated_set': '1-3,5-7', 'cpu_shared_set': '0,4'},
            'devices': {'enabled_mdev_types': 'nvidia-35,nvidia-1428'},
            'mdev_nvidia-35': {'device_addresses': '0000:41:00.0,0000:42:00.0'},
            'mdev_nvidia-1428': {'device_addresses': '0000:c1:01.0,0000:c1:01.1,0000:c1:01.2'},
            'pci': {'report_in_placement': 'true', 'device_spec': [
                json.dumps({'vendor_id': '8086', 'product_id': '154c', 'remote_managed': 'true'}),
                json.dumps({'address': '0000:8c:00.0'})]}})
        self.agent.run('--once', code=code)
        return self.placement.tree_by_name(self.agent.root())

    def test_a_change_of_the_driver_changes_nothing(self):
        for numa in ('false', 'true'):
            told = self.run_once('libvirt', numa)
            self.assertEqual(self.run_once('linux', numa), told)
            self.assertEqual(self.run_once('libvirt', numa), told)
            self.assertEqual(len([name for name in told if '8A:0' in name.upper()]), 1, sorted(told))

    def test_memory_encryption(self):
        """The kernel's numbers are used if it has them. Without them those of libvirt stay."""
        self.run_once('libvirt', 'false')
        (self.libvirtd.sys / 'fs/cgroup/misc.capacity').write_text('sev 410\nsev_es 99\n')
        before = self.run_once('linux', 'false')
        self.assertEqual({name: before[name]['inventories']['MEM_ENCRYPTION_CONTEXT']['total'] for name in before if '_amd_' in name},
                         {'compute-1_amd_sev': 410, 'compute-1_amd_sev_es': 99})
        (self.libvirtd.sys / 'fs/cgroup/misc.capacity').unlink()
        self.assertEqual(self.run_once('linux', 'false'), before)
        # The firmware gave all contexts to SEV-ES.
        (self.libvirtd.sys / 'fs/cgroup/misc.capacity').write_text('sev_es 509\n')
        tree = self.run_once('linux', 'false')
        self.assertEqual({name: tree[name]['inventories']['MEM_ENCRYPTION_CONTEXT']['total'] for name in tree if '_amd_' in name},
                         {'compute-1_amd_sev_es': 509})

    def test_i8_tdx_is_told_by_neither(self):
        before = self.run_once('libvirt', 'false')
        (self.libvirtd.sys / 'fs/cgroup/misc.capacity').write_text('tdx 31\n')
        for driver in ('linux', 'libvirt'):
            tree = self.run_once(driver, 'false')
            self.assertEqual(tree, before)
            self.assertNotIn('MEM_ENCRYPTION_CONTEXT', str(tree))

    def test_a_pool_is_libvirts(self):
        """The size of the pool stays as libvirt reported it, and each cycle gives the reason."""
        self.libvirtd.virsh('pool-define-as', 'guests', 'dir', '--target', self.scratch.folder('pool'))
        self.libvirtd.virsh('pool-start', 'guests')
        self.agent.configure({'libvirt': {'images_storage_pool': 'guests'}, 'DEFAULT': {'instances_path': '/nowhere'}})
        before = self.run_once('libvirt', 'false')
        self.assertGreater(before['compute-1']['inventories']['DISK_GB']['total'], 0)
        self.assertEqual(self.run_once('linux', 'false', code=1), before)
        self.assertIn('images_storage_pool: the driver "linux" does not use libvirt', self.agent.run('--once').stderr)

    def test_claims_are_kept(self):
        """The claim of a guest stays, although only libvirt reports the guest."""
        with Libvirtd(demo_host(), self.scratch) as libvirtd:
            libvirtd.define(guest_xml('owner', devices=[DEMO_MDEV]))
            agent = Agent(self.scratch, None, libvirtd.uri, self.bus, {
                'DEFAULT': {'claim_expiry_time': 3, 'update_resources_interval': 1}}, within=libvirtd.enter('-m', '-u', '-p'))
            agent.start('standalone')
            wait_until(lambda: agent.claims(), 30, 'a claim of the guest')

            def held():
                return [(claim['id'], claim['state'], claim['allocations'], claim['devices']) for claim in agent.claims()]
            before = held()
            self.assertEqual(len(before), 1)
            for driver in ('linux', 'libvirt'):
                agent.stop()
                agent.configure({'DEFAULT': {'compute_driver': driver}})
                agent.start('standalone')
                after = time.monotonic() + 6  # longer than a claim without a guest is kept
                while time.monotonic() < after:
                    agent.ctl('sync')
                    time.sleep(0.5)
                self.assertEqual(held(), before, driver)
            self.assertEqual(agent.problems(), [])

    @staticmethod
    def withheld(tree):
        """Returns the names of providers with an inventory that is reserved as a whole."""
        return {name for name, provider in tree.items()
                if any(record['reserved'] == record['total'] for record in provider['inventories'].values())}

    CARD = 'compute-1_pci_0000_c1_00_0'

    def assert_offers_nothing_new(self, before, tree):
        """The card with vGPU functions, of which one cannot be read, has less capacity than before."""
        for name, record in tree[self.CARD]['inventories'].items():
            self.assertGreater(record['reserved'], before[self.CARD]['inventories'][name]['reserved'])

    def test_one_bad_file_costs_itself(self):
        """The bad files belong to a type of a card, to a card, and to a vGPU function. Each one is named, and the rest is published."""
        before = self.run_once('linux', 'true')
        card = fakesys.device_path(self.libvirtd.sys, '0000:42:00.0')
        (card / 'mdev_supported_types/nvidia-35/available_instances').write_text('many\n')
        (fakesys.device_path(self.libvirtd.sys, '0000:8c:00.0') / 'uevent').write_text('PCI_CLASS=x\n')
        (fakesys.device_path(self.libvirtd.sys, '0000:c1:01.0') / 'nvidia/creatable_vgpu_types').write_text('x' * 70000)
        fakesys.set_hugepages(self.libvirtd.sys, 0, 2048, 32)
        done = self.agent.run('--once', code=1)
        for words in ('class/mdev_bus/0000:42:00.0/mdev_supported_types/nvidia-35/available_instances has unexpected content',
                      'bus/pci/devices/0000:8c:00.0/uevent has unexpected content',
                      'Cannot read /sys/bus/pci/devices/0000:c1:01.0/nvidia/creatable_vgpu_types: File too large'):
            self.assertIn(words, done.stderr)
        tree = self.placement.tree_by_name(self.agent.root())
        self.assertEqual(tree['compute-1_NUMA0']['inventories']['CUSTOM_HUGEPAGES_2M']['total'], 32)
        record = tree['compute-1_0000:8C:00.0']['inventories']['CUSTOM_PCI_8086_1572']
        self.assertEqual((record['total'], record['reserved']), (1, 1))
        self.assertEqual(before.keys() - tree.keys(), set())
        self.assertEqual(self.withheld(tree) - {self.CARD}, {'compute-1_0000:8C:00.0', 'compute-1_pci_0000_42_00_0'})
        self.assert_offers_nothing_new(before, tree)

    def test_one_function_that_libvirt_knows_nothing_of(self):
        """The agent reads the types of an NVIDIA function itself, also with the libvirt driver."""
        before = self.run_once('libvirt', 'false')
        (fakesys.device_path(self.libvirtd.sys, '0000:c1:01.1') / 'nvidia/creatable_vgpu_types').write_text('x' * 70000)
        fakesys.set_hugepages(self.libvirtd.sys, 0, 2048, 32)
        for driver in ('libvirt', 'linux'):
            tree = self.run_once(driver, 'false', code=1)
            self.assertEqual(before.keys() - tree.keys(), set(), driver)
            self.assertEqual(self.withheld(tree) - {self.CARD}, set(), driver)
            self.assert_offers_nothing_new(before, tree)
            self.assertEqual(tree['compute-1']['inventories'], before['compute-1']['inventories'])

    def test_files_with_the_size_of_the_host_fail_the_poll(self):
        """A cell of unknown memory would look like a small one, so the whole poll fails."""
        before = self.run_once('linux', 'true')
        fakesys.set_hugepages(self.libvirtd.sys, 0, 2048, 32)
        path = self.libvirtd.sys / 'devices/system/node/node1/meminfo'
        text = path.read_text()
        for bad in ('', 'Node 1 MemTotal: 12 MB\n', 'Node 1 MemTotal: 99999999999999999999 kB\n', None):
            path.unlink()
            if bad is not None:
                path.write_text(bad)
            done = self.agent.run('--once', code=1)
            self.assertIn('devices/system/node/node1/meminfo', done.stderr)
            path.write_text(text)
        self.assertEqual(self.placement.tree_by_name(self.agent.root()), before)
