# SPDX-License-Identifier: LGPL-2.1-or-later
"""Counts the requests of a first start and of a restart of an unchanged host, by the number of providers.

    COMPUTE_AGENT_BUILD=DIR python3 -m bench.restart [--providers N ...]   ("make bench-restart")

It runs compute-agentd on a recorded host (the static driver) of equal GPUs, with a real Placement over SQLite. Two cycles without a
change come before the restart, so that the agent leaves the file of Placement's state. A start ends with the first cycle that finds
Placement equal to the host. The times are those of the start and of the restart, with Placement's part.

The benchmark fails if a restart sends more requests than RESTART_MOST.
"""

import argparse
import sys
import time

from tests.env.agent import Agent
from tests.env.bus import Bus
from tests.env.crowd import host as crowded_host
from tests.env.placement import Placement
from tests.env.scratch import Scratch

RESTART_MOST = 3


def start(agent, placement):
    """Starts the agent. Returns the number of requests until Placement is equal to the host, and the seconds."""
    mark, begun = placement.mark(), time.monotonic()
    agent.start()
    agent.wait_state('synced', 3600)
    return len(placement.requests_since(mark)), time.monotonic() - begun


def measure(providers):
    """Prints the row of a host with this number of providers. Returns the number of requests of the restart."""
    with Scratch() as scratch:
        placement = Placement(scratch).start()
        agent = Agent(scratch, placement, bus=Bus(scratch).start(), host=crowded_host(providers - 1), options={
            'DEFAULT': {'update_resources_interval': 3600}, 'devices': {'enabled_mdev_types': 'nvidia-35'}, 'placement': {'timeout': 600}})
        first, first_seconds = start(agent, placement)
        for _ in range(2):
            agent.ctl('sync')
        agent.stop()
        size = (agent.state / 'placement.json').stat().st_size
        second, second_seconds = start(agent, placement)
        print('%9d %9d %9.1f %9d %9.1f %9d' % (providers, first, first_seconds, second, second_seconds, size // 1024), flush=True)
        agent.stop()
        return second


def main():
    parser = argparse.ArgumentParser(prog='python3 -m bench.restart')
    parser.add_argument('--providers', type=int, nargs='+', default=[17, 257, 4096])
    args = parser.parse_args()
    print('%9s %9s %9s %9s %9s %9s' % ('providers', 'start', 's', 'restart', 's', 'file KiB'))
    most = max(measure(number) for number in args.providers)
    if most > RESTART_MOST:
        sys.exit('A restart sent %d requests. The limit is %d.' % (most, RESTART_MOST))


if __name__ == '__main__':
    main()
