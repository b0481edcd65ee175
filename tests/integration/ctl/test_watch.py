# SPDX-License-Identifier: LGPL-2.1-or-later
"""computectl watch: as lines in a pipe, as a page on a terminal."""

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import threading
import unittest
import uuid

from tests.env.agent import Agent, build_folder
from tests.env.bus import Bus
from tests.env.scratch import EnvError, Scratch, wait_until


class Reader:
    """Collects what comes out of a file until it ends."""

    def __init__(self, file):
        self.text = ''
        self._file = file
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        while True:
            try:
                part = os.read(self._file, 65536)
            except OSError:  # the last writer has closed the terminal
                return
            if not part:
                return
            self.text += part.decode(errors='replace')

    def wait_for(self, part, start=0):
        try:
            wait_until(lambda: part in self.text[start:], 60, repr(part))
        except EnvError as error:
            raise EnvError('%s in %r' % (error, self.text[-3000:])) from error

    def join(self):
        self._thread.join(timeout=30)


class Watch(unittest.TestCase):
    def setUp(self):
        self.scratch = Scratch.of(self)
        self.bus = Bus(self.scratch).start()
        self.agent = Agent(self.scratch, bus=self.bus).start('standalone')
        self.env = {**self.bus.env(), 'LC_ALL': 'C.UTF-8', 'TERM': 'xterm', 'NO_COLOR': '1'}
        for name in ('COLUMNS', 'SYSTEMD_COLORS'):
            self.env.pop(name, None)

    def watch(self, *args, **how):
        child = subprocess.Popen([str(build_folder() / 'computectl'), 'watch', *args], env=self.env,
                                 **how)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        return child

    def watch_lines(self, *args):
        child = self.watch(*args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.addCleanup(child.stdout.close)
        return child, Reader(child.stdout.fileno())

    def watch_page(self, rows=30, columns=100):
        leader, follower = pty.openpty()
        self.addCleanup(os.close, leader)
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))
        before = termios.tcgetattr(follower)
        child = self.watch(stdin=follower, stdout=follower, stderr=follower)
        self.addCleanup(os.close, follower)
        return child, Reader(leader), leader, follower, before

    def claim(self):
        return self.agent.ctl('claim', '-q', '--consumer', uuid.uuid4(), '--resources',
                              'VCPU=1').stdout.strip()

    def test_lines(self):
        child, reader = self.watch_lines()
        # The one guest of libvirt's test driver has more memory than its host.
        reader.wait_for('standalone: claims hold more than the host has')
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

    def test_page_and_keys(self):
        child, reader, leader, follower, before = self.watch_page()
        reader.wait_for('\x1b[?1049h')
        reader.wait_for('q quit')
        self.assertFalse(termios.tcgetattr(follower)[3] & termios.ECHO)
        # Drawn over, never cleared.
        self.assertNotIn('\x1b[2J', reader.text)
        self.assertIn(' test ', reader.text)  # the guest by its name
        self.claim()
        reader.wait_for('claimed ')
        os.write(leader, b'x')
        os.write(leader, b'\x1b[B\x1b[5~q')  # in one read, and still three keys
        self.assertEqual(child.wait(timeout=30), 0)
        reader.wait_for('\x1b[?1049l')
        self.assertEqual(termios.tcgetattr(follower), before)

    def test_a_terminal_that_changes_its_size(self):
        child, reader, leader, follower, _ = self.watch_page()
        reader.wait_for('q quit')
        self.assertNotIn('scroll', reader.text)
        rows = 4
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack('HHHH', rows, 60, 0, 0))
        child.send_signal(signal.SIGWINCH)  # it is not the terminal's foreground process
        reader.wait_for('scroll  line 1-3 of ')
        os.write(leader, b'j')
        reader.wait_for('line 2-4 of ')
        page = reader.text[reader.text.rindex('\x1b[H'):]
        self.assertEqual(len(re.findall('\x1b\\[K\r+\n', page)), rows - 1)

    def test_a_signal_gives_the_terminal_back(self):
        child, reader, _, follower, before = self.watch_page()
        reader.wait_for('q quit')
        child.send_signal(signal.SIGINT)
        self.assertEqual(child.wait(timeout=30), 0)
        self.assertEqual(termios.tcgetattr(follower), before)

    def test_nothing_is_asked_while_nothing_changes(self):
        """A page on the screen costs the agent nothing but its polls."""
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
        _, reader, _, _, _ = self.watch_page()
        reader.wait_for('q quit')
        calls.wait_for('string "claims"')

        def calls_of_three_pages():
            start, pages = len(calls.text), reader.text.count('Polled')
            wait_until(lambda: reader.text.count('Polled') >= pages + 3, 60, 'three pages more')
            return calls.text[start:]
        # At first the page asks for all that it shows.
        wait_until(lambda: 'method call' not in calls_of_three_pages(), 60, 'three pages without a call')
        self.assertNotIn('method call', calls_of_three_pages())
