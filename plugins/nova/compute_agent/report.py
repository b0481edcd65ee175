# SPDX-License-Identifier: LGPL-2.1-or-later
"""Nova's report client, which leaves the providers of this host to their agent.

Without it the resource tracker would still write what is no driver's: traits
of the driver's capabilities, COMPUTE_STATUS_DISABLED (it would end a cordon),
provider configuration files. And it would read all of the tree and all
allocations of each provider in each period, to write nothing.
"""

from oslo_log import log as logging

LOG = logging.getLogger(__name__)


class ReportClientMixin:
    """Put before the class of the report client of nova-compute."""

    agent = None

    def get_provider_tree_and_ensure_root(
            self, context, rp_uuid, name=None, parent_provider_uuid=None):
        # The first time Nova's own, which makes the provider of the host
        # where there is none yet, and has it for what is asked later.
        cached = self._provider_tree
        if cached and cached.exists(rp_uuid) and self.agent.owns_tree():
            tree = self.agent.provider_tree(rp_uuid)
            if tree is not None:
                return tree
        return super().get_provider_tree_and_ensure_root(
            context, rp_uuid, name=name,
            parent_provider_uuid=parent_provider_uuid)

    def get_allocations_for_provider_tree(self, context, nodename):
        # Only who reshapes wants them.
        if self.agent.owns_tree():
            return {}
        return super().get_allocations_for_provider_tree(context, nodename)

    def update_from_provider_tree(self, context, new_tree, allocations=None):
        if self.agent.owns_tree():
            LOG.debug('The tree of this host is left to compute-agent.')
            return
        super().update_from_provider_tree(
            context, new_tree, allocations=allocations)


def leave_tree_to(agent, client):
    """Let this report client leave the tree to the agent where it is its own."""
    client.agent = agent
    client.__class__ = type('ReportClient',
                            (ReportClientMixin, client.__class__), {})
