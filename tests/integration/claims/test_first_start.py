# SPDX-License-Identifier: LGPL-2.1-or-later
"""The first start on a host with many guests: all of them are adopted in turns of the main loop."""

import unittest
import uuid

from tests.env.agent import has_sanitizers
from tests.env.case import EnvCase
from tests.env.crowd import MeasuredAgent
from tests.env.hosts import Cell, Host
from tests.env.scratch import wait_until
from tests.env.testdriver import testdriver_domain, testdriver_xml

N_GUESTS = 900
CPUS = 3  # of the test driver
STOP_MS = 50  # the limit of a turn of the main loop


class TestFirstStart(EnvCase):
    """A host whose guests have all of its CPUs."""

    def setUp(self):
        super().setUp()
        host = Host(name='crowded', cells=[Cell(0, [0], 8 << 20)])
        self.guests = [str(uuid.UUID(int=n + 1)) for n in range(N_GUESTS)]
        uri = testdriver_xml(host, self.scratch.path, [testdriver_domain('guest%d' % n, guest) for n, guest in enumerate(self.guests)])
        self.agent = MeasuredAgent(self.scratch, uri=uri, bus=self.bus, options={
            'DEFAULT': {'update_resources_interval': 3600, 'cpu_allocation_ratio': N_GUESTS / CPUS, 'reserved_host_memory_mb': 0}})

    def claim_until_refused(self):
        """Requests a VCPU again and again until the host is known. Returns the words of the refusal."""
        while True:
            done = self.agent.claim('VCPU=1', check=False)
            self.assertNotEqual(done.returncode, 0, 'a guest has each VCPU: ' + done.stdout)
            if 'requested' in done.stderr:
                return done.stderr

    def test_guests_are_adopted_in_turns_of_the_main_loop(self):
        self.agent.start()
        refused = self.claim_until_refused()
        self.assertIn('0 of %d are free' % N_GUESTS, refused)
        self.assertEqual(sorted(claim['consumer'] for claim in self.agent.claims()), self.guests)
        # The clock also counts other programs, and a slow disk.
        wall_ms, cpu_ms = self.agent.longest_stop()
        self.assertLess(cpu_ms, 3 * STOP_MS if has_sanitizers() else STOP_MS, 'by the clock: %.0f ms' % wall_ms)

    def test_a_start_that_is_killed_keeps_the_claims_that_it_made(self):
        self.agent.start()
        wait_until(lambda: self.agent.status().get('n_claims'), 60, 'a claim', 0.01)
        self.agent.kill()
        self.agent.start()
        wait_until(lambda: self.agent.status().get('n_claims') == N_GUESTS, 60, 'all claims')
        claims = self.agent.claims()
        self.assertEqual(sorted(claim['consumer'] for claim in claims), self.guests)
        self.assertEqual(self.agent.problems(), [])


if __name__ == '__main__':
    unittest.main()
