# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs a cloud with Cinder, whose volumes are files (tests/env/volume_files.py).

It needs Debian's packages of the groups "cloud" and "volumes" (tests/run/packages), and root.
"""

import os

from tests.env.openstack import APP, ROOT, Cloud, Program, config_text, run_program
from tests.env.cache import PYTHON
from tests.env.scratch import EnvError, free_port, wait_until

MICROVERSION = '3.67'  # the first in which paths need no project
_SECONDS = 120
_PASTE = '''[composite:osapi_volume]
use = call:cinder.api:root_app_factory
/ = versions
/v3 = v3

[pipeline:versions]
pipeline = fault versions_app

[pipeline:v3]
pipeline = fault token context v3_app

[filter:fault]
paste.filter_factory = cinder.api.middleware.fault:FaultWrapper.factory

[filter:token]
paste.filter_factory = keystonemiddleware.auth_token:filter_factory

[filter:context]
paste.filter_factory = cinder.api.middleware.auth:CinderKeystoneContext.factory

[app:versions_app]
paste.app_factory = cinder.api.versions:Versions.factory

[app:v3_app]
paste.app_factory = cinder.api.v3.router:APIRouter.factory
'''


def cinder_program(name):
    """Returns the argv of one of Cinder's programs, without its arguments."""
    return [PYTHON, '-c', 'from cinder.cmd.%s import main; main()' % name]


class CloudWithVolumes(Cloud):
    """A cloud with cinder-api, cinder-scheduler and cinder-volume. volumes is the folder of its volumes."""

    def _make(self, hosts):
        self.cinder_port = free_port()
        super()._make(hosts)
        folder = self.scratch.folder('cinder')
        self.volumes = folder / 'volumes'
        config = folder / 'cinder.conf'
        (folder / 'api-paste.ini').write_text(_PASTE)
        config.write_text(config_text({
            'DEFAULT': {'host': 'volumes', 'my_ip': '127.0.0.1', 'state_path': folder, 'auth_strategy': 'keystone',
                        'transport_url': self.rabbitmq.url, 'rpc_response_timeout': 120, 'service_down_time': 600,
                        'api_paste_config': folder / 'api-paste.ini', 'enabled_backends': 'files',
                        'glance_api_servers': 'http://127.0.0.1:%d' % self.glance_port, 'periodic_fuzzy_delay': 0},
            'database': {'connection': self.mariadb.create('cinder')},
            'files': {'volume_driver': 'tests.env.volume_files.Files', 'volume_backend_name': 'files'},
            'oslo_concurrency': {'lock_path': folder / 'lock'},
            # A service token proves to Cinder that Nova itself detaches a volume.
            'keystone_authtoken': self._token() + 'service_token_roles = service\nservice_token_roles_required = true\n'}))
        run_program('cinder-manage db sync', [*cinder_program('manage'), '--config-file', config, 'db', 'sync'])
        self.cinder = Program('cinder-api', [PYTHON, APP, 'cinder', '127.0.0.1', self.cinder_port, '--config-file', config],
                              self.scratch, self.port_answers(self.cinder_port))
        env = {'PYTHONPATH': os.pathsep.join(filter(None, (str(ROOT), os.environ.get('PYTHONPATH'))))}
        self.more_services = [self.cinder, *(
            Program('cinder-' + name, [*cinder_program(name), '--config-file', config], self.scratch, self._has_pools, env)
            for name in ('scheduler', 'volume'))]

    def nova_options(self):
        options = super().nova_options()
        of_nova = {key: options['placement'][key] for key in options['placement'] if key != 'endpoint_override'}
        options['cinder'] = {**of_nova, 'endpoint_template': 'http://127.0.0.1:%d/v3/%%(project_id)s' % self.cinder_port}
        options['service_user'] = {**of_nova, 'send_service_user_token': 'true'}
        # By default Nova opens a volume past the page cache, which not every file system supports.
        options['libvirt'] = {'disk_cachemodes': 'file=writeback', **options.get('libvirt', {})}
        return options

    def _has_pools(self):
        """Returns whether cinder-scheduler answers and knows the pools of cinder-volume. A request that is sent before
        cinder-scheduler listens is lost."""
        return bool(self.of_cinder('GET', '/scheduler-stats/get_pools', timeout=5)['pools'])

    # ---- Cinder's API

    def of_cinder(self, method, path, body=None, missing=None, **more):
        """Sends a request to Cinder that must succeed. Returns its JSON. After a 404 returns missing, if it is set."""
        answer = self.http(self.cinder_port, method, '/v3' + path, body, microversion=MICROVERSION, service='volume', **more)
        if answer.status == 404 and missing is not None:
            return missing
        return answer.good()

    def wait_volume(self, volume, wanted, seconds=_SECONDS):
        """Returns when the volume has the status wanted. None: the volume does not exist any more."""
        last = {}

        def reached():
            last.update(self.of_cinder('GET', '/volumes/' + volume, missing={}).get('volume') or {'status': None})
            if last['status'] and last['status'].startswith('error'):
                raise EnvError('volume in %s\n%s' % (last['status'], self.more_services[-1].log[-3000:]))
            return last['status'] == wanted
        try:
            wait_until(reached, seconds, 'volume %s to be %s' % (volume, wanted), step=0.2)
        except EnvError as error:
            raise EnvError('%s; it is %s' % (error, last.get('status'))) from None

    def create_volume(self, name, size=1, image=None):
        """Creates a volume of size GiB. Returns its id when it is available."""
        more = {'imageRef': image} if image else {}
        volume = self.of_cinder('POST', '/volumes', {'volume': {'name': name, 'size': size, **more}})['volume']['id']
        self.wait_volume(volume, 'available')
        return volume

    def delete_volume(self, volume, asked=False):
        """Deletes a volume and returns when it is gone. asked: the deletion was already requested, so only wait."""
        if not asked:
            self.of_cinder('DELETE', '/volumes/' + volume, missing={})
        self.wait_volume(volume, None)

    def attach(self, server, volume):
        """Attaches a volume to a server. Returns when it is in use."""
        self.post('/servers/%s/os-volume_attachments' % server, {'volumeAttachment': {'volumeId': volume}})
        self.wait_volume(volume, 'in-use')

    def detach(self, server, volume):
        """Detaches a volume. Returns when it is available. A running guest must release it first."""
        self.nova('DELETE', '/servers/%s/os-volume_attachments/%s' % (server, volume)).good()
        self.wait_volume(volume, 'available')
