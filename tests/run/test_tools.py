# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests of the tools that count results for ./check: no failure is lost before the last line."""

import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from tests.run.automake_tap import cases_of

ROOT = Path(__file__).resolve().parents[2]
HEAD = 'import os, signal, subprocess, sys, time, unittest\nclass A(unittest.TestCase):\n'

# (body of a test class, results in order, a text that the output must have)
FILES = [
    ('    def test_a(self): print("ok 7 - noise", flush=True)\n'
     '    def test_b(self): os.system("echo ok 8 - more")\n', 'ok ok', ''),
    ('    def test_a(self): self.assertEqual(1, 2)\n    def test_b(self): pass\n', 'not-ok ok',
     '1 != 2'),
    ('    def test_a(self): 1 // 0\n', 'not-ok', 'ZeroDivisionError'),
    ('    def test_a(self):\n        with self.subTest(i=5): self.fail()\n', 'not-ok', 'i=5'),
    ('    @unittest.skip("no kvm")\n    def test_a(self): pass\n', 'not-ok', 'skipped: no kvm'),
    ('    @unittest.expectedFailure\n    def test_a(self): pass\n', 'not-ok', 'marked as failing'),
    ('    @classmethod\n    def setUpClass(cls): raise OSError("no")\n'
     '    def test_a(self): pass\n', 'not-ok', 'setUpClass'),
    ('    @classmethod\n    def tearDownClass(cls): raise OSError("no")\n'
     '    def test_a(self): pass\n', 'ok not-ok', 'tearDownClass'),
    ('    def test_a(self): os.kill(os.getpid(), signal.SIGKILL)\n'
     '    def test_b(self): pass\n', 'not-ok not-ok', 'ended with -9'),
    ('    def test_a(self): os._exit(0)\n    def test_b(self): pass\n', 'not-ok not-ok',
     'a test did not run'),
    ('    def test_a(self): time.sleep(60)\n', 'not-ok', 'not done after 1 s'),
    ('    def test_a(self):\n        signal.signal(signal.SIGTERM, signal.SIG_IGN)\n'
     '        time.sleep(60)\n', 'not-ok', 'not done after 1 s'),
    ('    def test_a(self): subprocess.Popen(["setsid", "sleep", "61"])\n', 'ok not-ok',
     'left processes behind: sleep 61'),
    ('    pass\n', 'not-ok', 'has no tests'),
]


class Copy:
    """A folder with tests/run/tap.py and one test file."""

    def __init__(self, body):
        self._folder = tempfile.TemporaryDirectory(prefix='compute-agent-tools-')
        self.path = Path(self._folder.name)
        (self.path / 'tests/run').mkdir(parents=True)
        for name in ('__init__.py', 'run/__init__.py', 'run/tap.py'):
            (self.path / 'tests' / name).write_text((ROOT / 'tests' / name).read_text())
        (self.path / 'tests' / 'file.py').write_text(body)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self._folder.cleanup()

    def start(self, *options):
        return subprocess.Popen(
            ['/usr/bin/python3', '-B', '-m', 'tests.run.tap', '--grace', '1', *options, 'tests/file.py'],
            cwd=self.path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def results(output):
    lines = [line for line in output.splitlines() if line.startswith(('ok ', 'not ok '))]
    return ' '.join('ok' if line.startswith('ok') else 'not-ok' for line in lines)


class TapTest(unittest.TestCase):
    def run_file(self, text):
        with Copy(text) as copy:
            process = copy.start('--timeout', '1' if 'sleep(60)' in text else '30')
            return process.communicate(timeout=60)[0]

    def test_files(self):
        for body, expected, said in FILES:
            with self.subTest(body=body):
                output = self.run_file(HEAD + body)
                # The tests print lines that look like results. They go to standard error, which is part of the output here.
                output = output.replace('ok 7 - noise', '').replace('ok 8 - more', '')
                self.assertEqual(results(output), expected, output)
                self.assertIn(said, output)

    def test_import_error(self):
        self.assertIn('No module named', self.run_file('import no_such_module\n'))
        self.assertEqual(results(self.run_file('import no_such_module\n')), 'not-ok')
        self.assertEqual(results(self.run_file('def f(:\n')), 'not-ok')

    def test_signal_ends_it(self):
        body = ('    def test_a(self):\n        subprocess.Popen(["setsid", "sleep", "62"])\n'
                '        open("started", "w").close()\n        time.sleep(60)\n')
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number=number), Copy(HEAD + body) as copy:
                process = copy.start()
                while not (copy.path / 'started').exists():
                    time.sleep(0.02)
                process.send_signal(number)
                output = process.communicate(timeout=30)[0]
                self.assertIn('stopped by SIG', output)
                self.assertIn('left processes behind: sleep 62', output)
                self.assertNotIn('ok 1 - tests.file', output.replace('not ok', ''))


class AutomakeTest(unittest.TestCase):
    def test_cases(self):
        table = [
            ('PASS', '1..2\nok 1 - a\nok 2 - b\n# ok - tests\n', [True, True]),
            ('FAIL', '1..2\nok 1 - a\nnot ok 2 - b\n', [True, False]),
            ('FAIL', '1..3\nok 1 - a\nSegmentation fault\n', [True, False, False]),
            ('FAIL', '1..1\nok 1 - a\nERROR: LeakSanitizer\n', [True, False]),
            ('FAIL', 'error while loading shared libraries\n', [False]),
            ('PASS', '', [True]),
            ('did not run', '', [False]),
            ('PASS', '1..2\nok 1 - a\n', [True, False]),
        ]
        for result, log, expected in table:
            with self.subTest(result=result, log=log):
                cases = cases_of('tests/test-x', result, log)
                self.assertEqual([passed for passed, _ in cases], expected, cases)


# (for each of four test files its output of each run, the counts of ./check, the lines that it shows of a first run)
FILES_OF_CHECK = [
    ((['ok 1 - a'], ['ok 1 - b'], ['ok 1 - c'], ['ok 1 - d']), (4, 0), []),
    ((['not ok 1 - a|# why|ok 2 - e', 'ok 1 - a|ok 2 - e'], ['ok 1 - b'], ['ok 1 - c'], ['ok 1 - d']), (5, 0),
     ['once, not ok 1 - a', 'once, # why']),
    ((['not ok 1 - a', 'not ok 1 - again'], ['ok 1 - b'], ['ok 1 - c'], ['', 'ok 1 - d']), (3, 1), []),
    ((['', ''], ['ok 1 - b'], ['ok 1 - c'], ['ok 1 - d']), (3, 1), []),
    # More failures than the limit of repetitions: no file runs again.
    ((['not ok 1 - a', 'ok 1 - a'],) * 4, (0, 4), []),
]
RUN_FILES = '''
. ./check
work=$1 jobs=1 max_again=3
run_file() {
        echo >>"$work/times-$1"
        sed -n "s/|/\\n/g; $(wc -l <"$work/times-$1")p" "$work/says-$1"
}
run_files 2 0 1 2 3
'''


class CheckTest(unittest.TestCase):
    def test_a_failed_file_runs_again_alone(self):
        for files, counts, shown in FILES_OF_CHECK:
            with self.subTest(files=files), tempfile.TemporaryDirectory(prefix='compute-agent-tools-') as name:
                for number, times in enumerate(files):
                    Path(name, 'says-%d' % number).write_text(''.join(line + '\n' for line in times))
                output = subprocess.run(['bash', '-c', RUN_FILES, 'bash', name], cwd=ROOT, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, check=False, timeout=60).stdout
                said = results(output).split()
                self.assertEqual((said.count('ok'), said.count('not-ok')), counts, output)
                self.assertEqual([line for line in output.splitlines() if line.startswith('once')], shown, output)


STEPS = '''
. ./check
work=$1 passed=0 failed=0
declare -gA running=()
step_integration() { until [ -e "$work/boot-runs" ]; do sleep 0.1; done; echo 'ok 1 - a'; }
step_boot() { touch "$work/boot-runs"; printf '%s\n' 'ok 1 - b' 'not ok 2 - c' '# why'; }
step_gcc() { return 3; }
set -m
run_steps integration boot
run_steps gcc
run_steps
echo "$passed passed, $failed failed"
'''


class StepsTest(unittest.TestCase):
    def test_steps_that_run_at_once_are_reported_one_after_the_other(self):
        with tempfile.TemporaryDirectory(prefix='compute-agent-tools-') as name:
            output = subprocess.run(['bash', '-c', STEPS, 'bash', name], cwd=ROOT, stdout=subprocess.PIPE,
                                    stderr=subprocess.DEVNULL, text=True, check=False, timeout=60).stdout
        lines = [re.sub(r' +[0-9.]+ s$', '', line).split() for line in output.splitlines()]
        self.assertEqual(lines, [
            ['integration', '1', 'passed', '0', 'failed'], ['boot', '1', 'passed', '1', 'failed'],
            ['|', 'not', 'ok', '2', '-', 'c'], ['|', '#', 'why'], ['gcc', '0', 'passed', '1', 'failed'],
            ['|', '...'], ['|', 'not', 'ok', '1', '-', 'the', 'step', 'ended', 'with', '3'], ['2', 'passed,', '2', 'failed']], output)


# (output and exit code of ./check on this release, the same with --suite, last line and exit code of .ci/run)
SUMS = [
    (('lint 9 passed 0 failed 1.0 s\n9 passed, 0 failed', 0), ('7 passed, 0 failed\n== exit 0: ./check', 0), '16 passed, 0 failed', 0),
    (('8 passed, 1 failed', 1), ('7 passed, 0 failed', 0), '15 passed, 1 failed', 1),
    (('9 passed, 0 failed', 0), ('  | 1 passed, 9 failed\n5 passed, 2 failed\n== exit 1: ./check', 1), '14 passed, 2 failed', 1),
    # A run without counts is one failure, whatever its exit code is.
    (('apt-get failed', 1), ('7 passed, 0 failed', 0), '7 passed, 1 failed', 1),
    (('9 passed, 0 failed', 0), ('tests/run/prove-install: needs root', 1), '9 passed, 1 failed', 1),
    (('9 passed, 0 failed', 0), ('', 0), '9 passed, 1 failed', 1),
    (('', 0), ('', 143), '0 passed, 2 failed', 1),
    # A failure outside of the tests.
    (('9 passed, 0 failed', 0), ('7 passed, 0 failed\nleft behind: a mount', 1), '16 passed, 1 failed', 1),
    (('0 passed, 0 failed', 0), ('7 passed, 0 failed', 0), '7 passed, 1 failed', 1),
]
CHECK = '''#!/bin/sh
echo "$@" >>arguments
case $1 in
--suite) cat other; exit $(cat other.status) ;;
*) cat here; exit $(cat here.status) ;;
esac
'''


class DistributionTest(unittest.TestCase):
    def test_each_line_names_a_file_once_and_gives_a_reason(self):
        lines = [line for line in (ROOT / 'tests/run/distribution').read_text().splitlines() if line and line[0] != '#']
        names = [line.partition(': ')[0] for line in lines]
        self.assertEqual([line for line, name in zip(lines, names) if not (ROOT / name).is_file() or line == name], [])
        self.assertEqual(len(names), len(set(names)))

    def test_check_runs_these_files_alone(self):
        run = '. ./check && distribution=$1 && integration_files && boot_files'
        every, some = (subprocess.run(['bash', '-c', run, 'bash', word], cwd=ROOT, stdout=subprocess.PIPE, text=True,
                                      check=True).stdout.split() for word in ('', 'yes'))
        named = {name for name in every if '\n%s: ' % name in (ROOT / 'tests/run/distribution').read_text()}
        self.assertEqual((len(every), set(some)), (len(set(every)), named))
        files = {*(ROOT / 'tests/integration').glob('*/test_*.py'), *(ROOT / 'tests/boot').glob('test_*.py')}
        self.assertEqual(files - {ROOT / name for name in every}, set())
        self.assertLess(len(some), len(every) / 2)


class CiTest(unittest.TestCase):
    def run_ci(self, here, other, *arguments):
        """Returns (exit code, last line, arguments of each ./check)."""
        with tempfile.TemporaryDirectory(prefix='compute-agent-tools-') as name:
            folder = Path(name)
            (folder / '.ci').mkdir()
            shutil.copy(ROOT / '.ci/run', folder / '.ci/run')
            (folder / 'check').write_text(CHECK)
            (folder / 'check').chmod(0o755)
            for file, (said, status) in (('here', here), ('other', other)):
                (folder / file).write_text(said + '\n')
                (folder / (file + '.status')).write_text(str(status))
            done = subprocess.run([folder / '.ci/run', *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  stdin=subprocess.DEVNULL, text=True, check=False, timeout=60)
            self.said = done.stdout.splitlines()
            return done.returncode, self.said[-1], (folder / 'arguments').read_text().splitlines()

    def test_sums(self):
        for here, other, last, status in SUMS:
            with self.subTest(here=here, other=other):
                self.assertEqual(self.run_ci(here, other)[:2], (status, last))

    def test_tests_of_a_second_run_are_named_at_the_end(self):
        first, second = (('integration 9 passed 0 failed 1.0 s\n  | once, not ok 3 - tests.%s (1.0 s)\n  | once, # why\n9 passed, 0 failed' % name, 0)
                         for name in 'ab')
        status, last, _ = self.run_ci(first, second)
        self.assertEqual((status, last), (0, '18 passed, 0 failed'))
        self.assertEqual([line for line in self.said if line.startswith('Passed')],
                         ['Passed only at the second run: tests.%s (1.0 s)' % name for name in 'ab'])

    def test_arguments(self):
        good = ('1 passed, 0 failed', 0)
        own, other = self.run_ci(good, good)[2]
        self.assertEqual(own, '')
        self.assertRegex(other, '^--suite (bookworm|trixie) --distribution gcc integration boot install$')
        own, other = self.run_ci(good, good, '--fast', 'lint')[2]
        self.assertEqual(own, '--fast lint')
        self.assertRegex(other, '^--suite (bookworm|trixie) --fast lint$')
