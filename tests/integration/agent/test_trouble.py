# SPDX-License-Identifier: LGPL-2.1-or-later
"""Servers that are down, hang, send wrong answers or disappear. The agent continues with the other servers and recovers alone."""

import resource
import signal
import time
import uuid

from tests.run.demo import expected_tree, placement_tree
from tests.env import faults, wire
from tests.env.crowd import MeasuredAgent
from tests.env.hosts import recorded_host
from tests.env.libvirtd import guest_xml
from tests.env.proxy import Proxy
from tests.env.scratch import wait_until
from tests.integration.agent.test_agent import AgentCase

# The version of SQLite decides which of the two errors a file size limit causes.
NO_ROOM = '(Cannot read or write|No space left for) the claim database'


def seconds_of(function, *args):
    begin = time.monotonic()
    function(*args)
    return time.monotonic() - begin


class TroubleCase(AgentCase):
    def wait_equal(self, agent, seconds=40):
        agent.wait_state('synced', seconds)
        self.assertEqual(placement_tree(self.placement, agent.root()),
                         expected_tree(agent, self.host))


class TestPlacement(TroubleCase):
    def test_killed_and_started_again(self):
        agent = self.start_agent()
        self.placement.kill()
        agent.wait_state('offline')
        agent.claim('VCPU=1')
        self.placement.start()
        self.wait_equal(agent)
        self.assertEqual(agent.n_starts, 1)
        log = agent.log()
        self.assertEqual(log.count('Placement cannot be used'), 1, log)
        self.assertIn('Placement can be used again', log)

    def test_down_at_start(self):
        self.placement.kill()
        agent = self.make_agent().start('offline')
        # The new database cannot exclude that another consumer has the device.
        refused = agent.claim('VGPU=1', check=False)
        self.assertIn('Placement has not been read', refused.stderr)
        agent.claim('VCPU=1')
        self.placement.start()
        self.wait_equal(agent)
        agent.claim('VGPU=1')

    def test_a_day_of_trouble_is_a_handful_of_lines(self):
        self.placement.kill()
        agent = self.make_agent().start('offline')
        for _ in range(20):
            agent.ctl('sync', check=False)
        self.assertLess(len(agent.log().splitlines()), 6, agent.log())

    def test_every_lie_of_a_proxy(self):
        """HTML, garbage, truncated and oversized answers, and errors: the state is "offline" or "stale". Afterwards the agent
        publishes again."""
        with Proxy(self.placement.port) as proxy:
            agent = self.make_agent(placement=proxy.endpoint).start('synced')
            for name, fault in [('html 503', faults.html(503)), ('html 200', faults.html(200)),
                                ('500', faults.server_error(500)), ('garbage', faults.garbage()),
                                ('cut', faults.Cut('middle')), ('401', faults.Answer(401)),
                                ('oversized', faults.oversized(80 << 20))]:
                with self.subTest(name):
                    with proxy.fault(fault):
                        agent.ctl('sync', code=1)
                        self.assertIn(agent.status()['sync_state'], ('offline', 'stale'))
                        agent.claim('VCPU=1')
                    agent.ctl('sync')
                    self.assertEqual(agent.status()['sync_state'], 'synced')

    def test_e1_a_user_without_the_service_role(self):
        """The agent logs this once and publishes everything without POST /reshaper."""
        with Proxy(self.placement.port) as proxy:
            proxy.add(faults.server_error(403, method='POST', path='/reshaper'))
            gpus = [{'name': 'pci_0000_%02x_00_0' % number, 'address': '0000:%02x:00.0' % number, 'mdev_types': [
                {'id': 'nvidia-35', 'name': 'GRID', 'device_api': 'vfio-pci', 'available_instances': 4}]} for number in range(4)]
            agent = self.make_agent({'devices': {'enabled_mdev_types': 'nvidia-35'}}, placement=proxy.endpoint,
                                    host=recorded_host('demo', devices=gpus)).start('synced')
            agent.ctl('sync')
            self.assertEqual([len(part['inventories']) > 0 for part in self.placement.tree(agent.root()).values()], [True] * 5)
            self.assertEqual(agent.status()['reshape_access'], 'refused')
            self.assertIn('lacks the role service', agent.ctl('status').stdout)
            self.assertRegex(agent.ctl('doctor', '--config', agent.config, check=False).stdout,
                             r'warning +reshape +The user of \[placement\] lacks')
            self.assertEqual(agent.log().count('lacks the role service'), 1)
            self.assertEqual(proxy.count('POST', '/reshaper'), 1)
            proxy.clear()
            agent.ctl('reload')
            self.assertEqual(agent.status()['reshape_access'], 'unknown')

    def test_placement_hangs(self):
        agent = self.start_agent({'placement': {'timeout': 2}})
        with self.placement.paused():
            agent.wait_state('offline')
            self.assertLess(min(seconds_of(agent.claim, 'VCPU=1') for _ in range(3)), 2)
        self.wait_equal(agent)

    def test_events_of_the_host_come_no_sooner_than_the_server_asked(self):
        """Events of guests start no request before the Retry-After of the first answer, although the second answer has none. An
        operator's sync does."""
        with Proxy(self.placement.port) as proxy:
            agent = self.make_agent(placement=proxy.endpoint).start('synced')
            proxy.add(faults.html(503, headers=[('Retry-After', '60')], times=1))
            proxy.add(faults.html(503))
            agent.wait_state('offline')
            agent.ctl('sync', check=False)
            time.sleep(1)
            mark = proxy.mark()
            for i in range(8):
                name = 'comes-%d' % i
                self.libvirtd.define(guest_xml(name))
                time.sleep(0.5)
                self.libvirtd.virsh('undefine', name)
            self.assertEqual(proxy.requests_since(mark), [])
            agent.ctl('sync', check=False)
            self.assertEqual(len(proxy.requests_since(mark)), 1)
            proxy.clear()
            agent.ctl('sync')
            self.wait_equal(agent)

    def test_an_agent_that_fails_asks_for_less_than_one_that_is_well(self):
        with Proxy(self.placement.port) as proxy:
            agent = self.make_agent(placement=proxy.endpoint).start('synced')
            mark = proxy.mark()
            time.sleep(20)
            well = len(proxy.requests_since(mark))
            with proxy.fault(faults.html(503)):
                agent.wait_state('offline')
                mark = proxy.mark()
                time.sleep(20)
                failing = len(proxy.requests_since(mark))
            self.assertGreater(failing, 3)
            self.assertLess(failing, well)
            self.wait_equal(agent)

    def test_conflicts_are_read_again_and_planned_again(self):
        with Proxy(self.placement.port) as proxy:
            agent = self.make_agent(placement=proxy.endpoint)
            proxy.add(faults.conflict(every=3, method='PUT'))
            agent.start()
            agent.wait_state('synced', 40)
            self.assertEqual(placement_tree(self.placement, agent.root()),
                             expected_tree(agent, self.host))


class TestHypervisor(TroubleCase):
    def setUp(self):
        super().setUp()
        if not self.libvirtd.running():
            self.libvirtd.start()

    def test_killed_and_started_again(self):
        agent = self.start_agent()
        self.libvirtd.kill()
        wait_until(lambda: agent.status().get('hypervisor_error'), 20, 'the hypervisor error')
        agent.claim('VCPU=1')
        self.assertEqual(agent.status()['sync_state'], 'synced')
        self.libvirtd.start()
        wait_until(lambda: not agent.status().get('hypervisor_error'), 40, 'the hypervisor back')
        self.wait_equal(agent)
        self.assertEqual(agent.n_starts, 1)

    def test_down_at_start(self):
        self.libvirtd.kill()
        agent = self.make_agent().start()
        wait_until(lambda: agent.status().get('hypervisor_error'), 20, 'the hypervisor error')
        self.assertIn('libvirt', agent.status()['hypervisor_error'])
        self.libvirtd.start()
        self.wait_equal(agent)

    def test_a_hung_libvirtd_stops_neither_watchdog_nor_bus_nor_claims(self):
        agent = MeasuredAgent(self.scratch, self.placement, self.libvirtd.uri, self.bus)
        agent.watchdog_usec = 2_000_000
        agent.start('synced')
        agent.forget_stop()
        with self.libvirtd.paused():
            end, took = time.monotonic() + 6, []
            pings = agent.notifications.count('WATCHDOG=1')
            while time.monotonic() < end:
                took.append(seconds_of(lambda: agent.ctl('release', agent.claim('VCPU=1')['id'])))
                time.sleep(0.2)
            self.assertLess(min(took), 1.5)
            self.assertGreaterEqual(agent.notifications.count('WATCHDOG=1') - pings, 4)
            self.assertTrue(agent.child.alive())
            wait_until(lambda: agent.status().get('hypervisor_error'), 20, 'the keepalive error')
            agent.child.signal(signal.SIGHUP)
            end = time.monotonic() + 4
            while time.monotonic() < end:
                agent.status()
            # Regression: a driver that waited for the call of the old driver stopped the main loop for 1.95 s.
            self.assertLess(agent.longest_stop()[0], 1500)
        wait_until(lambda: not agent.status().get('hypervisor_error'), 40, 'the hypervisor back')
        self.wait_equal(agent)


class TestOwnState(TroubleCase):
    def test_without_a_bus_it_runs_and_says_so(self):
        agent = self.make_agent(bus=None).start()
        wait_until(lambda: self.placement.request('GET', '/resource_providers', record=False)
                   .json['resource_providers'], 20, 'the published root')
        self.assertIn('No D-Bus service', agent.log())
        self.assertEqual(agent.ctl('status', check=False).returncode, 3)

    def test_a_name_that_another_program_has_is_not_taken_for_its_own(self):
        """The agent asks again every 30 s, and gets the name when the other program has left."""
        other = wire.Wire(self.bus.socket_path)
        self.addCleanup(other.close)
        other.call('org.freedesktop.DBus', '/org/freedesktop/DBus', 'org.freedesktop.DBus', 'RequestName', 'su',
                   ('org.computeagent.Agent1', 4))
        agent = self.make_agent().start()
        self.assertIn('No D-Bus service: another program has the name org.computeagent.Agent1', agent.log())
        self.assertNotIn('serves D-Bus again', agent.log())
        other.close()
        wait_until(lambda: 'The agent serves D-Bus again' in agent.log(), 60, 'the name')
        self.assertEqual(agent.ctl('status', check=False).returncode, 0)

    def test_a_bus_that_goes_away_does_not_take_the_agent_along(self):
        agent = self.start_agent()
        self.bus.kill()
        time.sleep(1)
        self.assertTrue(agent.child.alive())
        self.assertIn('No D-Bus service', agent.log())

    def test_a_bus_that_answers_nothing_is_left(self):
        """A stopped dbus-daemon accepts connections and does not answer. After 30 s the agent connects again."""
        agent = self.start_agent()
        with self.bus.paused():
            wait_until(lambda: 'The bus does not answer. Reconnecting to it' in agent.log(), 120, 'the connection is made anew')
            requests = self.placement.mark()
            agent.child.signal(signal.SIGHUP)
            wait_until(lambda: self.placement.requests_since(requests), 60, 'a cycle meanwhile')
        wait_until(lambda: agent.ctl('status', check=False).returncode == 0, 60, 'an answer')
        self.assertEqual(agent.n_starts, 1)

    def test_a_state_folder_that_cannot_be_written(self):
        """The agent rejects claims with the reason and still publishes the host. A folder in place of the database causes the
        error, because root can write to any folder."""
        agent = self.start_agent()
        agent.stop()
        for name in ('claim.sqlite', 'claim.sqlite-wal', 'claim.sqlite-shm'):
            (agent.state / name).unlink(missing_ok=True)
        (agent.state / 'claim.sqlite').mkdir()
        self.placement.request('DELETE', '/resource_providers/%s/inventories' % agent.root())
        agent.start()
        self.wait_equal(agent)
        done = agent.ctl('claim', '--consumer', uuid.uuid4(), '--resources', 'VCPU=1', code=1)
        self.assertIn('claim.sqlite', done.stderr)
        self.assertEqual(agent.ctl('status', check=False).returncode, 4)
        (agent.state / 'claim.sqlite').rmdir()
        agent.ctl('sync', check=False)
        agent.claim('VCPU=1')

    def test_a_disk_that_is_full(self):
        """The disk of a running agent fills up. Claims fail with the reason, earlier claims are kept, and claims succeed again when
        there is space."""
        agent = self.start_agent()
        kept = agent.claim('VCPU=1')
        # A file size limit of the running process replaces the full disk.
        resource.prlimit(agent.child.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        done = agent.ctl('claim', '--consumer', uuid.uuid4(), '--resources', 'VCPU=1', code=1)
        self.assertTrue(agent.child.alive(), agent.log())
        self.assertEqual([c['id'] for c in agent.claims()], [kept['id']])
        agent.ctl('sync')
        done = agent.ctl('status', code=4)
        self.assertRegex(done.stdout, NO_ROOM)
        resource.prlimit(agent.child.pid, resource.RLIMIT_FSIZE,
                         (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        agent.ctl('sync')
        self.assertEqual(agent.ctl('status', check=False).returncode, 0)
        agent.claim('VCPU=1')
        self.assertEqual(len(agent.claims()), 2)

    def test_a_claim_ends_the_trouble_of_a_full_disk(self):
        """No cycle runs between the two claims."""
        agent = self.start_agent()
        resource.prlimit(agent.child.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        agent.claim('VCPU=1', check=False)
        self.assertRegex(agent.status()['claim_error'], NO_ROOM)
        resource.prlimit(agent.child.pid, resource.RLIMIT_FSIZE,
                         (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        agent.claim('VCPU=1')
        self.assertEqual(agent.status()['claim_error'], '')

    def test_an_identity_that_is_none_stops_the_start_in_words(self):
        agent = self.make_agent()
        (agent.state / 'compute_id').write_text('not a uuid\n')
        done = agent.run('--once')
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('compute_id', done.stderr)
