# SPDX-License-Identifier: LGPL-2.1-or-later
"""Another client breaks the tree in Placement. The agent reports the foreign changes without undoing them, and publishes the rest.

After a repair the running agent continues with its next cycle.
"""

import time

from tests.env.scratch import wait_until
from tests.integration.agent.test_agent import GPU_A, GPU_B, AgentCase

OTHER = '7c1f0e52-53f0-4d19-9e0b-3f7d8a1c6b01'


class TestBrokenTree(AgentCase):
    def start(self, **options):
        self.agent = self.start_agent({'agent': {'update_resources_interval': 3600},
                                       'compute': {'numa_in_placement': 'true'}, **options})
        self.before = self.tree()

    def tree(self):
        return self.placement.tree_by_name(self.agent.root())

    def put(self, uuid, **fields):
        """Writes the name or the parent of a provider, as another client."""
        answer = self.placement.request('PUT', '/resource_providers/' + uuid, fields)
        self.assertEqual(answer.status, 200, answer.text)

    def sync(self, state):
        """Runs a cycle, waits for the state and returns the page of the status."""
        self.agent.ctl('sync', check=False)
        self.agent.wait_state(state)
        return self.agent.ctl('status', check=False).stdout

    def reserve(self, amount):
        """Changes the reserved DISK_GB of the host, and reloads the agent."""
        self.agent.configure({'DEFAULT': {'reserved_host_disk_mb': amount * 1024}})
        self.agent.ctl('reload', check=False)

    def check_rest_goes_on(self, state):
        root = self.tree()['demo']
        before = root['inventories']['DISK_GB']['reserved']
        self.reserve(before + 1)
        wait_until(lambda: self.tree()['demo']['inventories']['DISK_GB']['reserved'] == before + 1,
                   30, 'the rest of the tree')
        self.agent.wait_state(state)

    def test_a_child_is_renamed_and_back(self):
        self.start()
        gpu = self.before[GPU_A]
        for n, name in enumerate(('demo-mine', 'demo_pci_0000_99_00_0'), 1):
            with self.subTest(name):
                self.put(gpu['uuid'], name=name, parent_provider_uuid=gpu['parent'])
                mark = self.placement.mark()
                self.assertIn('renamed to "%s"' % name, self.sync('stale'))
                self.sync('stale')
                self.assertEqual(self.placement.writes_since(mark), [])
                self.assertEqual(self.agent.log().count('renamed to "%s"' % name), 1)
                self.assertIn('renamed to', self.agent.ctl('doctor', '--all', check=False).stdout)
                self.put(gpu['uuid'], name=GPU_A, parent_provider_uuid=gpu['parent'])
                self.sync('synced')
                self.assertEqual(self.tree(), self.before)
                self.assertEqual(self.agent.log().count('Placement is equal to this host again'), n)

    def test_a_child_is_renamed_for_good(self):
        self.start()
        gpu = self.before[GPU_A]
        self.put(gpu['uuid'], name='somebody-s', parent_provider_uuid=gpu['parent'])
        self.sync('stale')
        self.check_rest_goes_on('stale')
        tree = self.tree()
        self.assertNotIn(GPU_A, tree)
        self.assertEqual(tree['somebody-s']['inventories'], gpu['inventories'])
        self.assertEqual(tree[GPU_B]['inventories'], self.before[GPU_B]['inventories'])
        # The message advises this.
        self.placement.request('DELETE', '/resource_providers/' + gpu['uuid'])
        self.sync('synced')
        self.assertEqual(self.tree()[GPU_A]['inventories'], gpu['inventories'])

    def test_a_cell_is_renamed_and_back(self):
        self.start()
        cell = self.before['demo_NUMA0']
        for name in ('cell', 'demo_NUMA7'):
            with self.subTest(name):
                self.put(cell['uuid'], name=name, parent_provider_uuid=cell['parent'])
                self.assertIn('renamed to "%s"' % name, self.sync('stale'))
                tree = self.tree()
                self.assertEqual({item['uuid']: item['parent'] for item in tree.values()},
                                 {item['uuid']: item['parent'] for item in self.before.values()})
                self.assertEqual(tree['demo_NUMA1'], self.before['demo_NUMA1'])
                self.put(cell['uuid'], name='demo_NUMA0', parent_provider_uuid=cell['parent'])
                self.sync('synced')
                self.assertEqual(self.tree(), self.before)

    def test_the_root_is_put_below_another_and_back(self):
        self.start()
        self.placement.request('POST', '/resource_providers', {'uuid': OTHER, 'name': 'rack'})
        self.put(self.agent.root(), name='demo', parent_provider_uuid=OTHER)
        mark = self.placement.mark()
        self.assertIn('rack', self.sync('stale'))
        self.sync('stale')
        self.assertEqual(self.placement.writes_since(mark), [])
        self.put(self.agent.root(), name='demo', parent_provider_uuid=None)
        self.sync('synced')
        self.check_rest_goes_on('synced')

    def test_another_provider_has_the_name_of_a_child(self):
        self.placement.request('POST', '/resource_providers', {'uuid': OTHER, 'name': GPU_A})
        self.agent = self.make_agent({'compute': {'numa_in_placement': 'true'}}).start('stale')
        self.assertIn(GPU_A, self.agent.ctl('status', check=False).stdout)
        tree = self.tree()
        self.assertNotIn(GPU_A, tree)
        self.assertIn('VGPU', tree[GPU_B]['inventories'])
        self.check_rest_goes_on('stale')
        self.placement.request('DELETE', '/resource_providers/' + OTHER)
        self.sync('synced')
        self.assertIn('VGPU', self.tree()[GPU_A]['inventories'])



class TestMadeAnew(AgentCase):
    """Another client deleted providers and created them again. Their last-modified shows it."""

    def start(self):
        agent = self.start_agent({'DEFAULT': {'update_resources_interval': 3600}})
        agent.ctl('sync')
        time.sleep(1.1)  # last-modified has whole seconds
        return agent, self.placement.tree_by_name(agent.root())

    def make_anew(self, was):
        """Creates an empty provider with the uuid and the generation of the old one."""
        path = '/resource_providers/' + was['uuid']
        self.placement.api('DELETE', path)
        self.placement.api('POST', '/resource_providers', {'uuid': was['uuid'], 'name': was['name'],
                                                           'parent_provider_uuid': was['parent']})
        for generation in range(was['generation']):
            self.placement.api('PUT', path + '/inventories', {'resource_provider_generation': generation, 'inventories': {}})

    def check_repaired(self, agent, before):
        """Checks that the next cycle repairs the tree, although each generation is the old one."""
        after = self.placement.tree_by_name(agent.root())
        self.assertEqual({name: item['generation'] for name, item in after.items()},
                         {name: item['generation'] for name, item in before.items()})
        self.assertNotEqual(after, before)
        agent.ctl('sync')
        self.check_equal(agent, before)

    def check_equal(self, agent, before):
        after = self.placement.tree_by_name(agent.root())
        for name, item in before.items():
            self.assertEqual({**after[name], 'generation': item['generation']}, item)

    def check_full(self, agent, before):
        """Checks that a full sync reads each part of each provider once and repairs the tree. The next cycle must be quiet."""
        mark = self.placement.mark()
        agent.ctl('sync', '--full')
        reads = [path for method, path, _ in self.placement.requests_since(mark)
                 if path.rpartition('/')[2] in ('inventories', 'traits', 'aggregates') and method == 'GET']
        self.assertEqual(len(reads), 3 * len(before), reads)
        self.assertEqual(len(set(reads)), 3 * len(before))
        self.check_equal(agent, before)
        mark = self.placement.mark()
        agent.ctl('sync')
        self.assertEqual(len(self.placement.requests_since(mark)), 1)

    def test_one_provider(self):
        agent, before = self.start()
        self.make_anew(before[GPU_A])
        self.check_repaired(agent, before)
        self.check_full(agent, before)

    def test_the_whole_tree(self):
        agent, before = self.start()
        root = before[next(name for name, item in before.items() if item['parent'] is None)]
        children = [item for item in before.values() if item['parent']]
        for item in children:
            self.placement.api('DELETE', '/resource_providers/' + item['uuid'])
        self.make_anew(root)
        for item in children:
            self.placement.api('POST', '/resource_providers', {'uuid': item['uuid'], 'name': item['name'],
                                                               'parent_provider_uuid': item['parent']})
            self.make_anew(item)
        self.check_repaired(agent, before)
        self.check_full(agent, before)

    def test_placement_is_away_meanwhile(self):
        """The full read that failed is done in the next cycle."""
        agent, before = self.start()
        self.make_anew(before[GPU_A])
        self.placement.kill()
        self.assertEqual(agent.ctl('sync', '--full', check=False).returncode, 1)
        self.placement.start()
        agent.ctl('sync')
        self.assertEqual({name: item['inventories'] for name, item in self.placement.tree_by_name(agent.root()).items()},
                         {name: item['inventories'] for name, item in before.items()})

    def test_a_full_read_finds_a_provider_created_again(self):
        """A full read without differences writes nothing. Its result is available as JSON, too."""
        agent, before = self.start()
        mark = self.placement.mark()
        self.assertEqual(agent.ctl('sync', '--full', '--json=short').stdout, '{"published":true,"error":""}\n')
        self.assertEqual(self.placement.writes_since(mark), [])
        self.assertEqual(self.placement.tree_by_name(agent.root()), before)
        self.assertIn('--full', agent.ctl('sync', '--help').stdout)
