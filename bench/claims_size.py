# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures the cost of wide claims, of many pending writes and of GPUs, by their number, with a real Placement.

    COMPUTE_AGENT_BUILD=DIR python3 -m bench.claims_size [--most-pending N] [--gpus-only]   (a part of "make bench-claims")

It runs compute-agentd on a recorded host (the static driver) and a Placement over SQLite. Another client has created equal devices
for one guest each below the provider of the host. A wide claim has the given number of groups, each with one device. Its time is that
of "computectl claim", the best of five. "PUT" is the time in which Placement takes the same allocations from this program. Pending
writes are claims without allocations in Placement. Their time is that from the start of settling to its end, most of it in Placement.
The last column is the agent's CPU time for each write.

GPUs are eight cards for 24 vGPUs each: with 32 virtual functions that become vGPUs, with mdevs, and with mdevs on 32 virtual functions.
A poll is one of the linux driver without an event (bench/poll). "publish" is the first cycle. The time of a claim of one vGPU is the
median of all claims until half of the vGPUs are claimed. "PUT" is the median of as many writes by this program.
"""

import argparse
import statistics
import sys
import time
import uuid

from bench.claims import HOST, cpu_seconds, fill
from bench.poll import measure
from tests.env import fakesys
from tests.env.agent import Agent
from tests.env.bus import Bus
from tests.env.hosts import Gpu, MdevType, nodedev_name, recorded_cells, simple_host, vgpu_card
from tests.env.placement import Placement
from tests.env.scratch import Scratch, wait_until

DEVICES = 64
CARDS, FUNCTIONS, VGPUS = 8, 32, 24  # VGPUS: of each card
TYPE, TYPE_NAME = 1428, 'NVIDIA L40S-2Q'
LARGEST, LARGEST_NAME = 1436, 'NVIDIA L40S-48Q'


def add_devices(placement, root):
    placement.api('PUT', '/resource_classes/CUSTOM_WIDE')
    for n in range(DEVICES):
        placement.make_provider('bench_dev%02d' % n, {'CUSTOM_WIDE': 1}, root)


def put_seconds(placement, held):
    """Returns the time in which Placement takes these allocations of a new consumer, asked directly. Removes them again."""
    consumer = str(uuid.uuid4())
    body = {'allocations': held, 'project_id': 'demo', 'user_id': 'user', 'consumer_type': 'INSTANCE', 'consumer_generation': None}
    begun = time.monotonic()
    placement.api('PUT', '/allocations/' + consumer, body)
    taken = time.monotonic() - begun
    placement.api('DELETE', '/allocations/' + consumer)
    return taken


def held_by(placement, consumer):
    """Returns the allocations of a consumer in the form in which they are written."""
    return {provider: {'resources': item['resources']}
            for provider, item in placement.get('/allocations/' + consumer)['allocations'].items()}


def measure_wide(agent, placement):
    print('%8s %10s %10s %10s %10s' % ('groups', 'claim ms', 'PUT ms', 'CPU ms', 'requests'))
    for groups in (1, 2, 4, 8, 16, 32, DEVICES):
        best, put, cpu, requests = float('inf'), float('inf'), float('inf'), 0
        for _ in range(5):
            mark, used = placement.mark(), cpu_seconds(agent.child.pid)
            options = ['--group=_D%02d:CUSTOM_WIDE=1' % n for n in range(groups)]
            begun = time.monotonic()
            claim = agent.claim('VCPU=1', None, *options)
            best = min(best, time.monotonic() - begun)
            cpu = min(cpu, cpu_seconds(agent.child.pid) - used)
            requests = len(placement.requests_since(mark))
            held = held_by(placement, claim['consumer'])
            agent.ctl('release', claim['id'])
            wait_until(lambda: agent.status()['n_pending_removals'] == 0, 60, 'the removal')
            put = min(put, put_seconds(placement, held))
        print('%8d %10.1f %10.1f %10.2f %10d' % (groups, 1e3 * best, 1e3 * put, 1e3 * cpu, requests), flush=True)


def measure_pending_writes(agent, most):
    print('%14s %10s %10s' % ('pending writes', 's', 'CPU ms each'))
    n = 100
    while n <= most:
        agent.stop()
        fill(agent, n, 'owed')
        agent.start()
        begun, used = time.monotonic(), cpu_seconds(agent.child.pid)
        agent.wait_state('synced')
        wait_until(lambda: agent.status()['n_pending_writes'] == 0, 3600, 'the pending writes')
        print('%14d %10.2f %10.3f' % (n, time.monotonic() - begun, 1e3 * (cpu_seconds(agent.child.pid) - used) / n),
              flush=True)
        n *= 10


def make_gpus(kind):
    """Returns the GPUs of a kind as a list of Gpu, or as one of functions."""
    addresses = ['%04x:01:00.0' % (card + 1) for card in range(CARDS)]
    if kind == 'functions':
        return [device for address in addresses for device in vgpu_card(address, FUNCTIONS, {TYPE: TYPE_NAME, LARGEST: LARGEST_NAME})]
    types = {'nvidia-%d' % TYPE: MdevType(TYPE_NAME, available=VGPUS if kind == 'mdevs' else 1)}
    if kind == 'mdevs':
        return [Gpu(address, types=types) for address in addresses]
    return [Gpu('%s:%02x:%02x.%d' % (address[:4], 1 + n // 256, 1 + n // 8, n % 8), types=types) for address in addresses for n in range(FUNCTIONS)]


def recorded_gpu(device):
    """Returns a GPU or function as the static driver reads it."""
    kinds = getattr(device, 'creatable_vgpu_types', None) or {}
    listed = [{'id': 'nvidia-%d' % number, 'name': name, 'available_instances': 1} for number, name in kinds.items()] or [
        {'id': name, 'name': one.name, 'available_instances': one.available} for name, one in getattr(device, 'types', {}).items()]
    return {'name': nodedev_name(device.address), 'is_pci': True, 'address': device.address, 'numa_node': 0, 'driver': 'nvidia',
            'vendor_id': device.vendor, 'product_id': device.device, 'class_code': device.pci_class, 'is_vgpu_function': bool(kinds),
            'physical_function': getattr(device, 'physfn', None) or '', 'mdev_types': listed}


def measure_poll(kind, scratch):
    """Returns the ms of CPU of a poll without an event."""
    gpus = make_gpus(kind)
    host = simple_host(cells=1)
    if kind == 'functions':
        host.pci += gpus
    else:
        host.gpus += gpus
    return float(measure(fakesys.write(host, scratch.folder('sys')), '99')['median'][0])


def measure_gpus(kind):
    with Scratch() as scratch:
        poll_ms = measure_poll(kind, scratch)
        placement = Placement(scratch).start()
        host = {**HOST, 'cells': recorded_cells(1), 'online_cpus': '0-3', 'devices': [recorded_gpu(device) for device in make_gpus(kind)]}
        agent = Agent(scratch, placement, bus=Bus(scratch).start(), host=host, options={
            'DEFAULT': {'update_resources_interval': 3600}, 'devices': {'enabled_mdev_types': 'nvidia-%d' % TYPE}})
        mark, begun = placement.mark(), time.monotonic()
        agent.start('synced')
        publish, cpu, requests = time.monotonic() - begun, cpu_seconds(agent.child.pid), len(placement.requests_since(mark))
        times, used, n = [], cpu_seconds(agent.child.pid), CARDS * VGPUS // 2
        for _ in range(n):
            begun = time.monotonic()
            agent.ctl('claim', '--quiet', '--consumer', uuid.uuid4(), '--resources', 'VGPU=1')
            times.append(time.monotonic() - begun)
        cpu_each = (cpu_seconds(agent.child.pid) - used) / n
        claim = agent.claims()[0]
        held = held_by(placement, claim['consumer'])
        agent.ctl('release', claim['id'])  # its card has a free vGPU then
        wait_until(lambda: agent.status()['n_pending_removals'] == 0, 60, 'the removal')
        puts = [put_seconds(placement, held) for _ in range(n)]
        print('%-24s %9d %9.2f %9.2f %9.1f %9d %9.1f %9.1f %9.2f' % (
            {'functions': 'functions without mdev', 'mdevs': 'mdevs', 'function-mdevs': 'mdevs on functions'}[kind],
            agent.status()['n_providers'], poll_ms, publish, 1e3 * cpu, requests, 1e3 * statistics.median(times),
            1e3 * statistics.median(puts), 1e3 * cpu_each), flush=True)
        agent.stop()


def measure_all_gpus():
    print('%-24s %9s %9s %9s %9s %9s %9s %9s %9s' % (
        '8 GPUs with', 'providers', 'poll CPU', 'publish s', 'CPU ms', 'requests', 'claim ms', 'PUT ms', 'CPU ms'))
    for kind in ('functions', 'mdevs', 'function-mdevs'):
        measure_gpus(kind)


def main():
    parser = argparse.ArgumentParser(prog='python3 -m bench.claims_size')
    parser.add_argument('--most-pending', type=int, default=10000)
    parser.add_argument('--gpus-only', action='store_true')
    args = parser.parse_args()
    measure_all_gpus()
    if args.gpus_only:
        return 0
    with Scratch() as scratch:
        placement = Placement(scratch).start()
        bus = Bus(scratch).start()
        agent = Agent(scratch, placement, bus=bus, host=HOST, options={
            'DEFAULT': {'update_resources_interval': 3600, 'cpu_allocation_ratio': 100}}).start('synced')
        add_devices(placement, agent.root())
        agent.ctl('sync')
        measure_wide(agent, placement)
        measure_pending_writes(agent, args.most_pending)
        agent.stop()
    return 0


if __name__ == '__main__':
    sys.exit(main())
