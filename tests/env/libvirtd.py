# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs a real libvirtd over an artificial /sys, in its own namespaces.

It needs root and the right to make mount, network, UTS and pid namespaces. Call mount_namespaces_allowed() first. Without this
right use testdriver.testdriver_xml().

If libvirt is modular (virtqemud is installed instead of libvirtd), virtqemud replaces libvirtd, and each other driver is a
separate daemon.
"""

import contextlib
import functools
import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

from tests.env import fakesys, udev
from tests.env.cache import cached, key_of
from tests.env.hosts import nodedev_name
from tests.env.scratch import EnvError, Scratch, running, wait_until
from tests.env.service import Service
from tests.env.shim import build_shim
from tests.env.testdriver import testdriver_xml

__all__ = ['Libvirtd', 'address_xml', 'guest_xml', 'hostdev_xml', 'mount_namespaces_allowed', 'testdriver_xml']

_INIT = Path(__file__).with_name('nsinit.py')
_UNSHARE = ['unshare', '-m', '-n', '-u', '-p', '-f', '--kill-child', '--propagation', 'private']
_FOLDERS = ('etc/nwfilter', 'etc/qemu/networks/autostart', 'etc/hooks', 'etc/secrets',
            'run/libvirt', 'lib', 'cache', 'log', 'sock', 'sys')
_TARGETS = {'etc': '/etc/libvirt', 'run': '/run', 'sock': '/run/libvirt', 'lib': '/var/lib/libvirt',
            'cache': '/var/cache/libvirt', 'log': '/var/log/libvirt', 'sys': '/sys',
            'passwd': '/etc/passwd', 'group': '/etc/group'}
# Accounts that libvirtd looks up when it starts, independent of qemu.conf. Another package of Debian creates them.
_ACCOUNTS = {'passwd': 'libvirt-qemu:x:64055:64055::/nonexistent:/usr/sbin/nologin\n',
             'group': 'libvirt-qemu:x:64055:\n'}
_DAEMON_CONFIG = '''auth_unix_rw = "none"
auth_unix_ro = "none"
host_uuid = "%s"
log_filters = "3:util 4:util.netdev"
'''
_QEMU_CONFIG = '''stdio_handler = "file"
security_driver = "none"
user = "root"
group = "root"
dynamic_ownership = 0
cgroup_controllers = [ ]
namespaces = [ ]
seccomp_sandbox = 0
'''
_HUGETLBFS = '/run/hugepages'
_GUEST = '''<domain type='qemu'>
  <name>%s</name>%s
  <memory unit='MiB'>%d</memory>
  <vcpu>%d</vcpu>
  <os><type arch='x86_64' machine='pc'>hvm</type></os>
  %s
</domain>
'''


def find_daemon(name):
    """Returns the path of a daemon, or None."""
    return shutil.which(name, path=os.environ.get('PATH', '') + ':/usr/sbin:/sbin')


MODULAR = not find_daemon('libvirtd') and bool(find_daemon('virtqemud'))
_DAEMON = 'virtqemud' if MODULAR else 'libvirtd'
_OTHERS = ('virtnodedevd', 'virtstoraged', 'virtnetworkd', 'virtsecretd', 'virtnwfilterd') if MODULAR else ()


def mount_namespaces_allowed():
    """Returns whether this user can make the namespaces and mounts that Libvirtd needs."""
    done = subprocess.run([*_UNSHARE, 'sh', '-c', 'mount --bind / / && mount -t proc proc /proc'],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          stdin=subprocess.DEVNULL, timeout=30, check=False)
    return done.returncode == 0


def _binary(name):
    path = find_daemon(name)
    if not path:
        raise EnvError('%s is not installed' % name)
    return Path(path)


def _probe_qemu(folder):
    """Fills folder with libvirtd's cache of the capabilities of each QEMU binary. This takes some seconds."""
    with Scratch() as scratch, Libvirtd(fakesys.simple_host(), scratch, warm=False) as daemon:
        daemon.virsh('domcapabilities', '--virttype', 'qemu', timeout=120)
        daemon.virsh('capabilities', timeout=120)
        daemon.stop()
        shutil.copytree(daemon.folder / 'cache', folder / 'cache')


@functools.lru_cache(maxsize=None)
def warm_cache():
    """Returns a filled cache folder for libvirtd. The caller copies it."""
    key = key_of(_binary('qemu-system-x86_64'), _binary(_DAEMON), os.uname().release,
                 str(os.access('/dev/kvm', os.R_OK | os.W_OK)))
    return cached('libvirt-' + key, _probe_qemu) / 'cache'


def address_xml(device):
    """Returns the address element of an mdev (its uuid) or a PCI device (its address) in a domain."""
    if len(device) == 36:
        return "<address uuid='%s'/>" % device
    return "<address domain='0x%s' bus='0x%s' slot='0x%s' function='0x%s'/>" % tuple(re.split('[:.]', device))


def hostdev_xml(device):
    """Returns the hostdev element of an mdev or a PCI device. On this machine the guest can be defined but not started."""
    kind = "type='mdev' model='vfio-pci'" if len(device) == 36 else "type='pci' managed='yes'"
    return "<hostdev mode='subsystem' %s><source>%s</source></hostdev>" % (kind, address_xml(device))


def guest_xml(name, memory_mib=32, vcpus=1, extra='', uuid=None, devices=()):
    """Returns the XML of a tiny guest without a disk, with these devices. extra: XML inside <domain>."""
    if devices:
        extra += '<devices>%s</devices>' % ''.join(map(hostdev_xml, devices))
    uuid = '<uuid>%s</uuid>' % uuid if uuid else ''
    return _GUEST % (name, uuid, memory_mib, vcpus, extra)


class Libvirtd(Service):
    """A libvirtd that sees host as its hardware. sys is the folder that it sees as /sys.

    stop(), kill() and restart() affect only the daemon. Guests and namespaces stay, as on a real host. close() ends everything.
    shared: a folder that several hosts share; with it guests can start with all devices of the artificial host
    (tests/shims/host.c). To change the hardware, edit sys with the functions of fakesys, and then call announce().
    """

    name = 'libvirtd'
    daemon = _DAEMON

    def __init__(self, host, scratch=None, warm=True, shared=None):
        super().__init__(scratch)
        self.host = host
        self._targets, self._preload, self._hugetlbfs = dict(_TARGETS), {}, None
        if shared:
            self._preload = {'LD_PRELOAD': str(build_shim('host', self.folder / 'host-shim.so')),
                             'HOST_SHIM_SHARED': str(shared)}
            (self.folder / 'vfio').mkdir()
            (self.folder / 'vfio/vfio').touch()
            self._targets['vfio'] = '/dev/vfio'
            # libvirt 10 searches this folder for a vendor's driver of a card.
            modules = self.folder / 'modules' / os.uname().release
            modules.mkdir(parents=True)
            (modules / 'modules.alias').touch()
            self._targets['modules'] = '/usr/lib/modules'
            self._hugetlbfs = _HUGETLBFS
        for name in _FOLDERS:
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.sys = fakesys.write(host, self.folder / 'sys')
        self.socket_path = str(self.folder / 'sock' / ('%s-sock' % ('virtqemud' if MODULAR else 'libvirt')))
        if len(self.socket_path) > 90:
            raise EnvError('too long for a socket: %s' % self.socket_path)
        etc = self.folder / 'etc'
        for daemon in (_DAEMON, *_OTHERS):
            (etc / (daemon + '.conf')).write_text(_DAEMON_CONFIG % host.uuid)
        (etc / 'qemu.conf').write_text(_QEMU_CONFIG)
        if self._hugetlbfs:
            (self.folder / 'run' / Path(_HUGETLBFS).name).mkdir()
            with open(etc / 'qemu.conf', 'a', encoding='utf-8') as config:
                config.write('hugetlbfs_mount = "%s"\n' % _HUGETLBFS)
        for name, account in _ACCOUNTS.items():
            present = Path('/etc', name).read_text(encoding='utf-8')
            more = account if '\nlibvirt-qemu:' not in present else ''
            (self.folder / name).write_text(present + more, encoding='utf-8')
        if warm:
            shutil.copytree(warm_cache(), self.folder / 'cache', dirs_exist_ok=True)
        self._namespace = None
        self.init_pid = None
        self.others = {}

    @property
    def uri(self):
        return 'qemu:///system?socket=' + self.socket_path

    @property
    def uri_readonly(self):
        return self.uri + '-ro'

    def enter(self, *namespaces):
        """Returns the argv prefix that runs a command in the given namespaces of this host, by default in '-m', which has its
        /sys."""
        return ['nsenter', '-t', str(self.init_pid), *(namespaces or ['-m']), '--']

    def _make_namespace(self):
        # The first process inside reports its mounts with the file "ready". It is the only child of unshare.
        if self._namespace and self._namespace.alive():
            return
        ready = self.folder / 'ready'
        order = {'name': self.host.name, 'hugetlbfs': self._hugetlbfs, 'ready': str(ready), 'spare': str(self.folder / 'spare'),
                 'binds': [[str(self.folder / name), path] for name, path in self._targets.items()]}
        self._namespace = self.scratch.spawn(
            [*_UNSHARE, '/usr/bin/python3', '-I', '-S', _INIT, json.dumps(order)],
            'namespace', self.folder)
        self._namespace.wait_ready(ready.exists, 10, 'the namespaces')
        self.init_pid, = running(parent=self._namespace.pid)

    def _spawn(self):
        self._make_namespace()
        for name in _OTHERS:
            self.start_other(name)
        return self._spawn_daemon(_DAEMON, self.socket_path)

    def _spawn_daemon(self, name, socket_path):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(socket_path)
        env = {**os.environ, **self._preload, 'SYSTEMD_DEVICE_VERIFY_SYSFS': '0', 'LC_ALL': 'C'}
        return self.scratch.spawn(
            [*self.enter('-m', '-n', '-u', '-p'), _binary(name), '-f',
             '/etc/libvirt/%s.conf' % name, '-p', '/run/%s.pid' % name],
            name, self.folder, env=env, wrapper=True)

    def start_other(self, name):
        """Starts the daemon of one driver and stores it in self.others. Only for a modular libvirt."""
        if name in self.others and self.others[name].alive():
            return
        path = str(self.folder / 'sock' / (name + '-sock'))
        self.others[name] = self._spawn_daemon(name, path)
        self.others[name].wait_ready(lambda: os.path.exists(path), 30, 'the socket of ' + name)

    def answers(self):
        """Returns whether libvirtd answers and has listed all of its devices."""
        wanted = {nodedev_name(link.name) for link in (self.sys / 'bus/pci/devices').iterdir()}
        return os.path.exists(self.socket_path) and wanted <= set(self.nodedevs())

    def virsh(self, *args, timeout=30, check=True):
        """Runs virsh on this daemon. Returns its output. Raises EnvError if it fails and check is true."""
        done = subprocess.run(['virsh', '-c', self.uri, '-q', *map(str, args)], timeout=timeout,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              env={**os.environ, 'LC_ALL': 'C'}, check=False)
        if check and done.returncode:
            raise EnvError('virsh %s: %s' % (' '.join(map(str, args)), done.stderr.strip()))
        return done.stdout

    def nodedevs(self, cap=None):
        """Returns the names of the node devices, of all or of one capability."""
        args = ['--cap', cap] if cap else []
        return self.virsh('nodedev-list', *args).split()

    def define(self, xml):
        """Defines a domain. It need not be able to start."""
        path = self.folder / 'define.xml'
        path.write_text(xml)
        self.virsh('define', path)

    def start_guest(self, name='guest', **kwargs):
        """Defines and starts a tiny guest with the XML of guest_xml(). Returns its UUID."""
        self.define(guest_xml(name, **kwargs))
        self.virsh('start', name, timeout=90)
        return self.virsh('domuuid', name).strip()

    def destroy_guests(self):
        """Destroys each running guest. The definitions stay."""
        for name in self.virsh('list', '--name').split():
            self.virsh('destroy', name)

    def delete_guest(self, name):
        """Destroys and undefines a guest."""
        self.virsh('destroy', name)
        self.virsh('undefine', name)

    def delete_guests(self):
        """Destroys each running guest and undefines all."""
        self.destroy_guests()
        for name in self.virsh('list', '--all', '--name').split():
            self.virsh('undefine', name)

    def processes(self):
        """Returns the pids of all processes inside (daemon, QEMUs, helpers), as numbers of the outer pid namespace."""
        if not (self._namespace and self._namespace.alive()):
            return []
        inside = os.readlink('/proc/%d/ns/pid' % self.init_pid)
        return [pid for pid in running() if _link('/proc/%d/ns/pid' % pid) == inside]

    def announce(self, action, address, wait=True):
        """Sends libvirtd an event of udev: a PCI device or mdev was 'add'ed or 'remove'd.

        address: a PCI address or the UUID of an mdev. With wait it returns when libvirtd shows the change.
        """
        subsystem = 'mdev' if len(address) == 36 else 'pci'
        properties = {'ACTION': action, 'SUBSYSTEM': subsystem, 'SEQNUM': time.monotonic_ns(),
                      'DEVPATH': self._devpath(subsystem, address)}
        device = {dev.address: dev for dev in self.host.devices()}.get(address)
        if device:
            properties.update(fakesys.uevent(device))
        udev.multicast(self.init_pid, properties)
        if wait:
            there = action == 'add'
            wait_until(lambda: self._listed(subsystem, address) == there, 5,
                       'libvirtd to %s %s' % (action, address))

    def _devpath(self, subsystem, address):
        # The device can be unplugged already. Then the path of a PCI device follows from its address, and libvirt still has
        # that of an mdev.
        link = self.sys / 'bus' / subsystem / 'devices' / address
        if link.exists():
            return '/' + str(link.resolve().relative_to(self.sys.resolve()))
        if subsystem == 'pci':
            path = fakesys.device_path(self.sys, address)
            return '/' + str(path.relative_to(self.sys))
        names = [name for name in self.nodedevs('mdev') if _mdev_uuid(name) == address]
        path = self.virsh('nodedev-dumpxml', names[0]).split('<path>')[1].split('</path>')[0]
        return path[len('/sys'):]

    def _listed(self, subsystem, address):
        if subsystem == 'pci':
            return nodedev_name(address) in self.nodedevs('pci')
        return address in [_mdev_uuid(name) for name in self.nodedevs('mdev')]

    def remove_device(self, address):
        """Unplugs a PCI device with its mdevs, and announces it."""
        gone = [uuid for uuid, parent in self._mdevs() if parent == address]
        paths = [(uuid, self._devpath('mdev', uuid)) for uuid in gone]
        fakesys.remove_device(self.sys, address)
        for uuid, path in paths:
            udev.multicast(self.init_pid, {'ACTION': 'remove', 'SUBSYSTEM': 'mdev',
                                           'SEQNUM': time.monotonic_ns(), 'DEVPATH': path})
        self.announce('remove', address)

    def _mdevs(self):
        links = (self.sys / 'bus/mdev/devices').iterdir()
        return [(link.name, link.resolve().parent.name) for link in links]

    def plug_device(self, device):
        """Plugs in a device, also one that was unplugged before, and announces it."""
        self.host.gpus = [dev for dev in self.host.gpus if dev.address != device.address]
        self.host.pci = [dev for dev in self.host.pci if dev.address != device.address]
        kind = self.host.gpus if isinstance(device, fakesys.Gpu) else self.host.pci
        kind.append(device)
        fakesys.plug_device(self.sys, device)
        self.announce('add', device.address)
        for mdev_type in getattr(device, 'types', {}).values():
            for uuid in mdev_type.existing:
                self.announce('add', uuid)

    def create_mdev(self, address, type_id, uuid):
        """Creates an mdev and announces it."""
        fakesys.create_mdev(self.sys, address, type_id, uuid)
        self.announce('add', uuid)

    def remove_mdev(self, uuid):
        """Removes an mdev and announces it. Returns when libvirtd does not list it any more."""
        path = self._devpath('mdev', uuid)
        fakesys.remove_mdev(self.sys, uuid)
        udev.multicast(self.init_pid, {'ACTION': 'remove', 'SUBSYSTEM': 'mdev',
                                       'SEQNUM': time.monotonic_ns(), 'DEVPATH': path})
        wait_until(lambda: not self._listed('mdev', uuid), 5, 'libvirtd to forget ' + uuid)

    def close(self):
        """Ends the daemon, all guests and the namespaces."""
        try:
            if self.child:
                self.child.kill()
                self.child = None
            for child in self.others.values():
                child.kill()
        finally:
            if self._namespace:
                self._namespace.kill()
                self._namespace = None
            super().close()


def _mdev_uuid(name):
    """Returns the UUID in libvirt's name of an mdev. The name is mdev_UUID_PARENT, with _ for every -."""
    return name[len('mdev_'):][:36].replace('_', '-')


def _link(path):
    with contextlib.suppress(OSError):
        return os.readlink(path)
    return None
