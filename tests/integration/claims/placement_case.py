# SPDX-License-Identifier: LGPL-2.1-or-later
"""The base classes of the tests of claims: a Placement behind a proxy for each class, and writes of other clients."""

from tests.env import faults
from tests.env.case import EnvCase
from tests.env.libvirtd import Libvirtd

# Faults that begin with a given request.
TROUBLES = {
    'cut before': lambda **match: faults.Cut('before', **match),
    'cut after': lambda **match: faults.Cut('after', **match),
    '500': lambda **match: faults.server_error(**match),
    '409': lambda **match: faults.conflict(times=1, **match),
}


class PlacementCase(EnvCase):
    """A scratch folder and, unless the class excludes it, a Placement behind a proxy."""

    shared = ('scratch', 'placement', 'proxy')

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if 'placement' in cls.shared:
            cls.api, cls.held, cls.generation = cls.placement.api, cls.placement.held, cls.placement.generation
            cls.put, cls.place = cls.placement.put, cls.placement.place

    def delete_consumers(self, *providers):
        """Deletes all consumers of the providers."""
        for consumer, held in self.placement.all_held().items():
            if not held.keys().isdisjoint(providers):
                self.placement.request('DELETE', '/allocations/' + consumer, record=False)


class HostCase(PlacementCase):
    """PlacementCase with a bus and a libvirtd that is not started yet."""

    shared = (*PlacementCase.shared, 'bus')

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.libvirtd = Libvirtd(cls.make_host(), cls.scratch)
