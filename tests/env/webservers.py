# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs Placement behind other web servers that are used in production: uwsgi over TCP, and Apache with mod_wsgi."""

import os
import shutil

from tests.env.placement import _APP, Placement, _environment

_APACHE = '''ServerName localhost
ServerRoot {folder}
PidFile {folder}/apache.pid
DefaultRuntimeDir {folder}
Listen 127.0.0.1:{port}
ErrorLog {folder}/apache-error.log
LoadModule mpm_{mpm}_module /usr/lib/apache2/modules/mod_mpm_{mpm}.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule wsgi_module /usr/lib/apache2/modules/mod_wsgi.so
KeepAlive On
KeepAliveTimeout 15
{limits}
WSGIScriptAlias / {script}
WSGIApplicationGroup %{{GLOBAL}}
WSGIPassAuthorization On
<Location "/">
  Require all granted
</Location>
'''
_LIMITS = {
    'prefork': 'StartServers 2\nMinSpareServers 1\nMaxSpareServers 2\nServerLimit {n}\nMaxRequestWorkers {n}',
    'event': 'StartServers 1\nServerLimit 1\nThreadsPerChild {n}\nThreadLimit {n}\nMaxRequestWorkers {n}\n'
             'MinSpareThreads 1\nMaxSpareThreads {n}',
}


class Uwsgi(Placement):
    """Placement under uwsgi. Each worker serves one connection as long as this is open."""

    def __init__(self, scratch=None, workers=2):
        super().__init__(scratch)
        self.workers = workers

    def _argv(self):
        return ['uwsgi', '--plugin', 'python3', '--master', '--processes', self.workers, '--http11-socket',
                '127.0.0.1:%d' % self.port, '--no-orphans', '--need-app', '--die-on-term', '--disable-logging',
                '--wsgi-file', _APP]

    def _spawn(self):
        return self.scratch.spawn(self._argv(), 'uwsgi', self.folder, env=_environment(self.folder, 'uwsgi'),
                                  cwd=self.folder)


class Apache(Placement):
    """Placement under Apache. mpm: 'prefork' (a process for each connection) or 'event'. n: the maximum number of these."""

    def __init__(self, scratch=None, mpm='event', n=4):
        super().__init__(scratch)
        script = self.folder / 'placement.wsgi'
        names = {**_environment(self.folder, 'apache')}
        script.write_text('import os, sys\nos.environ.update(%r)\nsys.path.insert(0, %r)\n'
                          'from placement_app import make_application\napplication = make_application()\n' % (
                              {key: names[key] for key in ('OS_PLACEMENT_CONFIG_DIR', 'PLACEMENT_RECORD', 'PLACEMENT_SERVER')},
                              str(_APP.parent)))
        (self.folder / 'apache.conf').write_text(_APACHE.format(
            folder=self.folder, port=self.port, mpm=mpm, limits=_LIMITS[mpm].format(n=n), script=script))
        # Apache does not serve requests as root.
        self._user = {'user': 'www-data', 'group': 'www-data'} if os.getuid() == 0 else {}
        if self._user:
            self.scratch.path.chmod(0o711)
            for path in (self.folder, *self.folder.iterdir()):
                shutil.chown(path, **self._user)

    def _argv(self):
        return ['apache2', '-f', self.folder / 'apache.conf', '-DFOREGROUND']

    def _spawn(self):
        return self.scratch.spawn(self._argv(), 'apache', self.folder, cwd=self.folder, **self._user)
