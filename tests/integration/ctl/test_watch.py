# SPDX-License-Identifier: LGPL-2.1-or-later
"""The verb "computectl watch": lines in a pipe, and a page on a terminal."""

import json
import re
import signal
import subprocess
import termios
import uuid

from tests.env.agent import Agent
from tests.env.case import EnvCase
from tests.env.scratch import wait_until
from tests.env.terminal import Reader, Terminal


class Watch(EnvCase):
    def setUp(self):
        self.agent = Agent(self.scratch, bus=self.bus).start('standalone')
        self.env = {**self.bus.env(), 'LC_ALL': 'C.UTF-8', 'TERM': 'xterm', 'NO_COLOR': '1'}
        for name in ('COLUMNS', 'SYSTEMD_COLORS'):
            self.env.pop(name, None)

    def watch_lines(self, *args):
        child = subprocess.Popen(self.agent.ctl_argv('watch', *args), env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        return child, Reader(child.stdout.fileno())

    def watch_page(self):
        page = Terminal(self, self.agent.ctl_argv('watch'), self.env, keep=True, size=(30, 100))
        page.wait_for('q quit')
        return page

    def claim(self):
        return self.agent.ctl('claim', '-q', '--consumer', uuid.uuid4(), '--resources',
                              'VCPU=1').stdout.strip()

    def test_lines(self):
        child, reader = self.watch_lines()
        # The guest of libvirt's test driver has more memory than its host.
        reader.wait_for('standalone: claims exceed the capacity of the host')
        reader.wait_for('\n')
        self.assertRegex(reader.text, r'^\w{3} \d{4}-.* 1 claim; .*VCPU 2/')
        self.claim()
        reader.wait_for(' 2 claims; ')
        reader.wait_for('VCPU 3/')
        self.agent.stop()
        reader.wait_for('compute-agent is not running')
        start = len(reader.text)
        self.agent.start()
        reader.wait_for(' 2 claims; ', start)
        child.send_signal(signal.SIGTERM)
        self.assertEqual(child.wait(timeout=30), 0)

    def test_json_lines(self):
        _, reader = self.watch_lines('--json=short')
        reader.wait_for('\n')
        self.claim()
        reader.wait_for('"n_claims":2')
        wait_until(lambda: reader.text.endswith('\n'), 30, 'a whole line')
        for line in reader.text.splitlines():
            self.assertEqual(json.loads(line)['format'], 'compute-agent-status/1')

    def test_a_line_that_cannot_be_written_ends_the_verb(self):
        # This file takes only numbers, and its buffer of 1024 bytes is shorter than the line.
        with open('/proc/self/oom_score_adj', 'w') as output:
            done = subprocess.run(self.agent.ctl_argv('watch', '--json=short'), env=self.env, stdin=subprocess.DEVNULL, stdout=output,
                                  stderr=subprocess.PIPE, text=True, timeout=30)
        self.assertEqual(done.returncode, 1)
        self.assertIn('Cannot write the output: Invalid argument', done.stderr)

    def test_page_and_keys(self):
        page = self.watch_page()
        self.assertIn('\x1b[?1049h', page.text)
        self.assertFalse(termios.tcgetattr(page.follower)[3] & termios.ECHO)
        # The page is overwritten and never cleared.
        self.assertNotIn('\x1b[2J', page.text)
        self.assertIn(' test ', page.text)  # the name of the guest
        self.claim()
        page.wait_for('claimed ')
        page.type(b'x')
        page.type(b'\x1b[B\x1b[5~q')  # three keys in one read
        self.assertEqual(page.child.wait(timeout=30), 0)
        page.wait_for('\x1b[?1049l')
        self.assertEqual(termios.tcgetattr(page.follower), page.before)

    def test_a_terminal_that_changes_its_size(self):
        page = self.watch_page()
        self.assertNotIn('scroll', page.text)
        rows = 4
        page.resize(rows, 60)
        page.child.send_signal(signal.SIGWINCH)  # it is not the foreground process of the terminal
        page.wait_for('scroll  line 1-3 of ')
        page.type(b'j')
        page.wait_for('line 2-4 of ')
        drawn = page.text[page.text.rindex('\x1b[H'):]
        self.assertEqual(len(re.findall('\x1b\\[K\r+\n', drawn)), rows - 1)

    def test_a_signal_gives_the_terminal_back(self):
        page = self.watch_page()
        page.child.send_signal(signal.SIGINT)
        self.assertEqual(page.child.wait(timeout=30), 0)
        self.assertEqual(termios.tcgetattr(page.follower), page.before)

    def test_nothing_is_asked_while_nothing_changes(self):
        """A page without changes sends no calls to the agent."""
        self.agent.stop()
        self.agent.configure({'DEFAULT': {'update_resources_interval': 3600}})
        self.agent.start('standalone')
        monitor = subprocess.Popen(
            ['dbus-monitor', '--address', self.bus.address,
             "type='method_call',destination='org.computeagent.Agent1'"], stdout=subprocess.PIPE)
        self.addCleanup(monitor.stdout.close)
        self.addCleanup(monitor.wait)
        self.addCleanup(monitor.kill)
        calls = Reader(monitor.stdout.fileno())
        calls.wait_for('NameAcquired')
        reader = self.watch_page()
        calls.wait_for('string "claims"')

        def calls_of_three_pages():
            start, pages = len(calls.text), reader.text.count('last polled')
            wait_until(lambda: reader.text.count('last polled') >= pages + 3, 60, 'three pages more')
            return calls.text[start:]
        # The first page reads all of its documents.
        wait_until(lambda: 'method call' not in calls_of_three_pages(), 60, 'three pages without a call')
        self.assertNotIn('method call', calls_of_three_pages())
