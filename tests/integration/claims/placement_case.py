# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the tests of claims share: a Placement behind a proxy for a class, and what others than the agent do there."""

import unittest

from tests.env import faults
from tests.env.bus import Bus
from tests.env.fakesys import demo_host
from tests.env.libvirtd import Libvirtd
from tests.env.placement import Placement
from tests.env.proxy import Proxy
from tests.env.scratch import Scratch

# From some request on.
TROUBLES = {
    'cut before': lambda **match: faults.Cut('before', **match),
    'cut after': lambda **match: faults.Cut('after', **match),
    '500': lambda **match: faults.server_error(**match),
    '409': lambda **match: faults.conflict(times=1, **match),
}


class PlacementCase(unittest.TestCase):
    """A folder and, unless told, a Placement that is reached through a proxy."""

    with_placement = True
    placement_config = ''

    @classmethod
    def setUpClass(cls):
        cls.scratch = Scratch.of(cls)
        if cls.with_placement:
            cls.placement = Placement(cls.scratch, config=cls.placement_config).start()
            cls.proxy = Proxy(cls.placement.port).listen()
            cls.scratch.on_close(cls.proxy.close)

    @classmethod
    def api(cls, method, path, body=None):
        """A request of somebody else; its JSON."""
        answer = cls.placement.request(method, path, body, record=False)
        assert answer.status < 300, (method, path, answer.status, answer.text)
        return answer.json

    def held(self, consumer):
        """{provider: {class: amount}}, here and elsewhere."""
        found = self.api('GET', '/allocations/' + consumer)['allocations']
        return {provider: item['resources'] for provider, item in found.items()}

    def generation(self, consumer):
        """None when it holds nothing."""
        return self.api('GET', '/allocations/' + consumer).get('consumer_generation')

    def put(self, consumer, held):
        """What a scheduler writes; the status of the answer."""
        return self.placement.request('PUT', '/allocations/' + consumer, {
            'allocations': {provider: {'resources': amounts} for provider, amounts in held.items()},
            'project_id': 'project', 'user_id': 'user', 'consumer_type': 'INSTANCE',
            'consumer_generation': self.generation(consumer)}, record=False).status

    def place(self, consumer, held):
        self.assertEqual(self.put(consumer, held), 204)

    def delete_consumers(self, *providers):
        """Nobody holds anything of them any more."""
        for provider in providers:
            found = self.api('GET', '/resource_providers/%s/allocations' % provider)
            for consumer in found['allocations']:
                self.placement.request('DELETE', '/allocations/' + consumer, record=False)


class HostCase(PlacementCase):
    """The same with a bus and a libvirtd that is not started yet."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.bus = Bus(cls.scratch).start()
        cls.libvirtd = Libvirtd(demo_host(), cls.scratch)
