# SPDX-License-Identifier: LGPL-2.1-or-later
"""The report client behind a real nginx that limits requests or fails sometimes. It succeeds with few requests."""

from tests.env import faults, nginx
from tests.env.nginx import Nginx
from tests.env.proxy import Proxy
from tests.integration.report.report_case import ReportCase, inventory, provider


def wide_tree(n):
    """Returns a host and n - 1 cards."""
    return [provider('host', None, {'VCPU': inventory(8)}, ['COMPUTE_NODE']),
            *(provider('card%d' % i, 'host', {'VGPU': inventory(4)}, ['CUSTOM_SLOT_%d' % (i % 5)]) for i in range(n - 1))]


class TestGateway(ReportCase):
    def gateway(self, **config):
        server = Nginx(self.placement.port, self.scratch, **config)
        self.addCleanup(server.close)
        server.start()
        return server

    def total(self, lines):
        return sum(line['requests'] for line in lines)

    def test_reads_behind_10_requests_a_second(self):
        tree = wide_tree(17)
        self.publish_done(tree)
        gateway = self.gateway(**nginx.limited(10))
        line = self.publish_done(tree, endpoint=gateway.endpoint)
        self.assertIn('429', gateway.statuses())
        self.assertLess(line['requests'], 100)
        self.assertLess(line['wall_ms'], 30000)

    def test_everything_behind_10_requests_a_second(self):
        tree = wide_tree(17)
        gateway = self.gateway(**nginx.limited(10))
        line = self.publish_done(tree, endpoint=gateway.endpoint)
        self.assert_remote(tree)
        self.assertIn('429', gateway.statuses())
        self.assertLess(line['requests'], 100)

    def test_5_percent_of_503(self):
        tree = wide_tree(65)
        self.publish_done(tree)
        gateway = self.gateway(**nginx.failing('5%'))
        lines = self.rounds(tree, endpoint=gateway.endpoint, rounds=8)
        done = [line['outcome'] for line in lines].index('done')
        self.assertLess(done, 4, lines)
        self.assertLess(self.total(lines[:done + 1]), 1.3 * (3 * 65 + 1))
        self.assertIn('503', gateway.statuses())

    def test_successful_reads_are_not_repeated(self):
        """The connection breaks at the 40th read. The next attempt reads only the rest."""
        tree = wide_tree(17)
        self.publish_done(tree)
        with Proxy(self.placement.port) as proxy:
            proxy.add(faults.Answer(502, method='GET', path='/resource_providers/', skip=40, times=1))
            lines = self.rounds(tree, endpoint=proxy.endpoint, rounds=2)
        self.assertEqual([line['outcome'] for line in lines], ['unavailable', 'done'], lines)
        self.assertLess(lines[1]['requests'], 20)

    def test_an_outage_after_a_quiet_time_is_asked_once(self):
        tree = wide_tree(17)
        with Proxy(self.placement.port) as proxy, self.stepped(tree, endpoint=proxy.endpoint, rounds=3) as go:
            self.assertEqual(go()['outcome'], 'done')
            self.assertEqual(go.line(), {'event': 'refreshed'})
            proxy.add(faults.html(503))
            self.assertEqual(go()['outcome'], 'done')
            line = go.line()
        self.assertEqual((line['outcome'], line['requests']), ('unavailable', 1))

    def test_an_outage_is_asked_once(self):
        with Proxy(self.placement.port) as proxy:
            proxy.add(faults.html(503, headers=[('Retry-After', '1')]))
            line = self.publish(wide_tree(17), endpoint=proxy.endpoint)
        self.assertEqual(line['outcome'], 'unavailable')
        self.assertEqual(line['requests'], 1)
