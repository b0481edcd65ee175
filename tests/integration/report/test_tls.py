# SPDX-License-Identifier: LGPL-2.1-or-later
"""The report client and https: both sides verify certificates, unless an option turns this off."""

import http.client
import http.server
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


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """Ignores the error, because the test expects the client to reject the certificate."""


class TestTls(ReportCase):
    def serve(self, certificate, client_ca=None):
        """Starts an https server in front of Placement, and returns its endpoint."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        if client_ca:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(client_ca)
        server = _Server(('127.0.0.1', 0), _Forward)
        server.target = self.placement.port
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return 'https://127.0.0.1:%d' % server.server_address[1]

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
