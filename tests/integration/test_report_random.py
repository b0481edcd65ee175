# SPDX-License-Identifier: LGPL-2.1-or-later
"""Random trees, random changes, random trouble: once the trouble ends, Placement is equal.

COMPUTE_AGENT_SEEDS=N runs N seeds ("make soak-report": 500) from COMPUTE_AGENT_SEED=S on, or from 0;
a failing seed is named and can be run alone with COMPUTE_AGENT_SEED=S. At the end it prints the
requests of all attempts, and how many of them mended what trouble had left.
"""

import copy
import os
import random
import sys
import unittest

from tests.env import faults
from tests.env.proxy import Proxy
from tests.integration.report_case import ReportCase, inventory, provider

CLASSES = ('VCPU', 'MEMORY_MB', 'PCPU', 'VGPU', 'CUSTOM_A', 'CUSTOM_B')
TRAITS = ('COMPUTE_NODE', 'HW_NUMA_ROOT', 'HW_CPU_X86_AVX2', 'CUSTOM_X', 'CUSTOM_Y', 'CUSTOM_Z')


def random_inventories(rng):
    return {name: inventory(rng.randint(1, 1000), reserved=rng.choice([0, 1]),
                            allocation_ratio=rng.choice([1.0, 1.1, 4.0, 16.0]))
            for name in rng.sample(CLASSES, rng.randint(0, 3))}


def random_traits(rng):
    return sorted(rng.sample(TRAITS, rng.randint(0, 4)))


def random_tree(rng):
    tree = [provider('host', None, random_inventories(rng), random_traits(rng))]
    for number in range(rng.randint(0, 9)):
        parent = rng.choice(tree)['name']
        tree.append(provider('p%d' % number, parent, random_inventories(rng), random_traits(rng)))
    return tree


def changed(rng, tree):
    """Another tree: inventories and traits replaced, subtrees gone, providers added."""
    tree = copy.deepcopy(tree)
    for item in tree:
        if rng.random() < 0.4:
            item['inventories'] = random_inventories(rng)
        if rng.random() < 0.3:
            item['traits'] = random_traits(rng)
    for _ in range(rng.randint(0, 2)):
        gone = {rng.choice(tree)['uuid']} - {tree[0]['uuid']}
        for item in tree:
            if item['parent'] in gone:
                gone.add(item['uuid'])
        tree = [item for item in tree if item['uuid'] not in gone]
    for number in range(rng.randint(0, 3)):
        name = 'q%d-%d' % (rng.randint(0, 99), number)
        if name not in [item['name'] for item in tree]:
            tree.append(provider(name, rng.choice(tree)['name'], random_inventories(rng),
                                 random_traits(rng)))
    return tree


def random_fault(rng):
    every = rng.randint(2, 6)
    method = rng.choice([None, 'GET', 'PUT', 'POST', faults.Fault.WRITES])
    return rng.choice([
        lambda: faults.conflict(every=every),
        lambda: faults.server_error(500, method=method, every=every),
        lambda: faults.server_error(503, method=method, every=every),
        lambda: faults.html(method=method, every=every),
        lambda: faults.garbage(method=method, every=every),
        lambda: faults.Cut(rng.choice(['before', 'after', 'middle']), method=method, every=every),
        lambda: faults.Delay(0.02, method=method, every=every),
        lambda: faults.Hang('after', method=method, every=every),
    ])()


class TestRandom(ReportCase):
    def setUp(self):
        super().setUp()
        self.n_requests = self.n_extra = 0
        self.proxy = Proxy(self.placement.port)
        self.addCleanup(self.proxy.close)
        self.proxy.listen()

    def whole(self, tree, before):
        """What the probe is told: the tree, what is gone, and each trait that is not wanted."""
        names = {item['name'] for item in tree}
        return {'providers': tree, 'remove_traits': list(TRAITS),
                'remove': [item['name'] for item in before if item['name'] not in names]}

    def one_seed(self, seed):
        rng = random.Random(seed)
        before = []
        tree = random_tree(rng)
        for _ in range(3):
            what = self.whole(tree, before)
            fault = self.proxy.add(random_fault(rng))
            troubled = self.publish(what, endpoint=self.proxy.endpoint, timeout_ms=500, retries=3)
            self.proxy.remove(fault)
            line = self.publish(what, endpoint=self.proxy.endpoint, retries=3)
            self.assertEqual(line['outcome'], 'done', line['error'])
            self.n_requests += troubled['requests'] + line['requests']
            self.n_extra += line['requests'] if fault.hits else 0
            self.assert_remote(tree)
            line = self.publish(what, endpoint=self.proxy.endpoint)
            self.assertEqual((line['outcome'], line['writes']), ('done', 0))
            before, tree = tree, changed(rng, tree)

    def test_seeds(self):
        first = os.environ.get('COMPUTE_AGENT_SEED')
        count = os.environ.get('COMPUTE_AGENT_SEEDS', '1' if first else '6')
        seeds = range(int(first or 0), int(first or 0) + int(count))
        for seed in seeds:
            with self.subTest(seed=seed):
                self.one_seed(seed)
                self.empty_placement()
        print('%d seed(s) from %d on, %d requests, %d of them to mend what trouble had left' % (
            len(seeds), seeds.start, self.n_requests, self.n_extra), file=sys.stderr)


if __name__ == '__main__':
    unittest.main()
