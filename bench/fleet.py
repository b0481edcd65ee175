# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures the requests of a fleet of real agents to one Placement: in normal operation, in an outage, and after it.

    python3 -m bench.fleet [AGENTS [INTERVAL]]

Each agent has its own recorded host and polls every INTERVAL seconds. The phases last 6, 12 and 6 intervals. In the
outage a proxy answers 503. The program fails if the fleet sends more requests per second in the outage than before
it.
"""

import sys
import time

from tests.env import faults
from tests.env.agent import Agent
from tests.env.hosts import recorded_host
from tests.env.placement import Placement
from tests.env.proxy import Proxy
from tests.env.scratch import Scratch


def make_agent(scratch, proxy, interval, number):
    host = recorded_host('fleet-%d' % number, memory_kib=1 << 26, online_cpus='0-63')
    return Agent(scratch, proxy, host=host, options={'DEFAULT': {'update_resources_interval': interval}}).start()


def phase(proxy, name, seconds):
    """Waits for a phase, prints its requests per second, and returns them."""
    mark = proxy.mark()
    time.sleep(seconds)
    records = proxy.requests[mark:]
    seconds_of = [int(record.began) for record in records]
    most = max((seconds_of.count(second) for second in set(seconds_of)), default=0)
    print('%-12s %8.2f a second, %d at most' % (name, len(records) / seconds, most), flush=True)
    return len(records) / seconds


def main():
    n_agents = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    interval = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    seconds = 6 * interval
    with Scratch() as scratch, Placement(scratch) as placement, Proxy(placement.port) as proxy:
        agents = [make_agent(scratch, proxy, interval, number) for number in range(n_agents)]
        time.sleep(2 * interval)
        print('%d real agents that look every %d s' % (n_agents, interval), flush=True)
        quiet = phase(proxy, 'quiet', seconds)
        with proxy.fault(faults.html(503)):
            outage = phase(proxy, 'outage', 2 * seconds)
        phase(proxy, 'after', seconds)
        alive = sum(agent.child.alive() for agent in agents)
    if alive < n_agents:
        raise SystemExit('%d of %d agents live' % (alive, n_agents))
    return 0 if 0 < outage < quiet else 1


if __name__ == '__main__':
    sys.exit(main())
