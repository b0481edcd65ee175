# SPDX-License-Identifier: LGPL-2.1-or-later
"""CPUs that guests cannot use now: offline CPUs, dedicated CPUs on which an unpinned guest can run, and those of a cell without memory."""

from tests.env import fakesys
from tests.env.fakesys import Cell, Host, simple_host
from tests.integration.driver.test_numa import NumaCase, told

SETS = {'cpu_shared_set': '0-3', 'cpu_dedicated_set': '4-7'}
MEMORY = 'MEMORY_MB=8192/512'


class TestOfflineCpus(NumaCase):
    def test_an_offline_set_does_not_stop_the_others(self):
        for number, numa in enumerate(('false', 'root')):
            with self.subTest(numa=numa):
                host = simple_host(2, name='offline%d' % number)
                agent = self.make(host, compute={'numa_in_placement': numa, **SETS})
                agent.run('--once', code=0)
                consumer = self.placement.place(None, {
                    self.placement.tree_by_name(agent.root())[host.name + ('_NUMA1' if number else '')]['uuid']:
                    {'PCPU': 2}})
                fakesys.take_offline(self.libvirtd.sys, host, [4, 5, 6, 7])
                done = agent.run('--once', code=1)
                self.assertIn('cpu_dedicated_set names only offline CPUs (4-7), so no PCPU is offered', done.stderr)
                self.assertIn('[libvirt] cpu_power_management', done.stderr)
                tree = told(self.placement.tree_by_name(agent.root()), host.name)
                self.assertIn('VCPU=4/0', tree[''][1])
                self.assertIn('PCPU=1/1', tree['_NUMA1' if number else ''][1])
                # A guest keeps its allocation.
                self.assertEqual([*self.placement.held(consumer).values()], [{'PCPU': 2}])
                # Nova powers these CPUs down.
                agent.configure({'libvirt': {'cpu_power_management': 'true'}})
                agent.run('--once', code=0)
                tree = told(self.placement.tree_by_name(agent.root()), host.name)
                self.assertIn('PCPU=4/0', tree['_NUMA1' if number else ''][1])

    def test_an_unpinned_guest_reserves_dedicated_cpus_while_it_runs(self):
        host = simple_host(2, name='floats')
        # QEMU sets its affinity on the test machine, so the shared CPUs include CPU 1, which every machine has.
        agent = self.make(host, compute={'numa_in_placement': 'false', 'cpu_shared_set': '1-3',
                                         'cpu_dedicated_set': '0,4-7'})
        self.libvirtd.start_guest('shared', extra="<cputune><vcpupin vcpu='0' cpuset='1-3'/></cputune>")
        for extra, reserved in (("<cputune><vcpupin vcpu='0' cpuset='0-5'/></cputune>", 3), ('', 5)):
            self.libvirtd.start_guest('floating', extra=extra)
            agent.run('--once', code=0)
            self.assertEqual(self.pcpu(agent, host), 'PCPU=5/%d' % reserved)
            self.libvirtd.delete_guest('floating')
            agent.run('--once', code=0)
            self.assertEqual(self.pcpu(agent, host), 'PCPU=5/0')

    def pcpu(self, agent, host):
        amounts = told(self.placement.tree_by_name(agent.root()), host.name)[''][1]
        return next(amount for amount in amounts if amount.startswith('PCPU='))

    def test_a_cell_without_memory_is_reserved(self):
        host = Host(name='memoryless', cells=[Cell(0, [0, 1, 2, 3], 8 << 20), Cell(1, [4, 5, 6, 7], 0)])
        agent = self.make(host, compute={'cpu_shared_set': '0,4', 'cpu_dedicated_set': '1-3,5-7'})
        agent.run('--once', code=0)
        tree = told(self.placement.tree_by_name(agent.root()), host.name)
        self.assertEqual(tree['_NUMA1'], ('', {'VCPU=1/1', 'PCPU=3/3'}))
        self.assertEqual(tree['_NUMA0'], ('', {'VCPU=1/0', 'PCPU=3/0', MEMORY}))
        done = agent.ctl('doctor', '--hardware-only', '--all', '-c', agent.config, check=False)
        self.assertIn('Cell 1 has 4 CPUs but no memory', done.stdout)
