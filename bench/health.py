# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures the health rules beside a flood of kernel lines.

    COMPUTE_AGENT_BUILD=DIR python3 -m bench.health [--rate LINES] [--seconds N] [--devices N]   ("make bench-health")

It runs compute-agentd with a real Placement and a recorded host of GPUs, and writes lines to a journal file of systemd-journal-remote.
"withheld" is the time from the line to the changed inventory in Placement. "CPU" is that of the helper and of the agent in percent of
one CPU. "stop" is the longest step of the main loop (tests/shims/epoll.c), by the clock and of CPU time (goal: 50 ms).
"""

import argparse
import sys
import time
from pathlib import Path

from bench.claims import cpu_seconds
from tests.env.bus import Bus
from tests.env.crowd import MeasuredAgent, host
from tests.env.kernel_journal import KernelJournal, helper
from tests.env.placement import Placement
from tests.env.scratch import Scratch, wait_until

LOST = 'NVRM: Xid (PCI:%s): 79, pid=4711, GPU has fallen off the bus.'
RETRY = 'vfio-pci %s: timed out waiting for pending transaction; performing function level reset anyway'
OTHER = 'audit: type=1400 audit(1700000000.123:%d): apparmor="DENIED" operation="open" profile="libvirt-%d" pid=%d comm="qemu"'


def child_of(agent):
    for pid in Path('/proc/%d/task/%d/children' % (agent.child.pid, agent.child.pid)).read_text().split():
        if 'compute-agent-health' in Path('/proc/%s/cmdline' % pid).read_text():
            return int(pid)
    return 0


class Bench:
    def __init__(self, scratch, args):
        self.args = args
        self.addresses = [device['address'] for device in host(args.devices)['devices']]
        self.journal = KernelJournal(scratch.path / 'journal')
        scratch.on_close(self.journal.stop)
        self.journal.write('Linux version 6.1.0 (made up)')
        self.placement = Placement(scratch).start()
        self.agent = MeasuredAgent(scratch, self.placement, bus=Bus(scratch).start(), host=host(args.devices), options={
            'DEFAULT': {'update_resources_interval': 3600}, 'devices': {'enabled_mdev_types': 'nvidia-35'}})
        self.agent.more_env.update(helper(self.agent.folder, self.journal.folder))
        self.agent.start('synced')
        wait_until(lambda: child_of(self.agent), 10, 'the helper')
        uuids = {provider['name']: provider['uuid'] for provider in self.agent.ctl_json('tree')['providers']}
        ends = [address.replace(':', '_').replace('.', '_') for address in self.addresses]
        self.uuids = [next(uuid for name, uuid in uuids.items() if name.endswith(end)) for end in ends]

    def reserved(self, n):
        """Returns whether all of the GPU is reserved in Placement."""
        record = self.placement.get('/resource_providers/%s/inventories' % self.uuids[n])['inventories']['VGPU']
        return record['reserved'] == record['total']

    def latency(self, n):
        begin = time.monotonic()
        self.journal.write(LOST % self.addresses[n])
        wait_until(lambda: self.reserved(n), 60, 'the inventory', 0.02)
        return time.monotonic() - begin

    def flood(self, name, make_line, n):
        """Writes lines at the rate, and the line of GPU n in the middle. Prints the figures."""
        rate, seconds = self.args.rate, self.args.seconds
        self.agent.forget_stop()
        helper_pid, pids = child_of(self.agent), (child_of(self.agent), self.agent.child.pid)
        before, begin, withheld = [cpu_seconds(pid) for pid in pids], time.monotonic(), None
        for step in range(seconds * 10):
            self.journal.write_raw(b''.join(KernelJournal.entry(make_line(step * rate // 10 + i)) for i in range(rate // 10)))
            if step == seconds * 5:
                line_at = time.monotonic()
                self.journal.write(LOST % self.addresses[n])
            if step > seconds * 5 and withheld is None and self.reserved(n):
                withheld = time.monotonic() - line_at
            time.sleep(max(0, begin + (step + 1) / 10 - time.monotonic()))
        took = time.monotonic() - begin
        if withheld is None:
            wait_until(lambda: self.reserved(n), 60, 'the inventory', 0.02)
            withheld = time.monotonic() - line_at
        used = [cpu_seconds(pid) - first for pid, first in zip(pids, before)]
        if helper_pid != child_of(self.agent):
            raise RuntimeError('the helper was started again')
        print('%-34s %8.0f %9.1f %9.1f %9.2f %8.1f %8.1f' % (
            name, rate * seconds / took, 100 * used[0] / took, 100 * used[1] / took, withheld, *self.agent.longest_stop()), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--rate', type=int, default=10000)
    parser.add_argument('--seconds', type=int, default=20)
    parser.add_argument('--devices', type=int, default=64)
    args = parser.parse_args()
    with Scratch() as scratch:
        bench = Bench(scratch, args)
        print('%d devices; a line withholds its device after %.2f s' % (args.devices, bench.latency(0)))
        print('%-34s %8s %9s %9s %9s %8s %8s' % ('lines', 'lines/s', 'helper %', 'agent %', 'withheld', 'stop ms', 'CPU ms'))
        bench.flood('of no rule', lambda i: OTHER % (i, i, i), 1)
        bench.flood('of a rule, about one device', lambda i: LOST % bench.addresses[2], 3)
        bench.flood('of a rule for two guests, all', lambda i: RETRY % bench.addresses[4 + i % (args.devices - 8)], args.devices - 1)
        bench.flood('of a rule, about unknown devices', lambda i: LOST % ('%04x:%02x:00.0' % (1 + i % 60000, i % 256)), args.devices - 2)
        bench.agent.stop()
    return 0


if __name__ == '__main__':
    sys.exit(main())
