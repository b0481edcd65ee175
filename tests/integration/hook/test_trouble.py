# SPDX-License-Identifier: LGPL-2.1-or-later
"""The hook while a process is killed, with hostile input, and with virt-install."""

import concurrent.futures
import contextlib
import os
import signal
import subprocess
import time
import uuid
from pathlib import Path

from tests.env.agent import build_folder, refuse_sanitizers
from tests.env.libvirtd import guest_xml
from tests.env.scratch import wait_until
from tests.integration.hook.hook_case import HookCase, virsh_words

GUEST = {'VCPU': 1, 'MEMORY_MB': 32}
BOMB = '<!DOCTYPE domain [<!ENTITY a "%s">%s]><domain type="qemu"><name>&l9;</name></domain>' % (
    'a' * 100, ''.join('<!ENTITY l%d "%s">' % (n, ('&l%d;' % (n - 1) if n else '&a;') * 10)
                       for n in range(10)))


class TestTrouble(HookCase):
    options = {'DEFAULT': {'claim_expiry_time': 3}}

    def wait_claim(self, guest):
        """Waits for a confirmed claim. After a slow start the next poll creates it."""
        wait_until(lambda: [one['state'] for one in self.agent.claims(guest)] == ['confirmed'], 30, 'the claim')

    @contextlib.contextmanager
    def starting(self, name):
        """Starts a guest whose hook waits for the paused agent, and yields the future of virsh's error message."""
        with concurrent.futures.ThreadPoolExecutor(1) as pool, self.agent.paused():
            words = pool.submit(virsh_words, self.libvirtd, 'start', name)
            wait_until(self.hook_pids, 60, 'the hook')
            yield words

    def pids_of(self, program):
        found = []
        for pid in self.libvirtd.processes():
            with contextlib.suppress(OSError):
                if os.path.basename(os.readlink('/proc/%d/exe' % pid)) == program:
                    found.append(pid)
        return found

    def hook_pids(self):
        return self.pids_of('computectl')

    def hook_asks(self):
        """Returns whether the hook has read its input and uses the bus."""
        for pid in self.hook_pids():
            with contextlib.suppress(OSError):
                if any(os.readlink(one).startswith('socket:') for one in Path('/proc/%d/fd' % pid).iterdir()):
                    return True
        return False

    def test_libvirtd_in_the_middle_of_a_start(self):
        guest = self.define('cut')
        with self.starting('cut') as words:
            wait_until(self.hook_asks, 60, 'the hook to ask')
            for pid in self.pids_of('libvirtd'):
                os.kill(pid, signal.SIGKILL)
            self.assertNotEqual(words.result(timeout=60), '')
        # The hook still runs, and claims for a guest that does not start.
        wait_until(lambda: not self.hook_pids(), 60, 'the hook to end')
        self.libvirtd.kill()
        self.libvirtd.start()
        self.assertEqual(self.libvirtd.virsh('list', '--name').split(), [])
        claimed = self.agent.ctl_json('claims', '--history')['claims']
        self.assertIn(guest, [claim['consumer'] for claim in claimed])
        wait_until(lambda: self.agent.claims() == [], 60, 'the claim to expire')
        self.wait_allocations({})
        self.assertEqual(self.start('cut'), '')
        self.wait_claim(guest)
        self.wait_allocations({guest: GUEST})

    def test_a_start_that_takes_longer_than_a_claim_lives(self):
        """The guest runs, so the next poll after the start counts it."""
        guest, slow = self.define('late'), self.libvirtd.folder / 'etc/hooks/qemu.d/slow'
        slow.write_text('#!/bin/sh\n[ "$2" = start ] && sleep 5\nexit 0\n')
        slow.chmod(0o755)
        self.addCleanup(slow.unlink)
        self.assertEqual(self.start('late'), '')
        wait_until(lambda: self.agent.claims(guest), 20, 'the claim')
        self.wait_claim(guest)
        self.wait_allocations({guest: GUEST})

    def test_the_agent_in_the_middle_of_a_start(self):
        for away, refused in (('allow', False), ('deny', True)):
            with self.subTest(away):
                guest = self.define(away)
                self.configure(when_agent_is_away=away)
                with self.starting(away) as words:
                    self.agent.kill()
                    # The hook can be in its call or just before it. The messages differ, and the result is the same.
                    self.assertEqual('compute-agent' in words.result(timeout=60), refused)
                self.agent.start('synced')
                expected = {} if refused else {guest: GUEST}
                wait_until(lambda: {one['consumer'] for one in self.agent.claims()} == set(expected), 60,
                           'the claims')
                # A guest that a poll finds running gets no allocation. A guest that claimed in time gets one.
                self.assertLessEqual(set(self.allocations()), set(expected))
                self.start_over()
                self.wait_allocations({})

    # Runs the hook with an input, and returns its exit code, its error message and its duration in seconds.
    def hook(self, operation, sub, xml, **kwargs):
        xml = xml if isinstance(xml, bytes) else xml.encode()
        begin = time.monotonic()
        done = subprocess.run(
            [build_folder() / 'computectl', '--config', self.agent.config, 'hook', 'vm', operation,
             sub, '-'], input=xml, env=self.agent.env(), capture_output=True, timeout=60,
            check=False, **kwargs)
        self.assertEqual(done.stdout, b'')
        refuse_sanitizers('computectl', done.stderr.decode(errors='replace'))
        return done.returncode, done.stderr.decode(errors='replace'), time.monotonic() - begin

    def test_hostile_domains_of_the_hook(self):
        good = guest_xml('vm', uuid=str(uuid.uuid4()))
        deep = '<domain>' + '<a>' * 100000
        for name, xml, code, words in (
                ('nothing', '', 1, ''), ('no XML', 'hello', 1, ''),
                ('cut', good[:100], 1, 'cannot read the domain of guest vm'),
                ('deep', deep, 1, ''), ('bomb', BOMB, 1, ''),
                ('another document', '<network><name>vm</name></network>', 1, ''),
                ('no room', guest_xml('vm', memory_mib=1 << 40, uuid=str(uuid.uuid4())), 1,
                 'no capacity on this host'),
                ('more CPUs than a number has', good.replace('<vcpu>1<', '<vcpu>%s<' % ('9' * 40)),
                 1, ''),
                ('no text', b'<domain>\xff\xfe</domain>', 0, 'UTF-8'),
                ('huge', 'x' * (5 << 20), 0, 'longer than'),
                ('big metadata', good.replace('<os>', '<metadata>%s</metadata><os>'
                                              % ('<x/>' * 150000)), 0, ''),
                ('an entity', '<!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/passwd">]>' +
                 good.replace('vm', '&x;', 1), 1, '')):
            with self.subTest(name):
                result, said, took = self.hook('prepare', 'begin', xml)
                self.assertEqual((result, words in said), (code, True), said[:2000])
                self.assertNotIn('root:', said)
                self.assertLess(took, 20)
                for operation, sub in (('started', 'begin'), ('migrate', 'begin'), ('reconnect', 'begin'), ('release', 'end')):
                    self.assertEqual(self.hook(operation, sub, xml)[0], 0)
        self.assertEqual(self.agent.claims(), [])
        self.assertTrue(self.agent.running())

    def test_an_input_that_never_ends(self):
        """The limit holds for each operation, and for a disabled hook."""
        for enabled in (True, False):
            self.configure(enabled=enabled, timeout=1, when_agent_is_away='deny')
            children = {}
            for operation, sub in (('prepare', 'begin'), ('release', 'end'), ('migrate', 'begin')):
                children[operation] = subprocess.Popen(
                    [build_folder() / 'computectl', '--config', self.agent.config, 'hook', 'vm',
                     operation, sub, '-'], env=self.agent.env(), stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                self.addCleanup(children[operation].kill)
            for operation, child in children.items():
                self.assertEqual(child.wait(30), int(enabled and operation == 'prepare'), operation)
                child.stdin.close()

    def install(self, name, *args):
        home = self.scratch.folder('home')
        return subprocess.run(
            ['virt-install', '--connect', self.libvirtd.uri, '--name', name, '--virt-type', 'qemu',
             '--import', '--disk', 'none', '--network', 'none', '--graphics', 'none',
             '--noautoconsole', '--osinfo', 'detect=off,require=off', *map(str, args)],
            env={**os.environ, 'HOME': str(home), 'LC_ALL': 'C'}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=120, check=False)

    def test_claims_and_releases(self):
        done = self.install('made', '--memory', 32, '--vcpus', 1)
        self.assertEqual(done.returncode, 0, done.stderr)
        guest = self.libvirtd.virsh('domuuid', 'made').strip()
        self.wait_claim(guest)
        self.wait_allocations({guest: GUEST})
        self.libvirtd.virsh('destroy', 'made')
        self.assertEqual(self.agent.claims(), [])
        self.wait_allocations({})

    def test_a_refusal_is_told(self):
        done = self.install('big', '--memory', 32, '--vcpus', 17)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('no capacity on this host for guest big: VCPU', done.stderr)
        self.assertEqual(self.agent.claims(), [])
