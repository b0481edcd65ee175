# SPDX-License-Identifier: LGPL-2.1-or-later
"""A process that has loaded Placement and forks servers, which start fast.

tests/env/preloaded.py runs it. Standard input is a socket of packets. A request is JSON {argv, env,
cwd} with a descriptor for standard output and error. Its answer is the pid of the server. The
process ends when the socket is closed, or with its parent.
"""

import ctypes
import functools
import json
import os
import signal
import socket
import sys

import gunicorn.app.wsgiapp
import gunicorn.workers.gthread  # loaded here for the forked processes
import placement_app

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent(parent):
    """Makes this process, which parent just forked, die with parent."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def become_server(request, output, parent):
    """Turns this process, which was just forked, into the server of argv. Returns when the server
    ends."""
    die_with_parent(parent)
    os.register_at_fork(after_in_child=functools.partial(die_with_parent, os.getpid()))
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDONLY)
    for number, source in ((0, null), (1, output), (2, output)):
        os.dup2(source, number)
    os.closerange(3, 256)
    os.environ.clear()
    os.environ.update(request['env'])
    os.chdir(request['cwd'])
    sys.argv = request['argv']
    if sys.argv[0] == 'gunicorn':
        gunicorn.app.wsgiapp.run()
    else:
        placement_app.main()


def main():
    sock = socket.socket(fileno=0)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps the servers
    parent = os.getpid()
    while True:
        packet, descriptors, _, _ = socket.recv_fds(sock, 1 << 18, 1)
        if not packet:
            return
        pid = os.fork()
        if pid == 0:
            become_server(json.loads(packet), descriptors[0], parent)
            return
        os.close(descriptors[0])
        sock.send(b'%d' % pid)


if __name__ == '__main__':
    main()
