# SPDX-License-Identifier: LGPL-2.1-or-later
"""A large host with many claims on a private bus, and users who send too many calls.

It needs root, because the callers run as another user than the agent.
"""

import os
import struct
import subprocess
from typing import NamedTuple

from bench.claims import HOST, fill
from tests.env.agent import Agent, build_folder
from tests.env.bus import Bus
from tests.env.scratch import wait_until

NO_CELL = 65534


class Answers(NamedTuple):
    """The figures that bench/bus-caller printed."""
    answered: int
    refused: int
    failed: int
    size: int
    longest_ms: float
    p99_ms: float
    error: str


def host(gpus):
    """Returns a host with the given number of GPUs, each with capacity for 16 vGPUs."""
    devices = [{'name': 'pci_0000_%02x_%02x_0' % divmod(i, 32), 'driver': 'nvidia',
                'address': '0000:%02x:%02x.0' % divmod(i, 32), 'vendor_id': 4318, 'product_id': 7864,
                'mdev_types': [{'id': 'nvidia-35', 'name': 'one',
                                'available_instances': 16}]} for i in range(gpus)]
    return {**HOST, 'devices': devices}


class MeasuredAgent(Agent):
    """An agent whose main loop is measured by tests/shims/epoll.c."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.longest = self.folder / 'longest'
        self.forget_stop()
        self.preload('epoll', EPOLL_SHIM=str(self.longest))

    def forget_stop(self):
        with open(self.longest, 'r+b' if self.longest.exists() else 'w+b') as file:
            file.write(b'\0' * 16)

    def longest_stop(self):
        """Returns the longest step of the main loop since forget_stop(), in milliseconds: by the clock and of CPU
        time."""
        return [number / 1e6 for number in struct.unpack('QQ', self.longest.read_bytes()[:16])]


class CrowdedAgent:
    """An agent on its own bus, with such a host and with the given number of claims."""

    def __init__(self, scratch, gpus, claims, measured=False):
        self.scratch = scratch
        self.bus = Bus(scratch).start()
        self.bus.open_to_all()
        self.agent = (MeasuredAgent if measured else Agent)(scratch, bus=self.bus, host=host(gpus), options={
            'DEFAULT': {'cpu_allocation_ratio': 100, 'update_resources_interval': 3600, 'claim_expiry_time': 3600},
            'devices': {'enabled_mdev_types': 'nvidia-35'}})
        if not measured:
            # Keep the quarantine of a sanitizer small, because the tests measure the memory of the agent.
            options = os.environ.get('ASAN_OPTIONS', '').split(':') + ['quarantine_size_mb=4']
            self.agent.more_env = {'ASAN_OPTIONS': ':'.join(filter(None, options))}
        self.start()
        if claims:
            self.agent.stop()
            fill(self.agent, claims)
            self.start()

    def start(self):
        self.agent.start()
        wait_until(lambda: self.agent.status().get('n_providers'), 60, 'the host')

    def spawn(self, kind, n=1, seconds=0, user=NO_CELL, how=()):
        """Starts a bench/bus-caller."""
        child = subprocess.Popen(
            [str(build_folder() / 'bench/bus-caller'), kind, str(n), str(seconds), *how],
            env=self.bus.env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd='/',
            user=user, group=user, extra_groups=[])

        def end():
            if child.poll() is None:
                child.kill()
                child.wait()
        self.scratch.on_close(end)
        return child

    @staticmethod
    def answers(child, timeout=300):
        words = child.communicate(timeout=timeout)[0].split()
        if child.returncode != 0:
            raise RuntimeError('a caller failed')
        return Answers(*map(int, words[:4]), *map(float, words[4:6]), words[6])

    def call(self, kind, n=1, seconds=0, user=NO_CELL):
        """Sends such calls and returns their figures at the end."""
        return self.answers(self.spawn(kind, n, seconds, user))

    def beside(self, kind, n, seconds, what='Get'):
        """Sends calls of kind as another user, and at the same time calls of what as root, one after another.
        Returns the figures of both."""
        other = self.spawn(kind, n, seconds)
        root = self.call(what, 1, seconds, user=os.getuid())
        return self.answers(other), root

    def memory_kib(self):
        with open('/proc/%d/status' % self.agent.child.pid, encoding='ascii') as status:
            return next(int(line.split()[1]) for line in status if line.startswith('VmRSS:'))
