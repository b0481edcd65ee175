# SPDX-License-Identifier: LGPL-2.1-or-later
"""The agent is killed with SIGKILL at the requests of a reshape. After the next start the tree and the allocations are right each
time.

The n-th request is held before Placement gets it, or after its answer. The agent is killed at this moment, and the request
continues. Each boundary is thus tested from both sides.

COMPUTE_AGENT_STEP=N kills at every n-th request, and "make reshape-kill" at all of them.
"""

import os
import random
import subprocess

from tests.env import faults
from tests.env.proxy import Proxy
from tests.env.scratch import wait_until
from tests.integration.reshape import test_random as reshapes


STEP = int(os.environ.get('COMPUTE_AGENT_STEP', 5))


class Case(reshapes.Round):
    """Two cells, a GPU and three guests. The shape changes from VGPU on a flat root to cells, dedicated CPUs and VGPU on the GPU."""

    def __init__(self, number):
        super().__init__(7)
        self.name = 'killed-%s' % number
        self.rng = random.Random(self.name)
        self.cells = [{'id': 0, 'cpus': [0, 1, 2, 3], 'mib': 4096},
                      {'id': 1, 'cpus': [4, 5, 6, 7], 'mib': 4096}]
        self.cpus, self.dedicated, self.n_gpus = list(range(8)), {6, 7}, 1
        self.guests = [
            {'uuid': reshapes.new_uuid(self.rng), 'name': 'guest%d' % index, 'vcpus': 2, 'mib': 64,
             'pins': pins, 'memory_cells': None, 'gpu': 0 if index == 1 else None,
             'mdev': reshapes.new_uuid(self.rng)}
            for index, pins in enumerate(({0: [0], 1: [4]}, {0: [6], 1: [7]}, {}))]
        self.shapes = [{'numa': False, 'dedicated': False, 'mdev': None},
                       {'numa': True, 'dedicated': True, 'mdev': 'VGPU'}]


class TestKill(reshapes.ReshapesCase):
    def prepare(self, number):
        """Publishes a host in its old shape with the allocations of its guests, and returns the case and its root."""
        case = Case(number)
        self.reset(case)
        self.once(case, case.shapes[0])
        root = self.agent.root()
        self.placement.edit(root, 'inventories', lambda inventories: inventories.update(VGPU={'total': 4}))
        for guest in case.guests:
            resources = {'VCPU': guest['vcpus'], 'MEMORY_MB': guest['mib']}
            if guest['gpu'] is not None:
                resources['VGPU'] = 1
            self.assertEqual(self.put(guest['uuid'], {root: resources}).status, 204)
        return case, root

    def holdings(self, case, root):
        """Returns the allocations of each guest, with the suffixes of provider names. They are the same in every case."""
        names = {item['uuid']: name[len(case.name):] for name, item in self.tree(root).items()}
        return [sorted((names[provider], name, amount) for (provider, name), amount in
                       self.held(guest['uuid']).items()) for guest in case.guests]

    def start_and_kill(self, case, where, number):
        """Starts the agent and kills it at a request. Returns False if the agent ended before that request."""
        with Proxy(self.placement.port) as proxy:
            hang = proxy.add(faults.Hang(where, every=number, times=1))
            self.agent.configure({**case.options(case.shapes[1]),
                                  'placement': {'endpoint_override': proxy.endpoint}})
            with subprocess.Popen(self.agent.argv('--once'), env=self.agent.env(),
                                  stderr=subprocess.DEVNULL) as process:
                wait_until(lambda: hang.reached.is_set() or process.poll() is not None, 60,
                           'request %d' % number)
                reached = hang.reached.is_set()
                process.kill()
            proxy.clear()
            wait_until(lambda: all(record.status or where == 'after'
                                   for record in proxy.requests), 30, 'the request to go on')
        self.agent.configure({'placement': {'endpoint_override': self.placement.endpoint}})
        return reached

    # Kills the agent at every STEP-th request until it ends before, and returns the number of the last request.
    def walk(self, where, expected):
        number = 1
        while True:
            case, root = self.prepare('%s-%d' % (where, number))
            reached = self.start_and_kill(case, where, number)
            with self.subTest(where=where, request=number):
                # At the first start a request can still be in progress at Placement.
                self.once(case, case.shapes[1])
                self.assertEqual(self.once(case, case.shapes[1]).returncode, 0)
                self.assertEqual(self.holdings(case, root), expected)
                self.check_tree(case, self.tree(root))
            if not reached:
                return number - STEP
            number += STEP

    def test_every_boundary_of_a_reshape(self):
        case, root = self.prepare('undisturbed')
        self.assertEqual(self.once(case, case.shapes[1]).returncode, 0)
        expected = self.holdings(case, root)
        self.assertEqual(expected[1], [('_NUMA1', 'MEMORY_MB', 64), ('_NUMA1', 'PCPU', 2),
                                       ('_pci_0000_40_00_0', 'VGPU', 1)])
        counts = [self.walk(where, expected) for where in ('before', 'after')]
        self.assertGreater(min(counts), 8)
        print('killed at every %d. of %d requests, before and after' % (STEP, counts[0]),
              flush=True)
