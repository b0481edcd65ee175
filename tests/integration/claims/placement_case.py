# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the tests of claims share: a Placement behind a proxy for a class, and what others than the agent do there."""

from tests.env import faults
from tests.env.case import EnvCase
from tests.env.fakesys import demo_host
from tests.env.libvirtd import Libvirtd

# From some request on.
TROUBLES = {
    'cut before': lambda **match: faults.Cut('before', **match),
    'cut after': lambda **match: faults.Cut('after', **match),
    '500': lambda **match: faults.server_error(**match),
    '409': lambda **match: faults.conflict(times=1, **match),
}


class PlacementCase(EnvCase):
    """A folder and, unless told, a Placement that is reached through a proxy."""

    shared = ('scratch', 'placement', 'proxy')

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if 'placement' in cls.shared:
            cls.api, cls.held, cls.generation = cls.placement.api, cls.placement.held, cls.placement.generation
            cls.put, cls.place = cls.placement.put, cls.placement.place

    def delete_consumers(self, *providers):
        """Nobody holds anything of them any more."""
        for provider in providers:
            found = self.api('GET', '/resource_providers/%s/allocations' % provider)
            for consumer in found['allocations']:
                self.placement.request('DELETE', '/allocations/' + consumer, record=False)


class HostCase(PlacementCase):
    """The same with a bus and a libvirtd that is not started yet."""

    shared = (*PlacementCase.shared, 'bus')

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.libvirtd = Libvirtd(demo_host(), cls.scratch)
