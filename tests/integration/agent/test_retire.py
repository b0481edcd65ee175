# SPDX-License-Identifier: LGPL-2.1-or-later
"""A host is retired from Placement, and the retirement is undone."""

import json
import uuid

from tests.env import faults
from tests.env.scratch import wait_until
from tests.integration.agent.test_agent import GPU_A, AgentCase


class TestRetire(AgentCase):
    def retire(self, agent, *options):
        done = agent.ctl('retire', *options, check=False)
        return done.returncode, done.stdout, done.stderr

    def in_placement(self, root):
        return self.placement.get('/resource_providers?in_tree=' + root)['resource_providers']

    def test_there_and_back(self):
        agent = self.start_agent()
        root = agent.root()
        before = self.placement.tree_by_name(root)
        code, shown, _ = self.retire(agent, '--dry-run')
        self.assertEqual(code, 0)
        names = shown.splitlines()[1:1 + len(before)]
        self.assertEqual(names[-1], '  demo')
        self.assertEqual(sorted(names), sorted('  ' + name for name in before))
        self.assertEqual(self.placement.tree_by_name(root), before)

        code, _, words = self.retire(agent)
        self.assertEqual(code, 1)
        self.assertIn('The host is not cordoned. Run "computectl cordon" first', words)
        agent.ctl('cordon', '--reason', 'sold')
        code, shown, words = self.retire(agent)
        self.assertEqual(code, 0, words)
        self.assertIn('The host is retired', shown)
        self.assertEqual(self.in_placement(root), [])
        self.assertEqual([one['event'] for one in agent.ctl_json('history')['events']], ['retired', 'cordoned'])

        # The host stays retired over cycles and a restart, and "computectl uncordon" does not change that.
        mark = self.placement.mark()
        agent.ctl('sync')
        agent.restart('retired')
        agent.ctl('sync')
        self.assertEqual(self.placement.writes_since(mark), [])
        self.assertTrue(agent.status()['tree_published'], 'nova-compute would report the host')
        status = agent.ctl('status', code=4)
        self.assertIn('the host is retired', status.stdout.splitlines()[0])
        self.assertIn('sold', status.stdout)
        self.assertIn('retire --undo', agent.ctl('uncordon', check=False).stderr)
        self.assertIn('already retired', self.retire(agent)[2])
        for options in ([], ['--dry-run'], ['--undo']):
            self.assertIn('The host is retired', agent.ctl('reshape', *options, code=1).stderr)
        self.assertEqual(agent.claim('VCPU=1', check=False).returncode, 1)

        # Without the tree, nova-compute must not count it as published.
        stranger = self.placement.make_provider('demo')
        self.assertIn('stays cordoned', agent.ctl('retire', '--undo', check=False).stdout)
        agent.wait_state('stale')
        self.assertFalse(agent.status()['tree_published'])
        self.placement.api('DELETE', '/resource_providers/' + stranger)
        agent.ctl('sync')
        agent.wait_state('synced')
        self.assertTrue(agent.status()['tree_published'])
        agent.ctl('uncordon')
        after = self.placement.tree_by_name(root)
        self.assertEqual({name: one['inventories'] for name, one in after.items()},
                         {name: one['inventories'] for name, one in before.items()})
        self.assertEqual({name: one['uuid'] for name, one in after.items()},
                         {name: one['uuid'] for name, one in before.items()})
        self.assertEqual(agent.ctl('retire', '--undo', check=False).returncode, 1)

    def test_retire_lists_its_obstacles(self):
        agent = self.start_agent()
        tree = self.placement.tree_by_name(agent.root())
        claimed = str(uuid.uuid4())
        number = agent.claim('VCPU=1', claimed)['id']
        placed = self.placement.place(None, {tree[GPU_A]['uuid']: {'VGPU': 1}})
        self.placement.make_provider('demo_nic_of_neutron', parent=agent.root())
        agent.ctl('cordon')
        before = self.placement.tree_by_name(agent.root())
        for options in (['--dry-run'], []):
            code, shown, _ = self.retire(agent, *options)
            self.assertEqual(code, 3)
            self.assertIn('%s, claim %d, has allocations in Placement\n' % (claimed, number), shown)
            self.assertIn('%s, has allocations in Placement\n' % placed, shown)
            self.assertIn('  demo_nic_of_neutron\n', shown)
            self.assertIn('Nothing was changed', shown)
        document = agent.ctl_json('retire', check=False)
        self.assertEqual((document['done'], len(document['holders']), document['foreign']),
                         (False, 2, ['demo_nic_of_neutron']))
        self.assertEqual(set(self.placement.tree_by_name(agent.root())), set(before))
        agent.wait_state('synced')

        agent.ctl('release', number)
        wait_until(lambda: not self.placement.held(claimed), 30, 'the end of the share')
        self.placement.delete(placed)
        nic = before['demo_nic_of_neutron']['uuid']
        self.assertEqual(self.placement.request('DELETE', '/resource_providers/' + nic).status, 204)
        wait_until(lambda: self.retire(agent)[0] == 0, 30, 'the end of the last share')
        self.assertEqual(self.in_placement(agent.root()), [])

    def test_placement_refuses(self):
        """Placement gets an allocation between the check and the removal. The provider tree is complete again after the next cycle."""
        agent = self.make_agent(placement=self.proxy).start('synced')
        agent.ctl('cordon')
        before = self.placement.tree_by_name(agent.root())
        self.proxy.add(faults.Answer(409, json.dumps({'errors': [{
            'status': 409, 'title': 'Conflict', 'code': 'placement.undefined_code', 'request_id': 'req-1',
            'detail': 'Unable to delete resource provider: in use'}]}),
            method='DELETE', path='/resource_providers/%s$' % agent.root()))
        code, _, words = self.retire(agent)
        self.assertEqual(code, 1)
        self.assertIn('The host is not retired', words)
        agent.ctl('sync')
        agent.wait_state('synced')
        self.assertEqual(set(self.placement.tree_by_name(agent.root())), set(before))
        self.assertEqual([one['event'] for one in agent.ctl_json('history')['events']], ['cordoned'])
