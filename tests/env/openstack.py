# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs a small OpenStack: Keystone, Placement, Glance and Nova, with the MariaDB and RabbitMQ that they need.

    python3 -m tests.env.openstack [--hosts N] [--agent]

This starts it with N hypervisors, prints one JSON object on one line, and stays until SIGINT, SIGTERM or the end of its input. Each
hypervisor is a libvirtd over an artificial /sys, with guests under TCG. With --agent each has a compute-agentd, and nova-compute uses it.

Neutron is missing, so servers have no networks. The first start fills a cache, which takes a minute. It needs Debian's packages of the
group "cloud" (tests/run/packages), and root.
"""

import argparse
import contextlib
import http.server
import inspect
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from tests.env.agent import Agent
from tests.env.bus import Bus
from tests.env.cache import PYTHON, cached, key_of, package_folders
from tests.env.databases import MariaDB
from tests.env.hosts import simple_host
from tests.env.keystone import AGENT_PASSWORD, NOVA_PASSWORD, Keystone
from tests.env.libvirtd import Libvirtd
from tests.env.placement import Placement, make_schema
from tests.env.rabbitmq import RabbitMQ
from tests.env.scratch import EnvError, Scratch, free_port, wait_until
from tests.env.service import Service, Startable
from tests.env.web import ask

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = ROOT / 'plugins/nova'
MICROVERSION = '2.90'
USAGE_MICROVERSION = '2.87'  # the last microversion that shows the usage of a compute node
DATABASES = ('nova_api', 'nova_cell0', 'nova_cell1', 'glance', 'placement')
APP = Path(__file__).parent / 'wsgi' / 'cloud_app.py'
# Each service replaces the fields of the cells' URLs with those of its own configuration.
_CELL = '{scheme}://{username}@{hostname}/%s?{query}'
_CELL_TRANSPORT = '{scheme}://{username}:{password}@{hostname}:{port}/'
_SECONDS = 120

_CREDENTIALS = '''auth_type = password
auth_url = {identity}/v3
username = nova
password = {password}
user_domain_id = default
project_name = service
project_domain_id = default
'''
PASTE_NOVA = '''[composite:osapi_compute]
use = call:nova.api.openstack.urlmap:urlmap_factory
/ = versions
/v2.1 = v21

[pipeline:versions]
pipeline = fault versions_app

[pipeline:v21]
pipeline = fault token context v21_app

[filter:fault]
paste.filter_factory = nova.api.openstack:FaultWrapper.factory

[filter:token]
paste.filter_factory = keystonemiddleware.auth_token:filter_factory

[filter:context]
paste.filter_factory = nova.api.auth:NovaKeystoneContext.factory

[app:versions_app]
paste.app_factory = nova.api.openstack.compute.versions:Versions.factory

[app:v21_app]
paste.app_factory = nova.api.openstack.compute:APIRouterV21.factory
'''
_PASTE_GLANCE = '''[pipeline:glance-api]
pipeline = token context root

[filter:token]
paste.filter_factory = keystonemiddleware.auth_token:filter_factory

[filter:context]
paste.filter_factory = glance.api.middleware.context:ContextMiddleware.factory

[composite:root]
paste.composite_factory = glance.api:root_app_factory
/ = versions_app
/v2 = v2_app

[app:versions_app]
paste.app_factory = glance.api.versions:create_resource

[app:v2_app]
paste.app_factory = glance.api.v2.router:API.factory
'''


class NoNeutron(http.server.BaseHTTPRequestHandler):
    """A Neutron without objects: each list is empty."""

    protocol_version = 'HTTP/1.1'

    def log_message(self, format, *args):
        pass

    def do_GET(self):
        kind = self.path.partition('?')[0].rstrip('/').rpartition('/')[2]
        body = json.dumps({kind or 'versions': []}).encode()
        self.send_response(200)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Program(Service):
    """A program of OpenStack. ready: a function that returns whether the program is ready."""

    patience = _SECONDS

    def __init__(self, name, argv, scratch, ready, env=None, within=()):
        self.name = name
        super().__init__(scratch)
        self._argv, self._ready, self._env, self._within = argv, ready, env or {}, list(within)

    @property
    def log(self):
        path = self.folder / (self.name + '.log')
        return path.read_text(errors='replace') if path.exists() else ''

    def _spawn(self):
        return self.scratch.spawn([*self._within, *self._argv], self.name, self.folder, cwd=self.folder,
                                  env={**os.environ, 'PYTHONWARNINGS': 'ignore', 'PYTHONDONTWRITEBYTECODE': '1',
                                       **self._env}, wrapper=bool(self._within))

    def answers(self):
        return self._ready()


def config_text(sections):
    """Returns the text of a configuration. sections: {section: {key: value}}, or {section: lines}."""
    lines = []
    for name, keys in sections.items():
        lines.append('[%s]' % name)
        lines += [keys] if isinstance(keys, str) else ['%s = %s' % item for item in keys.items()]
    return '\n'.join(lines) + '\n'


def nova_program(name):
    """Returns the argv of one of Nova's programs, without its arguments."""
    return [PYTHON, '-c', 'from nova.cmd.%s import main; main()' % name]


def run_program(what, argv):
    """Runs a program to its end. Raises EnvError with its output if it fails."""
    done = subprocess.run([*map(str, argv)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, check=False,
                          env={**os.environ, 'PYTHONWARNINGS': 'ignore', 'PYTHONDONTWRITEBYTECODE': '1'})
    if done.returncode:
        raise EnvError('%s:\n%s' % (what, done.stdout.decode()[-3000:]))


def _fill(folder):
    """Creates the databases of an unused cloud."""
    with Scratch() as scratch:
        database = MariaDB(scratch)
        for name in DATABASES:
            database.create(name)
        config = scratch.path / 'nova.conf'
        config.write_text(config_text({'DEFAULT': {'transport_url': 'rabbit://guest:guest@127.0.0.1:1/'},
                                       'database': {'connection': database.url('nova_cell1')},
                                       'api_database': {'connection': database.url('nova_api')}}))
        manage = [*nova_program('manage'), '--config-file', config]
        run_program('nova-manage api_db sync', [*manage, 'api_db', 'sync'])
        run_program('nova-manage map_cell0', [*manage, 'cell_v2', 'map_cell0', '--database_connection',
                                              _CELL % 'nova_cell0'])
        run_program('nova-manage db sync', [*manage, 'db', 'sync'])
        run_program('nova-manage create_cell', [*manage, 'cell_v2', 'create_cell', '--name', 'cell1',
                                                '--database_connection', _CELL % 'nova_cell1',
                                                '--transport-url', _CELL_TRANSPORT])
        config.write_text(config_text({'database': {'connection': database.url('glance')}}))
        run_program('glance-manage db sync', [PYTHON, '-c', 'from glance.cmd.manage import main; main()',
                                              '--config-file', config, 'db', 'sync'])
        make_schema(scratch.folder('placement'), database.url('placement'))
        database.stop()
        shutil.copytree(database.data, folder / 'data')


def _key():
    return key_of(*package_folders('nova', 'glance', 'placement', 'os_traits', 'os_resource_classes'), Path('/usr/sbin/mariadbd'),
                  inspect.getsource(_fill), *DATABASES, _CELL)


class Hypervisor:
    """A host of the cloud with its libvirtd, its nova-compute, and optionally an agent."""

    def __init__(self, cloud, host):
        self.name = host.name
        self.cloud = cloud
        self.folder = cloud.scratch.folder('host')
        self.libvirtd = Libvirtd(host, cloud.scratch, shared=cloud.instances)
        (cloud.sockets / host.name).symlink_to(self.libvirtd.socket_path)
        self.bus = Bus(cloud.scratch)
        self.config = self.folder / 'nova-compute.conf'
        self.options = {}
        self.compute = None
        self.agent = None
        self._began = 0  # characters of the log of nova-compute before its last start

    @property
    def enter(self):
        """Returns the argv prefix that runs programs with the host's /sys, name and processes, and this machine's loopback."""
        return self.libvirtd.enter('-m', '-u', '-p')

    def configure(self, options):
        """Merges options of nova-compute, as {section: {key: value}}, and writes its configuration."""
        for section, keys in options.items():
            self.options.setdefault(section, {}).update(keys)
        base = self.cloud.nova_options()
        for section in ('database', 'api_database'):
            base.pop(section)  # nova-compute does not start with these sections
        own = {'DEFAULT': {'host': self.name, 'state_path': self.folder, 'compute_driver': 'libvirt.LibvirtDriver',
                           'instances_path': self.cloud.instances, 'default_log_levels': 'nova.service=DEBUG,amqp=WARN'},
               'oslo_concurrency': {'lock_path': self.folder / 'lock'},
               # Hosts have no common network, so guests migrate from libvirtd to libvirtd through their sockets.
               'libvirt': {'virt_type': 'qemu', 'cpu_mode': 'none', 'connection_uri': self.libvirtd.uri,
                           'live_migration_tunnelled': 'true',
                           'live_migration_uri': 'qemu+unix:///system?socket=%s/%%s' % self.cloud.sockets},
               **dict.fromkeys(('nova_sys_admin', 'privsep_osbrick'),
                               {'helper_command': 'privsep-helper --config-file %s' % self.config})}
        for more in (own, self.options):
            for section, keys in more.items():
                base[section] = {**base.get(section, {}), **keys}
        self.config.write_text(config_text(base))

    def start_compute(self, wait=True):
        """Starts nova-compute with its current configuration. With wait, returns when it serves and Nova shows it as up."""
        if self.compute is None:
            code = ('import nova.cmd, nova.virt; nova.virt.__path__.append("%s"); '
                    'from nova.cmd.compute import main; main()' % PLUGIN)
            self.compute = Program('nova-compute', [PYTHON, '-c', code, '--config-file', self.config],
                                   self.cloud.scratch, self._is_up, {'DBUS_SYSTEM_BUS_ADDRESS': self.bus.address}, self.enter)
        self.libvirtd.start()
        self._began = len(self.compute.log)
        self.compute.start(wait)

    def _services(self):
        return self.cloud.get('/os-services?binary=nova-compute&host=' + self.name)['services']

    def _is_up(self):
        # A killed nova-compute still counts as up. At its start it puts servers that are being built on this host into ERROR, and only
        # then it joins.
        return ('Join ServiceGroup membership' in self.compute.log[self._began:] and
                any(service['state'] == 'up' for service in self._services()))

    def force_down(self, whether):
        """Forces Nova to regard nova-compute as down, or ends this. Returns the Answer."""
        return self.cloud.nova('PUT', '/os-services/' + self._services()[0]['id'], {'forced_down': whether})

    def enable(self, whether):
        """Enables or disables the compute service, as an operator does."""
        return self.cloud.nova('PUT', '/os-services/' + self._services()[0]['id'], {'status': 'enabled' if whether else 'disabled'})

    def wait_hypervisor(self, seconds=_SECONDS):
        """Returns when Nova has the compute node of this host, has mapped it to its cell, and knows its usage. The scheduler ignores the
        host before that."""
        wait_until(lambda: self._compute_node().get('free_disk_gb') is not None, seconds,
                   'the compute node of %s' % self.name, step=0.2)

    def _compute_node(self):
        listed = self.cloud.get('/os-hypervisors/detail?hypervisor_hostname_pattern=%s' % self.name, missing={},
                                microversion=USAGE_MICROVERSION)
        return next((entry for entry in listed.get('hypervisors', []) if entry['hypervisor_hostname'] == self.name), {})

    def make_agent(self, options=None):
        """Makes the agent of this host without starting it. It gets the identity that Nova has for the host, if Nova has one."""
        placement = {'auth_type': 'password', 'auth_url': self.cloud.keystone.url + '/v3', 'username': 'agent',
                     'password': AGENT_PASSWORD, 'user_domain_name': 'Default', 'project_name': 'service',
                     'project_domain_name': 'Default', 'endpoint_override': self.cloud.placement.endpoint, 'timeout': 30}
        ratios = {key: value for key, value in self.cloud.nova_options()['DEFAULT'].items() if key.startswith('initial_')}
        # '-p' because sanitizers need /proc to have their own process.
        within = self.libvirtd.enter('-m', '-p')
        self.agent = Agent(self.cloud.scratch, uri=self.libvirtd.uri, bus=self.bus, within=within, options={
            'DEFAULT': {**ratios, 'instances_path': self.cloud.instances}, 'placement': placement,
            'libvirt': {'virt_type': 'qemu', 'cpu_mode': 'none'}, 'devices': {'enabled_mdev_types': None}})
        self.agent.configure(options or {})
        self.take_identity()
        return self.agent

    def take_identity(self):
        """Gives the agent the identity that Nova has for this host, if Nova has one."""
        compute_id = self._compute_node().get('id')
        if compute_id:
            (self.agent.state / 'compute_id').write_text(compute_id + '\n')

    def domains(self):
        """Returns the guests that libvirt has, as {uuid: whether it runs}."""
        listed = {True: self.libvirtd.virsh('list', '--uuid').split(),
                  False: self.libvirtd.virsh('list', '--uuid', '--inactive').split()}
        return {uuid: runs for runs, uuids in listed.items() for uuid in uuids}


class Cloud(Startable):
    """A whole cloud, as a context manager. hosts: its hypervisors (tests.env.hosts).

    It starts without nova-compute, which start_computes() starts. options: more configuration of all Nova services.
    """

    def __init__(self, hosts=None, options=None):
        self.scratch = Scratch()
        self._options = options or {}
        try:
            self._make(hosts or [simple_host(cells=2)])
        except BaseException:
            self.scratch.close()
            raise

    def _make(self, hosts):
        scratch = self.scratch
        self.folder = scratch.folder('cloud')
        self.instances, self.sockets = scratch.folder('instances'), scratch.folder('sockets')
        self.keystone = Keystone(scratch)
        self.mariadb = MariaDB(scratch, cached('cloud-' + _key(), _fill) / 'data')
        self.rabbitmq = RabbitMQ(scratch)
        self.placement = Placement(scratch, keystone=self.keystone, database=self.mariadb.url('placement'))
        self._neutron = http.server.ThreadingHTTPServer(('127.0.0.1', 0), NoNeutron)
        self._neutron.daemon_threads = True
        threading.Thread(target=self._neutron.serve_forever, daemon=True).start()
        scratch.on_close(self._neutron.server_close)
        scratch.on_close(self._neutron.shutdown)
        self.api_port, self.glance_port = free_port(), free_port()
        self._write_glance()
        self.config = self.folder / 'nova.conf'
        self.config.write_text(config_text(self.nova_options()))
        (self.folder / 'api-paste.ini').write_text(PASTE_NOVA)
        self.glance = Program('glance-api', [PYTHON, APP, 'glance', '127.0.0.1', self.glance_port], scratch,
                              self.port_answers(self.glance_port), {'OS_GLANCE_CONFIG_DIR': str(self.folder)})
        self.api = Program('nova-api', [PYTHON, APP, 'nova', '127.0.0.1', self.api_port], scratch,
                           self.port_answers(self.api_port), {'OS_NOVA_CONFIG_DIR': str(self.folder)})
        self.conductor, self.scheduler = (
            Program('nova-' + name, [*nova_program(name), '--config-file', self.config], scratch,
                    self._service_up('nova-' + name)) for name in ('conductor', 'scheduler'))
        self.more_services = []
        self.hypervisors = [Hypervisor(self, host) for host in hosts]
        self._image = None

    def close(self):
        """Ends everything."""
        with contextlib.ExitStack() as stack:
            stack.callback(self.scratch.close)
            for hypervisor in self.hypervisors:
                stack.callback(hypervisor.libvirtd.close)
            stack.callback(self.rabbitmq.close)

    def start(self):
        """Starts everything except nova-compute."""
        # The order of these does not matter, because each retries its connections after a second. Only the scheduler exits if Keystone is
        # not ready.
        services = [self.rabbitmq, self.keystone, self.placement, self.conductor, self.api, self.glance, *self.more_services]
        for service in services:
            service.start(wait=False)
        for hypervisor in self.hypervisors:
            hypervisor.bus.start()
            hypervisor.libvirtd.start()
        self.keystone.wait_ready()
        self.scheduler.start(wait=False)
        for service in [*services, self.scheduler]:
            service.wait_ready()

    # ---- configuration

    def _credentials(self):
        return _CREDENTIALS.format(identity=self.keystone.url, password=NOVA_PASSWORD)

    def _token(self):
        return 'www_authenticate_uri = %s/v3\n%s' % (self.keystone.url, self._credentials())

    def nova_options(self):
        """Returns the common options of all Nova services, as {section: {key: value}}."""
        credentials = dict(line.split(' = ') for line in self._credentials().splitlines())
        options = {
            'DEFAULT': {
                'my_ip': '127.0.0.1', 'state_path': self.folder, 'transport_url': self.rabbitmq.url,
                'instances_path': self.instances, 'vif_plugging_is_fatal': 'false', 'vif_plugging_timeout': 0,
                'service_down_time': 600, 'allow_resize_to_same_host': 'true', 'rpc_response_timeout': 120,
                'shutdown_timeout': 1, 'periodic_fuzzy_delay': 0,
                'initial_cpu_allocation_ratio': '4.0', 'initial_ram_allocation_ratio': '1.0',
                'initial_disk_allocation_ratio': '1.0'},
            'api': {'auth_strategy': 'keystone'},
            'api_database': {'connection': self.mariadb.url('nova_api')},
            'database': {'connection': self.mariadb.url('nova_cell1')},
            'conductor': {'workers': 1},
            'scheduler': {'workers': 1, 'discover_hosts_in_cells_interval': 2},
            'filter_scheduler': {'track_instance_changes': 'false'},
            'keystone_authtoken': {**credentials, 'www_authenticate_uri': self.keystone.url + '/v3'},
            'placement': {**credentials, 'endpoint_override': self.placement.endpoint},
            'neutron': {**credentials, 'endpoint_override': 'http://127.0.0.1:%d' % self._neutron.server_port},
            'glance': {'endpoint_override': 'http://127.0.0.1:%d' % self.glance_port},
            'key_manager': {'backend': 'nova.keymgr.conf_key_mgr.ConfKeyManager', 'fixed_key': '00' * 32},
            'oslo_concurrency': {'lock_path': self.folder / 'lock'},
            'vnc': {'enabled': 'false'}, 'spice': {'enabled': 'false'}}
        for section, keys in self._options.items():
            options[section] = {**options.get(section, {}), **keys}
        return options

    def _write_glance(self):
        (self.folder / 'glance-api-paste.ini').write_text(_PASTE_GLANCE)
        sections = {'DEFAULT': {'enabled_backends': 'files:file', 'bind_host': '127.0.0.1'},
                    'database': {'connection': self.mariadb.url('glance')},
                    'glance_store': {'default_backend': 'files'},
                    'keystone_authtoken': self._token()}
        for section, folder in (('files', 'images'), ('os_glance_tasks_store', 'tasks'),
                                ('os_glance_staging_store', 'staging')):
            (self.folder / folder).mkdir()
            sections[section] = {'filesystem_store_datadir': self.folder / folder}
        (self.folder / 'glance-api.conf').write_text(config_text(sections))

    # ---- Nova's and Glance's API

    def http(self, port, method, path, body=None, kind='application/json', timeout=_SECONDS,
             microversion=MICROVERSION, service='compute'):
        """Sends a request as the administrator. Returns an Answer."""
        headers = {'X-Auth-Token': self.keystone.admin_token(), 'Accept': 'application/json', 'Content-Type': kind,
                   'OpenStack-API-Version': '%s %s' % (service, microversion)}
        return ask(port, method, path, body, headers, timeout)

    def nova(self, method, path, body=None, **more):
        """Sends a request to Nova. Returns an Answer."""
        return self.http(self.api_port, method, '/v2.1' + path, body, **more)

    def get(self, path, missing=None, **more):
        """Returns the JSON of a GET. After a 404 returns missing, if it is set. Raises EnvError for another failure."""
        answer = self.nova('GET', path, **more)
        if answer.status == 404 and missing is not None:
            return missing
        return answer.good()

    def post(self, path, body):
        """Returns the JSON of a POST that must succeed."""
        return self.nova('POST', path, body).good()

    @staticmethod
    def port_answers(port):
        return lambda: ask(port, 'GET', '/', timeout=10).status < 500

    def _service_up(self, binary):
        return lambda: any(service['state'] == 'up' for service in self.get('/os-services?binary=' + binary)['services'])

    def start_computes(self, options=None):
        """Starts nova-compute on each hypervisor. Returns when the scheduler can place servers on all of them."""
        for hypervisor in self.hypervisors:
            hypervisor.configure(options or {})
            hypervisor.start_compute(wait=False)
        for hypervisor in self.hypervisors:
            hypervisor.compute.wait_ready()
            hypervisor.wait_hypervisor()

    def upload(self, name, content):
        """Creates an image. Returns its id."""
        made = self.http(self.glance_port, 'POST', '/v2/images', {
            'name': name, 'disk_format': 'raw', 'container_format': 'bare'}).good()
        self.http(self.glance_port, 'PUT', '/v2/images/%s/file' % made['id'], content, 'application/octet-stream').good()
        return made['id']

    def image(self):
        """Returns the id of an image of zeros, which any guest can use. The first call creates it."""
        if not self._image:
            self._image = self.upload('nothing', b'\0' * (1 << 20))
        return self._image

    def flavor(self, name, vcpus=1, ram=64, disk=0, extra=None):
        """Creates a flavour. Its id is its name."""
        self.post('/flavors', {'flavor': {'id': name, 'name': name, 'vcpus': vcpus, 'ram': ram, 'disk': disk}})
        if extra:
            self.post('/flavors/%s/os-extra_specs' % name, {'extra_specs': extra})
        return name

    def create(self, name, flavor, host=None, **more):
        """Creates a server. Returns its id without waiting. host: the required host."""
        body = {'name': name, 'flavorRef': flavor, 'imageRef': self.image(), 'networks': 'none', **more}
        if host:
            body['host'] = host
        return self.post('/servers', {'server': body})['server']['id']

    def server(self, server):
        """Returns Nova's record of a server, or None if it does not exist."""
        return self.get('/servers/' + server, missing={}).get('server')

    def wait_status(self, server, *wanted, seconds=_SECONDS):
        """Returns Nova's record of a server when its status is one of wanted and no task runs."""
        last = {}

        def reached():
            told = self.server(server)
            last.update(told or {'status': 'gone'})
            if told and told['status'] == 'ERROR' and 'ERROR' not in wanted:
                raise EnvError('server in ERROR: %s\n%s' % (told.get('fault', {}), self._said()))
            return told and told['status'] in wanted and not told['OS-EXT-STS:task_state'] and told
        try:
            return wait_until(reached, seconds, 'server %s to be %s' % (server, '/'.join(wanted)), step=0.2)
        except EnvError as error:
            raise EnvError('%s; it is %s, %s' % (error, last.get('status'), last.get('OS-EXT-STS:task_state'))) from None

    def _said(self):
        """Returns the last lines of the logs of nova-scheduler and each nova-compute. They explain why no host was suitable."""
        programs = [self.scheduler, *(host.compute for host in self.hypervisors if host.compute)]
        return '\n'.join('--- %s\n%s' % (program.name, '\n'.join(program.log.splitlines()[-40:])) for program in programs)

    def boot(self, name, flavor, host=None, **more):
        """Boots a server. Returns its id when it is ACTIVE."""
        server = self.create(name, flavor, host, **more)
        self.wait_status(server, 'ACTIVE')
        return server

    def act(self, server, action, argument=None, *wanted, seconds=_SECONDS):
        """Runs an action of a server. With wanted, returns when its status is one of these."""
        self.post('/servers/%s/action' % server, {action: argument})
        return self.wait_status(server, *wanted, seconds=seconds) if wanted else None

    def delete(self, server, wait=True, seconds=_SECONDS):
        """Deletes a server. With wait, returns when Nova does not have it any more."""
        self.nova('DELETE', '/servers/' + server).good()
        if wait:
            wait_until(lambda: self.server(server) is None, seconds, 'server %s to be deleted' % server, step=0.2)


def parse_args(argv):
    parser = argparse.ArgumentParser(prog='python3 -m tests.env.openstack')
    parser.add_argument('--hosts', type=int, default=1, help='how many hypervisors')
    parser.add_argument('--agent', action='store_true', help='with compute-agentd below nova-compute')
    return parser.parse_args(argv)


def describe(cloud):
    """Returns the addresses and files that a user needs to try the cloud by hand."""
    return {'folder': str(cloud.scratch.path), 'identity': cloud.keystone.url + '/v3',
            'compute': 'http://127.0.0.1:%d/v2.1' % cloud.api_port, 'placement': cloud.placement.endpoint,
            'image': 'http://127.0.0.1:%d' % cloud.glance_port, 'image_id': cloud.image(),
            'hosts': {host.name: {'uri': host.libvirtd.uri, 'bus': host.bus.address, 'config': str(host.config),
                                  'enter': ' '.join(host.enter)} for host in cloud.hypervisors}}


def main(argv=None):
    args = parse_args(argv)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    began = time.monotonic()
    hosts = [simple_host(cells=2, name='compute-%d' % (number + 1)) for number in range(args.hosts)]
    with contextlib.suppress(KeyboardInterrupt), Cloud(hosts) as cloud:
        cloud.start_computes({'DEFAULT': {'compute_driver': 'compute_agent.LibvirtDriver'}} if args.agent else {})
        for host in cloud.hypervisors if args.agent else []:
            host.make_agent({'agent': {'nova': 'top'}}).start()
        print(json.dumps({**describe(cloud), 'seconds': round(time.monotonic() - began, 1)}), flush=True)
        sys.stdin.read()
    return 0


if __name__ == '__main__':
    sys.exit(main())
