# SPDX-License-Identifier: LGPL-2.1-or-later
"""Describes the same hardware for libvirt's test driver, for machines that do not allow
namespaces."""

from pathlib import Path
from xml.sax.saxutils import escape

from tests.env.hosts import nodedev_name

_CARD = '''  <device>
    <name>{name}</name>
    <parent>computer</parent>
    <driver><name>{driver}</name></driver>
    <capability type='pci'>
      <class>0x{pci_class:06x}</class>
      <domain>{domain}</domain><bus>{bus}</bus><slot>{slot}</slot><function>{function}</function>
      <product id='0x{device:04x}'/>
      <vendor id='0x{vendor:04x}'/>
{types}      <numa node='{numa_node}'/>
    </capability>
  </device>
'''
_TYPE = '''        <type id='{id}'>
          <name>{name}</name>
          <deviceAPI>{api}</deviceAPI>
          <availableInstances>{available}</availableInstances>
        </type>
'''
_MDEV = '''  <device>
    <name>mdev_{name}</name>
    <parent>{parent}</parent>
    <capability type='mdev'>
      <type id='{type_id}'/>
      <uuid>{uuid}</uuid>
      <parent_addr>{address}</parent_addr>
      <iommuGroup number='{group}'/>
    </capability>
  </device>
'''


_DOMAIN = '''  <domain type='test'>
    <name>{name}</name><uuid>{uuid}</uuid>
    <memory unit='MiB'>{memory_mib}</memory><vcpu>1</vcpu>
    <os><type>hvm</type></os>
    <devices>{devices}</devices>
  </domain>
'''
_MDEV_OF_DOMAIN = "<hostdev mode='subsystem' type='mdev' model='vfio-pci'><source><address uuid='%s'/></source></hostdev>"


def testdriver_domain(name, uuid, memory_mib=1, mdevs=()):
    """Returns a running guest with one CPU, for testdriver_xml()."""
    return _DOMAIN.format(name=name, uuid=uuid, memory_mib=memory_mib, devices=''.join(_MDEV_OF_DOMAIN % mdev for mdev in mdevs))


def testdriver_xml(host, folder, domains=()):
    """Writes host.xml into folder. Returns its URI. domains: the texts of testdriver_domain(). The test driver cannot show NUMA cells."""
    devices, group = [], 0
    for device in host.devices():
        devices.append(_card(device))
        for type_id, mdev_type in getattr(device, 'types', {}).items():
            for uuid in mdev_type.existing:
                group += 1
                devices.append(_mdev(device.address, type_id, uuid, group))
    cpus = max(1, sum(len(cell.cpus) for cell in host.cells))
    memory = sum(cell.memory_kib for cell in host.cells)
    text = ('<node>\n  <cpu>\n    <mhz>2400</mhz>\n    <model>x86_64</model>\n'
            '    <active>%d</active>\n    <nodes>1</nodes>\n    <sockets>1</sockets>\n'
            '    <cores>%d</cores>\n    <threads>1</threads>\n  </cpu>\n'
            '  <memory>%d</memory>\n%s%s</node>\n' % (cpus, cpus, memory, ''.join(domains), ''.join(devices)))
    path = Path(folder).resolve() / 'host.xml'
    path.write_text(text)
    return 'test://%s' % path


def _card(device):
    domain, bus, rest = device.address.split(':')
    slot, function = rest.split('.')
    return _CARD.format(
        name=nodedev_name(device.address), driver=device.driver, pci_class=device.pci_class,
        domain=int(domain, 16), bus=int(bus, 16), slot=int(slot, 16), function=int(function, 16),
        device=device.device, vendor=device.vendor, numa_node=device.numa_node,
        types=_types(getattr(device, 'types', {})))


def _types(types):
    if not types:
        return ''
    text = ''.join(
        _TYPE.format(id=type_id, name=escape(mdev_type.name), api=mdev_type.device_api,
                     available=mdev_type.available) for type_id, mdev_type in types.items())
    return "      <capability type='mdev_types'>\n%s      </capability>\n" % text


def _mdev(address, type_id, uuid, group):
    name = uuid.replace('-', '_') + nodedev_name(address).removeprefix('pci')
    return _MDEV.format(name=name, parent=nodedev_name(address), type_id=type_id, uuid=uuid,
                        address=address, group=group)
