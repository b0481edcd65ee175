# SPDX-License-Identifier: LGPL-2.1-or-later
"""Providers with allocations move below another parent in a real Placement."""

from tests.env import faults
from tests.env.proxy import Proxy
from tests.integration.report.report_case import ReportCase, inventory, provider, uid


def flat():
    """Returns a GPU and a card below the root."""
    return [provider('host', None, {'VCPU': inventory(16)}, ['COMPUTE_NODE']),
            provider('host_gpu', 'host', {'VGPU': inventory(4)}),
            provider('host_card', 'host', {'CUSTOM_VF': inventory(8)})]


def nested():
    """Returns the same devices below a new cell."""
    host, gpu, card = flat()
    return [host, provider('host_NUMA0', 'host', {'MEMORY_MB': inventory(1024)}, ['HW_NUMA_ROOT']),
            {**gpu, 'parent': uid('host_NUMA0')}, {**card, 'parent': uid('host_NUMA0')}]


class TestMove(ReportCase):
    def test_below_a_new_parent_and_back_while_allocated(self):
        self.publish_done(flat())
        self.allocate('guest', {'host': {'VCPU': 2}, 'host_gpu': {'VGPU': 1}})
        held = self.consumer('guest')
        mark = self.placement.mark()
        self.publish_done(nested())
        self.assert_remote(nested())
        # Each move is one request. Inventories and traits are not written again.
        moved = [uid('host_gpu'), uid('host_card')]
        self.assertEqual({write for write in self.placement.writes_since(mark)
                          if any(uuid in write[1] for uuid in moved) and write[2] != 500},
                         {('PUT', '/resource_providers/' + uuid, 200) for uuid in moved})
        self.assertEqual(self.consumer('guest'), held)
        self.assertEqual(self.publish_done(nested())['writes'], 0)

        self.publish_done({'providers': flat(), 'remove': ['host_NUMA0']})
        self.assert_remote(flat())
        self.assertEqual(self.consumer('guest'), held)

    def test_parents_and_children_change_places(self):
        """a > b > c > d becomes d > c > b > a. A provider must not move below one of its own descendants."""
        names = ['host', 'host_a', 'host_b', 'host_c', 'host_d']
        turned = ['host', *names[:0:-1]]

        def chain(names):
            return [provider(name, above, {'VGPU': inventory(4)})
                    for name, above in zip(names, [None, *names])]

        self.publish_done(chain(names))
        for order in (turned, names, turned):
            line = self.publish_done(chain(order))
            self.assertEqual(line['writes'], 4)
            self.assert_remote(chain(order))

    def test_a_service_before_1_37_keeps_it_where_it_is(self):
        self.publish_done(flat())
        body = ('{"errors": [{"status": 406, "title": "Not Acceptable", "detail": "", '
                '"max_version": "1.36", "min_version": "1.0"}]}')
        proxy = self.enterContext(Proxy(self.placement.port))
        proxy.add(faults.Answer(406, body, method='PUT', path='^/resource_providers/[0-9a-f-]{36}$'))
        line = self.publish(nested(), endpoint=proxy.endpoint)
        self.assertEqual(line['outcome'], 'refused')
        self.assertIn('1.0 to 1.36', line['error'])
        self.assertIn('needs 1.37', line['error'])
        stays = nested()
        for item in stays[2:]:
            item['parent'] = uid('host')
        self.assert_remote(stays)
