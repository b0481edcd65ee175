# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs a real Keystone over SQLite, with the accounts that the tests need.

The first start creates schema, keys and accounts in about 20 s. Later starts copy them from the
cache.
"""

import base64
import inspect
import json
import os
import shutil
import sqlite3
import subprocess
import time
from pathlib import Path

from tests.env.cache import PYTHON, cached, key_of, package_folders
from tests.env.scratch import EnvError, Scratch, free_port
from tests.env.service import Service
from tests.env.web import ask

ADMIN_PASSWORD = 'bootstrap-Secret-0'
AGENT_PASSWORD = 'agent-Secret-1'
PLACEMENT_PASSWORD = 'placement-Secret-2'
NOVA_PASSWORD = 'nova-Secret-4'
CREDENTIAL_SECRET = 'credential-Secret-3'
SECRETS = (AGENT_PASSWORD, CREDENTIAL_SECRET)
_IDENTITY_URL = 'http://127.0.0.1:1/identity'  # replaced with the URL of each Keystone
_APP = Path(__file__).parent / 'wsgi' / 'keystone_app.py'
_CONFIG = '''[DEFAULT]
use_stderr = true
[database]
connection = sqlite:///{folder}/keystone.sqlite
[token]
provider = fernet
expiration = {expiration}
[fernet_tokens]
key_repository = {folder}/fernet
[fernet_receipts]
key_repository = {folder}/fernet
[credential]
key_repository = {folder}/credential
[identity]
password_hash_rounds = 4
[cache]
enabled = true
backend = dogpile.cache.memory
'''


def _write_config(folder, expiration):
    (folder / 'keystone.conf').write_text(_CONFIG.format(folder=folder, expiration=expiration))


def _manage(folder, *args):
    code = 'from keystone.cmd.manage import main; main()'
    done = subprocess.run([PYTHON, '-c', code, '--config-file', folder / 'keystone.conf', *args],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=180,
                          check=False)
    if done.returncode:
        raise EnvError('keystone-manage %s:\n%s' % (args[0], done.stdout.decode()[-2000:]))


def _fill(folder):
    """Creates schema, keys and the first account, and then the rest through the API."""
    _write_config(folder, 3600)
    for name in ('fernet', 'credential'):
        (folder / name).mkdir(mode=0o700)
    user = ['--keystone-user', 'root', '--keystone-group', 'root'] if os.getuid() == 0 else []
    _manage(folder, 'db_sync')
    with sqlite3.connect(folder / 'keystone.sqlite') as database:
        database.execute('PRAGMA journal_mode=WAL')
    _manage(folder, 'fernet_setup', *user)
    _manage(folder, 'credential_setup', *user)
    _manage(folder, 'bootstrap', '--bootstrap-password', ADMIN_PASSWORD)
    with Scratch() as scratch:
        keystone = Keystone(scratch, data=folder).start()
        _make_accounts(keystone)
        keystone.stop()
        for name in ('keystone.sqlite', 'keystone.sqlite-wal', 'keystone.sqlite-shm'):
            if (keystone.folder / name).exists():
                shutil.copyfile(keystone.folder / name, folder / name)


def _make_accounts(keystone):
    """Creates the users agent, placement and nova (roles admin and service), and a user with only
    the role reader."""
    project = keystone.create('project', name='service', domain_id='default')
    roles = {role['name']: role['id'] for role in keystone.admin('GET', '/roles')['roles']}
    roles.setdefault('service', None)
    roles['service'] = roles['service'] or keystone.create('role', name='service')
    for name, password, wanted in (('agent', AGENT_PASSWORD, ('admin', 'service')),
                                   ('placement', PLACEMENT_PASSWORD, ('admin', 'service')),
                                   ('nova', NOVA_PASSWORD, ('admin', 'service')),
                                   ('nobody', AGENT_PASSWORD, ('reader',))):
        user = keystone.create('user', name=name, password=password, domain_id='default')
        for role in wanted:
            for scope in ('projects/' + project, 'domains/default', 'system'):
                keystone.admin('PUT', '/%s/users/%s/roles/%s' % (scope, user, roles[role]))
    service = keystone.create('service', name='placement', type='placement')
    identity = keystone.create('service', name='keystone', type='identity')
    for region in ('RegionOne', 'RegionTwo'):
        keystone.create('region', id=region)
        for interface in ('public', 'internal', 'admin'):
            keystone.create('endpoint', service_id=service, interface=interface, region_id=region,
                            url='http://127.0.0.1:1/%s/%s' % (region, interface))
            keystone.create('endpoint', service_id=identity, interface=interface,
                            region_id=region, url=_IDENTITY_URL)
    token = keystone.token('agent', AGENT_PASSWORD)
    keystone.create('application_credential', token=token, path='/users/%s/%s' % (
        keystone.user_id('agent'), 'application_credentials'), name='compute-agent',
        secret=CREDENTIAL_SECRET)


class Keystone(Service):
    """Keystone on a port that stays the same from start to start. Tokens are valid for expiration
    seconds."""

    name = 'keystone'
    placement_password = PLACEMENT_PASSWORD

    def __init__(self, scratch=None, expiration=3600, data=None):
        super().__init__(scratch)
        self.expiration = expiration
        self._admin_token, self._admin_until = None, 0
        self.port = free_port()
        self.url = 'http://127.0.0.1:%d' % self.port
        self.records = self.folder / 'requests.jsonl'
        self.records.touch()
        if data is None:
            code = inspect.getsource(_fill) + inspect.getsource(_make_accounts)
            data = cached('keystone-' + key_of(_CONFIG, code, *package_folders('keystone')), _fill)
        for path in data.iterdir():
            if path.is_dir():
                shutil.copytree(path, self.folder / path.name)
            else:
                shutil.copyfile(path, self.folder / path.name)
        _write_config(self.folder, expiration)
        with sqlite3.connect(self.folder / 'keystone.sqlite') as database:
            database.execute('UPDATE endpoint SET url = ? WHERE url = ?',
                             (self.url, _IDENTITY_URL))

    def _spawn(self):
        env = {**os.environ, 'PYTHONDONTWRITEBYTECODE': '1', 'OS_KEYSTONE_CONFIG_DIR':
               str(self.folder), 'PLACEMENT_RECORD': str(self.records)}
        return self.scratch.spawn([PYTHON, _APP, '127.0.0.1', self.port], 'keystone', self.folder,
                                  env=env, cwd=self.folder)

    def answers(self):
        return self.request('GET', '/v3').status == 200

    def request(self, method, path, body=None, token=None):
        return ask(self.port, method, path, body, {'X-Auth-Token': token} if token else {})

    def token(self, user='admin', password=ADMIN_PASSWORD, project=None):
        """Returns a new token of the user."""
        project = project or ('admin' if user == 'admin' else 'service')
        domain = {'id': 'default'}
        answer = self.request('POST', '/v3/auth/tokens', {'auth': {
            'identity': {'methods': ['password'], 'password': {
                'user': {'name': user, 'domain': domain, 'password': password}}},
            'scope': {'project': {'name': project, 'domain': domain}}}})
        answer.good()
        return answer.headers['X-Subject-Token']

    def admin(self, method, path, body=None, token=None):
        """Sends a request with the administrator's token. Returns the JSON of its answer."""
        return self.request(method, '/v3' + path, body, token or self.admin_token()).good()

    def admin_token(self):
        """Returns the administrator's token. It is cached for 40 % of its validity."""
        now = time.monotonic()
        if now >= self._admin_until:
            self._admin_token = self.token()
            self._admin_until = now + self.expiration * 0.4
        return self._admin_token

    def forget_token(self):
        self._admin_until = 0

    def create(self, kind, token=None, path=None, **fields):
        """Creates an object of this kind. Returns its id."""
        made = self.admin('POST', path or '/%ss' % kind, {kind: fields}, token)
        return made[kind]['id']

    def user_id(self, name):
        return self.admin('GET', '/users?name=' + name)['users'][0]['id']

    def credential_id(self):
        """Returns the id of the application credential of the user agent."""
        return self.admin('GET', '/users/%s/application_credentials' % self.user_id('agent'))[
            'application_credentials'][0]['id']

    def set_endpoint(self, url, region='RegionOne', interface='internal'):
        """Sets the URL of Placement in the catalogue."""
        found = self.admin('GET', '/endpoints?region_id=%s&interface=%s' % (region, interface))
        for endpoint in found['endpoints']:
            if endpoint['service_id'] == self._service_id():
                self.admin('PATCH', '/endpoints/' + endpoint['id'], {'endpoint': {'url': url}})

    def _service_id(self):
        return self.admin('GET', '/services?type=placement')['services'][0]['id']

    def mark(self):
        """Returns the current position in the record, for records_since() and tokens_since()."""
        return self.records.stat().st_size

    def tokens_since(self, mark=0, user=None):
        """Returns the statuses of the requests for a token since mark. user: only those that name
        this user."""
        return [line['status'] for line in self.records_since(mark) if line['method'] == 'POST'
                and line['path'] == '/v3/auth/tokens' and (user or '') in line['body']]

    def records_since(self, mark=0):
        """Returns the recorded requests since mark, as dicts of method, path, status, agent, began, ..."""
        with open(self.records, 'rb') as file:
            file.seek(mark)
            return [json.loads(line) for line in file.read().splitlines(keepends=True) if line.endswith(b'\n')]

    def end_tokens(self):
        """Makes all issued tokens invalid: replaces the keys, and starts again without the cache of tokens."""
        self.stop()
        for path in (self.folder / 'fernet').iterdir():
            path.write_bytes(base64.urlsafe_b64encode(os.urandom(32)))
        self.forget_token()
        self.start()
