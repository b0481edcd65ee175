# SPDX-License-Identifier: LGPL-2.1-or-later
"""Run the tests of one file. The result is TAP on standard output.

    python3 -m tests.run.tap [--timeout SECONDS] tests/integration/test_x.py

The file runs in its own process. This process gets SIGTERM, and later SIGKILL, at the timeout or
when its parent must end. A skipped test counts as failed. A file that leaves processes behind has
failed too, and these processes are named and killed.
"""

import argparse
import contextlib
import ctypes
import faulthandler
import os
import selectors
import signal
import subprocess
import sys
import time
import traceback
import unittest
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LINGER_SECONDS = 2


def prctl(option, value):
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), 'prctl')


class TapResult(unittest.TestResult):
    """Writes a line for each test when it ends."""

    def __init__(self, stream):
        super().__init__()
        self._stream = stream
        self._number = 0
        self._reasons = []
        self._began = 0

    def startTest(self, test):
        super().startTest(test)
        self._reasons = []
        self._began = time.monotonic()

    def stopTest(self, test):
        self._write(test, time.monotonic() - self._began)
        super().stopTest(test)

    def _write(self, test, seconds):
        self._number += 1
        print('%s %d - %s (%.1f s)' % ('not ok' if self._reasons else 'ok', self._number, test.id(),
                                       seconds), file=self._stream)
        for reason in self._reasons:
            for line in reason.splitlines():
                print('# ' + line, file=self._stream)
        self._stream.flush()
        self._reasons = []

    def _fail(self, test, reason):
        self._reasons.append(reason)
        if not isinstance(test, unittest.TestCase):
            self._write(test, 0)  # a failed setUpClass() or tearDownClass() has no stopTest()

    def _fail_with(self, test, error):
        self._fail(test, ''.join(traceback.format_exception(*error)))

    def addFailure(self, test, err):
        self._fail_with(test, err)

    def addError(self, test, err):
        self._fail_with(test, err)

    def addSubTest(self, test, subtest, err):
        if err:
            self._fail(test, str(subtest))
            self._fail_with(test, err)

    def addSkip(self, test, reason):
        self._fail(test, 'skipped: %s' % reason)

    def addUnexpectedSuccess(self, test):
        self._fail(test, 'succeeded, but is marked as failing')


def run_child(name):
    """Runs the tests in this process. The output of the tests goes to standard error, because
    standard output is TAP."""
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    # A shell starts background processes with SIGINT ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    stream = os.fdopen(os.dup(1), 'w', encoding='utf-8')
    os.dup2(2, 1)
    module = '.'.join(Path(name).with_suffix('').parts)
    suite = unittest.defaultTestLoader.loadTestsFromName(module)
    print('1..%d' % suite.countTestCases(), file=stream, flush=True)
    suite.run(TapResult(stream))


class Parent:
    """Runs the child, watches its time, and kills the processes that it leaves behind."""

    def __init__(self, name, timeout, grace):
        self._name = name
        self._deadline = time.monotonic() + timeout
        self._timeout = timeout
        self._grace = grace
        self._planned = None
        self._seen = 0
        self._told = False
        self._complaints = []

    def run(self):
        # As a subreaper this process gets the orphans of the tests, which _kill_leftovers() finds.
        # A child in its own session gets no signals of the terminal.
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        self._child = subprocess.Popen(
            [sys.executable, '-B', '-m', 'tests.run.tap', '--child', self._name],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)
        self._read_lines()
        code = self._child.wait()
        self._report(code)
        self._kill_leftovers()
        for number, complaint in enumerate(self._complaints, self._seen + 1):
            print('not ok %d - %s: %s' % (number, self._name, complaint), flush=True)

    def _on_signal(self, number, _frame):
        self._tell_to_end('stopped by %s' % signal.Signals(number).name)

    def _tell_to_end(self, complaint):
        # SIGUSR1 makes the child print the stacks of all threads. After SIGTERM it has the grace
        # time for its cleanup.
        if self._told:
            return
        self._told = True
        self._complaints.append(complaint)
        self._deadline = time.monotonic() + self._grace
        self._signal_child(signal.SIGUSR1)
        time.sleep(0.2)  # let it write its stack before it unwinds
        self._signal_child(signal.SIGTERM)

    def _signal_child(self, number):
        with contextlib.suppress(ProcessLookupError):
            self._child.send_signal(number)

    def _read_lines(self):
        # After the first deadline the child gets SIGTERM, and after the second one SIGKILL.
        selector = selectors.DefaultSelector()
        fd = self._child.stdout.fileno()
        selector.register(fd, selectors.EVENT_READ)
        rest = b''
        while True:
            if time.monotonic() > self._deadline:
                if self._told:
                    self._signal_child(signal.SIGKILL)
                    return
                self._tell_to_end('not done after %d s' % self._timeout)
            if not selector.select(0.5):
                continue
            data = os.read(fd, 65536)
            *lines, rest = (rest + data).split(b'\n')
            for line in lines:
                self._take_line(line.decode('utf-8', 'replace'))
            if not data:
                return

    def _take_line(self, line):
        if line.startswith('1..'):
            self._planned = int(line[3:])
        elif line.startswith(('ok ', 'not ok ')):
            self._seen += 1
        print(line, flush=True)

    def _report(self, code):
        # A child that had to end early has one complaint already. Otherwise each planned test
        # without a line is one.
        if code != 0 and not self._told:
            self._complaints.append('ended with %d' % code)
        if code == 0 and not self._planned:
            self._complaints.append('has no tests')
        if not self._told:
            missing = (self._planned or 0) - self._seen - len(self._complaints)
            self._complaints += ['a test did not run'] * missing

    def _kill_leftovers(self):
        """Kills the processes that the tests left behind. Orphans become children of this process,
        because it is a subreaper."""
        named = set()
        end = time.monotonic() + LINGER_SECONDS
        while True:
            pids = living_children()
            if not pids:
                break
            if time.monotonic() > end:
                for pid in pids:
                    named.add(command_of(pid))
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)
        if named:
            self._complaints.append('left processes behind: %s' % '; '.join(sorted(named)))


def living_children():
    """Returns the pids of the running children of this process. It reaps those that have ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    ret = []
    for name in filter(str.isdigit, os.listdir('/proc')):
        with contextlib.suppress(OSError):
            stat = Path('/proc', name, 'stat').read_text().rpartition(')')[2].split()
            if int(stat[1]) == os.getpid() and stat[0] not in 'ZX':
                ret.append(int(name))
    return ret


def command_of(pid):
    with contextlib.suppress(OSError):
        line = Path('/proc/%d/cmdline' % pid).read_bytes().replace(b'\0', b' ')
        return line.decode('utf-8', 'replace').strip()[:200]
    return '(gone)'


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--timeout', type=int, default=600)
    parser.add_argument('--grace', type=int, default=60, help='seconds to end in')
    parser.add_argument('--child', action='store_true', help=argparse.SUPPRESS)
    parser.add_argument('file')
    args = parser.parse_args()
    if args.child:
        run_child(args.file)
    else:
        Parent(args.file, args.timeout, args.grace).run()


if __name__ == '__main__':
    main()
