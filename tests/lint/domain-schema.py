#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each part of libvirt's domain XML that can name host CPUs, host cells or a host device is counted or excluded.

The check searches libvirt's grammar (RELAX NG) for the elements and attributes of <domain> that can do so. These have a CPU set or
a device address, or the name "cpuset", "nodeset" or "nodemask". PARTS is the only table of them, by path. COUNTED names the tests
that would fail if a guest's claim ignored the part ("file test …"). EXCLUDED says why claims can ignore it.

The check fails for a path that is only in the grammar or only in the table. NEWER has the first version of libvirt with a path, so
that one table serves both releases of Debian. The address of a device inside the guest (the define "address" of the grammar) is
not a part of the host, and is skipped.
"""

import ctypes
import re
from pathlib import Path
from xml.etree import ElementTree

from sources import main

SCHEMAS = Path('/usr/share/libvirt/schemas')
NAMESPACE = '{http://relaxng.org/ns/structure/1.0}'
NAMES = {'cpuset', 'nodeset', 'nodemask'}
# Defines of basictypes.rng for a set of CPUs or cells, or for an address on a bus of the host.
VALUES = {'cpuset', 'pciaddress', 'usbaddress', 'usbproduct', 'scsiaddress', 'ccwaddress'}
# Paths that name a host device in another way: the uuid of an mdev, and the device file of a vDPA device.
OTHERS = {'/domain/devices/hostdev/source/address/@uuid', '/domain/devices/interface/source/@dev'}
GUEST_ADDRESS = 'address'

DOMAIN = 'tests/unit/drivers/libvirt/test-domain.c '
AMOUNTS = 'tests/integration/claims/test_amounts.py '
BOTH = 'tests/integration/claims/test_both_definitions.py '
NVME = [DOMAIN + 'test_nvme_disks_are_pci_devices']


def counted(*tests):
    """Marks a part as counted. tests: those that would fail if claims ignored the part."""
    return list(tests), ''


def excluded(why):
    """Marks a part that claims ignore, with the reason."""
    return [], why


GUEST_CPUS = excluded('numbers of guest CPUs')
LAYOUT = 'tests/integration/claims/test_layout.py '

PARTS = {
    '/domain/vcpu/@cpuset': counted(DOMAIN + 'test_whole_placement', LAYOUT + 'test_a_guest_with_all_of_it_agrees_with_its_claim'),
    '/domain/cputune/vcpupin/@cpuset': counted(
        DOMAIN + 'test_whole_placement', BOTH + 'test_a_dedicated_cpu_of_the_next_start_is_not_given_away'),
    '/domain/cputune/emulatorpin/@cpuset': counted(
        DOMAIN + 'test_other_threads', AMOUNTS + 'test_cpus_of_emulator_and_io_threads_are_held'),
    '/domain/cputune/iothreadpin/@cpuset': counted(
        DOMAIN + 'test_other_threads', AMOUNTS + 'test_cpus_of_emulator_and_io_threads_are_held'),
    '/domain/cputune/vcpusched/@vcpus': GUEST_CPUS,
    '/domain/cputune/iothreadsched/@iothreads': excluded('numbers of I/O threads of the guest'),
    '/domain/cputune/cachetune/@vcpus': GUEST_CPUS,
    '/domain/cputune/cachetune/monitor/@vcpus': GUEST_CPUS,
    '/domain/cputune/memorytune/@vcpus': GUEST_CPUS,
    '/domain/cputune/memorytune/monitor/@vcpus': GUEST_CPUS,
    '/domain/cpu/numa/cell/@cpus': counted(DOMAIN + 'test_whole_placement'),
    '/domain/numatune/memory/@nodeset': counted(DOMAIN + 'test_whole_placement'),
    '/domain/numatune/memnode/@nodeset': counted(DOMAIN + 'test_whole_placement'),
    '/domain/memoryBacking/hugepages/page/@nodeset': counted(DOMAIN + 'test_whole test_pages'),
    '/domain/devices/memory/source/nodemask': excluded(
        '<memory> of the domain counts its size; Nova makes no such device of host memory'),
    '/domain/devices/hostdev/source/address': counted(
        DOMAIN + 'test_whole', BOTH + 'test_a_pci_device_for_the_next_start_is_not_given_away'),
    '/domain/devices/hostdev/source/address/@uuid': counted(
        DOMAIN + 'test_whole', BOTH + 'test_an_mdev_for_the_next_start_is_not_given_away'),
    '/domain/devices/hostdev/source': excluded('USB devices: no resource class counts them'),
    '/domain/devices/hostdev/source/adapter/parentaddr/address': excluded(
        'the SCSI adapter of a LUN, which many guests share'),
    '/domain/devices/interface/source/address': counted(DOMAIN + 'test_whole'),
    '/domain/devices/interface/source': excluded('USB devices: no resource class counts them'),
    '/domain/devices/interface/source/@dev': excluded(
        'a bridge or a network interface of the host, or a vDPA device, which Neutron gives to guests by its network'),
    '/domain/devices/disk/source/address': counted(*NVME, BOTH + 'test_an_nvme_disk_is_a_pci_device'),
    '/domain/devices/disk/backingStore/source/address': counted(*NVME),
    '/domain/devices/disk/mirror/source/address': counted(*NVME),
    '/domain/devices/disk/mirror/backingStore/source/address': counted(*NVME),
    '/domain/devices/disk/source/dataStore/source/address': counted(*NVME),
    '/domain/devices/disk/mirror/source/dataStore/source/address': counted(*NVME),
    '/domain/os/nvram/source/address': counted(*NVME),
}

# Versions in libvirt's form: 11003000 is 11.3.0.
NEWER = {
    '/domain/devices/disk/source/dataStore/source/address': 10_010_000,
    '/domain/devices/disk/mirror/source/dataStore/source/address': 10_010_000,
}


def load(path, defines, seen):
    """Reads a grammar and its includes into defines. Returns its root element, or None if it was read before."""
    if path in seen:
        return None
    seen.add(path)
    root = ElementTree.parse(path).getroot()
    for include in root.iter(NAMESPACE + 'include'):
        load(path.parent / include.get('href'), defines, seen)
    for define in root.iter(NAMESPACE + 'define'):
        defines.setdefault(define.get('name'), []).append(define)
    return root


def name_of(node):
    """Returns the name of an element or attribute, or "*" for any name."""
    child = node.find(NAMESPACE + 'name')
    return node.get('name') or ('*' if child is None else child.text.strip())


def walk(node, path, open_defines, defines, found):
    """Adds the paths below node to found. open_defines are the defines that contain node, because a grammar is recursive."""
    kind = node.tag.replace(NAMESPACE, '')
    if kind == 'ref':
        name = node.get('name')
        if name in VALUES:
            found.add(path)
        elif name != GUEST_ADDRESS and name not in open_defines:
            for define in defines.get(name, []):
                for child in define:
                    walk(child, path, open_defines | {name}, defines, found)
        return
    if kind in ('element', 'attribute'):
        name = name_of(node)
        path += '/' + ('@' if kind == 'attribute' else '') + name
        if name in NAMES or path in OTHERS:
            found.add(path)
    for child in node:
        walk(child, path, open_defines, defines, found)


def read_paths(folder):
    """Returns the paths of the domain grammar in folder that name a part of the host."""
    defines, found = {}, set()
    root = load(folder / 'domain.rng', defines, set())
    for start in root.iter(NAMESPACE + 'start'):
        for child in start:
            walk(child, '', frozenset(), defines, found)
    return found


def compare(paths, parts, newer, version):
    """Yields the differences between the table and the grammar of this version of libvirt."""
    for path in sorted(paths - set(parts)):
        yield '%s of libvirt\'s domain schema is neither counted nor excluded' % path
    for path in sorted(set(parts) - paths):
        if newer.get(path, 0) <= version:
            yield '%s is not in libvirt\'s domain schema' % path
    for path in sorted(set(newer) - set(parts)):
        yield '%s has a version and no entry' % path
    for path, (tests, why) in parts.items():
        if bool(tests) == bool(why):
            yield '%s must have either tests or a reason' % path


def find_missing_tests(texts, parts):
    """Yields each named test that does not exist."""
    for path, (references, _why) in parts.items():
        for reference in references:
            name, *tests = reference.split()
            for test in tests:
                if not re.search(r'^(static void| +def) %s\(' % test, texts.get(name, ''), re.M):
                    yield '%s: %s has no %s' % (path, name, test)


def libvirt_version():
    """Returns the version of the installed libvirt, in libvirt's form."""
    version = ctypes.c_ulong()
    ctypes.CDLL('libvirt.so.0').virGetVersion(ctypes.byref(version), None, None)
    return version.value


def find_problems(root, files):
    name = 'tests/lint/domain-schema.py'
    if not (root / name).exists():
        return  # not the tree of this project
    for text in find_missing_tests({file.name: file.text for file in files}, PARTS):
        yield name, 1, text
    if not (SCHEMAS / 'domain.rng').exists():
        yield name, 1, '%s is missing: install the Debian packages of the group test in tests/run/packages' % SCHEMAS
        return
    for text in compare(read_paths(SCHEMAS), PARTS, NEWER, libvirt_version()):
        yield name, 1, text


if __name__ == '__main__':
    main(find_problems)
