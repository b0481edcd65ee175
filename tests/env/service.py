# SPDX-License-Identifier: LGPL-2.1-or-later
"""The base classes of the servers in this package."""

import contextlib
import http.client
import signal
import socket

from tests.env.scratch import EnvError, Scratch


def connects(place):
    """Returns whether a server accepts connections at a port of loopback, or at the path of a Unix
    socket."""
    with socket.socket(socket.AF_INET if isinstance(place, int) else socket.AF_UNIX) as sock:
        return sock.connect_ex(('127.0.0.1', place) if isinstance(place, int) else place) == 0


class Startable:
    """An object with start() and close(). As a context manager it starts on entry and closes on
    exit."""

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

    scratch is borrowed. Without it the service makes its own, which close() removes.
    """

    name = 'service'
    patience = 120  # seconds until it must answer, also on a busy machine

    def __init__(self, scratch=None):
        self._owned = None if scratch else Scratch()
        self.scratch = scratch or self._owned
        self.folder = self.scratch.folder(self.name)
        self.child = None

    def _spawn(self):
        """Starts the process. Returns its Child."""
        raise NotImplementedError

    def answers(self):
        """Returns whether the server answers. It can raise OSError, HTTPException or EnvError if
        not."""
        raise NotImplementedError

    def wait_ready(self):
        """Returns when the server answers."""
        self.child.wait_ready(self._answers, self.patience, '%s to answer' % self.name)

    def _answers(self):
        with contextlib.suppress(OSError, http.client.HTTPException, EnvError):
            return self.answers()
        return False

    def running(self):
        return self.child is not None and self.child.alive()

    def start(self, wait=True):
        """Starts the server with its previous address and data, unless it runs. With wait, returns
        when it answers. Returns itself."""
        if not self.running():
            self.child = self._spawn()
            if wait:
                self.wait_ready()
        return self

    def stop(self):
        """Stops the server with SIGTERM. start() can follow."""
        if self.child:
            self.child.stop()
            self.child = None

    def kill(self):
        """Kills the server with SIGKILL. start() can follow."""
        if self.child:
            self.child.kill()
            self.child = None

    def restart(self):
        self.stop()
        self.start()

    @contextlib.contextmanager
    def paused(self):
        """Stops the process with SIGSTOP for the time of a with block. It accepts connections and does
        not answer."""
        self.child.signal(signal.SIGSTOP)
        try:
            yield
        finally:
            if self.child:
                self.child.signal(signal.SIGCONT)

    def close(self):
        """Kills the server. Removes the folder if the service made its own scratch."""
        try:
            self.kill()
        finally:
            if self._owned:
                self._owned.close()
