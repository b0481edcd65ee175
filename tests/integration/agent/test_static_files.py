# SPDX-License-Identifier: LGPL-2.1-or-later
"""The files that "make install" installs for systemd and D-Bus, read by the programs that use them. The other installed files are
compared with the sources and manuals."""

import fnmatch
import os
import re
import subprocess
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from tests.env.agent import build_folder
from tests.env.scratch import Scratch

ROOT = Path(__file__).resolve().parents[3]
UNIT = 'compute-agent.service'


def run(*argv):
    return subprocess.run([str(arg) for arg in argv], capture_output=True, text=True, timeout=120,
                          check=False)


class InstalledCase(unittest.TestCase):
    """A folder with the data files, installed as in a package."""

    OPTIONS = ()

    @classmethod
    def setUpClass(cls):
        scratch = Scratch.of(cls)
        cls.root = scratch.folder('root')
        done = run('make', '-C', build_folder(), 'install-data', 'prefix=/usr', 'sysconfdir=/etc',
                   'DESTDIR=%s' % cls.root, *cls.OPTIONS)
        if done.returncode != 0:
            raise AssertionError(done.stdout + done.stderr)

    def check(self, *argv):
        """Runs a program that must succeed without output on stderr, and returns its output."""
        done = run(*argv)
        self.assertEqual((done.returncode, done.stderr), (0, ''), done.stdout)
        return done.stdout


class TestInstalled(InstalledCase):
    def test_all_files_are_where_their_readers_look(self):
        for name in ('usr/lib/systemd/system/compute-agent.service',
                     'usr/lib/systemd/system/compute-agent-prepare.service',
                     'usr/lib/systemd/system/compute-agent-prepare.path',
                     'usr/lib/udev/rules.d/90-compute-agent-prepare.rules',
                     'usr/lib/systemd/system-preset/90-compute-agent.preset',
                     'usr/lib/systemd/catalog/compute-agent.catalog',
                     'usr/lib/sysusers.d/compute-agent.conf',
                     'usr/lib/tmpfiles.d/compute-agent.conf',
                     'usr/share/dbus-1/system.d/org.computeagent.Agent1.conf',
                     'usr/share/dbus-1/interfaces/org.computeagent.Agent1.xml',
                     'usr/share/doc/compute-agent/README.md',
                     'usr/share/doc/compute-agent/compute-agent.rules.yml',
                     'usr/share/doc/compute-agent/compute-agent-dashboard.json',
                     'usr/share/man/man8/compute-agentd.8',
                     'usr/share/man/man8/compute-agent-prepare.8',
                     'usr/share/doc/compute-agent/examples/mig-layout@.service',
                     'usr/share/doc/compute-agent/examples/xe-profile@.service',
                     'usr/share/doc/compute-agent/examples/fabric-partition@.service',
                     'usr/share/doc/compute-agent/examples/fabric-partition-off@.service',
                     'usr/share/doc/compute-agent/examples/compute-agent.conf'):
            self.assertTrue((self.root / name).is_file(), name)
        self.assertEqual(list(self.root.glob('etc/**/*.conf')), [])
        hook = self.root / 'etc/libvirt/hooks/qemu.d/compute-agent'
        self.assertEqual(os.readlink(hook), '/usr/bin/computectl')

    def test_no_advice_takes_the_folder_of_node_exporter_from_others(self):
        """The option takes one folder. It would replace Debian's folder, where other programs write."""
        for pattern in ('README.md', 'doc/*.md', 'man/*.*', 'systemd/*.conf'):
            for path in ROOT.glob(pattern):
                self.assertNotIn('--collector.textfile.directory', path.read_text(), path)

    def test_each_link_of_an_installed_document_leads_to_one(self):
        folder = self.root / 'usr/share/doc/compute-agent'
        documents = sorted(folder.glob('*.md'))
        self.assertEqual([path.name for path in documents],
                         ['HACKING.md', 'NEWS.md', 'README.md', 'SECURITY.md', 'costs.md', 'guide.md', 'nova.md'])
        for path in documents:
            for link in re.findall(r'\]\(([^)#]+)', path.read_text()):
                if '://' not in link:
                    self.assertTrue((folder / link).is_file(), '%s: %s' % (path.name, link))

    def test_nothing_is_left_to_fill_in(self):
        for path in self.root.rglob('*'):
            if path.is_file() and path.suffix not in ('.catalog', '.png'):
                self.assertIsNone(re.search(r'@\w+@', path.read_text()), path)


class TestOtherState(InstalledCase):
    """With --localstatedir the installed files name another folder, and tmpfiles.d creates it."""

    OPTIONS = ('localstatedir=/srv',)

    def test_state_dir(self):
        named = [path.relative_to(self.root).parts[-1] for path in self.root.rglob('*')
                 if path.is_file() and path.suffix not in ('.xml', '.png') and '/srv/lib/compute' in path.read_text()]
        self.assertEqual(sorted(named), ['compute-agent-clean.service', 'compute-agent-prepare.service', 'compute-agent.catalog'] + 3 * ['compute-agent.conf'] +
                         ['compute-agent.conf.5', 'compute-agent.service'])
        unit = (self.root / 'usr/lib/systemd/system/compute-agent.service').read_text()
        self.assertIn('ReadWritePaths=/srv/lib/compute-agent\n', unit)
        self.assertNotIn('StateDirectory', unit)
        prepare = (self.root / 'usr/lib/systemd/system/compute-agent-prepare.service').read_text()
        self.assertIn('RequiresMountsFor=/srv/lib/compute-agent\n', prepare)
        self.assertIn('ReadWritePaths=-/srv/lib/compute-agent\n', prepare)
        self.assertIn('d /srv/lib/compute-agent 0750 compute-agent compute-agent\n',
                      (self.root / 'usr/lib/tmpfiles.d/compute-agent.conf').read_text())


class TestPrograms(InstalledCase):
    """The example units start programs that are installed, also with another --libexecdir."""

    OPTIONS = ('libexecdir=/opt/lib', 'install-exec')

    def test_examples_start_installed_programs(self):
        units = list(self.root.rglob('examples/compute-agent-*@.service'))
        programs = {path.name: re.search(r'^ExecStart=(\S+)', path.read_text(), re.M)[1] for path in units}
        self.assertIn('compute-agent-clean-nvme@.service', programs)
        self.assertEqual({name: program for name, program in programs.items() if not (self.root / program[1:]).is_file()}, {})


class TestSpec(InstalledCase):
    """The %files sections of the RPM spec list every installed file and no other. The test does not need rpm."""

    MACROS = {'_udevrulesdir': '/usr/lib/udev/rules.d', '_bindir': '/usr/bin', '_sbindir': '/usr/sbin', '_libexecdir': '/usr/libexec',
              '_sysconfdir': '/etc', '_datadir': '/usr/share', '_mandir': '/usr/share/man',
              '_docdir': '/usr/share/doc', '_prefix': '/usr', 'name': 'compute-agent',
              '_unitdir': '/usr/lib/systemd/system', '_tmpfilesdir': '/usr/lib/tmpfiles.d',
              '_presetdir': '/usr/lib/systemd/system-preset',
              '_sysusersdir': '/usr/lib/sysusers.d'}
    # Files that the spec itself installs, and programs, which "make install-data" does not install.
    OTHERS = ('/etc/compute-agent', '/usr/bin/', '/usr/sbin/', '/usr/libexec/')

    def patterns(self):
        text = (ROOT / 'rpm/compute-agent.spec').read_text()
        for section in re.findall(r'^%files.*?\n(.*?)\n\n', text, re.M | re.S):
            for line in section.splitlines():
                path = line.split()[-1]
                if path != 'LICENSE':
                    yield re.sub(r'%\{(\w+)\}', lambda m: self.MACROS[m[1]], path)

    def test_files(self):
        patterns = list(self.patterns())
        installed = ['/' + str(path.relative_to(self.root)) for path in self.root.rglob('*')
                     if path.is_symlink() or path.is_file()]
        for path in installed:
            self.assertTrue([one for one in patterns if fnmatch.fnmatch(path, one)
                             or path.startswith(one + '/')], path)
        for one in patterns:
            if not one.startswith(self.OTHERS):
                self.assertTrue(fnmatch.filter(installed, one) or
                                [path for path in installed if path.startswith(one + '/')], one)


class TestUserAndFolders(InstalledCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # The only user of this system is root.
        etc = cls.root / 'etc'
        etc.mkdir(exist_ok=True)
        (etc / 'passwd').write_text('root:x:0:0::/root:/bin/sh\n')
        (etc / 'group').write_text('root:x:0:\n')

    def test_sysusers_makes_the_user_and_lets_it_use_libvirt(self):
        done = run('systemd-sysusers', '--root=%s' % self.root)
        self.assertEqual(done.returncode, 0, done.stderr)
        passwd = (self.root / 'etc/passwd').read_text().splitlines()
        user = [line.split(':') for line in passwd if line.startswith('compute-agent:')]
        self.assertEqual(len(user), 1)
        self.assertEqual(user[0][5], '/var/lib/compute-agent')
        self.assertIn('nologin', user[0][6])
        groups = (self.root / 'etc/group').read_text().splitlines()
        libvirt = [line.split(':') for line in groups if line.startswith('libvirt:')]
        self.assertEqual([group[3] for group in libvirt], ['compute-agent'])

    def test_tmpfiles_makes_the_folders(self):
        self.check('systemd-tmpfiles', '--root=%s' % self.root, '--create', 'compute-agent.conf')
        folder = self.root / 'etc/compute-agent/compute-agent.conf.d'
        self.assertEqual(folder.stat().st_mode & 0o7777, 0o755)
        self.assertEqual(folder.parent.stat().st_mode & 0o7777, 0o755)

    def test_the_preset_leaves_the_unit_alone(self):
        self.check('systemctl', '--root=%s' % self.root, 'preset', UNIT)
        self.assertFalse((self.root / 'etc/systemd/system/multi-user.target.wants' / UNIT).exists())
        done = run('systemctl', '--root=%s' % self.root, 'enable', UNIT)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(
            (self.root / 'etc/systemd/system/multi-user.target.wants' / UNIT).is_symlink())


class TestCatalogue(InstalledCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        header = (ROOT / 'base/message-ids.h').read_text()
        cls.ids = dict(re.findall(r'#define (MESSAGE_\w+)\s*\\?\s*"(\w+)"', header))
        cls.text = (ROOT / 'systemd/compute-agent.catalog').read_text()
        done = run('journalctl', '--root=%s' % cls.root, '--update-catalog')
        if done.returncode != 0:
            raise AssertionError(done.stderr)

    def test_each_id_has_one_entry_and_each_entry_an_id(self):
        self.assertGreater(len(self.ids), 5)
        entries = re.findall(r'^-- (\S+)$', self.text, re.M)
        self.assertEqual(sorted(entries), sorted(self.ids.values()))
        for name, number in self.ids.items():
            # Every 128 bits are accepted. The version of the UUID is not checked.
            self.assertRegex(number, '^[0-9a-f]{32}$', name)

    def test_systemd_reads_every_entry(self):
        for name, number in self.ids.items():
            done = run('journalctl', '--root=%s' % self.root, '--dump-catalog', number)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn('-- ' + number, done.stdout, name)
            self.assertIn('Subject: ', done.stdout, name)
            self.assertIn('Defined-By: compute-agent', done.stdout, name)

    def test_entries_say_what_happened_what_is_done_and_what_one_may_do(self):
        for entry in re.split(r'^-- ', self.text, flags=re.M)[1:]:
            head, *paragraphs = entry.strip().split('\n\n')
            self.assertGreaterEqual(len(paragraphs), 3, head)
            for line in entry.splitlines():
                self.assertLessEqual(len(line), 80, line)

    def test_fields_are_those_that_are_logged(self):
        header = (ROOT / 'base/log.h').read_text()
        fields = re.findall(r'#define LOG_FIELD_\w+\s+"(\w+)"', header)
        used = set(re.findall(r'@(\w+)@', self.text))
        self.assertTrue(used)
        self.assertLessEqual(used, set(fields))


class TestDBusFiles(InstalledCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        share = cls.root / 'usr/share/dbus-1'
        cls.policy = ElementTree.parse(share / 'system.d/org.computeagent.Agent1.conf').getroot()
        cls.node = ElementTree.parse(share / 'interfaces/org.computeagent.Agent1.xml').getroot()
        cls.header = (ROOT / 'formats/interface.h').read_text()
        cls.interface = cls.node.find('interface')
        cls.text = (ROOT / 'systemd/org.computeagent.Agent1.xml').read_text()

    def macro(self, name):
        """Returns the text of a macro in formats/interface.h, with the macros inside it."""
        body = re.search(r'#define %s\s+(.*)' % name, self.header)[1]
        parts = re.findall(r'"([^"]*)"|\b(BUS_\w+)', body.partition('/*')[0])
        return ''.join(text if text or not macro else self.macro(macro) for text, macro in parts)

    def signature(self, method, direction):
        return ''.join(arg.get('type') for arg in self.interface.findall(
            "method[@name='%s']/arg[@direction='%s']" % (method, direction)))

    def test_names(self):
        self.assertEqual(self.node.get('name'), self.macro('BUS_PATH'))
        self.assertEqual(self.interface.get('name'), self.macro('BUS_INTERFACE'))
        others = [values for values in (list(allow.attrib.values()) for allow in self.policy.iter('allow'))
                  if values != [self.macro('BUS_NAME')]]
        # The only call of the agent to the bus itself.
        self.assertEqual(others, [['org.freedesktop.DBus', 'org.freedesktop.DBus.Debug.Stats', 'GetConnectionStats']])

    def test_signatures(self):
        self.assertEqual(self.signature('Claim', 'in'), self.macro('BUS_CLAIM_IN'))
        self.assertEqual(self.signature('Claim', 'out'), self.macro('BUS_CLAIM_OUT'))

    def test_methods_and_documents_are_those_of_the_header(self):
        methods = set(re.findall(r'\b([A-Z]\w+)\(', self.header))
        self.assertEqual({m.get('name') for m in self.interface.findall('*')} & methods, methods)
        self.assertLessEqual({m.get('name') for m in self.interface.findall('method')}, methods)
        for name in re.findall(r'#define (BUS_DOCUMENT_\w+)', self.header):
            self.assertRegex(self.text, r'(?m)^ +%s  ' % self.macro(name))

    def test_states_and_errors_are_documented(self):
        for name in re.findall(r'#define (SYNC_STATE_\w+)', self.header):
            self.assertIn('"%s"' % self.macro(name), self.text)
        for name in re.findall(r'#define (BUS_ERROR_\w+)', self.header):
            self.assertRegex(self.text, r'(?m)^ +%s  ' % self.macro(name).rpartition('.')[2])

    def test_everything_has_words(self):
        for member in self.node.findall('interface/*'):
            self.assertIsNotNone(re.search(r'<!--\s+%s: ?' % member.get('name'), self.text),
                                 member.get('name'))
            for arg in member.findall('arg'):
                self.assertIn('@%s: ' % arg.get('name'), self.text)

    def test_the_rights_of_each_method_are_those_of_security_md(self):
        rows = re.findall(r'^\| ((?:[A-Z]\w+(?:, |;| ))+).*\| (.*) \|$', (ROOT / 'SECURITY.md').read_text(), re.M)
        told = {method: who for methods, who in rows for method in re.findall(r'\w+', methods)}
        source = (ROOT / 'agent/bus/bus.c').read_text()
        handlers = dict(re.findall(r'\bMETHOD\("(\w+)",.*?\b((?:on|method)_\w+)', source, re.S))
        guards = dict(re.findall(r'^ +{ "(\w+)", (POLKIT_ACTION_\w+),', source, re.M))
        actions = dict(re.findall(r'#define (POLKIT_ACTION_\w+)\s+"([^"]+)"', (ROOT / 'agent/bus/caller.h').read_text()))
        self.assertGreater(len(guards), 15)
        for member in self.interface.findall('method'):
            name = member.get('name')
            # Its rights depend on the operation. tests.integration.agent.test_bus_documents tests them.
            if name == 'Cancel':
                continue
            guard = guards.get(name)
            self.assertEqual(told.get(name), actions[guard] if guard else 'nothing', name)
            self.assertEqual(handlers[name] == 'on_method', bool(guard), name)
        self.assertEqual(set(guards) - set(handlers), set())

    def test_the_version_is_said(self):
        self.assertIn('of this interface, %s.' % re.search(r'#define BUS_INTERFACE_VERSION (\d+)', self.header)[1], self.text)
