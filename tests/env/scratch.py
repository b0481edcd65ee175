# SPDX-License-Identifier: LGPL-2.1-or-later
"""A temporary folder and the processes started in it. Both are removed however the test ends.

Children die with this process (PR_SET_PDEATHSIG), also if it is killed. The folder is removed at
close(), at exit, and after SIGINT or SIGTERM. The next run removes the folder of a run that was
killed.
"""

import atexit
import contextlib
import ctypes
import fcntl
import os
import queue
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from concurrent.futures import Future
from pathlib import Path

from tests.env.preloaded import Preloaded

PREFIX = 'compute-agent-env-'
PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)
_open = []


class EnvError(Exception):
    """A test environment did not start or did not work as requested."""


class EnvTimeout(EnvError, TimeoutError):
    """A condition did not become true in time."""


def wait_until(predicate, seconds, what, step=0.02):
    """Calls predicate until its value is true, and returns the value. Raises EnvTimeout, which
    names what, after the given seconds."""
    end = time.monotonic() + seconds
    while True:
        value = predicate()
        if value:
            return value
        if time.monotonic() >= end:
            raise EnvTimeout('timed out after %g s: %s' % (seconds, what))
        time.sleep(step)


def free_port():
    """Returns an unused loopback TCP port.

    The port is outside the range of outgoing connections. The kernel could give a port of this
    range to a connection while a server restarts.
    """
    for _ in range(1000):
        port = random.SystemRandom().randrange(15000, 32000)
        with contextlib.suppress(OSError), socket.socket() as sock:
            sock.bind(('127.0.0.1', port))
            return port
    raise EnvError('no free port')


def running(group=None, parent=None):
    """Returns the pids of the running processes of a group, of a parent, or of all.

    Zombies do not count: an orphan can wait long for a slow process 1 to reap it.
    """
    ret = []
    for name in filter(str.isdigit, os.listdir('/proc')):
        with contextlib.suppress(OSError):
            stat = Path('/proc', name, 'stat').read_text().rpartition(')')[2].split()
            ended = stat[0] in 'ZX' and int(stat[17]) <= 1
            if not ended and group in (None, int(stat[2])) and parent in (None, int(stat[1])):
                ret.append(int(name))
    return ret


class _Spawner:
    """Starts processes from one lasting thread, because PDEATHSIG depends on the parent thread, not
    on the process.

    A child that a short thread of a test starts would die with this thread.
    """

    def __init__(self):
        self._queue = queue.Queue()
        self._thread = None
        self._lock = threading.Lock()

    def popen(self, argv, **kwargs):
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True, name='spawner')
                self._thread.start()
        future = Future()
        self._queue.put((future, argv, kwargs))
        return future.result()

    def _run(self):
        while True:
            future, argv, kwargs = self._queue.get()
            try:
                future.set_result(subprocess.Popen(argv, **kwargs))
            except BaseException as error:
                future.set_exception(error)


_spawner = _Spawner()


def _die_with_parent():
    """Returns a preexec function that makes a child die with this process."""
    parent = os.getpid()

    def preexec():
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
    return preexec


preloaded = Preloaded(lambda argv, **kwargs: _spawner.popen(
    argv, preexec_fn=_die_with_parent(), **kwargs))


class Child:
    """A process and its group. After the end of the group each method does nothing.

    wrapper: the first process only waits for another one, and must live to reap it. popen: the
    function that starts the process, with the arguments of subprocess.Popen.
    """

    def __init__(self, argv, name, log, env=None, cwd=None, wrapper=False, popen=_spawner.popen,
                 **kwargs):
        self.name = name
        self.log = Path(log)
        self._gone = False
        self._wrapper = wrapper
        with open(self.log, 'ab') as out:
            kwargs.setdefault('stdin', subprocess.DEVNULL)
            self._popen = popen(
                [str(arg) for arg in argv], stdout=out, stderr=out, env=env, cwd=cwd,
                start_new_session=True, preexec_fn=_die_with_parent(), **kwargs)
        self.pid = self._popen.pid

    def alive(self):
        """Returns whether the first process still runs."""
        return self._popen.poll() is None

    def signal(self, number):
        """Sends a signal to the whole group. SIGTERM and SIGKILL spare a wrapper while other
        processes of the group run."""
        if self._gone:
            return
        inner = [pid for pid in running(self.pid) if pid != self.pid] if self._wrapper else []
        with contextlib.suppress(ProcessLookupError):
            if inner and number in (signal.SIGTERM, signal.SIGKILL):
                for pid in inner:
                    os.kill(pid, number)
            else:
                os.killpg(self.pid, number)

    def gone(self):
        """Returns whether no process of the group runs."""
        if not self._gone:
            ended = self._popen.poll() is not None
            self._gone = ended and not running(group=self.pid)
        return self._gone

    def stop(self, seconds=5):
        """Sends SIGTERM to the group, and SIGKILL after the given seconds. Returns when no process
        of it runs."""
        self.signal(signal.SIGTERM)
        self.signal(signal.SIGCONT)
        try:
            wait_until(self.gone, seconds, '%s to end' % self.name, 0.01)
        except EnvTimeout:
            self.kill()

    def kill(self):
        """Sends SIGKILL to the whole group. Returns when no process of it runs."""
        self.signal(signal.SIGKILL)
        self.signal(signal.SIGCONT)
        with contextlib.suppress(EnvTimeout):
            wait_until(self.gone, 5, '%s to be killed' % self.name, 0.005)
            return
        # The wrapper did not end after the others, so kill it too.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        wait_until(self.gone, 10, '%s to be killed' % self.name, 0.005)

    def log_tail(self, size=16000):
        with contextlib.suppress(OSError):
            return self.log.read_bytes()[-size:].decode('utf-8', 'replace')
        return ''

    def wait_ready(self, predicate, seconds, what):
        """Waits like wait_until(). Raises EnvError with the end of the log if the process ends."""
        def check():
            if not self.alive():
                raise EnvError('%s ended:\n%s' % (self.name, self.log_tail()))
            return predicate()
        try:
            return wait_until(check, seconds, what)
        except EnvTimeout as error:
            raise EnvTimeout('%s\n%s' % (error, self.log_tail())) from None


class Scratch:
    """A temporary folder and a list of cleanup functions, which run last first. Use it as a context
    manager."""

    def __init__(self):
        sweep()
        _catch_sigterm()
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._lock = _lock_folder(self.path)
        self._undo = contextlib.ExitStack()
        self._undo.callback(self._remove)
        self._serial = 0
        _open.append(self)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def folder(self, name):
        """Makes a new folder in the scratch folder. A number is added to its name."""
        self._serial += 1
        path = self.path / ('%s-%d' % (name, self._serial))
        path.mkdir(mode=0o755)
        return path

    def spawn(self, argv, name, folder=None, **kwargs):
        """Starts a process. Its output goes to NAME.log. close() kills it."""
        child = Child(argv, name, (folder or self.path) / ('%s.log' % name), **kwargs)
        self._undo.callback(child.kill)
        return child

    @classmethod
    def of(cls, case):
        """Returns a scratch folder for a test case, or for a class of tests. The end of the test or
        class closes it."""
        scratch = cls()
        (case.addClassCleanup if isinstance(case, type) else case.addCleanup)(scratch.close)
        return scratch

    def on_close(self, function, *args):
        """Registers a function for close(). It runs before the functions that were registered
        earlier."""
        self._undo.callback(function, *args)

    def close(self):
        """Runs all cleanup functions, even if one of them fails. It can be called twice."""
        with _deferred_signals():
            if self in _open:
                _open.remove(self)
            self._undo.close()

    def _remove(self):
        with self._lock, contextlib.suppress(FileNotFoundError):
            _remove_folder(self.path)


def _lock_folder(path):
    lock = open(path / '.lock.new', 'w')
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.rename(path / '.lock.new', path / '.lock')
    return lock


def _remove_folder(path):
    """Removes a folder, its lock last. If this is interrupted, the next run can finish it."""
    for entry in list(path.iterdir()):
        if entry.name != '.lock':
            real = entry.is_dir() and not entry.is_symlink()
            shutil.rmtree(entry) if real else entry.unlink()
    shutil.rmtree(path)


def sweep():
    """Removes the folders of runs that were killed, whose lock is free."""
    for path in Path(tempfile.gettempdir()).glob(PREFIX + '*'):
        with contextlib.suppress(OSError):
            if path.lstat().st_uid != os.getuid():
                continue
            if not (path / '.lock').exists():
                # A folder without lock: its run was killed at its start, or is just starting. A
                # start takes less than a minute.
                if time.time() - path.stat().st_mtime > 60:
                    _remove_folder(path)
                continue
            with _lock_folder_existing(path):
                _remove_folder(path)


def _lock_folder_existing(path):
    lock = open(path / '.lock', 'r+')
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise
    return lock


def _catch_sigterm():
    """Lets SIGTERM unwind the stack as SIGINT does, unless it has a handler already.

    It raises KeyboardInterrupt, because unittest regards SystemExit as a failed test and continues.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _unwind)


def _unwind(number, _frame):
    raise KeyboardInterrupt(signal.Signals(number).name)


@contextlib.contextmanager
def _deferred_signals():
    """Defers SIGINT and SIGTERM until the end of the block, so that a cleanup is complete."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    old = [signal.signal(number, lambda *args: came.append(args[0])) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, old):
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        for number in came[:1]:
            signal.raise_signal(number)


def open_folders():
    """Returns the open scratch folders of this process."""
    return [scratch.path for scratch in _open]


@atexit.register
def _close_all():
    with contextlib.ExitStack() as stack:
        for scratch in list(_open):
            stack.callback(scratch.close)
