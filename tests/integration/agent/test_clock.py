# SPDX-License-Identifier: LGPL-2.1-or-later
"""The clock of the host is set while the agent runs. The machine's own stays as it is: tests/shims/clock.c is preloaded."""

import time
import uuid

from tests.env.agent import Agent
from tests.env.clock import YEAR, write_offset
from tests.env.libvirtd import guest_xml
from tests.integration.claims.placement_case import HostCase


class TestClock(HostCase):
    shared = ('scratch', 'bus')

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.libvirtd.start()

    def setUp(self):
        self.agent = Agent(self.scratch, bus=self.bus, uri=self.libvirtd.uri, options={'DEFAULT': {'claim_expiry_time': 60}})
        self.offset = self.agent.folder / 'clock-offset'
        self.set_clock(0)
        self.agent.preload('clock', CLOCK_SHIM=str(self.offset))
        self.addCleanup(self.agent.stop)
        self.agent.start()
        self.agent.ctl('sync')

    def set_clock(self, seconds):
        """The agent's is ahead by so many."""
        write_offset(self.offset, seconds)

    def claim(self):
        return self.agent.claim('VCPU=1')['id']

    def expiry(self, claim):
        """In how many seconds it expires, by the agent's clock."""
        has = self.agent.ctl_json('show', claim)
        self.assertEqual(has['state'], 'claimed', self.agent.log())
        now = time.time() + int(self.offset.read_text())
        return has['expires_usec'] / 1e6 - now

    def test_forward_and_back(self):
        old = self.claim()
        for seconds in (YEAR, 0, -YEAR, 0):
            self.set_clock(seconds)
            self.agent.ctl('sync')
            new = self.claim()
            self.agent.ctl('sync')
            for claim in (old, new):
                self.assertGreater(self.expiry(claim), 1)
                self.assertLess(self.expiry(claim), 62)
        self.assertEqual(self.agent.log().count('The clock of this host was set'), 4)
        # It still expires.
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
