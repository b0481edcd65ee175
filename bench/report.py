# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures the publication of trees to Placement: requests, wall time, and CPU of client and server.

    COMPUTE_AGENT_BUILD=DIR python3 -m bench.report [--runs N] [--only NAME,…]
        [--databases sqlite,postgresql] [--nova FOLDER]                          ("make bench-report")

It runs compute-agent-bench with artificial hosts and a private Placement (gunicorn, 2 processes of 4 threads) over SQLite and
PostgreSQL. Each run has an empty database and a new server.

--nova names a folder with a nova_bench.py that runs Nova's own resource tracker with the same workload files. Then each workload runs
with Nova first and then with the agent, and the table has the ratios. The output is medians of the runs, and for repeated steps of all
cycles of all runs. "reshape, libcurl alone" is the time of the reads of a reshape in libcurl and the kernel. Its ratio is that to
Nova's whole reshape.
"""

import argparse
import collections
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

from bench import workloads
from tests.env.agent import build_folder
from tests.env.databases import Postgres
from tests.env.placement import Placement, make_schema
from tests.env.scratch import Scratch

COLUMNS = ('requests', 'wall_ms', 'client_cpu_ms', 'server_cpu_ms')
NAMES = ['tree-%d' % n for n in workloads.TREES] + ['reshape-%d' % n for n in workloads.RESHAPES[:2]]


_WARMING_REQUESTS = 12
# Nova's program needs about this time to start. A database works for a moment after it was made, which must not count for one of the two.
_SETTLING_SEC = 3


class Server:
    """A Placement. reset() starts it again over an empty database. database: 'sqlite' or 'postgresql'."""

    def __init__(self, scratch, database):
        self._scratch = scratch
        self._placement = None
        self._postgres = Postgres(scratch) if database == 'postgresql' else None
        if self._postgres:
            make_schema(scratch.folder('template'), self._postgres.create('template'))

    @property
    def endpoint(self):
        return self._placement.endpoint

    def pids(self):
        """Returns the pids of the servers without their children."""
        return [self._placement.child.pid] + ([self._postgres.child.pid] if self._postgres else [])

    def reset(self):
        self.stop()
        if self._postgres:
            self._postgres.sql('DROP DATABASE IF EXISTS placement WITH (FORCE)')
            self._postgres.sql('CREATE DATABASE placement TEMPLATE template')
        self._placement = Placement(self._scratch, database=self._postgres and self._postgres.url('placement')).start()
        # Each process loads its traits and classes with its first requests.
        for _ in range(_WARMING_REQUESTS):
            self._placement.get('/traits?name=startswith:COMPUTE_')

    def stop(self):
        if self._placement:
            self._placement.stop()


def make_workloads(folder, names):
    """Writes the workloads. Returns {name: path}."""
    made = {}
    for name in names:
        kind, _, size = name.partition('-')
        made[name] = workloads.write(folder, {'tree': workloads.tree, 'reshape': workloads.reshape}[kind](int(size)))
    return made


def run(argv, **kwargs):
    """Runs a program. Returns the JSON lines that it prints. Exits if the verification of the program failed."""
    done = subprocess.run([str(arg) for arg in argv], stdout=subprocess.PIPE, timeout=900, check=False, **kwargs)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    verify = [line for line in lines if line['label'] == 'verify']
    if done.returncode or not verify or verify[0]['mismatches'] or verify[0]['providers'] != verify[0]['expected']:
        raise SystemExit('%s failed: %s' % (argv[0], verify or lines))
    return lines


def run_agent(placement, path, rep):
    pids = sum([['--server-pid', pid] for pid in placement.pids()], [])
    return run([build_folder() / 'compute-agent-bench', '--workload', path, '--endpoint', placement.endpoint,
                '--rep', rep, '--floor', *pids])


class Nova:
    """Nova's client. It runs in a copy of its folder, because the program writes files beside itself."""

    def __init__(self, scratch, folder):
        self._folder = scratch.folder('nova')
        for path in Path(folder).glob('*.py'):
            shutil.copy(path, self._folder)
        (self._folder / 'run').mkdir()

    def run(self, placement, path, rep):
        pids = sum([['--server-pid', pid] for pid in placement.pids()], [])
        with open(self._folder / 'run/errors', 'ab') as errors:
            return run(['/usr/bin/python3', self._folder / 'nova_bench.py', '--workload', path, '--endpoint',
                        placement.endpoint, '--mode', 'rt', '--rep', rep, *pids],
                       cwd=self._folder, stderr=errors)


def collect(lines, into):
    """Adds the measured steps of one run. The parts of a step ("label:part") count as one."""
    sums = collections.OrderedDict()
    for line in lines:
        if 'wall_ms' in line and 'requests' in line:
            key = (line['label'].partition(':')[0], line['k'])
            sums.setdefault(key, collections.Counter()).update({column: line[column] for column in COLUMNS})
    for (label, _), amounts in sums.items():
        for column in COLUMNS:
            into.setdefault(label, collections.defaultdict(list))[column].append(amounts[column])


def medians(collected):
    return {label: {column: statistics.median(values) for column, values in columns.items()}
            for label, columns in collected.items()}


def print_table(database, name, ours, novas):
    for label, row in ours.items():
        nova = novas.get(label.removesuffix(', libcurl alone'))
        text = '%-10s %-11s %-26s %5.0f %9.1f %9.2f %9.1f' % (
            database, name, label, row['requests'], row['wall_ms'], row['client_cpu_ms'], row['server_cpu_ms'])
        if nova:
            text += ' | %5.0f %9.1f %9.1f %9.1f | %6.3f %6.3f %6.3f %6.3f' % (
                *(nova[column] for column in COLUMNS), *(row[column] / max(nova[column], 1e-9) for column in COLUMNS))
        print(text, flush=True)


def measure(placement, path, runs, nova):
    """Returns (the agent's, Nova's) medians, each as {label: {column: median}}."""
    ours, novas = {}, {}
    for rep in range(runs):
        if nova:
            placement.reset()
            collect(nova.run(placement, path, rep), novas)
        placement.reset()
        time.sleep(_SETTLING_SEC)
        collect(run_agent(placement, path, rep), ours)
    return medians(ours), medians(novas)


def main():
    parser = argparse.ArgumentParser(prog='python3 -m bench.report')
    parser.add_argument('--runs', type=int, default=3)
    parser.add_argument('--only', default=','.join(NAMES), help='tree-N and reshape-C, with commas')
    parser.add_argument('--databases', default='sqlite,postgresql')
    parser.add_argument('--nova', help="a folder with Nova's harness, for the ratios")
    args = parser.parse_args()
    with Scratch() as scratch:
        made = make_workloads(scratch.folder('workloads'), args.only.split(','))
        nova = Nova(scratch, args.nova) if args.nova else None
        print('%d runs on %d CPUs; medians' % (args.runs, os.cpu_count()))
        print('%-10s %-11s %-26s %5s %9s %9s %9s%s' % (
            'database', 'workload', 'step', 'req', 'wall ms', 'CPU ms', 'server ms',
            ' | Nova: req, wall ms, CPU ms, server ms | ratios of the four' if nova else ''), flush=True)
        for database in args.databases.split(','):
            placement = Server(scratch, database)
            for name, path in made.items():
                print_table(database, name, *measure(placement, path, args.runs, nova))
            placement.stop()
    return 0


if __name__ == '__main__':
    sys.exit(main())
