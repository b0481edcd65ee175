# SPDX-License-Identifier: LGPL-2.1-or-later
"""Servers of Placement forked from a process that has loaded it: loading takes most of a start.

That process is started with the first server, once for all of this process, and ends with it.
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
    """What Child wants of a Popen, for a process that is not our child."""

    def __init__(self, pid):
        self.pid = pid
        try:
            self._pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            self._pidfd = None

    def poll(self):
        """None while it runs, then 0: its exit code is not known here."""
        if self._pidfd is not None and select.select([self._pidfd], [], [], 0)[0]:
            self._close()
        return None if self._pidfd is not None else 0

    def _close(self):
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None

    __del__ = _close


class Preloaded:
    """The loaded process. popen: as _Spawner.popen, which starts it."""

    def __init__(self, popen):
        self._popen = popen
        self._lock = threading.Lock()
        self._process = None
        self._socket = None

    def popen(self, argv, stdout, env, cwd, **_):
        """Fork a server; argv[0] is 'gunicorn', or else the rest is of placement_app.py."""
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
        """End it, and with it what it forked; the next popen() starts another."""
        with self._lock, contextlib.suppress(AttributeError):
            self._process.kill()
            self._process.wait()
            self._socket.close()
            self._process = None
