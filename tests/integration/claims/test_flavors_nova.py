# SPDX-License-Identifier: LGPL-2.1-or-later
"""The agent counts the same amounts for the domain of a flavor as Nova allocates for that flavor.

Nova's own scheduler code (Debian's python3-nova) makes the request to Placement, and Nova's own libvirt driver makes the domain. A
real libvirtd accepts the domain, and the agent creates a claim from it. The tests compare both amounts for each class.
tests/lint/nova-flavors.py names the test of each flavor key.
"""

import json
import subprocess
import uuid
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

from tests.env.case import EnvCase
from tests.env.agent import Agent
from tests.env.hosts import Cell, Host
from tests.env.scratch import wait_until

SCRIPT = Path(__file__).resolve().parents[2] / 'env/nova_domains.py'
SHARED, DEDICATED = '0,1,4,5,8,9,12,13', '2,3,6,7,10,11,14,15'  # whole cores
NOVA_CONF = '''[DEFAULT]
my_ip = 127.0.0.1
instances_path = {path}
state_path = {path}
[compute]
cpu_shared_set = {shared}
cpu_dedicated_set = {dedicated}
[libvirt]
connection_uri = {uri}
virt_type = qemu
cpu_mode = none
'''


@dataclass
class Flavor:
    """A flavor. The member more has the amounts that Nova allocates and no domain shows. The member elements lists elements of the
    domain, which prove that Nova applied the keys."""

    extra: dict = field(default_factory=dict)
    vcpus: int = 2
    ram: int = 64
    image: dict = field(default_factory=dict)
    more: dict = field(default_factory=dict)
    elements: tuple = ()


DEDICATED_CPUS = {'hw:cpu_policy': 'dedicated'}
TWO_CELLS = {'hw:numa_nodes': '2'}


class TestFlavors(EnvCase):
    """Two cells of eight CPUs, with two threads in each core. Each cell has four shared and four dedicated CPUs."""

    maxDiff = None
    shared = ('host', 'libvirtd')

    @staticmethod
    def make_host():
        return Host(name='compute-1', cells=[Cell(i, list(range(8 * i, 8 * i + 8)), 4 << 20, {2048: 64}, threads=2) for i in range(2)])

    def nova(self, flavors):
        """Returns Nova's {"uuid", "resources", "xml"} for each flavor."""
        path = self.scratch.path / 'nova.conf'
        path.write_text(NOVA_CONF.format(path=self.scratch.path, uri=self.libvirtd.uri, shared=SHARED, dedicated=DEDICATED))
        asked = [{'uuid': str(uuid.uuid4()), 'vcpus': one.vcpus, 'ram': one.ram, 'extra': one.extra, 'image': one.image} for one in flavors]
        done = subprocess.run([*self.libvirtd.enter(), '/usr/bin/python3', '-P', str(SCRIPT), str(path)], input=json.dumps(asked),
                              capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        return [{**one, **answer} for one, answer in zip(asked, json.loads(done.stdout))]

    def start_agent(self):
        agent = Agent(self.scratch, uri=self.libvirtd.uri, bus=self.bus, options={
            'compute': {'cpu_shared_set': SHARED, 'cpu_dedicated_set': DEDICATED}, 'libvirt': {'virt_type': 'qemu'},
            'devices': {'enabled_mdev_types': None}})
        return agent.start('standalone')

    @staticmethod
    def counted(agent):
        """Returns {consumer: {class: amount}} of all claims."""
        sums = {}
        for claim in agent.claims():
            of = sums.setdefault(claim['consumer'], {})
            for allocation in claim['allocations']:
                for name, amount in allocation['resources'].items():
                    of[name] = of.get(name, 0) + amount
        return sums

    def compare(self, *flavors):
        """Compares the amounts of Nova and of the agent, and returns the domains as elements."""
        answers = self.nova(flavors)
        for answer in answers:
            self.assertNotIn('refused', answer, answer)
            self.libvirtd.define(answer['xml'])
            self.addCleanup(self.libvirtd.virsh, 'undefine', answer['uuid'])
        agent = self.start_agent()
        wait_until(lambda: len(self.counted(agent)) == len(flavors), 30, 'a claim of each guest')
        counted = self.counted(agent)
        for flavor, answer in zip(flavors, answers):
            with self.subTest(extra=flavor.extra):
                shown = dict(answer['resources'])
                for name, amount in flavor.more.items():
                    shown[name] = shown.get(name, 0) - amount
                self.assertEqual(counted[answer['uuid']], {name: amount for name, amount in shown.items() if amount})
                domain = ElementTree.fromstring(answer['xml'])
                for element in flavor.elements:
                    self.assertIsNotNone(domain.find(element), element)
        return [ElementTree.fromstring(answer['xml']) for answer in answers]

    def test_amounts_of_the_flavor(self):
        self.compare(Flavor(), Flavor(vcpus=3, ram=128), Flavor({'hw:cpu_policy': 'shared'}))

    def test_amounts_that_resources_keys_replace(self):
        """Nova allocates other amounts than the domain shows."""
        self.compare(Flavor({'resources:VCPU': '4'}, more={'VCPU': 2}),
                     Flavor({'resources:MEMORY_MB': '128'}, more={'MEMORY_MB': 64}),
                     Flavor({'resources:DISK_GB': '5'}, more={'DISK_GB': 5}),
                     Flavor({'resources:CUSTOM_LICENCE': '1'}, more={'CUSTOM_LICENCE': 1}),
                     Flavor({'resources2:CUSTOM_LICENCE': '1', 'group_policy': 'none'}, more={'CUSTOM_LICENCE': 1}))

    def test_dedicated_cpus(self):
        self.compare(Flavor(DEDICATED_CPUS, elements=('cputune/vcpupin',)),
                     Flavor({'hw:cpu_policy': 'mixed', 'hw:cpu_dedicated_mask': '1'}),
                     Flavor({'hw:cpu_policy': 'mixed', 'hw:cpu_dedicated_mask': '^0-1'}, vcpus=4),
                     Flavor({'resources:PCPU': '2'}))

    def test_thread_policies(self):
        self.compare(*(Flavor({**DEDICATED_CPUS, 'hw:cpu_thread_policy': policy}) for policy in ('prefer', 'require')))

    def test_realtime_cpus(self):
        self.compare(Flavor({**DEDICATED_CPUS, 'hw:cpu_realtime': 'yes', 'hw:cpu_realtime_mask': '^0'}, elements=('cputune/vcpusched',)),
                     Flavor({'hw:cpu_policy': 'mixed', 'hw:cpu_realtime': 'yes', 'hw:cpu_realtime_mask': '^0'}))

    def test_emulator_threads(self):
        """With isolate, Nova allocates one more CPU for the emulator thread. No guest CPU runs on it."""
        self.compare(Flavor({**DEDICATED_CPUS, 'hw:emulator_threads_policy': 'isolate'}, more={'PCPU': 1}, elements=('cputune/emulatorpin',)),
                     Flavor({**DEDICATED_CPUS, 'hw:emulator_threads_policy': 'share'}, elements=('cputune/emulatorpin',)))

    def test_cells(self):
        """Memory and CPUs are counted on the cells that Nova chose, also in uneven parts."""
        uneven = {'hw:numa_cpus.0': '0-2', 'hw:numa_cpus.1': '3', 'hw:numa_mem.0': '192', 'hw:numa_mem.1': '64'}
        domains = self.compare(Flavor(TWO_CELLS, elements=('numatune/memnode',)), Flavor({**TWO_CELLS, **uneven}, vcpus=4, ram=256),
                               Flavor({**TWO_CELLS, **DEDICATED_CPUS, **uneven}, vcpus=4, ram=256))
        self.assertEqual([cell.get('memory') for cell in domains[1].findall('cpu/numa/cell')], ['196608', '65536'])

    def test_page_sizes(self):
        """Nova allocates the memory of huge pages as MEMORY_MB."""
        self.compare(*(Flavor({'hw:mem_page_size': size}) for size in ('small', 'any')),
                     *(Flavor({'hw:mem_page_size': size}, elements=('memoryBacking/hugepages',)) for size in ('large', '2048', '2MB')))

    def test_locked_memory(self):
        self.compare(Flavor({'hw:locked_memory': 'true', 'hw:mem_page_size': 'small'}, elements=('memoryBacking/locked',)))

    def test_topologies(self):
        """Sockets, cores and threads exist only inside the guest."""
        domains = self.compare(Flavor({'hw:cpu_sockets': '1', 'hw:cpu_cores': '2', 'hw:cpu_threads': '2'}, vcpus=4),
                               Flavor({'hw:max_cpu_sockets': '1', 'hw:max_cpu_cores': '4', 'hw:max_cpu_threads': '1'}, vcpus=4))
        self.assertEqual(domains[0].find('cpu/topology').attrib, {'sockets': '1', 'cores': '2', 'threads': '2'})

    def test_quotas(self):
        """Limits of the kernel's scheduler and of devices reserve nothing."""
        cpu = {'quota:cpu_shares': '2048', 'quota:cpu_period': '20000', 'quota:cpu_quota': '10000'}
        disk = {'quota:disk_%s_sec' % key: '10' for key in ('read_bytes', 'read_iops', 'write_bytes', 'write_iops')}
        total = {'quota:disk_%s_sec' % key: '10' for key in ('total_bytes', 'total_iops')}
        vif = {'quota:vif_%sbound_%s' % (way, key): '10' for way in ('in', 'out') for key in ('average', 'peak', 'burst')}
        self.compare(Flavor(cpu, elements=('cputune/shares',)), Flavor(disk), Flavor(total), Flavor(vif))

    def test_emulated_devices(self):
        """Devices that QEMU emulates, and switches of the domain, use no resource of the host."""
        self.compare(Flavor({'hw:boot_menu': 'true'}, elements=('os/bootmenu',)), Flavor({'hw:pmu': 'false'}, elements=('features/pmu',)),
                     Flavor({'hw:serial_port_count': '2'}), Flavor({'hw:watchdog_action': 'reset'}, elements=('devices/watchdog',)),
                     Flavor({'hw:vif_multiqueue_enabled': 'true'}), Flavor({'hw:hide_hypervisor_id': 'true'}),
                     Flavor({'hide_hypervisor_id': 'true'}),
                     Flavor({'hw_rng:allowed': 'true', 'hw_rng:rate_bytes': '10', 'hw_rng:rate_period': '1000'}, elements=('devices/rng',)),
                     Flavor({'hw_video:ram_max_mb': '16'}, image={'hw_video_ram': '8'}),
                     Flavor({'hw:viommu_model': 'intel'}, image={'hw_machine_type': 'q35'}, elements=('devices/iommu',)))
