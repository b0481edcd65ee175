# SPDX-License-Identifier: LGPL-2.1-or-later
"""The devices that compute-agent chooses for servers of Nova.

``[compute_agent] devices`` lists their resource classes. A server whose flavor
requests one of these classes gets the devices of its claim. All functions
here only read their arguments.
"""

import re

from oslo_serialization import jsonutils

from nova.pci import utils as pci_utils
from nova.virt.libvirt import config as vconfig

# The form of Nova's extra specs with resources, for example
# resources1:CUSTOM_NIC.
RESOURCES = re.compile(r'resources(?:[a-zA-Z0-9_-]{1,64})?:(?P<name>.+)')
# The name of the agent's provider of a device: the name of the host, and the
# PCI address, libvirt's name or the name of the set.
DEVICE_PROVIDER = re.compile(
    r'.+_(?:[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]|'
    r'pci_[0-9a-f]{4}_[0-9a-f]{2}_[0-9a-f]{2}_[0-7]|shapes_.+)', re.IGNORECASE)
RESOURCE_CLASS = re.compile(r'[A-Z0-9_]+')
# Classes that Nova gives to guests as amounts, not as devices.
AMOUNTS = frozenset([
    'VCPU', 'PCPU', 'MEMORY_MB', 'DISK_GB', 'MEM_ENCRYPTION_CONTEXT',
    'NET_BW_EGR_KILOBIT_PER_SEC', 'NET_BW_IGR_KILOBIT_PER_SEC'])


def requested(flavor, classes=None):
    """Returns the classes of the list that the flavor requests, sorted.
    Without a list: all classes with a key "resources"."""
    found = set()
    for key, value in (flavor.extra_specs or {}).items():
        match = RESOURCES.fullmatch(key)
        if (match and (classes is None or match['name'] in classes) and
                str(value).strip().isdigit() and int(value) > 0):
            found.add(match['name'])
    return sorted(found)


def pci_classes(device_specs, aliases):
    """Returns the resource classes that ``[pci]`` gives to Nova, as {class:
    option}.

    Specifications that Nova cannot parse are ignored here, because Nova
    refuses them itself.
    """
    found = {}
    for option, texts in (('[pci] device_spec', device_specs),
                          ('[pci] alias', aliases)):
        for text in texts:
            for spec in _specs_of(text):
                found.setdefault(_class_of(spec), option)
    found.pop(None, None)
    return found


def _specs_of(text):
    try:
        specs = jsonutils.loads(text)
    except ValueError:
        return []
    return [spec for spec in (specs if isinstance(specs, list) else [specs])
            if isinstance(spec, dict)]


def _class_of(spec):
    """Returns the class of the devices of a specification, as Nova makes it.
    None if the specification decides no class."""
    name = spec.get('resource_class')
    if name:
        name = re.sub(r'[^A-Z0-9]+', '_', name.upper())
        standard = name in ('VGPU', 'PGPU', 'FPGA', 'SRIOV_NET_VF')
        return name if standard or name.startswith('CUSTOM_') \
            else 'CUSTOM_' + name
    if spec.get('vendor_id') and spec.get('product_id'):
        return ('CUSTOM_PCI_%s_%s' % (
            spec['vendor_id'], spec['product_id'])).upper()
    return None


def contradiction(classes, of_pci, of_mdevs):
    """Returns the reason why the list of classes cannot be used, None if it
    can.

    :param of_pci: the result of pci_classes()
    :param of_mdevs: the classes of Nova's mediated devices
    """
    for name in classes:
        if not RESOURCE_CLASS.fullmatch(name):
            return '%s is no resource class' % name
        if name in AMOUNTS:
            return '%s counts no devices' % name
        if name in of_pci:
            return '%s is also a class of %s' % (name, of_pci[name])
        if name in of_mdevs:
            return ('%s is also a class of [devices] enabled_mdev_types' %
                    name)
    return None


def provider_addresses(tree, classes):
    """Returns the PCI addresses in the names of the providers that have one
    of the classes, as {address: class}."""
    found = {}
    for uuid in tree.get_provider_uuids():
        provider = tree.data(uuid)
        address = provider.name.rpartition('_')[2].lower()
        for name in classes:
            if name in provider.inventory and is_address(address):
                found[address] = name
    return found


def counted(tree):
    """Returns the classes that the providers of devices have, as a set."""
    return {name for uuid in tree.get_provider_uuids()
            if DEVICE_PROVIDER.fullmatch(tree.data(uuid).name)
            for name in tree.data(uuid).inventory}


def is_address(text):
    return re.fullmatch(
        r'[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]', text) is not None


def hostdev(device):
    """Returns the configuration object of a device of a claim, for the
    domain. computectl claim --xml prints the same."""
    if device['mdev']:
        config = vconfig.LibvirtConfigGuestHostdevMDEV()
        config.uuid = device['mdev']
        return config
    config = vconfig.LibvirtConfigGuestHostdevPCI()
    config.domain, config.bus, config.slot, config.function = (
        pci_utils.parse_address(device['address']))
    config.managed = 'yes' if device['managed'] else 'no'
    return config
