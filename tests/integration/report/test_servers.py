# SPDX-License-Identifier: LGPL-2.1-or-later
"""The number of parallel requests to a server: each kind of server gets as many as it can serve."""

from tests.env.nginx import Nginx
from tests.env.placement import Placement
from tests.env.scratch import Scratch
from tests.env.webservers import Apache, Uwsgi
from tests.integration.report.report_case import ReportCase, inventory, make_certificate
from tests.integration.report.test_gateway import wide_tree

CONNECTIONS = 8
TIMEOUT_MS = 50000  # A longer round has waited for a time-out.


class ServerCase(ReportCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = Scratch.of(cls)

    def empty_placement(self):
        """Does nothing, because each test has its own Placement."""

    def serve(self, placement, server=None, **options):
        """Publishes two trees, one after another, over many connections, and checks that no request waits for a time-out."""
        self.placement = placement
        options = {'endpoint': (server or placement).endpoint, 'connections': CONNECTIONS, 'timeout_ms': TIMEOUT_MS, **options}
        tree = wide_tree(17)
        wall_ms = 0
        for change in range(2):
            tree[0]['inventories'] = {'VCPU': inventory(8 + change)}
            line = self.publish_done(tree, **options)
            wall_ms = max(wall_ms, line['wall_ms'])
            # The limit has a list, three reads of each provider, two checks, and the writes of each provider.
            self.assertLessEqual(line['requests'], 110 if change == 0 else 60)
            self.assert_remote(tree)
        self.assertLess(wall_ms, TIMEOUT_MS)

    def nginx(self, placement, **config):
        server = Nginx(placement.port, self.scratch, **config)
        self.addCleanup(server.close)
        server.start()
        return server

    def started(self, placement):
        self.addCleanup(placement.close)
        placement.start()
        return placement


class TestServers(ServerCase):
    def test_wsgiref(self):
        """The server serves one connection at a time."""
        self.serve(self.started(Placement(self.scratch, server='simple')))

    def test_gunicorn(self):
        self.serve(self.started(Placement(self.scratch)))

    def test_uwsgi(self):
        for workers in (1, 8):
            with self.subTest(workers):
                self.serve(self.started(Uwsgi(self.scratch, workers)))

    def test_apache(self):
        for mpm in ('prefork', 'event'):
            with self.subTest(mpm):
                self.serve(self.started(Apache(self.scratch, mpm)))


class TestNginx(ServerCase):
    def setUp(self):
        super().setUp()
        self.backend = self.started(Placement(self.scratch))

    def tls(self):
        certificate, key = make_certificate(self.folder, 'nginx', 'IP:127.0.0.1')
        return certificate, 'ssl_certificate %s; ssl_certificate_key %s;' % (certificate, key)

    def test_plain(self):
        self.serve(self.backend, self.nginx(self.backend))

    def test_no_connection_is_kept(self):
        self.serve(self.backend, self.nginx(self.backend, server='keepalive_timeout 0;'))

    def test_http2(self):
        certificate, lines = self.tls()
        server = self.nginx(self.backend, scheme='https', listen='ssl http2', server=lines)
        self.serve(self.backend, server, cafile=certificate)
        self.assertIn('HTTP/2', (server.folder / 'access.log').read_text())

    def test_http2_and_no_connection_is_kept(self):
        certificate, lines = self.tls()
        server = self.nginx(self.backend, scheme='https', listen='ssl http2', server=lines + ' keepalive_timeout 0;')
        self.serve(self.backend, server, cafile=certificate)


class TestShrink(ServerCase):
    def test_uwsgi_with_2_workers_that_had_8(self):
        placement = self.placement = self.started(Uwsgi(self.scratch, 8))
        tree = wide_tree(65)
        with self.stepped(tree, endpoint=placement.endpoint, connections=CONNECTIONS, rounds=2, timeout_ms=TIMEOUT_MS) as go:
            self.assertEqual(go()['outcome'], 'done')
            self.assertEqual(go.line(), {'event': 'refreshed'})
            placement.stop()
            placement.workers = 2
            placement.start()
            for item in tree[1:]:
                item['inventories'] = {'VGPU': inventory(3)}
            self.write('tree.json', {'providers': tree})
            line = go()
            self.assertEqual(line['outcome'], 'done', line)
            self.assertLess(line['wall_ms'], TIMEOUT_MS)
        self.assert_remote(tree)
