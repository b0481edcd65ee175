# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs a Debian that its own systemd boots in a container, with a libvirtd over an artificial /sys
inside.

Placement runs outside. Its Unix socket is /outside/placement.sock inside. The container sees
nothing else of this machine, not even its network. All mounts are in a mount namespace that ends
with the container, and the container ends with this process.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

from tests.boot.rootfs import rootfs
from tests.env import fakesys
from tests.env.scratch import EnvError, running, wait_until
from tests.env.service import Service

UNIT = 'compute-agent.service'
ENDPOINT = 'unix:///outside/placement.sock'  # the URL of Placement
POWER_OFF = signal.SIGRTMIN + 4
_CONFIG = '/etc/compute-agent/compute-agent.conf'
_LIBVIRTD = '''[Service]
BindPaths=/fakesys:/sys /sys/fs/cgroup:/sys/fs/cgroup
Environment=SYSTEMD_DEVICE_VERIFY_SYSFS=0
'''


class AgentHost:
    """Operations of the tests on the agent of a booted machine. A subclass has run() and write()."""

    endpoint = ENDPOINT
    mdev_types = 'nvidia-35'

    def configure(self, more='', **options):
        """Writes the configuration and appends more. placement=False omits the section of
        Placement, token=False its token."""
        lines = ['[DEFAULT]', 'instances_path = /tmp', 'update_resources_interval = 2',
                 '[devices]', 'enabled_mdev_types = ' + self.mdev_types]
        if options.get('placement', True):
            lines += ['[placement]', 'auth_type = admin_token',
                      'endpoint_override = ' + self.endpoint]
            if options.get('token', True):
                lines.append('token = admin')
        self.write(_CONFIG, '\n'.join(lines) + '\n' + more)
        self.run('chown', 'root:compute-agent', _CONFIG)
        self.run('chmod', '640', _CONFIG)

    def show(self, *properties, unit=UNIT):
        """Returns properties of a unit, as systemctl shows them."""
        out = self.run('systemctl', 'show', unit, '--property=' + ','.join(properties)).stdout
        return dict(line.split('=', 1) for line in out.splitlines())

    def journal(self, *args, unit=UNIT):
        """Returns the journal entries of the unit, as dicts of fields."""
        self.run('journalctl', '--sync', check=False)
        out = self.run('journalctl', '--unit=' + unit, '--output=json', '--all', *args).stdout
        return [json.loads(line) for line in out.splitlines()]

    def journal_text(self, *args, unit=UNIT):
        self.run('journalctl', '--sync', check=False)
        return self.run('journalctl', '--no-pager', '--unit=' + unit, *args).stdout

    def ctl_json(self, *args, **kwargs):
        return json.loads(self.run('computectl', *args, '--json=short', **kwargs).stdout)

    def sync_state(self):
        done = self.run('computectl', 'status', '--json=short', check=False)
        try:
            return json.loads(done.stdout).get('sync_state')
        except ValueError:
            return None

    def wait_state(self, state, seconds=90):
        try:
            wait_until(lambda: self.sync_state() == state, seconds, 'state ' + state, step=0.1)
        except EnvError as error:
            raise EnvError('%s\n%s' % (error, self.journal_text()[-3000:])) from error

    def main_pid(self):
        """Returns the pid of the daemon inside the container, or 0 if it does not run."""
        return int(self.show('MainPID')['MainPID'])

    def wait_new_pid(self, old, seconds=60):
        """Returns the pid of the active daemon when it is not old any more."""
        def ready():
            shown = self.show('MainPID', 'ActiveState')
            return (shown['ActiveState'] == 'active' and shown['MainPID'] not in ('0', str(old))
                    and int(shown['MainPID']))
        return wait_until(ready, seconds, 'another daemon', step=0.1)


def _first_processes(pid):
    """Returns the process ids of nspawn's children and of their children. While nspawn starts, process 1 is not its child yet."""
    children = running(parent=pid)
    return children + [found for child in children for found in running(parent=child)]


class Machine(AgentHost, Service):
    """The container. start() returns when it has booted."""

    name = 'machine'

    def __init__(self, placement, scratch=None, host=None):
        super().__init__(scratch)
        self.placement = placement
        self.host = host or fakesys.demo_host()
        self.leader = None
        self.sys = fakesys.write(self.host, self.scratch.folder('sys'))
        for name in ('upper', 'work', 'root'):
            (self.folder / name).mkdir()
        self.upper = self.folder / 'upper'
        self.write_before('/etc/systemd/system/libvirtd.service.d/fakesys.conf', _LIBVIRTD)

    def write_before(self, path, text, mode=0o644):
        """Writes a file of the container before the start."""
        target = self.upper / path.lstrip('/')
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        target.chmod(mode)

    def _spawn(self):
        # The overlay is mounted in a mount namespace that ends with the container. The Debian
        # folder below stays unchanged.
        root = self.folder / 'root'
        mount = 'mount -t overlay overlay -o lowerdir="$1",upperdir="$2",workdir="$3" "$4"'
        script = mount + ' && shift 4 && exec "$@"'
        outside = os.path.dirname(self.placement.socket_path)
        return self.scratch.spawn(
            ['unshare', '--mount', '--propagation', 'private', 'sh', '-c', script, 'sh', rootfs(),
             self.upper, self.folder / 'work', root,
             'systemd-nspawn', '--quiet', '--boot', '--directory=%s' % root, '--register=no',
             '--keep-unit', '--machine=%s' % self.host.name, '--private-network',
             '--console=read-only', '--bind=%s:/fakesys' % self.sys,
             '--bind=%s:/outside' % outside], 'nspawn', self.folder)

    def answers(self):
        self.leader = next(iter(running(parent=self.child.pid)), None)
        if self.leader is None:
            return False
        state = self.run('systemctl', 'is-system-running', check=False).stdout.strip()
        return state in ('running', 'degraded')

    def inside(self, *argv, user=None):
        """Returns the argv that runs a command inside, by default as root."""
        command = ['nsenter', '-t', str(self.leader), '-a', '--', 'env', '-i', 'LC_ALL=C.UTF-8',
                   'PATH=/usr/sbin:/usr/bin:/sbin:/bin', 'TERM=dumb', 'HOME=/root',
                   'DEBIAN_FRONTEND=noninteractive']
        if user:
            command += ['runuser', '--user', user, '--']
        return [*command, *map(str, argv)]

    def run(self, *argv, check=True, user=None, timeout=60, **kwargs):
        """Runs a command inside. Returns the CompletedProcess."""
        done = subprocess.run(self.inside(*argv, user=user), capture_output=True, text=True,
                              timeout=timeout, check=False,
                              stdin=None if 'input' in kwargs else subprocess.DEVNULL, **kwargs)
        if check and done.returncode != 0:
            raise EnvError('%s: exit %d\n%s%s' % (' '.join(map(str, argv)), done.returncode,
                                                  done.stdout[-3000:], done.stderr[-3000:]))
        return done

    def path(self, path):
        """Returns the path under which this process sees a file of the container."""
        return Path('/proc/%d/root' % self.leader) / path.lstrip('/')

    def write(self, path, text, mode=0o644):
        target = self.path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        target.chmod(mode)

    def copy_in(self, source, path):
        shutil.copyfile(source, self.path(path))

    def crash(self):
        """Ends all processes at once, also during a boot. The files stay as they are. start() can follow."""
        self.leader = None
        processes = _first_processes(self.child.pid)
        for pid in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        super().kill()
        wait_until(lambda: not set(processes) & set(running()), 30, 'the end of the container')

    def kill(self):
        leader, self.leader = self.leader, None
        if self.child and leader:
            try:
                os.kill(leader, POWER_OFF)
                wait_until(lambda: not self.child.alive(), 20, 'the container to power off')
            except (OSError, EnvError):
                # The leader survives nspawn. It is process 1 of the container, so all other processes end with it.
                with contextlib.suppress(ProcessLookupError):
                    os.kill(leader, signal.SIGKILL)
        super().kill()
        # The leader is not in the group, and ends after all other processes of the container.
        if leader:
            wait_until(lambda: leader not in running(), 30, 'the end of the container')
