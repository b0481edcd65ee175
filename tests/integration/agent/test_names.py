# SPDX-License-Identifier: LGPL-2.1-or-later
"""The daemon answers while curl waits for name servers. It ignores the proxies of the environment and the configuration files of
the home folder."""

import os
import subprocess
import threading
import time

from tests.env import silentdns
from tests.env.agent import Agent
from tests.env.case import EnvCase

NAME = 'org.computeagent.Agent1'
SILENT = 'http://placement.cloud:8778'
# The limit includes the daemon's own threads and those of curl's look-ups. TasksMax of the unit is 128.
THREADS_MAX = 20


class Pinger(threading.Thread):
    """Pings the daemon all the time. The member slowest_sec is the longest time until an answer."""

    def __init__(self, bus):
        super().__init__(daemon=True)
        self._argv = ['busctl', '--address=%s' % bus.address, '--timeout=100', 'call', NAME, '/org/computeagent/Agent1',
                      'org.freedesktop.DBus.Peer', 'Ping']
        self._ended = threading.Event()
        self.slowest_sec = 0
        self.failures = []

    def run(self):
        while not self._ended.wait(0.05):
            begin = time.monotonic()
            done = subprocess.run(self._argv, capture_output=True, text=True, check=False)
            self.slowest_sec = max(self.slowest_sec, time.monotonic() - begin)
            if done.returncode:
                self.failures.append(done.stderr)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        self._ended.set()
        self.join()


class TestNames(EnvCase):
    def start_agent(self, placement=SILENT, options=None, silent=True, env=None):
        agent = Agent(self.scratch, placement=placement, bus=self.bus, options=options,
                      within=silentdns.command(self.scratch.folder('names')) if silent else ())
        agent.configure({'placement': {'connect_timeout': 1}})
        # LeakSanitizer stops all threads first, and would wait for the threads of the look-ups.
        asan = ':'.join(filter(None, (os.environ.get('ASAN_OPTIONS'), 'detect_leaks=0')))
        agent.more_env = {'ASAN_OPTIONS': asan, **(env or {})}
        return agent.start()

    def sync(self, agent):
        """Runs a cycle and waits for its end."""
        return subprocess.run(['busctl', '--address=%s' % self.bus.address, '--timeout=100', 'call', NAME,
                               '/org/computeagent/Agent1', NAME, 'Sync'], capture_output=True, text=True, check=False)

    def n_threads(self, agent):
        return len(os.listdir('/proc/%d/task' % agent.child.pid))

    def check_lively(self, pinger):
        self.assertEqual(pinger.failures, [])
        self.assertLess(pinger.slowest_sec, 2)

    def test_silent_name_servers(self):
        """Placement's and Keystone's names: only the request that needs a name waits for its look-up."""
        keystone = {'auth_type': 'password', 'auth_url': 'http://keystone.cloud:5000', 'username': 'nova', 'password': 'p',
                    'project_name': 'service', 'user_domain_name': 'Default', 'project_domain_name': 'Default',
                    'endpoint_override': None, 'token': None}
        for options in ({}, keystone):
            with self.subTest(options.get('auth_type', 'none')):
                agent = self.start_agent(options={'placement': options})
                with Pinger(self.bus) as pinger:
                    agent.wait_state('offline', 30)
                    for _ in range(3):
                        self.sync(agent)
                self.check_lively(pinger)
                begin = time.monotonic()
                agent.stop()
                self.assertLess(time.monotonic() - begin, 4)

    def test_reload_as_a_name_is_looked_up(self):
        agent = self.start_agent()
        with Pinger(self.bus) as pinger:
            agent.wait_state('offline', 30)
            for _ in range(3):
                self.assertEqual(agent.ctl('reload', check=False).returncode, 0)
        self.check_lively(pinger)

    def test_the_threads_of_silent_name_servers_are_few(self):
        """The agent counts the look-ups that have not ended. At the limit it starts no further one."""
        agent = self.start_agent()
        agent.wait_state('offline', 30)
        most = 0
        for _ in range(25):
            self.sync(agent)
            most = max(most, self.n_threads(agent))
        self.assertLessEqual(most, THREADS_MAX)
        self.assertIn('wait for the name servers', agent.status()['sync_error'])

    def test_nothing_of_the_home_or_the_environment_is_read(self):
        """The proxies would need a look-up. The files are pipes that never end, so a read would block the main loop."""
        home = self.scratch.folder('home')
        for name in ('.netrc', '_netrc', '.curlrc', '.curl-hsts', '.hsts', '.altsvc'):
            os.mkfifo(home / name)
        proxy = {name: 'http://proxy.cloud:3128' for name in ('http_proxy', 'https_proxy', 'all_proxy', 'ALL_PROXY')}
        agent = self.start_agent(self.placement, silent=False, env={'HOME': str(home), 'NETRC': str(home / '.netrc'), **proxy})
        with Pinger(self.bus) as pinger:
            agent.wait_state('synced', 30)
            self.sync(agent)
        self.check_lively(pinger)

    def test_a_connection_is_closed_though_nobody_reads_there(self):
        agent = self.start_agent(self.placement, silent=False)
        agent.wait_state('synced', 30)
        with self.placement.paused(), Pinger(self.bus) as pinger:
            self.assertEqual(agent.ctl('reload', check=False).returncode, 0)
            self.sync(agent)
        self.check_lively(pinger)
