# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests of the Ansible role, which runs from the package against a booted Debian over ssh."""

import json
import os
import re
import subprocess
import unittest

from tests.boot.case import BootCase, package
from tests.boot.machine import ENDPOINT, UNIT

CONFIG = '/etc/compute-agent/compute-agent.conf'
TOKEN = '/etc/compute-agent/placement-token'
DROP_IN = '/etc/systemd/system/compute-agent.service.d/credentials.conf'
SECRET = 'q7Vw-not-the-token'
# The machine has the clock of its host, and /tmp is its only folder for instances.
VARIABLES = {
    'compute_agent_package': None,  # set in setUpModule()
    'compute_agent_config': {
        'DEFAULT': {'instances_path': '/tmp', 'update_resources_interval': 2},
        'devices': {'enabled_mdev_types': ['nvidia-35']},
        'placement': {'auth_type': 'admin_token', 'endpoint_override': ENDPOINT},
    },
    'compute_agent_credentials': {'placement-token': 'admin'},
    'compute_agent_accepted_warnings': ['clock', 'storage'],
}


class Controller:
    """ansible-playbook with the role from the package, and an ssh that enters the namespaces of the machine."""

    def __init__(self, machine):
        self.machine = machine
        self.folder = machine.scratch.folder('controller')
        self._run(['dpkg-deb', '--extract', package(), self.folder / 'package'])
        self.playbooks = self.folder / 'package/usr/share/doc/compute-agent/examples/contrib/ansible'
        key = self.folder / 'key'
        self._run(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', key])
        machine.write('/root/.ssh/authorized_keys', key.with_suffix('.pub').read_text(), 0o600)
        # ssh ends its proxy with SIGHUP. nsenter must ignore it and reap sshd, or the container does not end.
        # Without PAM no user manager starts. With cgroups v1, systemd can miss its end and wait 120 s at the shutdown.
        proxy = self.folder / 'proxy'
        proxy.write_text('#!/bin/sh\ntrap "" HUP\nnsenter -t %d -a -- /usr/sbin/sshd -o UsePAM=no -i\n' % machine.leader)
        proxy.chmod(0o700)
        ssh = '-F none -i %s -o ProxyCommand=%s -o UserKnownHostsFile=/dev/null -o StrictHostKeyChecking=no -o LogLevel=ERROR'
        # close() ends the master connection of ssh.
        control = self.folder / 'control'
        self._close = ['ssh', '-F', 'none', '-o', 'ControlPath=%s' % control, '-O', 'exit', 'demo']
        (self.folder / 'ansible.cfg').write_text(
            '[defaults]\nhome = %s\nnocolor = true\n[ssh_connection]\npipelining = true\ncontrol_path = %s\n'
            'ssh_args = -C -o ControlMaster=auto -o ControlPersist=60s\n' % (self.folder / 'home', control))
        self.inventory = self.folder / 'inventory.json'
        self.inventory.write_text(json.dumps({'compute': {'hosts': {'demo': {
            'ansible_user': 'root', 'ansible_python_interpreter': '/usr/bin/python3',
            'ansible_ssh_common_args': ssh % (key, proxy)}}}}))

    @staticmethod
    def _run(argv):
        subprocess.run(list(map(str, argv)), check=True, capture_output=True)

    def close(self):
        subprocess.run(self._close, check=False, capture_output=True)

    def play(self, *options, playbook='compute-agent.yml', **variables):
        """Runs a playbook. Returns the CompletedProcess. A keyword replaces the variable of this name in VARIABLES."""
        path = self.folder / 'variables.json'
        path.write_text(json.dumps({**VARIABLES, **variables}))
        environ = {**os.environ, 'ANSIBLE_CONFIG': str(self.folder / 'ansible.cfg'), 'LC_ALL': 'C.UTF-8'}
        return subprocess.run(['ansible-playbook', '-i', self.inventory, '-e', '@%s' % path, *options,
                               self.playbooks / playbook], env=environ, cwd=self.folder, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600, check=False)


def setUpModule():
    BootCase.boot()
    VARIABLES['compute_agent_package'] = str(package().resolve())
    BootCase.controller = Controller(BootCase.machine)
    unittest.addModuleCleanup(BootCase.controller.close)
    # The order of an operator: a dry run, a first run, a second run. The tests check the output of these runs.
    BootCase.looked, BootCase.first, BootCase.second = (
        BootCase.controller.play('--check'), BootCase.controller.play('-vvv', '--diff'), BootCase.controller.play())


def changed(done):
    """Returns the names of the tasks that changed the host."""
    return re.findall(r'^TASK \[(?:compute_agent : )?(.*?)\] \**\n(?:(?!TASK).*\n)*?changed:', done.stdout, re.M)


class AnsibleCase(BootCase):
    def assert_recap(self, done, n_changed=None):
        self.assertEqual(done.returncode, 0, done.stdout)
        found = re.search(r'^demo +: .*changed=(\d+) .*failed=0 ', done.stdout, re.M)
        self.assertIsNotNone(found, done.stdout)
        if n_changed is not None:
            self.assertEqual(int(found[1]), n_changed, done.stdout)

    def assert_fails(self, done, words):
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, words)

    def mode(self, path):
        return self.machine.run('stat', '-c', '%U:%G %a', path).stdout.strip()


class Converge(AnsibleCase):
    def test_check_mode_installs_nothing(self):
        self.assert_recap(self.looked)
        self.assertIn('The package is not installed', self.looked.stdout)
        self.assertIn('Copy the package', changed(self.first))

    def test_first_run_publishes_the_host(self):
        self.assert_recap(self.first)
        shown = self.machine.show('ActiveState', 'UnitFileState')
        self.assertEqual((shown['ActiveState'], shown['UnitFileState']), ('active', 'enabled'))
        answer = self.placement.request('GET', '/resource_providers').json
        self.assertIn('demo', [provider['name'] for provider in answer['resource_providers']])
        self.assertEqual([self.mode(path) for path in (CONFIG, TOKEN, DROP_IN)],
                         ['root:compute-agent 640', 'root:root 600', 'root:root 644'])

    def test_second_run_changes_nothing(self):
        self.assert_recap(self.second, 0)


class Change(AnsibleCase):
    def converge(self, **variables):
        """Runs the role with these variables. The end of the test runs it again without them. Returns the first run."""
        self.addCleanup(self.controller.play)
        return self.controller.play(**variables)

    def test_an_option_is_reloaded(self):
        pid = self.machine.main_pid()
        done = self.converge(compute_agent_host_config={'DEFAULT': {'reserved_host_memory_mb': 1024}})
        self.assert_recap(done, 2)
        self.assertIn('Reload the configuration', changed(done))
        self.assertEqual(self.machine.main_pid(), pid)
        root = self.machine.ctl_json('status')['root']
        inventories = self.placement.request('GET', '/resource_providers/%s/inventories' % root).json['inventories']
        self.assertEqual(inventories['MEMORY_MB']['reserved'], 1024)

    def test_an_option_that_needs_a_restart_is_restarted(self):
        pid = self.machine.main_pid()
        done = self.converge(compute_agent_host_config={'DEFAULT': {'host': 'other'}})
        self.assert_recap(done, 2)
        self.assertIn('Restart the service', changed(done))
        self.assertNotEqual(self.machine.main_pid(), pid)

    def test_a_change_that_is_not_in_force_is_applied_by_the_next_run(self):
        self.machine.run('touch', '-d', '+1 minute', CONFIG)
        self.addCleanup(self.machine.run, 'touch', CONFIG)
        self.assertEqual(changed(self.controller.play()), ['Reload the configuration'])

    def test_check_mode_announces_a_reload_and_writes_nothing(self):
        before = self.machine.path(CONFIG).read_text()
        done = self.controller.play('--check', compute_agent_host_config={'DEFAULT': {'reserved_host_memory_mb': 2048}})
        self.assertIn('Write the configuration', changed(done))
        self.assertEqual(self.machine.path(CONFIG).read_text(), before)

    def test_a_bad_value_is_refused_before_it_is_written(self):
        before = self.machine.path(CONFIG).read_text()
        done = self.controller.play(compute_agent_host_config={'DEFAULT': {'cpu_allocation_ratio': 'many'}})
        self.assert_fails(done, r'\[DEFAULT\] cpu_allocation_ratio: .*must be a number')
        self.assertEqual(self.machine.path(CONFIG).read_text(), before)

    def test_the_gate_fails_with_the_words_of_the_agent(self):
        self.assert_fails(self.converge(compute_agent_host_config={'agent': {'log_levle': 'info'}}),
                          r'"configuration: .*unknown option \[agent\] log_levle')

    def test_a_refused_credential_fails_and_is_not_shown(self):
        self.addCleanup(self.controller.play)
        done = self.controller.play('-vvv', '--diff', compute_agent_credentials={'placement-token': SECRET})
        self.assert_fails(done, 'Placement forbids GET')
        self.assertNotIn(SECRET, done.stdout)

    def test_a_secret_in_the_configuration_is_refused_and_not_shown(self):
        done = self.controller.play('-vvv', compute_agent_host_config={'placement': {'password': SECRET}})
        self.assert_fails(done, 'has a secret: password')
        self.assertNotIn(SECRET, done.stdout)


class Maintenance(AnsibleCase):
    """The tests skip the reboot, which nspawn does not survive here."""

    def cordon(self):
        return self.machine.ctl_json('status', check=False)['host_cordoned']

    def maintain(self, **variables):
        return self.controller.play('--skip-tags', 'reboot', playbook='maintenance.yml', **variables)

    def test_cordons_and_uncordons(self):
        done = self.maintain()
        self.assert_recap(done, 2)
        self.assertEqual(changed(done), ['Cordon the host', 'Uncordon the host'])
        self.assertEqual(self.cordon(), '')

    def test_a_claim_stops_it_and_the_host_stays_cordoned(self):
        claim = self.claim_cpu().stdout.strip()
        self.addCleanup(self.machine.run, 'computectl', 'uncordon')
        done = self.maintain(compute_agent_drain_timeout=5)
        self.machine.run('computectl', 'release', claim)
        self.assert_fails(done, 'Wait until the host has no claims')
        self.assertRegex(self.cordon(), 'maintenance by Ansible$')

    def test_the_cordon_of_an_operator_stays(self):
        self.machine.run('computectl', 'cordon', '--reason', 'its fan is broken')
        self.addCleanup(self.machine.run, 'computectl', 'uncordon')
        self.assert_recap(self.maintain(), 0)
        self.assertRegex(self.cordon(), 'its fan is broken$')
