# SPDX-License-Identifier: LGPL-2.1-or-later
"""The report client and https: both sides verify certificates, unless an option turns this off."""

import http.client
import http.server
import json
import shutil
import ssl
import subprocess
import threading

from tests.integration.report.report_case import ReportCase, big_tree, make_certificate


class _Forward(http.server.BaseHTTPRequestHandler):
    """Sends each request to Placement without TLS."""

    protocol_version = 'HTTP/1.1'

    def _forward(self):
        body = self.rfile.read(int(self.headers.get('Content-Length') or 0))
        upstream = http.client.HTTPConnection('127.0.0.1', self.server.target, timeout=60)
        upstream.request(self.command, self.path, body or None, dict(self.headers.items()))
        answer = upstream.getresponse()
        text = answer.read()
        self.send_response(answer.status)
        if answer.status != 204:
            self.send_header('Content-Type', answer.headers.get('Content-Type', ''))
            self.send_header('Content-Length', str(len(text)))
        self.end_headers()
        self.wfile.write(text)
        upstream.close()

    do_GET = do_PUT = do_POST = do_DELETE = _forward

    def log_message(self, *args):
        pass


class _ForwardOnce(_Forward):
    """Closes the connection after each answer."""

    protocol_version = 'HTTP/1.0'


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def get_request(self):
        connection, address = self.socket.accept()
        return self.context.wrap_socket(connection, server_side=True), address

    def handle_error(self, request, client_address):
        """Ignores the error, because the test expects the client to reject the certificate."""


class TestTls(ReportCase):
    def start_server(self, certificate, handler=_Forward):
        server = _Server(('127.0.0.1', 0), handler)
        server.target = self.placement.port
        self.use(server, certificate)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server

    def use(self, server, certificate):
        """Changes the certificate for new connections. A new context accepts no session of an earlier one."""
        server.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.context.load_cert_chain(*certificate)

    def endpoint(self, server):
        return 'https://127.0.0.1:%d' % server.server_address[1]

    def serve(self, certificate, client_ca=None):
        """Starts an https server in front of Placement, and returns its endpoint."""
        server = self.start_server(certificate)
        if client_ca:
            server.context.verify_mode = ssl.CERT_REQUIRED
            server.context.load_verify_locations(client_ca)
        return self.endpoint(server)

    def test_a_known_certificate(self):
        certificate = make_certificate(self.folder, 'server', 'IP:127.0.0.1')
        line = self.publish(big_tree(), endpoint=self.serve(certificate), cafile=certificate[0])
        self.assertEqual(line['outcome'], 'done', line['error'])
        self.assert_remote(big_tree())

    def test_an_unknown_certificate(self):
        certificate = make_certificate(self.folder, 'server', 'IP:127.0.0.1')
        endpoint = self.serve(certificate)
        line = self.publish(big_tree(), endpoint=endpoint)
        self.assertEqual(line['outcome'], 'unreachable')
        self.assertIn('has an issuer that this host does not trust; set cafile in [placement]', line['error'])
        self.assertEqual(self.publish(big_tree(), endpoint=endpoint, insecure=True)['outcome'],
                         'done')

    def trusting(self, certificate, argv):
        """Returns a command that runs with one certificate as the authorities of the system."""
        system = self.scratch.folder('system')
        shutil.copy(certificate, system / 'ca-certificates.crt')
        subprocess.run(['openssl', 'rehash', str(system)], check=True, timeout=60)
        return ['unshare', '-m', '--propagation', 'private', 'sh', '-ec', 'mount --bind "$0" /etc/ssl/certs; exec "$@"',
                str(system), *argv]

    def test_cafile_replaces_the_authorities_of_the_system(self):
        certificate = make_certificate(self.folder, 'server', 'IP:127.0.0.1')
        ours = make_certificate(self.folder, 'ours', 'IP:127.0.0.1')
        endpoint = self.serve(certificate)
        for options, outcome in (({}, 'done'), ({'cafile': ours[0]}, 'unreachable')):
            argv = self.trusting(certificate[0], self.command(big_tree(), endpoint=endpoint, **options))
            done = subprocess.run(argv, stdout=subprocess.PIPE, timeout=120, check=True)
            line = json.loads(done.stdout)
            self.assertEqual(line['outcome'], outcome, line['error'])
        self.assertIn('has an issuer that this host does not trust', line['error'])

    def test_cafile_is_replaced_in_place(self):
        """The server and cafile get another authority while the client runs."""
        old, new = (make_certificate(self.folder, name, 'IP:127.0.0.1') for name in ('old', 'new'))
        cafile = shutil.copy(old[0], self.folder / 'ca.pem')
        server = self.start_server(old, _ForwardOnce)
        with self.stepped(big_tree(), endpoint=self.endpoint(server), cafile=cafile) as publish:
            self.use(server, new)
            shutil.copy(new[0], cafile)
            line = publish()
        self.assertEqual(line['outcome'], 'done', line['error'])

    def test_the_certificate_of_another_host(self):
        certificate = make_certificate(self.folder, 'server', 'DNS:placement.example')
        endpoint = self.serve(certificate)
        line = self.publish(big_tree(), endpoint=endpoint, cafile=certificate[0])
        self.assertEqual(line['outcome'], 'unreachable')
        self.assertIn('is for another name', line['error'])

    def test_an_expired_certificate(self):
        certificate, key = make_certificate(self.folder, 'server', 'IP:127.0.0.1')
        expired = str(self.folder / 'expired.pem')
        # OpenSSL 3.0 has no options for dates here, and 3.5 accepts no negative number of days.
        dates = (['-days', '-1'], ['-not_before', '20200101000000Z', '-not_after', '20200102000000Z'])
        self.assertTrue(any(subprocess.run(
            ['openssl', 'x509', '-in', certificate, '-signkey', key, *date, '-out', expired],
            capture_output=True, timeout=60, check=False).returncode == 0 for date in dates))
        line = self.publish(big_tree(), endpoint=self.serve((expired, key)), cafile=expired)
        self.assertEqual(line['outcome'], 'unreachable')
        self.assertIn('has expired; renew it on the server', line['error'])

    def test_a_certificate_of_ours(self):
        certificate = make_certificate(self.folder, 'server', 'IP:127.0.0.1')
        ours = make_certificate(self.folder, 'agent', 'DNS:agent.example')
        endpoint = self.serve(certificate, client_ca=ours[0])
        line = self.publish(big_tree(), endpoint=endpoint, cafile=certificate[0])
        self.assertEqual(line['outcome'], 'unreachable')
        line = self.publish(big_tree(), endpoint=endpoint, cafile=certificate[0],
                            certfile=ours[0], keyfile=ours[1])
        self.assertEqual(line['outcome'], 'done', line['error'])

    def test_files_that_are_not_there(self):
        certificate = make_certificate(self.folder, 'server', 'IP:127.0.0.1')
        endpoint = self.serve(certificate)
        line = self.publish(big_tree(), endpoint=endpoint, cafile='/nowhere/ca.pem')
        self.assertEqual(line['outcome'], 'unreachable')
        self.assertIn('cafile in [placement] is not a file of certificates, or the service\'s user cannot read it', line['error'])
        line = self.publish(big_tree(), endpoint=endpoint, cafile=certificate[0],
                            certfile='/nowhere/cert.pem')
        self.assertEqual(line['outcome'], 'unreachable')
        self.assertIn('certfile', line['error'])

    def test_plain_http_to_https_and_back(self):
        certificate = make_certificate(self.folder, 'server', 'IP:127.0.0.1')
        endpoint = self.serve(certificate)
        line = self.publish(big_tree(), endpoint=endpoint.replace('https', 'http'))
        self.assertIn(line['outcome'], ('unreachable', 'unavailable'))
        line = self.publish(big_tree(),
                            endpoint='https://127.0.0.1:%d' % self.placement.port)
        self.assertEqual(line['outcome'], 'unreachable')
        self.assertIn('speak https', line['error'])
