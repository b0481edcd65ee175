# SPDX-License-Identifier: LGPL-2.1-or-later
"""Forks servers of Placement from a process that has loaded it, because loading takes most of a
start.

The first start of a server starts this process. All servers of the test process use it, and it ends
with the test process.
"""

import contextlib
import json
import os
import select
import socket
import threading
from pathlib import Path

_PROGRAM = Path(__file__).parent / 'wsgi' / 'preloaded.py'


class _Forked:
    """The subset of Popen that Child needs, for a process that is not a child of this one."""

    def __init__(self, pid):
        self.pid = pid
        try:
            self._pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            self._pidfd = None

    def poll(self):
        """Returns None while the process runs, then 0, because its exit code is not known here."""
        if self._pidfd is not None and select.select([self._pidfd], [], [], 0)[0]:
            self._close()
        return None if self._pidfd is not None else 0

    def _close(self):
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None

    __del__ = _close


class Preloaded:
    """The process that has loaded Placement. popen: _Spawner.popen, which starts it."""

    def __init__(self, popen):
        self._popen = popen
        self._lock = threading.Lock()
        self._process = None
        self._socket = None

    def popen(self, argv, stdout, env, cwd, **_):
        """Forks a server. If argv[0] is not 'gunicorn', the other arguments are those of
        placement_app.py."""
        request = json.dumps({'argv': argv, 'env': env, 'cwd': str(cwd)}).encode()
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._start()
            socket.send_fds(self._socket, [request], [stdout.fileno()])
            return _Forked(int(self._socket.recv(32)))

    def _start(self):
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = self._popen(['/usr/bin/python3', '-B', str(_PROGRAM)], stdin=theirs,
                                        start_new_session=True)

    def end(self):
        """Ends the process and the servers that it forked. The next popen() starts another one."""
        with self._lock, contextlib.suppress(AttributeError):
            self._process.kill()
            self._process.wait()
            self._socket.close()
            self._process = None
