# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the servers of this package have in common."""

import contextlib
import signal

from tests.env.scratch import Scratch


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

    def __init__(self, scratch=None):
        self._owned = None if scratch else Scratch()
        self.scratch = scratch or self._owned
        self.folder = self.scratch.folder(self.name)
        self.child = None

    def _spawn(self):
        """Start the process; returns its Child."""
        raise NotImplementedError

    def wait_ready(self, seconds=30):
        """Return when the server answers."""
        raise NotImplementedError

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

    def pause(self):
        """SIGSTOP: it accepts connections and never answers."""
        self.child.signal(signal.SIGSTOP)

    def resume(self):
        self.child.signal(signal.SIGCONT)

    @contextlib.contextmanager
    def paused(self):
        self.pause()
        try:
            yield
        finally:
            self.resume()

    def close(self):
        """Kill it for good; removes the folder if the service made its own scratch."""
        try:
            self.kill()
        finally:
            if self._owned:
                self._owned.close()
