# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures the cost of the idle daemon: memory, and CPU until the first tree is published.

    COMPUTE_AGENT_BUILD=DIR python3 -m bench.daemon [--runs N]        ("make bench")

It runs compute-agentd with a private libvirtd (qemu:///system over an artificial host of 4 cells and 2
GPUs), a private Placement and a private bus. Memory is read from smaps_rollup ten quiet cycles after
the start: resident, proportional (PSS: shared pages divided by the number of their processes) and own
(private pages). "empty" is a program that only links and opens the same libraries. The output is
medians.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from bench.claims import cpu_seconds
from tests.env.agent import Agent, build_folder
from tests.env.bus import Bus
from tests.env.hosts import demo_host
from tests.env.libvirtd import Libvirtd
from tests.env.placement import Placement
from tests.env.scratch import Scratch, wait_until

QUIET_CYCLES = 10


def memory_mb(pid):
    """Returns (resident, PSS, own) in MB of 10^6 bytes."""
    fields = {}
    for line in Path('/proc/%d/smaps_rollup' % pid).read_text().splitlines()[1:]:
        key, value = line.split(':')
        fields[key] = int(value.split()[0]) * 1024 / 1e6
    return (fields['Rss'], fields['Pss'], fields['Private_Clean'] + fields['Private_Dirty'])


def measure_agent(scratch, libvirtd, bus):
    # A quiet cycle sends one request, so the number of requests is that of the cycles.
    placement = Placement(scratch).start()
    agent = Agent(scratch, placement, libvirtd.uri, bus,
                  {'DEFAULT': {'update_resources_interval': 1}})
    begin = time.monotonic()
    agent.start()
    pid = agent.child.pid
    wait_until(lambda: any(line.startswith('STATUS=Placement is equal')
                           for line in agent.notifications), 30, 'the first tree', 0.005)
    figures = {'cpu_s': cpu_seconds(pid), 'wall_s': time.monotonic() - begin}
    mark, begin, cpu = placement.mark(), time.monotonic(), cpu_seconds(pid)
    wait_until(lambda: len(placement.requests_since(mark)) >= QUIET_CYCLES, 60, 'quiet cycles', 0.1)
    cycles = len(placement.requests_since(mark))
    figures['cycle_cpu_ms'] = 1e3 * (cpu_seconds(pid) - cpu) / cycles
    figures['rss_mb'], figures['pss_mb'], figures['own_mb'] = memory_mb(pid)
    agent.stop()
    placement.stop()
    return figures


def measure_empty(scratch, libvirtd, bus):
    database = scratch.folder('empty') / 'x.sqlite'
    child = subprocess.Popen([str(build_folder() / 'bench/empty'), libvirtd.uri, str(database)],
                             env=bus.env(), stdout=subprocess.PIPE)
    try:
        if child.stdout.readline() != b'ready\n':
            raise RuntimeError('the empty program did not start')
        figures = {'cpu_s': cpu_seconds(child.pid)}
        figures['rss_mb'], figures['pss_mb'], figures['own_mb'] = memory_mb(child.pid)
        return figures
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def main():
    parser = argparse.ArgumentParser(prog='python3 -m bench.daemon')
    parser.add_argument('--runs', type=int, default=5)
    args = parser.parse_args()
    with Scratch() as scratch:
        libvirtd = Libvirtd(demo_host(), scratch).start()
        bus = Bus(scratch).start()
        print('%d runs on %d CPUs; medians' % (args.runs, os.cpu_count()))
        columns = [('resident', 'rss_mb', 'MB'), ('PSS', 'pss_mb', 'MB'), ('own', 'own_mb', 'MB'),
                   ('CPU to first tree', 'cpu_s', 's'), ('wall to first tree', 'wall_s', 's'),
                   ('CPU of a quiet cycle', 'cycle_cpu_ms', 'ms')]
        for name, measure in (('empty', measure_empty), ('compute-agentd', measure_agent)):
            runs = [measure(scratch, libvirtd, bus) for _ in range(args.runs)]
            print(name)
            for title, key, unit in columns:
                if key in runs[0]:
                    print('  %-22s %8.3f %s' % (title, statistics.median(run[key] for run in runs),
                                                unit))
    return 0


if __name__ == '__main__':
    sys.exit(main())
