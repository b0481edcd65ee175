# SPDX-License-Identifier: LGPL-2.1-or-later
"""A booted machine with the package installed, for the tests of one class."""

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
    """The .deb under test: $COMPUTE_AGENT_DEB."""
    path = os.environ.get('COMPUTE_AGENT_DEB')
    if not path:
        raise EnvError('COMPUTE_AGENT_DEB must name the package: see HACKING.md')
    return Path(path)


class BootCase(unittest.TestCase):
    """machine and placement are shared by the tests of a file, each of which puts back what it
    changed: the daemon runs and is synced when a test begins."""

    @classmethod
    def boot(cls):
        """To be called by setUpModule()."""
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
        """apt install ./compute-agent_….deb. The machine has no network: all else is there."""
        cls.machine.copy_in(path or package(), '/var/tmp/compute-agent.deb')
        return cls.machine.run('apt-get', '--quiet', '--yes', 'install',
                               '/var/tmp/compute-agent.deb', timeout=120)

    def claim_cpu(self, user=None):
        """Claim one for somebody new; the CompletedProcess, which says the number of the claim when it went well."""
        return self.machine.run('computectl', 'claim', '--quiet', '--consumer', uuid.uuid4(), '--resources', 'VCPU=1',
                                user=user, check=False)

    def claims(self):
        """The numbers of those that live."""
        return {claim['id'] for claim in self.machine.ctl_json('claims')['claims']}

    def allow_claims(self, user):
        """Adds a rule of polkit until the test ends: this user can claim."""
        path = '/etc/polkit-1/rules.d/10-test.rules'
        self.machine.write(path, RULE % user)
        self.addCleanup(self.machine.run, 'systemctl', 'restart', 'polkit')
        self.addCleanup(self.machine.run, 'rm', path)
        self.machine.run('systemctl', 'restart', 'polkit')

    def drop_in(self, text):
        """Add to the unit until the test ends. The daemon is restarted both times."""
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
        """Another configuration until the test ends; nobody is told of it."""
        self.addCleanup(self.restart, check=False)
        self.addCleanup(self.machine.configure)
        self.machine.configure(*args, **options)
