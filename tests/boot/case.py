# SPDX-License-Identifier: LGPL-2.1-or-later
"""The base class of tests in a booted machine with the installed package."""

import os
import unittest
import uuid
from pathlib import Path

from tests.boot.machine import UNIT, Machine
from tests.env.placement import Placement
from tests.env.scratch import EnvError, Scratch

RULE = '''polkit.addRule(function(action, subject) {
    if (action.id == "org.computeagent.claim" && subject.user == "%s")
        return polkit.Result.YES;
});
'''


def package():
    """Returns the .deb under test: $COMPUTE_AGENT_DEB."""
    path = os.environ.get('COMPUTE_AGENT_DEB')
    if not path:
        raise EnvError('COMPUTE_AGENT_DEB must name the package: see HACKING.md')
    return Path(path)


class BootCase(unittest.TestCase):
    """A test case in the booted machine. The tests of a file share machine and placement, and each test restores its
    changes. When a test begins, the daemon runs and is synced."""

    @classmethod
    def boot(cls):
        """Starts Placement and the machine. setUpModule() calls it."""
        scratch = Scratch()
        unittest.addModuleCleanup(scratch.close)
        BootCase.placement = Placement(scratch, 'unix')
        cls.placement.start(wait=False)
        BootCase.machine = Machine(cls.placement, scratch)
        unittest.addModuleCleanup(cls.machine.kill)
        cls.machine.start()
        cls.placement.wait_ready()

    @classmethod
    def boot_and_serve(cls):
        cls.boot()
        cls.install()
        cls.machine.configure()
        cls.machine.run('systemctl', 'enable', '--now', UNIT)

    def setUp(self):
        self.machine.wait_state('synced')

    @classmethod
    def install(cls, path=None):
        """Installs the package with apt. The machine has no network, but all dependencies are installed."""
        cls.machine.copy_in(path or package(), '/var/tmp/compute-agent.deb')
        return cls.machine.run('apt-get', '--quiet', '--yes', 'install',
                               '/var/tmp/compute-agent.deb', timeout=120)

    def claim_cpu(self, user=None):
        """Claims one VCPU for a new consumer. Returns the CompletedProcess. Its output is the number of the claim."""
        return self.machine.run('computectl', 'claim', '--quiet', '--consumer', uuid.uuid4(), '--resources', 'VCPU=1',
                                user=user, check=False)

    def claims(self):
        """Returns the numbers of the current claims."""
        return {claim['id'] for claim in self.machine.ctl_json('claims')['claims']}

    def allow_claims(self, user):
        """Adds a rule of polkit until the end of the test: this user can claim."""
        path = '/etc/polkit-1/rules.d/10-test.rules'
        self.machine.write(path, RULE % user)
        self.addCleanup(self.machine.run, 'systemctl', 'restart', 'polkit')
        self.addCleanup(self.machine.run, 'rm', path)
        self.machine.run('systemctl', 'restart', 'polkit')

    def drop_in(self, text):
        """Adds a drop-in to the unit until the end of the test. Both times the daemon restarts."""
        path = '/etc/systemd/system/%s.d/test.conf' % UNIT
        self.machine.write(path, text)
        self.addCleanup(self.restart, check=False)
        self.addCleanup(self.machine.run, 'rm', '-f', path)
        self.restart()

    def restart(self, check=True):
        self.machine.run('systemctl', 'daemon-reload')
        self.machine.run('systemctl', 'reset-failed', UNIT, check=False)
        self.machine.run('systemctl', 'restart', UNIT, check=check)

    def configure(self, *args, **options):
        """Writes another configuration until the end of the test. It does not restart or reload the daemon."""
        self.addCleanup(self.restart, check=False)
        self.addCleanup(self.machine.configure)
        self.machine.configure(*args, **options)
