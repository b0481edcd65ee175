# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures the load that calls of a user without rights can put on the agent.

    COMPUTE_AGENT_BUILD=DIR python3 -m bench.bus [--seconds N] [--gpus N] [--claims N]   ("make bench-bus", as root)

It runs compute-agentd on a large recorded host with many claims, and a client of another user that keeps calls pending. "stop" is the
longest time between two polls of the main loop (tests/shims/epoll.c). "CPU" is the CPU time of such an interval, which does not depend on
other programs of the machine. The other columns have root's latency for one property, which includes dbus-daemon, and the calls of the
other user: answered, and refused because too many were pending.
"""

import argparse
import statistics
import sys

from bench.claims import quantile, run_clients
from tests.env.crowd import CrowdedAgent
from tests.env.scratch import Scratch

FREE = ('status', 'tree', 'host', 'claims', 'history', 'events', 'problems', 'plan', 'Explain-hard', 'Explain-wide', 'Explain-traits', 'Get',
        'GetAll', 'Introspect', 'Set', 'large')


def claims_beside(crowd, kind, pending, seconds):
    """Returns the latencies of root's claims while another user has this number of calls pending."""
    other = crowd.spawn(kind, pending, seconds + 1) if kind else None
    latencies = run_clients(crowd.bus, 1, seconds)[1]
    if other:
        crowd.answers(other)
    return latencies


def main():
    parser = argparse.ArgumentParser(prog='python3 -m bench.bus')
    parser.add_argument('--seconds', type=float, default=3)
    parser.add_argument('--gpus', type=int, default=500)
    parser.add_argument('--claims', type=int, default=10000)
    parser.add_argument('kinds', nargs='*', default=FREE)
    args = parser.parse_args()
    with Scratch() as scratch:
        crowd = CrowdedAgent(scratch, args.gpus, args.claims, measured=True)
        print('%d providers, %d claims' % (args.gpus + 1, args.claims))
        print('%-22s %9s %9s %8s %8s %8s %8s  %s' % ('two calls pending', 'answered', 'refused', 'stop ms', 'CPU ms',
                                                     'root max', 'root p99', 'error'))
        for kind in args.kinds:
            crowd.agent.forget_stop()
            other, root = crowd.beside(kind, 2, args.seconds)
            stop, cpu = crowd.agent.longest_stop()
            print('%-22s %9d %9d %8.1f %8.1f %8.1f %8.1f  %s' % (
                kind, other.answered, other.refused, stop, cpu, root.longest_ms, root.p99_ms,
                other.error.rpartition('.')[2]), flush=True)
        print("\nroot's claims beside 1000 pending calls")
        print('%-22s %9s %9s %9s %9s' % ('calls', 'claims/s', 'p50 ms', 'p99 ms', 'ratio'))
        base = None
        for kind in (None, 'tree', 'claims', 'Explain-hard', 'GetAll', 'Introspect', 'ask'):
            latencies = claims_beside(crowd, kind, 1000, args.seconds)
            p99 = quantile(latencies, 0.99)
            base = base or p99
            print('%-22s %9.0f %9.2f %9.2f %9.1f' % (kind or 'none', len(latencies) / args.seconds,
                                                     statistics.median(latencies), p99, p99 / base), flush=True)
        print('\nmemory: %d MiB' % (crowd.memory_kib() // 1024))
    return 0


if __name__ == '__main__':
    sys.exit(main())
