# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs a real nginx in front of Placement, to test a production setup and its limits of requests."""

from tests.env.scratch import free_port
from tests.env.service import Service, connects

_CONFIG = '''daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 512; }}
http {{
  access_log {folder}/access.log;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  {http}
  server {{
    listen 127.0.0.1:{port} {listen};
    {server}
    location / {{
      proxy_pass http://127.0.0.1:{target};
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      {location}
    }}
  }}
}}
'''
# Limits the requests per second. Further requests get 429 and Retry-After with 1 second.
LIMITED = {
    'http': 'limit_req_zone all zone=z:1m rate=%dr/s;',
    'server': 'error_page 429 @slow; location @slow { add_header Retry-After 1 always; return 429; }',
    'location': 'limit_req zone=z burst=%d nodelay; limit_req_status 429;',
}
# Fails a part of the requests with 503, like a proxy whose backend is down. %s: a percentage, for example 10%.
FAILING = {
    'http': 'split_clients "$request_id" $fails { %s 1; * ""; }',
    'location': 'if ($fails) { return 503; }',
}


def limited(per_second):
    return {**LIMITED, 'http': LIMITED['http'] % per_second, 'location': LIMITED['location'] % (per_second - 1)}


def failing(part):
    return {**FAILING, 'http': FAILING['http'] % part}


class Nginx(Service):
    """nginx in front of 127.0.0.1:target. http, server, location: more lines for these blocks. listen: more parameters of
    listen."""

    name = 'nginx'

    def __init__(self, target, scratch=None, scheme='http', **config):
        super().__init__(scratch)
        self.port = free_port()
        self.endpoint = '%s://127.0.0.1:%d' % (scheme, self.port)
        self.target = target
        self.configure(**config)

    def configure(self, **config):
        words = {name: config.get(name, '') for name in ('http', 'server', 'location', 'listen')}
        (self.folder / 'nginx.conf').write_text(_CONFIG.format(folder=self.folder, port=self.port, target=self.target,
                                                               **words))

    def _spawn(self):
        return self.scratch.spawn(['nginx', '-p', self.folder, '-c', self.folder / 'nginx.conf', '-e', 'stderr'], 'nginx',
                                  self.folder)

    def answers(self):
        return connects(self.port)

    def statuses(self):
        """Returns the statuses of the answers since the start."""
        return [line.split('" ')[1].split()[0] for line in (self.folder / 'access.log').read_text().splitlines()]
