# SPDX-License-Identifier: LGPL-2.1-or-later
"""The clock of the host is set while the agent runs. tests/shims/clock.c is preloaded, so the clock of the machine is unchanged."""

import re
import time
import uuid

from tests.env.agent import Agent
from tests.env.case import EnvCase
from tests.env.libvirtd import guest_xml
from tests.env.scratch import wait_until

YEAR = 365 * 86400


class TestClock(EnvCase):
    shared = ('libvirtd',)

    def start(self, placement=None):
        self.metrics = self.scratch.path / 'agent.prom'
        self.agent = Agent(self.scratch, placement, bus=self.bus, uri=self.libvirtd.uri, options={
            'DEFAULT': {'claim_expiry_time': 60, 'update_resources_interval': 1}, 'agent': {'metrics_file': self.metrics}})
        self.agent.watchdog_usec = 2_000_000
        self.offset = self.agent.folder / 'clock-offset'
        self.set_clock(0)
        self.agent.preload('clock', CLOCK_SHIM=str(self.offset))
        self.addCleanup(self.agent.stop)
        self.agent.start('synced' if placement else 'standalone')
        self.agent.ctl('sync')

    def set_clock(self, seconds):
        """Sets the agent's clock ahead by this many seconds. The rename makes sure that the agent reads the old or the new value."""
        fresh = self.offset.with_suffix('.new')
        fresh.write_text('%d\n' % seconds)
        fresh.rename(self.offset)

    def claim(self):
        return self.agent.claim('VCPU=1')['id']

    def expiry(self, claim):
        """Returns the seconds until the claim expires, by the agent's clock."""
        has = self.agent.ctl_json('show', claim)
        self.assertEqual(has['state'], 'claimed', self.agent.log())
        now = time.time() + int(self.offset.read_text())
        return has['expires_usec'] / 1e6 - now

    def metric(self, name):
        return float(re.search(r'^compute_agent_%s (\S+)$' % name, self.metrics.read_text(), re.M)[1])

    def wait_cycles(self):
        """Waits for three cycles that the timer started. The agent must also notify the watchdog."""
        n_cycles, n_pings = self.metric('cycles_total'), self.agent.notifications.count('WATCHDOG=1')
        wait_until(lambda: self.metric('cycles_total') > n_cycles + 2, 30, 'cycles, unasked')
        self.assertGreater(self.agent.notifications.count('WATCHDOG=1'), n_pings)

    def check_times(self):
        """Checks that status and metrics show the last cycle as recent, by the agent's clock."""
        now = time.time() + int(self.offset.read_text())
        status = self.agent.status()
        for seconds in (self.metric('last_sync_timestamp_seconds'), self.metric('last_poll_timestamp_seconds'), status['last_sync_usec'] / 1e6):
            self.assertAlmostEqual(seconds, now, delta=60)
        self.assertEqual((status['state'], status['sync_state']), ('ok', 'synced'))
        self.assertRegex(self.agent.ctl('status').stdout, r'last equal .* UTC; (\d+s ago|now)')

    def test_forward_and_back(self):
        self.start(self.placement)
        old = self.claim()
        for seconds in (YEAR, 0, -YEAR, 0):
            self.set_clock(seconds)
            self.wait_cycles()
            self.check_times()
            self.agent.ctl('sync')
            new = self.claim()
            self.agent.ctl('sync')
            for claim in (old, new):
                self.assertGreater(self.expiry(claim), 1)
                self.assertLess(self.expiry(claim), 62)
        self.assertEqual(self.agent.log().count('The clock of this host was set'), 4)
        # A claim still expires after these steps of the clock.
        self.agent.ctl('release', new)
        changed = self.claim()
        self.agent.configure({'DEFAULT': {'claim_expiry_time': 1}})
        self.agent.ctl('reload')
        short = self.claim()
        time.sleep(1.5)
        self.agent.ctl('sync')
        self.assertEqual(self.agent.ctl_json('show', short)['end_reason'], 'expired')
        self.assertEqual(self.agent.ctl_json('show', changed)['state'], 'claimed')

    def test_a_guest_that_is_away_for_a_moment_is_no_orphan(self):
        self.start()
        guest = str(uuid.uuid4())
        self.libvirtd.define(guest_xml('moved', uuid=guest))
        self.agent.ctl('sync')
        self.libvirtd.virsh('undefine', 'moved')
        self.agent.ctl('sync')
        self.set_clock(YEAR)
        self.agent.ctl('sync')
        self.agent.ctl('sync')
        claims = self.agent.claims()
        self.assertEqual([one['consumer'] for one in claims], [guest], self.agent.log())
