# SPDX-License-Identifier: LGPL-2.1-or-later
"""A reload of the configuration, as systemd and clients of the bus see it."""

import json
import signal
import socket

from tests.env.agent import Agent
from tests.env.case import EnvCase
from tests.env.scratch import wait_until

CONSUMER = '0a3fd8c2-1f2b-4a53-8a0a-35b6a3a6f0d1'


class Reload(EnvCase):
    def setUp(self):
        self.agent = Agent(self.scratch, bus=self.bus).start()
        self.agent.ctl('sync')

    def wait_ready(self):
        wait_until(lambda: 'READY=1' in self.agent.notifications, 30, 'READY=1')

    def reserved(self):
        reserved = self.reserved_or_none()
        self.assertIsNotNone(reserved)
        return reserved

    def test_systemd_is_told(self):
        self.agent.notifications.clear()
        self.agent.ctl('reload')
        self.wait_ready()
        told = list(self.agent.notifications)
        self.assertEqual(told[0], 'RELOADING=1')
        self.assertRegex(told[1], r'^MONOTONIC_USEC=\d+$')
        self.assertEqual(told.count('READY=1'), 1)
        self.assertLess(told.index('RELOADING=1'), told.index('READY=1'))

    def test_in_force_when_it_returns_and_claims_stay(self):
        self.agent.ctl('claim', '--consumer', CONSUMER, '--resources', 'VCPU=1')
        self.agent.configure({'DEFAULT': {'reserved_host_memory_mb': 100}})
        self.agent.ctl('reload')
        self.assertEqual(self.reserved(), 100)
        claims = self.agent.claims()
        self.assertIn(CONSUMER, [claim['consumer'] for claim in claims])

    def test_claims_expire_as_the_new_settings_say(self):
        self.agent.configure({'DEFAULT': {'claim_expiry_time': 0}})
        self.agent.ctl('reload')
        self.agent.ctl('claim', '--consumer', CONSUMER, '--resources', 'VCPU=1')
        self.assertEqual(self.agent.claims()[0]['expires_usec'], 0)

    def test_another_driver(self):
        self.agent.record(self.agent.ctl_json('discover'))
        self.agent.configure({'DEFAULT': {'compute_driver': 'static'}})
        self.agent.ctl('reload')
        self.assertEqual(self.agent.status()['driver'], 'static')

    def test_a_reload_keeps_the_last_poll_while_the_hypervisor_is_away(self):
        host = self.agent.folder / 'host.json'
        facts = self.agent.ctl_json('discover')
        facts['devices'] = [{'name': 'pci_0000_41_00_0', 'address': '0000:41:00.0',
                             'mdev_types': [{'id': 'nvidia-35', 'available_instances': 4}]}]
        self.agent.record(facts)
        self.agent.configure({'DEFAULT': {'compute_driver': 'static'}})
        self.agent.ctl('reload')
        self.assertEqual(self.agent.status()['hypervisor_error'], '')
        host.rename(host.with_suffix('.away'))
        self.agent.configure({'DEFAULT': {'reserved_host_memory_mb': 100}, 'mdev_nvidia-35': {'mdev_class': 'CUSTOM_GPU'}})
        self.agent.ctl('reload')
        status = self.agent.status()
        self.assertNotEqual(status['hypervisor_error'], '')
        self.assertGreater(status['last_poll_usec'], 0)
        self.assertEqual(self.reserved(), 100)
        # Claims also use the last poll and the configuration in force.
        done = self.agent.ctl('claim', '--consumer', CONSUMER, '--resources', 'CUSTOM_GPU=1', check=False)
        self.assertIn('Cannot read the devices of guests', done.stderr)
        host.with_suffix('.away').rename(host)
        self.agent.ctl('sync')
        self.assertEqual(self.agent.status()['hypervisor_error'], '')

    def test_refused_with_the_reason(self):
        cases = [({'agent': {'log_level': 'loud'}}, '[agent] log_level'),
                 ({'agent': {'state_dir': self.scratch.folder('other')}}, '[agent] state_dir cannot change'),
                 ({'DEFAULT': {'claim_db': 'x.sqlite'}}, '[DEFAULT] claim_db cannot change'),
                 ({'DEFAULT': {'host': 'another'}}, '[DEFAULT] host cannot change'),
                 ({'DEFAULT': {'compute_driver': 'static'}}, 'static')]
        before = {section: dict(keys) for section, keys in self.agent.options.items()}
        for options, words in cases:
            with self.subTest(words):
                self.agent.options = {section: dict(keys) for section, keys in before.items()}
                self.agent.configure({**options, 'libvirt': {'connection_uri': 'test:///gone'}})
                self.agent.notifications.clear()
                done = self.agent.ctl('reload', code=1)
                self.assertIn(words, done.stderr)
                self.wait_ready()
                self.agent.ctl('sync')

    def test_hangup(self):
        self.agent.configure({'DEFAULT': {'reserved_host_memory_mb': 101}})
        self.agent.child.signal(signal.SIGHUP)
        wait_until(lambda: self.agent.running() and self.reserved_or_none() == 101, 20,
                   'the new settings')

    def use_silent_placement(self, timeout):
        """Configures a Placement that never answers."""
        silent = socket.create_server(('127.0.0.1', 0))
        self.addCleanup(silent.close)
        self.agent.configure({'placement': {
            'auth_type': 'admin_token', 'token': 'admin', 'timeout': timeout, 'connect_retries': 0,
            'endpoint_override': 'http://127.0.0.1:%d' % silent.getsockname()[1]}})
        self.agent.notifications.clear()

    def test_a_reload_ends_before_a_cycle_that_takes_long(self):
        """systemd ends a reload that takes longer than 90 s, and it counts as failed."""
        self.use_silent_placement(600)
        self.agent.ctl('reload')
        self.wait_ready()
        self.assertEqual(self.agent.status()['sync_state'], 'pending')
        # The next reload is not refused.
        self.agent.configure({'DEFAULT': {'reserved_host_memory_mb': 103}, 'placement': {'timeout': 1}})
        self.agent.ctl('reload')
        self.assertEqual(self.reserved(), 103)

    def test_a_hangup_during_a_reload_counts(self):
        """The first reload waits for a Placement that never answers. The reload after it reads the new settings."""
        self.use_silent_placement(3)
        self.agent.child.signal(signal.SIGHUP)
        wait_until(lambda: 'RELOADING=1' in self.agent.notifications, 10, 'the first reload')
        self.agent.configure({'DEFAULT': {'reserved_host_memory_mb': 102}})
        for _ in range(2):
            self.agent.child.signal(signal.SIGHUP)
        self.assertNotIn('READY=1', self.agent.notifications)
        wait_until(lambda: self.reserved_or_none() == 102, 30, 'the new settings')

    def test_a_lost_identity_is_written_again(self):
        known = self.agent.root()
        path = self.agent.state / 'compute_id'
        path.unlink()
        self.agent.ctl('reload')
        self.assertEqual(path.read_text().strip(), known)
        self.assertIn('was missing', self.agent.log())
        path.write_text('%s\n' % CONSUMER)
        self.assertIn('changed from %s' % known, self.agent.ctl('reload', check=False).stderr)

    def reserved_or_none(self):
        done = self.agent.ctl('tree', '--json=short', check=False)
        root = json.loads(done.stdout)['providers'][0] if done.returncode == 0 else None
        return root and root['inventories']['MEMORY_MB']['reserved']

    def test_a_waiting_sync_is_answered_at_a_reload(self):
        """A reload in the middle of a cycle leaves no caller without an answer."""
        for _ in range(10):
            first = self.agent.ctl('sync', '--quiet', check=False)
            self.agent.child.signal(signal.SIGHUP)
            second = self.agent.ctl('sync', '--quiet', check=False)
            self.assertIn(first.returncode, (0, 1))
            self.assertIn(second.returncode, (0, 1), second.stderr)
