# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures how long the main loop of the daemon stops for each kind of work, with many claims and providers.

    COMPUTE_AGENT_BUILD=DIR python3 -m bench.claims_stops [--claims N] [--providers N]   ("make bench-stops")

It runs compute-agentd (the static driver, standalone) on a recorded host of equal GPUs with one mdev each, and a guest for each
claim. The first claims have an mdev each, as many as there are GPUs. The works run one after another. "wall" is the longest time
between two polls of the main loop (tests/shims/epoll.c). "CPU" is the CPU time of such an interval, which does not depend on other
programs of the machine.
"""

import argparse
import subprocess
import sys
import time
import uuid

from bench.claims import HOST, insert
from tests.env.bus import Bus
from tests.env.crowd import MeasuredAgent
from tests.env.hosts import nodedev_name
from tests.env.scratch import Scratch, wait_until

MDEVS_OF_EACH = 4


def address(n):
    return '%04x:%02x:%02x.%d' % (n >> 16, n >> 8 & 0xff, n >> 3 & 0x1f, n & 7)


def gpu(n):
    return {'name': nodedev_name(address(n)), 'address': address(n), 'numa_node': 0, 'mdev_types': [
        {'id': 'nvidia-35', 'available_instances': MDEVS_OF_EACH - 1, 'created_instances': 1}]}


def host(gpus, guests):
    """Returns the host. Each GPU has one mdev, which belongs to one of the first guests."""
    mdevs = [{'uuid': str(uuid.UUID(int=n + 1)), 'type': 'nvidia-35', 'parent': gpus[n]['name']} for n in range(len(gpus))]
    return {**HOST, 'memory_kib': 1 << 36, 'devices': gpus, 'mdevs': mdevs,
            'domains': [{'uuid': guests[n], 'name': 'guest%d' % n, 'state': 'running', 'vcpus': 1, 'memory_kib': 1024,
                         'mdevs': [mdevs[n]['uuid']] if n < len(mdevs) else []} for n in range(len(guests))]}


def claims(guests, gpus):
    """Yields a claim of one VCPU and one MiB for each guest. The first ones have an mdev too."""
    for n, guest in enumerate(guests):
        held = {'VCPU': 'bench', 'MEMORY_MB': 'bench'}
        if n < len(gpus):
            yield (guest, {**held, 'VGPU': 'bench_' + gpus[n]['name']},
                   [gpus[n]['name'], gpus[n]['address'], 'nvidia-35', str(uuid.UUID(int=n + 1))])
        else:
            yield guest, held, None


def measure(agent, name, work, times=3):
    """Prints the minimum of the longest stops of some runs, because other programs only make a stop longer."""
    stops = []
    for _ in range(times):
        agent.forget_stop()
        work()
        stops.append(agent.longest_stop())
    print('%-42s %9.1f %9.1f' % (name, *min(stops)), flush=True)


def claim_and_release(agent, *what):
    agent.ctl('release', agent.ctl_json('claim', '--consumer', uuid.uuid4(), *what)['id'])


def method(agent, *what, check=True):
    """Calls one method and discards the answer, because the work of the client is not measured."""
    subprocess.run(['busctl', '--system', '--timeout=120', '-q', 'call', 'org.computeagent.Agent1', '/org/computeagent/Agent1',
                    'org.computeagent.Agent1', *what],
                   check=check, env=agent.env(), stdout=subprocess.DEVNULL, stderr=None if check else subprocess.DEVNULL)


def measure_all(agent, facts):
    def edit():
        """Changes the amount of memory, so that claims and guests get the host again."""
        facts['memory_kib'] += 1 << 20
        agent.record(facts)
        agent.ctl('sync', check=False)

    print('%-42s %9s %9s' % ('longest stop of the main loop', 'wall ms', 'CPU ms'))
    measure(agent, 'nothing', lambda: time.sleep(1))
    measure(agent, 'a quiet cycle', lambda: agent.ctl('sync', check=False))
    measure(agent, 'a cycle after a change of the host', edit)
    measure(agent, 'a claim of a VCPU', lambda: claim_and_release(agent, '--resources', 'VCPU=1'))
    measure(agent, 'a claim of a VGPU', lambda: claim_and_release(agent, '--resources', 'VCPU=1,VGPU=1'))
    for document in ('status', 'tree', 'host', 'claims', 'history', 'events', 'problems'):
        measure(agent, document, lambda document=document: method(agent, 'Describe', 's', document))
    # The request can be rejected as too hard, and this takes its time too.
    measure(agent, 'Explain', lambda: method(
        agent, 'Explain', 'a(sa{st}asas)a{sv}', '1', '', '1', 'VGPU', '1', '0', '0', '0', check=False))


def main():
    parser = argparse.ArgumentParser(prog='python3 -m bench.claims_stops')
    parser.add_argument('--claims', type=int, default=10000)
    parser.add_argument('--providers', type=int, default=4096)
    parser.add_argument('--wait', action='store_true', help='with the pid, for a profiler, until a line is read')
    args = parser.parse_args()
    gpus = [gpu(n) for n in range(args.providers - 1)]
    guests = [str(uuid.UUID(int=1 << 64 | n)) for n in range(args.claims)]
    with Scratch() as scratch:
        bus = Bus(scratch).start()
        agent = MeasuredAgent(scratch, bus=bus, host=host(gpus, []), options={
            'DEFAULT': {'update_resources_interval': 3600, 'cpu_allocation_ratio': 100},
            'devices': {'enabled_mdev_types': 'nvidia-35'},
            'agent': {'metrics_file': scratch.folder('metrics') / 'agent.prom'}}).start()
        wait_until(lambda: agent.status().get('n_providers') == args.providers, 120, 'the host')
        agent.stop()
        insert(agent, claims(guests, gpus))
        facts = host(gpus, guests)
        agent.record(facts)
        agent.start()
        wait_until(lambda: agent.status().get('n_providers') == args.providers, 120, 'the host')
        print('%d claims, %d providers' % (args.claims, args.providers))
        if args.wait:
            print('pid %d' % agent.child.pid, flush=True)
            sys.stdin.readline()
        measure_all(agent, facts)
        agent.stop()
    return 0


if __name__ == '__main__':
    sys.exit(main())
