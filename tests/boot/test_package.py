# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests of the package from installation to purge, in the steps of a new operator."""

import os
import re
import uuid
from pathlib import Path

from tests.boot.case import BootCase, package
from tests.boot.machine import UNIT
from tests.env.scratch import EnvError, wait_until

ROOT = Path(__file__).parents[2]
CONFIG = '/etc/compute-agent/compute-agent.conf'
setUpModule = BootCase.boot


def newer_package():
    path = os.environ.get('COMPUTE_AGENT_NEWER_DEB')
    if not path:
        raise EnvError('COMPUTE_AGENT_NEWER_DEB must name a package: see HACKING.md')
    return Path(path)


class Package(BootCase):
    def setUp(self):
        """Installs the package. It is removed after the test."""
        self.before = self.files()
        self.install(package())
        self.addCleanup(self.placement.forget_providers)
        self.addCleanup(self.machine.run, 'dpkg', '--purge', 'compute-agent', timeout=120)

    def files(self):
        """Returns the files of the agent outside of logs and of the records of the package."""
        out = self.machine.run('find', '/etc', '/usr', '/var', '/run', '/lib/', '-xdev', '-name',
                               '*comput*', check=False).stdout
        return sorted(line for line in out.splitlines()
                      if not line.startswith(('/usr/lib/python', '/var/lib/dpkg/info',
                                              '/var/tmp/', '/var/log/')))

    def edit_two_lines_and_enable(self):
        """Sets the address of Placement and the authentication, as in the guide, and starts the service."""
        self.machine.run(
            'sed', '-i', '-e', 's,^#\\[placement\\],[placement],',
            '-e', 's,^#auth_type = .*,auth_type = admin_token,',
            '-e', 's,^#endpoint_override =.*,endpoint_override = unix:///outside/placement.sock,',
            '-e', 's,^#token =.*,token = admin,', CONFIG)
        self.machine.run('systemctl', 'enable', '--now', UNIT)
        self.machine.wait_state('synced')

    def test_installed_but_not_started(self):
        shown = self.machine.show('ActiveState', 'UnitFileState', 'LoadState')
        self.assertEqual((shown['LoadState'], shown['ActiveState'], shown['UnitFileState']),
                         ('loaded', 'inactive', 'disabled'))
        mode = self.machine.run('stat', '-c', '%U:%G %a', CONFIG).stdout.strip()
        self.assertEqual(mode, 'root:compute-agent 640')
        self.machine.run('computectl', 'doctor', '--config-only')
        guide = re.search(r'file:(/\S+)', self.machine.show('Documentation')['Documentation'])[1]
        self.machine.run('grep', '-q', '## The first host', guide)
        for page in ('8 compute-agentd', '1 computectl', '5 compute-agent.conf',
                     '5 org.computeagent.Agent1', '7 compute-agent-messages'):
            self.machine.run('man', '--where', *page.split())

    def test_the_identity_is_copied_before_the_first_start(self):
        """The folders of the documents exist, and the agent finds the identity there."""
        documents = self.machine.run('sh', '-c', 'zcat -f /usr/share/doc/compute-agent/*.md*').stdout
        copies = set(re.findall(r'cp /var/lib/nova/compute_id \S+', documents))
        self.assertTrue(copies)
        identity = str(uuid.uuid4())
        self.machine.run('mkdir', '-p', '/var/lib/nova')
        self.addCleanup(self.machine.run, 'rm', '-r', '/var/lib/nova')
        self.machine.write('/var/lib/nova/compute_id', identity + '\n')
        for copy in copies:
            self.machine.run(*copy.split())
        self.edit_two_lines_and_enable()
        self.assertEqual(self.machine.ctl_json('status', check=False)['root'], identity)

    def test_two_lines_and_enable(self):
        self.edit_two_lines_and_enable()
        done = self.machine.run('computectl', 'doctor', check=False)
        self.assertNotIn('bad ', done.stdout)
        self.assertRegex(done.stdout, r'ok +endpoint +Placement answers at unix:///outside/')
        self.assertRegex(done.stdout, r'ok +version +Placement supports microversions up to 1\.')
        # The clock is that of the machine that runs the test.
        warnings = re.findall(r'^warning +(\w+)', done.stdout, re.M)
        self.assertLessEqual(set(warnings), {'clock', 'storage'}, done.stdout)  # it has no folder for instances
        self.assertEqual(done.returncode, 4 if warnings else 0)
        self.assertIn('Published', self.machine.run('computectl', 'status').stdout)
        text = self.machine.run('computectl', 'cat-config').stdout
        self.assertIn('token = (not shown)', text)

    def test_upgrade_restarts_and_loses_no_claim(self):
        self.edit_two_lines_and_enable()
        claim = int(self.claim_cpu().stdout)
        pid = self.machine.main_pid()
        self.install(newer_package())
        self.assertNotIn(self.machine.main_pid(), (0, pid))
        self.machine.wait_state('synced')
        self.assertIn(claim, self.claims())
        self.assertIn('endpoint_override = unix:', self.machine.run('cat', CONFIG).stdout)

    def test_an_upgrade_does_not_run_prepare_or_clean(self):
        """The agent starts after prepare.service, and would be stopped until its end."""
        script = self.machine.run('cat', '/var/lib/dpkg/info/compute-agent.postinst').stdout
        self.assertEqual(re.findall(r'^\s*deb-systemd-invoke (.*) >', script, re.M),
                         ["$_dh_action 'compute-agent-clean.path' 'compute-agent-prepare.path' 'compute-agent.service'"])

    def test_a_removal_stops_a_cleaning(self):
        """It would go on as root without the files of the package."""
        clean = 'compute-agent-clean.service'
        self.machine.write('/run/systemd/system/%s.d/test.conf' % clean, '[Service]\nExecStart=\nExecStart=/bin/sleep 900\n')
        self.addCleanup(self.machine.run, 'rm', '-r', '/run/systemd/system/%s.d' % clean)
        self.machine.run('systemctl', 'daemon-reload')
        self.machine.run('systemctl', 'start', '--no-block', clean)
        wait_until(lambda: self.machine.show('ActiveState', unit=clean)['ActiveState'] == 'activating', 30, 'the cleaning')
        self.install(newer_package())
        self.assertEqual(self.machine.show('ActiveState', unit=clean)['ActiveState'], 'activating')
        self.machine.run('apt-get', '-qq', '--yes', 'remove', 'compute-agent', timeout=120)
        self.assertEqual(self.machine.show('MainPID', unit=clean)['MainPID'], '0')

    def test_the_way_back_names_each_package(self):
        """apt removes a package that needs a newer compute-agent than the one that it installs."""
        guide = self.machine.run('cat', '/usr/share/doc/compute-agent/guide.md').stdout
        command = re.search('^apt install --allow-downgrades .*', guide, re.M)[0]
        packages = re.findall(r'^Package: (\S+)', (ROOT / 'debian/control').read_text(), re.M)
        self.assertEqual(re.findall(r'\./(\S+)_OLD\.deb', command), packages)

    def test_a_removed_package_keeps_its_state_and_a_purged_one_none(self):
        self.edit_two_lines_and_enable()
        self.machine.run('apt-get', '-qq', '--yes', 'remove', 'compute-agent', timeout=120)
        self.machine.run('test', '-s', '/var/lib/compute-agent/claim.sqlite')
        self.machine.run('test', '-s', CONFIG)
        self.assertEqual(self.machine.show('ActiveState')['ActiveState'], 'inactive')
        done = self.machine.run('apt-get', '-qq', '--yes', 'purge', 'compute-agent', timeout=120)
        self.assertIn('what Placement has of this host stays there', done.stdout + done.stderr)
        self.assertEqual(self.files(), self.before)
        self.assertNotIn('compute-agent', self.machine.run('cat', '/etc/passwd', '/etc/group',
                                                           '/etc/shadow').stdout)
