# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs a real Prometheus, which scrapes one file of metrics as node_exporter shows it."""

import http.server
import json
import threading
import urllib.parse
import urllib.request
from contextlib import suppress

from tests.env.scratch import free_port
from tests.env.service import Service

_CONFIG = '''global: {{ scrape_interval: 1s, evaluation_interval: 1s }}
rule_files: ["{rules}"]
scrape_configs:
  - {{ job_name: node, static_configs: [{{ targets: ["127.0.0.1:{target}"] }}] }}
'''
_LINKED = 'node_textfile_mtime_seconds{file="/var/lib/prometheus/node-exporter/compute-agent.prom"} %f\n'


class Exporter(http.server.ThreadingHTTPServer):
    """Serves a file as node_exporter's textfile collector does: its lines and its time. Without the file the page is
    empty."""

    def __init__(self, file):
        super().__init__(('127.0.0.1', 0), _Page)
        self.file = file


class _Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        text = ''
        with suppress(FileNotFoundError), open(self.server.file, encoding='utf-8') as file:
            text = file.read() + _LINKED % self.server.file.stat().st_mtime
        self.send_response(200)
        self.send_header('Content-Type', 'text/plain; version=0.0.4')
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_args):
        pass


class Prometheus(Service):
    """Prometheus, which scrapes file and evaluates the rules each second."""

    name = 'prometheus'

    def __init__(self, file, rules, scratch=None):
        super().__init__(scratch)
        exporter = Exporter(file)
        threading.Thread(target=exporter.serve_forever, daemon=True).start()
        self.scratch.on_close(exporter.server_close)
        self.scratch.on_close(exporter.shutdown)
        self.port = free_port()
        (self.folder / 'prometheus.yml').write_text(_CONFIG.format(rules=rules, target=exporter.server_port))

    def _spawn(self):
        return self.scratch.spawn(['prometheus', '--config.file', self.folder / 'prometheus.yml', '--storage.tsdb.path',
                                   self.folder / 'data', '--web.listen-address', '127.0.0.1:%d' % self.port],
                                  'prometheus', self.folder)

    def answers(self):
        """Returns whether Prometheus has scraped the file once."""
        return self.query('up == 1')

    def get(self, path, **query):
        """Returns the data of an answer of Prometheus's API."""
        url = 'http://127.0.0.1:%d/api/v1/%s?%s' % (self.port, path, urllib.parse.urlencode(query))
        with urllib.request.urlopen(url, timeout=30) as answer:
            return json.load(answer)['data']

    def query(self, expression):
        """Returns the current series of an expression, each with its labels and its value."""
        return [(one['metric'], one['value'][1]) for one in self.get('query', query=expression)['result']]

    def alerts(self):
        """Returns the names of the alerts that are pending or firing."""
        return {one['labels']['alertname'] for one in self.get('alerts')['alerts']}
