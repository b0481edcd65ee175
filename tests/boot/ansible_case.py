# SPDX-License-Identifier: LGPL-2.1-or-later
"""The Ansible role from the package, which runs against a booted Debian over ssh."""

import json
import os
import re
import subprocess
import unittest

from tests.boot.case import BootCase, package
from tests.boot.machine import ENDPOINT

CONFIG = '/etc/compute-agent/compute-agent.conf'
TOKEN = '/etc/compute-agent/placement-token'
DROP_IN = '/etc/systemd/system/compute-agent.service.d/credentials.conf'
# The machine has the clock of its host, and /tmp is its only folder for instances.
VARIABLES = {
    'compute_agent_package': None,  # set in begin()
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


def begin():
    """Boots the machine and makes the controller of a test file."""
    BootCase.boot()
    VARIABLES['compute_agent_package'] = str(package().resolve())
    BootCase.controller = Controller(BootCase.machine)
    unittest.addModuleCleanup(BootCase.controller.close)


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
