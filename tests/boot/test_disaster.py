# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests of the service with a full disk and without journal."""

from tests.boot.case import BootCase
from tests.boot.machine import UNIT
from tests.env.scratch import wait_until

STATE = '/var/lib/compute-agent'
JOURNAL = '/var/log/journal'
BALLAST = 'ballast'

setUpModule = BootCase.boot_and_serve


class Disaster(BootCase):
    def wait_claim(self):
        """Returns the number of a claim as soon as one succeeds. The agent reopens its database in the next cycle."""
        def claim():
            done = self.claim_cpu()
            return int(done.stdout) if done.returncode == 0 else None
        return wait_until(claim, 30, 'a claim')

    def start(self):
        """Starts the service without the limit of starts."""
        self.machine.run('systemctl', 'reset-failed', UNIT, check=False)
        self.machine.run('systemctl', 'start', UNIT)

    def fill(self, folder):
        """Fills the file system of folder completely. The end of the test removes the file."""
        path = '%s/%s' % (folder, BALLAST)
        self.addCleanup(self.machine.run, 'rm', '-f', path)
        self.machine.run('sh', '-c', 'cat /dev/zero >%s 2>/dev/null' % path, check=False)
        self.machine.run('sh', '-c', 'while echo >>%s; do :; done 2>/dev/null' % path, check=False)
        return path

    def own_file_system(self, folder, size):
        """Mounts a small file system with the same content at folder until the end of the test."""
        self.machine.run('sh', '-c', '''set -e
            mkdir -p %(folder)s
            rm -rf /mnt/kept
            cp -a %(folder)s /mnt/kept
            mount -t tmpfs -o size=%(size)s,mode=0755 tmpfs %(folder)s
            cp -a /mnt/kept/. %(folder)s''' % {'folder': folder, 'size': size})
        self.addCleanup(self.machine.run, 'umount', '--lazy', folder)

    def test_the_disk_of_the_claims_is_full(self):
        self.addCleanup(self.start)
        self.machine.run('systemctl', 'stop', UNIT)
        self.own_file_system(STATE, '2M')
        self.addCleanup(self.machine.run, 'systemctl', 'stop', UNIT)
        self.start()
        self.machine.wait_state('synced')
        pid = self.machine.main_pid()
        kept = int(self.claim_cpu().stdout)
        ballast = self.fill(STATE)

        done = self.claim_cpu()
        self.assertEqual(done.returncode, 1, done)
        self.assertIn('No space left', done.stderr)
        self.assertTrue(self.machine.ctl_json('sync')['published'])
        self.assertEqual(self.machine.main_pid(), pid)

        self.machine.run('rm', ballast)
        self.assertLessEqual({kept, self.wait_claim()}, self.claims())
        # The removal of an earlier claim failed without space. The next cycle sends it again.
        wait_until(lambda: self.machine.run('computectl', 'status', check=False).returncode == 0, 30, 'a good status')
        self.assertEqual(self.machine.main_pid(), pid)

    def test_a_start_with_a_full_disk(self):
        kept = int(self.claim_cpu().stdout)
        self.addCleanup(self.machine.run, 'computectl', 'release', kept)
        self.addCleanup(self.start)
        self.machine.run('systemctl', 'stop', UNIT)
        self.own_file_system(STATE, '2M')
        self.addCleanup(self.machine.run, 'systemctl', 'stop', UNIT)
        ballast = self.fill(STATE)
        self.start()
        wait_until(lambda: self.machine.ctl_json('sync')['published'], 30, 'a sync')
        done = self.claim_cpu()
        self.assertEqual(done.returncode, 1, done)
        self.assertIn('No space left', done.stderr)
        self.machine.run('rm', ballast)
        self.assertLessEqual({kept, self.wait_claim()}, self.claims())

    def test_the_journal_cannot_be_written(self):
        self.addCleanup(self.machine.run, 'systemctl', 'restart', 'systemd-journald')
        self.own_file_system(JOURNAL, '24M')
        self.machine.run('systemctl', 'restart', 'systemd-journald')
        self.machine.run('journalctl', '--flush')
        pid = self.machine.main_pid()
        ballast = self.fill(JOURNAL)
        self.addCleanup(self.machine.run, 'systemctl', 'service-log-level', UNIT, 'info')
        self.machine.run('systemctl', 'service-log-level', UNIT, 'debug')
        for _ in range(20):
            self.assertTrue(self.machine.ctl_json('sync')['published'])
        claim = int(self.claim_cpu().stdout)
        self.machine.run('computectl', 'release', claim)
        self.assertEqual(self.machine.main_pid(), pid)
        self.machine.run('rm', ballast)
        self.machine.run('systemctl', 'restart', 'systemd-journald')
        wait_until(lambda: self.machine.ctl_json('sync')['published'] and
                   self.machine.journal('--since=-1min'), 30, 'lines in the journal again')
        self.assertEqual(self.machine.main_pid(), pid)
