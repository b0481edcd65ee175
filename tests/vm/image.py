# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes the kernel and the disk of the machine: the Debian of the boot tests with Debian's kernel, QEMU, mdevctl and a driver of mdevs.

Kernel and system are made once and cached. The disk of a test is made from them and the package under test, in some seconds: an ext4 file
system with the whole content, so that no loop device is needed.
"""

import inspect
import os
import shutil
import subprocess
from pathlib import Path

from tests.boot.rootfs import rootfs, run_logged
from tests.env.cache import cached, key_of
from tests.env.scratch import EnvError

_PACKAGES = ['linux-image-amd64', 'initramfs-tools', 'udev', 'kmod', 'qemu-guest-agent', 'qemu-system-x86', 'mdevctl']
# The initramfs has only the modules for the disk, because QEMU without KVM unpacks it slowly.
_INITRAMFS_MODULES = 'virtio_pci\nvirtio_blk\next4\n'
# Parts that these tests do not use. Without them the disk is smaller by half.
_UNUSED = ['boot', 'usr/share/doc', 'usr/share/locale', 'usr/share/iso-codes', 'var/cache/apt', 'var/lib/apt/lists']
_UNUSED_MODULES = ['sound', 'drivers/gpu', 'drivers/media', 'drivers/infiniband', 'drivers/net/wireless', 'drivers/net/ethernet',
                   'drivers/staging', 'drivers/iio', 'drivers/usb', 'drivers/scsi', 'drivers/hwmon', 'fs/btrfs', 'fs/xfs']
_DRIVER = Path(__file__).with_name('mtty-pci.c')
# The network of QEMU's user mode. It reaches only Placement (see machine.py).
_NETWORK = '[Match]\nDriver=virtio_net\n[Network]\nAddress=10.0.2.15/24\nLinkLocalAddressing=no\n'


def _in_root(root, *argv):
    return run_logged(['chroot', str(root), *argv])


def _install(root):
    """Installs the packages of the machine, without starting a service."""
    policy = root / 'usr/sbin/policy-rc.d'
    policy.write_text('#!/bin/sh\nexit 101\n')
    policy.chmod(0o755)
    initramfs = root / 'etc/initramfs-tools'
    (initramfs / 'conf.d').mkdir(parents=True)
    (initramfs / 'conf.d/modules').write_text('MODULES=list\nCOMPRESS=gzip\n')
    (initramfs / 'modules').write_text(_INITRAMFS_MODULES)
    _in_root(root, 'apt-get', '--quiet', 'update')
    _in_root(root, 'apt-get', '--quiet', '--yes', '-o', 'Dpkg::Options::=--force-confold', 'install', '--no-install-recommends', *_PACKAGES)
    policy.unlink()


def _download(root, folder, release):
    """Unpacks the headers of this kernel below folder, and returns the path of the archive with its sources."""
    depends = _in_root(root, 'apt-cache', 'depends', '--important', 'linux-headers-' + release, 'linux-source').split()
    names = ['linux-headers-' + release] + [name for name in depends if name.startswith(('linux-headers-', 'linux-kbuild-', 'linux-source-'))]
    debs = root / 'var/tmp/debs'
    debs.mkdir()
    _in_root(root, 'sh', '-c', 'cd /var/tmp/debs && apt-get --quiet -o APT::Sandbox::User=root download "$@"', 'sh', *sorted(set(names)))
    for deb in debs.iterdir():
        run_logged(['dpkg-deb', '--extract', str(deb), str(folder)])
    shutil.rmtree(debs)
    return next(folder.glob('usr/src/linux-source-*.tar.xz'))


def _build_driver(root, folder, release):
    """Builds mtty-pci.ko with the compiler of this machine. The headers have absolute paths, so a private mount shows them in /usr."""
    headers = folder / 'headers'
    sources = _download(root, headers, release)
    module = folder / 'module'
    module.mkdir()
    run_logged(['tar', '--extract', '--xz', '--file=%s' % sources, '--directory=%s' % module, '--strip-components=3', '--wildcards',
                '*/samples/vfio-mdev/mtty.c'])
    shutil.copy(_DRIVER, module)
    (module / 'Makefile').write_text('obj-m := %s.o\n' % _DRIVER.stem)
    sources.unlink()
    run_logged(['unshare', '--mount', '--propagation', 'private', 'sh', '-ec',
                'mount -t overlay overlay -o "ro,lowerdir=$1/usr:/usr" /usr; make -C "/usr/src/linux-headers-$2" M="$3" modules', 'sh',
                str(headers), release, str(module)])
    target = root / 'lib/modules' / release / 'extra'
    target.mkdir()
    shutil.copy(module / (_DRIVER.stem + '.ko'), target)
    shutil.rmtree(module)
    shutil.rmtree(headers)


def _make(folder):
    root = folder / 'root'
    run_logged(['cp', '--archive', str(rootfs()), str(root)])
    _install(root)
    release = next((root / 'lib/modules').iterdir()).name
    _build_driver(root, folder, release)
    shutil.copy(root / 'boot' / ('vmlinuz-' + release), folder / 'vmlinuz')
    shutil.copy(root / 'boot' / ('initrd.img-' + release), folder / 'initrd')
    unused = [root / name for name in _UNUSED] + [root / 'lib/modules' / release / 'kernel' / name for name in _UNUSED_MODULES]
    for path in unused:
        shutil.rmtree(path, ignore_errors=True)
    (root / 'usr/bin/qemu-system-i386').unlink()  # libvirtd starts each QEMU to learn what it can do
    for name in ('boot', 'var/cache/apt/archives/partial', 'var/lib/apt/lists/partial'):
        (root / name).mkdir(parents=True)
    _in_root(root, 'depmod', release)
    (root / 'etc/fstab').write_text('')
    (root / 'etc/hostname').write_text('machine\n')
    (root / 'etc/systemd/network/50-machine.network').write_text(_NETWORK)
    _in_root(root, 'systemctl', 'enable', 'systemd-networkd')
    _in_root(root, 'systemctl', 'mask', 'systemd-networkd-wait-online.service', 'apt-daily.timer', 'apt-daily-upgrade.timer', 'man-db.timer',
             'libvirt-guests.service')


def system():
    """Returns the cached folder with vmlinuz, initrd and root, which must only be read."""
    sources = map(inspect.getsource, (_install, _download, _build_driver, _make))
    key = key_of(rootfs().parent.name, _DRIVER.read_text(), _INITRAMFS_MODULES, _NETWORK, *_PACKAGES, *_UNUSED, *_UNUSED_MODULES, *sources)
    return cached('vm-' + key, _make)


def make_disk(package, folder):
    """Makes the disk with the installed package in folder. Returns its path."""
    upper, work, merged, disk = (folder / name for name in ('upper', 'work', 'merged', 'disk.img'))
    for path in (upper, work, merged, upper / 'var', upper / 'var/tmp'):
        path.mkdir(exist_ok=True)
    (upper / 'var/tmp').chmod(0o1777)
    shutil.copy(package, upper / 'var/tmp/package.deb')
    script = '''mount -t overlay overlay -o "lowerdir=$1,upperdir=$2,workdir=$3" "$4"
chroot "$4" dpkg --install /var/tmp/package.deb
rm "$4/var/tmp/package.deb"
mke2fs -q -t ext4 -O ^has_journal -d "$4" "$5" 2G'''
    done = subprocess.run(['unshare', '--mount', '--propagation', 'private', 'sh', '-ec', script, 'sh', system() / 'root', upper, work, merged, disk],
                          capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=600,
                          env={**os.environ, 'DEBIAN_FRONTEND': 'noninteractive', 'LC_ALL': 'C'})
    if done.returncode:
        raise EnvError('the disk of the machine: %s%s' % (done.stdout[-2000:], done.stderr[-2000:]))
    return disk
