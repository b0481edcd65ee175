# SPDX-License-Identifier: LGPL-2.1-or-later
"""A report client that leaves the providers of this host to compute-agent.

Without it the resource tracker would still write data that belongs to no
driver: traits of the driver's capabilities, COMPUTE_STATUS_DISABLED (which
would end a cordon), and provider configuration files. It would also read the
whole tree and all allocations in each period, and write nothing.
"""

import copy

from keystoneauth1 import exceptions as ks_exc
from oslo_log import log as logging

import nova.conf
from nova import exception
from nova.scheduler.client import report
from nova.virt.compute_agent import agent

CONF = nova.conf.CONF
LOG = logging.getLogger(__name__)


class ReportClientMixin:
    """A base class to put before the report client of nova-compute."""

    agent = None
    # The allocations that the resource tracker read last, by consumer.
    known_allocations = {}
    # Whether no update since the start of nova-compute has checked the trait
    # of a disabled service.
    unchecked = True

    def get_provider_tree_and_ensure_root(
            self, context, rp_uuid, name=None, parent_provider_uuid=None):
        # The first call is Nova's own. It creates the provider of the host if
        # it does not exist, and caches it for later reads.
        cached = self._provider_tree
        if cached and cached.exists(rp_uuid) and self.agent.owns_tree():
            tree = self.agent.provider_tree(rp_uuid)
            if tree is not None:
                # Nova does not see the agent's changes. It must read the tree
                # again before it uses its own.
                self._association_refresh_time.clear()
                return tree
        return agent.hide_from_pci_tracker(
            super().get_provider_tree_and_ensure_root(
                context, rp_uuid, name=name,
                parent_provider_uuid=parent_provider_uuid))

    def get_allocations_for_resource_provider(self, context, rp_uuid):
        # The resource tracker reads the allocations of the root to find
        # deleted servers. The servers of cells are added to them.
        found = super().get_allocations_for_resource_provider(context, rp_uuid)
        if not self.agent.owns_tree():
            return found
        for cell in self.agent.cells:
            more = super().get_allocations_for_resource_provider(context, cell)
            for consumer, allocation in more.allocations.items():
                found.allocations.setdefault(consumer, allocation)
        return found

    def get_allocations_for_provider_tree(self, context, nodename):
        if not self.agent.owns_tree():
            return super().get_allocations_for_provider_tree(context, nodename)
        # Two callers need them. A reshape is the agent's work here. The PCI
        # tracker adds devices that a scheduler without pci_in_placement chose.
        if not CONF.pci.report_in_placement:
            return {}
        root = self._provider_tree.data(nodename).uuid
        held = self.get_allocations_for_resource_provider(context, root)
        read = {consumer: self.get_allocs_for_consumer(context, consumer)
                for consumer in held.allocations}
        self.known_allocations = copy.deepcopy(read)
        return read

    def update_from_provider_tree(self, context, new_tree, allocations=None):
        # The tree itself is not written, except for the trait of a service
        # that is enabled again. Changed allocations come from the PCI tracker.
        if not self.agent.owns_tree():
            super().update_from_provider_tree(
                context, new_tree, allocations=allocations)
            return
        LOG.debug('compute-agent publishes the provider tree of this host.')
        # The resource tracker has removed the trait if the service is enabled.
        # Later than after a start, the trait can be that of a lost cordon.
        root = self.agent.disabled_root
        if (self.unchecked and root and
                agent.DISABLED not in new_tree.data(root).traits):
            self.unchecked = not self._remove_disabled(context, root)
        elif root is not None:
            self.unchecked = False
        changed = {consumer: held
                   for consumer, held in (allocations or {}).items()
                   if held != self.known_allocations.get(consumer)}
        if changed:
            self._add_devices(context, changed)

    def _remove_disabled(self, context, root):
        """Removes the trait of a disabled service, which Nova's API does not
        do while nova-compute is down. Returns whether this is done; the next
        period repeats a failure."""
        try:
            read = self.get_provider_traits(context, root)
            # A cordon can be newer than the tree of this period.
            self.agent.provider_tree(root)
            if self.agent.disabled_root != root:
                return False
            # Nova writes what differs from its cache, which can be older.
            self._provider_tree.update_traits(root, read.traits)
            self.set_traits_for_provider(
                context, root, read.traits - {agent.DISABLED},
                generation=read.generation)
            return True
        except (exception.NovaException, ks_exc.ClientException) as e:
            LOG.warning('Cannot remove %s from this enabled host. The next '
                        'period retries: %s', agent.DISABLED, e)
            return False

    def _add_devices(self, context, allocations):
        """Writes the devices that the PCI tracker added. It adds them in each
        period, so a failed write is repeated."""
        LOG.info('Adding PCI devices to the allocations of %s.',
                 ', '.join(allocations))
        done = self.post('/allocations', allocations,
                         version=report.CONSUMER_GENERATION_VERSION,
                         global_request_id=context.global_id)
        if done.status_code != 204:
            LOG.warning('Cannot add PCI devices to allocations. The next period '
                        'retries: %s', done.text)


def leave_tree_to(owner, client):
    """Makes this report client leave the tree to owner, an Agent, if it owns
    the tree.

    All drivers of a process share the client, and it uses the agent of the
    last one.
    """
    client.agent = owner
    if not isinstance(client, ReportClientMixin):
        client.__class__ = type('ReportClient',
                                (ReportClientMixin, client.__class__), {})
