# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures the requests of a fleet of real agents to one Placement and one Keystone.

    COMPUTE_AGENT_BUILD=DIR python3 -m bench.fleet [--agents N] [--cells N] [--interval S] [--quiet S]
        [--outages S,…] [--limit S] [--databases mariadb,postgresql]             (a part of "make bench-fleet")

Each agent has a recorded host of its own with N cells, which are N + 1 providers. The phases are a cold start of all
agents, a quiet time, a warm restart of all, and a rolling upgrade. The upgrade restarts each tenth of the agents when
the tenth before it is equal again. Then follow outages, in which a proxy answers 503, and the end of all tokens.

A start, the time after an outage and the end of tokens last until all agents are equal to their hosts. "equal" is this
time. The agents tell it to systemd, so the benchmark starts no programs to ask them. "peak" is the largest number of
requests within any second. "Nova" is the number of requests of Nova's own report client for the same trees.

The benchmark fails in these cases: An agent ends. An agent is not equal within the limit. The peak of the warm restart
is above 50 requests a second, or above 50 for each 1,000 agents. The fleet sends more requests a second in an outage
than before it. An outage of less than five intervals has one more request for each agent: its first retry, after 2 to
6 s.
"""

import argparse
import bisect
import collections
import contextlib
import json
import math
import os
import resource
import signal
import statistics
import subprocess
import sys
import time

from bench.claims import cpu_seconds
from bench.daemon import memory_mb
from tests.env import databases, faults
from tests.env.agent import Agent
from tests.env.cache import PYTHON
from tests.env.hosts import recorded_cells, recorded_host
from tests.env.keystone import AGENT_PASSWORD, Keystone
from tests.env.placement import Placement
from tests.env.proxy import Proxy
from tests.env.scratch import EnvTimeout, Scratch, wait_until

EQUAL = 'STATUS=Placement is equal to this host'
JITTER = 5  # start_jitter_sec, its default
JITTER_MAX = 60  # of agent/cycle/pace.c
PEAK = 50  # requests a second of a warm restart, for each 1,000 agents
SHORT = 5  # intervals of an outage in which the first retries count
ROW = '%-16s %8s %8s %8s %6s %8s %5s %8s  %s'


def find_peak(times):
    """Returns the largest number of requests within one second."""
    times = sorted(times)
    return max((bisect.bisect_left(times, began + 1) - number for number, began in enumerate(times)), default=0)


class Host(Agent):
    """An agent that asks Keystone for its tokens and has the real delay of its start."""

    def __init__(self, scratch, proxy, keystone, args, number):
        super().__init__(scratch, host=make_host('fleet-%d' % number, args), options={
            'DEFAULT': {'update_resources_interval': args.interval}, 'compute': {'numa_in_placement': 'true'},
            'agent': {'start_jitter_sec': JITTER},
            'placement': {'auth_type': 'password', 'auth_url': keystone.url + '/v3', 'username': 'agent',
                          'password': AGENT_PASSWORD, 'user_domain_name': 'Default', 'project_name': 'service',
                          'project_domain_name': 'Default', 'endpoint_override': proxy.endpoint}})
        self._cpu = 0.0

    def equal(self):
        """Returns whether the last line for systemd says that Placement is equal to the host."""
        lines = [line for line in list(self.notifications) if line.startswith('STATUS=')]
        return bool(lines) and lines[-1].startswith(EQUAL)

    def cpu(self):
        """Returns the CPU seconds of all processes of this agent."""
        return self._cpu + (cpu_seconds(self.child.pid) if self.running() else 0)

    def begin_stop(self):
        self._cpu = self.cpu()
        self.child.signal(signal.SIGTERM)


def make_host(name, args):
    return recorded_host(name, online_cpus='0-%d' % (4 * args.cells - 1), memory_kib=args.cells * (4 << 20),
                         cells=recorded_cells(args.cells))


class Fleet:
    """The agents and their servers. Prints a row for each phase. failed: a rule was broken."""

    def __init__(self, scratch, args, database, nova):
        self.args, self.failed, self._nova = args, False, nova
        self._keystone = Keystone(scratch).start()
        # Placement keeps valid tokens for 5 minutes, as it does by default.
        self._placement = Placement(scratch, keystone=self._keystone, database=database,
                                    config='[keystone_authtoken]\ntoken_cache_time = 300\n').start()
        self._warm()
        self._proxy = Proxy(self._placement.port).listen()
        scratch.on_close(self._proxy.close)
        self.agents = [Host(scratch, self._proxy, self._keystone, args, number) for number in range(args.agents)]

    def _warm(self):
        """Lets Keystone validate a first token alone. While it loads its policy, it answers 403 to parallel ones."""
        self._placement.get('/resource_providers?name=none')

    def _fail(self, words):
        self.failed = True
        print(words, file=sys.stderr, flush=True)

    def _check_alive(self, agents):
        for agent in agents:
            if not agent.running():
                raise SystemExit('An agent ended: %s\n%s' % (agent.folder.name, agent.log()[-2000:]))

    def _wait_equal(self, agents, also=lambda: True):
        """Returns when these agents are equal and also() is true."""
        def check():
            self._check_alive(agents)
            return all(agent.equal() for agent in agents) and also()
        try:
            wait_until(check, self.args.limit, 'all agents to be equal to their hosts', step=0.1)
        except EnvTimeout as error:
            late = [agent for agent in agents if not agent.equal()]
            raise SystemExit('%s. %d of %d are not.\n%s' % (
                error, len(late), len(agents), self._explain(late))) from None

    def _explain(self, late):
        """Returns the evidence of agents that are late: requests without an answer, and ends of logs."""
        now = time.monotonic()
        waiting = [record for record in self._proxy.requests if record.status is None]
        lines = ['%d requests have no answer.' % len(waiting)]
        lines += ['  %s %s for %.1f s' % (record.method, record.path, now - record.began) for record in waiting[:20]]
        for name, text in [('Placement', self._placement.child.log_tail(4000)),
                           ('Keystone', self._keystone.child.log_tail(2000))] + [
                               (agent.folder.name, agent.log()[-2000:]) for agent in late[:3]]:
            lines += ['--- %s' % name, text]
        return '\n'.join(lines)

    def _start(self, agents):
        for agent in agents:
            agent.start(wait=False)

    def _stop(self, agents):
        for agent in agents:
            agent.begin_stop()
        for agent in agents:
            agent.stop()

    def _row(self, name, times, statuses, seconds, equal=None, nova=None):
        errors = collections.Counter(str(status or 'no answer') for status in statuses
                                     if status is None or status >= 400 and status != 409)
        print(ROW % (name, len(times), '%.2f' % (len(times) / seconds), find_peak(times),
                     '-' if equal is None else '%.1f' % equal, '%.0f' % seconds, statuses.count(409),
                     '-' if nova is None else round(nova * len(self.agents)),
                     ', '.join('%d x %s' % (n, status) for status, n in sorted(errors.items())) or '-'), flush=True)

    def _measure(self, name, run, nova=None, least=0, equal=True):
        """Calls run(), prints the row of the phase, and returns its records. The phase lasts at least this number of
        seconds. equal: the end of run() is the time at which all agents are equal."""
        mark, told, began = self._proxy.mark(), self._keystone.mark(), time.monotonic()
        run()
        took = time.monotonic() - began
        time.sleep(max(0, least - took))
        seconds = time.monotonic() - began
        self._check_alive(self.agents)
        records = self._proxy.requests[mark:]
        with contextlib.suppress(EnvTimeout):
            wait_until(lambda: all(record.status for record in records), 5, 'the last answers')
        self._row(name, [record.began for record in records], [record.status for record in records], seconds,
                  took if equal else None, nova)
        lines = [line for line in self._keystone.records_since(told) if line['agent'].startswith('compute-agent')]
        if lines:
            self._row('  to Keystone', [line['began'] for line in lines], [line['status'] for line in lines], seconds)
        return [record.began for record in records]

    def _restart(self, agents):
        self._stop(agents)
        self._start(agents)
        self._wait_equal(agents)

    def _roll(self):
        size = math.ceil(len(self.agents) / 10)
        for first in range(0, len(self.agents), size):
            self._restart(self.agents[first:first + size])

    def _outage(self, seconds, before):
        """before: requests a second before the outage."""
        with self._proxy.fault(faults.html(503)):
            times = self._measure('outage %d s' % seconds, lambda: time.sleep(seconds), equal=False)
        self._measure('  after it', lambda: self._wait_equal(self.agents), least=2 * self.args.interval)
        most = before * seconds
        if seconds < SHORT * self.args.interval:
            most = 1.05 * most + len(self.agents)
        if len(times) > most:
            self._fail('The fleet sent %d requests in an outage of %d s. The limit is %.0f.' % (len(times), seconds, most))

    def _end_tokens(self):
        """Makes all tokens invalid, while the proxy holds requests, and returns when each agent has used another one."""
        with self._proxy.fault(faults.Hang()):
            self._keystone.end_tokens()
            self._placement.restart()
            self._warm()
            mark = self._proxy.mark()
        self._wait_equal(self.agents, lambda: len(self.agents) <= len({
            record.headers['X-Auth-Token'] for record in self._proxy.requests[mark:] if record.status == 200}))

    def measure(self):
        args, nova = self.args, self._nova
        print(ROW % ('', 'requests', 'mean/s', 'peak/s', 'equal', 'seconds', '409', 'Nova', 'other errors'), flush=True)
        self._measure('cold start', lambda: (self._start(self.agents), self._wait_equal(self.agents)), nova['cold'])
        time.sleep(2 * args.interval)
        times = self._measure('quiet', lambda: time.sleep(args.quiet), nova['update'] * args.quiet / args.interval,
                              equal=False)
        before = len(times) / args.quiet
        times = self._measure('warm restart', lambda: self._restart(self.agents), nova['restart'])
        most = max(PEAK * len(self.agents) / 1000, PEAK)
        if find_peak(times) > most:
            self._fail('A warm restart had a peak of %d requests a second. The limit is %d.' % (find_peak(times), most))
        self._measure('rolling upgrade', self._roll, nova['restart'])
        for seconds in args.outages:
            self._outage(seconds, before)
        self._measure('end of tokens', self._end_tokens)
        own = [memory_mb(agent.child.pid)[2] for agent in self.agents]
        cpu = [agent.cpu() for agent in self.agents]
        print('own memory of an agent: %.2f MB (median), %.2f MB at most; CPU: %.2f s (median), %.2f s at most' % (
            statistics.median(own), max(own), statistics.median(cpu), max(cpu)), flush=True)
        self._stop(self.agents)


def ask_nova(scratch, args):
    """Returns the number of providers of a host, and the requests that Nova's report client needs for their tree:
    {'cold', 'restart', 'update'}."""
    with Placement(scratch) as placement:
        agent = Agent(scratch, placement, host=make_host('fleet', args), options={
            'compute': {'numa_in_placement': 'true'}}).start()
        wait_until(lambda: any(line.startswith(EQUAL) for line in agent.notifications), 60, 'the tree of a host')
        tree = placement.tree(agent.root())
        agent.stop()
        placement.forget_providers()
        done = subprocess.run([PYTHON, '-B', '-m', 'bench.nova_client', placement.endpoint], input=json.dumps(tree),
                              text=True, capture_output=True, timeout=300, check=False)
        if done.returncode:
            raise SystemExit("Nova's report client failed:\n" + done.stderr[-2000:])
        return len(tree), json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(prog='python3 -m bench.fleet')
    parser.add_argument('--agents', type=int, default=200)
    parser.add_argument('--cells', type=int, default=16, help='NUMA cells of each host, which are child providers')
    parser.add_argument('--interval', type=int, default=60, help='seconds between two cycles of an agent')
    parser.add_argument('--quiet', type=int, default=300, help='seconds of the quiet phase')
    parser.add_argument('--outages', default='60,600', type=lambda text: [int(one) for one in text.split(',')],
                        help='seconds of each outage, with commas')
    parser.add_argument('--limit', type=int, default=600, help='seconds until all agents must be equal again')
    parser.add_argument('--databases', default='mariadb,postgresql')
    args = parser.parse_args()
    failed = False
    # The proxy needs up to eight connections for each agent.
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    for database in args.databases.split(','):
        with Scratch() as scratch:
            providers, nova = ask_nova(scratch, args)
            reads = 1 + 3 * providers
            print('%s, %d agents of %d providers, %d CPUs; a cycle every %d s' % (
                database, args.agents, providers, os.cpu_count(), args.interval))
            print('An agent waits up to %d s at its start: the larger of start_jitter_sec (%d) and 1 s for each of %d '
                  'reads, at most %d.' % (max(JITTER, min(reads, JITTER_MAX)), JITTER, reads, JITTER_MAX))
            print("Nova's report client: %(cold)d requests for a cold start, %(restart)d for a restart, %(update)d for "
                  'an update without a change.' % nova, flush=True)
            fleet = Fleet(scratch, args, databases.SERVERS[database](scratch), nova)
            fleet.measure()
            failed |= fleet.failed
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
