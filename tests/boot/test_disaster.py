# SPDX-License-Identifier: LGPL-2.1-or-later
"""What happens to every host sooner or later: no disk is left, no journal, and the clock is set."""

import re
import time

from tests.boot.case import BootCase
from tests.boot.machine import UNIT
from tests.env.clock import YEAR, write_offset
from tests.env.scratch import wait_until
from tests.env.shim import build_shim

STATE = '/var/lib/compute-agent'
JOURNAL = '/var/log/journal'
BALLAST = 'ballast'
SHIM = '/usr/local/lib/clock-shim.so'
OFFSET = '/usr/local/lib/clock-offset'
SET_CLOCK = ['LD_PRELOAD=' + SHIM, 'CLOCK_SHIM=' + OFFSET]
MESSAGE_CLOCK_JUMPED = '0f4d2c66b0d84a5f9a5b8a1f1e6f7c21'
METRICS = STATE + '/agent.prom'

setUpModule = BootCase.boot_and_serve


class Disaster(BootCase):
    def wait_claim(self):
        """A claim as soon as one can be had: what failed is tried again with the next cycle."""
        def claim():
            done = self.claim_cpu()
            return int(done.stdout) if done.returncode == 0 else None
        return wait_until(claim, 30, 'a claim')

    def start(self):
        """Start the service, however often it was started just before."""
        self.machine.run('systemctl', 'reset-failed', UNIT, check=False)
        self.machine.run('systemctl', 'start', UNIT)

    def fill(self, folder):
        """Leave not a byte on the file system of folder; removes what it wrote when the test ends."""
        path = '%s/%s' % (folder, BALLAST)
        self.addCleanup(self.machine.run, 'rm', '-f', path)
        self.machine.run('sh', '-c', 'cat /dev/zero >%s 2>/dev/null' % path, check=False)
        self.machine.run('sh', '-c', 'while echo >>%s; do :; done 2>/dev/null' % path, check=False)
        return path

    def own_file_system(self, folder, size):
        """Give folder a small file system of its own, with what is in it, until the test ends."""
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
        self.machine.run('computectl', 'status')
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

    def set_clock(self, seconds):
        """By how much the clock of the service is ahead of this machine's."""
        write_offset(self.machine.path(OFFSET), seconds)

    def give_it_a_clock(self):
        build_shim('clock', self.machine.path(SHIM))
        self.addCleanup(self.machine.run, 'rm', '-f', SHIM, OFFSET, METRICS)
        self.set_clock(0)
        self.configure('[DEFAULT]\nclaim_expiry_time = 120\n[agent]\nmetrics_file = %s\n' % METRICS)
        self.drop_in('[Service]\nWatchdogSec=4s\nEnvironment=%s\n' % ' '.join(SET_CLOCK))
        self.machine.wait_state('synced')

    def metric(self, name):
        return float(re.search(r'^compute_agent_%s (\S+)$' % name,
                               self.machine.path(METRICS).read_text(), re.M)[1])

    def check_times(self, ahead):
        """What status and metrics say of the last cycle is of just now, by the clock as it is."""
        now = time.time() + ahead
        self.assertAlmostEqual(self.metric('last_sync_timestamp_seconds'), now, delta=60)
        self.assertAlmostEqual(self.metric('last_poll_timestamp_seconds'), now, delta=60)
        text = self.machine.run('env', *SET_CLOCK, 'computectl', 'status').stdout
        self.assertRegex(text, r'last published .* UTC; (\d+s ago|now)')
        status = self.machine.ctl_json('status')
        self.assertEqual((status['state'], status['sync_state']), ('ok', 'synced'))
        self.assertAlmostEqual(status['last_sync_usec'] / 1e6, now, delta=60)

    def test_the_clock_is_set(self):
        self.give_it_a_clock()
        pid = self.machine.main_pid()
        claims = {int(self.claim_cpu().stdout)}
        for ahead in (YEAR, 0, -YEAR, 0):
            self.set_clock(ahead)
            n_cycles = self.metric('cycles_total')
            wait_until(lambda n=n_cycles: self.metric('cycles_total') > n + 3, 30, 'cycles, unasked')
            self.assertTrue(self.machine.ctl_json('sync')['published'])
            claims.add(int(self.claim_cpu().stdout))
            self.assertLessEqual(claims, self.claims())
            self.check_times(ahead)
        shown = self.machine.show('MainPID', 'ActiveState', 'NRestarts')
        self.assertEqual(shown, {'MainPID': str(pid), 'ActiveState': 'active', 'NRestarts': '0'})
        entries = self.machine.journal('_PID=%d' % pid, 'MESSAGE_ID=' + MESSAGE_CLOCK_JUMPED)
        self.assertEqual(len(entries), 4)
        bad = [entry['MESSAGE'] for entry in self.machine.journal('--priority=warning',
                                                                  '_PID=%d' % pid)]
        self.assertEqual(bad, [])
        for claim in claims:
            self.machine.run('computectl', 'release', claim)
