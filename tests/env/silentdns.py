# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs a program whose name servers receive each question and never answer.

    silentdns.py FOLDER PROGRAM [ARGUMENT...]

The program gets its own network and mount namespaces, which need root. They have a loopback with three name servers, two
search domains, and no other source of names. The program inherits the sockets of the servers, and no process reads them.
"""

import ctypes
import os
import socket
import sys
from pathlib import Path

from tests.env.nsinit import MS_BIND, MS_REC, loopback_up, mount

SERVERS = ('127.0.53.1', '127.0.53.2', '127.0.53.3')
FILES = {
    'resolv.conf': ''.join('nameserver %s\n' % server for server in SERVERS) + 'search one.test two.test\n',
    'nsswitch.conf': 'hosts: files dns\n',
    'hosts': '127.0.0.1 localhost %s\n' % socket.gethostname(),
}
_CLONE_NEWNS = 0x20000
_CLONE_NEWNET = 0x40000000
_MS_PRIVATE = 1 << 18


def command(folder):
    """Returns the argv prefix that runs a command there. folder: a folder for its files."""
    return [sys.executable, '-c', 'import sys; sys.path.insert(0, %r); from tests.env import silentdns; silentdns.main()'
            % str(Path(__file__).resolve().parents[2]), str(folder)]


def main():
    folder, argv = Path(sys.argv[1]), sys.argv[2:]
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNS | _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), 'unshare')
    loopback_up()
    mount('none', '/', None, MS_REC | _MS_PRIVATE)
    for name, text in FILES.items():
        (folder / name).write_text(text)
        mount(str(folder / name), os.path.realpath('/etc/' + name), None, MS_BIND)
    for server in SERVERS:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.bind((server, 53))
        sock.set_inheritable(True)
        sock.detach()
    os.execvp(argv[0], argv)
