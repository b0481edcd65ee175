# SPDX-License-Identifier: LGPL-2.1-or-later
"""Partitions of [device_shapes NAME] are activated for claims by units, and deactivated before they are offered again.

Placement and libvirtd are real. The unit manager is a script in place of systemctl, and a thread starts compute-agent-prepare after each
stamp, as compute-agent-prepare.path does. COMPUTE_AGENT_PARTITION_ROUNDS sets the number of kills.
"""

import concurrent.futures
import contextlib
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import uuid

from tests.env import fakesys
from tests.env.agent import build_folder
from tests.env.clean_units import CleanUnits
from tests.env.libvirtd import guest_xml
from tests.env.scratch import wait_until
from tests.integration.claims.test_shapes import GPUS, ShapesCase

# Seconds beyond the time of the units. A machine with more work than processors is slower.
LIMIT = 2 * max(1, os.getloadavg()[0] / os.cpu_count())
LEFT = GPUS[:4]  # partition 1


class PartitionUnits(CleanUnits):
    """Starts compute-agent-prepare after each change of prepare-wanted."""

    def __init__(self, *args):
        super().__init__(*args)
        self._down, self._turn = threading.Event(), threading.Lock()

    def shut_down(self):
        """Ends the program and its units, as the end of a host does. None starts before boot()."""
        self._down.set()
        with self._turn:
            pass

    def boot(self):
        self._down.clear()

    def _watch(self, config):
        path, seen = self.run / 'compute-agent/prepare-wanted', None
        env = {**os.environ, 'PATH': '%s:%s' % (self.folder / 'bin', os.environ['PATH'])}
        while not self._stops.wait(0.05):
            now = path.read_text() if path.exists() else None
            with self._turn:
                if now == seen or self._down.is_set():
                    continue
                seen = now
                self._run(config, env)

    def _run(self, config, env):
        with self.log.open('a') as log, \
                subprocess.Popen([build_folder() / 'compute-agent-prepare', '--config', config, '--sys', self.sys, '--proc', self.proc,
                                  '--run', self.run, '--wait', '0'], env=env, stdout=log, stderr=log, start_new_session=True) as self.program:
            while self.program.poll() is None and not self._stops.wait(0.02) and not self._down.is_set():
                pass
            if self._stops.is_set() or self._down.is_set():
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self.program.pid, signal.SIGKILL)


class PartitionsCase(ShapesCase):
    metrics = property(lambda self: self.scratch.path / 'agent.prom')
    options = property(lambda self: {**ShapesCase.options, 'agent': {'metrics_file': self.metrics}, 'hook': {'enabled': 'true', 'timeout': '20'}, 'device_shapes hgx': {
        **ShapesCase.options['device_shapes hgx'], 'activate': 'on@.service', 'deactivate': 'off@.service', 'timeout_sec': '30'}})

    def setUp(self):
        self.units = PartitionUnits(self.scratch, {address: (0x10de, 0x2330) for address in GPUS})
        self.addCleanup(self.units.stop)
        super().setUp()
        self.units.start(self.agent.config)

    def touch(self, name):
        (self.units.folder / name).touch()

    def untouch(self, name):
        (self.units.folder / name).unlink(missing_ok=True)

    def cycles(self):
        return int(re.search('^compute_agent_cycles_total ([0-9]+)$', self.metrics.read_text(), re.M)[1])

    def entries(self):
        """Returns {partition: (claim, state, whether a unit failed)} of the record."""
        path = self.units.run / 'compute-agent-prepare/partitions.json'
        items = json.loads(path.read_text())['partitions'] if path.exists() else []
        return {item['partition']: (item['claim'], item['state'], item['error'] != '') for item in items}

    def wait_entries(self, **expected):
        wanted = {key[1:]: value for key, value in expected.items()}
        wait_until(lambda: self.entries() == wanted, 30, 'the record %s' % wanted, step=0.05)

    def prepare(self, claim, consumer, within=()):
        """Calls libvirt's hook for a guest that starts with the claim's devices. Returns the exit code, the words and the seconds."""
        xml = guest_xml('g1', memory_mib=64, uuid=consumer, devices=[device['address'] for device in claim['devices']])
        began = time.monotonic()
        done = subprocess.run([*within, build_folder() / 'computectl', '--config', self.agent.config, 'hook', 'g1', 'prepare', 'begin', '-'],
                              input=xml, env=self.agent.env(), capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stderr, time.monotonic() - began

    def place(self, amount):
        """Allocates an amount to a new server, as a scheduler does. Returns the server."""
        server = str(uuid.uuid4())
        self.assertEqual(self.put(server, amount), 204)
        return server

    def attach(self, server):
        """Calls ClaimPlaced() as the driver for Nova does. Returns (claim, words of the error)."""
        done = subprocess.run(['dbus-send', '--bus=' + self.bus.address, '--print-reply=literal', '--reply-timeout=30000',
                               '--dest=org.computeagent.Agent1', '/org/computeagent/Agent1', 'org.computeagent.Agent1.ClaimPlaced',
                               'string:' + server, 'array:string:CUSTOM_HGX_GPU'], capture_output=True, text=True, timeout=60, check=False)
        return (json.loads(done.stdout) if done.returncode == 0 else None), done.stderr


class TestPartitions(PartitionsCase):
    def test_active_for_a_claim_and_withheld_until_deactivated(self):
        self.wait_record(0, 8)
        self.touch('hold-on@1.service')
        server = self.place(4)
        self.assertIn('Error.Busy: Partition 1 of hgx is not active yet', self.attach(server)[1])
        wait_until(lambda: self.units.read('started') == ['on@1.service'], 10, 'the unit', step=0.05)
        self.assertIn('Error.Busy', self.attach(server)[1])
        self.untouch('hold-on@1.service')
        wait_until(lambda: self.attach(server)[0], 10, 'the devices', step=0.1)
        claim = self.attach(server)[0]
        self.assertEqual(self.members(claim), '1234')
        self.assertEqual(self.entries(), {'1': (claim['id'], 'active', False)})
        self.wait_record(0, 4)
        self.touch('hold-off@1.service')
        self.placement.delete(server)  # as Nova does
        self.agent.ctl('release', claim['id'])
        wait_until(lambda: self.units.read('started')[1:] == ['off@1.service'], 10, 'the second unit', step=0.05)
        self.wait_record(4, 4)
        other = self.gpus(4)
        self.assertEqual(self.members(other), '5678')
        self.gpus(1, code=1)
        self.assertIn('Partition 1 of hgx (%s) is deactivating.' % ', '.join(LEFT), self.agent.ctl('who', LEFT[0], check=False).stdout)
        self.assertIn('0 of 4 are free', self.agent.ctl('explain', '--resources', 'CUSTOM_HGX_GPU=1', check=False).stdout)
        self.agent.ctl('release', other['id'])
        self.wait_record(4, 4)
        began = time.monotonic()
        self.untouch('hold-off@1.service')
        wait_until(lambda: self.record() == (0, 8), 10, 'the set to be offered', step=0.05)
        self.assertLess(time.monotonic() - began, LIMIT)
        self.wait_entries()

    def test_a_starting_guest_waits(self):
        self.touch('hold-on@1.service')
        consumer = str(uuid.uuid4())
        claim = self.gpus(4, consumer)
        self.wait_entries(_1=(claim['id'], 'activating', False))
        timer = threading.Timer(2, self.untouch, ['hold-on@1.service'])
        timer.start()
        self.addCleanup(timer.join)
        code, words, seconds = self.prepare(claim, consumer)
        self.assertEqual((code, words), (0, ''))
        self.assertGreater(seconds, 1)
        self.assertLess(seconds, 10)
        self.assertEqual(self.entries()['1'][1], 'active')

    def make_journal(self):
        """Returns a socket that receives the journal's entries, and the command that runs a program with it."""
        journal = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(journal.close)
        path = self.scratch.path / 'journal'
        journal.bind(str(path))
        journal.setblocking(False)
        return journal, ['unshare', '-m', 'sh', '-ec', 'mount -t tmpfs run /run; mkdir -p /run/systemd/journal; '
                         'ln -s "$0" /run/systemd/journal/socket; exec "$@"', path]

    def test_a_guest_is_refused_if_the_activation_takes_too_long(self):
        """The policy for an agent that is away does not matter: the guest would start without its partition."""
        self.agent.configure({'hook': {'timeout': '4'}})
        self.agent.ctl('reload')
        self.touch('hold-on@1.service')
        consumer = str(uuid.uuid4())
        claim = self.gpus(4, consumer)
        journal, within = self.make_journal()
        code, words, seconds = self.prepare(claim, consumer, within)
        self.assertEqual(code, 1)
        self.assertIn('a device is not ready for guest g1: Partition 1 of hgx is not active yet', words)
        self.assertLess(seconds, 6)
        entry = journal.recv(65536).decode().splitlines()
        self.assertIn('MESSAGE_ID=96f5f1a85c7e4d5c8c4a51a1de2f3b70', entry)
        self.assertIn('AGENT_CONSUMER=' + consumer, entry)
        self.assertIn('Guest g1 cannot start: Partition 1 of hgx is not active yet', '\n'.join(entry))
        self.untouch('hold-on@1.service')
        self.wait_entries(_1=(claim['id'], 'active', False))
        self.assertEqual(self.prepare(claim, consumer)[:2], (0, ''))

    def test_the_limit_is_that_of_the_configuration_also_without_a_reload(self):
        self.agent.configure({'hook': {'timeout': '4'}})
        self.touch('hold-on@1.service')
        consumer = str(uuid.uuid4())
        code, words, seconds = self.prepare(self.gpus(4, consumer), consumer)
        self.assertEqual(code, 1)
        self.assertIn('a device is not ready for guest g1: Partition 1 of hgx is not active yet', words)
        self.assertLess(seconds, 6)

    def start_waiting(self, pool):
        """Begins the start of a guest whose partition is being activated. Returns the future of prepare() and the claim when the hook waits."""
        self.touch('hold-on@1.service')
        consumer = str(uuid.uuid4())
        claim = self.gpus(4, consumer)
        self.wait_entries(_1=(claim['id'], 'activating', False))
        with subprocess.Popen(['timeout', '15', 'dbus-monitor', '--address', self.bus.address, "type='method_call',member='CheckGuest'"],
                              stdout=subprocess.PIPE, text=True) as monitor:
            waiting = pool.submit(self.prepare, claim, consumer)
            # The hook makes this call after the answer to PrepareGuest(). A monitor also prints signals to itself.
            self.assertTrue(any('member=CheckGuest' in line for line in monitor.stdout))
            monitor.terminate()
        self.assertFalse(waiting.done(), 'the guest starts without its partition')
        return waiting, claim

    def test_a_starting_guest_waits_while_the_agent_restarts(self):
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            waiting, _ = self.start_waiting(pool)
            self.agent.restart('synced')
            self.assertFalse(waiting.done(), 'the guest starts without its partition')
            self.untouch('hold-on@1.service')
            self.assertEqual(waiting.result()[:2], (0, ''))
        self.assertEqual(self.entries()['1'][1], 'active')

    def test_a_starting_guest_is_refused_if_the_agent_does_not_come_back(self):
        self.agent.configure({'hook': {'timeout': '6'}})
        self.agent.ctl('reload')
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            waiting, _ = self.start_waiting(pool)
            self.agent.kill()
            code, words, seconds = waiting.result()
        self.assertEqual(code, 1)
        self.assertIn('a device is not ready for guest g1: compute-agent is not running', words)
        self.assertLess(seconds, 8)

    def test_a_starting_guest_is_refused_if_its_claim_ends(self):
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            waiting, claim = self.start_waiting(pool)
            began = time.monotonic()
            self.agent.ctl('release', claim['id'])
            code, words, _ = waiting.result()
        self.assertEqual(code, 1)
        self.assertIn('no claim for guest g1: ', words)
        self.assertLess(time.monotonic() - began, 5)
        self.untouch('hold-on@1.service')

    def test_a_failed_activation_cordons_until_a_person_lifts_it(self):
        self.touch('fail-on@1.service')
        consumer = str(uuid.uuid4())
        claim = self.gpus(4, consumer)
        code, words, _ = self.prepare(claim, consumer)
        self.assertEqual(code, 1)
        self.assertIn('a device is not ready for guest g1: Partition 1 of hgx cannot be activated. Partition 1: on@1.service failed', words)
        wait_until(lambda: 'Partition 1 of hgx was not activated' in self.agent.log(), 10, 'the message')
        self.assertIn("The unit's last lines: sanitize: device error 7", self.agent.log())
        self.assertIn('%s cordoned by compute-agent since' % LEFT[0], self.agent.ctl('status', check=False).stdout)
        self.agent.ctl('release', claim['id'])
        self.wait_entries()
        self.assertEqual(self.units.read('done'), ['off@1.service'])
        self.wait_record(4, 4)
        for address in LEFT:
            self.agent.ctl('uncordon', address)
        self.wait_record(0, 8)

    def test_a_cordon_that_cannot_be_written_is_tried_again(self):
        """A full disk starts no cycle. The devices stay withheld, and each message appears once."""
        claim = self.gpus(4)
        self.wait_entries(_1=(claim['id'], 'active', False))
        blocked = self.agent.state / 'cordon.json.new'
        blocked.mkdir()
        self.touch('fail-off@1.service')
        self.agent.ctl('release', claim['id'])
        self.wait_entries(_1=(claim['id'], 'deactivating', True))
        wait_until(lambda: 'Cannot cordon device %s' % LEFT[0] in self.agent.log(), 10, 'the message')
        before = self.cycles()
        time.sleep(3)
        self.assertLess(self.cycles() - before, 4)
        self.assertEqual(self.agent.log().count('Cannot cordon device'), 1)
        self.assertNotIn('Partition 1 of hgx was not deactivated', self.agent.log())
        self.assertEqual(self.record(), (4, 4))
        blocked.rmdir()
        wait_until(lambda: '%s cordoned by compute-agent since' % LEFT[0] in self.agent.ctl('status', check=False).stdout, 20, 'the cordon')
        self.assertEqual(self.agent.log().count('Partition 1 of hgx was not deactivated'), 1)

    def test_a_failed_deactivation_withholds_until_it_succeeds(self):
        claim = self.gpus(4)
        self.wait_entries(_1=(claim['id'], 'active', False))
        self.touch('fail-off@1.service')
        self.agent.ctl('release', claim['id'])
        self.wait_entries(_1=(claim['id'], 'deactivating', True))
        wait_until(lambda: 'Partition 1 of hgx was not deactivated' in self.agent.log(), 10, 'the message')
        self.wait_record(4, 4)
        self.agent.restart('synced')
        self.assertEqual(self.record(), (4, 4))
        started = len(self.units.read('started'))
        for address in LEFT:
            self.agent.ctl('uncordon', address)
        wait_until(lambda: len(self.units.read('started')) > started, 20, 'the unit again')
        wait_until(lambda: 'cordoned by compute-agent' in self.agent.ctl('status', check=False).stdout, 20, 'the cordon again')
        self.assertEqual(self.record(), (4, 4))
        self.untouch('fail-off@1.service')
        for address in LEFT:
            self.agent.ctl('uncordon', address)
        self.wait_record(0, 8)
        self.wait_entries()

    def test_an_open_device_delays_the_deactivation(self):
        claim = self.gpus(4)
        self.wait_entries(_1=(claim['id'], 'active', False))
        handle = fakesys.open_vfio(self.units.sys, self.units.proc, 77, LEFT[0][6])
        self.agent.ctl('release', claim['id'])
        self.wait_record(4, 4)
        self.assertEqual(self.units.read('started'), ['on@1.service'])
        handle.unlink()
        self.wait_record(0, 8)
        self.assertEqual(self.units.read('done'), ['on@1.service', 'off@1.service'])


class TestKills(PartitionsCase):
    """The agent and the program are killed at random moments. No partition stays active without a claim, and none is given out before its
    deactivation succeeded."""

    def test_kills(self):
        seed = int(os.environ.get('COMPUTE_AGENT_SEED', time.time()))
        chance = random.Random(seed)
        for round_ in range(int(os.environ.get('COMPUTE_AGENT_PARTITION_ROUNDS', '4'))):
            with self.subTest(seed=seed, round=round_):
                self.play(chance)

    def strike(self, chance):
        """Kills or reboots after a random time. Returns what it did."""
        time.sleep(chance.random() * 1.2)
        what = chance.choice(('agent', 'program', 'both', 'reboot'))
        program = self.units.program
        if what in ('program', 'both') and program and program.poll() is None:
            program.kill()
        if what != 'program':
            self.agent.kill()
        if what == 'reboot':
            self.units.shut_down()
        return what

    def recover(self, what):
        for path in self.units.folder.glob('hold-*'):
            path.unlink()
        if what == 'reboot':
            # Partitions end with the host.
            shutil.rmtree(self.units.run / 'compute-agent-prepare', ignore_errors=True)
            (self.units.folder / 'done').unlink(missing_ok=True)
            self.units.boot()
        if what != 'program':
            self.agent.start('synced')

    def active(self):
        """Returns the partitions that the units have activated and not deactivated."""
        active = set()
        for unit in self.units.read('done'):
            verb, partition = unit.split('.')[0].split('@')
            (active.add if verb == 'on' else active.discard)(partition)
        return active

    def play(self, chance):
        for name in ('started', 'done'):
            (self.units.folder / name).unlink(missing_ok=True)
        if chance.random() < 0.5:
            self.touch('hold-%s@1.service' % chance.choice(('on', 'off')))
        consumer = str(uuid.uuid4())
        began = self.agent.begin('claim', '--consumer', consumer, '--resources', 'CUSTOM_HGX_GPU=4')
        what = self.strike(chance)
        began.communicate()
        self.recover(what)
        # After a reboot all devices are withheld until the program has run.
        wait_until(lambda: self.agent.claim('CUSTOM_HGX_GPU=4', consumer, check=False).returncode == 0, 30, 'four devices', step=0.2)
        claim = self.gpus(4, consumer)
        self.assertEqual(self.members(claim), '1234', what)
        code, words, _ = self.prepare(claim, consumer)
        self.assertEqual((code, words), (0, ''), what)
        self.assertEqual(self.active(), {'1'}, what)
        if chance.random() < 0.5:
            self.touch('hold-off@1.service')
        release = self.agent.begin('release', str(claim['id']))
        what = self.strike(chance)
        release.communicate()
        self.recover(what)
        self.agent.ctl('release', claim['id'], check=False)
        other = str(uuid.uuid4())
        wait_until(lambda: self.agent.claim('CUSTOM_HGX_GPU=8', other, check=False).returncode == 0, 30, 'all devices', step=0.2)
        claim = self.gpus(8, other)
        self.assertEqual(self.prepare(claim, other)[0], 0)
        self.assertEqual(self.active(), {'0'}, what)
        self.agent.ctl('release', claim['id'])
        wait_until(lambda: (self.active(), self.entries(), self.record()) == (set(), {}, (0, 8)), 30, 'the end of %s' % what, step=0.1)
