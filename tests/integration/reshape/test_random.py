# SPDX-License-Identifier: LGPL-2.1-or-later
"""Random hosts, guests and moves: no consumer loses an allocation.

Each round publishes a host in one shape, and allocates for its guests and for other consumers. Four times the agent then starts
with a configuration of another shape, while another client might allocate from the same providers. Afterwards the real Placement
must meet these conditions:

* Each consumer exists, with the same sum of each class.

* Providers, traits and aggregates of other clients are unchanged.

* No provider is above its capacity.

* The tree is that of a new host with this configuration, unless the agent named a consumer that it cannot place.

COMPUTE_AGENT_RESHAPES=N runs N moves ("make reshape-random": 1000). A failure prints its seed, and COMPUTE_AGENT_SEED=S begins with
that seed.
"""

import collections
import contextlib
import json
import os
import random
import shutil
import sqlite3
import subprocess
import threading
import time
import uuid

from tests.env.agent import Agent, build_folder
from tests.env.case import EnvCase

MOVES = 4 # of each host

# A class and those into which it can change count as one.
SAME = {'PCPU': 'VCPU', 'CUSTOM_SLICE': 'VGPU'}
FOREIGN_TRAIT, FOREIGN_AGGREGATE = 'CUSTOM_RACK', '5e08ea53-c4c6-448e-9334-ac4953de3cfa'


RECORD = ('total', 'reserved', 'min_unit', 'max_unit', 'step_size', 'allocation_ratio')
PROVIDERS = """SELECT p.id, p.uuid, p.name, above.uuid FROM resource_providers p
 LEFT JOIN resource_providers above ON above.id = p.parent_provider_id
 WHERE p.root_provider_id = (SELECT root_provider_id FROM resource_providers WHERE uuid = ?)"""
INVENTORIES = """SELECT c.name, total, reserved, min_unit, max_unit, step_size, allocation_ratio
 FROM inventories i JOIN resource_classes c ON c.id = i.resource_class_id
 WHERE i.resource_provider_id = ?"""
TRAITS = """SELECT t.name FROM resource_provider_traits r JOIN traits t ON t.id = r.trait_id
 WHERE r.resource_provider_id = ?"""
AGGREGATES = """SELECT a.uuid FROM resource_provider_aggregates r
 JOIN placement_aggregates a ON a.id = r.aggregate_id WHERE r.resource_provider_id = ?"""
ALLOCATED = """FROM allocations a JOIN resource_providers p ON p.id = a.resource_provider_id
 JOIN resource_classes c ON c.id = a.resource_class_id """
HELD = 'SELECT p.uuid, c.name, a.used ' + ALLOCATED + 'WHERE a.consumer_id = ?'
CONSUMERS = 'SELECT DISTINCT a.consumer_id ' + ALLOCATED + 'WHERE p.uuid = ?'
USED = 'SELECT c.name, sum(a.used) ' + ALLOCATED + 'WHERE p.uuid = ? GROUP BY c.name'


def new_uuid(rng):
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def cpu_list(cpus):
    return ','.join(map(str, sorted(cpus)))


class Round:
    """A host, its guests and its shapes, all made from one seed."""

    def __init__(self, seed):
        self.rng = rng = random.Random(seed)
        self.name = 'host-%d' % seed
        self.cells, cpu = [], 0
        for number in range(rng.randint(1, 4)):
            cpus = list(range(cpu, cpu + rng.randint(2, 8)))
            cpu += len(cpus)
            self.cells.append({'id': number * rng.choice([1, 1, 3]) if number else 0, 'cpus': cpus,
                               'mib': rng.choice([2048, 4096, 6000])})
        for number, cell in enumerate(self.cells):
            cell['id'] = number
        self.cpus = list(range(cpu))
        self.n_gpus = rng.randint(0, 3)
        self.guests = [self._make_guest(number) for number in range(rng.randint(0, 8))]
        self.dedicated = set(rng.sample(self.cpus, max(1, len(self.cpus) // 3)))
        self._pin_guests()
        self.shapes = [self._make_shape()]
        while len(self.shapes) <= MOVES:
            shape = self._make_shape()
            if shape != self.shapes[-1]:
                self.shapes.append(shape)
        # VGPU on the root is a shape of old versions. No move leads back to it.
        self.old_vgpus = self.n_gpus > 0 and rng.random() < 0.5
        if self.old_vgpus:
            self.shapes[0]['mdev'] = None

    def _make_shape(self):
        rng = self.rng
        return {'numa': rng.random() < 0.5, 'dedicated': rng.random() < 0.4,
                'mdev': rng.choice(['VGPU', 'CUSTOM_SLICE']) if self.n_gpus else None}

    def _make_guest(self, number):
        rng = self.rng
        return {'uuid': new_uuid(rng), 'name': 'guest%d' % number, 'vcpus': rng.randint(1, 4),
                'mib': rng.choice([64, 128, 500]), 'pins': {}, 'memory_cells': None,
                'gpu': rng.randrange(self.n_gpus) if self.n_gpus and rng.random() < 0.4 else None,
                'mdev': new_uuid(rng)}

    def _pin_guests(self):
        rng = self.rng
        for guest in self.guests:
            kind = rng.choice(['float', 'cell', 'cpus', 'dedicated'])
            cell = rng.choice(self.cells)
            for vcpu in range(guest['vcpus']):
                if kind == 'cell':
                    guest['pins'][vcpu] = cell['cpus']
                elif kind == 'cpus':
                    guest['pins'][vcpu] = rng.sample(self.cpus, 1)
                elif kind == 'dedicated':
                    guest['pins'][vcpu] = rng.sample(sorted(self.dedicated), 1)
            if kind == 'cell' and rng.random() < 0.5:
                guest['memory_cells'] = cell['id']

    def host(self):
        """Returns the document that the static driver reads."""
        return {
            'format': 'compute-agent-host/1', 'driver': 'libvirt', 'nodename': self.name,
            'online_cpus': cpu_list(self.cpus), 'memory_kib': sum(c['mib'] for c in self.cells) << 10,
            'disk_total_bytes': 100 << 30,
            'cells': [{'id': cell['id'], 'memory_kib': cell['mib'] << 10,
                       'cpus': [{'id': cpu} for cpu in cell['cpus']]} for cell in self.cells],
            'devices': [{'name': 'pci_0000_4%d_00_0' % gpu, 'address': '0000:4%d:00.0' % gpu,
                         'mdev_types': [{'id': 'slice', 'available_instances': 4}]}
                        for gpu in range(self.n_gpus)],
            'mdevs': [{'uuid': guest['mdev'], 'type': 'slice',
                       'parent': 'pci_0000_4%d_00_0' % guest['gpu']}
                      for guest in self.guests if guest['gpu'] is not None],
            'domains': [self._domain(guest) for guest in self.guests],
        }

    @staticmethod
    def _domain(guest):
        domain = {'uuid': guest['uuid'], 'name': guest['name'], 'state': 'running',
                  'vcpus': guest['vcpus'], 'memory_kib': guest['mib'] << 10,
                  'mdevs': [guest['mdev']] if guest['gpu'] is not None else [],
                  'pins': [{'vcpu': vcpu, 'cpus': cpu_list(cpus)}
                           for vcpu, cpus in guest['pins'].items()]}
        if guest['memory_cells'] is not None:
            domain['memory_cells'] = str(guest['memory_cells'])
        return domain

    def options(self, shape):
        shared = set(self.cpus) - self.dedicated
        dedicates = shape['dedicated'] and shared
        return {'compute': {'numa_in_placement': 'true' if shape['numa'] else 'false',
                            'cpu_dedicated_set': cpu_list(self.dedicated) if dedicates else None,
                            'cpu_shared_set': cpu_list(shared) if dedicates else None},
                'DEFAULT': {'reserved_host_memory_mb': 0},
                'devices': {'enabled_mdev_types': 'slice' if shape['mdev'] else None},
                'mdev_slice': {'mdev_class': shape['mdev'] or 'VGPU'}}


class Hammer(threading.Thread):
    """A client that allocates from the host's providers, and releases again, while they move. The member held has the consumers
    that are left."""

    def __init__(self, test, rng, tree):
        super().__init__(daemon=True)
        self.test, self.rng, self.tree = test, rng, tree
        self.pauses = [rng.random() * 0.06 for _ in range(rng.randint(3, 10))]
        self.held = {}

    def run(self):
        targets = [(provider['uuid'], name) for provider in self.tree.values()
                   for name in provider['inventories'] if name in ('VCPU', 'MEMORY_MB')]
        for pause in self.pauses:
            time.sleep(pause)
            if self.held and self.rng.random() < 0.3:
                # The answer is ignored, because a 500 of a locked database does not show whether the request was done.
                gone = self.rng.choice(sorted(self.held))
                del self.held[gone]
                self.test.placement.request('DELETE', '/allocations/' + gone, record=False)
                continue
            consumer, (provider, name) = new_uuid(self.rng), self.rng.choice(targets)
            if self.test.put(consumer, {provider: {name: 1}}).status == 204:
                self.held[consumer] = True


class ReshapesCase(EnvCase):
    """A Placement and an agent for recorded hosts."""

    maxDiff = None
    shared = ('scratch', 'placement')

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.agent = Agent(cls.scratch, cls.placement, host={})
        for name in ('/traits/' + FOREIGN_TRAIT, '/resource_classes/CUSTOM_SLICE'):
            cls.placement.request('PUT', name, record=False)

    # Writes of the test to Placement

    def put(self, consumer, held):
        """Writes a new consumer with {provider: {class: amount}}, and returns the answer."""
        return self.placement.request('PUT', '/allocations/' + consumer, {
            'allocations': {provider: {'resources': resources}
                            for provider, resources in held.items()},
            'project_id': 'p', 'user_id': 'u', 'consumer_generation': None,
            'consumer_type': 'INSTANCE'}, record=False)

    def make_foreign(self, name, parent=None):
        made = self.placement.make_provider(name, {'NET_BW_EGR_KILOBIT_PER_SEC': 1000, 'VCPU': 50, 'DISK_GB': 1000}, parent)
        self.mark(made)
        return made

    def mark(self, provider):
        """Adds a trait and an aggregate of another client."""
        self.placement.edit(provider, 'traits', lambda traits: traits.append(FOREIGN_TRAIT))
        self.placement.set_part(provider, 'aggregates', [FOREIGN_AGGREGATE])

    # Reads from the tables of Placement, which take a tenth of the time of requests

    def query(self, sql, *values):
        with contextlib.closing(sqlite3.connect(
                self.placement.folder / 'placement.sqlite', timeout=30)) as database:
            return database.execute(sql, values).fetchall()

    def tree(self, root):
        """Returns {name: {uuid, inventories, traits, aggregates}} of a tree, or of a single provider."""
        ret = {}
        for key, provider, name, parent in self.query(PROVIDERS, root):
            ret[name] = {
                'uuid': provider, 'parent': parent,
                'inventories': {row[0]: dict(zip(RECORD, row[1:]))
                                for row in self.query(INVENTORIES, key)},
                'traits': sorted(row[0] for row in self.query(TRAITS, key)),
                'aggregates': sorted(row[0] for row in self.query(AGGREGATES, key))}
        return ret

    def foreign_parts(self, provider, foreign):
        """Returns the foreign providers in the tree of a provider."""
        return {name: item for name, item in self.tree(provider).items() if item['uuid'] in foreign}

    def held(self, consumer):
        """Returns {(provider, class): amount} of a consumer."""
        return {row[:2]: row[2] for row in self.query(HELD, consumer)}

    def consumers_of(self, providers):
        return {row[0] for provider in providers for row in self.query(CONSUMERS, provider)}

    def sums(self, consumer, foreign):
        """Returns {class: sum} of a consumer. Amounts on foreign providers are separate, as {(provider, class): sum}."""
        ret = collections.Counter()
        for (provider, name), amount in self.held(consumer).items():
            ret[(provider, name) if provider in foreign else SAME.get(name, name)] += amount
        return ret

    def usage(self, tree):
        """Returns {(provider, class): used} of a tree."""
        return {(name, resource_class): used for name, provider in tree.items()
                for resource_class, used in self.query(USED, provider['uuid'])}

    def overfull(self, tree, before, late):
        """Returns the inventories that are above their capacity and above their former use. A total can shrink under guests."""
        ret = set()
        for (name, resource_class), used in self.usage(tree).items():
            record = tree[name]['inventories'][resource_class]
            if used > max(before.get((name, resource_class), 0) + late,
                          (record['total'] - record['reserved']) * record['allocation_ratio']):
                ret.add((name, resource_class))
        return ret

    # A round

    def reset(self, case):
        shutil.rmtree(self.agent.state)
        self.agent.state.mkdir(mode=0o700)
        self.agent.record(case.host())

    def once(self, case, shape):
        self.agent.configure(case.options(shape))
        done = self.agent.run('--once', timeout=400)
        self.assertLess(done.returncode, 2, done.stderr)
        return done

    def check_tree(self, case, tree):
        path = self.agent.folder / 'probe.conf'
        path.write_text(self.agent.config.read_text())
        done = subprocess.run([str(build_folder() / 'tests/probes/tree-probe'), str(path)],
                              capture_output=True, check=True)
        expected = {provider['name']: {name: record['total'] for name, record in
                                       provider['inventories'].items()}
                    for provider in json.loads(done.stdout)['providers']}
        self.assertEqual({name: {key: record['total'] for key, record in
                                 provider['inventories'].items()}
                          for name, provider in tree.items() if not name.startswith('foreign')},
                         expected)


class TestRandomReshapes(ReshapesCase):
    def setUp(self):
        self.other = self.make_foreign('foreign-host')

    def fill(self, case, rng, tree, foreign):
        """Allocates for guests and for other consumers. Placement decides which of them fit."""
        strangers = [{'uuid': new_uuid(rng), 'vcpus': rng.randint(1, 2), 'mib': 64, 'pins': {},
                      'gpu': None} for _ in range(rng.randint(0, 3))]
        for guest in case.guests + strangers:
            held = collections.defaultdict(dict)
            for name, amount in (('CPU', guest['vcpus']), ('MEMORY_MB', guest['mib'])):
                names = ['VCPU', 'PCPU'] if name == 'CPU' else [name]
                pinned = all(set(cpus) <= case.dedicated for cpus in guest['pins'].values())
                if name == 'CPU' and guest['pins'] and pinned:
                    names.reverse()
                found = [(key, provider) for key in names for provider in tree.values()
                         if key in provider['inventories']]
                if found and names[0] in [key for key, _ in found]:
                    key, provider = rng.choice([pair for pair in found if pair[0] == names[0]])
                    held[provider['uuid']][key] = amount
            if guest['gpu'] is not None:
                for name in ('VGPU', 'CUSTOM_SLICE'):
                    for where, provider in tree.items():
                        if name in provider['inventories'] and (
                                where == case.name or where.endswith('4%d_00_0' % guest['gpu'])):
                            held[provider['uuid']][name] = 1
            if rng.random() < 0.3:
                held[rng.choice(foreign)] = {'DISK_GB': 3, 'VCPU': 1}
            if held:
                self.put(guest['uuid'], held)

    def make_host(self, case):
        """Publishes the host in its first shape, with providers of other clients, and returns the root and those providers."""
        self.reset(case)
        self.once(case, case.shapes[0])
        root = self.agent.root()
        foreign = [self.make_foreign('foreign-child-%s' % case.name, root), self.other]
        self.mark(root)
        if case.old_vgpus:
            self.placement.edit(root, 'inventories', lambda inventories: inventories.update(VGPU={'total': 4 * case.n_gpus}))
        self.fill(case, case.rng, self.tree(root), foreign)
        return root, foreign

    def move(self, case, shape):
        """Starts the agent with a shape, in half of the cases with a parallel client. Returns after that client has ended."""
        hammer = Hammer(self, case.rng, self.tree(self.agent.root()))
        if case.rng.random() < 0.5:
            return self.once(case, shape), {}
        hammer.start()
        self.once(case, shape)
        hammer.join()
        return self.once(case, shape), hammer.held

    # Does one move, and checks the conditions of the module's docstring.
    def run_move(self, case, shape, root, foreign, figures):
        tree = self.tree(root)
        before = {consumer: self.sums(consumer, foreign)
                  for consumer in self.consumers_of([item['uuid'] for item in tree.values()])}
        pictures = [self.foreign_parts(provider, foreign) for provider in foreign]
        used = self.usage(tree)
        mark = self.placement.mark()
        done, late = self.move(case, shape)
        for item in self.placement.writes_since(mark):
            figures[{204: 'reshapes', 409: 'overtaken'}.get(item[2], 'others')] += (
                item[1] == '/reshaper')

        tree = self.tree(root)
        after = {consumer: self.sums(consumer, foreign) for consumer in before}
        self.assertEqual(after, before)
        for consumer in late:
            self.assertEqual(sum(self.sums(consumer, foreign).values()), 1, consumer)
        self.assertEqual([self.foreign_parts(provider, foreign) for provider in foreign], pictures)
        self.assertIn(FOREIGN_TRAIT, tree[case.name]['traits'])
        self.assertEqual(tree[case.name]['aggregates'], [FOREIGN_AGGREGATE])
        self.assertEqual(self.overfull(tree, used, len(late)), set())
        figures['moves'] += 1
        figures['consumers'] += len(before) + len(late)
        if 'cannot be moved' in done.stderr:
            figures['blocked'] += 1
        else:
            self.check_tree(case, tree)

    def test_no_consumer_loses_anything(self):
        count = int(os.environ.get('COMPUTE_AGENT_RESHAPES', 8))
        first = int(os.environ.get('COMPUTE_AGENT_SEED', 0))
        figures = collections.Counter()
        for seed in range(first, first + (count + MOVES - 1) // MOVES):
            with self.subTest(seed=seed):
                case = Round(seed)
                root, foreign = self.make_host(case)
                for number, shape in enumerate(case.shapes[1:]):
                    with self.subTest(move=number):
                        self.run_move(case, shape, root, foreign, figures)
        print('reshapes: %s' % ', '.join('%d %s' % (figures[key], key) for key in (
            'moves', 'reshapes', 'overtaken', 'consumers', 'blocked', 'others')), flush=True)
