# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs the commands of the installed README and guide literally, in a machine with the package.

Blocks run line by line, in the order of the document. For a command within a sentence, the verb and its options must exist.
"""

import re

from tests.boot.case import BootCase
from tests.boot.machine import UNIT
from tests.env.scratch import wait_until

FOLDER = '/usr/share/doc/compute-agent/'
CONFIG = '/etc/compute-agent/compute-agent.conf'
TOKEN = '/etc/compute-agent/placement-token'
PROXY = '/lib/systemd/systemd-socket-proxyd'
PROGRAMS = {'computectl', 'systemctl', 'compute-agentd', 'journalctl', 'sudo', 'install', 'cp', 'ln', 'mkdir', 'openstack', 'virsh', 'apt', 'cd', 'rm',
            'mv', 'editor', 'git', './demo', './check', './autogen.sh'}

# Commands that do not run here, and the test that runs them instead.
ELSEWHERE = (
    (r'git clone|\./demo|\./check|sudo apt-get build-dep|\./autogen\.sh', 'needs the network and the sources: tests/run/prove-install'),
    (r'openstack ', 'needs a cloud: make cloud'),
    (r'virsh start vm2', 'a start that is refused: tests.integration.hook'),
    (r'computectl uncordon 0000:82', 'needs a device that was not proved to be clean: test_clean'),
    (r'computectl explain --resources CUSTOM_HGX', 'needs a set of devices: tests.integration.claims.test_shapes'),
    (r'computectl (-H|--hosts-file) ', 'needs other hosts: tests.integration.ctl.test_remote'),
    (r'editor ', 'the same edit as a command is in README.md'),
    (r'apt install --allow-downgrades|cd |rm -f claim|mv claim|systemctl (stop|start) compute-agent$', 'the way back to an older package: test_package'),
)
# The accepted exit codes. The machine has no synchronised clock and no earlier reshape.
CODES = ((r'(sudo )?computectl doctor', (0, 4)), (r'computectl status', (0, 4)), (r'computectl reshape --undo', (1,)),
         (r'computectl (drain|retire --dry-run)', (3,)), (r'computectl retire$', (0, 3)))


def setUpModule():
    BootCase.boot()
    BootCase.install()
    machine = BootCase.machine
    # README.md expects Placement at a port of this host.
    machine.run('systemd-run', '--unit=placement-proxy', 'systemd-socket-activate', '--listen=127.0.0.1:8778', PROXY, '/outside/placement.sock')
    machine.run('sh', '-c', 'mkdir -p /var/lib/nova /var/lib/prometheus/node-exporter')


def blocks(text):
    """Yields (is_block, text) of the parts of a document. A block is fenced or indented."""
    fenced = re.split(r'^ *```\n?', text, flags=re.M)
    for number, part in enumerate(fenced):
        if number % 2:
            yield True, re.sub(r'^   ', '', part, flags=re.M)
            continue
        for piece in re.split(r'((?:^    .*\n)+)', part, flags=re.M):
            yield piece.startswith('    '), piece


def commands(block):
    for line in block.splitlines():
        command = re.sub(r'\s+#.*', '', re.sub(r'^[#$] ', '', line.strip()))
        if command.split(' ')[0] in PROGRAMS:
            yield command


class Documents(BootCase):
    def setUp(self):
        pass  # the test itself configures and starts the service

    def read(self, name):
        return self.machine.run('sh', '-c', 'zcat -f %s%s*' % (FOLDER, name)).stdout

    def prepare(self, command):
        """Prepares the state that the sentence around a command describes. Returns the command to run."""
        if '/dev/stdin' in command:
            command = 'echo admin | ' + command
        if '--pid-file /run/vm1.pid' in command:
            self.machine.run('systemd-run', '--unit=vm1', '--property=PIDFile=/run/vm1.pid', 'sh', '-c', 'echo $$$$ >/run/vm1.pid; exec sleep 600')
            wait_until(lambda: self.machine.run('cat', '/run/vm1.pid', check=False).stdout.strip(), 10, 'the guest')
        if command.startswith('cp /var/lib/nova/compute_id'):
            self.machine.write('/var/lib/nova/compute_id', self.machine.ctl_json('status')['root'] + '\n')
        return command

    def run_block(self, block):
        for command in commands(block):
            if any(re.match(pattern, command) for pattern, _ in ELSEWHERE):
                continue
            with self.subTest(command):
                done = self.machine.run('bash', '-c', 'cd /root; ' + self.prepare(command), check=False, timeout=120)
                wanted = next((codes for pattern, codes in CODES if re.match(pattern, command)), (0,))
                self.assertIn(done.returncode, wanted, '%s\n%s%s' % (command, done.stdout, done.stderr))
                self.n_run += 1

    def check_words(self, text):
        """Checks that the verb of each command within a sentence exists and has its options."""
        for words in re.findall(r'`computectl ([^`]+)`', text):
            verb, *rest = [word for word in re.sub(r'[…\[\]]', '', words).split() if word]
            if verb.startswith('-'):
                continue
            with self.subTest(words):
                shown = self.machine.run('computectl', 'help', verb).stdout
                for option in (word.partition('=')[0] for word in rest if word.startswith('--')):
                    self.assertIn(option, shown)

    def configure_by_hand(self, text):
        self.machine.write(CONFIG, text + '[agent]\nstart_jitter_sec = 0\n')
        self.machine.run('sh', '-c', 'chown root:compute-agent %s; chmod 640 %s' % (CONFIG, CONFIG))

    def test_1_readme(self):
        self.n_run = 0
        text = self.read('README.md')
        before, install = text.split('## Install\n')
        for is_block, block in blocks(install):
            if block.startswith('[DEFAULT]\nreserved_host_memory_mb'):
                self.configure_by_hand(block)
                self.machine.write(TOKEN, 'admin\n', 0o600)
            elif is_block:
                self.run_block(block)
        self.machine.wait_state('synced')
        for is_block, block in blocks(before):
            if is_block:
                self.run_block(block)
            else:
                self.check_words(block)
        self.assertGreater(self.n_run, 10)

    def test_2_guide(self):
        self.n_run = 0
        text = self.read('guide.md')
        for is_block, block in blocks(text):
            if block.startswith('[devices]\nenabled_mdev_types = nvidia-35, nvidia-36'):
                self.configure_by_hand(block + '[placement]\nauth_type = admin_token\nendpoint_override = http://127.0.0.1:8778\n')
                self.machine.run('systemctl', 'reload', UNIT)
                self.machine.run('computectl', 'sync')
            elif is_block:
                self.run_block(block)
            else:
                self.check_words(block)
        self.assertGreater(self.n_run, 18)
