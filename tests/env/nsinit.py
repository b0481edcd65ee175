# SPDX-License-Identifier: LGPL-2.1-or-later
"""The first process of a private host. It makes the mounts of the host and then reaps orphans until it is
killed.

libvirtd.py starts it inside new mount, network, UTS and pid namespaces. Its argument is a JSON object: {"name":
host name, "binds": [[source, target], ...], "hugetlbfs": folder or null, "ready": file, "spare": folder for
covered mounts}. The kernel ends all processes inside when this process ends, also a QEMU that outlived its
libvirtd.
"""

import ctypes
import fcntl
import json
import os
import signal
import socket
import struct
import sys

MS_BIND = 0x1000
MS_REC = 0x4000
SIOCSIFFLAGS = 0x8914
IFF_UP = 1
_libc = ctypes.CDLL(None, use_errno=True)


def mount(source, target, kind, flags):
    if _libc.mount(source.encode(), target.encode(), kind, flags, None):
        number = ctypes.get_errno()
        raise OSError(number, '%s, mounting %s' % (os.strerror(number), target))


def make_target(target, spare):
    """Makes a folder that this machine lacks. It is visible only in this namespace.

    An empty file system covers the parent of the folder. It has links to all entries of the parent.
    """
    parent = os.path.dirname(target)
    real = spare + parent
    if not os.path.isdir(real):
        os.makedirs(real)
        mount(parent, real, None, MS_BIND | MS_REC)
        mount('tmpfs', parent, b'tmpfs', 0)
        for name in os.listdir(real):
            os.symlink(os.path.join(real, name), os.path.join(parent, name))
    os.mkdir(target)


def loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, SIOCSIFFLAGS, struct.pack('16sH14x', b'lo', IFF_UP))


def main():
    order = json.loads(sys.argv[1])
    for source, target in order['binds']:
        if not os.path.exists(target):
            make_target(target, order['spare'])
        mount(source, target, None, MS_BIND)
    mount('proc', '/proc', b'proc', 0)
    if order['hugetlbfs']:
        mount('none', order['hugetlbfs'], b'hugetlbfs', 0)
    socket.sethostname(order['name'])
    loopback_up()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    os.close(os.open(order['ready'], os.O_CREAT | os.O_WRONLY, 0o600))
    while True:
        signal.pause()


if __name__ == '__main__':
    main()
