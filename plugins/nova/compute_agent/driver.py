# SPDX-License-Identifier: LGPL-2.1-or-later
"""Drivers of Nova that leave the providers of the host to compute-agent."""

import copy

from oslo_log import log as logging

from nova.virt.compute_agent import agent
from nova.virt.compute_agent import report
from nova.virt.libvirt import driver as libvirt_driver

LOG = logging.getLogger(__name__)

# If inventories of these classes are below the root, the tree has cells, which
# Nova's own drivers do not know.
CELL_CLASSES = frozenset(['VCPU', 'PCPU', 'MEMORY_MB'])


def has_cells(tree, nodename):
    """Returns whether a provider below the root has CPUs or memory."""
    root = tree.data(nodename).uuid
    return any(CELL_CLASSES.intersection(tree.data(uuid).inventory)
               for uuid in tree.get_provider_uuids(root) if uuid != root)


class AgentMixin:
    """A base class to put before a driver of Nova."""

    def __init__(self, virtapi, *args, **kwargs):
        super().__init__(virtapi, *args, **kwargs)
        self._compute_agent = agent.Agent()
        # The attribute is missing in unit tests of Nova.
        client = getattr(virtapi, 'reportclient', None)
        if client is not None:
            report.leave_tree_to(self._compute_agent, client)

    def update_provider_tree(self, provider_tree, nodename, allocations=None):
        """Leaves the tree unchanged, unless nova-compute must report it.

        It never raises ReshapeNeeded for a tree of the agent, because the
        agent reshapes it.
        """
        if self._compute_agent.owns_tree():
            self._remember_tree(provider_tree)
            return
        if has_cells(provider_tree, nodename):
            LOG.error('Nothing is reported: the providers of this host have NUMA '
                      'cells, whose resources this driver would report twice. '
                      'Start compute-agent again. Before you return to this '
                      'driver, set [compute] numa_in_placement = false in '
                      'compute-agent.conf and run "computectl reshape".')
            self._remember_tree(provider_tree)
            return
        super().update_provider_tree(
            provider_tree, nodename, allocations=allocations)

    def _remember_tree(self, provider_tree):
        """Stores the parts of the tree that spawn() needs."""


class LibvirtDriver(AgentMixin, libvirt_driver.LibvirtDriver):
    """Nova's libvirt driver on top of compute-agent."""

    def _remember_tree(self, provider_tree):
        # spawn() reads the names of the providers with vGPUs from it.
        self.provider_tree = copy.deepcopy(provider_tree)
