# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures the cost of wide claims and of many pending writes, by their number, with a real Placement.

    COMPUTE_AGENT_BUILD=DIR python3 -m bench.claims_size [--most-pending N]   (a part of "make bench-claims")

It runs compute-agentd on a recorded host (the static driver) and a Placement over SQLite. Another client has created equal devices
for one guest each below the provider of the host. A wide claim has the given number of groups, each with one device. Its time is that
of the D-Bus call, the best of five. Pending writes are claims without allocations in Placement. Their time is that from the start of
settling to its end, most of it in Placement. The last column is the agent's CPU time for each write.
"""

import argparse
import sys
import time

from bench.claims import HOST, cpu_seconds, fill
from tests.env.agent import Agent
from tests.env.bus import Bus
from tests.env.placement import Placement
from tests.env.scratch import Scratch, wait_until

DEVICES = 64


def add_devices(placement, root):
    placement.api('PUT', '/resource_classes/CUSTOM_WIDE')
    for n in range(DEVICES):
        placement.make_provider('bench_dev%02d' % n, {'CUSTOM_WIDE': 1}, root)


def measure_wide(agent, placement):
    print('%8s %10s %10s %10s' % ('groups', 'claim ms', 'CPU ms', 'requests'))
    for groups in (1, 2, 4, 8, 16, 32, DEVICES):
        best, cpu, requests = float('inf'), float('inf'), 0
        for _ in range(5):
            mark, used = placement.mark(), cpu_seconds(agent.child.pid)
            options = ['--group=_D%02d:CUSTOM_WIDE=1' % n for n in range(groups)]
            begun = time.monotonic()
            claim = agent.claim('VCPU=1', None, *options)
            best = min(best, time.monotonic() - begun)
            cpu = min(cpu, cpu_seconds(agent.child.pid) - used)
            requests = len(placement.requests_since(mark))
            agent.ctl('release', claim['id'])
            wait_until(lambda: agent.status()['n_pending_removals'] == 0, 60, 'the removal')
        print('%8d %10.1f %10.2f %10d' % (groups, 1e3 * best, 1e3 * cpu, requests), flush=True)


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


def main():
    parser = argparse.ArgumentParser(prog='python3 -m bench.claims_size')
    parser.add_argument('--most-pending', type=int, default=10000)
    args = parser.parse_args()
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
