# SPDX-License-Identifier: LGPL-2.1-or-later
"""Root runs a command by hand in the state folder of the service. An intruder can have the rights of the service's user.

Root's command follows no link of that user with root's rights. The files it creates belong to the service.
"""

import os
import struct

from tests.env.agent import Agent
from tests.env.case import EnvCase
from tests.env.hosts import recorded_host

SERVICE = 4711  # a uid without a user name
# The files that a command writes there by name: state files and their temporary names, the database and SQLite's own files.
WRITTEN = ('compute_id', 'devices.json.new', 'claim.sqlite', 'claim.sqlite-wal', 'claim.sqlite-shm',
           'claim.sqlite-journal', 'claim.sqlite.copying', 'reshape-pending.json.new',
           'reshape.json.new', 'cordon.json.new', 'provider-config.json.new')


def hot_journal(other):
    """Returns a rollback journal that names another file as its super-journal.

    After the rollback SQLite deletes a super-journal that names no journal any more.
    """
    name = str(other).encode()
    header = bytes.fromhex('d9d505f920a163d7') + struct.pack('>IIIII', 0, 1, 1, 512, 4096)
    end = struct.pack('>I', (1 << 30) // 4096 + 1) + name + struct.pack(
        '>II', len(name), sum(name) & 0xffffffff) + bytes.fromhex('d9d505f920a163d7')
    return header.ljust(512, b'\0') + end


class TestRootAtHand(EnvCase):
    def setUp(self):
        self.agent = Agent(self.scratch, self.placement, bus=self.bus, host=recorded_host('by-hand'))
        for folder in (self.scratch.path, self.agent.folder):
            folder.chmod(0o711)
        os.chown(self.agent.state, SERVICE, SERVICE)
        self.root_only = self.scratch.folder('roots')
        self.root_only.chmod(0o755)

    def victim(self, text='important\n'):
        path = self.root_only / 'victim'
        path.write_text(text)
        path.chmod(0o644)
        return path

    def link(self, name, target):
        """Replaces a file of the state folder by a link, as an intruder with the service's rights can do."""
        path = self.agent.state / name
        path.unlink(missing_ok=True)
        path.symlink_to(target)
        os.chown(path, SERVICE, SERVICE, follow_symlinks=False)

    def check_untouched(self, path, why):
        self.assertTrue(path.exists(), why)
        self.assertEqual((path.read_text(), path.stat().st_uid, path.stat().st_mode & 0o777),
                         ('important\n', 0, 0o644), why)

    def test_links_of_the_service_are_not_followed_with_roots_rights(self):
        victim = self.victim()
        for name in WRITTEN:
            self.link(name, victim)
            self.agent.run('--once')
            self.check_untouched(victim, name)
            (self.agent.state / name).unlink(missing_ok=True)
            # A link to a missing file creates no file.
            self.link(name, self.root_only / 'made')
            self.agent.run('--once')
            self.assertEqual(list(self.root_only.iterdir()), [victim], name)
            (self.agent.state / name).unlink(missing_ok=True)
        self.assertEqual(self.agent.run('--once').returncode, 0)

    def test_a_crafted_journal_removes_no_file_of_root(self):
        """SQLite follows names inside its own files, so root must not open them."""
        self.assertEqual(self.agent.run('--once').returncode, 0)
        victim = self.victim()
        journal = self.agent.state / 'claim.sqlite-journal'
        journal.write_bytes(hot_journal(victim))
        os.chown(journal, SERVICE, SERVICE)
        self.agent.run('--once')
        self.check_untouched(victim, 'the journal was rolled back as root')

    def test_files_that_root_makes_belong_to_the_service(self):
        self.agent.run('--once', code=0)
        made = sorted(self.agent.state.iterdir())
        self.assertGreaterEqual({path.name for path in made}, {'claim.sqlite', 'compute_id'})
        self.assertEqual({path.stat().st_uid for path in made}, {SERVICE}, made)

    def test_identity_adopt_by_root(self):
        self.assertEqual(self.agent.run('--once').returncode, 0)
        root = self.agent.root()
        (self.agent.state / 'compute_id').unlink()
        self.agent.ctl('identity', 'adopt', '--force', '--config', self.agent.config)
        self.assertEqual(self.agent.root(), root)
        self.assertEqual((self.agent.state / 'compute_id').stat().st_uid, SERVICE)

    def test_doctor_by_root_sees_what_the_service_cannot_read(self):
        host, ca = self.agent.folder / 'host.json', self.root_only / 'ca.pem'
        ca.write_text('x')
        self.agent.configure({'placement': {'cafile': ca}})
        for mode, files in ((0o600, (ca,)), (0o644, ()), (0o600, (ca, host))):
            ca.chmod(mode)
            host.chmod(0o600 if host in files else 0o644)
            done = self.agent.ctl('doctor', '--config-only', '--all', '--config', self.agent.config, check=False)
            for path in (ca, host):
                self.assertEqual('%s: the service\'s user %s cannot read it: Permission denied' % (path, SERVICE) in done.stdout, path in files, done.stdout)
        ca.unlink()
        self.assertIn('cannot read it: No such file or directory', self.agent.ctl('doctor', '--config-only', '--all', '--config', self.agent.config, code=4).stdout)

    def test_migrate_inventory_direct_by_root(self):
        """The folder of the private Placement belongs to root, and computectl gives the service's user access to it."""
        self.placement.stop()
        self.agent.ctl('migrate-inventory', '--direct', self.placement.folder, '--config', self.agent.config)
        self.placement.start()
        self.assertIn('by-hand', self.placement.tree_by_name(self.agent.root()))
        self.assertEqual((self.agent.state / 'compute_id').stat().st_uid, SERVICE)
