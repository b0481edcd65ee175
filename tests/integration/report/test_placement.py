# SPDX-License-Identifier: LGPL-2.1-or-later
"""The report client with a real Placement: the providers it publishes, and the number of its requests."""

import time

from tests.integration.report.report_case import ReportCase, big_tree, inventory, provider, uid


class TestPublish(ReportCase):
    def test_a_tree_is_created_and_read_back(self):
        tree = big_tree()
        line = self.publish_done(tree)
        self.assert_remote(tree)
        # The limit is 3 requests for each provider, 2 classes, 5 traits, the list and the lookup. One provider has no traits.
        self.assertLessEqual(line['requests'], 3 * len(tree) + 16)

    def test_a_single_root_takes_five_requests(self):
        tree = [provider('host', None, {'VCPU': inventory(8)}, ['COMPUTE_NODE'])]
        mark = self.placement.mark()
        self.publish_done(tree)
        base = '/resource_providers/' + uid('host')
        self.assertEqual(self.placement.requests_since(mark), [
            ('GET', '/resource_providers?in_tree=' + uid('host'), 200),
            ('GET', '/traits?name=in:COMPUTE_NODE', 200),
            ('POST', '/resource_providers', 201),
            ('PUT', base + '/inventories', 200),
            ('PUT', base + '/traits', 200)])

    def test_a_quiet_cycle_is_one_request(self):
        tree = big_tree()
        lines = self.rounds(tree, rounds=3)
        self.assertEqual([line['outcome'] for line in lines], ['done'] * 3)
        for line in lines[1:]:
            self.assertEqual((line['requests'], line['writes']), (1, 0))

    def test_a_second_process_reads_and_writes_nothing(self):
        tree = big_tree()
        self.publish_done(tree)
        line = self.publish_done(tree)
        self.assertEqual((line['requests'], line['writes']), (1 + 3 * len(tree), 0))

    def test_a_changed_inventory_is_one_write(self):
        tree = big_tree()
        self.publish_done(tree)
        tree[3]['inventories']['VGPU'] = inventory(3)
        line = self.publish_done(tree)
        self.assertEqual(line['writes'], 1)
        self.assert_remote(tree)

    def test_only_changed_providers_are_read_again(self):
        tree = big_tree()
        self.publish_done(tree)
        self.allocate('guest', {'host': {'VCPU': 2}})
        with self.stepped(tree, rounds=2) as go:
            self.allocate('other', {'host_fpga': {'CUSTOM_FPGA': 1}})
            mark = self.placement.mark()
            self.assertEqual(go()['writes'], 0)
            self.assertEqual(go.line(), {'event': 'refreshed'})
            self.assertEqual(go()['writes'], 0)
        paths = [path for _, path, _ in self.placement.requests_since(mark)]
        self.assertEqual(sorted(paths), sorted(
            ['/resource_providers?in_tree=' + uid('host')] +
            ['/resource_providers/%s/%s' % (uid('host_fpga'), what)
             for what in ('inventories', 'traits', 'aggregates')]))

    def test_a_provider_that_was_made_again_with_its_generation_is_read(self):
        """Only the last-modified of the list differs, in whole seconds."""
        tree = big_tree()
        self.publish_done(tree)
        path = '/resource_providers/' + uid('host_fpga')
        with self.stepped(tree, rounds=2) as go:
            before = self.generation('host_fpga')
            time.sleep(1.1)
            self.api('DELETE', path)
            self.api('POST', '/resource_providers', {
                'uuid': uid('host_fpga'), 'name': 'host_fpga', 'parent_provider_uuid': uid('host')})
            while self.generation('host_fpga') < before:
                self.api('PUT', path + '/inventories', {
                    'inventories': {'CUSTOM_FPGA': inventory(3 + self.generation('host_fpga'))},
                    'resource_provider_generation': self.generation('host_fpga')})
            self.assertEqual(self.generation('host_fpga'), before)
            self.assertEqual(go()['writes'], 0)
            self.assertEqual(go.line(), {'event': 'refreshed'})
            self.assertEqual(go()['writes'], 1)
        self.assert_remote(tree)

    def test_a_subtree_is_deleted(self):
        tree = big_tree()
        self.publish_done(tree)
        gone = {'host_NUMA1', 'host_pci_0000_11_00_0', 'host_pci_0000_11_01_0'}
        kept = [item for item in tree if item['name'] not in gone]
        mark = self.placement.mark()
        self.publish_done({'providers': kept, 'remove': ['host_NUMA1']})
        # SQLite can reject a parallel request for a moment.
        done = [line for line in self.placement.writes_since(mark) if line[2] != 500]
        self.assertEqual([line[0] for line in done], ['DELETE'] * 6)
        self.assert_remote(kept)

    def test_a_child_gets_a_new_uuid_under_its_old_name(self):
        tree = big_tree()
        self.publish_done(tree)
        tree[-1]['uuid'] = uid('another uuid')
        self.publish_done({'providers': tree, 'remove': ['host_fpga']})
        self.assert_remote(tree)

    def test_an_unknown_standard_trait_is_left_out(self):
        tree = [provider('host', None, {'VCPU': inventory(8)}, ['COMPUTE_NODE', 'HW_OF_2040'])]
        lines = self.rounds(tree, rounds=2)
        self.assertEqual(lines[0]['outcome'], 'done')
        self.assertEqual((lines[1]['requests'], lines[1]['writes']), (1, 0))
        self.assertEqual(self.remote()['host']['traits'], ['COMPUTE_NODE'])

    def test_an_unknown_standard_class_is_refused_and_the_rest_goes_on(self):
        tree = [provider('host', None, {'VCPU': inventory(8)}),
                provider('odd', 'host', {'VCPUS_OF_2040': inventory(8)}, ['COMPUTE_NODE'])]
        line = self.publish(tree)
        self.assertEqual(line['outcome'], 'refused')
        self.assertIn('VCPUS_OF_2040', line['error'])
        self.assertIn('odd', line['error'])
        remote = self.remote()
        self.assertIn('VCPU', remote['host']['inventories'])
        self.assertEqual(remote['odd']['traits'], ['COMPUTE_NODE'])

    def test_traits_and_aggregates_are_taken_away(self):
        tree = big_tree()
        self.publish_done(tree)
        self.publish_done({'providers': [], 'remove_traits': ['CUSTOM_RACK_7']})
        self.assertEqual(self.remote()['host']['traits'], ['COMPUTE_NODE', 'HW_CPU_X86_AVX2'])

    def test_aggregates_are_published(self):
        tree = [provider('host', None, {'VCPU': inventory(8)}, [], [uid('agg')])]
        self.publish_done(tree)
        self.assert_remote(tree)


class TestForeign(ReportCase):
    def test_additions_of_other_writers_stay(self):
        tree = big_tree()
        self.publish_done(tree)
        base = '/resource_providers/' + uid('host')
        self.api('POST', '/resource_providers', {
            'uuid': uid('neutron'), 'name': 'neutron', 'parent_provider_uuid': uid('host')})
        self.api('PUT', '/resource_providers/%s/inventories' % uid('neutron'), {
            'resource_provider_generation': 0,
            'inventories': {'NET_BW_EGR_KILOBIT_PER_SEC': inventory(1000)}})
        self.api('PUT', '/traits/CUSTOM_OPERATOR')
        self.api('PUT', base + '/traits', {
            'resource_provider_generation': self.generation('host'),
            'traits': tree[0]['traits'] + ['CUSTOM_OPERATOR']})
        self.api('PUT', base + '/aggregates', {
            'resource_provider_generation': self.generation('host'), 'aggregates': [uid('agg')]})
        tree[0]['inventories']['VCPU'] = inventory(32)
        self.publish_done(tree)
        tree[0]['traits'] = sorted(tree[0]['traits'] + ['CUSTOM_OPERATOR'])
        tree[0]['aggregates'] = [uid('agg')]
        tree.append(provider('neutron', 'host', {'NET_BW_EGR_KILOBIT_PER_SEC': inventory(1000)}))
        self.assert_remote(tree)
        self.assertEqual(self.publish_done(tree)['writes'], 0)

    def test_odd_providers_of_others_cost_nothing(self):
        tree = big_tree()
        self.publish_done(tree)
        gpu = tree[2]['uuid']
        names = ['\u6a5f' * 200, 'nul\0nul', '\x7f\u0085 odd']
        for name in names:
            self.api('POST', '/resource_providers', {'name': name, 'parent_provider_uuid': gpu})
        parent = uid('host')
        for level in range(70):
            self.api('POST', '/resource_providers', {
                'uuid': uid('deep%d' % level), 'name': 'deep%d' % level,
                'parent_provider_uuid': parent})
            parent = uid('deep%d' % level)
        before = self.remote()
        tree[0]['inventories']['VCPU'] = inventory(32)
        self.assertEqual(self.publish_done(tree)['writes'], 1)
        before['host']['inventories']['VCPU'] = inventory(32)
        self.assertEqual(self.remote(), before)
        self.assertLessEqual(set(names), set(before))

    def test_the_name_of_another_host(self):
        self.api('POST', '/resource_providers', {'uuid': uid('stranger'), 'name': 'host'})
        line = self.publish(big_tree())
        self.assertEqual(line['outcome'], 'duplicate-name')
        self.assertIn(uid('stranger'), line['error'])
        self.assertEqual(self.placement.tree(uid('host')), {})

    def test_a_child_name_of_another_host(self):
        self.api('POST', '/resource_providers', {'uuid': uid('stranger'), 'name': 'host_NUMA0'})
        line = self.publish(big_tree())
        self.assertEqual(line['outcome'], 'duplicate-name')
        self.assertIn('host_NUMA0', line['error'])
        # The providers outside this child's subtree are published.
        self.assertIn('PCPU', self.remote()['host_NUMA1']['inventories'])

    def test_a_renamed_host_is_refused(self):
        self.api('POST', '/resource_providers', {'uuid': uid('host'), 'name': 'old-name'})
        line = self.publish(big_tree())
        self.assertEqual(line['outcome'], 'refused')
        self.assertIn('old-name', line['error'])


class TestConflicts(ReportCase):
    def test_a_writer_between_refresh_and_publish(self):
        tree = big_tree()
        self.publish_done(tree)
        tree[0]['inventories']['VCPU'] = inventory(32)
        tree[3]['inventories']['VGPU'] = inventory(3)
        with self.stepped(tree, rounds=2) as go:
            self.allocate('guest', {'host': {'VCPU': 1}})
            line = go()
            self.assertEqual(line['outcome'], 'conflict')
            self.assertEqual(line['conflicts'], 1)
            self.assertIn('host', line['error'])
            # The provider that no other client changed is up to date.
            self.assertEqual(self.remote()[tree[3]['name']]['inventories']['VGPU']['total'], 3)
            self.assertEqual(go.line(), {'event': 'refreshed'})
            line = go()
            self.assertEqual((line['outcome'], line['writes']), ('done', 1))
        self.assert_remote(tree)

    def batch(self):
        """Publishes 32 providers, and returns their tree with changes of all inventories."""
        tree = [provider('host', None, {'VCPU': inventory(8)})]
        tree += [provider('gpu%02d' % number, 'host', {'VGPU': inventory(4)})
                 for number in range(31)]
        self.publish_done(tree)
        for item in tree:
            for record in item['inventories'].values():
                record['reserved'] = 1
        return tree

    def test_a_lost_race_costs_a_batch_one_provider(self):
        tree = self.batch()
        with self.stepped(tree, retries=3) as go:
            self.allocate('guest', {'gpu07': {'VGPU': 1}})
            mark = self.placement.mark()
            self.assertEqual(go(), {'event': 'refreshed'})
            self.assertEqual(go()['outcome'], 'done')
            sent = [(record['method'], record['path'].split('/placement')[-1].split('?')[0])
                    for record in self.placement.records_since(mark)]
        self.assert_remote(tree)
        # the access check, the batch, the list, three reads of one provider, the batch
        self.assertLessEqual(len(sent), 7, sent)
        self.assertEqual([method for method, _ in sent if method not in ('GET', 'POST')], [])

    def test_a_provider_made_by_somebody_else_meanwhile(self):
        tree = big_tree()
        with self.stepped(tree, retries=3) as go:
            self.api('POST', '/resource_providers', {'uuid': uid('host'), 'name': 'host'})
            self.assertEqual(go(), {'event': 'refreshed'})
            self.assertEqual(go()['outcome'], 'done')
        self.assert_remote(tree)

    def test_a_provider_deleted_by_somebody_else_meanwhile(self):
        tree = big_tree()
        self.publish_done(tree)
        tree[-1]['inventories']['CUSTOM_FPGA'] = inventory(2)
        with self.stepped(tree, retries=3) as go:
            self.api('DELETE', '/resource_providers/' + uid('host_fpga'))
            self.assertEqual(go(), {'event': 'refreshed'})
            self.assertEqual(go()['outcome'], 'done')
        self.assert_remote(tree)

    def test_a_custom_trait_deleted_behind_our_back(self):
        tree = [provider('host', None, {'VCPU': inventory(8)}, ['CUSTOM_A'])]
        with self.stepped(tree, rounds=4) as go:
            self.assertEqual(go()['outcome'], 'done')
            self.assertEqual(go.line(), {'event': 'refreshed'})
            self.write('tree.json', {'remove_traits': ['CUSTOM_A']})
            self.assertEqual(go()['outcome'], 'done')
            self.api('DELETE', '/traits/CUSTOM_A')
            self.write('tree.json', {'providers': tree})
            self.assertEqual(go.line(), {'event': 'refreshed'})
            self.assertEqual(go()['outcome'], 'refused')
            self.assertEqual(go.line(), {'event': 'refreshed'})
            self.assertEqual(go()['outcome'], 'done')
        self.assert_remote(tree)


class TestInUse(ReportCase):
    def setUp(self):
        super().setUp()
        self.tree = big_tree()
        self.publish_done(self.tree)
        self.gpu = self.tree[2]['name']
        self.allocate('guest', {self.gpu: {'VGPU': 2}})

    def test_a_used_class_is_kept_and_the_rest_published(self):
        self.tree[2]['inventories'] = {'CUSTOM_SLICE': inventory(4)}
        self.tree[0]['inventories']['VCPU'] = inventory(32)
        line = self.publish(self.tree)
        self.assertEqual(line['outcome'], 'in-use', line['error'])
        self.assertIn(self.gpu, line['error'])
        self.assertIn('VGPU (2 in use by %s)' % uid('guest'), line['error'])
        self.tree[2]['inventories']['VGPU'] = inventory(4)
        self.assert_remote(self.tree)

    def test_a_used_inventory_is_retried_and_goes_when_free(self):
        """DELETE /allocations does not raise the generation of a provider. The agent learns only by another attempt that the class
        is free."""
        self.tree[2]['inventories'] = {'CUSTOM_SLICE': inventory(4)}
        with self.stepped(self.tree, rounds=4) as go:
            self.assertEqual(go()['outcome'], 'in-use')
            for _ in range(2):
                self.assertEqual(go.line(), {'event': 'refreshed'})
                line = go()
                # the tree, the inventories, and the consumers of the provider
                self.assertEqual((line['outcome'], line['requests'], line['writes']), ('in-use', 3, 1))
                self.assertIn('VGPU (2 in use by %s)' % uid('guest'), line['error'])
            self.assertEqual(go.line(), {'event': 'refreshed'})
            self.api('DELETE', '/allocations/' + uid('guest'))
            self.assertEqual(go()['outcome'], 'done')
        self.assert_remote(self.tree)

    def test_it_goes_once_it_is_free(self):
        self.tree[2]['inventories'] = {}
        line = self.publish(self.tree)
        self.assertEqual(line['outcome'], 'in-use', line['error'])
        self.api('DELETE', '/allocations/' + uid('guest'))
        self.publish_done(self.tree)
        self.assert_remote(self.tree)

    def test_a_used_provider_is_kept_and_the_rest_deleted(self):
        gone = {self.tree[2]['name'], self.tree[3]['name'], 'host_NUMA0'}
        line = self.publish({'providers': [item for item in self.tree if item['name'] not in gone],
                             'remove': ['host_NUMA0']})
        self.assertEqual(line['outcome'], 'in-use', line['error'])
        self.assertIn(self.gpu, line['error'])
        remote = self.remote()
        self.assertIn(self.gpu, remote)
        self.assertIn('host_NUMA0', remote)
        self.assertNotIn(self.tree[3]['name'], remote)

    def test_shrinking_below_what_is_used_is_allowed(self):
        self.tree[2]['inventories']['VGPU'] = inventory(1)
        self.publish_done(self.tree)
        self.assert_remote(self.tree)


class TestUnixSocket(ReportCase):
    server = 'unix'

    def test_publish(self):
        tree = big_tree()
        endpoint = 'unix://' + self.placement.socket_path
        lines = self.rounds(tree, endpoint=endpoint, rounds=2)
        self.assertEqual(lines[0]['outcome'], 'done', lines[0]['error'])
        self.assertEqual((lines[1]['requests'], lines[1]['writes']), (1, 0))
        self.assert_remote(tree)


class TestManyProviders(ReportCase):
    def test_parallel_writes_on_sqlite_end_well(self):
        tree = [provider('host', None, {'VCPU': inventory(8)}, ['COMPUTE_NODE'])]
        for number in range(64):
            tree.append(provider('gpu%02d' % number, 'host', {'VGPU': inventory(4)},
                                 ['CUSTOM_GPU']))
        line = self.publish_done(tree, connections=8)
        self.assert_remote(tree)
        refused = [record for record in self.placement.records_since() if record['status'] == 500]
        self.assertLessEqual(line['requests'], 3 * len(tree) + 16 + len(refused))
        # After the first rejected writes the client sends them one after another.
        self.assertLess(len(refused), 40)
