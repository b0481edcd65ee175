# SPDX-License-Identifier: LGPL-2.1-or-later
"""The driver for Nova in plugins/nova/: it decides whether the agent or Nova reports the providers, and only that one writes them.

Nova (Debian's python3-nova) is real. The agent and Placement are fakes here, and real in tests/cloud.
"""

import copy
import json
import unittest
from pathlib import Path
from unittest import mock

import nova.cmd  # before all that eventlet patches  # noqa: F401
import nova.virt
from nova import exception
from nova.compute import provider_tree
from nova.scheduler.client import report as nova_report
from oslo_concurrency import processutils

nova.virt.__path__.append(str(Path(__file__).resolve().parents[3] / 'plugins/nova'))

from nova.virt.compute_agent import agent, driver, report  # noqa: E402

ROOT = '5b0c8f57-9d0f-4a38-8d0d-7e1d2f1f6c11'
CELL = '5b0c8f57-9d0f-4a38-8d0d-7e1d2f1f6c12'
DISABLED = 'COMPUTE_STATUS_DISABLED'
INVENTORY = {'total': 8, 'reserved': 0, 'min_unit': 1, 'max_unit': 8, 'step_size': 1, 'allocation_ratio': 4.0}


def document(cell_class='HUGE'):
    """Returns the document "tree" of a host with one cell. The cell has an inventory of cell_class."""
    told = {**INVENTORY, 'capacity': 32, 'used': 1}
    return {'format': 'compute-agent-tree/1', 'node': 'host', 'root': ROOT, 'providers': [
        {'uuid': ROOT, 'name': 'host', 'parent': None, 'traits': ['COMPUTE_NODE'], 'aggregates': [CELL], 'cordoned': False,
         'inventories': {'DISK_GB': told}},
        {'uuid': CELL, 'name': 'host_NUMA0', 'parent': ROOT, 'traits': [], 'aggregates': [], 'cordoned': False,
         'inventories': {cell_class: told}}]}


class FakeAgent(agent.Agent):
    """An agent with prepared output of busctl: {'get-property': text, 'call': text}."""

    def __init__(self, **answers):
        self.now = 100.0
        self.answers = {key.replace('_', '-'): text for key, text in answers.items()}
        super().__init__(clock=lambda: self.now)

    def says(self, mode=None, published=False):
        self.now += agent.FRESH
        lines = [json.dumps({'type': 's', 'data': mode}), json.dumps({'type': 'b', 'data': published})]
        self.answers['get-property'] = '\n'.join(lines) if mode else None
        return self.owns_tree()

    def _busctl(self, verb, *args):
        return self.answers.get(verb)


class OptionsCase(unittest.TestCase):
    def set_options(self, **options):
        for name, value in options.items():
            agent.CONF.set_override(name, value, group='compute_agent')
            self.addCleanup(agent.CONF.clear_override, name, group='compute_agent')


class TestOwner(OptionsCase):
    def test_the_driver_learns_the_owner_of_the_tree(self):
        top, early, beside = agent.Answer('top', True), agent.Answer('top', False), agent.Answer('beside', False)
        for told, last_mode, missing_for, without_agent, whose in (
                (top, None, 0, 'wait', 'agent'), (top, 'beside', 9999, 'nova', 'agent'),
                (agent.Answer('none', True), None, 0, 'nova', 'agent'),
                (early, None, 9999, 'wait', 'agent'), (early, None, 59, 'nova', 'agent'), (early, None, 60, 'nova', 'nova'),
                (beside, 'top', 0, 'wait', 'nova'), (agent.Answer('observe', False), None, 0, 'wait', 'nova'),
                (None, None, 9999, 'wait', 'agent'), (None, 'top', 59, 'nova', 'agent'), (None, 'top', 60, 'nova', 'nova'),
                (None, 'beside', 0, 'wait', 'nova')):
            with self.subTest(told=told, last_mode=last_mode, missing_for=missing_for, without_agent=without_agent):
                self.assertEqual(agent.owner(told, last_mode, missing_for, without_agent, 60), whose)

    def test_an_agent_that_goes_and_comes_back(self):
        self.set_options(without_agent='nova', patience=60)
        fake = FakeAgent()
        self.assertTrue(fake.says('top', True))
        self.assertTrue(fake.says(None))
        fake.now += 58
        self.assertFalse(fake.says(None))
        self.assertFalse(fake.says('top', False))
        self.assertTrue(fake.says('top', True))
        self.assertFalse(fake.says('beside'))
        self.assertFalse(fake.says(None), 'what it said last holds')

    def test_time_without_a_question_is_no_absence(self):
        self.set_options(without_agent='nova', patience=600)
        for answer in (('top', True), ('beside',)):
            fake = FakeAgent()
            fake.says(*answer)
            fake.now += 3600
            self.assertTrue(fake.says('top', False))
            fake.now += 597
            self.assertTrue(fake.says(None))
            fake.now += 1
            self.assertFalse(fake.says(None))

    def test_busctl_that_fails_raises_nothing(self):
        for error in (OSError('no busctl'), processutils.ProcessExecutionError('no agent')):
            with mock.patch.object(processutils, 'execute', side_effect=error):
                self.assertTrue(agent.Agent().owns_tree())
                self.assertIsNone(agent.Agent().provider_tree(ROOT))


class TestTree(OptionsCase):
    def tree(self, text):
        return FakeAgent(call=json.dumps({'type': 's', 'data': [text]})).provider_tree(ROOT)

    def test_the_tree_is_the_agents(self):
        tree = self.tree(json.dumps(document()))
        self.assertEqual(tree.data('host').inventory, {'DISK_GB': INVENTORY})
        self.assertEqual(tree.data('host').traits, {'COMPUTE_NODE'})
        self.assertEqual(tree.data('host').aggregates, {CELL})
        self.assertEqual(tree.data('host_NUMA0').parent_uuid, ROOT)

    def test_a_tree_of_another_host_is_refused(self):
        other = {**document(), 'root': CELL}
        newer = {**document(), 'format': 'compute-agent-tree/2'}
        for text in ('', '{}', '[]', json.dumps(other), json.dumps(newer)):
            self.assertIsNone(self.tree(text), text)
        self.assertIsNone(FakeAgent(call='nonsense').provider_tree(ROOT))


class TestReportClient(OptionsCase):
    def setUp(self):
        patch = mock.patch.object(nova_report.SchedulerReportClient, '_create_client')
        patch.start()
        self.addCleanup(patch.stop)
        self.client = nova_report.SchedulerReportClient()
        self.client._provider_tree = provider_tree.ProviderTree()
        self.agent = FakeAgent(call=json.dumps({'type': 's', 'data': [json.dumps(document())]}))
        report.leave_tree_to(self.agent, self.client)
        names = ('_ensure_resource_provider', 'get_providers_in_tree', 'put', 'post', 'delete', 'get')
        self.asked = {name: mock.patch.object(self.client, name).start() for name in names}
        self.addCleanup(mock.patch.stopall)

    def n_asked(self):
        return sum(asked.call_count for asked in self.asked.values())

    def test_nothing_is_read_or_written_where_the_tree_is_the_agents(self):
        self.client._provider_tree.new_root('host', ROOT)
        self.assertTrue(self.agent.says('top', True))
        tree = self.client.get_provider_tree_and_ensure_root(None, ROOT, name='host')
        self.assertTrue(tree.exists('host_NUMA0'))
        self.assertEqual(self.client.get_allocations_for_provider_tree(None, 'host'), {})
        tree.update_traits('host', ['COMPUTE_STATUS_DISABLED'])
        self.client.update_from_provider_tree(None, tree)
        self.assertEqual(self.n_asked(), 0)

    def sync_status(self, had, cordoned=False, disabled=False, read=None, starts=True, then=None):
        """Runs an update of the resource tracker, the first one after a start if starts is true. then: whether the host is cordoned
        after the traits were read. had: whether the agent's tree has the trait of a disabled service. disabled: whether
        the service is. read: the traits in Placement. Returns the writes, as the arguments of put()."""
        self.client._provider_tree = provider_tree.ProviderTree()
        self.client._provider_tree.new_root('host', ROOT)
        self.client._provider_tree.update_traits(ROOT, ['COMPUTE_NODE'])
        self.client.unchecked |= starts

        def tell(cordoned):
            told = document()
            told['providers'][0].update(traits=['COMPUTE_NODE'] + [DISABLED] * had, cordoned=cordoned)
            self.agent.answers['call'] = json.dumps({'type': 's', 'data': [json.dumps(told)]})

        def read_traits(*args, **kwargs):
            tell(cordoned if then is None else then)
            return mock.Mock(status_code=200, json=lambda: {
                'traits': read or ['COMPUTE_NODE', DISABLED], 'resource_provider_generation': 7})

        tell(cordoned)
        self.assertTrue(self.agent.says('top', True))
        tree = self.client.get_provider_tree_and_ensure_root(None, ROOT, name='host')
        tree.update_traits(ROOT, ['COMPUTE_NODE'] + [DISABLED] * disabled)
        self.asked['put'].reset_mock()
        self.asked['get'].side_effect = read_traits
        with mock.patch.object(self.client, '_ensure_traits'):
            self.client.update_from_provider_tree(mock.Mock(global_id=None), tree)
        return [call.args for call in self.asked['put'].call_args_list]

    def test_the_trait_of_a_service_that_was_enabled_while_it_was_down_is_removed(self):
        self.asked['put'].return_value = mock.Mock(status_code=200, json=lambda: {
            'traits': ['COMPUTE_NODE'], 'resource_provider_generation': 8})
        written = ('/resource_providers/%s/traits' % ROOT, {'resource_provider_generation': 7, 'traits': ['COMPUTE_NODE']})
        self.assertEqual(self.sync_status(had=True), [written])
        self.assertEqual(self.sync_status(had=True, starts=False), [], 'it can be that of a lost cordon')
        self.assertEqual(self.sync_status(had=True, then=True), [], 'a cordon was made meanwhile')
        self.assertEqual(self.sync_status(had=True, starts=False), [written], 'not done yet')
        self.assertEqual(self.sync_status(had=True, read=['COMPUTE_NODE']), [], 'it is gone already')
        self.assertEqual(self.sync_status(had=True, cordoned=True), [], 'the trait is the cordon')
        self.asked['get'].reset_mock()
        self.assertEqual(self.sync_status(had=True, disabled=True), [])
        self.assertEqual(self.sync_status(had=False), [])
        self.assertEqual(self.sync_status(had=False, disabled=True), [], 'Nova refuses the host anyway')
        self.asked['get'].assert_not_called()

    def test_a_failed_removal_of_the_trait_does_not_fail_the_update(self):
        self.asked['put'].return_value = mock.Mock(status_code=409, text='conflict')
        for starts in (True, False):
            self.assertEqual(len(self.sync_status(had=True, starts=starts)), 1)
        self.agent.answers['call'] = None
        self.client.get_provider_tree_and_ensure_root(None, ROOT, name='host')
        self.asked['put'].reset_mock()
        self.client.update_from_provider_tree(None, self.client._provider_tree)
        self.asked['put'].assert_not_called()

    def test_nova_reads_the_tree_again_after_the_agent_owned_it(self):
        nova_report.CONF.set_override('resource_provider_association_refresh', 0, group='compute')
        self.addCleanup(nova_report.CONF.clear_override, 'resource_provider_association_refresh', group='compute')
        ensure = nova_report.SchedulerReportClient._ensure_resource_provider
        self.asked['_ensure_resource_provider'].side_effect = lambda *args, **kwargs: ensure(self.client, *args, **kwargs)
        self.asked['get_providers_in_tree'].return_value = [{'uuid': ROOT, 'name': 'host', 'generation': 1, 'parent_provider_uuid': None}]

        def refresh(_context, uuid, force):
            self.client._association_refresh_time[uuid] = 1
        with mock.patch.object(self.client, '_refresh_associations', side_effect=refresh):
            for mode, n_reads in (('top', 1), ('top', 1), ('beside', 2), ('beside', 2), ('top', 2), ('beside', 3)):
                self.agent.says(mode, mode == 'top')
                self.client.get_provider_tree_and_ensure_root(None, ROOT, name='host')
                self.assertEqual(self.asked['get_providers_in_tree'].call_count, n_reads, mode)

    def test_the_agent_of_the_last_driver_counts(self):
        self.client._provider_tree.new_root('host', ROOT)
        last = FakeAgent()
        report.leave_tree_to(last, self.client)
        self.assertFalse(last.says('beside'))
        self.client.get_provider_tree_and_ensure_root(None, ROOT, name='host')
        self.asked['_ensure_resource_provider'].assert_called_once()

    def held(self, cell_class):
        """Returns the consumers of the host that Nova reads, if the cell has an inventory of this class. Each provider has one
        consumer with its own uuid."""
        self.client._provider_tree.new_root('host', ROOT)
        self.agent.answers['call'] = json.dumps({'type': 's', 'data': [json.dumps(document(cell_class))]})
        self.agent.says('top', True)
        self.client.get_provider_tree_and_ensure_root(None, ROOT, name='host')
        self.asked['get'].side_effect = lambda url, **_: mock.Mock(json=lambda: {'allocations': {url.split('/')[2]: {}}})
        context = mock.Mock(global_id=None)
        return set(self.client.get_allocations_for_resource_provider(context, ROOT).allocations)

    def test_servers_that_have_all_in_cells_are_found(self):
        self.assertEqual(self.held('MEMORY_MB'), {ROOT, CELL})

    def test_cells_without_what_every_server_takes_are_not_asked(self):
        self.assertEqual(self.held('PCPU'), {ROOT})

    def test_pci_devices_are_added_to_allocations_and_nothing_else_is_written(self):
        nova_report.CONF.set_override('report_in_placement', True, group='pci')
        self.addCleanup(nova_report.CONF.clear_override, 'report_in_placement', group='pci')
        self.client._provider_tree.new_root('host', ROOT)
        self.agent.says('top', True)
        context = mock.Mock(global_id=None)
        held = nova_report.ProviderAllocInfo(allocations={'a': {}, 'b': {}})
        with mock.patch.object(nova_report.SchedulerReportClient, 'get_allocations_for_resource_provider', return_value=held), \
                mock.patch.object(self.client, 'get_allocs_for_consumer', side_effect=lambda _, consumer: {
                    'allocations': {ROOT: {'resources': {'VCPU': 1}}}, 'consumer_generation': 1}):
            told = self.client.get_allocations_for_provider_tree(context, 'host')
        self.client.update_from_provider_tree(context, self.client._provider_tree, allocations=told)
        self.assertEqual(self.n_asked(), 0)
        told['b']['allocations'][CELL] = {'resources': {'CUSTOM_CARD': 1}}
        self.client.update_from_provider_tree(context, self.client._provider_tree, allocations=told)
        self.assertEqual(self.n_asked(), 1)
        self.assertEqual(self.asked['post'].call_args.args, ('/allocations', {'b': told['b']}))

    def test_the_first_time_nova_makes_the_root(self):
        self.agent.says('top', True)
        self.client.get_provider_tree_and_ensure_root(None, ROOT, name='host')
        self.asked['_ensure_resource_provider'].assert_called_once_with(None, ROOT, name='host', parent_provider_uuid=None)

    def test_all_is_novas_beside_it(self):
        self.client._provider_tree.new_root('host', ROOT)
        self.assertFalse(self.agent.says('beside'))
        tree = self.client.get_provider_tree_and_ensure_root(None, ROOT, name='host')
        self.assertEqual(self.asked['_ensure_resource_provider'].call_count, 1)
        self.assertFalse(tree.exists('host_NUMA0'))


class Driver:
    """A driver of Nova that needs a reshape."""

    def __init__(self, virtapi):
        self.virtapi = virtapi

    def update_provider_tree(self, provider_tree, nodename, allocations=None):
        raise exception.ReshapeNeeded()


class TestDriver(OptionsCase):
    def setUp(self):
        class OnTop(driver.AgentMixin, Driver):
            pass
        self.driver = OnTop(object())
        self.agent = self.driver._compute_agent = FakeAgent()
        self.tree = provider_tree.ProviderTree()
        self.tree.new_root('host', ROOT)
        self.tree.new_child('host_NUMA0', ROOT, uuid=CELL)

    def test_the_tree_is_left_alone(self):
        self.agent.says('top', True)
        before = copy.deepcopy(self.tree)
        self.driver.update_provider_tree(self.tree, 'host')
        self.assertFalse(before.has_inventory_changed('host', self.tree.data('host').inventory))
        self.assertEqual(self.tree.get_provider_uuids(), before.get_provider_uuids())

    def test_novas_driver_does_it_beside_the_agent(self):
        self.agent.says('beside')
        self.assertRaises(exception.ReshapeNeeded, self.driver.update_provider_tree, self.tree, 'host')

    def test_novas_driver_does_not_count_what_cells_have_again(self):
        self.agent.says('beside')
        self.tree.update_inventory(CELL, {'MEMORY_MB': INVENTORY})
        self.driver.update_provider_tree(self.tree, 'host')
        self.assertFalse(self.tree.data('host').inventory)

    def test_the_libvirt_driver_keeps_the_tree_for_vgpus(self):
        libvirt = driver.LibvirtDriver.__new__(driver.LibvirtDriver)
        libvirt._compute_agent = self.agent
        self.agent.says('top', True)
        libvirt.update_provider_tree(self.tree, 'host')
        self.assertEqual(libvirt.provider_tree.data(CELL).name, 'host_NUMA0')
        self.assertIsNot(libvirt.provider_tree, self.tree)
