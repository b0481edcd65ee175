# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes an artificial sysfs tree of a described host, and edits it while libvirtd runs.

write() fills a folder that the caller owns and removes. libvirt reads page counts, memory and available_instances at
each call. It notices a new or removed device only after an event of udev, which Libvirtd.announce() sends.
"""

import os
import shutil
from pathlib import Path

from tests.env.hosts import (DEMO_MDEV, Cell, Gpu, Host, MdevType, Pci, demo_host, m10_types,
                             simple_host, sriov, vgpu_card)

__all__ = ['DEMO_MDEV', 'Cell', 'Gpu', 'Host', 'MdevType', 'Pci', 'demo_host', 'm10_types',
           'simple_host', 'sriov', 'vgpu_card', 'write', 'set_vgpu', 'set_available', 'create_mdev', 'remove_mdev',
           'remove_device', 'plug_device', 'device_path', 'set_hugepages', 'set_memory',
           'cpu_list', 'cpu_map', 'uevent', 'vital_product_data']

NVME_CLASS = 0x0108


def write(host, folder):
    """Writes the whole tree into folder. The folder can exist and must be empty. Returns its Path."""
    root = Path(folder)
    for name in ('devices/virtual', 'class/mdev_bus', 'bus/pci/devices', 'bus/pci/drivers',
                 'bus/mdev/devices', 'fs/cgroup', 'kernel/iommu_groups', 'kernel/mm/hugepages',
                 'module'):
        (root / name).mkdir(parents=True, exist_ok=True)
    _write_cpus(root, host)
    _write_nodes(root, host)
    for device in host.devices():
        plug_device(root, device)
    return root


def cpu_list(cpus):
    """Returns CPU numbers as a list of the kernel, for example 0-3,8."""
    ranges = []
    for cpu in sorted(cpus):
        if ranges and ranges[-1][1] == cpu - 1:
            ranges[-1][1] = cpu
        else:
            ranges.append([cpu, cpu])
    return ','.join('%d' % a if a == b else '%d-%d' % (a, b) for a, b in ranges)


def cpu_map(cpus, width):
    """Returns CPU numbers as a mask in groups of 32 bits. width: the number of CPUs of the machine."""
    mask = sum(1 << cpu for cpu in cpus)
    groups = max(1, (width + 31) // 32)
    return ','.join('%08x' % (mask >> 32 * i & 0xffffffff) for i in reversed(range(groups)))


def _put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('%s\n' % text)


def _link(path, target):
    """Makes a relative link, as sysfs does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(os.path.relpath(target, path.parent))


def _write_cpus(root, host):
    base = root / 'devices/system/cpu'
    every = [cpu for cell in host.cells for cpu in cell.cpus]
    for name in ('online', 'present', 'possible'):
        _put(base / name, cpu_list(every))
    _put(base / 'kernel_max', 8191)
    for cell in host.cells:
        for cpu in cell.cpus:
            _write_topology(base / ('cpu%d' % cpu) / 'topology', cell, cpu, max(every) + 1)
            _put(base / ('cpu%d' % cpu) / 'online', 1)


def _write_topology(base, cell, cpu, width):
    siblings = cell.siblings(cpu)
    _put(base / 'physical_package_id', cell.id)
    _put(base / 'die_id', 0)
    _put(base / 'core_id', cell.core_id(cpu))
    _put(base / 'thread_siblings', cpu_map(siblings, width))
    _put(base / 'thread_siblings_list', cpu_list(siblings))
    _put(base / 'core_siblings', cpu_map(cell.cpus, width))
    _put(base / 'core_siblings_list', cpu_list(cell.cpus))


def _write_nodes(root, host):
    base = root / 'devices/system/node'
    ids = [cell.id for cell in host.cells]
    for name in ('online', 'possible', 'has_memory', 'has_normal_memory'):
        _put(base / name, cpu_list(ids))
    _put(base / 'has_cpu', cpu_list(cell.id for cell in host.cells if cell.cpus))
    width = max((cpu for cell in host.cells for cpu in cell.cpus), default=0) + 1
    for place, cell in enumerate(host.cells):
        node = base / ('node%d' % cell.id)
        distances = cell.distances or [10 if i == place else 21 for i in range(len(ids))]
        _put(node / 'cpumap', cpu_map(cell.cpus, width))
        _put(node / 'cpulist', cpu_list(cell.cpus))
        _put(node / 'distance', ' '.join(map(str, distances)))
        reserved = sum(size * count for size, count in cell.hugepages.items())
        set_memory(root, cell.id, cell.memory_kib, cell.memory_kib - reserved)
        for size, count in cell.hugepages.items():
            set_hugepages(root, cell.id, size, count)
        for cpu in cell.cpus:
            _link(node / ('cpu%d' % cpu), root / ('devices/system/cpu/cpu%d' % cpu))
    _write_global_pages(root, host)


def take_offline(root, host, cpus):
    """Takes CPUs offline as the kernel does: their topology is removed, lists and masks omit them, and the links of
    nodes stay."""
    base = Path(root) / 'devices/system'
    every = [cpu for cell in host.cells for cpu in cell.cpus]
    _put(base / 'cpu/online', cpu_list(set(every) - set(cpus)))
    for cell in host.cells:
        left = [cpu for cpu in cell.cpus if cpu not in cpus]
        _put(base / ('node/node%d/cpulist' % cell.id), cpu_list(left))
        _put(base / ('node/node%d/cpumap' % cell.id), cpu_map(left, max(every) + 1))
    for cpu in cpus:
        shutil.rmtree(base / ('cpu/cpu%d/topology' % cpu), ignore_errors=True)
        _put(base / ('cpu/cpu%d/online' % cpu), 0)


def set_memory(root, cell_id, total_kib, free_kib):
    """Sets the memory of a cell. libvirt reads it at the next call."""
    lines = [('MemTotal', total_kib), ('MemFree', free_kib), ('MemUsed', total_kib - free_kib)]
    _put(Path(root) / ('devices/system/node/node%d/meminfo' % cell_id),
         '\n'.join('Node %d %-15s %8d kB' % (cell_id, key + ':', kib) for key, kib in lines))


def _write_global_pages(root, host):
    totals = {}
    for cell in host.cells:
        for size, count in cell.hugepages.items():
            totals[size] = totals.get(size, 0) + count
    for size, count in totals.items():
        base = root / ('kernel/mm/hugepages/hugepages-%dkB' % size)
        for name in ('nr_hugepages', 'free_hugepages'):
            _put(base / name, count)


def set_hugepages(root, cell_id, size_kib, count):
    """Sets the number of pages of one size in one cell. All of them are free."""
    base = Path(root) / ('devices/system/node/node%d/hugepages/hugepages-%dkB'
                         % (cell_id, size_kib))
    for name, value in (('nr', count), ('free', count), ('surplus', 0)):
        _put(base / (name + '_hugepages'), value)


def device_path(root, address):
    """Returns the folder of a PCI device. Each bus number is a root bus of its own."""
    return Path(root) / ('devices/pci%s' % address[:7]) / address


def plug_device(root, device):
    """Adds a PCI device (a Gpu with its types and mdevs, a PF or a VF) to the tree."""
    root = Path(root)
    path = device_path(root, device.address)
    path.mkdir(parents=True)
    _write_pci_files(path, device)
    _link(path / 'subsystem', root / 'bus/pci')
    _link(root / 'bus/pci/devices' / device.address, path)
    if device.driver:
        _link_driver(root, device.address, device.driver)
    _join_iommu_group(root, path, device.address)
    _link_sriov(root, path, device)
    if device.creatable_vgpu_types is not None:
        set_vgpu(root, device.address, device.creatable_vgpu_types, device.current_vgpu_type)
    if getattr(device, 'types', None):
        _write_types(root, path, device)


def _link_driver(root, address, name):
    path, driver = device_path(root, address), Path(root) / 'bus/pci/drivers' / name
    driver.mkdir(parents=True, exist_ok=True)
    _link(path / 'driver', driver)
    _link(driver / address, path)


def bind_driver(root, gpu, name, types):
    """Loads the driver of a card, which adds mdev types. No event notifies libvirt."""
    gpu.driver, gpu.types = name, types
    _link_driver(Path(root), gpu.address, name)
    _write_types(Path(root), device_path(root, gpu.address), gpu)


def _write_pci_files(path, device):
    _put(path / 'vendor', '0x%04x' % device.vendor)
    _put(path / 'device', '0x%04x' % device.device)
    _put(path / 'subsystem_vendor', '0x%04x' % device.vendor)
    _put(path / 'subsystem_device', '0x0000')
    _put(path / 'class', '0x%06x' % device.pci_class)
    _put(path / 'numa_node', device.numa_node)
    _put(path / 'modalias', 'pci:v%08Xd%08Xsv%08Xsd00000000bc%02Xsc%02Xi%02X'
         % (device.vendor, device.device, device.vendor, *device.pci_class.to_bytes(3, 'big')))
    _put(path / 'uevent', '\n'.join('%s=%s' % pair for pair in uevent(device).items()))
    config = bytearray(256)
    config[0:2] = device.vendor.to_bytes(2, 'little')
    config[2:4] = device.device.to_bytes(2, 'little')
    config[9:12] = device.pci_class.to_bytes(3, 'little')
    (path / 'config').write_bytes(config)
    if device.serial and device.pci_class >> 8 == NVME_CLASS:
        _put(path / 'nvme/nvme0/serial', device.serial.ljust(20))
    elif device.serial:
        (path / 'vpd').write_bytes(vital_product_data(device.serial))


def vital_product_data(serial):
    """Returns vital product data: a name and a read-only part with this serial number and a correct checksum."""
    fields = b'PN\x02X1SN' + bytes([len(serial)]) + serial.encode() + b'RV\x01'
    data = b'\x82\x04\x00card\x90' + (len(fields) + 1).to_bytes(2, 'little') + fields
    return data + bytes([-sum(data) & 0xff]) + b'\x78'


def uevent(device):
    """Returns the properties that the kernel and udev give for this PCI device."""
    ret = {'DRIVER': device.driver} if device.driver else {}
    ret.update({
        'PCI_CLASS': '%X' % device.pci_class,
        'PCI_ID': '%04X:%04X' % (device.vendor, device.device),
        'PCI_SUBSYS_ID': '%04X:0000' % device.vendor,
        'PCI_SLOT_NAME': device.address,
    })
    return ret


def _join_iommu_group(root, path, name):
    groups = root / 'kernel/iommu_groups'
    group = groups / str(max((int(entry.name) for entry in groups.iterdir()), default=0) + 1)
    _link(group / 'devices' / name, path)
    _link(path / 'iommu_group', group)


def _link_sriov(root, path, device):
    if device.total_vfs:
        _put(path / 'sriov_totalvfs', device.total_vfs)
        _put(path / 'sriov_numvfs', len(device.vfs))
    for number, address in enumerate(device.vfs):
        _link(path / ('virtfn%d' % number), device_path(root, address))
    if device.physfn:
        _link(path / 'physfn', device_path(root, device.physfn))


def _write_types(root, path, gpu):
    _link(root / 'class/mdev_bus' / gpu.address, path)
    for type_id, mdev_type in gpu.types.items():
        base = path / 'mdev_supported_types' / type_id
        (base / 'devices').mkdir(parents=True)
        _put(base / 'name', mdev_type.name)
        _put(base / 'device_api', mdev_type.device_api)
        _put(base / 'description', mdev_type.description or mdev_type.name)
        _put(base / 'create', '')
        for uuid in mdev_type.existing:
            _write_mdev(root, path, type_id, uuid)
        _put(base / 'available_instances', mdev_type.available)


def _write_mdev(root, path, type_id, uuid):
    mdev = path / uuid
    mdev.mkdir()
    base = path / 'mdev_supported_types' / type_id
    _put(mdev / 'uevent', 'DRIVER=vfio_mdev')
    _put(mdev / 'remove', '')
    _link(mdev / 'subsystem', root / 'bus/mdev')
    _link(mdev / 'mdev_type', base)
    _link(base / 'devices' / uuid, mdev)
    _link(root / 'bus/mdev/devices' / uuid, mdev)
    _join_iommu_group(root, mdev, uuid)


def set_vgpu(root, address, creatable, current=0):
    """Writes the vGPU files of NVIDIA's driver for a VF: the types that it can become ({number: name}) and its
    current type."""
    path = device_path(root, address) / 'nvidia'
    _put(path / 'creatable_vgpu_types', '\n'.join(
        ['ID    : vGPU Name', *('%-5s : %s' % pair for pair in creatable.items())]))
    _put(path / 'current_vgpu_type', current)


def open_vfio(sys, proc, pid, group):
    """Lets a process have the VFIO group open: a device with the number of /dev/null. Returns the descriptor's link, to be removed."""
    _put(Path(sys) / ('class/vfio/%s/dev' % group), '1:3')
    node, link = Path(sys) / ('dev/vfio/%s' % group), Path(proc) / ('%d/fd/7' % pid)
    for path, target in ((node, '/dev/null'), (link, node)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.symlink_to(target)
    return link


def set_available(root, address, type_id, count):
    """Sets available_instances of one type of one GPU. libvirt reads it at the next call."""
    path = device_path(root, address) / 'mdev_supported_types' / type_id
    _put(path / 'available_instances', count)


def _change_available(root, address, type_id, step):
    path = device_path(root, address) / 'mdev_supported_types' / type_id / 'available_instances'
    _put(path, int(path.read_text()) + step)


def create_mdev(root, address, type_id, uuid):
    """Creates an mdev. Its type has one fewer available; other types stay unchanged."""
    _write_mdev(Path(root), device_path(root, address), type_id, uuid)
    _change_available(root, address, type_id, -1)


def remove_mdev(root, uuid):
    """Removes an mdev. Its type has one more available. Returns the address of its parent."""
    link = Path(root) / 'bus/mdev/devices' / uuid
    mdev = link.resolve(strict=True)
    address, type_id = mdev.parent.name, (mdev / 'mdev_type').resolve().name
    _forget(root, mdev)
    _change_available(root, address, type_id, +1)
    return address


def remove_device(root, address):
    """Unplugs a PCI device together with its mdevs."""
    path = device_path(root, address)
    for mdev in (Path(root) / 'bus/mdev/devices').iterdir():
        if mdev.resolve().parent == path.resolve():
            _forget(root, mdev.resolve())
    _forget(root, path)


def _forget(root, path):
    """Removes the folder of a device and every link to it."""
    group = (path / 'iommu_group').resolve()
    for folder in ('bus', 'class'):
        for link in list((Path(root) / folder).rglob(path.name)):
            if link.is_symlink():
                link.unlink()
    for link in list(path.parent.glob('mdev_supported_types/*/devices/' + path.name)):
        link.unlink()
    shutil.rmtree(group)
    shutil.rmtree(path)
