#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each flavour key that the installed Nova registers is covered by a named test, or excluded with a reason.

The keys come from nova.api.validation.extra_specs (Debian's python3-nova). Its modules are imported without the rest of Nova's
API, so no service and no network is needed. KEYS is the only table. A placeholder of a key ("{group}") is "{}" here. The first
pattern that matches a key counts. A pattern that matches no key is stale, unless ONLY_IN names the versions of Nova that have it.
Errors are a key without a pattern, a stale pattern, and a test that does not exist.
"""

import importlib
import importlib.util
import pkgutil
import re
import sys
import types
from fnmatch import fnmatchcase
from pathlib import Path

from sources import main

TABLE = 'tests/lint/nova-flavors.py'
NOVA = 'tests/integration/claims/test_flavors_nova.py '  # domains of Nova's driver, and allocations of its scheduler
CLOUD = 'tests/cloud/test_flavors.py '  # booted by a whole Nova
FIT = 'tests/unit/claims/fit/'


class Excluded(str):
    """The reason why no test covers the key."""


FILTER = Excluded('a filter of the scheduler compares it with a host; it occupies nothing')
OTHERS = Excluded('the inventory is on providers of Neutron or Cyborg, which the agent does not write (facts C10)')
UNOFFERED = Excluded('neither Nova nor the agent has an inventory of this class')
FIRMWARE = Excluded('a matter of firmware and disks of the guest, which have no resource class')
VMWARE = Excluded('only the driver of VMware reads it')
HYPERV = Excluded('only the driver of Hyper-V reads it')
TPM = Excluded('the emulated TPM is a process of the host without a resource class; Nova needs Barbican for it')

KEYS = {
    # CPUs
    'hw:cpu_policy': NOVA + 'test_dedicated_cpus test_amounts_of_the_flavor',
    'hw:cpu_dedicated_mask': NOVA + 'test_dedicated_cpus',
    'hw:cpu_thread_policy': NOVA + 'test_thread_policies',
    'hw:cpu_realtime': NOVA + 'test_realtime_cpus',
    'hw:cpu_realtime_mask': NOVA + 'test_realtime_cpus',
    'hw:emulator_threads_policy': NOVA + 'test_emulator_threads',
    'hw:cpu_sockets': NOVA + 'test_topologies',
    'hw:cpu_cores': NOVA + 'test_topologies',
    'hw:cpu_threads': NOVA + 'test_topologies',
    'hw:max_cpu_*': NOVA + 'test_topologies',
    # memory
    'hw:mem_page_size': NOVA + 'test_page_sizes',
    'hw:locked_memory': NOVA + 'test_locked_memory',
    'hw:mem_encryption': 'tests/integration/driver/test_host.py test_c6_models_come_and_go',
    'hw:pmem': Excluded('persistent memory is not reported (facts C2 CUSTOM_PMEM)'),
    # cells
    'hw:numa_nodes': NOVA + 'test_cells',
    'hw:numa_cpus.{}': NOVA + 'test_cells',
    'hw:numa_mem.{}': NOVA + 'test_cells',
    # devices for passthrough
    'hw:pci_numa_affinity_policy': CLOUD + 'test_pci_affinity',
    'pci_passthrough:alias': CLOUD + 'test_passed_through',
    'accel:device_profile': OTHERS,
    # devices that QEMU emulates, and switches of the domain
    'hide_hypervisor_id': NOVA + 'test_emulated_devices',
    'hw:hide_hypervisor_id': NOVA + 'test_emulated_devices',
    'hw:boot_menu': NOVA + 'test_emulated_devices',
    'hw:pmu': NOVA + 'test_emulated_devices',
    'hw:serial_port_count': NOVA + 'test_emulated_devices',
    'hw:vif_multiqueue_enabled': NOVA + 'test_emulated_devices',
    'hw:viommu_model': NOVA + 'test_emulated_devices',
    'hw:watchdog_action': NOVA + 'test_emulated_devices',
    'hw_rng:*': NOVA + 'test_emulated_devices',
    'hw_video:ram_max_mb': NOVA + 'test_emulated_devices',
    'hw:virtio_packed_ring': Excluded('a switch of virtio devices, which QEMU emulates'),
    'hw:tpm_*': TPM,
    'hw:ephemeral_encryption*': FIRMWARE,
    'os:secure_boot': FIRMWARE,
    'os:monitors': HYPERV,
    'os:resolution': HYPERV,
    'os:vram': HYPERV,
    'vmware:*': VMWARE,
    # limits of libvirt, then of VMware
    'quota:cpu_shares': NOVA + 'test_quotas',
    'quota:cpu_period': NOVA + 'test_quotas',
    'quota:cpu_quota': NOVA + 'test_quotas',
    'quota:disk_*_sec': NOVA + 'test_quotas',
    'quota:vif_*bound_*': NOVA + 'test_quotas',
    'quota:cpu_*': VMWARE,
    'quota:memory_*': VMWARE,
    'quota:disk_io_*': VMWARE,
    'quota:vif_*': VMWARE,
    # requests to Placement
    'group_policy': FIT + 'test-fit.c test_groups',
    'resources{}:VCPU': NOVA + 'test_amounts_that_resources_keys_replace',
    'resources{}:PCPU': NOVA + 'test_dedicated_cpus',
    'resources{}:MEMORY_MB': NOVA + 'test_amounts_that_resources_keys_replace',
    'resources{}:DISK_GB': NOVA + 'test_amounts_that_resources_keys_replace',
    'resources{}:CUSTOM_{}': NOVA + 'test_amounts_that_resources_keys_replace',
    'resources{}:VGPU': CLOUD + 'test_vgpu',
    'resources{}:PGPU': 'tests/unit/drivers/host/test-pci-spec.c test_c7_names',
    'resources{}:MEM_ENCRYPTION_CONTEXT': 'tests/integration/driver/test_host.py test_c6_models_come_and_go',
    'resources{}:PCI_DEVICE': UNOFFERED,
    'resources{}:SRIOV_NET_VF': UNOFFERED,
    'resources{}:NUMA_*': UNOFFERED,
    'resources{}:VGPU_DISPLAY_HEAD': UNOFFERED,
    'resources{}:IPV4_ADDRESS': OTHERS,
    'resources{}:NET_*': OTHERS,
    'resources{}:FPGA': OTHERS,
    'trait{}:*': CLOUD + 'test_traits',
    # keys that filters compare
    'aggregate_instance_extra_specs:{}': FILTER,
    'capabilities:*': FILTER,
}

# The versions that must have the pattern: (first, last). In other versions it is not stale.
ONLY_IN = {
    'hw:virtio_packed_ring': (31, None),
    'os:monitors': (0, 26),
    'os:resolution': (0, 26),
    'os:vram': (0, 26),
}


def find_nova():
    """Returns the folder of Nova's package without importing Nova, which would take seconds."""
    spec = importlib.util.find_spec('nova')
    if not spec:
        sys.exit('nova is missing: install the Debian package python3-nova')
    return Path(spec.origin).parent


def read_version(nova):
    """Returns the major version from the metadata of the package."""
    for path in nova.parent.glob('nova-*.*-info'):
        if found := re.match(r'nova-(\d+)\.', path.name):
            return int(found[1])
    sys.exit('%s has no metadata with its version' % nova)


def read_keys(nova):
    # Empty modules replace nova, nova.api and nova.api.validation, so that the import does not load the rest of Nova.
    for name, folder in (('nova', nova), ('nova.api', nova / 'api'), ('nova.api.validation', nova / 'api/validation')):
        module = types.ModuleType(name)
        module.__path__ = [str(folder)]
        sys.modules[name] = module
    package = importlib.import_module('nova.api.validation.extra_specs')
    keys = set()
    for found in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module('%s.%s' % (package.__name__, found.name))
        keys |= {validator.name for validator in getattr(module, 'register', list)()}
    return {re.sub(r'\{\w+\}', '{}', key) for key in keys}


def find_pattern(key):
    return next((pattern for pattern in KEYS if fnmatchcase(key, pattern)), None)


def is_expected(pattern, version):
    first, last = ONLY_IN.get(pattern, (0, None))
    return first <= version and (last is None or version <= last)


def find_unlike(keys, version):
    """Yields the differences between the table and the keys of a version of Nova, as texts."""
    used = {find_pattern(key) for key in keys}
    for key in sorted(keys):
        if not find_pattern(key):
            yield 'Nova %d registers %s, which no row covers' % (version, key)
    for pattern in KEYS:
        if pattern not in used and is_expected(pattern, version):
            yield 'Nova %d registers no %s: the row is stale' % (version, pattern)
    for pattern in ONLY_IN.keys() - KEYS.keys():
        yield 'ONLY_IN has %s, and KEYS has not' % pattern


def find_missing(texts):
    """Yields the rows whose test does not exist, as texts."""
    for pattern, covered in KEYS.items():
        name, *tests = ('',) if isinstance(covered, Excluded) else covered.split()
        for test in tests:
            if not re.search(r'^(static void| +def) %s\(' % test, texts.get(name, ''), re.M):
                yield '%s: %s has no %s' % (pattern, name, test)


def find_problems(root, files):
    if not (root / TABLE).exists():
        return  # not the tree of this project
    nova = find_nova()
    texts = {file.name: file.text for file in files}
    for text in [*find_missing(texts), *find_unlike(read_keys(nova), read_version(nova))]:
        yield TABLE, 1, text


if __name__ == '__main__':
    main(find_problems)
