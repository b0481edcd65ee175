# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures the cost of an idle hypervisor of Nova: plain nova-compute, the agent beside it, and the agent below it.

    COMPUTE_AGENT_BUILD=DIR python3 -m bench.nova [--minutes N] [--speed N] [--boots N]        ("make bench-nova"; root)

It starts a whole OpenStack (tests.env.openstack) with a host of 64 providers and 20 guests, and measures each way for N minutes. With a
speed of 6, the work of a minute is done every ten seconds.

nova-compute does not keep this pace, because it waits for the whole interval after each update. So the requests per minute are the sum of
three rates: requests of an update, requests of a refresh of provider data (every five minutes), and requests of the agent. CPU is the time
of all programs from one update to the next. Writes are all writes of the measurement.

Then servers boot in turns on two equal hosts at the normal speed, one plain and one with the agent below. The result is the time from the
request to ACTIVE.
"""

import argparse
import contextlib
import os
import re
import statistics
import sys
import time
from pathlib import Path

from bench.daemon import memory_mb
from tests.env.hosts import simple_host
from tests.env.openstack import Cloud
from tests.env.scratch import running, wait_until

GPUS = 63  # and the host itself
GUESTS = 20
MINUTE = 60
ASSOCIATIONS = 300  # seconds after which Nova reads traits and aggregates again
PLUGIN = {'DEFAULT': {'compute_driver': 'compute_agent.LibvirtDriver'}}
PLAIN = {'DEFAULT': {'compute_driver': 'libvirt.LibvirtDriver'}}
# The requests of such a refresh.
REFRESH = re.compile('in_tree=|/(inventories|traits|aggregates)$')
TICKS = os.sysconf('SC_CLK_TCK')


@contextlib.contextmanager
def make_cloud(*names, speed):
    """Yields a cloud whose periods are divided by speed."""
    interval = round(MINUTE / speed)
    with Cloud([simple_host(cells=2, gpus=GPUS, name=name) for name in names], {
            'DEFAULT': {'update_resources_interval': interval, 'heal_instance_info_cache_interval': 0},
            'compute': {'resource_provider_association_refresh': round(ASSOCIATIONS / speed)},
            'devices': {'enabled_mdev_types': 'nvidia-35'}, 'quota': {'driver': 'nova.quota.NoopQuotaDriver'}}) as cloud:
        cloud.flavor('small', 1, 64)
        cloud.image()
        yield cloud


def wait_published(cloud, hosts):
    """Returns when the scheduler finds all inventories of these hosts."""
    def count(name):
        return len(cloud.placement.get('/resource_providers?resources=%s:1' % name)['resource_providers'])
    wait_until(lambda: count('VCPU') == hosts and count('VGPU') == hosts * GPUS, 300, 'the hosts to be published', step=1)


def make_agent(host, mode, speed):
    """Makes the agent of a host without starting it."""
    return host.make_agent({'DEFAULT': {'update_resources_interval': round(MINUTE / speed)},
                            'agent': {'nova': mode}, 'devices': {'enabled_mdev_types': 'nvidia-35'}})


def family(pid):
    """Returns a process and all of its descendants."""
    found = [pid]
    for one in found:
        found += running(parent=one)
    return found


def cpu_ms(pids):
    """Returns the user and system time of the processes and of their ended children, in ms."""
    ticks = 0
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the time of an ended busctl counts for its parent
            ticks += sum(map(int, Path('/proc/%d/stat' % pid).read_text().rpartition(')')[2].split()[11:15]))
    return 1000 * ticks / TICKS


def pss_mb(pids):
    """Returns the memory of the processes in MB, with shared pages divided by the number of their processes."""
    total = 0
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            total += memory_mb(pid)[1]
    return total


def programs(host):
    """Returns the processes of nova-compute, and of the agent if it runs."""
    return family(host.compute.child.pid) + (family(host.agent.child.pid) if host.agent and host.agent.running() else [])


def by_agent(line):
    return line['agent'].startswith('compute-agent')


class Quiet:
    """Measures a host while no server changes."""

    def __init__(self, host, minutes, speed):
        self._placement, self._host, self._minutes, self._seconds = host.cloud.placement, host, minutes, minutes * MINUTE / speed
        self._path = '/resource_providers/%s/allocations' % host.agent.root()

    def _looks(self, lines, name):
        """Returns the number of updates of nova-compute. Each sends this request once, and once more for the allocations of the whole tree
        if Nova owns the tree."""
        return len([line for line in lines if line['path'] == self._path and not by_agent(line)]) / (1 if name == 'top' else 2)

    def _a_minute(self, lines, looks):
        """Returns the requests per minute, each counted with its own period."""
        nova = [line for line in lines if not by_agent(line)]
        refresh = [line for line in nova if REFRESH.search(line['path'])]
        refreshes = len([line for line in refresh if 'in_tree' in line['path']])
        return ((len(nova) - len(refresh)) / looks + len(refresh) / max(refreshes, 1) * MINUTE / ASSOCIATIONS +
                (len(lines) - len(nova)) / self._minutes)

    def _settle(self, name):
        """Returns after updates without any write, because the first update after a start writes everything."""
        mark = self._placement.mark()

        def is_quiet():
            nonlocal mark
            if self._placement.writes_since(mark):
                mark = self._placement.mark()
            return self._looks(self._placement.records_since(mark), name) >= 3
        wait_until(is_quiet, 600, 'the quiet', step=0.5)

    def measure(self, name):
        self._settle(name)
        mark, cpu = self._placement.mark(), cpu_ms(programs(self._host))
        time.sleep(self._seconds)
        spent = cpu_ms(programs(self._host)) - cpu
        lines, writes = self._placement.records_since(mark), self._placement.writes_since(mark)
        looks = self._looks(lines, name)
        print('%-8s %6d %10.1f %8d %8.0f %10.1f' % (
            name, looks, self._a_minute(lines, looks), len(writes), spent / looks, pss_mb(programs(self._host))), flush=True)
        for write in sorted(set(writes)):
            print('         %d of %s' % (writes.count(write), write), flush=True)


def measure_quiet(minutes, speed):
    with make_cloud('compute-1', speed=speed) as cloud:
        host = cloud.hypervisors[0]
        cloud.start_computes(PLAIN)
        wait_published(cloud, 1)
        servers = [cloud.create('vm%d' % number, 'small') for number in range(GUESTS)]
        for server in servers:
            cloud.wait_status(server, 'ACTIVE', seconds=600)
        agent = make_agent(host, 'beside', speed)
        quiet = Quiet(host, minutes, speed)
        print('%d providers, %d guests, %d minutes each, in %d s' % (GPUS + 1, GUESTS, minutes, minutes * MINUTE / speed))
        print('%-8s %6s %10s %8s %8s %10s' % ('', 'looks', 'requests/m', 'writes', 'CPU ms', 'MB (PSS)'))
        quiet.measure('plain')
        agent.start()
        agent.wait_state('left-to-nova', 120)
        quiet.measure('beside')
        host.compute.stop()
        host.configure(PLUGIN)
        host.start_compute()
        agent.configure({'agent': {'nova': 'top'}})
        agent.ctl('reload')
        agent.wait_state('synced', 120)
        quiet.measure('top')


def boot_seconds(cloud, host):
    """Returns the seconds from the request until the server is ACTIVE, and deletes the server."""
    began = time.monotonic()
    server = cloud.create('vm', 'small', host.name)
    told = wait_until(lambda: (cloud.server(server) or {}).get('status') in ('ACTIVE', 'ERROR') and cloud.server(server),
                      120, 'the server to run', step=0.05)
    took = time.monotonic() - began
    if told['status'] == 'ERROR':
        raise SystemExit('a server failed: %s' % told.get('fault'))
    cloud.delete(server)
    return took


def measure_boots(boots):
    with make_cloud('compute-1', 'compute-2', speed=1) as cloud:
        plain, top = cloud.hypervisors
        plain.configure(PLAIN)
        top.configure(PLUGIN)
        cloud.start_computes()
        make_agent(top, 'top', speed=1).start()
        top.agent.wait_state('synced', 120)
        wait_published(cloud, 2)
        took = {plain: [], top: []}
        for number in range(-1, boots):
            for host in (plain, top) if number % 2 else (top, plain):
                seconds = boot_seconds(cloud, host)
                if number >= 0:  # not the first one, which fetches the image
                    took[host].append(seconds)
        print('%d boots each, in turns: median (shortest, longest)' % boots)
        for name, host in (('plain', plain), ('top', top)):
            print('%-8s %6.2f s (%.2f, %.2f)' % (name, statistics.median(took[host]), min(took[host]), max(took[host])))


def main():
    parser = argparse.ArgumentParser(prog='python3 -m bench.nova')
    parser.add_argument('--minutes', type=int, default=60, help='how long each way is measured, in minutes of the cloud')
    parser.add_argument('--speed', type=int, default=6, help='how many of them pass in one')
    parser.add_argument('--boots', type=int, default=20)
    args = parser.parse_args()
    if args.minutes:
        measure_quiet(args.minutes, args.speed)
    if args.boots:
        measure_boots(args.boots)
    return 0


if __name__ == '__main__':
    sys.exit(main())
