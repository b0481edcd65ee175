# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the servers of this package have in common."""

import contextlib
import http.client
import signal
import socket

from tests.env.scratch import EnvError, Scratch


def connects(place):
    """Whether somebody takes connections at a port of loopback, or at the path of a Unix socket."""
    with socket.socket(socket.AF_INET if isinstance(place, int) else socket.AF_UNIX) as sock:
        return sock.connect_ex(('127.0.0.1', place) if isinstance(place, int) else place) == 0


class Startable:
    """What has start() and close(): as a context manager it starts on entry and closes on exit."""

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *exc):
        self.close()


class Service(Startable):
    """A server that can be started, stopped, killed, paused and started again in one folder.

    scratch is borrowed if given; else the service has its own, which close() removes.
    """

    name = 'service'
    patience = 120  # so many seconds can pass until it answers, on a busy machine

    def __init__(self, scratch=None):
        self._owned = None if scratch else Scratch()
        self.scratch = scratch or self._owned
        self.folder = self.scratch.folder(self.name)
        self.child = None

    def _spawn(self):
        """Start the process; returns its Child."""
        raise NotImplementedError

    def answers(self):
        """Whether it does; it may raise what says that it does not yet."""
        raise NotImplementedError

    def wait_ready(self):
        """Return when it answers."""
        self.child.wait_ready(self._answers, self.patience, '%s to answer' % self.name)

    def _answers(self):
        with contextlib.suppress(OSError, http.client.HTTPException, EnvError):
            return self.answers()
        return False

    def running(self):
        return self.child is not None and self.child.alive()

    def start(self, wait=True):
        """Start it, on the address and the data of the last time; wait until it answers; return it."""
        if not self.running():
            self.child = self._spawn()
            if wait:
                self.wait_ready()
        return self

    def stop(self):
        """Stop it politely; start() may follow."""
        if self.child:
            self.child.stop()
            self.child = None

    def kill(self):
        """SIGKILL; start() may follow."""
        if self.child:
            self.child.kill()
            self.child = None

    def restart(self):
        self.stop()
        self.start()

    @contextlib.contextmanager
    def paused(self):
        """SIGSTOP: it accepts connections and never answers, unless it is killed meanwhile."""
        self.child.signal(signal.SIGSTOP)
        try:
            yield
        finally:
            if self.child:
                self.child.signal(signal.SIGCONT)

    def close(self):
        """Kill it for good; removes the folder if the service made its own scratch."""
        try:
            self.kill()
        finally:
            if self._owned:
                self._owned.close()
