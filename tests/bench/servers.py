# SPDX-License-Identifier: LGPL-2.1-or-later
"""A Placement as it is deployed, for benchmarks: gunicorn (2 processes of 4 threads), SQLite or PostgreSQL."""

import http.client
import os
import shutil

from tests.env.databases import Postgres
from tests.env.scratch import free_port

_CONFIG = '''[DEFAULT]
use_stderr = true
[api]
auth_strategy = noauth2
[placement_database]
connection = %s
sync_on_startup = true
'''
_WARMING_REQUESTS = 12


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
