# SPDX-License-Identifier: LGPL-2.1-or-later
"""Makes a Debian folder with systemd, D-Bus, polkit and libvirt, once with debootstrap, and caches it.

The release is that of this machine, and the mirror is that of apt. A test writes its changes to an overlay, never to the folder itself.
"""

import os
import platform
import shutil
import subprocess

from tests.env.cache import cached, key_of
from tests.env.scratch import EnvError

SUITE = platform.freedesktop_os_release()['VERSION_CODENAME']
_BASE = ['systemd', 'systemd-sysv', 'dbus', 'libpam-systemd', 'polkitd', 'iproute2', 'procps']
_PACKAGES = ['libvirt-daemon-system', 'libvirt-clients', 'libcurl4', 'libjansson4', 'libsmartcols1', 'libsqlite3-0', 'libuuid1', 'libxml2', 'libyaml-0-2',
             'man-db', 'cockpit-ws', 'cockpit-bridge', 'cockpit-system', 'sudo', 'openssh-server', 'python3-apt']


def run_logged(argv):
    """Runs a program and returns its output. Raises EnvError, with the end of the output, if it fails."""
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          stdin=subprocess.DEVNULL, check=False,
                          env={**os.environ, 'DEBIAN_FRONTEND': 'noninteractive', 'LC_ALL': 'C'})
    if done.returncode != 0:
        # The cause is at the end. ./check shows the first 60 lines of a failure.
        raise EnvError('%s: exit %d\n%s' % (' '.join(argv), done.returncode, '\n'.join(done.stdout.splitlines()[-20:])))
    return done.stdout


def _run_inside(root, *argv):
    """Runs argv in the folder, where $TMPDIR does not exist: mktemp in the scripts of packages would fail."""
    return run_logged(['chroot', str(root), 'env', '--unset=TMPDIR', *argv])


def _mirror():
    """Returns $COMPUTE_AGENT_TEST_MIRROR, or the first mirror that apt has for this release."""
    if 'COMPUTE_AGENT_TEST_MIRROR' in os.environ:
        return os.environ['COMPUTE_AGENT_TEST_MIRROR']
    ask = ['apt-get', 'indextargets', '--format', '$(REPO_URI)', 'Created-By: Packages', 'Codename: ' + SUITE]
    found = run_logged(ask)
    if not found.split():
        run_logged(['apt-get', '--quiet', 'update'])  # images have no package lists
        found = run_logged(ask)
    if not found.split():
        raise EnvError('apt knows no mirror of %s: name one in COMPUTE_AGENT_TEST_MIRROR' % SUITE)
    return found.split()[0]


def _make(folder):
    # policy-rc.d prevents services from starting during the installation. The machine id is empty, so that each boot makes a new one.
    root = folder / 'root'
    # debootstrap mounts /proc and /sys in the folder. If it is killed, these mounts end with its mount namespace.
    run_logged(['unshare', '--mount', '--propagation', 'private',
          'debootstrap', '--variant=minbase', '--include=' + ','.join(_BASE), SUITE, str(root), _mirror()])
    (root / 'usr/sbin/policy-rc.d').write_text('#!/bin/sh\nexit 101\n')
    (root / 'usr/sbin/policy-rc.d').chmod(0o755)
    _run_inside(root, 'apt-get', '--quiet', '--yes', 'install', '--no-install-recommends', *_PACKAGES)
    _run_inside(root, 'apt-get', 'clean')
    (root / 'usr/sbin/policy-rc.d').unlink()
    shutil.rmtree(root / 'var/log/journal', ignore_errors=True)
    (root / 'etc/machine-id').write_text('')
    (root / 'etc/hostname').unlink(missing_ok=True)


def rootfs():
    """Returns the path of the folder, which must only be read."""
    return cached('rootfs-' + key_of(SUITE, *_BASE, *_PACKAGES), _make) / 'root'
