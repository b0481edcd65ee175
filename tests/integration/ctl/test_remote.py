# SPDX-License-Identifier: LGPL-2.1-or-later
"""The option --host of computectl. A script in place of ssh runs the bridge on the private bus."""

import json
import os
import re
import subprocess
import uuid

from tests.env.agent import Agent, build_folder, refuse_sanitizers
from tests.env.case import EnvCase
from tests.env.terminal import Terminal

SSH = '''#!/bin/sh
printf '%%s\\n' "$@" >%(log)s
echo >>%(log)s.calls
case " $* " in
*" far "* | *" root@far "*)
        shift $(($# - 1))
        exec "$1" --bus-path=%(address)s
        ;;
esac
echo "ssh: Could not resolve hostname" >&2
exit 255
'''


class Remote(EnvCase):
    shared = ('scratch', 'bus')

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.agent = Agent(cls.scratch, bus=cls.bus).start('standalone')
        cls.log = cls.scratch.path / 'ssh.log'
        tools = cls.scratch.folder('tools')
        ssh = tools / 'ssh'
        ssh.write_text(SSH % {'log': cls.log, 'address': cls.bus.address})
        ssh.chmod(0o755)
        # computectl has no local bus, so each answer comes from the other host.
        cls.env = {**os.environ, 'PATH': '%s:%s' % (tools, os.environ['PATH']), 'SYSTEMD_PAGER': '',
                   'DBUS_SYSTEM_BUS_ADDRESS': 'unix:path=%s' % (cls.scratch.path / 'no-bus')}

    def ctl(self, *args, code=0):
        done = subprocess.run([str(build_folder() / 'computectl'), *args], env=self.env, text=True,
                              capture_output=True, timeout=60, check=False)
        refuse_sanitizers('computectl', done.stderr)
        self.assertEqual(done.returncode, code, done)
        return done

    def test_reading(self):
        status = json.loads(self.ctl('-H', 'root@far', 'status', '--json=short', code=4).stdout)
        self.assertEqual(status['root'], self.agent.root())
        self.assertEqual(self.log.read_text().split(),
                         ['-xT', '--', 'root@far', 'systemd-stdio-bridge'])
        self.assertEqual(json.loads(self.ctl('tree', '--host=far', '--json=short').stdout),
                         self.agent.ctl_json('tree'))
        self.assertEqual(json.loads(self.ctl('discover', '--host=far', '--json=short').stdout),
                         self.agent.ctl_json('discover'))

    def test_claims(self):
        consumer = str(uuid.uuid4())
        claim = self.ctl('claim', '-H', 'far', '-q', '--consumer', consumer, '--resources',
                         'VCPU=1').stdout.strip()
        self.assertIn(consumer, self.ctl('-H', 'far', 'claims').stdout)
        self.ctl('-H', 'far', 'confirm', claim)
        self.ctl('-H', 'far', 'who', consumer)
        self.ctl('-H', 'far', 'release', claim)
        self.ctl('-H', 'far', 'show', claim)
        self.assertNotIn(consumer, self.agent.ctl('claims').stdout)

    def test_each_failure_names_the_host(self):
        self.assertEqual(re.findall('^computectl: (far: There is no active claim [0-9]+)', self.ctl('-H', 'far', 'release', '4711', '4712', code=1).stderr, re.M),
                         ['far: There is no active claim 4711', 'far: There is no active claim 4712'])

    def test_a_host_that_is_not_there(self):
        done = self.ctl('-H', 'nowhere', 'tree', code=1)
        self.assertIn('ssh: Could not resolve hostname', done.stderr)
        self.assertIn('computectl: nowhere: ', done.stderr)
        self.assertIn('log in', done.stderr)

    def test_invalid_names_of_hosts(self):
        self.log.unlink(missing_ok=True)
        self.assertIn('[USER@]HOST', self.ctl('-H', 'root@', 'tree', code=1).stderr)
        self.assertFalse(self.log.exists())
        # The name of a host is never an option of ssh.
        self.assertIn('is not the name of a host', self.ctl('-H', '-oProxyCommand=false', 'tree', code=2).stderr)
        self.assertFalse(self.log.exists())

    def test_several_hosts(self):
        done = self.ctl('-H', 'far,nowhere', '--host=root@far', 'status', code=1)
        self.assertEqual(re.findall('==> (.*) <==', done.stdout), ['far (exit code 4)', 'nowhere (exit code 1)', 'root@far (exit code 4)'])
        self.assertIn('computectl: nowhere: ', done.stderr)
        document = json.loads(self.ctl('-H', 'far,nowhere', 'tree', '--json', code=1).stdout)
        self.assertEqual([(one['host'], one['code']) for one in document['hosts']], [('far', 0), ('nowhere', 1)])
        self.assertEqual(document['hosts'][0]['output'], self.agent.ctl_json('tree'))
        self.assertIsNone(document['hosts'][1]['output'])
        self.assertIn('Could not resolve hostname', document['hosts'][1]['error'])
        hosts = self.scratch.path / 'hosts'
        hosts.write_text('far  # rack 1\n\n# rack 2\nroot@far\n')
        self.assertEqual(self.ctl('--hosts-file', str(hosts), 'tree', '--no-legend').stdout.count('==> '), 2)
        hosts.write_text('far\n')
        self.assertTrue(self.ctl('--hosts-file', str(hosts), 'tree').stdout.startswith('==> far <==\n'))
        document = json.loads(self.ctl('--hosts-file', str(hosts), 'tree', '--json').stdout)
        self.assertEqual(([one['host'] for one in document['hosts']], document['format']), (['far'], 'compute-agent-hosts/1'))
        self.assertIn('watch supports only one host', self.ctl('--hosts-file', str(hosts), 'watch', code=2).stderr)
        hosts.write_text('# none\n')
        self.assertIn('contains no host name', self.ctl('--hosts-file', str(hosts), 'tree', code=2).stderr)
        self.assertIn('cannot be read to its end', self.ctl('--hosts-file', str(hosts.parent), 'tree', code=2).stderr)
        self.assertIn('watch supports only one host', self.ctl('-H', 'far,near', 'watch', code=2).stderr)

    def test_one_question_for_several_hosts(self):
        terminal = Terminal(self, [build_folder() / 'computectl', '-H', 'far,root@far', 'retire'], self.env, start_new_session=True)
        terminal.type(b'n\n')
        code, text = terminal.end()
        self.assertEqual(code, 1)
        self.assertEqual(text.count('Run "retire" on 2 hosts? [y/N]'), 1, text)
        self.assertIn('Nothing was changed', text)

    def test_a_pager_starts_after_all_questions_to_the_host(self):
        calls = self.scratch.path / 'ssh.log.calls'
        pager = self.scratch.path / 'read-all'
        pager.write_text('#!/bin/sh\nexec cat\n')
        pager.chmod(0o755)
        for verb in (['status'], ['tree'], ['plan'], ['claims'], ['who', 'cell:0'], ['history'], ['drain'], ['discover']):
            calls.write_text('')
            terminal = Terminal(self, [build_folder() / 'computectl', '-H', 'far', *verb], {**self.env, 'SYSTEMD_PAGER': str(pager)}, start_new_session=True)
            terminal.end()
            self.assertEqual(calls.read_text(), '\n', verb)

    def test_a_stopped_agent_is_named(self):
        self.agent.stop()
        self.addCleanup(self.agent.start)
        done = self.ctl('-H', 'far', 'status', code=3)
        self.assertIn('not running', done.stdout)
        self.assertIn('computectl: far: ', self.ctl('-H', 'far', 'discover', code=1).stderr)
