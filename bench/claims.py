# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures the cost of a claim over D-Bus, with durability on.

    COMPUTE_AGENT_BUILD=DIR python3 -m bench.claims [--seconds N] [--folder DIR]   ("make bench-claims")

It runs compute-agentd on a recorded host (the static driver, standalone) with its state in DIR. The clients call it over a private bus,
each with its own connection. A round is a Claim and its Release. Only the time of the Claim is measured. The rate of the disk is that
of one writer, which writes 4 KiB and calls fdatasync each time.
"""

import argparse
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path

from tests.env.agent import Agent, build_folder
from tests.env.bus import Bus
from tests.env.hosts import recorded_host
from tests.env.scratch import Scratch, wait_until

HOST = recorded_host('bench', memory_kib=1 << 30, online_cpus='0-511', disk_total_bytes=1 << 44)


def fsyncs_a_second(folder, seconds):
    path = Path(folder) / 'fsync-rate'
    block, n = b'\0' * 4096, 0
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            os.pwrite(descriptor, block, n % 256 * 4096)
            os.fdatasync(descriptor)
            n += 1
    finally:
        os.close(descriptor)
        path.unlink()
    return n / seconds


def run_clients(bus, clients, seconds):
    """Returns the claims per second and the latencies in ms."""
    children = [subprocess.Popen([str(build_folder() / 'bench/claimer'), str(seconds)],
                                 env=bus.env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 text=True) for _ in range(clients)]
    try:
        for child in children:
            if child.stdout.readline() != 'ready\n':
                raise RuntimeError('a client did not start')
        for child in children:
            child.stdin.write('go\n')
            child.stdin.flush()
        outputs = [None] * clients

        def read(i):
            outputs[i] = children[i].communicate()[0]
        threads = [threading.Thread(target=read, args=(i,)) for i in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if any(child.returncode for child in children):
            raise RuntimeError('a client failed')
    finally:
        for child in children:
            if child.poll() is None:
                child.kill()
                child.wait()
    latencies = sorted(float(line) / 1e3 for output in outputs for line in output.split())
    return len(latencies) / seconds, latencies


def quantile(latencies, q):
    return latencies[min(len(latencies) - 1, int(len(latencies) * q))]


def insert(agent, claims, write_state=''):
    """Inserts confirmed claims of one unit of each class into the database of the stopped agent. claims: (consumer, {class: the name of
    its provider}, device).

    device: None, or the properties of the device of the class VGPU.
    """
    with sqlite3.connect(agent.state / 'claim.sqlite') as database:
        providers = {name: (number, provider) for name, number, provider in
                     database.execute('SELECT name, id, uuid FROM resource_providers')}
        for consumer, held, device in claims:
            claim = database.execute(
                "INSERT INTO claims (host, node, instance_uuid, vcpus, memory_mb, disk_gb, pci, resize_target,"
                " created_at, created_usec, state, request, write_state)"
                " VALUES ('bench', 'bench', ?, 1, ?, 0, '', 0, '', 1, 'confirmed', ?, ?)",
                [consumer, 'MEMORY_MB' in held, 'resources=' + ','.join('%s:1' % name for name in sorted(held)), write_state]).lastrowid
            database.executemany(
                "INSERT INTO allocations (resource_provider_id, consumer_id, resource_class, used, claim_id)"
                " VALUES (?, ?, ?, 1, ?)", [(providers[name][0], consumer, resource, claim) for resource, name in held.items()])
            if device:
                database.execute(
                    "INSERT INTO claim_devices (claim_id, provider_uuid, request_group, device, address, mdev_type, mdev_uuid)"
                    " VALUES (?, ?, '', ?, ?, ?, ?)", [claim, providers[held['VGPU']][1], *device])
    database.close()


def fill(agent, n, write_state=''):
    """Inserts n claims of one VCPU each into the database of the stopped agent."""
    insert(agent, [(str(uuid.uuid4()), {'VCPU': 'bench'}, None) for _ in range(n)], write_state)


def main():
    parser = argparse.ArgumentParser(prog='python3 -m bench.claims')
    parser.add_argument('--seconds', type=float, default=5)
    parser.add_argument('--folder', default=None, help='where the database lies (the disk to measure)')
    args = parser.parse_args()
    with Scratch() as scratch, tempfile.TemporaryDirectory(dir=args.folder) as folder:
        bus = Bus(scratch).start()
        agent = Agent(scratch, bus=bus, host=HOST, options={
            'agent': {'state_dir': folder},
            'DEFAULT': {'cpu_allocation_ratio': 100,
                        'update_resources_interval': 3600, 'claim_expiry_time': 3600}})
        agent.state = Path(folder)
        agent.start()
        wait_until(lambda: agent.status().get('n_providers'), 30, 'the host')
        print('%d CPUs; the disk: %.0f fdatasync/s' % (os.cpu_count(), fsyncs_a_second(folder, args.seconds)))
        print('%8s %8s %10s %8s %8s %8s' % ('present', 'clients', 'claims/s', 'p50 ms', 'p99 ms', 'CPU ms'))
        for present, more in ((0, 0), (100, 100), (10000, 9900)):
            agent.stop()
            fill(agent, more)
            agent.start()
            wait_until(lambda: agent.status().get('n_providers'), 30, 'the host')
            for clients in (1, 8, 64):
                before = cpu_seconds(agent.child.pid)
                rate, latencies = run_clients(bus, clients, args.seconds)
                cpu = cpu_seconds(agent.child.pid) - before
                print('%8d %8d %10.0f %8.2f %8.2f %8.3f' % (
                    present, clients, rate, statistics.median(latencies), quantile(latencies, 0.99),
                    1e3 * cpu / max(1, len(latencies))))
        agent.stop()
    return 0


def cpu_seconds(pid):
    """Returns the user and system time of all threads of a process."""
    return sum(int((task / 'schedstat').read_text().split()[0])
               for task in Path('/proc/%d/task' % pid).iterdir()) / 1e9


if __name__ == '__main__':
    sys.exit(main())
