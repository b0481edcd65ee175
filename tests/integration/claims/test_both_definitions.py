# SPDX-License-Identifier: LGPL-2.1-or-later
"""A running guest has two definitions, and a card has parts. No other claim gets a device of either definition or a part of a taken
card.

The live definition shows the devices of the guest now, and the persistent one those of its next start. A card that is taken whole
blocks its virtual functions and mdevs, and each of these blocks the card. The tests use a real libvirtd and no Placement.
"""

import json

from tests.env.agent import Agent
from tests.env.case import EnvCase
from tests.env.fakesys import Gpu, MdevType, Pci, simple_host, sriov
from tests.env.hosts import nodedev_name
from tests.env.libvirtd import address_xml, guest_xml, hostdev_xml
from tests.env.scratch import wait_until

MDEV_A, MDEV_B = '11111111-2222-4333-8444-555555555501', '11111111-2222-4333-8444-555555555502'
GPU_A, GPU_B = '0000:41:00.0', '0000:81:00.0'
PF, VFS = '0000:10:00.0', ['0000:10:01.0', '0000:10:01.1']
OTHER_PF, OTHER_VF = '0000:11:00.0', '0000:11:01.0'
NVME = '0000:05:00.0'
WHO = 'Guest running needs it for its next start, but has no claim of it.\n'
SPECS = [{'address': VFS[0], 'resource_class': 'CUSTOM_VF'}, {'address': VFS[1], 'resource_class': 'CUSTOM_VF'},
         {'address': OTHER_PF, 'product_id': '1572', 'resource_class': 'CUSTOM_PF'}, {'address': NVME, 'resource_class': 'CUSTOM_NVME'},
         {'address': GPU_A, 'resource_class': 'CUSTOM_GPU'}]


def host():
    """Returns a host with two GPUs of one mdev each, two network cards and an NVMe disk. GPU_A can also be allocated as a whole."""
    made = simple_host(cells=2)
    for address, mdev in ((GPU_A, MDEV_A), (GPU_B, MDEV_B)):
        made.gpus.append(Gpu(address, types={'nvidia-35': MdevType('GRID M10-0B', available=0, existing=[mdev])}))
    made.pci = [*sriov(PF, 2), *sriov(OTHER_PF, 1), Pci(NVME, 0, pci_class=0x010802, driver='nvme')]
    return made


def nvme_xml(address):
    """Returns a disk that is an NVMe namespace. QEMU uses the whole controller for it."""
    return ("<disk type='nvme' device='disk'><driver name='qemu' type='raw'/>"
            "<source type='pci' managed='yes' namespace='1'>%s</source><target dev='vda' bus='virtio'/></disk>"
            % address_xml(address))


class DefinitionCase(EnvCase):
    shared = ('scratch', 'libvirtd', 'bus')
    make_host = staticmethod(host)
    hook = False

    def setUp(self):
        self.addCleanup(self.libvirtd.delete_guests)

    def start_agent(self, **compute):
        """Starts an agent without a timer, so that the test requests every poll."""
        self.agent = Agent(self.scratch, bus=self.bus, uri=self.libvirtd.uri, options={
            'DEFAULT': {'update_resources_interval': 3600},
            'compute': compute,
            'hook': {'enabled': self.hook},
            'devices': {'enabled_mdev_types': 'nvidia-35'},
            'pci': {'device_spec': [json.dumps(spec) for spec in SPECS], 'report_in_placement': 'true'}})
        self.addCleanup(self.agent.stop)
        self.agent.start('standalone')
        wait_until(lambda: self.agent.status()['n_providers'] >= 7, 20, 'the providers of all devices')

    def virsh_device(self, verb, xml, *flags, name='running'):
        path = self.scratch.folder('edit') / 'device.xml'
        path.write_text(xml)
        self.libvirtd.virsh(verb, name, path, *flags)

    def devices(self, resources):
        """Returns the uuids and addresses of a claim's devices, or [] if the claim was rejected."""
        done = self.agent.claim(resources, check=False)
        self.words = done.stderr
        return [one['mdev'] or one['address'] for one in json.loads(done.stdout)['devices']] \
            if done.returncode == 0 else []

    def explain(self, resources):
        """Returns the reasons why a claim would not fit."""
        done = self.agent.ctl('explain', '--resources', resources, '--json=short', check=False)
        return ' '.join(one['text'] for one in json.loads(done.stdout)['providers'])

    def offer(self, device):
        """Returns the published total and reserved amounts of the provider of a device."""
        provider = next(one for one in self.agent.ctl_json('tree')['providers'] if one['name'].endswith('_' + device))
        record, = provider['inventories'].values()
        return record['total'], record['reserved']

    def who(self, device):
        done = self.agent.ctl('who', device, check=False)
        return done.returncode, done.stdout

    def claim_of(self, name):
        return next(one for one in self.agent.claims() if one['guest'] == name)

    def wait_for_claim(self, name):
        wait_until(lambda: any(one['guest'] == name for one in self.agent.claims()), 15, 'the claim of ' + name)


class TestRunning(DefinitionCase):
    """A guest without devices runs and has a claim. It gets devices for its next start."""

    def setUp(self):
        super().setUp()
        self.libvirtd.start_guest('running')
        self.start_agent()
        self.wait_for_claim('running')

    def test_an_mdev_for_the_next_start_is_not_given_away(self):
        self.virsh_device('attach-device', hostdev_xml(MDEV_A), '--config')
        self.assertEqual(self.devices('VGPU=1'), [MDEV_B])
        self.assertEqual(self.devices('VGPU=1'), [])
        self.assertIn('guests have 1', self.words)
        self.agent.ctl('sync')
        self.assertEqual(self.agent.problems(), [
            'guest running has mdev %s in its persistent definition, which its claim does not name' % MDEV_A])
        self.assertEqual(self.who(MDEV_A), (0, WHO))
        self.libvirtd.virsh('destroy', 'running')
        self.agent.ctl('sync')
        self.assertEqual(self.devices('VGPU=1'), [])

    def test_a_pci_device_for_the_next_start_is_not_given_away(self):
        self.virsh_device('attach-device', hostdev_xml(VFS[0]), '--config')
        self.assertEqual(self.devices('CUSTOM_VF=1'), VFS[1:])
        self.assertEqual(self.devices('CUSTOM_VF=1'), [])
        self.agent.ctl('sync')
        self.assertEqual(self.agent.problems(), [
            'guest running has PCI device %s in its persistent definition, which its claim does not name' % VFS[0]])
        for name in (VFS[0], nodedev_name(VFS[0])):
            self.assertEqual(self.who(name), (0, WHO))
            self.assertEqual(self.agent.ctl('drain', name, code=3).stdout, WHO)
        self.assertEqual(self.who(VFS[1])[0], 0)
        self.assertEqual(self.who(NVME)[0], 1)

    def test_a_device_that_is_detached_from_the_next_start_is_free(self):
        self.virsh_device('attach-device', hostdev_xml(NVME), '--config')
        self.assertEqual(self.devices('CUSTOM_NVME=1'), [])
        self.virsh_device('detach-device', hostdev_xml(NVME), '--config')
        self.assertEqual(self.devices('CUSTOM_NVME=1'), [NVME])

    def test_an_edit_is_seen_without_a_sync(self):
        """libvirt sends an event if a definition is replaced, as by "virsh edit"."""
        xml = self.libvirtd.virsh('dumpxml', 'running', '--inactive')
        self.libvirtd.define(xml.replace('</devices>', hostdev_xml(MDEV_A) + '</devices>'))
        wait_until(lambda: self.agent.problems(), 15, 'a problem')
        self.assertEqual(self.devices('VGPU=2'), [])

    def test_amounts_of_the_next_start_are_not_counted(self):
        self.libvirtd.virsh('setvcpus', 'running', '3', '--maximum', '--config')
        self.libvirtd.virsh('setmaxmem', 'running', '131072', '--config')
        self.agent.ctl('sync')
        self.assertEqual(self.agent.problems(), [])
        self.assertEqual(sum(one['resources'].get('VCPU', 0) for one in self.claim_of('running')['allocations']), 1)


class TestRunningWithHook(TestRunning):
    """Guests claim when they start. A guest that is off has no claim, and its devices still belong to it."""
    hook = True


class TestAdoption(DefinitionCase):
    def test_a_running_guest_is_adopted_with_the_devices_of_both_definitions(self):
        self.libvirtd.start_guest('running')
        self.virsh_device('attach-device', hostdev_xml(MDEV_A), '--config')
        self.virsh_device('attach-device', hostdev_xml(VFS[0]), '--config')
        self.start_agent()
        self.wait_for_claim('running')
        self.assertEqual({one['mdev'] or one['address'] for one in self.claim_of('running')['devices']},
                         {MDEV_A, VFS[0]})
        self.assertEqual(self.agent.problems(), [])
        self.assertEqual(self.devices('CUSTOM_VF=1'), VFS[1:])


class TestCpus(DefinitionCase):
    def test_a_dedicated_cpu_of_the_next_start_is_not_given_away(self):
        self.libvirtd.define(guest_xml('running', extra="<cputune><vcpupin vcpu='0' cpuset='0'/></cputune>"))
        self.libvirtd.virsh('start', 'running', timeout=90)
        self.start_agent(cpu_dedicated_set='1-2', cpu_shared_set='0,4-7')
        self.wait_for_claim('running')
        self.libvirtd.virsh('vcpupin', 'running', '0', '2', '--config')
        self.agent.ctl('sync')
        ask = ('PCPU=1,MEMORY_MB=16', None, '--numa-nodes', '1')
        self.assertEqual(self.agent.claim(*ask)['held'], '1')
        self.assertNotEqual(self.agent.claim(*ask, check=False).returncode, 0)


class TestNvme(DefinitionCase):
    def test_an_nvme_disk_is_a_pci_device(self):
        self.libvirtd.define(guest_xml('disk', extra='<devices>%s</devices>' % nvme_xml(NVME)))
        self.start_agent()
        self.wait_for_claim('disk')
        self.assertEqual([one['address'] for one in self.claim_of('disk')['devices']], [NVME])
        self.assertEqual(self.devices('CUSTOM_NVME=1'), [])


class TestParts(DefinitionCase):
    hook = True

    def start_with(self, device):
        self.libvirtd.define(guest_xml('off', devices=[device]))
        self.start_agent()

    def test_a_card_blocks_its_functions(self):
        self.start_with(PF)
        self.assertEqual(self.devices('CUSTOM_VF=1'), [])
        self.assertIn('2 blocked: a guest or claim has ' + PF, self.words)
        self.assertIn('2 blocked: a guest or claim has ' + PF, self.explain('CUSTOM_VF=1'))
        self.assertEqual(self.offer(PF), (2, 2))
        self.assertEqual(self.offer(OTHER_PF), (1, 0))
        self.assertIn('%s (blocked: a guest has %s)' % (PF, PF), self.agent.ctl('status', check=False).stdout)
        self.libvirtd.delete_guests()
        self.agent.ctl('sync')
        self.assertEqual(self.offer(PF), (2, 0))
        self.assertEqual(self.devices('CUSTOM_VF=1'), VFS[:1])
        journal = self.agent.log()
        self.assertIn('_%s is blocked: guest off has %s. Its 2 CUSTOM_VF are withheld.' % (PF, PF), journal)
        self.assertIn('_%s is not blocked any more' % PF, journal)

    def test_a_function_blocks_its_card(self):
        self.start_with(OTHER_VF)
        self.assertEqual(self.devices('CUSTOM_PF=1'), [])
        self.assertIn('a guest or claim has a part of ' + OTHER_PF, self.words)
        self.assertEqual(self.offer(OTHER_PF), (1, 1))
        self.assertEqual(self.offer(PF), (2, 0))

    def test_a_gpu_blocks_its_mdevs(self):
        self.start_with(GPU_A)
        self.assertEqual(self.devices('VGPU=1'), [MDEV_B])
        self.assertEqual(self.devices('VGPU=1'), [])
        self.assertIn('1 blocked: a guest or claim has ' + GPU_A, self.explain('VGPU=1'))
        self.assertEqual(self.offer(nodedev_name(GPU_A)), (1, 1))
        self.assertEqual(self.offer(GPU_A), (1, 0))

    def test_an_mdev_blocks_its_gpu(self):
        self.start_with(MDEV_A)
        self.assertEqual(self.devices('CUSTOM_GPU=1'), [])
        self.assertIn('a guest or claim has a part of ' + GPU_A, self.words)
        self.assertEqual(self.offer(nodedev_name(GPU_A)), (1, 0))
        self.assertEqual(self.offer(GPU_A), (1, 1))

    def test_one_claim_does_not_get_a_gpu_and_its_mdev(self):
        self.start_with(MDEV_B)
        self.assertEqual(self.devices('VGPU=1,CUSTOM_GPU=1'), [])
        self.assertEqual(self.devices('CUSTOM_GPU=1'), [GPU_A])
        self.assertEqual(self.devices('VGPU=1'), [])
