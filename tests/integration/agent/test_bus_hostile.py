# SPDX-License-Identifier: LGPL-2.1-or-later
"""A user without rights sends everything that D-Bus can carry to an agent with claims, devices and layouts.

"make soak-bus" runs this for longer. A report of the sanitizers fails the test, if the agent was built with them. Each round prints
the seed that it begins with. $COMPUTE_AGENT_SEED is the seed of the first round.
"""

import collections
import json
import os
import sqlite3
import sys
import threading
import time
import uuid

from tests.env.agent import Agent
from tests.env.case import EnvCase
from tests.env.hosts import recorded_host
from tests.env.hostile import NAME, PATH, Hostile, Polkit
from tests.env.scratch import wait_until
from tests.env.wire import Wire

SECONDS = float(os.environ.get('COMPUTE_AGENT_SECONDS', 20))
SEED = int(os.environ.get('COMPUTE_AGENT_SEED', time.time_ns() % 1000000))
ROUND_SECONDS = 5
CLAIMS = 120
# The longest wait of root, with sanitizers on a busy machine. It does not depend on the number of waiting calls.
SLOW_SECONDS = 10


def host():
    """Returns a host with two cells, GPUs and network cards."""
    cells = [{'id': cell, 'memory_kib': 64 << 20, 'pages': [{'size_kib': 2048, 'count': 4096}],
              'cpus': [{'id': cpu, 'socket_id': cell, 'siblings': '%d-%d' % (cpu & ~1, cpu | 1)}
                       for cpu in range(64 * cell, 64 * cell + 64)]} for cell in range(2)]
    gpus = [{'name': 'pci_0000_%02x_00_0' % i, 'driver': 'nvidia', 'address': '0000:%02x:00.0' % i, 'numa_node': i % 2,
             'vendor_id': 4318, 'product_id': 7864, 'mdev_types': [
                 {'id': 'nvidia-35', 'name': 'one', 'available_instances': 8}]}
            for i in range(0x40, 0x48)]
    cards = [{'name': 'pci_0000_%02x_00_0' % i, 'driver': 'ice', 'address': '0000:%02x:00.0' % i, 'numa_node': i % 2,
              'vendor_id': 0x8086, 'product_id': 0x1572, 'class_code': 0x020000} for i in range(5, 25)]
    return recorded_host('soak', memory_kib=128 << 20, online_cpus='0-127', disk_total_bytes=1 << 44, cells=cells,
                         devices=gpus + cards)


OPTIONS = {
    'DEFAULT': {'cpu_allocation_ratio': 16, 'update_resources_interval': 3600, 'claim_expiry_time': 86400},
    'devices': {'enabled_mdev_types': 'nvidia-35'},
    'compute': {'cpu_shared_set': '0-15,64-79', 'cpu_dedicated_set': '16-63,80-127'},
    'pci': {'report_in_placement': 'true',
            'device_spec': '{"vendor_id": "8086", "product_id": "1572", "resource_class": "CUSTOM_NIC"}'},
}
WANTED = (({'VCPU': 1, 'MEMORY_MB': 64}, []), ({'VCPU': 1, 'VGPU': 1}, []), ({'CUSTOM_NIC': 1, 'VCPU': 1}, []),
          ({'PCPU': 2, 'MEMORY_MB': 64}, [('numa-nodes', ('t', 1))]), ({'VCPU': 2, 'MEMORY_MB': 64}, [('numa-nodes', ('t', 2))]))


class Root(threading.Thread):
    """Reads a property of the agent all the time. The member longest is the longest wait, in seconds."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.wire, self.ended, self.longest, self.failure = Wire(path, seconds=60), False, 0, None
        self.start()

    def run(self):
        try:
            while not self.ended:
                begin = time.monotonic()
                self.wire.call(NAME, PATH, 'org.freedesktop.DBus.Peer', 'Ping')
                answer = self.wire.call(NAME, PATH, 'org.freedesktop.DBus.Properties', 'Get', 'ss', (NAME, 'Version'))
                if answer.error:
                    raise OSError(answer.error)
                self.longest = max(self.longest, time.monotonic() - begin)
                time.sleep(0.02)
        except OSError as error:
            self.failure = error

    def stop(self):
        self.ended = True
        self.join()
        self.wire.close()


class TestHostileBus(EnvCase):
    def setUp(self):
        self.bus.open_to_all()
        self.agent = Agent(self.scratch, bus=self.bus, options=OPTIONS, host=host()).start()
        wait_until(lambda: self.agent.status().get('n_providers'), 60, 'the host')
        self.root = Wire(self.bus.socket_path, seconds=120)
        self.addCleanup(self.root.close)
        self.consumers = [str(uuid.UUID(int=i)) for i in range(1, 2 * CLAIMS)]

    def ask(self, member, signature='', *values):
        return self.root.call(NAME, PATH, NAME, member, signature, values)

    def claims(self):
        return json.loads(self.ask('Describe', 's', 'claims').values[0])['claims']

    def fill(self):
        """Creates claims until CLAIMS exist or the host is full, and returns their number."""
        held = {claim['consumer'] for claim in self.claims()}
        free = [consumer for consumer in self.consumers if consumer not in held]
        made = []
        for i, consumer in enumerate(free[:max(0, CLAIMS - len(held))]):
            resources, options = WANTED[i % len(WANTED)]
            answer = self.ask('Claim', 'sa(sa{st}asas)a{sv}', consumer, [('', resources, [], [])], options)
            if not answer.error:
                made.append((answer.values[0], consumer))
        for i, consumer in made[::4]:
            self.ask('Confirm', 'x', i)
            self.ask('MoveClaim', 'sss', consumer, str(uuid.uuid4()), 'MIGRATION')
        return len(held) + len(made)

    def check_nothing_twice(self, claims):
        """Checks that each device and each dedicated CPU belongs to one claim."""
        held = collections.Counter()
        for claim in claims:
            held.update(('mdev', one['mdev']) if one['mdev'] else ('device', one['device']) for one in claim['devices'])
            held.update(('cpu', one['cpus']) for one in claim['cpus'] if one['dedicated'])
        self.assertEqual([what for what, n in held.items() if n > 1], [])

    def check_database(self):
        with sqlite3.connect('file:%s?mode=ro' % (self.agent.state / 'claim.sqlite'), uri=True) as database:
            self.assertEqual(database.execute('PRAGMA integrity_check').fetchall(), [('ok',)])
        database.close()

    def run_round(self, seed, polkit, end):
        """Runs hostile calls until the time end. In rounds without consent of polkit the claims must not change."""
        polkit.allows = bool(seed % 2)
        n_live = self.fill()
        before = self.claims()
        hostile = Hostile(self.bus.socket_path, seed, self.consumers)
        try:
            while time.monotonic() < end:
                hostile.go()
                self.assertTrue(self.agent.child.alive(), self.agent.log()[-8000:])
        finally:
            hostile.close()
        after = self.claims()
        if not polkit.allows:
            self.assertEqual(after, before)
        self.check_nothing_twice(after)
        self.check_database()
        print('seed %d: %s, %d claims, then %d: %s' % (seed, 'polkit allows some' if polkit.allows else 'nothing allowed',
                                                       n_live, len(after), dict(hostile.counts)), file=sys.stderr, flush=True)
        return hostile.counts

    def test_it_stands_all_that_others_ask(self):
        polkit = Polkit(self.bus.socket_path, SEED)
        self.addCleanup(polkit.stop)
        root = Root(self.bus.socket_path)
        self.addCleanup(root.stop)
        counts, end, seed = collections.Counter(), time.monotonic() + SECONDS, SEED
        while time.monotonic() < end:
            counts += self.run_round(seed, polkit, min(end, time.monotonic() + ROUND_SECONDS))
            seed += 1
            self.assertIsNone(root.failure)
            self.assertLess(root.longest, SLOW_SECONDS)
        # Each failure has the name of a D-Bus error, and none is a bare errno.
        self.assertEqual([name for name in counts if name.startswith('E') and name.isupper()], [])
        self.assertGreater(counts['answered'], 0)
        self.assertGreater(counts['AccessDenied'], 0)
        # A malformed answer of polkit is no verdict.
        self.assertGreater(counts['Busy'], 0)
        self.assertGreater(sum(polkit.counts.values()), 0)
        print('%d calls; polkit: %s; root waited at most %.3f s' % (counts['calls'], dict(polkit.counts), root.longest),
              file=sys.stderr)
        self.agent.stop()
