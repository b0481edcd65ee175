# SPDX-License-Identifier: LGPL-2.1-or-later
"""Inventory moves together with its allocations in one request to a real Placement."""

import copy

from tests.integration.report.report_case import ReportCase, inventory, provider, uid


def flat():
    """Returns a tree with VGPU on the root, as old agents published it."""
    return [provider('host', None, {'VCPU': inventory(16), 'VGPU': inventory(4)}, ['COMPUTE_NODE']),
            provider('port', 'host', {'NET_BW_EGR_KILOBIT_PER_SEC': inventory(1000)})]


def nested():
    """Returns a tree with VGPU on a child for each GPU."""
    tree = flat()
    del tree[0]['inventories']['VGPU']
    return tree + [provider('host_gpu%d' % number, 'host', {'VGPU': inventory(2)},
                            ['CUSTOM_NVIDIA_A2']) for number in range(2)]


class TestReshape(ReportCase):
    def setUp(self):
        super().setUp()
        self.start_flat()

    def start_flat(self):
        self.publish_done(flat())
        self.allocate('guest-a', {'host': {'VCPU': 2, 'VGPU': 1},
                                  'port': {'NET_BW_EGR_KILOBIT_PER_SEC': 100}})
        self.allocate('guest-b', {'host': {'VCPU': 2, 'VGPU': 2}})
        self.allocate('guest-c', {'host': {'VCPU': 1}})

    def gathered(self):
        """Returns the consumers with a VGPU, with all their members."""
        return {uid(name): self.consumer(name) for name in ('guest-a', 'guest-b')}

    def moved(self):
        """Returns the same consumers with their VGPU on host_gpu0 and host_gpu1."""
        consumers = self.gathered()
        for number, name in enumerate(('guest-a', 'guest-b')):
            allocations = consumers[uid(name)]['allocations']
            amount = allocations[uid('host')]['resources'].pop('VGPU')
            allocations[uid('host_gpu%d' % number)] = {'resources': {'VGPU': amount}}
        return consumers

    def held(self, name):
        return self.placement.held(uid(name))

    def publish_settled(self, tree, consumers):
        """Publishes twice in one process. The second time the generations are known, so the client reads only the list. Its one
        write has the same consumers, and Placement rejects it."""
        first, second = self.rounds(tree, allocations=consumers, rounds=2)
        self.assertEqual(first['outcome'], 'done', first['error'])
        self.assertEqual((second['requests'] - second['writes'], second['writes']), (1, 1))

    def assert_moved(self):
        self.assertEqual(self.held('guest-a'), {
            uid('host'): {'VCPU': 2}, uid('host_gpu0'): {'VGPU': 1},
            uid('port'): {'NET_BW_EGR_KILOBIT_PER_SEC': 100}})
        self.assertEqual(self.held('guest-b'), {
            uid('host'): {'VCPU': 2}, uid('host_gpu1'): {'VGPU': 2}})
        self.assertEqual(self.held('guest-c'), {uid('host'): {'VCPU': 1}})

    def test_from_the_root_to_its_children(self):
        mark = self.placement.mark()
        before = self.generation('port')
        line = self.publish_done(nested(), allocations=self.moved())
        self.assert_remote(nested())
        self.assert_moved()
        writes = self.placement.writes_since(mark)
        self.assertEqual([item for item in writes if 'reshaper' in item[1]],
                         [('POST', '/reshaper', 204)])
        # The reshape writes each inventory once, and does not name a provider that keeps its inventory (G2.4). The generation of
        # that provider rises once, by its allocation.
        self.assertEqual([item for item in writes if 'inventories' in item[1]], [])
        self.assertEqual(self.generation('port'), before + 1)
        self.assertEqual(line['conflicts'], 0)
        self.assertEqual(self.publish_done(nested())['writes'], 0)

    def test_only_a_consumer_itself_tells_its_owner(self):
        """Each consumer that moves must be read. Only its own document has the project and the user that a reshape needs."""
        versions = self.placement.get('/')['versions'][0]
        for microversion in ('1.30', versions['max_version']):
            seen = self.placement.request('GET', '/resource_providers/%s/allocations' % uid('host'),
                                          microversion=microversion).json['allocations'][uid('guest-a')]
            self.assertEqual(set(seen), {'resources', 'consumer_generation'})
            whole = self.placement.request('GET', '/allocations/' + uid('guest-a'), microversion=microversion).json
            self.assertLessEqual({'project_id', 'user_id', 'consumer_generation'}, set(whole))

    def test_there_and_back(self):
        self.publish_done(nested(), allocations=self.moved())
        consumers = self.gathered()
        for number, name in enumerate(('guest-a', 'guest-b')):
            allocations = consumers[uid(name)]['allocations']
            amount = allocations.pop(uid('host_gpu%d' % number))['resources']['VGPU']
            allocations[uid('host')]['resources']['VGPU'] = amount
        self.publish_settled({'providers': flat(), 'remove': ['host_gpu0', 'host_gpu1']}, consumers)
        self.assert_remote(flat())
        self.assertEqual(self.held('guest-b'), {uid('host'): {'VCPU': 2, 'VGPU': 2}})

    def test_f1_a_replay(self):
        """The same request with the old generations of the consumers is a conflict and changes nothing."""
        consumers = self.moved()
        self.publish_done(nested(), allocations=consumers)
        self.assertEqual(self.publish(nested(), allocations=consumers)['outcome'], 'conflict')
        self.assert_remote(nested())
        self.assert_moved()

    def test_f1_a_class_everywhere(self):
        """Each provider gets one more class in the reshape, and keeps its other classes."""
        tree = nested()
        for number, item in enumerate(tree):
            item['inventories']['CUSTOM_EVERYWHERE'] = inventory(number + 1)
        self.publish_settled(tree, self.moved())
        self.assert_remote(tree)
        self.assert_moved()

    def test_types_and_owners_stay(self):
        """Type and owner stay, with or without the type in the request."""
        before = self.consumer('guest-a')
        for typed in (True, False):
            with self.subTest(typed=typed):
                consumers = self.moved()
                for consumer in consumers.values() if not typed else ():
                    del consumer['consumer_type']
                self.publish_settled(nested(), consumers)
                self.assert_moved()
                after = self.consumer('guest-a')
                for key in ('project_id', 'user_id', 'consumer_type'):
                    self.assertEqual(after[key], before[key])
                self.empty_placement()
                self.start_flat()

    def test_a_claim_between_gathering_and_publishing(self):
        """A consumer that was not gathered uses the class that must move. The first attempt changes nothing, and the second one
        moves both."""
        consumers = self.moved()
        with self.stepped(nested(), allocations=consumers, rounds=2) as go:
            self.allocate('late', {'host': {'VGPU': 1}})
            self.assertEqual(go()['outcome'], 'conflict')
            remote = self.remote()
            self.assertIn('VGPU', remote['host']['inventories'])
            self.assertEqual(self.held('late'), {uid('host'): {'VGPU': 1}})
            self.assertEqual(go.line(), {'event': 'refreshed'})
            late = self.consumer('late')
            late['allocations'] = {uid('host_gpu0'): {'resources': {'VGPU': 1}}}
            self.write('allocations.json', {**consumers, uid('late'): late})
            line = go()
            self.assertEqual(line['outcome'], 'done', line['error'])
        self.assert_remote(nested())
        self.assert_moved()
        self.assertEqual(self.held('late'), {uid('host_gpu0'): {'VGPU': 1}})

    def test_a_consumer_that_changed(self):
        consumers = self.moved()
        guest = self.consumer('guest-b')
        guest['allocations'][uid('host')]['resources']['VCPU'] = 3
        self.api('PUT', '/allocations/' + uid('guest-b'), guest)
        line = self.publish(nested(), allocations=consumers)
        self.assertEqual(line['outcome'], 'conflict')
        self.assertEqual(self.held('guest-b'), {uid('host'): {'VCPU': 3, 'VGPU': 2}})

    def test_a_consumer_that_was_forgotten(self):
        """The class cannot be removed while the consumer uses it. Placement rejects the whole request, and the later requests are
        not sent."""
        consumers = self.moved()
        del consumers[uid('guest-b')]
        line = self.publish(nested(), allocations=consumers)
        self.assertEqual(line['outcome'], 'in-use', line['error'])
        self.assertIn('VGPU', self.remote()['host']['inventories'])
        self.assertEqual(self.remote()['host_gpu0']['traits'], [])

    def test_a_reshape_that_does_not_fit(self):
        tree = nested()
        tree[3]['inventories']['VGPU'] = inventory(1)
        line = self.publish(tree, allocations=self.moved())
        self.assertEqual(line['outcome'], 'refused')
        self.assertIn('VGPU', self.remote()['host']['inventories'])
        self.assertEqual(self.held('guest-b'), {uid('host'): {'VCPU': 2, 'VGPU': 2}})

    def test_an_emptied_provider_goes(self):
        self.publish_done(nested(), allocations=self.moved())
        consumers = {uid('guest-a'): self.consumer('guest-a')}
        allocations = consumers[uid('guest-a')]['allocations']
        allocations[uid('other')] = allocations.pop(uid('host_gpu0'))
        tree = copy.deepcopy(nested())
        tree[2] = provider('other', 'host', {'VGPU': inventory(2)})
        self.publish_done({'providers': tree, 'remove': ['host_gpu0']}, allocations=consumers)
        self.assert_remote(tree)
        self.assertEqual(self.held('guest-a')[uid('other')], {'VGPU': 1})
