# SPDX-License-Identifier: LGPL-2.1-or-later
"""Random trees, changes and faults: Placement equals the tree when the faults end.

Random plans with moves and allocations, without faults: Placement equals the tree after one publication. It sends no unneeded
writes, and allocations on other providers do not change ("make soak-plans": 2000 seeds on each database).

COMPUTE_AGENT_SEEDS=N runs N seeds ("make soak-report": 500), beginning with COMPUTE_AGENT_SEED=S or 0. A failure prints its seed,
and COMPUTE_AGENT_SEED=S alone runs that one. At the end the test prints the number of requests, and how many of them repaired the
results of faults.
"""

import copy
import os
import random
import sys

from tests.env import faults
from tests.env.proxy import Proxy
from tests.integration.report.report_case import ReportCase, inventory, provider, uid

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
    """Returns a changed copy of a tree: some inventories and traits are replaced, and some subtrees are removed or added."""
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


# Returns a fault of every n-th request, with n from 2 to 6.
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


def moved(rng, tree):
    """Returns a copy of a tree with some providers below other parents. Some children change places with their parents."""
    tree = copy.deepcopy(tree)
    for item in tree[1:]:
        above = next(other for other in tree if other['uuid'] == item['parent'])
        if above['parent'] and rng.random() < 0.5:
            item['parent'], above['parent'] = above['parent'], item['uuid']
    for item in rng.sample(tree[1:], min(len(tree) - 1, rng.randint(0, 4))):
        inside = {item['uuid']}
        for _ in tree:
            inside |= {other['uuid'] for other in tree if other['parent'] in inside}
        item['parent'] = rng.choice([other['uuid'] for other in tree if other['uuid'] not in inside])
    placed = []  # parents first
    while len(placed) < len(tree):
        have = {None} | {item['uuid'] for item in placed}
        placed += [item for item in tree if item not in placed and item['parent'] in have]
    return placed


def roomy(tree):
    """Raises the capacities in the tree so that every consumer fits, and returns the tree."""
    for item in tree:
        for record in item['inventories'].values():
            record['total'] = record['max_unit'] = record['total'] + 100
    return tree


def seeds_of(count):
    """Returns the seeds that the environment names, or the given number of seeds from 0 on."""
    first = os.environ.get('COMPUTE_AGENT_SEED')
    count = int(os.environ.get('COMPUTE_AGENT_SEEDS', '1' if first else count))
    return range(int(first or 0), int(first or 0) + count)


def whole(tree, before):
    """Returns the input of the probe: the tree, the providers to remove, and all traits as removable."""
    names = {item['name'] for item in tree}
    return {'providers': tree, 'remove_traits': list(TRAITS),
            'remove': [item['name'] for item in before if item['name'] not in names]}


class TestPlans(ReportCase):
    def make_consumers(self, rng, tree):
        """Allocates for random consumers here and, for some of them, on a provider of another host. Yields their names."""
        self.api('POST', '/resource_providers', {'uuid': uid('stranger'), 'name': 'stranger'})
        self.api('PUT', '/resource_providers/%s/inventories' % uid('stranger'), {
            'resource_provider_generation': 0, 'inventories': {'DISK_GB': inventory(100)}})
        offers = [(item['name'], name) for item in tree for name in item['inventories']]
        for number in range(rng.randint(0, 4) if offers else 0):
            held = {'stranger': {'DISK_GB': 1}} if rng.random() < 0.5 else {}
            for name, resource_class in rng.sample(offers, min(len(offers), rng.randint(1, 3))):
                held.setdefault(name, {})[resource_class] = rng.randint(1, 5)
            self.allocate('guest-%d' % number, held)
            yield 'guest-%d' % number

    def move_consumers(self, rng, names, before, after):
        """Returns {consumer: its final allocations}. A class without a provider in the new tree gets one on the root."""
        ours = {item['uuid'] for item in before}
        consumers = {uid(name): self.consumer(name) for name in names}
        for consumer in consumers.values():
            final = {}
            for held_of, held in consumer['allocations'].items():
                for name, amount in held['resources'].items():
                    places = [held_of] if held_of not in ours else [
                        item['uuid'] for item in after if name in item['inventories']]
                    if not places:
                        after[0]['inventories'][name] = inventory(1000)
                        places = [after[0]['uuid']]
                    place = held_of if held_of in places else rng.choice(places)
                    resources = final.setdefault(place, {'resources': {}})['resources']
                    resources[name] = resources.get(name, 0) + amount
            consumer['allocations'] = final
        return consumers

    def count_needed(self, before, after, reshape):
        """Returns the highest number of writes that a publication without unneeded requests sends."""
        old = {item['uuid']: item for item in before}
        new = {item['uuid']: item for item in after}
        custom = {name for item in after for name in [*item['inventories'], *item['traits']]
                  if name.startswith('CUSTOM_')}
        n = len(custom) + len(new.keys() - old.keys()) + reshape
        for uuid, item in new.items():
            was = old.get(uuid, {'traits': [], 'inventories': {}, 'parent': item['parent']})
            n += item['parent'] != was['parent']
            n += item['traits'] != was['traits']
            n += not reshape and item['inventories'] != was['inventories']
        for uuid in old.keys() - new.keys():
            n += 1 + (not reshape and bool(old[uuid]['inventories']))
        return n

    def one_seed(self, seed):
        rng = random.Random(seed)
        before = roomy(random_tree(rng))
        self.publish_done(before)
        names = list(self.make_consumers(rng, before))
        after = roomy(changed(rng, moved(rng, before)))
        consumers = self.move_consumers(rng, names, before, after)
        mark = self.placement.mark()
        self.publish_done(whole(after, before), allocations=consumers)
        writes = [write for write in self.placement.writes_since(mark) if write[2] != 500]
        self.assertLessEqual(len(writes), self.count_needed(before, after, bool(consumers)), writes)
        self.assert_remote(after)
        for name in names:
            self.assertEqual({key: value['resources'] for key, value
                              in self.consumer(name)['allocations'].items()},
                             {key: value['resources'] for key, value
                              in consumers[uid(name)]['allocations'].items()})
        self.assertEqual(self.publish_done(whole(after, before))['writes'], 0)

    def test_seeds(self):
        seeds, n_passed = seeds_of(10), 0
        for seed in seeds:
            with self.subTest(seed=seed):
                try:
                    self.one_seed(seed)
                    n_passed += 1
                finally:
                    self.empty_placement()
        print('%d of %d seed(s) from %d on passed on %s' % (
            n_passed, len(seeds), seeds.start, os.environ.get('COMPUTE_AGENT_DATABASE', 'sqlite')), file=sys.stderr)


class TestRandom(ReportCase):
    def setUp(self):
        super().setUp()
        self.n_requests = self.n_extra = 0
        self.proxy = self.enterContext(Proxy(self.placement.port))

    def one_seed(self, seed):
        rng = random.Random(seed)
        before = []
        tree = random_tree(rng)
        for _ in range(3):
            what = whole(tree, before)
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
        seeds = seeds_of(6)
        for seed in seeds:
            with self.subTest(seed=seed):
                self.one_seed(seed)
                self.empty_placement()
        print('%d seed(s) from %d on, %d requests, %d of them to mend what trouble had left' % (
            len(seeds), seeds.start, self.n_requests, self.n_extra), file=sys.stderr)
