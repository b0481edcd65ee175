# SPDX-License-Identifier: LGPL-2.1-or-later
"""The report client and a Placement that is away, hangs, sends wrong answers or breaks. The client reports the error, and the next
attempt succeeds."""

import socket
import threading

from tests.env import faults
from tests.env.proxy import Proxy
from tests.env.scratch import free_port
from tests.integration.report.report_case import ReportCase, big_tree, inventory


class TestTrouble(ReportCase):
    def setUp(self):
        super().setUp()
        self.proxy = self.enterContext(Proxy(self.placement.port))
        self.tree = big_tree()

    def attempt(self, *troubles, **options):
        """Publishes one round with these faults, and returns its line. The faults end with the round."""
        for fault in troubles:
            self.proxy.add(fault)
        try:
            return self.publish(self.tree, endpoint=self.proxy.endpoint, **options)
        finally:
            self.proxy.clear()

    def heals(self):
        """Checks that the next attempt, or one more after a conflict, makes Placement equal to the tree."""
        line = self.attempt(retries=3)
        self.assertEqual(line['outcome'], 'done', line['error'])
        self.assert_remote(self.tree)
        self.assertEqual(self.attempt()['writes'], 0)

    def check(self, outcome, words, *troubles, **options):
        line = self.attempt(*troubles, **options)
        self.assertEqual(line['outcome'], outcome, line['error'])
        self.assertIn(words, line['error'])
        self.heals()
        return line

    def test_refused(self):
        self.proxy.refuse()
        line = self.attempt()
        self.assertEqual(line['outcome'], 'unreachable')
        self.assertIn('Connection refused', line['error'])
        self.proxy.listen()
        self.heals()

    def test_hanging_read(self):
        self.check('unreachable', 'within 0.5 s', faults.Hang(method='GET'), timeout_ms=500)

    def test_hanging_write(self):
        """Placement does the write of all inventories, but the client gets no answer."""
        line = self.check('unreachable', 'within 2 s',
                          faults.Hang('after', method='POST', path='/reshaper'), timeout_ms=2000)
        self.assertGreater(line['writes'], 0)

    def test_answers(self):
        """Each answer ends the attempt with the reason and the time to wait. The next attempt succeeds."""
        too_old = ('{"errors": [{"status": 406, "title": "Not Acceptable", "detail": "", '
                   '"max_version": "1.17", "min_version": "1.0"}]}')
        cases = [
            ('unavailable', '503', 0, faults.html()),
            ('unavailable', 'wait 30 s', 30, faults.html(503, headers=[('Retry-After', '30')])),
            ('unavailable', '503', 0, faults.html(method='PUT', path='/traits')),
            ('unavailable', 'not Placement', 0, faults.Answer(200, '<html>hi', 'text/html')),
            ('unavailable', 'not Placement', 0, faults.garbage()),
            ('unavailable', 'more than 8388608 bytes', 0, faults.oversized(9 << 20)),
            ('unavailable', 'http://127.0.0.1:1/', 0, faults.Answer(302, headers=[('Location', 'http://127.0.0.1:1/')])),
            # facts E7
            ('unavailable', 'asks to wait 7 s', 7, faults.Answer(429, 'slow down', 'text/plain', headers=[('Retry-After', '7')])),
            # B3: a proxy in front of Placement limits the size of requests.
            ('refused', 'Raise the limit', 0, faults.html(413, method='PUT')),
            ('unauthorized', 'auth_type', 0, faults.Answer(401, 'no', 'text/plain')),
            ('too-old', '1.0 to 1.17', 0, faults.Answer(406, too_old))]
        for outcome, words, wait, fault in cases:
            with self.subTest(words):
                self.assertEqual(self.check(outcome, words, fault)['retry_after_s'], wait)
                self.empty_placement()

    def test_oversized_but_allowed(self):
        """The answer is JSON below the size limit, but has no provider."""
        line = self.attempt(faults.oversized(1 << 20, path='in_tree', times=1))
        self.assertEqual(line['outcome'], 'done', line['error'])
        self.assert_remote(self.tree)

    def test_b3_a_limit_of_the_size_of_requests(self):
        """The batch is too large for a proxy in front of Placement, so the client sends single requests."""
        self.proxy.add(faults.html(413, method='POST', path='/reshaper'))
        line = self.attempt()
        self.assertEqual(line['outcome'], 'done', line['error'])
        self.assert_remote(self.tree)
        self.assertGreater(self.proxy.count('PUT', '/inventories'), 5)

    def test_forbidden(self):
        # One connection, because SQLite allows no two writes at the same time.
        self.check('forbidden', 'the role service (in an older Placement: admin)',
                   faults.server_error(403, method='POST', path='/resource_providers'), connections=1)

    def test_cut_before_and_after_and_in_the_middle(self):
        for when in ('before', 'after', 'middle'):
            for method in ('GET', 'POST', 'PUT'):
                with self.subTest(when=when, method=method):
                    line = self.attempt(faults.Cut(when, method=method, times=1))
                    # On a connection that was open before, an HTTP client repeats a request without an answer. A write that was
                    # done is then a conflict.
                    self.assertIn(line['outcome'], ('done', 'unreachable', 'conflict'))
                    self.heals()
                    self.tree[0]['inventories']['VCPU']['reserved'] += 1
                    self.tree[0]['inventories']['MEMORY_MB']['reserved'] += 1

    def test_500_once_in_a_while(self):
        line = self.attempt(faults.server_error(500, method='PUT', every=4))
        self.assertEqual(line['outcome'], 'done', line['error'])
        self.assert_remote(self.tree)

    def test_500_for_ever(self):
        line = self.attempt(faults.server_error(500, method='PUT'))
        self.assertEqual(line['outcome'], 'unavailable')
        self.assertLess(line['requests'], 100)
        self.heals()

    def test_conflict_at_every_third_write(self):
        line = self.attempt(faults.conflict(every=3), retries=50)
        self.assertEqual(line['outcome'], 'done', line['error'])
        self.assert_remote(self.tree)

    def test_conflict_for_ever(self):
        line = self.attempt(faults.conflict(), retries=5)
        self.assertEqual(line['outcome'], 'conflict')
        self.heals()

    def test_slow_answers(self):
        line = self.attempt(faults.Delay(0.05))
        self.assertEqual(line['outcome'], 'done', line['error'])

    def test_restart_between_rounds(self):
        """The connection of the last round is closed. The client connects again without an error."""
        with self.stepped(self.tree, endpoint=self.placement.endpoint, rounds=2) as go:
            self.assertEqual(go()['outcome'], 'done')
            self.assertEqual(go.line(), {'event': 'refreshed'})
            self.placement.restart()
            self.tree[0]['inventories']['VCPU'] = inventory(99)
            self.write('tree.json', {'providers': self.tree})
            self.assertEqual(go()['outcome'], 'done')
        self.assert_remote(self.tree)


class TestNobody(ReportCase):
    def test_a_port_that_accepts_and_never_reads(self):
        with socket.socket() as listener:
            listener.bind(('127.0.0.1', 0))
            listener.listen(1)
            line = self.publish(big_tree(), timeout_ms=300,
                                endpoint='http://127.0.0.1:%d' % listener.getsockname()[1])
        self.assertEqual(line['outcome'], 'unreachable')
        self.assertIn('within 0.3 s', line['error'])

    def test_something_that_is_not_http(self):
        with socket.socket() as listener:
            listener.bind(('127.0.0.1', 0))
            listener.listen(1)

            def greet():
                connection, _ = listener.accept()
                with connection:
                    connection.sendall(b'220 mail.example ESMTP\r\n')
                    connection.recv(4096)
            thread = threading.Thread(target=greet)
            thread.start()
            line = self.publish(big_tree(),
                                endpoint='http://127.0.0.1:%d' % listener.getsockname()[1])
            thread.join()
        self.assertEqual(line['outcome'], 'unavailable')
        self.assertIn('does not speak HTTP', line['error'])

    def test_no_such_socket(self):
        line = self.publish(big_tree(), endpoint='unix://%s/none.sock' % self.folder)
        self.assertEqual(line['outcome'], 'unreachable')
        self.assertIn('the socket does not exist', line['error'])

    def test_a_free_port(self):
        line = self.publish(big_tree(), endpoint='http://127.0.0.1:%d' % free_port())
        self.assertEqual(line['outcome'], 'unreachable')
