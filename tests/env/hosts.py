# SPDX-License-Identifier: LGPL-2.1-or-later
"""Descriptions of artificial hosts: NUMA cells, GPUs and PCI devices. They are plain data without files."""

import uuid
from dataclasses import dataclass, field


@dataclass
class Cell:
    """One NUMA cell. A cell without CPUs has only memory.

    hugepages maps a page size in KiB to a count. distances has one number for each cell, in the order of Host.cells. If it is empty, the
    distance is 10 to the cell itself and 21 to the others. The siblings of core i are cpus[i], cpus[i + cores], ... where cores = len(cpus)
    / threads.
    """

    id: int
    cpus: list = field(default_factory=list)
    memory_kib: int = 1024 * 1024
    hugepages: dict = field(default_factory=dict)
    distances: list = field(default_factory=list)
    threads: int = 1

    def siblings(self, cpu):
        """Returns the CPUs of this cell that share a core with cpu, including cpu."""
        cores = len(self.cpus) // self.threads
        core = self.cpus.index(cpu) % cores
        return sorted(self.cpus[core::cores])

    def core_id(self, cpu):
        return self.cpus.index(cpu) % (len(self.cpus) // self.threads)


@dataclass
class MdevType:
    """A mediated device type. available is the initial value of available_instances."""

    name: str
    device_api: str = 'vfio-pci'
    available: int = 4
    existing: list = field(default_factory=list)
    description: str = ''


@dataclass
class Pci:
    """A PCI device. With total_vfs and vfs (addresses) it is an SR-IOV PF, with physfn a VF.

    serial is written to its vital product data, or for NVMe to the nvme folder. With creatable_vgpu_types ({number: name}) NVIDIA's driver
    can make a VF a vGPU without an mdev. current_vgpu_type is the current type.
    """

    address: str
    numa_node: int = 0
    vendor: int = 0x8086
    device: int = 0x1572
    pci_class: int = 0x020000
    driver: str = 'i40e'
    total_vfs: int = 0
    vfs: list = field(default_factory=list)
    physfn: str = ''
    creatable_vgpu_types: dict = None
    current_vgpu_type: int = 0
    serial: str = ''


@dataclass
class Gpu(Pci):
    """A card with mediated device types, by default an NVIDIA Tesla M10."""

    numa_node: int = 0
    vendor: int = 0x10de
    device: int = 0x13bd
    pci_class: int = 0x030200
    driver: str = 'nvidia'
    types: dict = field(default_factory=dict)


@dataclass
class Host:
    """The whole machine. name is its host name. By default its uuid is derived from the name."""

    cells: list = field(default_factory=list)
    gpus: list = field(default_factory=list)
    pci: list = field(default_factory=list)
    name: str = 'compute-1'
    uuid: str = ''

    def __post_init__(self):
        self.uuid = self.uuid or str(uuid.uuid5(uuid.NAMESPACE_DNS, self.name))

    def devices(self):
        """Returns all PCI devices, including GPUs, in the order of their addresses."""
        return sorted([*self.gpus, *self.pci], key=lambda dev: dev.address)


def nodedev_name(address):
    """Returns libvirt's name of a PCI device."""
    return 'pci_' + address.replace(':', '_').replace('.', '_')


def sriov(address, vfs, numa_node=0, total_vfs=0):
    """Returns a PF and its VFs as a network card shows them, as a list for Host.pci."""
    bus, slot = address[:7], int(address[8:10], 16)
    names = ['%s:%02x.%d' % (bus, slot + 1 + i // 8, i % 8) for i in range(vfs)]
    pf = Pci(address, numa_node, total_vfs=total_vfs or vfs, vfs=names)
    return [pf] + [Pci(name, numa_node, device=0x154c, driver='iavf', physfn=address)
                   for name in names]


def vgpu_card(address, vfs, types, numa_node=0):
    """Returns a newer NVIDIA GPU and its VFs, which can become vGPUs, as a list for Host.pci."""
    card = sriov(address, vfs, numa_node)
    for device in card:
        device.vendor, device.device, device.pci_class = 0x10de, 0x26b9, 0x030200
        device.driver = 'nvidia'
        if device.physfn:
            device.creatable_vgpu_types = dict(types)
    return card


def m10_types(small=4, medium=2, large=1, existing=()):
    """Returns three of the types that NVIDIA's driver offers on an M10."""
    return {
        'nvidia-35': MdevType('GRID M10-0B', available=small, existing=list(existing)),
        'nvidia-36': MdevType('GRID M10-0Q', available=medium),
        'nvidia-37': MdevType('GRID M10-1A', available=large),
    }


def simple_host(cells=1, gpus=0, name='compute-1'):
    """Returns a host of equal cells (4 CPUs, 4 GiB, 64 pages of 2 MiB) with GPUs on the cells in turn."""
    return Host(
        cells=[Cell(i, cpus=list(range(4 * i, 4 * i + 4)), memory_kib=4 << 20, threads=2,
                    hugepages={2048: 64}) for i in range(cells)],
        gpus=[Gpu('0000:%02x:00.0' % (0x41 + i), numa_node=i % cells, types=m10_types())
              for i in range(gpus)],
        name=name)


def recorded_host(name, **facts):
    """Returns the document that the static driver reads. Without facts the host has 8 CPUs, 8 GiB and a disk of 1 TiB."""
    return {'format': 'compute-agent-host/1', 'driver': 'static', 'nodename': name, 'arch': 'x86_64', 'hypervisor': 'QEMU',
            'online_cpus': '0-7', 'memory_kib': 8 << 20, 'disk_total_bytes': 1 << 40, **facts}


def recorded_cells(n=2):
    """Returns cells for recorded_host(), with 4 CPUs and 4 GiB each."""
    return [{'id': cell, 'memory_kib': 4 << 20, 'cpus': [{'id': 4 * cell + cpu} for cpu in range(4)]} for cell in range(n)]


DEMO_MDEV = 'c6ab9c37-3c8f-4d21-a8ba-3bb0a6a2cb01'


def demo_host():
    """Returns four uneven cells (cell 3 has no CPUs), pages of 2 MiB and 1 GiB, and GPUs on cells 1 and 2.

    The second GPU has one mdev already, so its other types have no capacity left.
    """
    return Host(
        name='demo',
        cells=[
            Cell(0, [0, 1, 2, 3, 8, 9, 10, 11], 32 << 20, {2048: 1024, 1048576: 4},
                 [10, 16, 32, 28], threads=2),
            Cell(1, [4, 5, 12, 13], 16 << 20, {2048: 512, 1048576: 0}, [16, 10, 32, 28],
                 threads=2),
            Cell(2, [6, 7, 14, 15], 24 << 20, {2048: 0, 1048576: 8}, [32, 32, 10, 28],
                 threads=2),
            Cell(3, [], 8 << 20, {2048: 256, 1048576: 0}, [28, 28, 28, 10]),
        ],
        gpus=[
            Gpu('0000:41:00.0', numa_node=1, types=m10_types()),
            Gpu('0000:81:00.0', numa_node=2,
                types=m10_types(small=4, medium=0, large=0, existing=[DEMO_MDEV])),
        ])
