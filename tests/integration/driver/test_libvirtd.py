# SPDX-License-Identifier: LGPL-2.1-or-later
"""The libvirt driver with a real libvirtd over made-up hardware, as driver-probe shows it."""

import json
import subprocess
import time

from tests.env import fakesys
from tests.env.agent import build_folder, refuse_sanitizers
from tests.env.case import EnvCase
from tests.env.fakesys import DEMO_MDEV, demo_host
from tests.env.hosts import Gpu, m10_types, nodedev_name
from tests.env.libvirtd import guest_xml, testdriver_xml
from tests.env.scratch import EnvError, wait_until

BUILD = build_folder()
GPU_A = 'pci_0000_41_00_0'
NEW_MDEV = '2a1f4b9e-6c41-4f0b-9a53-8f8f0f6c1d01'


class Probe:
    """A running driver-probe that writes its results as lines, each with its kind first."""

    def __init__(self, scratch, uri, *options, driver='libvirt', within=()):
        self.child = scratch.spawn([*within, BUILD / 'tests/probes/driver-probe', *options, driver, uri], 'probe',
                                   scratch.folder('probe'), wrapper=bool(within))

    def lines(self):
        text = self.child.log.read_text()
        return text[:text.rfind('\n') + 1].splitlines()

    def _wait(self, look, seconds, what):
        """Waits as wait_until() does, and also fails if the probe ends before."""
        def check():
            alive = self.child.alive()
            value = look()
            if not value and not alive:
                raise EnvError('the probe ended:\n%s' % self.child.log_tail())
            return value
        return wait_until(check, seconds, what)

    def wait(self, kind, since=0, seconds=20):
        """Returns the first line of this kind from line number since on, and its number."""
        def look():
            for number, line in enumerate(self.lines()):
                if number >= since and line.split(' ', 1)[0] == kind:
                    return line.partition(' ')[2], number
            return None
        return self._wait(look, seconds, 'a line that begins with ' + kind)

    def snapshot(self, since=0, seconds=20):
        return json.loads(self.wait('snapshot', since, seconds)[0])

    def snapshots(self):
        return [json.loads(line.partition(' ')[2]) for line in self.lines() if line.startswith('snapshot ')]

    def wait_snapshot(self, predicate, seconds=20):
        """Waits until predicate is true for the latest snapshot, and returns that."""
        def look():
            found = self.snapshots()
            return found[-1] if found and predicate(found[-1]) else None
        return self._wait(look, seconds, 'the snapshot')


def by(items, key, value):
    """Returns the only item with this value. It fails if there is none or more than one."""
    found = [item for item in items if item[key] == value]
    assert len(found) == 1, '%s = %s: %d found' % (key, value, len(found))
    return found[0]


def available(snapshot, device=GPU_A, type_id='nvidia-35'):
    types = by(snapshot['devices'], 'name', device)['mdev_types']
    return by(types, 'id', type_id)['available_instances']


class DriverCase(EnvCase):
    def probe(self, uri, *options, **kwargs):
        probe = Probe(self.scratch, uri, *options, **kwargs)
        # The check has an effect if the probe was built with sanitizers.
        self.addCleanup(lambda: refuse_sanitizers('libvirt-probe', probe.child.log.read_text()))
        return probe


class LibvirtdCase(DriverCase):
    """Each test starts its own libvirtd, because most tests harm it."""

    def setUp(self):
        self.libvirtd.start()

    def poll(self):
        return self.probe(self.libvirtd.uri, '--once').snapshot()


class TestHost(LibvirtdCase):
    def test_cells(self):
        snapshot = self.poll()
        self.assertEqual(snapshot['nodename'], 'demo')
        self.assertEqual(snapshot['hypervisor'], 'QEMU')
        self.assertGreater(snapshot['hypervisor_version'], 7000000)
        self.assertEqual(snapshot['arch'], 'x86_64')
        self.assertEqual(snapshot['online_cpus'], '0-15')
        self.assertGreater(snapshot['memory_kib'], 0)
        cells = snapshot['cells']
        self.assertEqual([cell['id'] for cell in cells], [0, 1, 2, 3])
        for cell, told in zip(self.host.cells, cells):
            with self.subTest(cell=cell.id):
                self.assertEqual(told['memory_kib'], cell.memory_kib)
                self.assertEqual([cpu['id'] for cpu in told['cpus']], cell.cpus)
                pages = {page['size_kib']: page['count'] for page in told['pages']}
                for size, count in cell.hugepages.items():
                    self.assertEqual(pages[size], count)
        self.assertEqual(by(cells[0]['cpus'], 'id', 0)['siblings'], '0,8')

    def test_devices(self):
        snapshot = self.poll()
        for gpu in self.host.gpus:
            name = nodedev_name(gpu.address)
            with self.subTest(gpu=name):
                told = by(snapshot['devices'], 'name', name)
                self.assertEqual(told['address'], gpu.address)
                self.assertEqual(told['vendor_id'], gpu.vendor)
                self.assertEqual(told['product_id'], gpu.device)
                self.assertEqual(told['class_code'], gpu.pci_class)
                self.assertEqual(told['driver'], gpu.driver)
                self.assertEqual(told['numa_node'], gpu.numa_node)
                types = {mdev['id']: mdev['available_instances'] for mdev in told['mdev_types']}
                self.assertEqual(types, {key: mdev.available for key, mdev in gpu.types.items()})
        mdev = by(snapshot['mdevs'], 'uuid', DEMO_MDEV)
        owner = next(gpu for gpu in self.host.gpus
                     if any(DEMO_MDEV in mdev.existing for mdev in gpu.types.values()))
        self.assertEqual(mdev['parent'], nodedev_name(owner.address))
        self.assertIn(mdev['type'], owner.types)
        self.assertEqual(len(snapshot['devices']), len(self.host.devices()))

    def test_domains(self):
        uuid = self.libvirtd.start_guest('running', memory_mib=32, vcpus=2)
        self.libvirtd.define(guest_xml('defined', devices=[DEMO_MDEV]))
        domains = self.poll()['domains']
        self.assertEqual(len(domains), 2)
        running, defined = by(domains, 'name', 'running'), by(domains, 'name', 'defined')
        self.assertEqual(running['uuid'], uuid)
        self.assertEqual(running['state'], 'running')
        self.assertEqual((running['vcpus'], running['memory_kib']), (2, 32768))
        self.assertEqual(defined['state'], 'shutoff')
        self.assertEqual(defined['mdevs'], [DEMO_MDEV])
        self.libvirtd.virsh('suspend', 'running')
        self.assertEqual(by(self.poll()['domains'], 'name', 'running')['state'], 'paused')

    def test_a_snapshot_reads_back_with_the_static_driver(self):
        snapshot = self.poll()
        path = self.scratch.path / 'host.json'
        path.write_text(json.dumps(snapshot))
        again = self.probe(path, '--once', driver='static').snapshot()
        for changed in ('driver', 'taken_realtime_usec'):
            self.assertNotEqual(again.pop(changed), snapshot.pop(changed))
        self.assertEqual(again, snapshot)


class TestChanges(LibvirtdCase):
    """The timer polls only every ten minutes, so each change is seen by an event of libvirt."""

    def setUp(self):
        super().setUp()
        self.running = self.probe(self.libvirtd.uri, '--interval', '600')
        self.running.snapshot()

    def test_guests(self):
        lines = len(self.running.lines())
        self.libvirtd.start_guest('g')
        self.running.wait('changed', lines, 30)
        self.running.wait_snapshot(lambda host: host['domains'], 30)
        lines = len(self.running.lines())
        self.libvirtd.virsh('destroy', 'g')
        self.running.wait('changed', lines, 30)
        self.running.wait_snapshot(lambda host: host['domains'][0]['state'] == 'shutoff', 30)

    def test_mediated_devices(self):
        before = available(self.running.snapshot())
        self.libvirtd.create_mdev(self.host.gpus[0].address, 'nvidia-35', NEW_MDEV)
        host = self.running.wait_snapshot(
            lambda host: any(mdev['uuid'] == NEW_MDEV for mdev in host['mdevs']), 30)
        self.assertEqual(available(host), before - 1)
        self.libvirtd.remove_mdev(NEW_MDEV)
        self.running.wait_snapshot(
            lambda host: all(mdev['uuid'] != NEW_MDEV for mdev in host['mdevs']), 30)

    def test_unplugged_and_plugged(self):
        gpu = self.host.gpus[0]
        self.libvirtd.remove_device(gpu.address)
        self.running.wait_snapshot(
            lambda host: all(device['name'] != GPU_A for device in host['devices']), 30)
        self.libvirtd.plug_device(gpu)
        self.running.wait_snapshot(
            lambda host: any(device['name'] == GPU_A for device in host['devices']), 30)

    def test_a_driver_that_is_bound_late_is_seen_by_the_next_poll(self):
        """No event reports the driver. Older kernels send none for the types either."""
        gpu = Gpu('0000:c1:00.0', driver='')
        self.libvirtd.plug_device(gpu)
        running = self.probe(self.libvirtd.uri, '--interval', '1')
        running.wait_snapshot(lambda host: not by(host['devices'], 'address',
                                                  gpu.address).get('driver'))
        fakesys.bind_driver(self.libvirtd.sys, gpu, 'nvidia', m10_types())
        begun = len(running.snapshots())
        host = running.wait_snapshot(
            lambda host: by(host['devices'], 'address', gpu.address).get('mdev_types'), 20)
        without = [host for host in running.snapshots()[begun:] if not by(host['devices'], 'address', gpu.address).get('mdev_types')]
        self.assertLessEqual(len(without), 1)  # that of the poll at the same time
        device = by(host['devices'], 'address', gpu.address)
        self.assertEqual(device['driver'], 'nvidia')
        self.assertEqual(len(device['mdev_types']), 3)

    def test_no_event_for_available_instances_but_the_next_poll_sees_it(self):
        fakesys.set_available(self.libvirtd.sys, self.host.gpus[0].address, 'nvidia-35', 9)
        self.assertEqual(available(self.poll()), 9)


class TestTrouble(LibvirtdCase):
    def test_a_stopped_daemon_ends_a_call_and_heals(self):
        probe = self.probe(self.libvirtd.uri, '--interval', '0.2', '--keepalive', '1,2')
        probe.snapshot()
        started = time.monotonic()
        with self.libvirtd.paused():
            lines = len(probe.lines())
            text, number = probe.wait('failed', lines, 15)
            # The time is one interval, and one more for each missed answer.
            self.assertLess(time.monotonic() - started, 1 * (2 + 1) + 3)
            milliseconds, _, words = text.partition(' ')
            self.assertGreater(int(milliseconds), 900, 'it was no call that hung')
            self.assertIn('keepalive', words)
        self.assertEqual(probe.snapshot(number)['nodename'], 'demo')

    def test_a_daemon_that_stops_between_polls_is_reported(self):
        probe = self.probe(self.libvirtd.uri, '--interval', '60', '--keepalive', '1,2')
        probe.snapshot()
        with self.libvirtd.paused():
            self.assertIn('broke', probe.wait('lost', 0, 15)[0])

    def test_killed_and_started_again(self):
        probe = self.probe(self.libvirtd.uri, '--interval', '0.3')
        guest = self.libvirtd.start_guest('survivor')
        probe.wait_snapshot(lambda host: host['domains'])
        for round_number in range(2):
            with self.subTest(round=round_number):
                lines = len(probe.lines())
                self.libvirtd.kill()
                failure, _ = probe.wait('failed', lines)
                self.assertIn('check that libvirtd', self.last_failure(probe) or failure)
                self.libvirtd.start()
                lines = len(probe.lines())
                host = probe.snapshot(lines)
                self.assertEqual(host['domains'][0]['uuid'], guest)
        # The probe listens for events again.
        lines = self.destroy_survivor(probe)
        probe.wait('changed', lines, 10)

    def destroy_survivor(self, probe):
        """Returns the number of lines of the probe before. A libvirtd that found a guest at its start can end soon after, so the
        attempt is repeated."""
        for attempt in range(3):
            self.libvirtd.start()
            probe.snapshot(len(probe.lines()))
            lines = len(probe.lines())
            try:
                self.libvirtd.virsh('destroy', 'survivor')
                return lines
            except EnvError:
                if attempt == 2 or self.libvirtd.running():
                    raise
        raise AssertionError('not reached')

    def last_failure(self, probe):
        """Waits for a failure to connect. The first failure can be that of the call in progress."""
        def look():
            failures = [line for line in probe.lines() if line.startswith('failed ')]
            return failures[-1] if failures and 'check that libvirtd' in failures[-1] else None
        return wait_until(look, 10, 'a failure to connect')

    def test_loss_between_polls_is_reported_at_once(self):
        probe = self.probe(self.libvirtd.uri, '--interval', '60')
        probe.snapshot()
        self.libvirtd.kill()
        probe.wait('lost', 0, 30)

    def test_devices_that_vanish_while_they_are_listed(self):
        probe = self.probe(self.libvirtd.uri, '--interval', '0.01')
        probe.snapshot()
        gpu = self.host.gpus[0]
        for _ in range(5):
            self.libvirtd.remove_device(gpu.address)
            self.libvirtd.plug_device(gpu)
        self.libvirtd.start_guest('g')
        for _ in range(5):
            self.libvirtd.virsh('destroy', 'g')
            self.libvirtd.virsh('start', 'g', timeout=90)
        self.assertEqual([line for line in probe.lines() if line.startswith('failed')], [])
        self.assertTrue(probe.child.alive())


class TestNobodyThere(DriverCase):
    def test_the_advice_survives_a_long_path(self):
        socket = ('%s/' % self.scratch.path).ljust(107, 'x') # the longest possible path
        probe = self.probe('qemu:///system?socket=%s' % socket, '--once')
        self.assertTrue(probe.wait('failed')[0].endswith('check that libvirtd (or virtqemud) runs'))


class TestReadOnly(LibvirtdCase):
    def admin(self, *args):
        """Returns the output of virt-admin."""
        uri = '%s:///system?socket=' % self.libvirtd.daemon + self.libvirtd.socket_path.replace('-sock', '-admin-sock')
        return subprocess.run(['virt-admin', '-c', uri, *args], capture_output=True, text=True, check=True,
                              timeout=30).stdout

    def test_the_connection_that_stays_cannot_write(self):
        probe = self.probe(self.libvirtd.uri)
        self.assertEqual(probe.snapshot()['nodename'], 'demo')
        # Another connection, which is closed again, read the domain capabilities.
        emulators = [(one['arch'], one['machine']) for one in probe.snapshot()['emulators']]
        self.assertTrue(emulators)
        self.assertEqual(emulators, sorted(emulators))
        clients = [line.split()[0] for line in self.admin('client-list', self.libvirtd.daemon).splitlines()[2:]
                   if line.strip()]
        self.assertEqual(len(clients), 1, clients)
        self.assertRegex(self.admin('client-info', self.libvirtd.daemon, clients[0]), r'readonly *: yes')

    def test_a_read_only_connection_is_enough_to_look(self):
        snapshot = self.probe(self.libvirtd.uri_readonly, '--once').snapshot()
        self.assertEqual(snapshot['nodename'], 'demo')


class TestTestDriver(DriverCase):
    """The same hardware with libvirt's test driver, for machines without mount namespaces."""

    def test_gpus(self):
        host = demo_host()
        snapshot = self.probe(testdriver_xml(host, self.scratch.path), '--once').snapshot()
        self.assertEqual(len(snapshot['devices']), len(host.devices()))
        self.assertEqual(available(snapshot), host.gpus[0].types['nvidia-35'].available)
        self.assertEqual([mdev['uuid'] for mdev in snapshot['mdevs']], [DEMO_MDEV])
