# SPDX-License-Identifier: LGPL-2.1-or-later
"""Guests with a layout: NUMA cells, dedicated CPUs, huge pages and PCI devices, from the request to a running guest and its end
(facts C9, F7)."""

import json
import uuid
from xml.etree import ElementTree

from tests.env.hosts import Cell, Gpu, Host, Pci
from tests.env.libvirtd import guest_xml
from tests.env.fakesys import m10_types
from tests.env.scratch import wait_until
from tests.integration.agent.test_agent import AgentCase

SPEC = '{"vendor_id": "8086", "product_id": "1572", "resource_class": "CUSTOM_NIC"}'


def two_cells():
    """Returns a host with CPUs 0-3 and 4-7, two threads in each core, huge pages, a GPU on cell 1, and a card on each cell."""
    return Host(name='laid', cells=[Cell(0, [0, 1, 2, 3], 2 << 20, {2048: 128}, threads=2),
                                    Cell(1, [4, 5, 6, 7], 2 << 20, {2048: 128}, threads=2)],
                gpus=[Gpu('0000:41:00.0', numa_node=1, types=m10_types())],
                pci=[Pci('0000:05:00.0', numa_node=1), Pci('0000:06:00.0', numa_node=0)])


def machine():
    """Returns a host with two CPUs and a cell. Every machine that runs the tests has these, so a guest can start there."""
    return Host(name='laid', cells=[Cell(0, [0, 1], 2 << 20)])


class LayoutCase(AgentCase):
    shared = ()
    make_host = staticmethod(two_cells)
    options = {'compute': {'cpu_shared_set': '0,4', 'cpu_dedicated_set': '1-3,5-7'},
               'pci': {'device_spec': SPEC, 'report_in_placement': 'true'}}

    def start(self, **compute):
        options = {section: dict(keys) for section, keys in self.options.items()}
        options.setdefault('compute', {}).update(compute)
        return self.start_agent(options)

    def claim(self, agent, resources, *more, check=True):
        return agent.claim(resources, None, *more, check=check)

    def define(self, agent, claim, name='g'):
        """Defines a domain from the output of --xml. Elements of guest_xml() that this output replaces are removed."""
        xml = agent.ctl('show', claim['id'], '--xml').stdout
        before, _, devices = xml.partition('<!-- insert into <devices>: -->')
        text = guest_xml(name, uuid=claim['consumer'], extra='%s<devices>%s</devices>'
                         % (before, devices))
        domain = ElementTree.fromstring(text)
        for tag in ('memory', 'vcpu'):
            if len(domain.findall(tag)) > 1:
                domain.remove(domain.find(tag))
        self.libvirtd.define(ElementTree.tostring(domain, encoding='unicode'))


class TestLayout(LayoutCase):
    def test_a_guest_with_all_of_it_agrees_with_its_claim(self):
        agent = self.start()
        claim = self.claim(agent, 'VCPU=4,MEMORY_MB=256', '--group', '1:VGPU=1', '--group',
                           '2:CUSTOM_NIC=1', '--numa-nodes', '2', '--cpu-policy', 'mixed',
                           '--cpu-dedicated-mask', '1,3', '--mem-page-size', '2M',
                           '--pci-numa-affinity-policy', 'required')
        self.assertEqual([(cell['cell'], cell['memory_mb'], cell['page_kib'], cell['vcpus'])
                          for cell in claim['cells']], [(0, 128, 2048, '0-1'), (1, 128, 2048, '2-3')])
        self.assertEqual({cell['host_cell'] for cell in claim['cells']}, {0, 1})
        for cpu in claim['cpus']:
            cell = claim['cells'][cpu['vcpu'] // 2]['host_cell']
            self.assertEqual(cpu['dedicated'], cpu['vcpu'] in (1, 3))
            self.assertIn(int(cpu['cpus']), ({1: 1, 2: 1, 3: 1} if cpu['dedicated'] else {0: 1})
                          if cell == 0 else ({5: 1, 6: 1, 7: 1} if cpu['dedicated'] else {4: 1}))
        nic = [device for device in claim['devices'] if not device['mdev']][0]
        self.assertIn(nic['address'], ('0000:05:00.0', '0000:06:00.0'))
        shown = agent.ctl_json('show', claim['id'])
        self.assertEqual((shown['cells'], shown['cpus']), (claim['cells'], claim['cpus']))

        self.define(agent, claim)
        agent.ctl('confirm', claim['id'])
        agent.ctl('sync')
        mdev = [device['mdev'] for device in claim['devices'] if device['mdev']][0]
        # The only problem is that the mdev does not exist.
        self.assertEqual([text for text in agent.problems() if mdev not in text], [])

        for what in ('cell:0', 'cell:1', 'cpu:%s' % claim['cpus'][1]['cpus'], nic['address']):
            found = agent.ctl_json('who', what)['claims']
            self.assertEqual([one['id'] for one in found], [claim['id']], what)
        self.assertEqual(agent.ctl('who', 'cell:7', check=False).returncode, 1)

        # An operator pins a CPU elsewhere. The agent lists this and changes nothing.
        text = self.libvirtd.virsh('dumpxml', 'g')
        pin = "<vcpupin vcpu='1' cpuset='%s'/>"
        self.assertIn(pin % claim['cpus'][1]['cpus'], text)
        self.libvirtd.define(text.replace(pin % claim['cpus'][1]['cpus'], pin % '0-7'))
        agent.ctl('sync')
        self.assertTrue(any('runs on host CPUs 0-7' in text for text in agent.problems()),
                        agent.problems())

    def test_dedicated_cpus_are_given_once_and_come_back(self):
        agent = self.start()
        first = self.claim(agent, 'PCPU=3', '--cpu-thread-policy', 'prefer')
        second = self.claim(agent, 'PCPU=3')
        given = [cpu['cpus'] for claim in (first, second) for cpu in claim['cpus']]
        self.assertEqual(sorted(given), ['1', '2', '3', '5', '6', '7'])
        done = self.claim(agent, 'PCPU=1', check=False)
        self.assertEqual(done.returncode, 1)
        done = agent.ctl('explain', '--resources', 'VCPU=1', '--cpu-policy', 'dedicated',
                         '--json=short', check=False)
        verdicts = [one for one in json.loads(done.stdout)['providers'] if one['group'] == 'cell 0']
        self.assertEqual([(one['term'], one['missing']) for one in verdicts],
                         [('pcpus', 1), ('pcpus', 1)])
        agent.ctl('release', first['id'])
        again = self.claim(agent, 'PCPU=3')
        self.assertEqual(again['cpus'], first['cpus'])

    def test_cells_as_providers_hold_what_is_in_them(self):
        agent = self.start(numa_in_placement='true')
        claim = self.claim(agent, 'VCPU=2,MEMORY_MB=128', '--numa-nodes', '2', '--mem-page-size',
                           '2048')
        held = {one['name']: one['resources'] for one in claim['allocations']}
        amounts = {'VCPU': 1, 'MEMORY_MB': 64, 'CUSTOM_HUGEPAGES_2M': 32}
        self.assertEqual(held, {'laid_NUMA0': amounts, 'laid_NUMA1': amounts})
        near = self.claim(agent, 'PCPU=1,VGPU=1', '--pci-numa-affinity-policy', 'required')
        self.assertEqual(near['cells'][0]['host_cell'], 1)

    def test_a_placed_layout_respects_the_ratio_and_avoids_gpu_cells(self):
        """Each cell has one shared CPU with a ratio of four. Cell 1 has the GPU."""
        agent = self.start()
        root = agent.root()
        cells = []
        for _ in range(5):
            vm = self.placement.place(None, {root: {'VCPU': 1, 'MEMORY_MB': 64}})
            claim = agent.claim('VCPU=1,MEMORY_MB=64', vm, '--numa-nodes', '1')
            cells.append(claim['cells'][0]['host_cell'])
        self.assertEqual(cells, [0, 0, 0, 0, 1])

    def float_guests(self, n, vcpus, memory_mib, cpuset):
        """Defines guests without a topology, as Nova writes them if cpu_shared_set is set."""
        for i in range(n):
            text = guest_xml('floats%d' % i, memory_mib=memory_mib, vcpus=vcpus)
            plain = '<vcpu>%d</vcpu>' % vcpus
            self.assertIn(plain, text)
            self.libvirtd.define(text.replace(plain, "<vcpu placement='static' cpuset='%s'>%d</vcpu>"
                                              % (cpuset, vcpus)))

    def test_guests_that_float_over_cells_are_counted_on_none(self):
        self.float_guests(3, 2, 600, '0,4')
        agent = self.start()
        wait_until(lambda: len(agent.claims()) == 3, 20, 'three claims')
        for claim in agent.claims():
            shown = agent.ctl_json('show', claim['id'])
            self.assertEqual((shown['cells'], shown['cpus']), ([], []))
        # If the guests were counted on cell 0, the second claim would find no memory there and the first no CPU.
        for words in (('PCPU=3,MEMORY_MB=248', '--numa-nodes', '1'),
                      ('VCPU=1,MEMORY_MB=1500', '--numa-nodes', '1')):
            claim = self.claim(agent, *words)
            self.assertEqual([cell['host_cell'] for cell in claim['cells']], [0])
        self.assertEqual(agent.problems(), [])

    def test_guests_that_float_over_cells_as_providers_are_where_there_is_room(self):
        self.float_guests(3, 2, 600, '0,4')
        agent = self.start(numa_in_placement='true')
        wait_until(lambda: len(agent.claims()) == 3, 20, 'three claims')
        agent.ctl('sync')
        for name, provider in self.placement.tree_by_name(agent.root()).items():
            usages = self.placement.get('/resource_providers/%s/usages' % provider['uuid'])
            for resource_class, used in usages['usages'].items():
                record = provider['inventories'][resource_class]
                room = (record['total'] - record['reserved']) * record['allocation_ratio']
                self.assertLessEqual(used, room, (name, resource_class))
        self.assertEqual(agent.problems(), [])

    def test_requests_that_make_no_sense_are_refused_in_words(self):
        agent = self.start()
        for words, more in (('divided evenly', ('--numa-nodes', '2')),
                            ('not "often"', ('--cpu-policy', 'often')),
                            ('requires dedicated CPUs', ('--cpu-thread-policy', 'isolate')),
                            ('not "0"', ('--mem-page-size', '0')),
                            ('must begin with 0:', ('--numa-cpus', '1:0-2')),
                            ('is not a group', ('--same-subtree', 'a,b')),
                            ('uuid', ('--in-tree', 'here'))):
            done = self.claim(agent, 'VCPU=3,MEMORY_MB=64', *more, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(words, done.stderr)
        self.assertEqual(agent.claims(), [])

    def test_guests_that_were_there_first_keep_their_cells_and_cpus(self):
        vm = str(uuid.uuid4())
        self.libvirtd.define(guest_xml('first', memory_mib=64, vcpus=2, uuid=vm, extra='''
            <cputune><vcpupin vcpu='0' cpuset='5'/><vcpupin vcpu='1' cpuset='6'/></cputune>
            <numatune><memory mode='strict' nodeset='1'/></numatune>
            <memoryBacking><hugepages><page size='2048' unit='KiB'/></hugepages></memoryBacking>
            <devices><hostdev mode='subsystem' type='pci' managed='yes'><source>
            <address domain='0' bus='5' slot='0' function='0'/></source></hostdev></devices>'''))
        agent = self.start()
        wait_until(lambda: agent.claims(), 20, 'a claim')
        claim, = agent.ctl_json('who', vm)['claims']
        self.assertEqual(claim['cells'], [{'cell': 0, 'host_cell': 1, 'memory_mb': 64,
                                           'page_kib': 2048, 'vcpus': '0-1'}])
        self.assertEqual([cpu['cpus'] for cpu in claim['cpus']], ['5', '6'])
        self.assertEqual([device['address'] for device in claim['devices']], ['0000:05:00.0'])
        held = {}
        for one in claim['allocations']:
            held.update(one['resources'])
        self.assertEqual(held, {'PCPU': 2, 'MEMORY_MB': 64, 'CUSTOM_NIC': 1})
        self.assertEqual(agent.problems(), [])
        other = self.claim(agent, 'PCPU=1,CUSTOM_NIC=1')
        self.assertNotIn(other['cpus'][0]['cpus'], ('5', '6'))
        self.assertEqual(other['devices'][0]['address'], '0000:06:00.0')


class TestRunning(LayoutCase):
    make_host = staticmethod(machine)
    options = {'compute': {'cpu_shared_set': '0', 'cpu_dedicated_set': '1'}}

    def test_a_guest_starts_with_what_xml_prints(self):
        agent = self.start()
        claim = self.claim(agent, 'PCPU=1,MEMORY_MB=32', '--numa-nodes', '1')
        self.define(agent, claim)
        self.addCleanup(self.libvirtd.destroy_guests)
        self.libvirtd.virsh('start', 'g')
        agent.ctl('confirm', claim['id'])
        agent.ctl('sync')
        self.assertEqual(agent.problems(), [])
        self.assertIn("cpuset='1'", self.libvirtd.virsh('dumpxml', 'g'))
        self.libvirtd.virsh('vcpupin', 'g', '0', '0', '--live')
        wait_until(lambda: agent.problems(), 30, 'what disagrees')
        self.assertIn('CPU 0 of guest g runs on host CPUs 0, but its claim has 1',
                      agent.problems())
        self.libvirtd.virsh('destroy', 'g')
        agent.ctl('sync')
        found, = agent.ctl_json('who', 'cpu:1')['claims']
        self.assertEqual(found['state'], 'confirmed')
