# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs a real Placement over SQLite or another database. A small client reads it and shares no code with the agent."""

import contextlib
import functools
import inspect
import json
import os
import shutil
import sqlite3
import subprocess
import uuid
from pathlib import Path

from tests.env.cache import PYTHON, cached, key_of, package_folders
from tests.env.scratch import EnvError, free_port, preloaded, wait_until
from tests.env.service import Service
from tests.env.web import ask

MICROVERSION = '1.39'
_INVENTORY = ('total', 'reserved', 'min_unit', 'max_unit', 'step_size', 'allocation_ratio')
_APP = Path(__file__).parent / 'wsgi' / 'placement_app.py'
_CONFIG = '''[DEFAULT]
use_stderr = true
[api]
auth_strategy = %s
[placement_database]
connection = %s
sqlite_synchronous = false
sync_on_startup = %s
[oslo_policy]
enforce_scope = false
policy_file = %s
'''
# Without Keystone no user has the role service, which newer releases of Placement require for a reshape.
_POLICY = 'placement:reshaper:reshape: "role:admin or role:service"\n'
_KEYSTONE_CONFIG = '''[keystone_authtoken]
www_authenticate_uri = {url}/v3
auth_url = {url}/v3
auth_type = password
username = placement
password = {password}
user_domain_id = default
project_name = service
project_domain_id = default
token_cache_time = -1
'''


def _write_config(folder, sync, keystone=None, url=None):
    policy = folder / 'policy.yaml'
    policy.write_text('' if keystone else _POLICY)
    text = _CONFIG % ('keystone' if keystone else 'noauth2',
                      url or 'sqlite:///%s' % (folder / 'placement.sqlite'),
                      'true' if sync else 'false', policy)
    if keystone:
        text += _KEYSTONE_CONFIG.format(url=keystone.url, password=keystone.placement_password)
    (folder / 'placement.conf').write_text(text)


def _environment(folder, server):
    return {**os.environ, 'OS_PLACEMENT_CONFIG_DIR': str(folder), 'PYTHONDONTWRITEBYTECODE': '1',
            'PYTHONPATH': str(_APP.parent), 'PLACEMENT_RECORD': str(folder / 'requests.jsonl'), 'PLACEMENT_SERVER': server}


def number_once(path):
    """Changes the schema so that no two allocations ever have the same row number, as with MySQL and PostgreSQL.

    SQLite reuses the number of a deleted row. Placement deletes the allocations of a consumer by the numbers that it read before. If a
    reshape rewrites all allocations between these steps, the numbers can belong to another consumer.
    """
    with contextlib.closing(sqlite3.connect(path)) as database:
        statements = [row[0] for row in database.execute(
            "SELECT sql FROM sqlite_master WHERE tbl_name = 'allocations' AND sql IS NOT NULL"
            " ORDER BY type = 'index'")]
        table = statements[0].replace('id INTEGER NOT NULL', 'id INTEGER PRIMARY KEY AUTOINCREMENT',
                                      1).replace(', \n\tPRIMARY KEY (id)', '')
        if 'PRIMARY KEY (id)' in table or 'AUTOINCREMENT' not in table:
            raise EnvError('not as expected: %s' % table)
        database.executescript(';'.join(['DROP TABLE allocations', table, *statements[1:]]))


def make_schema(folder, url=None):
    """Lets Placement create its schema, traits and resource classes in folder, or in the database url."""
    _write_config(folder, sync=True, url=url)
    done = subprocess.run([PYTHON, str(_APP)], env=_environment(folder, 'none'), timeout=600,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        raise EnvError('no Placement schema:\n%s' % done.stdout.decode()[-2000:])


def _make_database(folder):
    make_schema(folder)
    number_once(folder / 'placement.sqlite')


@functools.lru_cache(maxsize=None)
def ready_made_database():
    """Returns the path of a database with Placement's schema and no providers. The caller copies it."""
    key = key_of(*package_folders('placement', 'os_traits', 'os_resource_classes'), _CONFIG, inspect.getsource(number_once))
    return cached('placement-' + key, _make_database) / 'placement.sqlite'


class Placement(Service):
    """Placement on a port or Unix socket that stays the same from start to start.

    server: 'gunicorn' (two processes of four threads), 'unix' (the same on a Unix socket, for all users) or 'simple' (one thread).
    Parallel writes can get 500 "database is locked" from SQLite, never with 'simple'.

    keystone: the Keystone that validates tokens; then this client reads as its administrator. database: a server of tests.env.databases,
    which is borrowed, or the URL of a database with the schema; None: SQLite. config: more lines for placement.conf.
    """

    name = 'placement'

    def __init__(self, scratch=None, server='gunicorn', keystone=None, database=None, config=''):
        super().__init__(scratch)
        self.server = server
        self.keystone = keystone
        self.port = None if server == 'unix' else free_port()
        self.socket_path = None if self.port else str(self.scratch.folder('socket') / 'placement.sock')
        self._records = self.folder / 'requests.jsonl'
        self._records.touch()
        url = self._database = database
        if database and not isinstance(database, str):
            url = database.create(self._database_name())
            make_schema(self.folder, url)
        elif not url:
            shutil.copyfile(ready_made_database(), self.folder / 'placement.sqlite')
        _write_config(self.folder, sync=False, keystone=keystone, url=url)
        with open(self.folder / 'placement.conf', 'a', encoding='utf-8') as file:
            file.write(config)

    @property
    def endpoint(self):
        """The URL. With 'unix' its host has no meaning: connect to socket_path."""
        return 'http://127.0.0.1:%d' % self.port if self.port else 'http://localhost'

    def _argv(self):
        if self.server == 'simple':
            return [_APP, '127.0.0.1', self.port]
        return ['gunicorn', '--chdir', _APP.parent, '-b', 'unix:' + self.socket_path if self.socket_path else '127.0.0.1:%d' % self.port,
                '-w', 2, '-k', 'gthread', '--threads', 4, '--keep-alive', 60,
                '--graceful-timeout', 2, 'placement_app:make_application()']

    def _spawn(self):
        return self.scratch.spawn(self._argv(), self.server, self.folder, env=_environment(self.folder, self.server),
                                  cwd=self.folder, popen=preloaded.popen)

    def answers(self):
        return self.request('GET', '/', timeout=2, record=False).status == 200

    def request(self, method, path, body=None, microversion=MICROVERSION, timeout=30,
                record=True):
        """Sends a request over its own connection. Returns an Answer.

        With record False, requests_since() omits the request.
        """
        answer = self._request(method, path, body, microversion, timeout, record)
        if answer.status == 401 and self.keystone:
            self.keystone.forget_token()
            answer = self._request(method, path, body, microversion, timeout, record)
        return answer

    def _request(self, method, path, body, microversion, timeout, record):
        token = self.keystone.admin_token() if self.keystone else 'admin'
        headers = {'X-Auth-Token': token, 'Accept': 'application/json',
                   'OpenStack-API-Version': 'placement ' + microversion}
        if not record:
            headers['X-Openstack-Request-Id'] = _UNRECORDED
        return ask(self.socket_path or self.port, method, path, body, headers, timeout)

    def written_later(self, consumer, seconds):
        """Moves the creation time of a consumer's allocations by this number of seconds."""
        with self._sqlite() as database, database:
            database.execute("UPDATE allocations SET created_at = strftime('%Y-%m-%d %H:%M:%f000', created_at, ?)"
                             ' WHERE consumer_id = ?', ('%+d seconds' % seconds, consumer))

    def get(self, path, missing=None):
        """Returns the JSON of an unrecorded GET. Returns missing after a 404."""
        answer = self.request('GET', path, record=False)
        return missing if answer.status == 404 else answer.good()

    def api(self, method, path, body=None):
        """Returns the JSON of an unrecorded request that must succeed."""
        return self.request(method, path, body, record=False).good()

    # ---- Writes of other clients than the agent, which are not recorded

    def make_provider(self, name, inventories=None, parent=None, traits=()):
        """Creates a provider with inventories {class: total, or a whole record}. Returns its uuid."""
        made = str(uuid.uuid4())
        self.api('POST', '/resource_providers', {'uuid': made, 'name': name, **({'parent_provider_uuid': parent} if parent else {})})
        if inventories:
            self.set_part(made, 'inventories', {key: one if isinstance(one, dict) else {'total': one, 'max_unit': one}
                                                for key, one in inventories.items()})
        if traits:
            self.set_part(made, 'traits', list(traits))
        return made

    def set_part(self, provider, part, value):
        """Sets inventories, traits or aggregates of a provider."""
        path = '/resource_providers/' + provider
        self.api('PUT', path + '/' + part, {part: value, 'resource_provider_generation': self.get(path)['generation']})

    def edit(self, provider, part, change):
        """Reads inventories (a dict) or traits (a list) of a provider, lets change() edit them, and writes them."""
        path = '/resource_providers/%s/%s' % (provider, part)

        def write():
            now = self.get(path)
            change(now[part])
            return self.request('PUT', path, now, record=False).status == 200
        wait_until(write, 20, 'the ' + part)  # SQLite rejects one of two parallel writers

    def put(self, consumer, held, kind='INSTANCE', project='demo'):
        """Sets the allocations of a consumer to {provider: {class: amount}}, as a scheduler does. Returns the status of the answer."""
        return self.request('PUT', '/allocations/' + consumer, {
            'allocations': {provider: {'resources': amounts} for provider, amounts in held.items()},
            'project_id': project, 'user_id': 'user', 'consumer_type': kind,
            'consumer_generation': self.generation(consumer)}, record=False).status

    def place(self, consumer, held, **more):
        """Sets the allocations of a consumer, which must succeed. Returns the consumer. None: a new consumer."""
        consumer = consumer or str(uuid.uuid4())
        status = self.put(consumer, held, **more)
        if status != 204:
            raise EnvError('%s does not get %s: %d' % (consumer, held, status))
        return consumer

    def write(self, parts, project='demo'):
        """Writes {consumer: {provider: {class: amount}}} in one request and without consumer types, as Nova does."""
        answer = self.request('POST', '/allocations', {consumer: {
            'allocations': {provider: {'resources': amounts} for provider, amounts in held.items()},
            'consumer_generation': self.generation(consumer), 'project_id': project, 'user_id': 'someone'}
            for consumer, held in parts.items()}, microversion='1.36')
        if answer.status != 204:
            raise EnvError('not written: %d %s' % (answer.status, answer.text))

    def held(self, consumer):
        """Returns the allocations of a consumer, as {provider: {class: amount}}."""
        if not self._database:
            return self.all_held().get(consumer, {})
        found = self.get('/allocations/' + consumer)['allocations']
        return {provider: part['resources'] for provider, part in found.items()}

    def all_held(self):
        """Returns the allocations of all consumers, as {consumer: {provider: {class: amount}}}, from the database, which is SQLite."""
        found = {}
        with self._sqlite() as database:
            for consumer, provider, name, used in database.execute(
                    'SELECT consumer_id, resource_providers.uuid, resource_classes.name, used FROM allocations'
                    ' JOIN resource_providers ON resource_providers.id = resource_provider_id'
                    ' JOIN resource_classes ON resource_classes.id = resource_class_id'):
                found.setdefault(consumer, {}).setdefault(provider, {})[name] = used
        return found

    def generation(self, consumer):
        """Returns the generation of a consumer, or None if it has no allocations."""
        if not self._database:
            with self._sqlite() as database:
                row = database.execute('SELECT generation FROM consumers WHERE uuid = ?', (consumer,)).fetchone()
            return row and row[0]
        return self.get('/allocations/' + consumer).get('consumer_generation')

    def delete(self, consumer):
        """Deletes the allocations of a consumer."""
        def is_deleted():
            answer = self.request('DELETE', '/allocations/' + consumer, record=False)
            if answer.status == 500:  # SQLite rejects one of two parallel writers
                return False
            answer.good()
            return True
        wait_until(is_deleted, 20, 'the allocations to be deleted')

    def forget_providers(self):
        """Deletes all providers, which the next agent, for another host, cannot use."""
        providers = self.get('/resource_providers')['resource_providers']
        for provider in sorted(providers, key=lambda provider: provider['parent_provider_uuid'] is None):
            self.request('DELETE', '/resource_providers/' + provider['uuid'])

    def _sqlite(self):
        return contextlib.closing(sqlite3.connect(self.folder / 'placement.sqlite', timeout=30))

    def _database_name(self):
        return self.folder.name.replace('-', '_')

    def empty(self):
        """Deletes all consumers and providers in the database itself, because requests take much longer."""
        statements = ['UPDATE resource_providers SET parent_provider_id = NULL, root_provider_id = NULL',
                      *('DELETE FROM ' + table for table in ('allocations', 'consumers', 'inventories', 'resource_provider_traits',
                                                             'resource_provider_aggregates', 'resource_providers'))]
        if self._database:
            self._database.sql('; '.join(statements), self._database_name())
            return
        with self._sqlite() as database, database:
            for statement in statements:
                database.execute(statement)

    def tree(self, root_uuid):
        """Returns the providers of a tree as {uuid: dict}. The result is empty if the tree does not exist.

        Each dict has name, uuid, parent, root, generation, inventories, usages, traits (a sorted list without generations), aggregates
        (sorted) and allocations. With SQLite they come from the database, because four requests for each provider take much longer.
        """
        if not self._database:
            return self._read_tree(root_uuid)
        return self.requested_tree(root_uuid)

    def requested_tree(self, root_uuid):
        """Returns the same as tree(), always from requests. They are not recorded."""
        found = self.get('/resource_providers?in_tree=' + root_uuid)['resource_providers']
        read = [self._provider(provider) for provider in found]
        return {provider['uuid']: provider for provider in read if provider}

    def tree_by_name(self, root_uuid):
        """Returns the same as tree(), with names as keys."""
        return {provider['name']: provider for provider in self.tree(root_uuid).values()}

    def _read_tree(self, root_uuid):
        with self._sqlite() as database:
            database.execute('BEGIN')  # all tables of one moment
            found = {number: {'uuid': own, 'name': name, 'parent': parent, 'root': root, 'generation': generation, 'inventories': {},
                              'usages': {}, 'traits': [], 'aggregates': [], 'allocations': {}}
                     for number, own, name, parent, root, generation in database.execute(
                         'SELECT own.id, own.uuid, own.name, parent.uuid, root.uuid, own.generation FROM resource_providers AS own'
                         ' JOIN resource_providers AS root ON root.id = own.root_provider_id'
                         ' LEFT JOIN resource_providers AS parent ON parent.id = own.parent_provider_id'
                         ' WHERE own.root_provider_id = (SELECT root_provider_id FROM resource_providers WHERE uuid = ?)', (root_uuid,))}

            def rows(query):
                return [(found[row[0]], *row[1:]) for row in database.execute(query) if row[0] in found]
            for provider, name, *values in rows(
                    'SELECT resource_provider_id, name, %s FROM inventories JOIN resource_classes ON resource_classes.id = resource_class_id'
                    % ', '.join(_INVENTORY)):
                provider['inventories'][name] = dict(zip(_INVENTORY, values))
                provider['usages'][name] = 0
            for provider, consumer, generation, name, used in rows(
                    'SELECT resource_provider_id, consumer_id, generation, name, used FROM allocations'
                    ' JOIN consumers ON consumers.uuid = consumer_id JOIN resource_classes ON resource_classes.id = resource_class_id'):
                part = provider['allocations'].setdefault(consumer, {'resources': {}, 'consumer_generation': generation})
                part['resources'][name] = used
                provider['usages'][name] = provider['usages'].get(name, 0) + used
            for provider, name in rows('SELECT resource_provider_id, name FROM resource_provider_traits'
                                       ' JOIN traits ON traits.id = trait_id ORDER BY name'):
                provider['traits'].append(name)
            for provider, name in rows('SELECT resource_provider_id, uuid FROM resource_provider_aggregates'
                                       ' JOIN placement_aggregates ON placement_aggregates.id = aggregate_id ORDER BY uuid'):
                provider['aggregates'].append(name)
        return {provider['uuid']: provider for provider in found.values()}

    def _provider(self, provider):
        """Returns the dict of tree(), or None if the provider was deleted after the list was read."""
        base = '/resource_providers/' + provider['uuid']
        parts = {name: self.get('%s/%s' % (base, name), missing=None)
                 for name in ('inventories', 'traits', 'aggregates', 'allocations')}
        if not all(parts.values()):
            return None
        usages = dict.fromkeys(parts['inventories']['inventories'], 0)
        for held in parts['allocations']['allocations'].values():
            for name, amount in held['resources'].items():
                usages[name] = usages.get(name, 0) + amount
        return {
            'uuid': provider['uuid'],
            'name': provider['name'],
            'parent': provider['parent_provider_uuid'],
            'root': provider['root_provider_uuid'],
            'generation': provider['generation'],
            'inventories': parts['inventories']['inventories'],
            'usages': usages,
            'traits': sorted(parts['traits']['traits']),
            'aggregates': sorted(parts['aggregates']['aggregates']),
            'allocations': parts['allocations']['allocations'],
        }

    def mark(self):
        """Returns the current position in the record, for requests_since()."""
        return self._records.stat().st_size

    def records_since(self, mark=0):
        """Returns the recorded requests since mark, as dicts of method, path, status, microversion, body, ..."""
        with open(self._records, 'rb') as file:
            file.seek(mark)
            lines = [json.loads(line) for line in file.read().splitlines(keepends=True)
                     if line.endswith(b'\n')]
        return [line for line in lines if line['request_id'] != _UNRECORDED]

    def requests_since(self, mark=0):
        """Returns the same as tuples (method, path with query, status).

        A request is recorded before its answer reaches the client. Reads by tree() and get() are omitted.
        """
        return [(line['method'], line['path'], line['status'])
                for line in self.records_since(mark)]

    def writes_since(self, mark=0):
        """Returns the requests that are not GET."""
        return [line for line in self.requests_since(mark) if line[0] != 'GET']


_UNRECORDED = 'req-00000000-0000-0000-0000-00000000e2e2'
