# SPDX-License-Identifier: LGPL-2.1-or-later
"""Private database servers for Placement. Root runs them as the account of their Debian package."""

import getpass
import os
import shutil
import subprocess
from pathlib import Path

from tests.env.scratch import EnvError, free_port
from tests.env.service import Service


class _Server(Service):
    """A database server, which runs as soon as the object exists."""

    account = None
    patience = 300

    def __init__(self, scratch):
        super().__init__(scratch)
        self._account = self.account if os.getuid() == 0 else None
        self._user = self._account or getpass.getuser()
        if self._account:
            scratch.path.chmod(0o755)
            shutil.chown(self.folder, self._account)
        self._make()
        self.start()

    def _make(self):
        """Creates the data folder."""
        raise NotImplementedError

    def sql(self, statement, database=None):
        """Runs statements, separated by semicolons, in a database or outside of any."""
        raise NotImplementedError

    def url(self, database):
        """Returns the URL of a database for SQLAlchemy."""
        raise NotImplementedError

    def create(self, name):
        """Creates an empty database. Returns its URL."""
        self.sql('CREATE DATABASE %s' % name)
        return self.url(name)

    def _run(self, program, *args):
        done = subprocess.run([program, *map(str, args)], user=self._account, cwd='/', timeout=600,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if done.returncode:
            raise EnvError('%s: %s' % (program, done.stdout.decode()))

    def answers(self):
        self.sql('SELECT 1')
        return True


class Postgres(_Server):
    """A PostgreSQL server on a loopback port."""

    name, account = 'postgresql', 'postgres'

    def _make(self):
        self._port = free_port()
        self._run(_program('initdb'), '-D', self.folder / 'data', '-A', 'trust', '-U', self._user)

    def _spawn(self):
        return self.scratch.spawn([_program('postgres'), '-D', self.folder / 'data', '-p', self._port, '-k', self.folder,
                                   '-c', 'listen_addresses=127.0.0.1',
                                   # Keep shared memory in files of its folder: after a kill, files in /dev/shm would stay.
                                   '-c', 'dynamic_shared_memory_type=mmap'], self.name, user=self._account)

    def sql(self, statement, database='postgres'):
        self._run(_program('psql'), '-q', '-h', '127.0.0.1', '-p', self._port, '-U', self._user, '-d', database,
                  '-c', statement)

    def url(self, database):
        return 'postgresql+psycopg2://%s@127.0.0.1:%d/%s' % (self._user, self._port, database)


class MariaDB(_Server):
    """A MariaDB server on a Unix socket only. Its data need not survive a crash of the machine.

    copy_of: the data folder of a stopped server, which this one copies.
    """

    name, account = 'mariadb', 'mysql'
    _how = ('--no-defaults', '--innodb-flush-method=nosync', '--innodb-flush-log-at-trx-commit=0',
            '--innodb-log-file-size=8M')

    def __init__(self, scratch, copy_of=None):
        self._copy_of = copy_of
        super().__init__(scratch)

    @property
    def data(self):
        return self.folder / 'data'

    def _make(self):
        self._socket = self.folder / 'socket'
        # A private tmpdir: another server that starts removes the files that it finds in /tmp.
        self._where = '--datadir=%s' % self.data, '--tmpdir=%s' % self.folder
        if self._copy_of:
            shutil.copytree(self._copy_of, self.data)
            for path in [self.data, *self.data.rglob('*')] if self._account else []:
                shutil.chown(path, self._account, self._account)
        else:
            self._run(_program('mariadb-install-db'), *self._how, *self._where, '--auth-root-authentication-method=normal',
                      '--skip-test-db')

    def _spawn(self):
        return self.scratch.spawn([_program('mariadbd'), *self._how, *self._where, '--socket=%s' % self._socket,
                                   '--skip-networking', '--pid-file=%s' % (self.folder / 'pid'), '--max-connections=300'],
                                  self.name, user=self._account)

    def sql(self, statement, database=''):
        self._run(_program('mariadb'), '--no-defaults', '--socket=%s' % self._socket, '--user=root',
                  '--execute=' + statement, database)

    def url(self, database):
        return 'mysql+pymysql://root@localhost/%s?unix_socket=%s' % (database, self._socket)


def _program(name):
    """Returns the path of a server's program, which need not be in PATH."""
    found = [shutil.which(name), *sorted(Path('/usr/lib/postgresql').glob('*/bin/' + name), reverse=True),
             shutil.which(name, path='/usr/sbin')]
    for path in filter(None, found):
        return str(path)
    raise EnvError('%s is missing (tests/run/packages, group bench)' % name)


SERVERS = {server.name: server for server in (Postgres, MariaDB)}
