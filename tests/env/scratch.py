# SPDX-License-Identifier: LGPL-2.1-or-later
"""A temp folder and the processes started in it; all of it goes away, whatever happens.

Children die with this process (PR_SET_PDEATHSIG), also when it is killed. The folder is
removed at close(), at exit, and after SIGINT or SIGTERM. A folder that a killed run left is
removed by the next run.
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
    """A test environment did not come up or did not do as told."""


class EnvTimeout(EnvError, TimeoutError):
    """Something did not happen in time."""


def wait_until(predicate, seconds, what, step=0.02):
    """Call predicate until it is true; return its value. EnvTimeout names what was awaited."""
    end = time.monotonic() + seconds
    while True:
        value = predicate()
        if value:
            return value
        if time.monotonic() >= end:
            raise EnvTimeout('timed out after %g s: %s' % (seconds, what))
        time.sleep(step)


def free_port():
    """A loopback TCP port that nobody uses now.

    Not one that the kernel gives to outgoing connections, which could take it from a server
    between its stop and its start.
    """
    for _ in range(1000):
        port = random.SystemRandom().randrange(15000, 32000)
        with contextlib.suppress(OSError), socket.socket() as sock:
            sock.bind(('127.0.0.1', port))
            return port
    raise EnvError('no free port')


def running(group=None, parent=None):
    """The pids of the processes of a group, of a parent, or of all, that have not ended.

    Zombies have: an orphan may have to wait for a slow process 1 to reap it.
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
    """Starts processes from one lasting thread: PDEATHSIG looks at the thread, not the process.

    A child started by a test's own short thread would die with that thread.
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
    """What a child does first, so that it dies with this process."""
    parent = os.getpid()

    def preexec():
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
    return preexec


preloaded = Preloaded(lambda argv, **kwargs: _spawner.popen(
    argv, preexec_fn=_die_with_parent(), **kwargs))


class Child:
    """A process and its group. Every method does nothing once the group is gone.

    wrapper: the first process only waits for another, and must live to reap it.
    popen: what starts it, as subprocess.Popen does.
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
        """Whether the first process still runs."""
        return self._popen.poll() is None

    def signal(self, number):
        """Send a signal to the whole group."""
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
        """Whether nothing of the group runs."""
        if not self._gone:
            ended = self._popen.poll() is not None
            self._gone = ended and not running(group=self.pid)
        return self._gone

    def stop(self, seconds=5):
        """SIGTERM, then SIGKILL for what is left; returns when nothing of it runs."""
        self.signal(signal.SIGTERM)
        self.signal(signal.SIGCONT)
        try:
            wait_until(self.gone, seconds, '%s to end' % self.name, 0.01)
        except EnvTimeout:
            self.kill()

    def kill(self):
        """SIGKILL to the whole group; returns when nothing of it runs."""
        self.signal(signal.SIGKILL)
        self.signal(signal.SIGCONT)
        with contextlib.suppress(EnvTimeout):
            wait_until(self.gone, 5, '%s to be killed' % self.name, 0.005)
            return
        # The first one, too: it does not end with the others.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        wait_until(self.gone, 10, '%s to be killed' % self.name, 0.005)

    def log_tail(self, size=2000):
        with contextlib.suppress(OSError):
            return self.log.read_bytes()[-size:].decode('utf-8', 'replace')
        return ''

    def wait_ready(self, predicate, seconds, what):
        """wait_until, which also fails, with the end of the log, if the process ends."""
        def check():
            if not self.alive():
                raise EnvError('%s ended:\n%s' % (self.name, self.log_tail()))
            return predicate()
        try:
            return wait_until(check, seconds, what)
        except EnvTimeout as error:
            raise EnvTimeout('%s\n%s' % (error, self.log_tail())) from None


class Scratch:
    """A temp folder and a list of what to undo, last first. Use it as a context manager."""

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
        """Make a new folder in it; the name gets a number."""
        self._serial += 1
        path = self.path / ('%s-%d' % (name, self._serial))
        path.mkdir(mode=0o755)
        return path

    def spawn(self, argv, name, folder=None, **kwargs):
        """Start a process; its output goes to NAME.log. It is killed at close()."""
        child = Child(argv, name, (folder or self.path) / ('%s.log' % name), **kwargs)
        self._undo.callback(child.kill)
        return child

    @classmethod
    def of(cls, case):
        """One for a test, or for all of a class of tests: closed after it."""
        scratch = cls()
        (case.addClassCleanup if isinstance(case, type) else case.addCleanup)(scratch.close)
        return scratch

    def on_close(self, function, *args):
        """Call function at close(), before what was registered earlier."""
        self._undo.callback(function, *args)

    def close(self):
        """Undo everything; may be called twice. Every step is tried even if one fails."""
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
    """Remove it with its lock last: what a kill interrupts, the next run can finish."""
    for entry in list(path.iterdir()):
        if entry.name != '.lock':
            real = entry.is_dir() and not entry.is_symlink()
            shutil.rmtree(entry) if real else entry.unlink()
    shutil.rmtree(path)


def sweep():
    """Remove the folders of runs that were killed: nobody holds their lock."""
    for path in Path(tempfile.gettempdir()).glob(PREFIX + '*'):
        with contextlib.suppress(OSError):
            if path.lstat().st_uid != os.getuid():
                continue
            if not (path / '.lock').exists():
                # killed as it was made; a minute is enough for one that is being made now
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
    """Let SIGTERM unwind the stack as SIGINT does, unless somebody else handles it.

    KeyboardInterrupt, because unittest takes a SystemExit for a failed test and goes on.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _unwind)


def _unwind(number, _frame):
    raise KeyboardInterrupt(signal.Signals(number).name)


@contextlib.contextmanager
def _deferred_signals():
    """Hold SIGINT and SIGTERM back until the block is done: cleaning up goes first."""
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
    """The folders of this process that are not closed yet."""
    return [scratch.path for scratch in _open]


@atexit.register
def _close_all():
    with contextlib.ExitStack() as stack:
        for scratch in list(_open):
            stack.callback(scratch.close)
