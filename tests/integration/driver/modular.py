# SPDX-License-Identifier: LGPL-2.1-or-later
"""Modular libvirt: the daemon of the node devices dies, hangs or restarts while virtqemud runs, and virtqemud restarts alone.

The file is no test_*.py, because Debian has no modular daemons and a skipped test counts as failed. Distributions without libvirtd
run all other tests on the modular daemons (tests/env/libvirtd.py). They run this file with

    python3 -m unittest tests.integration.driver.modular -v
"""

import signal
import unittest

from tests.env.libvirtd import MODULAR
from tests.env.scratch import wait_until
from tests.integration.agent.test_trouble import TroubleCase

NODEDEV = 'virtnodedevd'


@unittest.skipUnless(MODULAR, 'libvirt is not modular here')
class TestModular(TroubleCase):
    def wait_error(self, agent):
        return wait_until(lambda: agent.status()['hypervisor_error'], 60, 'the error')

    def test_devices_daemon_dies(self):
        """The GPUs stay as the last poll saw them. Claims of devices are rejected, and other claims succeed."""
        agent = self.start_agent()
        self.addCleanup(self.libvirtd.start_other, NODEDEV)
        self.libvirtd.others[NODEDEV].kill()
        self.wait_error(agent)
        self.assertEqual(len(agent.ctl_json('tree')['providers']), 3)
        agent.claim('VCPU=1')
        done = agent.claim('VGPU=1', check=False)
        self.assertIn('Cannot read the devices of guests', done.stderr)
        self.libvirtd.start_other(NODEDEV)
        self.wait_equal(agent, 60)
        self.assertEqual(agent.n_starts, 1)

    def test_devices_daemon_hangs(self):
        agent = self.start_agent()
        daemon = self.libvirtd.others[NODEDEV]
        daemon.signal(signal.SIGSTOP)
        self.addCleanup(daemon.signal, signal.SIGCONT)
        self.wait_error(agent)
        agent.claim('VCPU=1')
        daemon.signal(signal.SIGCONT)
        self.wait_equal(agent, 90)

    def test_devices_daemon_is_away_at_the_start(self):
        """The host is published only with its GPUs."""
        self.libvirtd.others[NODEDEV].kill()
        self.addCleanup(self.libvirtd.start_other, NODEDEV)
        agent = self.make_agent().start()
        self.wait_error(agent)
        self.libvirtd.start_other(NODEDEV)
        self.wait_equal(agent, 60)

    def test_guests_daemon_restarts(self):
        agent = self.start_agent()
        self.libvirtd.restart()
        self.wait_equal(agent, 60)
