# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests of excessive load on the running service, with the bus policy, polkitd and limits of a real system."""

import re
import subprocess
import time

from tests.boot.case import BootCase
from tests.env.agent import build_folder

CALLER = '/usr/local/bin/bus-caller'
LIMITS = 'org.freedesktop.DBus.Error.LimitsExceeded'
# Starts an authentication agent for a process on its own terminal, and stops the agent before polkit asks it.
AGENT = '''script --quiet --command "pkttyagent --process $1" /dev/null </dev/null >/dev/null 2>&1 &
for i in $(seq 100); do a=$(pgrep --newest --exact pkttyagent) && break; sleep 0.1; done
sleep 2; kill -STOP $a && echo ready; cat >/dev/null; kill -KILL $a'''


def setUpModule():
    BootCase.boot_and_serve()
    BootCase.machine.copy_in(build_folder() / 'bench/bus-caller', CALLER)
    BootCase.machine.run('chmod', '755', CALLER)


class Limits(BootCase):
    def setUp(self):
        super().setUp()
        self.pid = self.machine.main_pid()

    def tearDown(self):
        """The service is still the same process, so the watchdog did not end it."""
        self.assertEqual(self.machine.main_pid(), self.pid)

    def call(self, kind, n=1, seconds=0, user='nobody'):
        words = self.machine.run(CALLER, kind, n, seconds, user=user, timeout=300).stdout.split()
        return [int(word) for word in words[:3]], float(words[4]), words[6]

    def spawn(self, kind, n, seconds, *args):
        child = subprocess.Popen(
            ['nsenter', '-t', str(self.machine.leader), '-a', '--', 'runuser', '--user', 'nobody', '--',
             CALLER, kind, str(n), str(seconds), *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

        def end():
            child.kill()
            child.communicate()
        self.addCleanup(end)
        return child

    def claim(self, user=None):
        """Claims and releases a CPU. Returns the seconds of the claim."""
        begin = time.monotonic()
        done = self.claim_cpu(user)
        took = time.monotonic() - begin
        self.assertEqual(done.returncode, 0, done.stderr)
        self.machine.run('computectl', 'release', done.stdout.strip())
        return took

    def memory_kib(self):
        text = self.machine.run('cat', '/proc/%d/status' % self.pid).stdout
        return int(re.search(r'^VmRSS:\s+(\d+)', text, re.M)[1])

    def test_explain_stops_nothing(self):
        for kind in ('Explain-traits', 'Explain-hard', 'Explain-wide'):
            child = self.spawn(kind, 2, 3)
            self.assertEqual(child.poll(), None)
            self.assertLess(self.claim(), 5, kind)
            child.communicate(timeout=60)

    def test_pending_calls_delay_no_other_user(self):
        alone = min(self.claim() for _ in range(3))
        for kind in ('claims', 'tree', 'host'):
            child = self.spawn(kind, 800, 6)
            time.sleep(1)
            beside = min(self.claim() for _ in range(3))
            self.assertLess(beside, 10 * alone + 1, kind)
            answered, refused = [int(word) for word in child.communicate(timeout=60)[0].split()[:2]]
            self.assertGreater(answered, 0)
            self.assertGreater(refused, 0)

    def test_large_messages_are_not_kept(self):
        before = self.memory_kib()
        counts, _, error = self.call('ask-large', 20)
        self.assertEqual((counts[1], error), (20, LIMITS))
        self.assertLess(self.memory_kib() - before, 64 << 10)

    def test_questions_of_polkit_without_an_answer(self):
        """Calls that wait for a stopped authentication agent do not delay a user whom a rule allows."""
        self.allow_claims('daemon')
        child = self.spawn('ask', 140, 0, 'wait')
        self.assertEqual(child.stdout.readline(), 'ready\n')
        inside = self.machine.run('pgrep', '--newest', '--exact', 'bus-caller').stdout.strip()
        agent = subprocess.Popen(['nsenter', '-t', str(self.machine.leader), '-a', '--', 'sh', '-c', AGENT,
                                  'sh', inside], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(agent.communicate)
        self.assertEqual(agent.stdout.readline(), 'ready\n')
        child.stdin.write('go\n')
        child.stdin.flush()
        time.sleep(2)
        self.assertLess(self.claim('daemon'), 20)
        self.assertIsNone(child.poll())
        # After a minute the four pending calls end too.
        answered, refused, failed = [int(word) for word in child.communicate(timeout=180)[0].split()[:3]]
        self.assertEqual((answered, refused, failed), (0, 136, 4))
        self.assertLess(self.claim('daemon'), 20)

    def test_the_documented_limit_of_memory_is_set(self):
        self.assertEqual(self.machine.show('MemoryMax')['MemoryMax'], str(512 << 20))
