# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reads the state of compute-agent over D-Bus, for nova-compute.

It runs systemd's busctl, so it needs no D-Bus library that must work with the
threads of nova-compute. It needs no rights, because every user can read these
properties and the tree.
"""

import dataclasses
import time

from oslo_concurrency import processutils
from oslo_log import log as logging
from oslo_serialization import jsonutils

from nova.compute import provider_tree
import nova.conf
from nova.virt.compute_agent import conf

CONF = nova.conf.CONF
conf.register(CONF)
LOG = logging.getLogger(__name__)

SERVICE = 'org.computeagent.Agent1'
PATH = '/org/computeagent/Agent1'
TREE_FORMAT = 'compute-agent-tree/1'
# Seconds for which an answer is cached, because one update of the resource
# tracker asks several times.
FRESH = 2
# Values of [agent] nova in compute-agent.conf with which Nova's own driver
# reports.
MODES_OF_NOVA = ('observe', 'beside')

# Each server has this class. If its inventory is below the root, a server can
# have no allocation at the root.
EVERY_SERVERS_CLASS = 'MEMORY_MB'


@dataclasses.dataclass(frozen=True)
class Answer:
    """The answer of the agent about itself."""

    mode: str
    published: bool


def owner(answer, last_mode, missing_for, without_agent, patience):
    """Returns the owner of the tree in Placement: 'agent' or 'nova'.

    :param answer: the current answer of the agent, None without answer
    :param last_mode: the mode in the last answer, None if there was none
    :param missing_for: seconds since the agent last said that its tree is
        published
    """
    mode = answer.mode if answer else last_mode
    if mode in MODES_OF_NOVA:
        return 'nova'
    if answer and answer.published:
        return 'agent'
    if without_agent == 'nova' and missing_for >= patience:
        return 'nova'
    return 'agent'


class Agent:
    """The agent of this host. Its methods do not raise if it does not
    answer."""

    def __init__(self, clock=time.monotonic):
        self._clock = clock
        self._answer = None
        self._asked_at = None
        self._published_at = clock()
        self._last_mode = None
        self._last_owner = None
        # The uuids of the providers below the root that can have all
        # allocations of a server. provider_tree() updates them.
        self.cells = ()

    def owns_tree(self):
        """Returns whether the agent owns the tree of this host in
        Placement."""
        now = self._clock()
        if self._asked_at is None or now - self._asked_at >= FRESH:
            self._answer = self._ask()
            self._asked_at = now
        answer = self._answer
        if answer:
            self._last_mode = answer.mode
            if answer.published:
                self._published_at = now
        whose = owner(answer, self._last_mode, now - self._published_at,
                      CONF.compute_agent.without_agent,
                      CONF.compute_agent.patience)
        if whose != self._last_owner:
            LOG.info('The owner of the providers of this host in Placement is '
                     '%s (compute-agent: %s).',
                     'compute-agent' if whose == 'agent' else 'nova-compute',
                     self._words(answer))
            self._last_owner = whose
        return whose == 'agent'

    @staticmethod
    def _words(answer):
        if not answer:
            return 'does not answer'
        return '[agent] nova = %s, tree %s' % (
            answer.mode, 'published' if answer.published else 'not published')

    def _ask(self):
        # busctl prints one line for each property.
        out = self._busctl('get-property', SERVICE, PATH, SERVICE,
                           'Nova', 'TreePublished')
        try:
            mode, published = [jsonutils.loads(line)['data']
                               for line in out.splitlines()]
        except (AttributeError, KeyError, ValueError):
            return None
        return Answer(mode, bool(published))

    def provider_tree(self, root):
        """Returns the tree from the agent, or None without a valid answer.

        :param root: the uuid that the provider of the host must have
        """
        out = self._busctl('call', SERVICE, PATH, SERVICE,
                           'Describe', 's', 'tree')
        try:
            document = jsonutils.loads(jsonutils.loads(out)['data'][0])
            if document['format'] != TREE_FORMAT:
                raise ValueError('the format is %s' % document['format'])
            if document['root'] != root:
                LOG.error('compute-agent has %(theirs)s as the provider of '
                          'this host, nova-compute has %(ours)s. See '
                          '"computectl identity check".',
                          {'theirs': document['root'], 'ours': root})
                return None
            tree = _tree(document['providers'])
            self.cells = _cells(tree, root)
            return tree
        except (KeyError, TypeError, ValueError) as e:
            if out is not None:
                LOG.warning('Cannot parse the provider tree of compute-agent: '
                            '%s', e)
            return None

    def _busctl(self, *args):
        """Returns the output of busctl, or None if it failed."""
        try:
            return processutils.execute(
                'busctl', '--system', '--json=short', '--auto-start=no',
                '--timeout=%d' % CONF.compute_agent.timeout, *args)[0]
        except (OSError, processutils.ProcessExecutionError) as e:
            LOG.debug('compute-agent does not answer: %s', e)
            return None


def _cells(tree, root):
    # Only cells and other providers with memory can have all allocations of a
    # server.
    return tuple(uuid for uuid in tree.get_provider_uuids(root)
                 if uuid != root and
                 EVERY_SERVERS_CLASS in tree.data(uuid).inventory)


def _tree(providers):
    tree = provider_tree.ProviderTree()
    for provider in providers:
        uuid = provider['uuid']
        if provider['parent'] is None:
            tree.new_root(provider['name'], uuid)
        else:
            tree.new_child(provider['name'], provider['parent'], uuid=uuid)
        tree.update_inventory(uuid, {
            name: {key: inventory[key]
                   for key in ('total', 'reserved', 'min_unit', 'max_unit',
                               'step_size', 'allocation_ratio')}
            for name, inventory in provider['inventories'].items()})
        tree.update_traits(uuid, provider['traits'])
        tree.update_aggregates(uuid, provider['aggregates'])
    return tree
