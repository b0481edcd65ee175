# SPDX-License-Identifier: LGPL-2.1-or-later
"""Nova's virt/hardware.py (Debian's python3-nova) and the agent's fit judge the same guests on the same cells.

Random hosts are filled with random guests, one after another. Both judge each guest, and Nova's own usage functions then count it
where Nova placed it. DIFFERENCES lists the intended differences.
"""

import copy
import inspect
import itertools
import json
import logging
import random
import subprocess
import unittest
from dataclasses import dataclass

from tests.env.agent import build_folder

from nova import conf, exception, objects
from nova.virt import hardware

SEEDS = 1500
GUESTS = 6
KIB = 1024


@dataclass
class Cell:
    memory: int
    threads: int
    cpus: list  # (id, core, kind)
    pages: list  # (size_kib, total, reserved) of the large pages

    def ids(self, kind):
        return {cpu for cpu, _, found in self.cpus if found == kind}

    def cores(self):
        """Returns the sets of CPUs of each core that guests can use."""
        cores = {}
        for cpu, core, kind in self.cpus:
            if kind:
                cores.setdefault(core, set()).add(cpu)
        return sorted(cores.values(), key=min)

    def small(self):
        return self.memory - sum(size * total // KIB for size, total, _ in self.pages)


@dataclass
class Guest:
    vcpus: int
    memory: int
    nodes: int
    policy: str
    mask: str = None
    threads: str = None
    pages: str = None
    pack: bool = False

    def extra_specs(self):
        named = {'numa_nodes': str(self.nodes), 'cpu_policy': self.policy, 'cpu_dedicated_mask':
                 self.mask, 'cpu_thread_policy': self.threads, 'mem_page_size': self.pages}
        return {'hw:' + key: value for key, value in named.items() if value}


# Returns one to three random cells. Some of their CPUs belong to no set, and most cells have huge pages.
def make_cells(roll):
    cells, next_cpu = [], 0
    threads = roll.choice((1, 2, 2, 4))
    for _ in range(roll.randint(1, 3)):
        cpus, n = [], threads * roll.randint(1, 12 // threads)
        for i in range(n):
            kind = roll.choice(('shared', 'dedicated', 'dedicated', '')) if roll.random() < 0.2 else (
                'shared' if i < n // 3 else 'dedicated')
            cpus.append((next_cpu + i, next_cpu + i // threads * threads, kind))
        next_cpu += n
        pages = []
        if roll.random() < 0.7:
            pages = [(2048, roll.choice((0, 256, 512)), roll.choice((0, 0, 64))),
                     (1048576, roll.choice((0, 1, 2)), 0)]
        cells.append(Cell(roll.choice((4096, 6144)), threads, cpus, pages))
    return cells


# Returns a random guest that Nova accepts. Its memory is a multiple of its page size.
def make_guest(roll):
    nodes = roll.choice((1, 1, 1, 2, 3))
    guest = Guest(nodes * roll.randint(1, 5), nodes * roll.choice((256, 512, 1024, 2048)), nodes,
                  roll.choice(('shared', 'dedicated', 'mixed')),
                  pages=roll.choice((None, None, 'small', 'large', 'any', '2048', '1048576')),
                  pack=roll.random() < 0.3)
    if guest.policy == 'mixed':
        guest.vcpus = max(guest.vcpus, 2 * nodes)
        guest.mask = '0' if nodes == 1 else '^0'
    if guest.policy != 'shared':
        guest.threads = roll.choice((None, 'prefer', 'isolate', 'require'))
    if guest.pages and guest.pages.isdigit() and guest.memory // nodes * KIB % int(guest.pages):
        guest.pages = '2048'
    return guest


def nova_host(cells):
    return objects.NUMATopology(cells=[objects.NUMACell(
        id=number, socket=0, cpuset=cell.ids('shared'), pcpuset=cell.ids('dedicated'),
        memory=cell.memory, cpu_usage=0, memory_usage=0, pinned_cpus=set(), siblings=cell.cores(),
        mempages=[objects.NUMAPagesTopology(size_kb=size, total=total, used=0, reserved=reserved)
                  for size, total, reserved in [(4, cell.small() * KIB // 4, 0)] + cell.pages])
        for number, cell in enumerate(cells)])


def fit_pair(cell, asked, limits):
    try:
        return hardware._numa_fit_instance_cell(cell, copy.deepcopy(asked), limits)
    except exception.MemoryPageSizeNotSupported:
        return None


# Nova 31 has one more argument before the limits: the providers of each group.
NO_MAPPING = [None] if 'provider_mapping' in inspect.signature(hardware.numa_fit_instance_to_host).parameters else []


# Returns the topology of a guest on the host by Nova's code, or None if it does not fit.
def nova_fit(host, guest, limits):
    conf.CONF.set_override('packing_host_numa_cells_allocation_strategy', guest.pack, 'compute')
    flavor = objects.Flavor(vcpus=guest.vcpus, memory_mb=guest.memory,
                            extra_specs=guest.extra_specs())
    wanted = hardware.numa_get_constraints(flavor, objects.ImageMeta.from_dict({}))
    # Two faults of Nova make its own search wrong. It stores the cells that fit under an id, which it overwrites when one fits. It
    # also keeps the page size of one cell for the next. Each pair of cells is therefore judged alone.
    if guest.nodes == 1 and guest.pages not in ('any', 'large'):
        return hardware.numa_fit_instance_to_host(host, wanted, *NO_MAPPING, limits=limits)
    for permutation in itertools.permutations(host.cells, guest.nodes):
        found = [fit_pair(cell, asked, limits) for cell, asked in zip(permutation, wanted.cells)]
        if all(found):
            return objects.InstanceNUMATopology(cells=found)
    return None


# Returns the input line of numa-probe, with the usage as Nova counts it.
def question(cells, host, guest, ratios):
    used = [(cell.id, 0 if pages.size_kb == 4 else pages.size_kb, int(pages.used * pages.size_kb) //
             KIB, cell.cpu_usage if pages.size_kb == 4 else 0)
            for cell in host.cells for pages in cell.mempages]
    held = set().union(*(cell.pinned_cpus for cell in host.cells))
    return {'cells': [{'memory_mb': cell.memory, 'cpus': cell.cpus, 'pages': cell.pages}
                      for cell in cells],
            'used': used, 'held': ','.join(str(cpu) for cpu in sorted(held)),
            'cpu_ratio': ratios[0], 'ram_ratio': ratios[1], 'vcpus': guest.vcpus,
            'memory_mb': guest.memory, 'nodes': guest.nodes, 'cpu_policy': guest.policy,
            'mask': guest.mask, 'threads': guest.threads,
            'page_size': guest.pages, 'strategy': 'pack' if guest.pack else 'spread'}


@dataclass
class Difference:
    """A difference between both verdicts. applies(cells, host as Nova counts it, guest, ratios) returns whether they are allowed to
    differ."""

    why: str
    applies: object
    looser: bool  # whether the agent accepts more than Nova
    seen: int = 0


def small_pages_are_promised(cells, host, guest, ratios):
    if guest.pages:
        return False
    ratio = ratios[1] if guest.policy == 'shared' else 1
    return any(of.mempages[0].used * 4 / KIB + guest.memory // guest.nodes > cell.small() * ratio
               for cell, of in zip(cells, host.cells))


def isolates_beside_threads(cells, _host, guest, _ratios):
    return guest.threads == 'isolate' and any(len(core) > 1 for cell in cells
                                              for core in cell.cores())


def requires_of_uneven_cores(_cells, host, guest, _ratios):
    return guest.threads == 'require' and any(
        len({len(free) for free in cell.free_siblings if len(free) > 1}) > 1 or
        max([len(free) for free in cell.free_siblings] or [0]) > 2 for cell in host.cells)


DIFFERENCES = [
    Difference('Nova counts all memory of guests without a page size together with hugepages: the '
               'sum may be more than there is in small pages',
               small_pages_are_promised, looser=False),
    Difference('Nova refuses isolate where any core of the cell has threads, as the trait of '
               'hyperthreading is forbidden; here a core that is free as a whole does',
               isolates_beside_threads, looser=True),
    Difference('Nova takes the same number of threads of each core for require; here each core '
               'with two that are free gives all of them', requires_of_uneven_cores, looser=True),
]


class TestNova(unittest.TestCase):
    """Compares thousands of verdicts, and the cell of each guest with one cell."""

    @classmethod
    def setUpClass(cls):
        objects.register_all()
        logging.getLogger('nova').setLevel(logging.CRITICAL)
        conf.CONF([], project='nova', default_config_files=[])

    def rounds(self, seed):
        """Yields (cells, host before, guest, ratios, cells of Nova's choice) for each guest. Each guest that fits is counted on the
        host."""
        roll = random.Random(seed)
        cells = make_cells(roll)
        ratios = (roll.choice((1.0, 2.0, 4.0)), roll.choice((1.0, 1.5)))
        limits = objects.NUMATopologyLimits(cpu_allocation_ratio=ratios[0],
                                            ram_allocation_ratio=ratios[1])
        host = nova_host(cells)
        for _ in range(GUESTS):
            guest = make_guest(roll)
            found = nova_fit(host, guest, limits)
            yield cells, host, guest, ratios, found and [cell.id for cell in found.cells]
            if found:
                host = hardware.numa_usage_from_instance_numa(host, found)

    def test_verdicts_and_cells(self):
        rounds = [one for seed in range(SEEDS) for one in self.rounds(seed)]
        lines = '\n'.join(json.dumps(question(cells, host, guest, ratios))
                          for cells, host, guest, ratios, _ in rounds)
        done = subprocess.run([str(build_folder() / 'tests/probes/numa-probe')], input=lines + '\n',
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        n_fits = n_alike = 0
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(len(answers), len(rounds))
        for (cells, host, guest, ratios, nova), answer in zip(rounds, answers):
            ours = answer['cells']
            may = [one for one in DIFFERENCES if one.applies(cells, host, guest, ratios)]
            n_fits += bool(nova and ours)
            if bool(ours) == bool(nova):
                if ours and guest.nodes == 1 and guest.pages not in ('any', 'large') and not may:
                    n_alike += 1
                    self.assertEqual(ours, nova, (guest, question(cells, host, guest, ratios)))
                continue
            allowed = [one for one in may if one.looser == bool(ours)]
            self.assertTrue(allowed, 'Nova: %s, ours: %s %s\n%s' % (
                nova, ours, answer['words'], json.dumps(question(cells, host, guest, ratios))))
            for one in allowed:
                one.seen += 1
        for one in DIFFERENCES:
            self.assertGreater(one.seen, 0, one.why)
        self.assertGreater(n_fits, len(rounds) / 5)
        self.assertGreater(n_alike, len(rounds) / 10)
