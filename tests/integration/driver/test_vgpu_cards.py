# SPDX-License-Identifier: LGPL-2.1-or-later
"""vGPUs that are virtual functions: one provider for each card, claims of functions, and the reshape of hosts on which each
function had a provider."""

import uuid

from tests.env.agent import Agent
from tests.env.case import EnvCase
from tests.env.hosts import recorded_cells, recorded_host
from tests.env.scratch import wait_until

CARD = '0000:c1:00.0'
SMALL = ('nvidia-1428', 'NVIDIA L40S-2Q')
WHOLE = ('nvidia-1436', 'NVIDIA L40S-48Q')
BOTH_TYPES = {'devices': {'enabled_mdev_types': 'nvidia-1428,nvidia-1436'},
              'mdev_nvidia-1428': {'device_addresses': CARD, 'mdev_class': 'CUSTOM_L40S_2Q'},
              'mdev_nvidia-1436': {'device_addresses': CARD, 'mdev_class': 'CUSTOM_L40S_48Q'}}


def card():
    return {'name': 'pci_0000_c1_00_0', 'is_pci': True, 'address': CARD, 'numa_node': 0, 'driver': 'nvidia', 'vendor_id': 0x10de,
            'product_id': 0x26b9, 'class_code': 0x030200, 'is_physical_function': True, 'max_virtual_functions': 32}


def function(n, types=(SMALL, WHOLE), current=None):
    """A virtual function that lists the types. With current it is a vGPU of that type, and lists no type."""
    listed = [{'id': current, 'name': '', 'available_instances': 0, 'created_instances': 1}] if current else [
        {'id': name, 'name': words, 'available_instances': 1} for name, words in types]
    return {'name': 'pci_0000_c1_%02x_%d' % (1 + n // 8, n % 8), 'is_pci': True, 'address': '0000:c1:%02x.%d' % (1 + n // 8, n % 8),
            'numa_node': 0, 'driver': 'nvidia', 'vendor_id': 0x10de, 'product_id': 0x26b9, 'class_code': 0x030200,
            'physical_function': CARD, 'is_vgpu_function': True, 'mdev_types': listed}


def host(name, functions):
    return recorded_host(name, cells=recorded_cells(1), devices=[card()] + functions)


class CardCase(EnvCase):
    shared = ('placement', 'bus')

    def setUp(self):
        self.name = 'gpu-host-%s' % uuid.uuid4().hex[:8]

    def make_agent(self, functions, options):
        return Agent(self.scratch, bus=self.bus, placement=self.placement, host=host(self.name, functions), options=options)

    def start(self, functions, options, state='synced'):
        agent = self.make_agent(functions, options)
        agent.start(state)
        return agent

    def tree(self, agent):
        """The providers of vGPUs in Placement: {end of the name: {class: (total, reserved, max_unit)}}."""
        found = {}
        for name, provider in self.placement.tree_by_name(agent.root()).items():
            amounts = {of: (record['total'], record['reserved'], record['max_unit'])
                       for of, record in provider['inventories'].items() if of not in ('VCPU', 'MEMORY_MB', 'DISK_GB')}
            if amounts:
                found[name.removeprefix(self.name + '_')] = amounts
        return found

    def wait_tree(self, agent, expected):
        wait_until(lambda: self.tree(agent) == {'pci_0000_c1_00_0': expected}, 30,
                   'the tree %s' % expected)


class TestProviders(CardCase):
    def test_a_card_of_48_gib_is_one_provider(self):
        for enabled, total in (('nvidia-1436', 1), ('nvidia-1428', 24)):
            with self.subTest(enabled):
                self.setUp()
                agent = self.start([function(n) for n in range(32)], {'devices': {'enabled_mdev_types': enabled}})
                self.assertEqual(self.tree(agent), {'pci_0000_c1_00_0': {'VGPU': (total, 0, total)}})
                claims = [agent.claim('VGPU=1', check=False).returncode for _ in range(total + 1)]
                self.assertEqual(claims, [0] * total + [1])
                agent.release_all()
                agent.stop()

    def test_a_claim_of_one_type_reserves_the_others(self):
        agent = self.start([function(n) for n in range(32)], BOTH_TYPES)
        self.assertEqual(self.tree(agent), {'pci_0000_c1_00_0': {'CUSTOM_L40S_2Q': (24, 0, 24), 'CUSTOM_L40S_48Q': (1, 0, 1)}})
        agent.claim('CUSTOM_L40S_2Q=2')
        self.wait_tree(agent, {'CUSTOM_L40S_2Q': (24, 0, 24), 'CUSTOM_L40S_48Q': (1, 1, 1)})
        done = agent.claim('CUSTOM_L40S_48Q=1', check=False)
        self.assertIn('a part of 0000:c1:00.0', done.stderr)
        agent.release_all()
        self.wait_tree(agent, {'CUSTOM_L40S_2Q': (24, 0, 24), 'CUSTOM_L40S_48Q': (1, 0, 1)})
        agent.claim('CUSTOM_L40S_48Q=1')
        self.wait_tree(agent, {'CUSTOM_L40S_2Q': (24, 24, 1), 'CUSTOM_L40S_48Q': (1, 0, 1)})
        agent.release_all()
        self.wait_tree(agent, {'CUSTOM_L40S_2Q': (24, 0, 24), 'CUSTOM_L40S_48Q': (1, 0, 1)})

    def test_the_size_of_a_card_in_use_is_remembered(self):
        options = {'devices': {'enabled_mdev_types': 'nvidia-1428'}}
        agent = self.start([function(n) for n in range(32)], options)
        agent.stop()
        agent.record(host(self.name, [function(0, current='nvidia-1428')] + [function(n, types=(SMALL,)) for n in range(1, 32)]))
        agent.start('synced')
        self.assertEqual(self.tree(agent), {'pci_0000_c1_00_0': {'VGPU': (24, 0, 24)}})
        # Without the file, a card in use proves the vGPUs that it has and lists.
        agent.stop()
        (agent.state / 'devices.json').unlink()
        agent.start('synced')
        self.assertEqual(self.tree(agent), {'pci_0000_c1_00_0': {'VGPU': (2, 0, 2)}})

    def test_a_full_card_stays(self):
        agent = self.start([function(n) for n in range(2)], {'devices': {'enabled_mdev_types': 'nvidia-1436'}})
        agent.record(host(self.name, [function(0, current='nvidia-1436'), function(1, types=())]))
        agent.ctl('sync')
        self.assertEqual(self.tree(agent), {'pci_0000_c1_00_0': {'VGPU': (1, 0, 1)}})
        # Another program made a vGPU of another type.
        agent.record(host(self.name, [function(0, current='nvidia-1428'), function(1, types=(SMALL,))]))
        agent.ctl('sync')
        self.assertEqual(self.tree(agent), {'pci_0000_c1_00_0': {'VGPU': (1, 1, 1)}})


    def test_a_missing_card_without_its_provider(self):
        """Another writer deletes the provider of a card that is withheld. The agent makes it again."""
        agent = self.start([function(n) for n in range(4)],
                           {'devices': {'enabled_mdev_types': 'nvidia-1428'}, 'agent': {'device_hold_sec': 1}})
        agent.record(host(self.name, []))
        agent.ctl('sync', check=False)
        self.wait_tree(agent, {'VGPU': (4, 4, 4)})
        provider = self.placement.tree_by_name(agent.root())[self.name + '_pci_0000_c1_00_0']['uuid']
        self.placement.api('DELETE', '/resource_providers/' + provider)
        agent.ctl('sync', check=False)
        self.wait_tree(agent, {'VGPU': (4, 4, 4)})
        agent.record(host(self.name, [function(n) for n in range(4)]))
        agent.ctl('sync', check=False)
        self.wait_tree(agent, {'VGPU': (4, 0, 4)})


class TestClaims(CardCase):
    def test_a_claim_names_function_and_type(self):
        agent = self.start([function(n) for n in range(4)], {'devices': {'enabled_mdev_types': 'nvidia-1428'}})
        consumer = str(uuid.uuid4())
        agent.claim('VCPU=1', consumer, '--group', 'g:VGPU=2')
        devices = agent.ctl_json('show', 1)['devices']
        self.assertEqual([(device['address'], device['mdev_type']) for device in devices],
                         [('0000:c1:01.0', 'nvidia-1428'), ('0000:c1:01.1', 'nvidia-1428')])
        xml = agent.ctl('show', 1, '--xml').stdout
        self.assertEqual(xml.count("type='pci' managed='no'"), 2)
        self.assertIn("bus='0xc1' slot='0x01' function='0x1'", xml)
        for word in ('0000:c1:01.1', '0000:c1:00.0', 'pci_0000_c1_00_0'):
            self.assertIn(consumer, agent.ctl('who', word).stdout, word)
            self.assertEqual(agent.ctl('drain', word, check=False).returncode, 3, word)
            self.assertIn('claimed', agent.ctl('history', word).stdout, word)
        # The hardware has another type than the claim.
        agent.record(host(self.name, [function(0, current='nvidia-1436')] + [function(n, types=()) for n in range(1, 4)]))
        agent.ctl('sync')
        wait_until(lambda: [text for text in agent.problems()
                            if 'function 0000:c1:01.0 has the vGPU type nvidia-1436, but claim 1 has type nvidia-1428' in text],
                   20, 'the problem')

    def test_a_cordoned_card_offers_no_type(self):
        agent = self.start([function(n) for n in range(32)], BOTH_TYPES)
        agent.ctl('cordon', '0000:c1:00.0')
        self.wait_tree(agent, {'CUSTOM_L40S_2Q': (24, 24, 24), 'CUSTOM_L40S_48Q': (1, 1, 1)})
        self.assertEqual(agent.claim('CUSTOM_L40S_2Q=1', check=False).returncode, 1)
        agent.ctl('uncordon', '0000:c1:00.0')
        self.wait_tree(agent, {'CUSTOM_L40S_2Q': (24, 0, 24), 'CUSTOM_L40S_48Q': (1, 0, 1)})
        agent.claim('CUSTOM_L40S_2Q=1')

    def test_functions_of_device_spec_need_a_type(self):
        spec = '{"vendor_id": "10de", "address": "*:c1:01.*", "resource_class": "CUSTOM_GPU"}'
        agent = self.start([function(0, current='nvidia-1428'), function(1), function(2, current='nvidia-1428')],
                           {'pci': {'device_spec': spec, 'report_in_placement': 'true'}})
        self.assertEqual(self.tree(agent), {'0000:C1:00.0': {'CUSTOM_GPU': (2, 0, 2)}})
        agent.claim('CUSTOM_GPU=2')
        self.assertEqual({device['address'] for device in agent.ctl_json('show', 1)['devices']},
                         {'0000:c1:01.0', '0000:c1:01.2'})
        agent.record(host(self.name, [function(0, current='nvidia-1428'), function(1), function(2, current='nvidia-1436')]))
        agent.ctl('sync')
        doctor = agent.ctl('doctor', '--config', agent.config, '--hardware-only', '--all', check=False).stdout
        self.assertIn('The function 0000:c1:01.1 has no vGPU type', doctor)
        self.assertIn('has the vGPU type nvidia-14', doctor)


class TestReshape(CardCase):
    def test_a_host_of_the_older_shape(self):
        """Version 0.2.0 had a provider for each function. Its allocations move to the provider of the card, and back by an undo."""
        options = {'devices': {'enabled_mdev_types': 'nvidia-1428'}}
        agent = self.start([], {})
        root = agent.root()
        agent.stop()
        old = [self.placement.make_provider('%s_pci_0000_c1_01_%d' % (self.name, n), {'VGPU': {'total': 1, 'max_unit': 1}}, root,
                                            ('OWNER_NOVA',))
               for n in range(4)]
        consumers = [str(uuid.uuid4()) for _ in range(2)]
        for consumer, provider in zip(consumers, old):
            self.placement.place(consumer, {provider: {'VGPU': 1}, root: {'VCPU': 1}})
        agent.configure(options)
        agent.record(host(self.name, [function(n) for n in range(4)]))
        agent.start('synced')
        self.assertEqual(self.tree(agent), {'pci_0000_c1_00_0': {'VGPU': (4, 0, 4)}})
        card_uuid = next(uuid for uuid, provider in self.placement.tree(root).items()
                         if provider['name'] == self.name + '_pci_0000_c1_00_0')
        for consumer in consumers:
            self.assertEqual(self.placement.held(consumer), {card_uuid: {'VGPU': 1}, root: {'VCPU': 1}})
        # An undo returns each allocation to the function that it was on, and a second reshape has the same result.
        agent.ctl('reshape', '--undo')
        for consumer, provider in zip(consumers, old):
            self.assertEqual(self.placement.held(consumer), {provider: {'VGPU': 1}, root: {'VCPU': 1}})
        self.assertEqual(self.tree(agent), {'pci_0000_c1_01_%d' % n: {'VGPU': (1, 0, 1)} for n in range(4)})
        plan = agent.ctl_json('reshape', '--plan')
        self.assertEqual(set(plan['after']['consumers']), set(consumers))
        agent.ctl('reshape')
        self.assertEqual(self.tree(agent), {'pci_0000_c1_00_0': {'VGPU': (4, 0, 4)}})
        for consumer in consumers:
            held = self.placement.held(consumer)
            self.assertEqual((held.pop(root), [*held.values()]), ({'VCPU': 1}, [{'VGPU': 1}]))
        # An undo is refused after another scheduler has used the new provider.
        late = str(uuid.uuid4())
        new = next(one for one, provider in self.placement.tree(root).items() if provider['name'] == self.name + '_pci_0000_c1_00_0')
        self.placement.place(late, {new: {'VGPU': 1}})
        done = agent.ctl('reshape', '--undo', check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(late, done.stderr)
        self.assertEqual(self.tree(agent), {'pci_0000_c1_00_0': {'VGPU': (4, 0, 4)}})
