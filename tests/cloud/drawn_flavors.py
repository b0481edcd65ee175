# SPDX-License-Identifier: LGPL-2.1-or-later
"""Draws random flavours from the keys that the installed Nova registers.

A flavour is made by a recipe, which decides its CPUs, memory and devices, and has some further keys. A recipe draws keys that
depend on each other. Each other key is drawn independently. LEFT_OUT lists the keys that are never drawn, with the reason.
"""

import json
import re
import subprocess
from dataclasses import dataclass, field

from tests.env.cache import PYTHON

# A separate process imports Nova, because the import patches threads and sockets.
_LIST = '''
import importlib, json, pkgutil
import nova.api.validation.extra_specs as specs
found = {}
for module in pkgutil.iter_modules(specs.__path__):
    register = getattr(importlib.import_module('%s.%s' % (specs.__name__, module.name)), 'register', list)
    found.update({one.name: {**one.value, 'type': one.value['type'].__name__} for one in register()})
print(json.dumps(found))
'''

NO_HARDWARE = 'the made-up host has no such hardware'
NO_CGROUPS = "the private libvirtd has no control groups"
OTHER_SERVICE = 'needs a service that this cloud does not run'
LEFT_OUT = {
    r'accel:device_profile': OTHER_SERVICE,
    r'hw:(mem_encryption.*|pmem|viommu_model|sev.*)': NO_HARDWARE,
    r'hw:(tpm_.*|ephemeral_encryption.*)': OTHER_SERVICE,
    r'quota:cpu_.*': NO_CGROUPS,
    r'quota:(disk_io|memory|vif)_.*': 'for VMware alone, which refuses to be mixed with libvirt',
    r'quota:vif_.*': 'limits a network, which no server of this cloud has',
    r'hw:max_cpu_.*': 'an upper limit for the image, not for the host',
    r'hw_video:ram_max_mb|os:vram|os:monitors|os:resolution': 'video memory of the guest, which no host counts',
    r'aggregate_instance_extra_specs:.*': 'read by a filter of the scheduler that this cloud does not enable',
    r'capabilities:.*': 'read by the scheduler alone',
    r'vmware:.*': 'for VMware alone',
}
# The keys that recipes draw. {num} stands for a number.
OF_RECIPES = (r'hw:(cpu_(policy|dedicated_mask|realtime|realtime_mask|thread_policy)|emulator_threads_policy|mem_page_size|'
              r'locked_memory|numa_(nodes|cpus\.\{num\}|mem\.\{num\})|pci_numa_affinity_policy)|'
              r'resources.*|group_policy|pci_passthrough:alias|trait.*')


@dataclass
class Flavor:
    vcpus: int
    ram: int
    extra: dict = field(default_factory=dict)


def registered():
    """Returns the keys of the installed Nova, as {key: value of its validator}."""
    done = subprocess.run([PYTHON, '-W', 'ignore', '-c', _LIST], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return json.loads(done.stdout)


def loose_keys(keys):
    """Returns the keys that are drawn independently."""
    skipped = re.compile('|'.join([*LEFT_OUT, OF_RECIPES]))
    return sorted(key for key in keys if not skipped.fullmatch(key))


def _value(rng, key, spec):
    """Returns a value that the validator of a key accepts."""
    if 'enum' in spec:
        return rng.choice(sorted(spec['enum']))
    if spec['type'] == 'bool':
        return rng.choice(['true', 'false'])
    if spec['type'] == 'int':
        return '1000000' if key.startswith('quota:') else '1'
    raise AssertionError('no value is known for %s: %s' % (key, spec))


# ---- recipes

def plain(rng):
    return Flavor(rng.choice([1, 1, 2, 4]), rng.choice([64, 96, 128]))


def more_than_the_domain(rng):
    """Returns a flavour with resources: keys. Nova allocates their amounts, which differ from those of the domain."""
    flavor = plain(rng)
    for name, amount in rng.sample([('VCPU', flavor.vcpus + rng.choice([1, 2])), ('MEMORY_MB', flavor.ram + 64),
                                    ('CUSTOM_LICENCE', 1)], rng.choice([1, 2])):
        flavor.extra['resources:' + name] = str(amount)
    return flavor


def dedicated(rng):
    flavor = Flavor(rng.choice([1, 2, 2, 3]), 64, {'hw:cpu_policy': 'dedicated'})
    if rng.random() < 0.5:
        flavor.extra['hw:emulator_threads_policy'] = rng.choice(['isolate', 'isolate', 'share'])
    if rng.random() < 0.4:
        flavor.extra['hw:cpu_thread_policy'] = rng.choice(['prefer', 'isolate', 'require'])
    if flavor.vcpus > 1 and rng.random() < 0.3:
        flavor.extra.update({'hw:cpu_realtime': 'yes', 'hw:cpu_realtime_mask': '^0'})
    return flavor


def mixed(rng):
    flavor = Flavor(rng.choice([2, 3]), 64, {'hw:cpu_policy': 'mixed'})
    flavor.extra['hw:cpu_dedicated_mask'] = rng.choice(['0', '1', '^0'])
    return flavor


def cells(rng):
    """Returns a flavour of a guest with two cells of equal or different size."""
    flavor = Flavor(2, 128, {'hw:numa_nodes': '2'})
    if rng.random() < 0.5:
        flavor.vcpus = 3
        flavor.extra.update({'hw:numa_cpus.0': '0,1', 'hw:numa_cpus.1': '2', 'hw:numa_mem.0': '96', 'hw:numa_mem.1': '32'})
    if rng.random() < 0.4 and flavor.vcpus == 2:
        flavor.extra['hw:cpu_policy'] = 'dedicated'
    return flavor


def pages(rng):
    flavor = Flavor(1, 64, {'hw:mem_page_size': rng.choice(['2048', 'large', 'small', 'any'])})
    if rng.random() < 0.3:
        flavor.extra['hw:locked_memory'] = 'true'
    return flavor


def vgpu(rng):
    flavor = plain(rng)
    flavor.extra.update(rng.choice([{'resources:VGPU': '1'}, {'resources1:VGPU': '1', 'group_policy': 'none'}]))
    return flavor


def passed_through(rng):
    flavor = plain(rng)
    flavor.extra['pci_passthrough:alias'] = 'card:1'
    if rng.random() < 0.5:
        flavor.extra['hw:pci_numa_affinity_policy'] = rng.choice(['required', 'preferred', 'legacy', 'socket'])
    return flavor


def traits(rng):
    flavor = plain(rng)
    flavor.extra.update({'trait:COMPUTE_NODE': 'required', 'trait:HW_CPU_X86_VMX': rng.choice(['forbidden', 'required'])})
    return flavor


RECIPES = {plain: 2, more_than_the_domain: 4, dedicated: 5, mixed: 2, cells: 4, pages: 2, vgpu: 2, passed_through: 2, traits: 1}


def draw(rng, keys):
    """Returns a random Flavor. keys: the result of registered()."""
    flavor = rng.choices(list(RECIPES), list(RECIPES.values()))[0](rng)
    loose = loose_keys(keys)
    for key in rng.sample(loose, min(len(loose), rng.choice([0, 1, 2, 3]))):
        flavor.extra[key] = _value(rng, key, keys[key])
    return flavor
