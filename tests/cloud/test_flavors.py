# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each flavour that boots on plain Nova boots with the agent below it, in each form of [compute] numa_in_placement."""

import uuid
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from tests.cloud.case import FLAVOR, CloudCase
from tests.env.hosts import Pci, simple_host

MDEVS = ['8b6d7b0a-5f6e-4a52-9c53-0d7f2f6d6c0%d' % i for i in range(2)]
CARD = '0000:81:00.0'
SHARED, DEDICATED = '0,1,4,5', '2,3,6,7'
BOTH = {'compute': {'cpu_shared_set': SHARED, 'cpu_dedicated_set': DEDICATED},
        'devices': {'enabled_mdev_types': 'nvidia-35'},
        'pci': {'device_spec': '{"vendor_id": "10de", "product_id": "1eb8"}'}}
FILTERS = ('ComputeFilter, ComputeCapabilitiesFilter, ImagePropertiesFilter, SameHostFilter, NUMATopologyFilter, '
           'PciPassthroughFilter')


def overcommit_hugepages(test, count):
    """Allows count overcommitted pages of 2 MiB until the end of the test. Guests need real pages, because those of the host are
    artificial."""
    path = Path('/proc/sys/vm/nr_overcommit_hugepages')
    before = path.read_text()
    test.addCleanup(path.write_text, before)
    path.write_text(str(max(count, int(before))))


class TestFlavors(CloudCase):
    """Two cells, a vGPU card in the first cell, and a card for passthrough in the second.

    in_placement: the value of Nova's [pci] report_in_placement, with which Placement has the latter card.
    """

    form = 'false'
    disk = 0
    in_placement = False

    @classmethod
    def setUpClass(cls):
        pci = {'report_in_placement': cls.in_placement}
        cls.agent_options = {**BOTH, 'compute': {**BOTH['compute'], 'numa_in_placement': cls.form},
                             'pci': {**BOTH['pci'], **pci}}
        cls.nova_options = {**BOTH, 'workarounds': {'disable_fallback_pcpu_query': True},
                            'filter_scheduler': {'enabled_filters': FILTERS, 'pci_in_placement': cls.in_placement},
                            'pci': {**BOTH['pci'], **pci, 'alias': '{"vendor_id": "10de", "product_id": "1eb8", "name": "card"}'}}
        super().setUpClass()

    @classmethod
    def make_host(cls, name):
        host = simple_host(cells=2, gpus=1, name=name)
        host.gpus[0].types['nvidia-35'].existing = MDEVS  # Nova takes these: the kernel makes none here
        host.pci = [Pci(CARD, 1, 0x10de, 0x1eb8, 0x030200, 'vfio-pci')]
        return host

    def findings(self, host):
        """Omits the findings that Nova's scheduler causes. It ignores cells, so it allocates a class from any cell, and it requests
        no hugepages."""
        return [finding for finding in super().findings(host) if self.form == 'false' or
                (finding['type'] != 'provider' and not (finding['type'] == 'amount' and 'CUSTOM_HUGEPAGES' in finding['text']))]

    def goes(self, amounts, vcpus=1, ram=64, more=None, name=None, **extra):
        """Boots a server of a new flavour and reboots it, which makes a new domain. The four sources agree each time. Returns the
        domain.

        more: additional amounts of the claim. name: the name of the flavour, by default that of the test.
        """
        wanted = {'MEMORY_MB': ram, **({'DISK_GB': self.disk} if self.disk else {}), **amounts}
        name = name or self.id().rpartition('.')[2]
        self.cloud.flavor(name, vcpus, ram, self.disk, extra)
        server = self.boot(flavor=name)
        self.agree({server: (self.host, wanted, more or {})})
        self.cloud.act(server, 'reboot', {'type': 'HARD'}, 'ACTIVE')
        self.agree({server: (self.host, wanted, more or {})})
        return ElementTree.fromstring(self.host.libvirtd.virsh('dumpxml', server))

    def no_host(self, flavor):
        """Checks that no host has capacity for a server of this flavour."""
        server = self.cloud.create('vm', flavor)
        self.assertIn('No valid host', self.cloud.wait_status(server, 'ERROR')['fault']['message'])
        self.cloud.delete(server)

    def test_traits(self):
        self.cloud.placement.request('PUT', '/traits/CUSTOM_GOLD')
        self.goes({'VCPU': 1}, **{'trait:COMPUTE_NODE': 'required', 'trait:CUSTOM_GOLD': 'forbidden'})
        for trait, word in (('COMPUTE_NODE', 'forbidden'), ('CUSTOM_GOLD', 'required')):
            self.cloud.flavor(trait, extra={'trait:' + trait: word})
            self.no_host(trait)

    def test_dedicated_cpu(self):
        domain = self.goes({'PCPU': 1}, **{'hw:cpu_policy': 'dedicated'})
        self.assertIn(domain.find('cputune/vcpupin').get('cpuset'), DEDICATED.split(','))

    def test_mixed_cpus(self):
        self.goes({'VCPU': 1, 'PCPU': 1}, vcpus=2, **{'hw:cpu_policy': 'mixed', 'hw:cpu_dedicated_mask': '1'})

    def test_two_cells(self):
        domain = self.goes({'VCPU': 2}, vcpus=2, ram=128, **{'hw:numa_nodes': '2'})
        self.assertEqual(len(domain.findall('numatune/memnode')), 2)

    def test_dedicated_cpus_of_two_cells(self):
        self.goes({'PCPU': 2}, vcpus=2, ram=128, **{'hw:numa_nodes': '2', 'hw:cpu_policy': 'dedicated'})

    def test_more_dedicated_cpus_than_a_cell_has(self):
        self.goes({'PCPU': 4}, vcpus=4, ram=128, **{'hw:numa_nodes': '2', 'hw:cpu_policy': 'dedicated'})

    def test_hugepages(self):
        """Nova's scheduler requests only memory from Placement. The claim has the pages if cells offer them."""
        overcommit_hugepages(self, 64)
        more = {} if self.form == 'false' else {'CUSTOM_HUGEPAGES_2M': 32}
        domain = self.goes({'VCPU': 1}, more=more, **{'hw:mem_page_size': '2048'})
        self.assertEqual(domain.find('memoryBacking/hugepages/page').get('size'), '2048')

    def test_vgpu(self):
        domain = self.goes({'VCPU': 1, 'VGPU': 1}, **{'resources:VGPU': '1'})
        self.assertIn(domain.find('devices/hostdev/source/address').get('uuid'), MDEVS)

    def test_passed_through(self):
        card = {'CUSTOM_PCI_10DE_1EB8': 1} if self.in_placement else {}
        domain = self.goes({'VCPU': 1, **card}, **{'pci_passthrough:alias': 'card:1'})
        self.assertEqual(domain.find('devices/hostdev/source/address').get('bus'), '0x81')


    def test_pci_affinity(self):
        """The card is in the second cell. So the CPU of the guest is there too, unless the policy allows another cell."""
        card = {'CUSTOM_PCI_10DE_1EB8': 1} if self.in_placement else {}
        for policy in ('required', 'preferred', 'legacy', 'socket'):
            with self.subTest(policy):
                domain = self.goes({'VCPU': 1, **card}, name=policy, **{'pci_passthrough:alias': 'card:1', 'hw:numa_nodes': '1',
                                                           'hw:pci_numa_affinity_policy': policy})
                self.assertEqual(domain.find('devices/hostdev/source/address').get('bus'), '0x81')
                if policy == 'required':
                    self.assertEqual(domain.find('numatune/memnode').get('nodeset'), '1')
                self.cloud.delete(domain.find('uuid').text)
                self.agree({})


class TestFlavorsWithCells(TestFlavors):
    form = 'root'
    in_placement = True

    def test_more_dedicated_cpus_than_a_cell_has(self):
        """Nova's scheduler requests all PCPU from one provider."""
        self.cloud.flavor('wide', 4, 128, extra={'hw:numa_nodes': '2', 'hw:cpu_policy': 'dedicated'})
        self.no_host('wide')


class TestFlavorsInCells(TestFlavorsWithCells):
    """Nova's scheduler selects a host only if the request needs its root. The disk of the flavour does."""

    form = 'true'
    disk = 1


class TestSharedStorage(CloudCase):
    """The disks of guests are in a pool of another tree in Placement, which several hosts share."""

    agent_options = {'DEFAULT': {'instances_path': '/nowhere'}}  # the host itself has no DISK_GB

    def setUp(self):
        super().setUp()
        placement, aggregate = self.cloud.placement, str(uuid.uuid4())
        self.pool = placement.make_provider('pool', {'DISK_GB': 100}, traits=['MISC_SHARES_VIA_AGGREGATE'])
        for provider in (self.pool, self.host.agent.root()):
            placement.set_part(provider, 'aggregates', [aggregate])

    def test_a_disk_in_a_shared_pool(self):
        self.cloud.flavor('disk', FLAVOR['VCPU'], FLAVOR['MEMORY_MB'], 1)
        server = self.boot(flavor='disk')
        for act in (lambda: None, lambda: self.cloud.act(server, 'reboot', {'type': 'HARD'}, 'ACTIVE')):
            act()
            self.agree({server: (self.host, FLAVOR)})
            self.assertEqual(self.cloud.placement.held(server)[self.pool], {'DISK_GB': 1})
