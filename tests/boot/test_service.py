# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests of the service under systemd, with the packaged unit file and its hardening."""

import contextlib
import json
import os
import re
import signal
import socket
import threading
import uuid
from pathlib import Path

from tests.boot.case import BootCase
from tests.boot.machine import ENDPOINT, UNIT
from tests.env.scratch import wait_until

MESSAGE_PUBLISHED = '6a2f4d0a3c5b4b6f8a7d1f6f0b9d3c11'
CALL = ['busctl', 'call', 'org.computeagent.Agent1', '/org/computeagent/Agent1',
        'org.computeagent.Agent1']
KILLS = int(os.environ.get('COMPUTE_AGENT_KILLS', '12'))
REFUSED = 'Access denied|Interactive authentication'
READS = {'Describe', 'Explain'}
DOCUMENTS = ('status', 'tree', 'host', 'claims', 'history', 'events', 'problems', 'plan', 'audit')
CHANGES = {'Claim', 'ClaimPlaced', 'Confirm', 'Extend', 'Abort', 'Release', 'ReleaseAllocations', 'MoveClaim',
           'PrepareGuest', 'CheckGuest', 'GuestStarted', 'GuestReleased', 'Sync', 'SyncFull', 'Reload', 'GetReshape',
           'Reshape', 'UndoReshape', 'GetRetire', 'Retire', 'UndoRetire', 'Audit', 'Heal', 'HealConsumer',
           'Cordon', 'Uncordon', 'Cancel'}


def split_signature(signature):
    """Returns the complete types of a D-Bus signature. Structs are not supported, because no method has one outside of an array."""
    return re.findall(r'a+(?:\{[^}]*\}|\((?:[^()]|\([^()]*\))*\)|\w)|\w', signature)


def some_arguments(signature):
    """Returns arguments of this signature for busctl: empty arrays, ones and 'false'."""
    if not signature:
        return []
    values = [{'a': '0', 'b': 'false', 's': ''}.get(kind[0], '1')
              for kind in split_signature(signature)]
    return [signature, *values]


# Valid arguments of methods that check them before the rights of the caller.
SENSIBLE = {'Claim': ['sa(sa{st}asas)a{sv}', '00000000-0000-4000-8000-000000000001', '1', '', '1', 'VCPU', '1', '0', '0', '0'],
            'ClaimPlaced': ['sas', '00000000-0000-4000-8000-000000000001', '1', 'CUSTOM_X']}

setUpModule = BootCase.boot_and_serve


class Start(BootCase):
    def check_config(self, code=0):
        done = self.machine.run('computectl', 'doctor', '--config-only', '--all', check=False)
        self.assertEqual(done.returncode, code, done.stdout)
        return done

    def test_ready_status_and_published(self):
        shown = self.machine.show('Type', 'ActiveState', 'SubState', 'StatusText', 'UnitFileState')
        self.assertEqual((shown['Type'], shown['ActiveState'], shown['SubState'],
                          shown['UnitFileState']), ('notify', 'active', 'running', 'enabled'))
        self.assertIn('Placement', shown['StatusText'])
        answer = self.placement.request('GET', '/resource_providers').json
        names = sorted(p['name'] for p in answer['resource_providers'])
        self.assertEqual(names, ['demo', 'demo_pci_0000_41_00_0', 'demo_pci_0000_81_00_0'])

    def test_works_unprivileged_and_without_a_warning(self):
        status = self.machine.run('cat', '/proc/%d/status' % self.machine.main_pid()).stdout
        fields = dict(line.split(':', 1) for line in status.splitlines())
        self.assertNotEqual(fields['Uid'].split()[0], '0')
        self.assertEqual(int(fields['CapEff'], 16), 0)
        self.assertEqual(fields['NoNewPrivs'].strip(), '1')
        self.assertEqual(fields['Seccomp'].strip(), '2')
        group = self.machine.run('getent', 'group', 'libvirt').stdout.split(':')[2]
        self.assertIn(group, fields['Groups'].split())
        self.machine.run('computectl', 'status')
        self.assertTrue(self.machine.ctl_json('sync')['published'])
        pid = self.machine.main_pid()
        bad = [entry['MESSAGE'] for entry in self.machine.journal('--priority=warning',
                                                                  '_PID=%d' % pid)]
        self.assertEqual(bad, [])

    def test_systemd_analyze(self):
        self.machine.run('systemd-analyze', 'verify', UNIT)
        self.machine.run('systemd-analyze', 'security', '--threshold=15', UNIT)

    def test_journal_has_fields_and_catalogue(self):
        root = self.machine.run('cat', '/var/lib/compute-agent/compute_id').stdout.strip()
        entries = self.machine.journal('MESSAGE_ID=' + MESSAGE_PUBLISHED)
        self.assertGreater(len(entries), 0)
        self.assertEqual(entries[0]['AGENT_PROVIDER_UUID'], root)
        self.assertEqual(entries[0]['PRIORITY'], '6')
        self.assertEqual(entries[0]['_SYSTEMD_UNIT'], UNIT)
        self.assertEqual(entries[0]['SYSLOG_IDENTIFIER'], 'compute-agentd')
        text = self.machine.journal_text('--catalog', 'MESSAGE_ID=' + MESSAGE_PUBLISHED)
        self.assertIn('The resource providers of this host were published', text)
        self.assertIn('below %s is equal to the host' % root, text)

    def test_the_journal_names_the_caller(self):
        consumer, device = str(uuid.uuid4()), 'demo_pci_0000_81_00_0'
        claim = json.loads(self.machine.run('systemd-run', '--quiet', '--wait', '--pipe', '--unit=nightly', 'computectl', 'claim', '--json=short',
                                            '--consumer', consumer, '--resources', 'VGPU=1').stdout)
        self.machine.run('computectl', 'release', str(claim['id']), '--reason', 'over')
        claimed, released, *removals = self.machine.journal('AGENT_CONSUMER=' + consumer)
        for entry in removals:  # the removal from Placement can be complete already
            self.assertIn('Removing the allocations of ' + consumer, entry['MESSAGE'])
        for entry in (claimed, released):
            self.assertEqual(entry['AGENT_CLAIM_ID'], str(claim['id']))
            self.assertEqual(entry['AGENT_DEVICE'], claim['devices'][0]['device'])
            self.assertRegex(entry['AGENT_CALLER'], r'^root \(computectl, pid \d+')
            self.assertIn(entry['AGENT_CALLER'], entry['MESSAGE'])
            self.assertIn('VGPU=1 of demo_pci_0000_', entry['MESSAGE'])
        self.assertRegex(claimed['AGENT_CALLER'], r', nightly\.service\)$')
        self.assertIn(': over; ', released['MESSAGE'])
        self.machine.run('computectl', 'cordon', device, '--reason', 'smoke')
        self.addCleanup(self.machine.run, 'computectl', 'uncordon', device)
        entry = self.machine.journal('AGENT_DEVICE=' + device)[-1]
        self.assertEqual(entry['MESSAGE'], 'Device %s was cordoned by root: smoke.' % device)
        said = self.machine.journal('MESSAGE_ID=' + MESSAGE_PUBLISHED)[-1]['MESSAGE']
        self.assertRegex(said, r'^Published 3 resource providers of demo with \d writes?: .*%s' % device)

    def test_a_request_is_found_in_the_servers_log(self):
        path = '/etc/compute-agent/compute-agent.conf.d/debug.conf'
        self.addCleanup(self.machine.run, 'systemctl', 'reload', UNIT)
        self.addCleanup(self.machine.run, 'rm', path)
        self.machine.write(path, '[DEFAULT]\ndebug = true\n')
        self.machine.run('systemctl', 'reload', UNIT)
        self.machine.run('computectl', 'sync')
        entry = self.machine.journal('AGENT_HTTP_STATUS=200')[-1]
        self.assertRegex(entry['AGENT_REQUEST_ID'], '^req-')
        self.assertRegex(entry['MESSAGE'], r'^GET /\S+: 200 \(%s\)$' % entry['AGENT_REQUEST_ID'])

    def test_the_token_as_a_credential(self):
        self.configure(token=False)
        self.machine.write('/etc/compute-agent/placement-token', 'admin\n', 0o600)
        self.addCleanup(self.machine.run, 'rm', '-f', '/etc/compute-agent/placement-token')
        self.drop_in('[Service]\n'
                     'LoadCredential=placement-token:/etc/compute-agent/placement-token\n')
        self.machine.wait_state('synced')
        pid = self.machine.main_pid()
        everything = self.machine.run('cat', '/proc/%d/environ' % pid,
                                      '/proc/%d/cmdline' % pid).stdout
        self.assertNotIn('admin', everything)
        changed = '/etc/compute-agent/placement-token (credential placement-token) changed after the start of the service'
        self.assertNotIn(changed, self.check_config().stdout)
        self.machine.run('touch', '-d', '+2 seconds', '/etc/compute-agent/placement-token')
        self.assertNotIn(changed, self.check_config().stdout)  # the content is unchanged
        self.machine.write('/etc/compute-agent/placement-token', 'rotated\n', 0o600)
        self.assertIn(changed, self.check_config(code=4).stdout)
        doctor = self.machine.run('computectl', 'doctor', '--all', check=False)
        self.assertEqual(doctor.returncode, 4, doctor.stdout)
        self.assertRegex(' '.join(doctor.stdout.split()), 'warning credentials ' + re.escape(changed))
        self.assertIn('systemctl restart compute-agent', self.machine.run('computectl', 'reload').stderr)
        # Programs that a user starts while the service is stopped read the file, as the next start does.
        self.machine.write('/etc/compute-agent/placement-token', 'admin\n', 0o600)
        self.machine.run('systemctl', 'stop', UNIT)
        for argv in (['computectl', 'doctor', '--config-only'], ['computectl', 'identity', 'show'],
                     ['compute-agentd', '--dry-run']):
            self.machine.run(*argv)
        self.assertNotIn(changed, self.check_config().stdout)
        done = self.machine.run('compute-agentd', '--dry-run', check=False, user='compute-agent')
        self.assertIn('token is not set, and there is no credential', done.stderr)

    def test_doctor_names_the_configuration_file_of_the_unit(self):
        path = '/etc/compute-agent/other.conf'
        self.machine.run('cp', '--preserve=mode,ownership', '/etc/compute-agent/compute-agent.conf', path)
        self.addCleanup(self.machine.run, 'rm', '-f', path)
        self.drop_in('[Service]\nExecStart=\nExecStart=/usr/sbin/compute-agentd --config=%s\n' % path)
        self.machine.wait_state('synced')
        self.assertIn('starts the agent with --config=%s' % path, ' '.join(self.check_config(code=4).stdout.split()))
        done = self.machine.run('computectl', 'doctor', '--config-only', '--all', '--config', path)
        self.assertNotIn('starts the agent with', done.stdout)

    def test_secrets_of_keystone_as_credentials(self):
        """The agent reads the secrets of Keystone from credentials. Keystone runs outside, and a proxy of systemd forwards 127.0.0.1 to
        it."""
        keystone = Recorder(Path(self.placement.socket_path).with_name('keystone.sock'))
        self.addCleanup(keystone.close)
        self.machine.run('systemd-run', '--unit=keystone-proxy', 'systemd-socket-activate',
                         '--listen=127.0.0.1:5000', '/lib/systemd/systemd-socket-proxyd',
                         '/outside/keystone.sock')
        self.addCleanup(self.machine.run, 'systemctl', 'stop', 'keystone-proxy.service')
        common = ('[placement]\nauth_url = http://127.0.0.1:5000\n'
                  'endpoint_override = %s\n' % ENDPOINT)
        for kind, name, more in (
                ('password', 'placement-password',
                 'username = agent\nuser_domain_id = default\nproject_name = service\n'
                 'project_domain_id = default\n'),
                ('v3applicationcredential', 'placement-application-credential-secret',
                 'application_credential_id = 21dced0fd20347869b93710d2b98aae0\n')):
            secret = 'secret-of-' + kind
            self.configure('%sauth_type = %s\n%s' % (common, kind, more), placement=False)
            self.machine.write('/etc/compute-agent/secret', secret + '\n', 0o600)
            self.addCleanup(self.machine.run, 'rm', '-f', '/etc/compute-agent/secret')
            self.drop_in('[Service]\nLoadCredential=%s:/etc/compute-agent/secret\n' % name)
            wait_until(lambda: secret in keystone.bodies(), 30, 'the secret', step=0.2)
            self.machine.wait_state('offline')
            pid = self.machine.main_pid()
            self.assertNotIn(secret, self.machine.run('cat', '/proc/%d/environ' % pid,
                                                      '/proc/%d/cmdline' % pid).stdout)
            self.assertNotIn(secret, self.machine.journal_text())
            done = self.machine.run('runuser', '-u', 'compute-agent', 'cat',
                                    '/etc/compute-agent/secret', check=False)
            self.assertIn('Permission denied', done.stderr)


class Recorder:
    """Answers 401 to each request over a Unix socket, and stores the requests."""

    def __init__(self, path):
        self._said = []
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        path.chmod(0o666)
        self._socket.listen(8)
        self._path = path
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self):
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            with client, contextlib.suppress(OSError):
                client.settimeout(10)
                self._said.append(self._read(client))
                client.sendall(b'HTTP/1.1 401 Unauthorized\r\nContent-Type: application/json\r\n'
                               b'Connection: close\r\nContent-Length: 2\r\n\r\n{}')

    @staticmethod
    def _read(client):
        text = b''
        while b'\r\n\r\n' not in text:
            text += client.recv(65536) or b'\r\n\r\n'
        head, _, body = text.partition(b'\r\n\r\n')
        length = int((re.findall(rb'(?i)content-length: *(\d+)', head) or [b'0'])[0])
        while len(body) < length:
            part = client.recv(65536)
            if not part:
                break
            body += part
        return body.decode()

    def bodies(self):
        return '\n'.join(self._said)

    def close(self):
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()
        self._path.unlink()


class Trouble(BootCase):
    def claim(self):
        """Claims a CPU. Returns the number of the claim, or None if the agent did not answer."""
        done = self.claim_cpu()
        return int(done.stdout) if done.returncode == 0 else None

    def kill(self, number):
        pid = self.machine.main_pid()
        self.machine.run('kill', '-' + number.name[3:], pid)
        return pid

    def test_watchdog_bites_and_it_is_restarted(self):
        self.drop_in('[Service]\nWatchdogSec=2s\n')
        claim = self.claim()
        old = self.kill(signal.SIGSTOP)
        self.machine.wait_new_pid(old, 30)
        self.machine.wait_state('synced')
        self.assertIn('Watchdog timeout', self.machine.journal_text())
        self.assertIn(claim, self.claims())

    def test_a_bad_configuration_is_not_tried_again(self):
        self.configure('[placement]\nmax_connections = many\n')
        done = self.machine.run('systemctl', 'restart', UNIT, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.machine.run('sleep', '3')
        shown = self.machine.show('ActiveState', 'ExecMainStatus', 'NRestarts')
        self.assertEqual((shown['ActiveState'], shown['ExecMainStatus'], shown['NRestarts']),
                         ('failed', '78', '0'))
        text = self.machine.journal_text('--catalog', '--lines=30')
        self.assertRegex(text, r'compute-agent\.conf:\d+: \[placement\] max_connections')
        self.assertIn('The configuration cannot be used', text)

    def test_claims_survive_kills_under_load(self):
        self.drop_in('[Unit]\nStartLimitIntervalSec=0\n[Service]\nRestartSec=100ms\n')
        n_kept, promised = 0, set()
        for _ in range(KILLS):
            promised |= {self.claim(), self.claim()}
            pid = self.kill(signal.SIGKILL)
            promised.add(self.claim())  # most often the agent does not answer
            self.machine.wait_new_pid(pid, 30)
            wait_until(lambda: self.machine.sync_state() in ('synced', 'pending'), 20,
                       'the bus name', step=0.1)
            if len(promised) > 20:  # the host has 64
                n_kept += self.release_promised(promised)
                promised = set()
        n_kept += self.release_promised(promised)
        self.assertGreaterEqual(n_kept, KILLS)

    def release_promised(self, promised):
        """Checks that each claim in promised exists, and releases all claims. Returns the number of promised claims."""
        promised.discard(None)
        self.assertLessEqual(promised, self.claims())
        for claim in self.claims():
            self.machine.run('computectl', 'release', claim)
        return len(promised)

    def test_placement_goes_and_comes_back(self):
        self.machine.wait_state('synced')
        before = len(self.machine.journal())
        self.placement.kill()
        self.machine.wait_state('offline')
        self.assertIsNotNone(self.claim())
        self.machine.run('sleep', '6')
        self.placement.start()
        self.machine.wait_state('synced', 60)
        self.assertLess(len(self.machine.journal()) - before, 8)

    def test_libvirtd_goes_and_comes_back(self):
        sockets = ['libvirtd.socket', 'libvirtd-ro.socket', 'libvirtd-admin.socket']
        self.machine.wait_state('synced')
        self.machine.run('systemctl', 'stop', *sockets, 'libvirtd.service')
        wait_until(lambda: self.machine.ctl_json('status', check=False)['hypervisor_error'], 30,
                   'the error', step=0.2)
        self.assertEqual(len(self.machine.ctl_json('tree')['providers']), 3)
        self.machine.run('systemctl', 'start', *sockets, 'libvirtd.service')
        wait_until(lambda: not self.machine.ctl_json('status', check=False)['hypervisor_error'],
                   60, 'the hypervisor to be polled', step=0.2)
        self.machine.wait_state('synced', 60)

    def test_the_bus_goes_and_comes_back(self):
        pid = self.machine.main_pid()
        self.machine.run('systemctl', 'restart', 'dbus.service')
        # systemd-logind does not reconnect to a restarted bus. Each time libvirtd of Debian 13 asks it for the abilities of the host, the
        # call takes 25 s.
        self.machine.run('systemctl', 'restart', 'systemd-logind.service')
        self.machine.wait_state('synced', 60)
        self.assertEqual(self.machine.main_pid(), pid)


class Checks(BootCase):
    """The checks before a start find the errors that would make the start fail."""

    def check_fails(self, words):
        """Asserts that each check prints these words and that the start fails with them."""
        for argv in (['computectl', 'doctor', '--config-only', '--all'], ['computectl', 'doctor', '--hardware-only'], ['compute-agentd', '--dry-run']):
            done = self.machine.run(*argv, check=False)
            self.assertNotEqual(done.returncode, 0, argv)
            self.assertIn(words, ' '.join((done.stdout + done.stderr).split()), argv)
        self.machine.run('systemctl', 'restart', UNIT, check=False)
        wait_until(lambda: self.machine.show('ActiveState')['ActiveState'] == 'failed', 10, 'failed')
        self.assertEqual(self.machine.show('ExecMainStatus')['ExecMainStatus'], '78')
        doctor, status = (self.machine.run('computectl', verb, '--all', check=False) for verb in ('doctor', 'status'))
        self.assertEqual((doctor.returncode, status.returncode), (3, 3))
        self.assertIn('compute-agent failed: ' + words, ' '.join(status.stdout.split()))
        self.assertNotIn('systemctl start', status.stdout)
        page = ' '.join(doctor.stdout.split())
        self.assertRegex(page, 'bad configuration .*' + re.escape(words))
        self.assertRegex(page, 'bad service The service failed to start. compute-agent failed: ' + re.escape(words))

    def test_a_configuration_that_the_service_cannot_read(self):
        path = '/etc/compute-agent/compute-agent.conf'
        self.addCleanup(self.restart)
        self.addCleanup(self.machine.configure)
        self.machine.run('chown', 'root:root', path)
        self.machine.run('chmod', '0600', path)
        for argv in (['computectl', 'doctor', '--config-only', '--all'], ['computectl', 'doctor', '--hardware-only'], ['compute-agentd', '--dry-run']):
            done = self.machine.run(*argv, check=False)
            self.assertNotEqual(done.returncode, 0, argv)
            self.assertIn("%s: the service's user compute-agent cannot read it: Permission denied" % path,
                          ' '.join((done.stdout + done.stderr).split()), argv)
        self.machine.run('systemctl', 'restart', UNIT, check=False)
        wait_until(lambda: self.machine.show('ActiveState')['ActiveState'] == 'failed', 10, 'failed')
        self.assertEqual(self.machine.show('ExecMainStatus')['ExecMainStatus'], '78')
        status = self.machine.run('computectl', check=False)
        self.assertEqual(status.returncode, 3)
        self.assertRegex(' '.join(status.stdout.split()), 'compute-agent failed: .*%s.*Permission denied' % path)
        doctor = self.machine.run('computectl', 'doctor', '--all', check=False)
        self.assertEqual(doctor.returncode, 3)
        self.assertRegex(' '.join(doctor.stdout.split()), "bad configuration %s: the service's user" % path)

    def test_a_bad_value(self):
        self.configure('[DEFAULT]\ncpu_allocation_ratio = many\n')
        self.check_fails('/etc/compute-agent/compute-agent.conf:')

    def test_a_credential_that_the_unit_does_not_load(self):
        path = '/etc/compute-agent/placement-token'
        self.configure(token=False)
        self.machine.write(path, 'admin\n', 0o600)
        self.addCleanup(self.machine.run, 'rm', '-f', path)
        for argv in (['computectl', 'doctor', '--config-only', '--all'], ['computectl', 'doctor', '--hardware-only']):
            done = self.machine.run(*argv, check=False)
            self.assertNotEqual(done.returncode, 0, argv)
            self.assertIn('no LoadCredential= for this file: ' + path, ' '.join((done.stdout + done.stderr).split()))

    def test_reload_and_status_name_a_warning(self):
        self.configure('[agent]\nlog_levle = info\n')
        done = self.machine.run('computectl', 'reload')
        self.assertIn('unknown option [agent] log_levle', done.stderr)
        status = wait_until(lambda: next((done for done in [self.machine.run('computectl', check=False)]
                                          if 'log_levle' in done.stdout), None), 30, 'the warning')
        self.assertEqual(status.returncode, 4)
        self.assertEqual(self.machine.run('computectl', 'doctor', check=False).returncode, 4)


class Stranger(BootCase):
    def signatures(self):
        """Returns the methods of the running daemon, as {name: signature of the arguments}."""
        out = self.machine.run('busctl', 'introspect', *CALL[2:5]).stdout
        found = dict(re.findall(r'^\.(\w+)\s+method\s+(\S+)', out, re.M))
        return {name: '' if takes == '-' else takes for name, takes in found.items()}

    def call_as_nobody(self, method):
        takes = self.signatures()[method]
        return self.machine.run(*CALL, method, *(SENSIBLE[method] if method in SENSIBLE else some_arguments(takes)),
                                user='nobody', check=False)

    def test_may_read_everything(self):
        for verb in (['status'], ['tree'], ['plan'], ['discover'], ['claims', '--history']):
            self.machine.run('computectl', *verb, user='nobody')
        for method in READS:
            done = self.call_as_nobody(method)
            self.assertNotRegex(done.stderr, REFUSED, method)
        self.machine.run('busctl', 'introspect', *CALL[2:4], user='nobody')
        self.machine.run('computectl', 'audit')  # a start soon after a clean end leaves out the audit
        for name in DOCUMENTS:
            self.machine.run(*CALL, 'Describe', 's', name, user='nobody')

    def test_may_change_nothing(self):
        before = self.machine.ctl_json('claims', '--history')
        for method in CHANGES:
            done = self.call_as_nobody(method)
            self.assertNotEqual(done.returncode, 0, method)
            self.assertRegex(done.stderr, REFUSED, method)
        self.assertEqual(self.machine.ctl_json('claims', '--history'), before)

    def test_no_method_is_left_out_here(self):
        self.assertEqual(set(self.signatures()), READS | CHANGES)

    def test_reads_no_file(self):
        for path in ('/var/lib/compute-agent', '/var/lib/compute-agent/compute_id',
                     '/var/lib/compute-agent/claim.sqlite', '/etc/compute-agent/compute-agent.conf'):
            self.machine.run('test', '-e', path)
            done = self.machine.run('head', '-c1', path, user='nobody', check=False)
            self.assertIn('Permission denied', done.stderr, path)
        for kind in ('write', 'connect'):
            done = self.machine.run('find', '/run/compute-agent', '/var/lib/compute-agent',
                                    '-writable', user='nobody', check=False)
            self.assertEqual(done.stdout, '', kind)
