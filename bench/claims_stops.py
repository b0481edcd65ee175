# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures how long the main loop of the daemon stops for each kind of work, by the number of guests.

    COMPUTE_AGENT_BUILD=DIR python3 -m bench.claims_stops [--guests N ...] [--wide N] [--placed N ...]   ("make bench-stops")

It runs compute-agentd with libvirt's test driver, which knows its guests, on a host of equal GPUs with one mdev each. The first guests
have an mdev each, as many as there are GPUs. "first start" is the adoption of all guests into a new claim database. The works run one
after another. The first tables are without Placement, the last of them for a host of many GPUs. Those for the numbers of --placed have
a Placement with the allocations of all guests.

"wall" is the longest time between two polls of the main loop (tests/shims/epoll.c). "CPU" is the CPU time of such an interval, which
does not depend on other programs of the machine.
"""

import argparse
import contextlib
import sqlite3
import subprocess
import sys
import time
import uuid

from tests.env.bus import Bus
from tests.env.crowd import MeasuredAgent
from tests.env.hosts import Cell, Gpu, Host, MdevType
from tests.env.placement import Placement
from tests.env.scratch import Scratch, wait_until
from tests.env.testdriver import testdriver_domain, testdriver_xml

MDEVS_OF_EACH = 4
PROVIDERS = 256
WIDE_GUESTS = 1000
PLACED_GPUS = 64
LEFT_OVER = 32
OPTIONS = {
    'DEFAULT': {'update_resources_interval': 3600, 'cpu_allocation_ratio': 100000, 'ram_allocation_ratio': 1000, 'claim_expiry_time': 1},
    'devices': {'enabled_mdev_types': 'nvidia-35'}}


def address(n):
    return '%04x:%02x:%02x.%d' % (n >> 16, n >> 8 & 0xff, n >> 3 & 0x1f, n & 7)


def guest_uuid(n):
    return str(uuid.UUID(int=1 << 64 | n))


def mdev_uuid(n):
    return str(uuid.UUID(int=n + 1))


def write_host(folder, n_gpus, n_guests):
    """Writes the host of the test driver. Returns its URI."""
    gpus = [Gpu(address(n), types={'nvidia-35': MdevType('nvidia-35', available=MDEVS_OF_EACH - 1, existing=[mdev_uuid(n)])})
            for n in range(n_gpus)]
    domains = [testdriver_domain('guest%d' % n, guest_uuid(n), mdevs=[mdev_uuid(n)] if n < n_gpus else []) for n in range(n_guests)]
    return testdriver_xml(Host(name='bench', cells=[Cell(0, [0, 1, 2, 3], 1 << 36)], gpus=gpus), folder, domains)


def print_stop(name, wall_ms, cpu_ms):
    print('%-42s %9.1f %9.1f' % (name, wall_ms, cpu_ms), flush=True)


def measure(agent, name, work, times=3):
    """Prints the minimum of the longest stops of some runs, because other programs only make a stop longer."""
    stops = []
    for _ in range(times):
        agent.forget_stop()
        work()
        stops.append(agent.longest_stop())
    print_stop(name, *min(stops))


def start(agent, name, n_guests, state):
    """Starts the agent and waits until it has this SyncState, and each guest has its claim."""
    agent.forget_stop()
    begun = time.monotonic()
    agent.start()
    agent.wait_state(state, 3600)
    wait_until(lambda: agent.status().get('n_claims') == n_guests, 3600, 'the claims', 0.5)
    seconds = time.monotonic() - begun
    print_stop('%s (%.1f s)' % (name, seconds), *agent.longest_stop())


def claim_and_release(agent, *what):
    agent.ctl('release', agent.ctl_json('claim', '--consumer', uuid.uuid4(), *what)['id'])


def method(agent, *what, check=True):
    """Calls one method and discards the answer, because the work of the client is not measured."""
    subprocess.run(['busctl', '--system', '--timeout=120', '-q', 'call', 'org.computeagent.Agent1', '/org/computeagent/Agent1',
                    'org.computeagent.Agent1', *what],
                   check=check, env=agent.env(), stdout=subprocess.DEVNULL, stderr=None if check else subprocess.DEVNULL)


def reload(agent):
    """Reloads with another reserved amount, so that the host and its claims are compared again."""
    reserved = agent.options['DEFAULT'].get('reserved_host_memory_mb', 512)
    agent.configure({'DEFAULT': {'reserved_host_memory_mb': reserved + 1}})
    agent.ctl('reload', check=False)
    agent.ctl('sync', check=False)


def measure_local(n_guests, n_providers, wait):
    """The works without Placement."""
    with Scratch() as scratch:
        agent = MeasuredAgent(scratch, uri=write_host(scratch.path, n_providers - 1, n_guests), bus=Bus(scratch).start(), options={
            **OPTIONS, 'agent': {'metrics_file': scratch.folder('metrics') / 'agent.prom'}})
        print('%d guests, %d providers\n%-42s %9s %9s' % (n_guests, n_providers, 'longest stop of the main loop', 'wall ms', 'CPU ms'))
        start(agent, 'first start', n_guests, 'standalone')
        if wait:
            print('pid %d' % agent.child.pid, flush=True)
            sys.stdin.readline()
        measure(agent, 'nothing', lambda: time.sleep(1))
        measure(agent, 'a quiet cycle', lambda: agent.ctl('sync', check=False))
        measure(agent, 'a reload with a change of the host', lambda: reload(agent))
        measure(agent, 'a claim of a VCPU', lambda: claim_and_release(agent, '--resources', 'VCPU=1'))
        measure(agent, 'a claim of a VGPU', lambda: claim_and_release(agent, '--resources', 'VCPU=1,VGPU=1'))
        for document in ('status', 'tree', 'host', 'claims', 'history', 'events', 'problems'):
            measure(agent, document, lambda document=document: method(agent, 'Describe', 's', document))
        # The request can be rejected as too hard, and this takes its time too.
        measure(agent, 'Explain', lambda: method(
            agent, 'Explain', 'a(sa{st}asas)a{sv}', '1', '', '1', 'VGPU', '1', '0', '0', '0', check=False))
        agent.stop()


def allocate(placement, root, consumers):
    """Writes allocations of one VCPU and one MiB, and the VGPU of the consumer, to Placement's database: a request for each takes too
    long. consumers: (uuid, name of the GPU's provider or None)."""
    with contextlib.closing(sqlite3.connect(placement.folder / 'placement.sqlite', timeout=30)) as database, database:
        providers = dict(database.execute('SELECT name, id FROM resource_providers'))
        classes = dict(database.execute('SELECT name, id FROM resource_classes'))
        root_id, = database.execute('SELECT id FROM resource_providers WHERE uuid = ?', [root]).fetchone()
        for table in ('projects', 'users'):
            database.execute('INSERT OR IGNORE INTO %s (id, external_id, created_at) VALUES (77, ?, datetime())' % table, ['bench'])
        for consumer, gpu in consumers:
            database.execute('INSERT INTO consumers (uuid, project_id, user_id, generation, created_at)'
                             " VALUES (?, 77, 77, 1, datetime('now', '-1 hour'))", [consumer])
            held = [(root_id, 'VCPU'), (root_id, 'MEMORY_MB')] + ([(providers[gpu], 'VGPU')] if gpu else [])
            database.executemany('INSERT INTO allocations (resource_provider_id, consumer_id, resource_class_id, used, created_at)'
                                 " VALUES (?, ?, ?, 1, datetime('now', '-1 hour'))",
                                 [(provider, consumer, classes[name]) for provider, name in held])


def measure_placed(n_guests):
    """The works with a Placement that has the allocations of all guests."""
    with Scratch() as scratch:
        placement = Placement(scratch).start()
        agent = MeasuredAgent(scratch, placement, write_host(scratch.path, PLACED_GPUS, 0), Bus(scratch).start(), OPTIONS).start('synced')
        agent.stop()
        gpus = sorted(provider['name'] for provider in placement.get('/resource_providers')['resource_providers']
                      if '_pci_' in provider['name'])
        allocate(placement, agent.root(), [(guest_uuid(n), gpus[n] if n < len(gpus) else None) for n in range(n_guests)])
        write_host(scratch.path, PLACED_GPUS, n_guests)
        print('%d guests with allocations in Placement\n%-42s %9s %9s' % (
            n_guests, 'longest stop of the main loop', 'wall ms', 'CPU ms'))
        start(agent, 'first start', n_guests, 'synced')
        measure(agent, 'a quiet cycle', lambda: agent.ctl('sync', check=False, timeout=3600))
        measure(agent, 'an audit', lambda: agent.ctl('audit', check=False, timeout=3600), 1)
        allocate(placement, agent.root(), [(str(uuid.uuid4()), None) for _ in range(LEFT_OVER)])
        measure(agent, 'healing of %d consumers' % LEFT_OVER, lambda: agent.ctl('heal', '--yes', check=False, timeout=3600), 1)
        measure(agent, 'a reload with a change of the host', lambda: reload(agent), 1)
        agent.stop()
        start(agent, 'another start', n_guests, 'synced')
        agent.stop()


def main():
    parser = argparse.ArgumentParser(prog='python3 -m bench.claims_stops')
    parser.add_argument('--guests', type=int, nargs='*', default=[200, 1000, 10000])
    parser.add_argument('--wide', type=int, default=4096, help='providers of the last host without Placement; 0: no such host')
    parser.add_argument('--placed', type=int, nargs='*', default=[200, 1000, 10000])
    parser.add_argument('--wait', action='store_true', help='after each first start, with the pid, for a profiler, until a line is read')
    args = parser.parse_args()
    for n_guests in args.guests:
        measure_local(n_guests, PROVIDERS, args.wait)
    if args.wide:
        measure_local(WIDE_GUESTS, args.wide, args.wait)
    for n_guests in args.placed:
        measure_placed(n_guests)
    return 0


if __name__ == '__main__':
    sys.exit(main())
