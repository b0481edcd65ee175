# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes workloads of the format "rt-workload/1" for compute-agent-bench: hosts with N providers and with C
consumers.

    python3 -m bench.workloads FOLDER        writes tree-N.json and reshape-C.json there

tree-N: a host of four NUMA cells with GPUs below them is published and stays unchanged for some cycles. Then
each cycle changes one inventory. reshape-C: the vGPUs of C consumers move from the root to eight devices.
"""

import copy
import json
import sys
import uuid
from pathlib import Path

SPACE = uuid.UUID('0e7b3c0a-3c39-4b58-8f39-52c1a0a7d1f4')
TREES = (1, 8, 64, 256)
RESHAPES = (10, 100, 1000)
DEVICES = 8


def uid(*key):
    return str(uuid.uuid5(SPACE, '/'.join(map(str, key))))


def inventory(total, **fields):
    return {'total': total, 'reserved': 0, 'min_unit': 1, 'max_unit': total, 'step_size': 1,
            'allocation_ratio': 1.0, **fields}


def provider(workload, name, parent, inventories, traits):
    return {'uuid': uid(workload, name), 'name': '%s_%s' % (workload, name) if name else workload,
            'parent': None if parent is None else uid(workload, parent),
            'inventories': inventories, 'traits': traits, 'aggregates': []}


def root(workload, **inventories):
    return provider(workload, '', None, {
        'VCPU': inventory(512, allocation_ratio=4.0), 'MEMORY_MB': inventory(2 ** 20, reserved=512),
        'DISK_GB': inventory(8192), **inventories},
        ['COMPUTE_NODE', 'COMPUTE_DEVICE_TAGGING', 'HW_CPU_X86_AVX2', 'CUSTOM_BENCH_HOST'])


def device(workload, number, total, parent):
    return provider(workload, 'pci_0000_%02x_00_0' % number, parent, {'VGPU': inventory(total)},
                    ['HW_GPU_API_VULKAN', 'CUSTOM_BENCH_GPU_%d' % (number % 2)])


def tree(n):
    # The last provider alternates between two states, so that each cycle of the last step writes one
    # inventory.
    name = 'tree-%d' % n
    providers = [root(name)]
    for cell in range(min(4, n - 1)):
        providers.append(provider(name, 'NUMA%d' % cell, '', {
            'PCPU': inventory(64), 'CUSTOM_BENCH_PAGES': inventory(2 ** 18, step_size=64)},
            ['HW_NUMA_ROOT']))
    for number in range(n - len(providers)):
        providers.append(device(name, number, 8, 'NUMA%d' % (number % 4)))
    changed = copy.deepcopy(providers)
    next(iter(changed[-1]['inventories'].values()))['reserved'] = 1
    return {'name': name, 'root': providers[0]['uuid'], 'consumers': [],
            'states': {'initial': {'providers': providers}, 'changed': {'providers': changed}},
            'steps': [
                {'op': 'publish', 'state': 'initial', 'label': 'publish'},
                {'op': 'cycle', 'state': 'initial', 'refresh': 'not_due', 'n': 8, 'label': 'quiet cycle'},
                {'op': 'toggle', 'states': ['changed', 'initial'], 'refresh': 'not_due', 'n': 6,
                 'label': 'one inventory changed'}]}


def reshape(n):
    name = 'reshape-%d' % n
    before = root(name, VGPU=inventory(1024))
    devices = [device(name, number, 128, '') for number in range(DEVICES)]
    common = {'VCPU': 1, 'MEMORY_MB': 512, 'DISK_GB': 1}
    consumers, after = [], {}
    for number in range(n):
        consumer = uid(name, 'consumer', number)
        consumers.append({'uuid': consumer, 'project_id': 'project-%d' % (number % 5), 'user_id': 'user',
                          'allocations': {before['uuid']: {**common, 'VGPU': 1}}})
        after[consumer] = {before['uuid']: common, devices[number % DEVICES]['uuid']: {'VGPU': 1}}
    return {'name': name, 'root': before['uuid'], 'consumers': consumers,
            'states': {'initial': {'providers': [before]},
                       'reshaped': {'providers': [root(name), *devices], 'allocations': after}},
            'steps': [
                {'op': 'publish', 'state': 'initial', 'label': 'publish'},
                {'op': 'claim', 'how': 'put', 'consumers': 'all', 'label': 'a scheduler claims'},
                {'op': 'cycle', 'state': 'initial', 'refresh': 'not_due', 'n': 3,
                 'label': 'quiet cycle, %d consumers' % n},
                {'op': 'reshape', 'state': 'reshaped', 'label': 'reshape'}]}


def write(folder, workload):
    """Writes a workload to a file with its name. Returns the path."""
    path = Path(folder) / (workload['name'] + '.json')
    path.write_text(json.dumps({'format': 'rt-workload/1', **workload}))
    return path


def main():
    for workload in [tree(n) for n in TREES] + [reshape(n) for n in RESHAPES]:
        print(write(sys.argv[1], workload))
    return 0


if __name__ == '__main__':
    sys.exit(main())
