# SPDX-License-Identifier: LGPL-2.1-or-later
"""Drivers of Nova that leave the providers of the host to compute-agent."""

import copy

from oslo_log import log as logging
from oslo_serialization import jsonutils

import nova.conf
from nova import exception
from nova.pci import whitelist
import nova.privsep.libvirt
from nova.virt.compute_agent import agent
from nova.virt.compute_agent import devices
from nova.virt.compute_agent import report
from nova.virt.libvirt import driver as libvirt_driver

CONF = nova.conf.CONF
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


class DevicesMixin:
    """Gives servers the devices that compute-agent chooses.

    It changes nothing while ``[compute_agent] devices`` is empty. The agent is
    asked for each domain that is made: at a boot, a hard reboot, a rebuild, a
    resize, a migration, and after a reboot of the host.
    """

    def init_host(self, host):
        self._check_device_classes()
        super().init_host(host)
        self._check_device_addresses()

    # Configuration

    def _check_device_classes(self):
        """Refuses classes that are also Nova's own."""
        reason = devices.contradiction(
            CONF.compute_agent.devices,
            devices.pci_classes(CONF.pci.device_spec, CONF.pci.alias),
            self.mdev_classes if CONF.devices.enabled_mdev_types else ())
        if reason:
            _refuse(reason)

    def _check_device_addresses(self):
        """Refuses classes of devices that [pci] device_spec gives to Nova.

        If the agent does not answer now, each device is checked when a server
        gets it.
        """
        if not self._addresses_of_nova():
            return
        tree = self._compute_agent.any_tree()
        if tree is None:
            return
        found = devices.provider_addresses(tree, CONF.compute_agent.devices)
        for address, name in sorted(found.items()):
            if address in self._addresses_of_nova():
                _refuse('%s counts %s, which is also a device of [pci] '
                        'device_spec' % (name, address))

    def _addresses_of_nova(self):
        """Returns the PCI addresses that [pci] device_spec gives to Nova, and
        those of their physical functions. They are read once, as Nova does."""
        if getattr(self, '_nova_addresses', None) is None:
            self._nova_addresses = set()
            if CONF.compute_agent.devices and CONF.pci.device_spec:
                specs = whitelist.Whitelist(CONF.pci.device_spec)
                for found in jsonutils.loads(
                        self._get_pci_passthrough_devices()):
                    if specs.device_assignable(found):
                        self._nova_addresses.update(
                            address for address in (
                                found['address'], found.get('parent_addr'))
                            if address)
        return self._nova_addresses

    # Domains

    def _claimed_devices(self, instance):
        """Returns the devices of the agent that the server must have.

        :raises DevicesUnavailable: if the server cannot have them
        """
        classes = devices.requested(
            instance.flavor, CONF.compute_agent.devices)
        try:
            self._refuse_unlisted(instance)
            if not classes:
                return []
            found = self._compute_agent.claimed_devices(
                instance.uuid, classes)
            for device in found:
                self._check_device(device)
        except agent.DevicesUnavailable as e:
            LOG.error('%s', e.format_message(), instance=instance)
            raise
        return found

    def _refuse_unlisted(self, instance):
        """Refuses a server with devices that Nova does not know and that are
        not in ``[compute_agent] devices``. It would start without them. If the
        agent does not answer now, nothing is refused."""
        others = set(devices.requested(instance.flavor)).difference(
            devices.AMOUNTS, CONF.compute_agent.devices,
            devices.pci_classes(CONF.pci.device_spec, CONF.pci.alias),
            self.mdev_classes if CONF.devices.enabled_mdev_types else ())
        if not others or not self._compute_agent.owns_tree():
            return
        tree = self._compute_agent.any_tree()
        unlisted = others & devices.counted(tree) if tree else ()
        if unlisted:
            raise agent.DevicesUnavailable(
                reason='[compute_agent] devices of nova.conf does not list '
                       '%s. Add it and restart nova-compute, or remove it '
                       'from compute-agent.conf.' %
                       ', '.join(sorted(unlisted)))

    def _check_device(self, device):
        """Refuses a device that Nova can give to another server."""
        if device['mdev']:
            if CONF.devices.enabled_mdev_types:
                raise agent.DevicesUnavailable(
                    reason='the mediated devices of this host belong to Nova '
                           '([devices] enabled_mdev_types)')
        elif device['address'] in self._addresses_of_nova():
            raise agent.DevicesUnavailable(
                reason='%s is also a device of [pci] device_spec' %
                       device['address'])

    def _make_mdev(self, device):
        """Creates a mediated device of a claim that does not exist yet."""
        if hasattr(self, '_create_mdev'):  # later than Nova 26
            self._create_mdev(
                device['device'], device['mdev_type'], uuid=device['mdev'])
        else:
            nova.privsep.libvirt.create_mdev(
                device['address'], device['mdev_type'], uuid=device['mdev'])
        LOG.info('Created mdev %s of type %s on %s.', device['mdev'],
                 device['mdev_type'], device['device'])

    def _get_guest_config(self, instance, *args, **kwargs):
        guest = super()._get_guest_config(instance, *args, **kwargs)
        for device in self._claimed_devices(instance):
            if device['mdev'] and not device['exists']:
                self._make_mdev(device)
            guest.add_device(devices.hostdev(device))
        return guest

    def _get_all_assigned_mediated_devices(self, instance=None):
        # Nova makes these again after a reboot of the host, and puts them into
        # the next domain of the server. Without types of its own, Nova has no
        # mediated devices: all belong to the agent.
        if CONF.compute_agent.devices and not CONF.devices.enabled_mdev_types:
            return {}
        return super()._get_all_assigned_mediated_devices(instance)

    def _hard_reboot(self, context, instance, *args, **kwargs):
        # Nova ends the guest before it makes the new domain. A guest whose
        # devices are not known continues to run.
        self._claimed_devices(instance)
        return super()._hard_reboot(context, instance, *args, **kwargs)

    # Flows that need the memory of the guest without its devices

    def _refuse_with_devices(self, instance, make):
        classes = devices.requested(
            instance.flavor, CONF.compute_agent.devices)
        if classes:
            raise make('the server has devices of this host (%s)' %
                       ', '.join(classes))

    # Nova compares the arguments of these with those of its own drivers.

    def check_can_live_migrate_destination(
            self, context, instance, src_compute_info, dst_compute_info,
            block_migration=False, disk_over_commit=False):
        self._refuse_with_devices(instance, _precheck_error)
        return super().check_can_live_migrate_destination(
            context, instance, src_compute_info, dst_compute_info,
            block_migration, disk_over_commit)

    def check_can_live_migrate_source(
            self, context, instance, dest_check_data, block_device_info=None):
        self._refuse_with_devices(instance, _precheck_error)
        return super().check_can_live_migrate_source(
            context, instance, dest_check_data, block_device_info)

    def suspend(self, context, instance):
        # The guest runs on after this error.
        self._refuse_with_devices(
            instance, lambda reason: exception.InstanceFaultRollback(
                exception.InstanceSuspendFailure(reason=reason)))
        return super().suspend(context, instance)


def _precheck_error(reason):
    return exception.MigrationPreCheckError(
        reason='live migration is impossible: ' + reason)


def _refuse(reason):
    raise exception.InvalidConfiguration(
        '[compute_agent] devices: %s. Give each class and each device to '
        'either Nova or compute-agent.' % reason)


class LibvirtDriver(AgentMixin, DevicesMixin, libvirt_driver.LibvirtDriver):
    """Nova's libvirt driver on top of compute-agent."""

    def _remember_tree(self, provider_tree):
        # spawn() reads the names of the providers with vGPUs from it.
        self.provider_tree = copy.deepcopy(provider_tree)
