# SPDX-License-Identifier: LGPL-2.1-or-later
"""A Placement as it is deployed, for benchmarks: gunicorn (2 processes of 4 threads), SQLite or PostgreSQL."""

import contextlib
import getpass
import http.client
import os
import shutil
import subprocess
from pathlib import Path

from tests.env.scratch import EnvError, free_port

_CONFIG = '''[DEFAULT]
use_stderr = true
[api]
auth_strategy = noauth2
[placement_database]
connection = %s
sync_on_startup = true
'''
_WARMING_REQUESTS = 12


class Postgres:
    """A private PostgreSQL on a loopback port; root runs it as the account "postgres"."""

    def __init__(self, scratch):
        self.port = free_port()
        self._account = 'postgres' if os.getuid() == 0 else None
        self._user = self._account or getpass.getuser()
        folder = scratch.folder('postgresql')
        if self._account:
            scratch.path.chmod(0o755)
            shutil.chown(folder, self._account)
        self._run('initdb', '-D', folder / 'data', '-A', 'trust', '-U', self._user)
        self.child = scratch.spawn([_program('postgres'), '-D', folder / 'data', '-p', self.port, '-k', folder,
                                    '-c', 'listen_addresses=127.0.0.1'], 'postgresql', user=self._account)
        self.child.wait_ready(self._answers, 60, 'PostgreSQL to answer')

    def _run(self, name, *args):
        done = subprocess.run([_program(name), *map(str, args)], user=self._account, cwd='/', timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if done.returncode:
            raise EnvError('%s: %s' % (name, done.stdout.decode()))

    def _answers(self):
        with contextlib.suppress(EnvError):
            self.sql('SELECT 1')
            return True
        return False

    def sql(self, statement):
        self._run('psql', '-q', '-h', '127.0.0.1', '-p', self.port, '-U', self._user, '-d', 'postgres', '-c', statement)

    def url(self, database):
        return 'postgresql+psycopg2://%s@127.0.0.1:%d/%s' % (self._user, self.port, database)


def _program(name):
    """The path of a program of PostgreSQL, which Debian keeps out of PATH."""
    found = [shutil.which(name), *sorted(Path('/usr/lib/postgresql').glob('*/bin/' + name), reverse=True)]
    for path in filter(None, found):
        return str(path)
    raise EnvError('%s is missing (Debian package postgresql)' % name)


class BenchPlacement:
    """reset() gives it an empty database and starts it anew.

    database: 'sqlite' or 'postgresql'.
    """

    def __init__(self, scratch, database):
        self._scratch = scratch
        self._folder = scratch.folder('placement-' + database)
        self._postgres = Postgres(scratch) if database == 'postgresql' else None
        self._template = self._folder / 'template.sqlite'
        self._made = False
        self._child = None
        self.port = free_port()

    @property
    def endpoint(self):
        return 'http://127.0.0.1:%d' % self.port

    def pids(self):
        """Of the servers; their children are not named."""
        return [self._child.pid] + ([self._postgres.child.pid] if self._postgres else [])

    def reset(self):
        self.stop()
        if not self._made:
            self._empty(None)
            self._start()
            self.stop()
            self._keep()
            self._made = True
        self._empty('template')
        self._start()

    def _empty(self, template):
        if self._postgres:
            self._postgres.sql('DROP DATABASE IF EXISTS placement WITH (FORCE)')
            self._postgres.sql('CREATE DATABASE placement' + (' TEMPLATE %s' % template if template else ''))
            return
        for path in self._folder.glob('placement.sqlite*'):
            path.unlink()
        if template:
            shutil.copyfile(self._template, self._folder / 'placement.sqlite')

    def _keep(self):
        if self._postgres:
            self._postgres.sql('ALTER DATABASE placement RENAME TO template')
        else:
            shutil.copyfile(self._folder / 'placement.sqlite', self._template)

    def _start(self):
        url = self._postgres.url('placement') if self._postgres else 'sqlite:///%s/placement.sqlite' % self._folder
        (self._folder / 'placement.conf').write_text(_CONFIG % url)
        env = {**os.environ, 'OS_PLACEMENT_CONFIG_DIR': str(self._folder)}
        self._child = self._scratch.spawn(
            ['/usr/bin/python3', '-m', 'gunicorn', '-w', 2, '-k', 'gthread', '--threads', 4, '--keep-alive', 75,
             '--worker-tmp-dir', '/dev/shm', '-b', '127.0.0.1:%d' % self.port, 'placement.wsgi:init_application()'],
            'placement', self._folder, env=env, cwd=self._folder)
        self._child.wait_ready(self._answers, 60, 'Placement to answer')
        # Each process loads its traits and classes with its first requests.
        for _ in range(_WARMING_REQUESTS):
            self._get('/traits?name=startswith:COMPUTE_')

    def _get(self, path):
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=30)
        try:
            connection.request('GET', path, headers={'X-Auth-Token': 'admin',
                                                     'OpenStack-API-Version': 'placement 1.30'})
            answer = connection.getresponse()
            answer.read()
            return answer.status
        finally:
            connection.close()

    def _answers(self):
        try:
            return self._get('/') == 200
        except (OSError, http.client.HTTPException):
            return False

    def stop(self):
        if self._child:
            self._child.stop()
            self._child = None
