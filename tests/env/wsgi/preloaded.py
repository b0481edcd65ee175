# SPDX-License-Identifier: LGPL-2.1-or-later
"""A process that has loaded Placement and forks servers of it: each starts in no time then.

Run by tests/env/preloaded.py. Standard input is a socket of packets: a request is JSON {argv, env,
cwd} with the descriptor that is to be standard output and error; its answer is the server's pid.
It ends when the socket does, or with its parent.
"""

import ctypes
import functools
import json
import os
import signal
import socket
import sys

import gunicorn.app.wsgiapp
import gunicorn.workers.gthread  # loaded for those that are forked
import placement_app

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent(parent):
    """Let this process, just forked by parent, be killed as soon as parent ends."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def become_server(request, output, parent):
    """Turn this process, just forked, into what argv says; returns when the server ends."""
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
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps them
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
