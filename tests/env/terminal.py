# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs a program on its own pseudo-terminal, collects its output and types keys."""

import codecs
import fcntl
import os
import pty
import struct
import subprocess
import termios
import threading

from tests.env.scratch import EnvError, wait_until


class Reader:
    """Collects the output of a file in text until the file ends."""

    def __init__(self, file):
        self.text = ''
        self._file = file
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        decoder = codecs.getincrementaldecoder('utf-8')('replace')  # a read can end within a character
        while True:
            try:
                part = os.read(self._file, 65536)
            except OSError:  # the last writer has closed the terminal
                return
            if not part:
                return
            self.text += decoder.decode(part)

    def wait_for(self, part, start=0):
        try:
            wait_until(lambda: part in self.text[start:], 60, repr(part))
        except EnvError as error:
            raise EnvError('%s in %r' % (error, self.text[-3000:])) from error

    def join(self):
        self._thread.join(timeout=30)


class Terminal(Reader):
    """Runs argv with its output on the terminal, and with its input there unless stdin is given. The end of the test closes it.

    follower is the program's side of the terminal. With keep it stays open here, so end() must not be called. size: (rows, columns).
    """

    def __init__(self, test, argv, env, keep=False, size=None, **how):
        self.leader, self.follower = pty.openpty()
        test.addCleanup(os.close, self.leader)
        if size:
            self.resize(*size)
        self.before = termios.tcgetattr(self.follower)
        self.child = subprocess.Popen([str(word) for word in argv], env=env, **{
            'stdin': self.follower, 'stdout': self.follower, 'stderr': self.follower, **how})
        test.addCleanup(self.child.wait)
        test.addCleanup(self.child.kill)
        if keep:
            test.addCleanup(os.close, self.follower)
        else:
            os.close(self.follower)
        super().__init__(self.leader)

    def resize(self, rows, columns):
        fcntl.ioctl(self.follower, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))

    def type(self, keys):
        os.write(self.leader, keys)

    def end(self, timeout=60):
        """Waits for the end of the program. Returns its exit code and its whole output."""
        code = self.child.wait(timeout)
        self.join()
        return code, self.text
