# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs a whole machine in QEMU, without KVM: Debian's kernel, the stock libvirtd and the packaged agent.

The hardware: four NUMA nodes with one CPU each, an IOMMU, an NVMe controller with SR-IOV close to node 2, and a card with mdevs
(mtty-pci.c). Placement runs outside. The machine reaches it at 10.0.2.100 and nothing else: QEMU forwards each connection to a process of
tests/vm/forward. Commands run through QEMU's guest agent. All of it ends with this process.
"""

import base64
import contextlib
import json
import os
import random
import socket
import subprocess
import time
from pathlib import Path

from tests.boot.machine import AgentHost
from tests.env.scratch import EnvError, wait_until
from tests.env.service import Service
from tests.vm.image import make_disk, system

NODES = 4
NODE_MIB = 512
NVME = '0000:41:00.0'  # its bus is below the bridge 0x40
VFS_MAX = 4
NVME_NODE = 2
CARD = '0000:00:10.0'  # the parent of mdevs
_FORWARD = Path(__file__).with_name('forward')
_PORT = 8778
# loglevel: the serial console is slow. no_timer_check: on a busy machine the kernel's test of its timer fails, because QEMU does not run in time.
_KERNEL = 'root=/dev/vda rw console=ttyS0 intel_iommu=on net.ifnames=0 mitigations=off no_timer_check panic=-1 loglevel=4'
_ENVIRONMENT = ['LC_ALL=C.UTF-8', 'PATH=/usr/sbin:/usr/bin:/sbin:/bin', 'TERM=dumb', 'HOME=/root']


class GuestAgent:
    """A client of qemu-ga. Each call makes a connection, so a call that failed cannot disturb the next one."""

    def __init__(self, path):
        self.path = str(path)

    def call(self, command, timeout=60, **arguments):
        """Returns the result of a command. Raises EnvError if the machine does not answer in time, for example while it boots."""
        try:
            with socket.socket(socket.AF_UNIX) as sock:
                sock.settimeout(timeout)
                sock.connect(self.path)
                with sock.makefile('rb') as answers:
                    self._synchronize(sock, answers)
                    sock.sendall(json.dumps({'execute': command, 'arguments': arguments}).encode() + b'\n')
                    answer = json.loads(answers.readline() or '{}')
        except OSError as error:
            raise EnvError('qemu-ga: %s: %s' % (command, error)) from error
        if 'return' not in answer:
            raise EnvError('qemu-ga: %s: %s' % (command, answer))
        return answer['return']

    @staticmethod
    def _synchronize(sock, answers):
        # The answers to earlier calls end at the byte 0xff. The agent sends it before the answer with this number.
        number = random.getrandbits(31)
        sock.sendall(b'\xff' + json.dumps({'execute': 'guest-sync-delimited', 'arguments': {'id': number}}).encode() + b'\n')
        while True:
            line = answers.readline()
            if not line:
                raise EnvError('qemu-ga: the connection ended')
            with contextlib.suppress(ValueError):
                if json.loads(line.rpartition(b'\xff')[2]) == {'return': number}:
                    return


class Vm(AgentHost, Service):
    """The machine. start() returns when it has booted."""

    name = 'vm'
    patience = 900  # a boot takes 40 s on two idle cores
    mdev_types = 'mtty-1'
    endpoint = 'http://10.0.2.100:%d' % _PORT

    def __init__(self, placement, package, scratch=None):
        super().__init__(scratch)
        self.placement = placement
        self.disk = make_disk(package, self.folder)
        self.agent = GuestAgent(self.folder / 'agent.sock')

    def _spawn(self):
        cache = system()
        argv = ['qemu-system-x86_64', '-nodefaults', '-no-user-config', '-display', 'none', '-machine', 'q35,accel=tcg', '-cpu', 'Westmere',
                '-smp', NODES, '-m', NODES * NODE_MIB, '-kernel', cache / 'vmlinuz', '-initrd', cache / 'initrd', '-append', _KERNEL,
                '-chardev', 'file,id=console,path=%s' % (self.folder / 'console.log'), '-serial', 'chardev:console',
                '-drive', 'id=disk,if=none,format=raw,cache=unsafe,file=%s' % self.disk]
        for node in range(NODES):
            argv += ['-object', 'memory-backend-ram,id=memory%d,size=%dM' % (node, NODE_MIB),
                     '-numa', 'node,nodeid=%d,cpus=%d,memdev=memory%d' % (node, node, node)]
        argv += ['-chardev', 'socket,id=agent,server=on,wait=off,path=%s' % self.agent.path,
                 '-object', 'rng-random,id=random,filename=/dev/urandom',
                 '-netdev', 'user,id=network,restrict=on,guestfwd=tcp:10.0.2.100:%d-cmd:%s %d' % (_PORT, _FORWARD, self.placement.port)]
        devices = ['intel-iommu', 'virtio-blk-pci,drive=disk', 'virtio-rng-pci,rng=random', 'virtio-net-pci,netdev=network,romfile=',
                   'virtio-serial-pci,id=serial', 'virtserialport,bus=serial.0,chardev=agent,name=org.qemu.guest_agent.0', 'edu,bus=pcie.0,addr=0x10',
                   'pxb-pcie,id=far,bus=pcie.0,bus_nr=0x40,numa_node=%d' % NVME_NODE,
                   'pcie-root-port,id=below,bus=far,chassis=1,slot=1,mem-reserve=8M', 'nvme-subsys,id=subsystem,nqn=machine',
                   'nvme,serial=machine,subsys=subsystem,bus=below,max_ioqpairs=10,msix_qsize=11,sriov_max_vfs=%d,sriov_vq_flexible=%d,'
                   'sriov_vi_flexible=%d' % (VFS_MAX, 2 * VFS_MAX, VFS_MAX)]
        for device in devices:
            argv += ['-device', device]
        return self.scratch.spawn(argv, 'qemu', self.folder)

    def answers(self):
        if self.agent.call('guest-ping', timeout=5) is None:
            return False
        state = self.run('systemctl', 'is-system-running', check=False).stdout.strip()
        return state in ('running', 'degraded')

    def wait_ready(self):
        try:
            super().wait_ready()
        except EnvError as error:
            raise EnvError('%s\n%s' % (error, self.console()[-2000:])) from error

    def cpu_seconds(self):
        """Returns the time for which QEMU has computed. On idle cores a run takes about two thirds of it, because it has four threads."""
        fields = Path('/proc/%d/stat' % self.child.pid).read_text().rpartition(')')[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')

    def console(self):
        with contextlib.suppress(OSError):
            return (self.folder / 'console.log').read_text(errors='replace')
        return ''

    def run(self, *argv, check=True, user=None, timeout=120, **options):
        """Runs a command in the machine, by default as root. Returns the CompletedProcess. The option input is its standard input."""
        command = [*(['runuser', '--user', user, '--'] if user else []), *map(str, argv)]
        stdin = {'input-data': base64.b64encode(options['input'].encode()).decode()} if 'input' in options else {}
        pid = self.agent.call('guest-exec', path='/usr/bin/env', arg=['-i', *_ENVIRONMENT, *command], **{'capture-output': True}, **stdin)['pid']
        # Each question costs the machine time that the command needs.
        end, pause = time.monotonic() + timeout, 0.05
        status = self.agent.call('guest-exec-status', pid=pid)
        while not status['exited']:
            if time.monotonic() >= end:
                raise EnvError('%s: no end after %d s' % (' '.join(command), timeout))
            time.sleep(pause)
            pause = min(2 * pause, 1)
            status = self.agent.call('guest-exec-status', pid=pid)
        out, err = (base64.b64decode(status.get(name, '')).decode() for name in ('out-data', 'err-data'))
        done = subprocess.CompletedProcess(command, status.get('exitcode', -status.get('signal', 1)), out, err)
        if check and done.returncode:
            raise EnvError('%s: exit %d\n%s%s' % (' '.join(command), done.returncode, out[-3000:], err[-3000:]))
        return done

    def wait_state(self, state, seconds=600):
        try:
            wait_until(lambda: self.sync_state() == state, seconds, 'state ' + state, step=1)
        except EnvError as error:
            raise EnvError('%s\n%s' % (error, self.journal_text()[-3000:])) from error

    def write(self, path, text, mode=0o644):
        self.run('sh', '-ec', 'mkdir -p "$(dirname "$1")"; cat >"$1"; chmod "$2" "$1"', 'sh', path, '%o' % mode, input=text)

    def write_kernel(self, path, value):
        """Writes a value to a file of the kernel, whose mode and content it does not change."""
        self.run('sh', '-ec', 'echo "$2" >"$1"', 'sh', path, value)

    def read(self, path):
        return self.run('cat', path).stdout

    def exists(self, path):
        return self.run('test', '-e', path, check=False).returncode == 0

    def boot_id(self):
        return self.read('/proc/sys/kernel/random/boot_id')

    def reboot(self):
        """Boots the machine again, in the same way as an operator. Returns when it has booted."""
        before = self.boot_id()
        self.run('systemctl', 'reboot', check=False)

        def rebooted():
            with contextlib.suppress(EnvError):
                return self.boot_id() != before
            return False
        wait_until(rebooted, self.patience, 'another boot of the machine', step=1)
        self.wait_ready()
