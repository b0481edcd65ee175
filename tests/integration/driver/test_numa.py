# SPDX-License-Identifier: LGPL-2.1-or-later
"""[compute] numa_in_placement: made-up cells, a real libvirtd, and the providers in a real Placement.

Each expectation is written as {suffix of the provider: (suffix of its parent, "CLASS=TOTAL/RESERVED ...")}, with '' for the root.
DISK_GB is left out, because it is that of the test machine.
"""

import dataclasses
import json

from tests.env.agent import Agent
from tests.env.case import EnvCase
from tests.env.fakesys import (Cell, Gpu, Host, Pci, demo_host, m10_types, set_hugepages,
                               simple_host)
from tests.env.libvirtd import Libvirtd

CELL = 'MEMORY_MB=4096/%d VCPU=4/0 CUSTOM_HUGEPAGES_2M=64/0'


def sparse_host():
    """Returns a host with cells 0, 3 and 8. Cell 3 has only memory and no huge pages, and cell 8 has a GPU."""
    return Host(name='sparse', cells=[Cell(0, [0, 1], 2 << 20, {2048: 16}),
                                      Cell(3, [], 1 << 20),
                                      Cell(8, [4, 5], 1 << 20, {2048: 8, 1048576: 0})],
                gpus=[Gpu('0000:41:00.0', numa_node=8, types=m10_types()),
                      Gpu('0000:42:00.0', numa_node=-1, types=m10_types())])


def told(tree, root):
    """Returns the tree of Placement in the form of the expectations."""
    names = {provider['uuid']: name for name, provider in tree.items()}
    ret = {}
    for name, provider in tree.items():
        parent = names.get(provider['parent'])
        amounts = {'%s=%d/%d' % (key, record['total'], record['reserved'])
                   for key, record in provider['inventories'].items() if key != 'DISK_GB'}
        ret[name[len(root):]] = (parent[len(root):] if parent else None, amounts)
    return ret


def written(expected):
    return {name: (parent, set(amounts.split())) for name, (parent, amounts) in expected.items()}


class NumaCase(EnvCase):
    maxDiff = None
    shared = ('placement',)

    def make(self, host, **options):
        self.libvirtd = Libvirtd(host, self.scratch).start()
        sections = {'compute': {'numa_in_placement': 'true'}, 'libvirt': {'virt_type': 'qemu'}}
        for section, keys in options.items():
            sections.setdefault(section, {}).update(keys)
        return Agent(self.scratch, self.placement, self.libvirtd.uri, options=sections)

    # Publishes a host, compares its tree in Placement, and returns the agent.
    def check(self, host, expected, **options):
        agent = self.make(host, **options)
        agent.run('--once', code=0)
        tree = self.placement.tree_by_name(agent.root())
        self.assertEqual(told(tree, host.name), written(expected))
        for name, provider in tree.items():
            cell = name.startswith(host.name + '_NUMA')
            self.assertEqual('HW_NUMA_ROOT' in provider['traits'], cell, name)
            self.assertEqual('DISK_GB' in provider['inventories'], name == host.name, name)
        return agent


class TestForms(NumaCase):
    """numa_in_placement = false, root and true: the places of inventory and allocations, and each change between two of the forms."""

    HELD = {'VCPU': 2, 'PCPU': 3, 'MEMORY_MB': 1536}

    def placed(self, agent, consumer):
        """Returns {class: {suffix of the provider: amount}} of a consumer."""
        names = {one['uuid']: name for name, one in self.placement.tree_by_name(agent.root()).items()}
        ret = {}
        for provider, amounts in self.placement.held(consumer).items():
            for resource_class, amount in amounts.items():
                ret.setdefault(resource_class, {})[names[provider][len('forms'):]] = amount
        return ret

    def become(self, agent, form):
        agent.configure({'compute': {'numa_in_placement': form}})
        agent.run('--once', code=0)
        return self.placement.tree_by_name(agent.root())

    # Checks the inventories of a form, and that the operator's ratio of VCPU is kept.
    def look(self, tree, form):
        told_ = told(tree, 'forms')
        pages = 'CUSTOM_HUGEPAGES_2M=64/0'
        root = {'false': 'VCPU=4/0 PCPU=4/0 MEMORY_MB=8192/512', 'root': 'VCPU=4/0 MEMORY_MB=8192/512', 'true': ''}
        cells = {'false': None, 'root': ['', 'PCPU=4/0'],
                 'true': ['VCPU=4/0 MEMORY_MB=4096/256', 'PCPU=4/0 MEMORY_MB=4096/256']}
        expected = {'': (None, root[form])}
        for i, cell in enumerate(cells[form] or []):
            expected['_NUMA%d' % i] = ('', '%s %s' % (cell, pages))
        self.assertEqual(told_, written(expected), form)
        for provider in tree.values():
            if 'VCPU' in provider['inventories']:
                self.assertEqual(provider['inventories']['VCPU']['allocation_ratio'], 2.5, form)

    def test_each_to_each(self):
        agent = self.make(simple_host(2, name='forms'), compute={
            'numa_in_placement': 'false', 'cpu_shared_set': '0-3', 'cpu_dedicated_set': '4-7'})
        self.become(agent, 'false')
        self.placement.edit(agent.root(), 'inventories', lambda inventories: inventories['VCPU'].update(allocation_ratio=2.5))
        consumer = self.placement.place(None, {agent.root(): self.HELD})
        for form in ('root', 'true', 'root', 'false', 'true', 'false'):
            self.look(self.become(agent, form), form)
            placed = self.placed(agent, consumer)
            self.assertEqual({name: sum(part.values()) for name, part in placed.items()}, self.HELD, form)
            at_root = {name for name, part in placed.items() if '' in part}
            self.assertEqual(at_root, {'false': set(self.HELD), 'root': {'VCPU', 'MEMORY_MB'},
                                       'true': set()}[form], form)


class TestCells(NumaCase):
    def test_four_uneven_with_a_cell_of_memory_alone_and_two_page_sizes(self):
        self.check(demo_host(), {
            '': (None, ''),
            '_NUMA0': ('', 'VCPU=8/0 MEMORY_MB=32768/227 CUSTOM_HUGEPAGES_2M=1024/100 '
                           'CUSTOM_HUGEPAGES_1G=4/0'),
            '_NUMA1': ('', 'VCPU=4/0 MEMORY_MB=16384/114 CUSTOM_HUGEPAGES_2M=512/0'),
            '_NUMA2': ('', 'VCPU=4/0 MEMORY_MB=24576/171 CUSTOM_HUGEPAGES_1G=8/2'),
            '_NUMA3': ('', 'MEMORY_MB=8192/8192 CUSTOM_HUGEPAGES_2M=256/256'),
            '_pci_0000_41_00_0': ('_NUMA1', 'VGPU=4/0'),
            '_pci_0000_81_00_0': ('_NUMA2', 'VGPU=5/0'),
        }, DEFAULT={'reserved_huge_pages': 'node:0,size:2048,count:100\n'
                                           'reserved_huge_pages = node:2,size:1GB,count:2'})

    def test_eight_with_dedicated_cpus(self):
        cell = 'MEMORY_MB=4096/%d CUSTOM_HUGEPAGES_2M=64/0 %s'
        kinds = ['VCPU=4/0', 'VCPU=2/0 PCPU=2/0'] + ['PCPU=4/0'] * 6
        expected = {'_NUMA%d' % i: ('', cell % (64, kind)) for i, kind in enumerate(kinds)}
        self.check(simple_host(8, name='eight'), {'': (None, ''), **expected},
                   compute={'cpu_shared_set': '0-5', 'cpu_dedicated_set': '6-31'})

    def test_sparse_ids(self):
        self.check(sparse_host(), {
            '': (None, ''),
            '_NUMA0': ('', 'VCPU=2/1 MEMORY_MB=2048/682 CUSTOM_HUGEPAGES_2M=16/0'),
            '_NUMA3': ('', 'MEMORY_MB=1024/1024'),
            '_NUMA8': ('', 'VCPU=2/1 MEMORY_MB=1024/342 CUSTOM_HUGEPAGES_2M=8/0'),
            '_pci_0000_41_00_0': ('_NUMA8', 'VGPU=4/0'),
            '_pci_0000_42_00_0': ('', 'VGPU=4/0'),
        }, DEFAULT={'reserved_host_memory_mb': 1024, 'reserved_host_cpus': 2})

    def test_two_gpus_of_three_types(self):
        host = simple_host(2, gpus=2, name='gpus')
        host.gpus[1].types = m10_types(small=3, existing=['2a1f4b9e-6c41-4f0b-9a53-8f8f0f6c1d01'])
        self.check(host, {
            '': (None, ''), '_NUMA0': ('', CELL % 256), '_NUMA1': ('', CELL % 256),
            '_pci_0000_41_00_0': ('_NUMA0', 'CUSTOM_LARGE=1/0'),
            '_pci_0000_42_00_0': ('_NUMA1', 'VGPU=4/0'),
        }, devices={'enabled_mdev_types': 'nvidia-35, nvidia-37'}, **{
            'mdev_nvidia-37': {'device_addresses': '0000:41:00.0', 'mdev_class': 'CUSTOM_LARGE'}})


class TestChanges(NumaCase):
    def test_a_bad_part_costs_itself(self):
        """One CPU is online and belongs to no cell, or the configuration reserves more huge pages than the kernel has. The rest is
        published."""
        agent = self.make(simple_host(2, name='bad'))
        agent.within = self.libvirtd.enter('-m', '-u', '-p')
        cpus = self.libvirtd.sys / 'devices/system/cpu'
        for driver in ('libvirt', 'linux'):
            for online, reserved, words in (('0-8', 0, 'CPU 8 of the shared CPUs is in no cell'),
                                            ('0-7', 1000, 'reserves 1000 pages of 2048 KiB in cell 1, but the cell has only 64')):
                for name in ('online', 'present'):
                    (cpus / name).write_text(online + '\n')
                agent.configure({'DEFAULT': {'compute_driver': driver, 'reserved_huge_pages': 'node:1,size:2048,count:%d' % reserved}})
                done = agent.run('--once')
                self.assertEqual(done.returncode, 1, (driver, words))
                self.assertIn(words, done.stderr, driver)
                self.assertEqual(told(self.placement.tree_by_name(agent.root()), 'bad'), written({
                    '': (None, ''), '_NUMA0': ('', CELL % 256),
                    '_NUMA1': ('', 'MEMORY_MB=4096/256 VCPU=4/0 CUSTOM_HUGEPAGES_2M=64/%d' % min(reserved, 64))}), (driver, words))

    def test_pages_that_come_and_go(self):
        host = simple_host(2, name='pages')
        agent = self.check(host, {'': (None, ''), '_NUMA0': ('', CELL % 256),
                                  '_NUMA1': ('', CELL % 256)})
        set_hugepages(self.libvirtd.sys, 0, 2048, 32)
        set_hugepages(self.libvirtd.sys, 1, 2048, 0)
        agent.run('--once', code=0)
        tree = told(self.placement.tree_by_name(agent.root()), host.name)
        self.assertIn('CUSTOM_HUGEPAGES_2M=32/0', tree['_NUMA0'][1])
        self.assertEqual(tree['_NUMA1'][1], {'MEMORY_MB=4096/256', 'VCPU=4/0'})

    def test_devices_move_to_another_cell_while_allocated(self):
        host = simple_host(2, gpus=1, name='moves')
        host.pci = [Pci('0000:8a:00.0', 1)]
        agent = self.check(host, {
            '': (None, ''), '_NUMA0': ('', CELL % 256), '_NUMA1': ('', CELL % 256),
            '_pci_0000_41_00_0': ('_NUMA0', 'VGPU=4/0'),
            '_0000:8A:00.0': ('_NUMA1', 'CUSTOM_PCI_8086_1572=1/0'),
        }, pci={'report_in_placement': 'true', 'device_spec': '{"vendor_id": "8086"}'})
        before = self.placement.tree_by_name(agent.root())
        held = {before['moves_pci_0000_41_00_0']['uuid']: {'VGPU': 1}}
        consumer = self.placement.place(None, held)
        for device, cell in ((host.gpus[0], 1), (host.pci[0], 0)):
            self.libvirtd.remove_device(device.address)
            self.libvirtd.plug_device(dataclasses.replace(device, numa_node=cell))
        agent.run('--once', code=0)
        after = self.placement.tree_by_name(agent.root())
        for name, cell in (('moves_pci_0000_41_00_0', '1'), ('moves_0000:8A:00.0', '0')):
            self.assertEqual(after[name]['uuid'], before[name]['uuid'])
            self.assertEqual(after[name]['parent'], after['moves_NUMA' + cell]['uuid'])
        self.assertEqual(self.placement.held(consumer), held)

    def test_a_gpu_that_is_missing_after_a_reboot_stays_below_its_cell(self):
        host = simple_host(2, gpus=2, name='missing')
        agent = self.make(host)
        agent.run('--once', code=0)
        agent.reboot()
        self.libvirtd.remove_device('0000:42:00.0')
        agent.run('--once', code=0)
        tree = told(self.placement.tree_by_name(agent.root()), host.name)
        self.assertEqual(tree['_pci_0000_42_00_0'], ('_NUMA1', {'VGPU=4/4'}))

    def test_verify_names_the_option(self):
        agent = self.make(simple_host(1, name='verified'), compute={'cpu_shared_set': '2-5'})
        done = agent.ctl('doctor', '--hardware-only', '--config', agent.config, '--json=short', code=1)
        finding = json.loads(done.stdout)['findings'][0]
        self.assertEqual(finding['state'], 'bad')
        self.assertRegex(finding['text'], r'^\[compute\] cpu_shared_set names CPU 4-5')
        agent.configure({'compute': {'cpu_shared_set': '0-3'},
                         'devices': {'enabled_mdev_types': None}})
        self.assertIn('The configuration fits this host.', agent.ctl('doctor', '--hardware-only', '--config', agent.config).stdout)
