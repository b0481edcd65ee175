# SPDX-License-Identifier: LGPL-2.1-or-later
"""computectl without an agent, and computectl on a terminal."""

import json
import os
import shutil
import subprocess
import unittest
import uuid

from tests.env.agent import build_folder
from tests.env.bus import Bus
from tests.env.scratch import Scratch
from tests.env.terminal import Terminal

HOST = {'format': 'compute-agent-host/1', 'nodename': 'lone\x1b[31m', 'cells': [
    {'id': cell, 'memory_kib': 1 << 20} for cell in range(40)]}


class CtlCase(unittest.TestCase):
    def setUp(self):
        self.scratch = Scratch.of(self)
        self.env = {name: value for name, value in os.environ.items()
                    if name not in ('PAGER', 'SYSTEMD_PAGER', 'SYSTEMD_COLORS', 'NO_COLOR', 'COLUMNS')}
        self.env.update(LC_ALL='C.UTF-8', TERM='xterm',
                        DBUS_SYSTEM_BUS_ADDRESS='unix:path=%s' % (self.scratch.path / 'no-bus'))
        self.tool = build_folder() / 'computectl'

    def run_ctl(self, *args):
        return subprocess.run([str(self.tool), *map(str, args)], env=self.env, capture_output=True,
                              text=True, timeout=30, check=False)

    def run_on_terminal(self, *args, **env):
        """Runs computectl on a pseudo-terminal, and returns the exit code and the output."""
        return Terminal(self, [self.tool, *args], {**self.env, **env}, stdin=subprocess.DEVNULL).end(30)

    def install_poller(self, script):
        """Copies computectl to a folder whose computectl-helper runs the script."""
        folder = self.scratch.folder('tools')
        self.tool = folder / 'computectl'
        shutil.copy(build_folder() / 'computectl', self.tool)
        poller = folder / 'computectl-helper'
        poller.write_text('#!/bin/sh\n' + script)
        poller.chmod(0o755)


class TestNobodyThere(CtlCase):
    VERBS = (('tree',), ('plan',), ('sync',), ('claims',), ('confirm', '1'), ('release', '1'),
             ('claim', '--consumer', str(uuid.uuid4()), '--resources', 'VCPU=1'))

    def test_status_without_a_bus(self):
        done = self.run_ctl('status')
        self.assertEqual(done.returncode, 3)
        self.assertIn('bus', done.stdout)
        self.assertEqual(done.stderr, '')

    def test_status_without_an_agent(self):
        bus = Bus(self.scratch).start()
        self.env.update(DBUS_SYSTEM_BUS_ADDRESS=bus.address)
        done = self.run_ctl('status')
        self.assertEqual(done.returncode, 3)
        self.assertIn('systemctl start compute-agent', done.stdout)
        done = self.run_ctl('status', '--json=short')
        self.assertEqual(done.returncode, 3)
        self.assertEqual(json.loads(done.stdout)['state'], 'not-running')
        self.assertEqual(self.run_ctl('status', '-q').stdout, '')
        for verb in self.VERBS:
            done = self.run_ctl(*verb)
            self.assertEqual((done.returncode, done.stdout), (1, ''), verb)
            self.assertIn('systemctl start compute-agent', done.stderr, verb)

    def test_other_verbs_without_a_bus(self):
        for verb in self.VERBS:
            done = self.run_ctl(*verb)
            self.assertEqual((done.returncode, done.stdout), (1, ''), verb)
            self.assertIn('bus', done.stderr, verb)

    def test_no_verb_is_status(self):
        done, status = self.run_ctl(), self.run_ctl('status')
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (status.returncode, status.stdout, status.stderr))

    def test_wrong_usage(self):
        for args in (('statsu',), ('relese',), ('status', 'x'), ('tree', '--histroy'), ('release',)):
            done = self.run_ctl(*args)
            self.assertEqual((done.returncode, done.stdout), (2, ''), args)
            self.assertIn('--help', done.stderr, args)

    def test_help_and_version(self):
        self.assertIn('Look:', self.run_ctl('--help').stdout)
        self.assertEqual(self.run_ctl('help').stdout, self.run_ctl('--help').stdout)
        self.assertEqual(self.run_ctl('help', 'sync').stdout, self.run_ctl('sync', '--help').stdout)
        self.assertIn('Unknown verb "snyc"', self.run_ctl('help', 'snyc').stderr)
        self.assertIn('compute-agent', self.run_ctl('--version').stdout)

    def test_output_that_cannot_be_written_is_a_failure(self):
        with open('/dev/full', 'wb') as full:
            done = subprocess.run([str(self.tool), '--help'], env=self.env, stdout=full,
                                  stderr=subprocess.PIPE, timeout=30, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b'cannot write', done.stderr)


class TestDiscover(CtlCase):
    def test_polls_by_itself(self):
        self.install_poller("echo '%s'\n" % json.dumps(HOST))
        done = self.run_ctl('discover', '--json=short')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout), HOST)
        self.assertIn('lone\\x1b[31m', self.run_ctl('discover').stdout)

    def test_passes_the_configuration_on(self):
        self.install_poller('echo "config $3" >&2; exit 1\n')
        done = self.run_ctl('discover', '--config', '/x y.conf')
        self.assertEqual((done.returncode, done.stdout), (1, ''))
        self.assertIn('config /x y.conf\n', done.stderr)

    def test_a_poller_that_fails_in_every_way(self):
        for script in ('exit 1\n', 'echo nonsense\n', 'kill -9 $$\n', "echo '{}'\n",
                       """echo '{"format": "compute-agent-host/1"}'\n"""):
            self.install_poller(script)
            done = self.run_ctl('discover')
            self.assertEqual((done.returncode, done.stdout), (1, ''), script)
            self.assertTrue(done.stderr.startswith('computectl: '), (script, done.stderr))

    def test_a_connection_that_cannot_be_checked(self):
        config = self.scratch.path / 'x.conf'
        config.write_text('[placement]\nauth_type = none\nendpoint_override = http://127.0.0.1:1\n')
        self.install_poller('kill -9 $$\n')
        self.assertIn('Cannot check the connection to Placement', self.run_ctl('doctor', '--all', '-c', config).stdout)

    def test_no_poller(self):
        self.install_poller('')
        (self.tool.parent / 'computectl-helper').unlink()
        done = self.run_ctl('discover')
        self.assertEqual(done.returncode, 1)
        self.assertIn('computectl-helper', done.stderr)


class TestMissingPrograms(CtlCase):
    """A program that cannot be executed has no output of its own, so computectl names it."""

    def test_migration_without_agent_or_server(self):
        self.install_poller('')
        agent = self.tool.parent / 'compute-agentd'
        agent.write_text('#!/not/there\n')
        agent.chmod(0o755)
        done = self.run_ctl('migrate-inventory')
        self.assertEqual(done.returncode, 1)
        self.assertIn('%s: No such file or directory' % agent, done.stderr)
        self.env['PATH'] = '/not/there'
        done = self.run_ctl('migrate-inventory', '--direct', '/')
        self.assertEqual(done.returncode, 4)
        self.assertIn('uwsgi: No such file or directory', done.stderr)

    def test_report_without_tar(self):
        self.env['PATH'] = '/not/there'
        done = self.run_ctl('report', self.scratch.path / 'report.tar.gz')
        self.assertEqual(done.returncode, 1)
        self.assertIn('tar: No such file or directory', done.stderr)


FINDINGS = {'format': 'compute-agent-findings/1', 'nodename': 'lone', 'errors': 0, 'findings': [
    {'level': 'warning', 'option': '[libvirt] virt_type', 'text': 'It is \x1b[31mnot so'}]}


class TestHardware(CtlCase):
    def check(self, *args):
        return self.run_ctl('doctor', '--hardware-only', '--all', *args)

    def test_the_old_spelling(self):
        self.install_poller("echo '%s'\n" % json.dumps(FINDINGS))
        done = self.run_ctl('verify', '--json=short')
        self.assertEqual((done.returncode, json.loads(done.stdout)), (0, FINDINGS))
        self.assertIn('verify is now doctor --hardware-only', done.stderr)
        self.assertEqual(self.run_ctl('verify').returncode, 0)

    def test_a_warning(self):
        self.install_poller("""[ "$1 $2" = "verify x.conf" ] && echo '%s'\n"""
                            % json.dumps(FINDINGS))
        done = self.check('-c', 'x.conf')
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertRegex(done.stdout, r'warning +hardware +\[libvirt\] virt_type: It is \\x1b\[31mnot so')
        done = self.check('-c', 'x.conf', '--json')
        self.assertEqual(json.loads(done.stdout)['findings'],
                         [{'check': 'hardware', 'state': 'warning', 'text': '[libvirt] virt_type: It is \x1b[31mnot so', 'cause': '', 'advice': ''}])

    def test_an_error_is(self):
        finding = {**FINDINGS['findings'][0], 'level': 'error'}
        self.install_poller("echo '%s'\n" % json.dumps({**FINDINGS, 'errors': 1, 'findings': [finding]}))
        self.assertEqual(self.check().returncode, 1)
        self.assertEqual(self.run_ctl('verify').returncode, 1)

    def test_nothing_found(self):
        self.install_poller("echo '%s'\n" % json.dumps({**FINDINGS, 'findings': []}))
        done = self.check()
        self.assertEqual((done.returncode, done.stdout.split()),
                         (0, 'ok hardware The configuration fits this host.'.split()))
        self.assertEqual(self.check('--quiet').stdout, '')

    def test_a_host_is_no_answer(self):
        self.install_poller("echo '%s'\n" % json.dumps(HOST))
        self.assertEqual(self.check().returncode, 1)

    def test_a_static_host_and_its_configuration(self):
        """The real programs read a host from a file."""
        host = self.scratch.path / 'host.json'
        host.write_text(json.dumps({**HOST, 'online_cpus': '0-3'}))
        config = self.scratch.path / 'x.conf'
        for text, code, words in (('', 4, 'instances_path'),
                                  ('[compute]\ncpu_shared_set = 2-5\n', 1, 'CPU 4-5')):
            config.write_text('[DEFAULT]\ncompute_driver = static\n[static]\npath = %s\n%s'
                              % (host, text))
            done = self.check('-c', str(config))
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(words, done.stdout)

    def test_values_that_no_driver_accepts(self):
        """doctor reports an error that would prevent the start of the daemon."""
        config = self.scratch.path / 'x.conf'
        for text, words in (('[compute]\ncpu_shared_set = x\n', 'cpu_shared_set'),
                            ('[libvirt]\nimages_type = lvm\n', 'images_type = lvm needs images_storage_pool')):
            config.write_text(text)
            for part in ('--config-only', '--hardware-only'):
                done = self.run_ctl('doctor', part, '-c', str(config))
                self.assertEqual(done.returncode, 1)
                self.assertIn(words, done.stdout + done.stderr)
            done = self.run_ctl('check-config', '-c', str(config))
            self.assertEqual(done.returncode, 1)
            self.assertIn('check-config is now doctor --config-only', done.stderr)
            self.assertEqual(json.loads(self.run_ctl('check-config', '-c', str(config), '--json').stdout), {'valid': False})


class TestTerminal(CtlCase):
    def setUp(self):
        super().setUp()
        self.install_poller("echo '%s'\n" % json.dumps(HOST))

    def test_colours_and_harmless_names(self):
        code, text = self.run_on_terminal('discover', '--no-pager')
        self.assertEqual(code, 0, text)
        self.assertIn('\x1b[1mlone\\x1b[31m\x1b[0m', text)
        self.assertNotIn('\x1b[31m', text)
        code, text = self.run_on_terminal('discover', '--no-pager', NO_COLOR='1')
        self.assertNotIn('\x1b', text)

    def test_json_on_a_terminal_is_ascii(self):
        code, text = self.run_on_terminal('discover', '--no-pager', '--json=pretty')
        self.assertEqual(code, 0, text)
        self.assertEqual(json.loads(text), HOST)
        self.assertTrue(text.isascii())

    def test_the_pager_gets_the_output(self):
        code, text = self.run_on_terminal('discover', SYSTEMD_PAGER="sed s/NUMA/PAGED/")
        self.assertEqual(code, 0)
        self.assertIn('PAGED cells (40)', text)

    def test_a_pager_that_quits_early_changes_no_exit_code(self):
        code, _ = self.run_on_terminal('discover', SYSTEMD_PAGER='true')
        self.assertEqual(code, 0)

    def test_no_pager_is_a_shell_command(self):
        mark = self.scratch.path / 'mark'
        self.run_on_terminal('discover', SYSTEMD_PAGER='/bin/cat; /bin/touch %s' % mark,
                             PATH='/nonexistent')
        self.assertFalse(mark.exists())

    def test_no_pager_at_all(self):
        code, text = self.run_on_terminal('discover', SYSTEMD_PAGER='', PATH='/nonexistent')
        self.assertEqual(code, 0)
        self.assertIn('NUMA cells (40)', text)
        code, text = self.run_on_terminal('discover', SYSTEMD_PAGER='nonesuch', PATH='/nonexistent')
        self.assertEqual(code, 0)
        self.assertIn('NUMA cells (40)', text)
