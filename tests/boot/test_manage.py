# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests of an operator's work on the running service: reload, log level, rights."""

import os
import select
import subprocess
import uuid
from pathlib import Path

from tests.boot.case import BootCase
from tests.boot.machine import UNIT
from tests.env.libvirtd import guest_xml
from tests.env.scratch import wait_until

setUpModule = BootCase.boot_and_serve
NOVA_RULE = Path(__file__).resolve().parents[2] / 'plugins/nova/50-compute-agent-nova.rules'


class Reload(BootCase):
    def providers(self):
        return {p['name'] for p in self.machine.ctl_json('tree')['providers']}

    def reserved(self):
        uuid_ = self.machine.run('cat', '/var/lib/compute-agent/compute_id').stdout.strip()
        answer = self.placement.request('GET', '/resource_providers/%s/inventories' % uuid_).json
        return answer['inventories']['MEMORY_MB']['reserved']

    def test_a_good_one_is_in_force_when_it_returns(self):
        pid = self.machine.main_pid()
        claim = int(self.claim_cpu().stdout)
        self.assertEqual(self.reserved(), 512)
        self.configure('[DEFAULT]\nreserved_host_memory_mb = 1024\n')
        self.machine.run('systemctl', 'reload', UNIT)
        self.assertEqual(self.reserved(), 1024)
        self.assertEqual(self.machine.sync_state(), 'synced')
        self.assertEqual(self.machine.main_pid(), pid)
        self.assertIn(claim, self.claims())
        self.assertIn('The configuration was reloaded',
                      self.machine.journal_text('--catalog', '--lines=20'))
        self.machine.run('computectl', 'release', claim)

    def test_standalone_and_back(self):
        self.configure(placement=False)
        self.machine.run('computectl', 'reload')
        self.assertEqual(self.machine.sync_state(), 'standalone')
        self.machine.configure()
        self.machine.run('computectl', 'reload')
        self.assertEqual(self.machine.sync_state(), 'synced')

    def test_a_bad_one_is_refused_and_changes_nothing(self):
        self.configure('[placement]\nmax_connections = many\n')
        done = self.machine.run('systemctl', 'reload', UNIT, check=False)
        self.assertNotEqual(done.returncode, 0)
        done = self.machine.run('computectl', 'reload', check=False)
        self.assertRegex(done.stderr, r'compute-agent\.conf:\d+: \[placement\] max_connections')
        self.assertEqual(done.returncode, 1)
        shown = self.machine.show('ActiveState', 'SubState')
        self.assertEqual((shown['ActiveState'], shown['SubState']), ('active', 'running'))
        self.assertTrue(self.machine.ctl_json('sync')['published'])
        self.assertIn('The configuration was not reloaded',
                      self.machine.journal_text('--catalog', '--lines=30'))

    def test_many_reloads_leak_nothing(self):
        pid = self.machine.main_pid()
        count = 'ls /proc/%d/fd | wc -l; ls /proc/%d/task | wc -l' % (pid, pid)

        def counted():
            return [int(line) for line in self.machine.run('sh', '-c', count).stdout.splitlines()]
        self.machine.run('computectl', 'reload')
        before = counted()
        for _ in range(8):
            self.machine.run('computectl', 'reload')
        # At either time one more connection to Placement can be open. A leak would add one for each reload.
        self.assertLess(max(now - then for now, then in zip(counted(), before, strict=True)), 4)
        self.assertEqual(self.machine.main_pid(), pid)


class LogLevel(BootCase):
    def test_systemctl_service_log_level(self):
        def level(*args):
            return self.machine.run('systemctl', 'service-log-level', UNIT, *args).stdout.strip()
        self.assertEqual(level(), 'info')
        level('debug')
        self.assertEqual(level(), 'debug')
        self.machine.run('computectl', 'sync')
        self.assertTrue(self.machine.journal('--priority=debug..debug'))
        self.machine.run('computectl', 'reload')
        self.assertEqual(level(), 'info')
        target = self.machine.run('systemctl', 'service-log-target', UNIT).stdout.strip()
        self.assertEqual(target, 'journal')

    def test_changes_need_a_right(self):
        done = self.machine.run('busctl', 'set-property', 'org.computeagent.Agent1',
                                '/org/freedesktop/LogControl1', 'org.freedesktop.LogControl1',
                                'LogLevel', 's', 'debug', user='nobody', check=False)
        self.assertRegex(done.stderr, '[Aa]ccess.*denied|not allowed|Permission')


class Hook(BootCase):
    """Runs the hook as libvirt does: /etc/libvirt/hooks/qemu.d/NAME, no environment, the XML on standard input."""

    def hook(self, operation, sub_operation, xml):
        return self.machine.run('env', '-i', '/etc/libvirt/hooks/qemu.d/compute-agent', 'vm',
                                operation, sub_operation, '-', input=xml, check=False)

    def test_off_and_on(self):
        guest = str(uuid.uuid4())
        small, big = (guest_xml('vm', vcpus=n, uuid=guest) for n in (1, 1000))
        self.assertEqual(self.hook('prepare', 'begin', big).returncode, 0)
        self.configure('[hook]\nenabled = true\n')
        self.machine.run('systemctl', 'reload', UNIT)
        done = self.hook('prepare', 'begin', big)
        self.assertEqual((done.returncode, done.stdout), (1, ''))
        self.assertIn('no capacity on this host for guest vm: VCPU', done.stderr)
        for step, state in ((('prepare', 'begin'), ['claimed']),
                            (('started', 'begin'), ['confirmed']), (('release', 'end'), [])):
            done = self.hook(*step, small)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, '', ''))
            claims = self.machine.ctl_json('claims')['claims']
            self.assertEqual([one['state'] for one in claims if one['consumer'] == guest], state)
        text = self.machine.journal_text('--catalog', '--lines=30')
        self.assertIn('A guest cannot start on this host', text)


class Rights(BootCase):
    def test_a_polkit_rule_allows_claims_alone(self):
        self.assertIn('Permission denied', self.claim_cpu('nobody').stderr)
        self.allow_claims('nobody')
        done = self.claim_cpu('nobody')
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        self.machine.run('computectl', 'release', done.stdout.strip(), user='nobody')
        done = self.machine.run('computectl', 'sync', user='nobody', check=False)
        self.assertIn('Permission denied', done.stderr)

    def claim_placed(self, user, consumer):
        """Asks for the devices of a server as the driver for Nova does. Returns the words of dbus-send."""
        return self.machine.run('dbus-send', '--system', '--print-reply=literal', '--dest=org.computeagent.Agent1',
                                '/org/computeagent/Agent1', 'org.computeagent.Agent1.ClaimPlaced',
                                'string:%s' % consumer, 'array:string:CUSTOM_NONE', user=user, check=False).stderr

    def test_nova_can_ask_for_devices_of_placed_servers_alone(self):
        """The rule of the package compute-agent-nova."""
        path = '/usr/share/polkit-1/rules.d/50-compute-agent-nova.rules'
        self.machine.run('useradd', '--system', 'nova')
        self.addCleanup(self.machine.run, 'userdel', 'nova')
        consumer = uuid.uuid4()
        self.assertIn('Error org.freedesktop.DBus.Error.', self.claim_placed('nova', consumer))
        self.machine.write(path, NOVA_RULE.read_text())
        self.addCleanup(self.machine.run, 'systemctl', 'restart', 'polkit')
        self.addCleanup(self.machine.run, 'rm', path)
        self.machine.run('systemctl', 'restart', 'polkit')
        self.assertIn('Error org.computeagent.Agent1.Error.NotPlaced: ', self.claim_placed('nova', consumer))
        self.assertIn('Error org.freedesktop.DBus.Error.', self.claim_placed('nobody', consumer))
        self.assertIn('Permission denied', self.claim_cpu('nova').stderr)
        done = self.machine.run('computectl', 'sync', user='nova', check=False)
        self.assertIn('Permission denied', done.stderr)

    def sync_on_a_terminal(self, password):
        """Runs "computectl sync" in its own session, whose terminal script(1) makes. Returns the output."""
        session = self.machine.inside('systemd-run', '--pipe', '--wait', '--quiet', '--uid=sam', '--property=PAMName=login',
                                      'timeout', '--signal=KILL', '50',
                                      'script', '--return', '--quiet', '--command', 'computectl sync; echo left with $?',
                                      '/dev/null')
        with subprocess.Popen(session, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            text, n_asked = b'', 0
            while True:
                # polkit's agent discards input that it received before it turned echo off. Without an answer, type the password again.
                prompts = text.count(b'Password: ')
                if prompts > n_asked or (prompts and not select.select([process.stdout], [], [], 5)[0]):
                    n_asked = prompts
                    process.stdin.write(password.encode() + b'\n')
                    process.stdin.flush()
                    continue
                part = os.read(process.stdout.fileno(), 4096)
                if not part:
                    break
                text += part
        return text.decode()

    def test_polkit_asks_on_the_terminal(self):
        self.machine.run('useradd', 'sam')
        self.addCleanup(self.machine.run, 'userdel', '--force', 'sam')
        self.machine.run('chpasswd', input='root:secret\n')
        self.addCleanup(self.machine.run, 'passwd', '--lock', 'root')
        text = self.sync_on_a_terminal('wrong')
        self.assertIn('AUTHENTICATING FOR org.computeagent.manage', text)
        self.assertIn('Permission denied', text)
        self.assertIn('left with 1', text)
        text = self.sync_on_a_terminal('secret')
        self.assertRegex(text, r'[Pp]ublished: .*\s+left with 0')

    def test_without_polkit_only_root_can_make_changes(self):
        self.machine.run('systemctl', 'mask', '--runtime', '--now', 'polkit')
        self.addCleanup(self.machine.run, 'systemctl', 'start', 'polkit')
        self.addCleanup(self.machine.run, 'systemctl', 'unmask', '--runtime', 'polkit')
        self.assertIn('Permission denied', self.claim_cpu('nobody').stderr)
        # libvirt then refuses a connection of the agent, and the cordon is published with the previous data.
        self.machine.run('computectl', 'cordon')
        self.machine.run('computectl', 'uncordon')
        self.machine.run('computectl', 'tree', user='nobody')
        done = self.machine.run('computectl', 'sync', check=False)
        self.assertIn('Sync failed: Cannot read the domain capabilities again', done.stderr)


class Guests(BootCase):
    """Guests that are not in libvirtd, with the packaged service."""

    def claim_of(self, *options):
        consumer = str(uuid.uuid4())
        self.machine.run('computectl', 'claim', '--consumer', consumer, '--resources', 'VCPU=1', *options)
        return consumer

    def state_of(self, consumer):
        return next((claim['state'] for claim in self.machine.ctl_json('claims')['claims'] if claim['consumer'] == consumer), None)

    def test_units_and_processes(self):
        self.configure('[DEFAULT]\nclaim_expiry_time = 6\n')
        self.restart()
        self.machine.wait_state('synced')
        pid_file = '/run/guest.pid'
        for unit, slice_ in (('guest-a', 'system'), ('guest-b', 'guests')):
            self.machine.run('systemd-run', '--quiet', '--uid=nobody', '--unit=' + unit, '--slice=' + slice_, 'sleep', 'infinity')
            self.addCleanup(self.machine.run, 'systemctl', 'stop', unit, check=False)
        self.machine.write(pid_file, self.machine.show('MainPID', unit='guest-b.service')['MainPID'] + '\n')
        self.addCleanup(self.machine.run, 'rm', pid_file)
        consumers = [self.claim_of('--unit', 'guest-a'), self.claim_of('--unit', 'guest-b.service'), self.claim_of('--pid-file', pid_file)]
        for consumer in consumers:
            wait_until(lambda: self.state_of(consumer) == 'confirmed', 60, 'the claim to be confirmed')
        # A unit that restarts in time is the same guest. A new process is another guest.
        self.machine.run('systemctl', 'restart', 'guest-b')
        self.machine.run('systemctl', 'stop', 'guest-a')
        for consumer in (consumers[0], consumers[2]):
            wait_until(lambda: self.state_of(consumer) is None, 60, 'the claim to end')
        self.assertEqual(self.state_of(consumers[1]), 'confirmed')
        done = self.machine.run('computectl', 'claim', '--consumer', consumers[0], '--resources', 'VCPU=1', '--unit', 'guest-a', check=False)
        self.assertIn('guest-a.service not loaded', done.stderr)

    def test_a_process_that_is_hidden(self):
        self.drop_in('[Service]\nProtectProc=invisible\n')
        self.machine.wait_state('synced')
        self.machine.write('/run/guest.pid', '1\n')
        self.addCleanup(self.machine.run, 'rm', '/run/guest.pid')
        done = self.machine.run('computectl', 'claim', '--consumer', str(uuid.uuid4()), '--resources', 'VCPU=1',
                                '--pid-file', '/run/guest.pid', check=False)
        self.assertIn('Process 1 is hidden from the service', done.stderr)
