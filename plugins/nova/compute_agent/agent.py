# SPDX-License-Identifier: LGPL-2.1-or-later
"""Calls compute-agent over D-Bus, for nova-compute.

It runs systemd's busctl, so it needs no D-Bus library that must work with the
threads of nova-compute. Every user can read the properties and the tree.
Devices need the polkit action org.computeagent.attach, and dbus-send, which
prints the name of an error.
"""

import dataclasses
import time

from oslo_concurrency import processutils
from oslo_log import log as logging
from oslo_serialization import jsonutils

from nova.compute import provider_tree
import nova.conf
from nova import exception
from nova.virt.compute_agent import conf

CONF = nova.conf.CONF
conf.register(CONF)
LOG = logging.getLogger(__name__)

SERVICE = 'org.computeagent.Agent1'
PATH = '/org/computeagent/Agent1'
TREE_FORMAT = 'compute-agent-tree/1'
CLAIM_FORMAT = 'compute-agent-claim/1'
# Seconds for which an answer is cached, because one update of the resource
# tracker asks several times.
FRESH = 2
# Values of [agent] nova in compute-agent.conf with which Nova's own driver
# reports.
MODES_OF_NOVA = ('observe', 'beside')

# Errors of D-Bus and of the agent that can end soon. A start of a server waits
# for their end.
PASSING_ERRORS = frozenset(
    [SERVICE + '.Error.' + name for name in (
        'Busy', 'NotReady', 'Placement', 'StoreUnavailable')] +
    ['org.freedesktop.DBus.Error.' + name for name in (
        'Disconnected', 'FileNotFound', 'LimitsExceeded', 'NameHasNoOwner',
        'NoReply', 'NoServer', 'ServiceUnknown', 'TimedOut', 'Timeout')])
# Seconds between two calls for the devices of a server, and the limit of one.
RETRY_INTERVAL = 1
CALL_LIMIT = 30

# The trait of PCI devices that Nova manages in Placement.
NOVAS_PCI = 'COMPUTE_MANAGED_PCI_DEVICE'

# The trait of a disabled compute service, and of a host with a cordon.
DISABLED = 'COMPUTE_STATUS_DISABLED'

# Each server has this class. If its inventory is below the root, a server can
# have no allocation at the root.
EVERY_SERVERS_CLASS = 'MEMORY_MB'


class DevicesUnavailable(exception.ComputeResourcesUnavailable):
    """A server cannot have its devices. Nova tries another host, if one is
    left."""

    msg_fmt = 'compute-agent gives no devices to the server: %(reason)s'


@dataclasses.dataclass(frozen=True)
class Answer:
    """The answer of the agent about itself."""

    mode: str
    published: bool


def owner(answer, last_mode, missing_for, without_agent, patience):
    """Returns the owner of the tree in Placement: 'agent' or 'nova'.

    :param answer: the current answer of the agent, None without answer
    :param last_mode: the mode in the last answer, None if there was none
    :param missing_for: seconds since the first question without a published
        tree in the answer, 0 if there was none
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
        self._missing_since = None
        self._last_mode = None
        self._last_owner = None
        # The uuids of the providers below the root that can have all
        # allocations of a server. provider_tree() updates them.
        self.cells = ()
        # The uuid of the root if it has the trait DISABLED without a cordon,
        # '' if not, None if the agent did not answer. provider_tree() updates
        # it.
        self.disabled_root = None

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
        # The time before the first failed question is no absence, because
        # nova-compute can ask rarely.
        if answer and (answer.published or answer.mode in MODES_OF_NOVA):
            self._missing_since = None
        elif self._missing_since is None:
            self._missing_since = now
        missing_for = (0 if self._missing_since is None
                       else now - self._missing_since)
        whose = owner(answer, self._last_mode, missing_for,
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
        self.disabled_root = None
        return self._read_tree(root)

    def any_tree(self):
        """Returns the tree from the agent for any root, or None without a
        valid answer."""
        return self._read_tree(None)

    def _read_tree(self, root):
        out = self._busctl('call', SERVICE, PATH, SERVICE,
                           'Describe', 's', 'tree')
        try:
            document = jsonutils.loads(jsonutils.loads(out)['data'][0])
            if document['format'] != TREE_FORMAT:
                raise ValueError('the format is %s' % document['format'])
            if root is None:
                return _tree(document['providers'])
            if document['root'] != root:
                LOG.error('compute-agent has %(theirs)s as the provider of '
                          'this host, nova-compute has %(ours)s. See '
                          '"computectl identity check".',
                          {'theirs': document['root'], 'ours': root})
                return None
            tree = _tree(document['providers'])
            self.cells = _cells(tree, root)
            cordoned = any(provider.get('cordoned')
                           for provider in document['providers']
                           if provider['uuid'] == root)
            self.disabled_root = (
                root if DISABLED in tree.data(root).traits and not cordoned
                else '')
            return tree
        except (KeyError, TypeError, ValueError) as e:
            if out is not None:
                LOG.warning('Cannot parse the provider tree of compute-agent: '
                            '%s', e)
            return None

    def claimed_devices(self, server, classes):
        """Returns the devices of these classes that the server must attach,
        as members of the agent's document of a claim.

        It waits up to ``device_timeout`` for an agent or a Placement that is
        away. Repeated calls have the same answer.

        :raises DevicesUnavailable: with the words of the agent
        """
        ends_at = self._clock() + CONF.compute_agent.device_timeout
        while True:
            left = ends_at - self._clock()
            name, text = self._claim_placed(
                server, classes, max(1, min(CALL_LIMIT, left)))
            if name is None:
                return self._parse_devices(text, classes)
            if (name not in PASSING_ERRORS or
                    self._clock() + RETRY_INTERVAL >= ends_at):
                raise DevicesUnavailable(reason=text)
            self._sleep(RETRY_INTERVAL)

    @staticmethod
    def _parse_devices(text, classes):
        try:
            document = jsonutils.loads(text)
            if document['format'] != CLAIM_FORMAT:
                raise ValueError('the format is %s' % document['format'])
            return [device for device in document['devices']
                    if device['class'] in classes]
        except (KeyError, TypeError, ValueError) as e:
            raise DevicesUnavailable(
                reason='cannot parse the claim: %s' % e)

    def _claim_placed(self, server, classes, seconds):
        """Calls ClaimPlaced(). Returns (None, document), or the name and the
        words of an error."""
        try:
            out = processutils.execute(
                'dbus-send', '--system', '--print-reply=literal',
                '--reply-timeout=%d' % (seconds * 1000), '--dest=' + SERVICE,
                PATH, SERVICE + '.ClaimPlaced', 'string:' + server,
                'array:string:' + ','.join(classes))[0]
        except OSError as e:
            return 'OSError', 'cannot run dbus-send: %s' % e
        except processutils.ProcessExecutionError as e:
            return _read_error(e.stderr or '')
        return None, out

    _sleep = staticmethod(time.sleep)

    def _busctl(self, *args):
        """Returns the output of busctl, or None if it failed."""
        try:
            return processutils.execute(
                'busctl', '--system', '--json=short', '--auto-start=no',
                '--timeout=%d' % CONF.compute_agent.timeout, *args)[0]
        except (OSError, processutils.ProcessExecutionError) as e:
            LOG.debug('compute-agent does not answer: %s', e)
            return None


def _read_error(printed):
    """Returns the name and the words of an error that dbus-send printed, as
    "Error org.example.Name: words"."""
    for line in printed.splitlines():
        kind, _, rest = line.partition(' ')
        name, colon, words = rest.partition(': ')
        if kind == 'Error' and colon:
            return name, words
    # Without a bus, dbus-send names no error.
    if 'Failed to open connection' in printed:
        return 'org.freedesktop.DBus.Error.NoServer', printed.strip()
    return 'unknown', printed.strip() or 'dbus-send failed'


def _cells(tree, root):
    # Only cells and other providers with memory can have all allocations of a
    # server.
    return tuple(uuid for uuid in tree.get_provider_uuids(root)
                 if uuid != root and
                 EVERY_SERVERS_CLASS in tree.data(uuid).inventory)


def hide_from_pci_tracker(tree):
    """Removes the trait of Nova's own PCI devices from the providers whose
    devices compute-agent chooses. Changes the tree, and returns it.

    Nova refuses a tree with this trait if ``[pci] report_in_placement`` is
    false, because it takes the providers for its own.
    """
    classes = set(CONF.compute_agent.devices)
    for uuid in tree.get_provider_uuids():
        provider = tree.data(uuid)
        if (NOVAS_PCI in provider.traits and
                classes.intersection(provider.inventory)):
            tree.remove_traits(uuid, NOVAS_PCI)
    return tree


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
    return hide_from_pci_tracker(tree)
