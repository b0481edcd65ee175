# SPDX-License-Identifier: LGPL-2.1-or-later
"""The agent beside nova-compute: the writes that each value of [agent] nova allows, counted at a real Placement, and the reports
that replace the forbidden writes.

A second writer takes the part of nova-compute. The tree in Placement is the one that the agent published with [agent] nova = none.
"""

import uuid

from tests.env.scratch import wait_until
from tests.integration.agent.test_audit import GPU_NAME, NODE, OPTIONS, T4_NAME, AuditCase

CORDON_TRAIT = 'COMPUTE_STATUS_DISABLED'
LEFT = 'left-to-nova'


class NovaCase(AuditCase):
    def sends(self, mark):
        """Returns all requests except GET. They include the check whether the agent is allowed to reshape."""
        return [line for line in self.placement.requests_since(mark) if line[0] != 'GET']

    def change(self, agent, name, part, edit):
        """Edits inventories or traits of a provider as another writer."""
        self.placement.edit(self.provider(agent, name), part, edit)

    def set_nova(self, agent, mode, **more):
        agent.configure({'agent': {'nova': mode}, **more})
        agent.ctl('reload')
        agent.wait_state(LEFT if mode in ('observe', 'beside') else 'synced')

    def start_published(self, options=None):
        agent = self.start_agent({**OPTIONS, **(options or {})})
        agent.ctl('sync')
        return agent

    def differences(self, agent):
        return agent.status()['n_differences']

    def property(self, name):
        return self.bus.busctl('get-property', 'org.computeagent.Agent1', '/org/computeagent/Agent1', 'org.computeagent.Agent1',
                               name).stdout.strip()

    def refused(self, agent, *args):
        done = agent.ctl(*args, check=False)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        return done.stderr


class TestObserve(NovaCase):
    def test_a_new_host_is_not_published(self):
        metrics = self.scratch.path / 'agent.prom'
        mark = self.placement.mark()
        agent = self.make_agent({**OPTIONS, 'agent': {'nova': 'observe', 'metrics_file': metrics}}).start(LEFT)
        agent.ctl('sync')
        self.assertEqual(self.sends(mark), [])
        plan = agent.ctl_json('plan')
        self.assertIn('POST', {step['method'] for step in plan})
        self.assertEqual(self.differences(agent), len(plan))
        self.assertIn('compute_agent_placement_differences %d\n' % len(plan), metrics.read_text())
        self.assertIn('compute_agent_nova_mode{mode="observe"} 1\n', metrics.read_text())
        self.assertEqual(agent.status()['state'], 'warning')
        shown = agent.ctl('status', code=4)
        self.assertIn('%d requests would make the tree of nova-compute equal' % len(plan), shown.stdout)
        self.assertIn('%d requests would make' % len(plan), agent.ctl('doctor', check=False).stdout)
        self.assertEqual(self.property('Nova'), 's "observe"')
        self.assertEqual(self.property('TreePublished'), 'b false')
        self.assertEqual(agent.run('--dry-run').returncode, 0)
        self.assertEqual(self.sends(mark), [])
        self.set_nova(agent, 'top')
        self.assertEqual(self.property('TreePublished'), 'b true')
        self.assertEqual(self.differences(agent), 0)
        self.assertIn(NODE, self.placement.tree_by_name(agent.root()))

    def test_differences_are_counted_and_not_written(self):
        agent = self.start_published()
        self.set_nova(agent, 'observe')
        self.assertEqual(self.differences(agent), 0)
        self.assertEqual(agent.ctl_json('plan'), [])
        mark = self.placement.mark()
        self.change(agent, NODE, 'traits', lambda traits: traits.remove('HW_CPU_X86_SSE3')
                    if 'HW_CPU_X86_SSE3' in traits else traits.remove('COMPUTE_NODE'))
        self.change(agent, NODE, 'inventories',
                    lambda inventories: inventories['MEMORY_MB'].update(reserved=17))
        agent.ctl('sync')
        self.assertEqual(self.differences(agent), 2)
        self.assertEqual({step['path'].rsplit('/')[-1] for step in agent.ctl_json('plan')}, {'traits', 'inventories'})
        agent.restart(LEFT)
        agent.ctl('sync')
        self.assertEqual(self.differences(agent), 2)
        self.assertEqual(self.sends(mark), [])
        self.set_nova(agent, 'none')
        self.assertEqual(len(self.sends(mark)), 2, self.sends(mark))

    def test_a_part_of_the_host_that_is_unread_fails_the_sync_alone(self):
        agent = self.start_published()
        self.set_nova(agent, 'beside', libvirt={'images_type': 'rbd', 'images_rbd_pool': 'none', 'images_rbd_ceph_conf': '/nonexistent'})
        self.assertIn('images_type = rbd', self.refused(agent, 'sync'))
        self.assertEqual(agent.run('--dry-run').returncode, 0)
        agent.ctl('cordon', '0000:c1:00.0')

    def test_a_reshape_is_shown_and_not_done(self):
        agent = self.start_published()
        guest = self.libvirtd.start_guest('good', memory_mib=40, vcpus=2)
        self.allocate({agent.root(): {'VCPU': 2, 'MEMORY_MB': 40}}, guest)
        agent.stop()
        mark = self.placement.mark()
        agent.configure({'agent': {'nova': 'observe'}, 'compute': {'numa_in_placement': 'true'}})
        agent.start(LEFT)
        agent.ctl('sync')
        self.assertGreater(self.differences(agent), 0)
        self.assertIn(guest, agent.ctl('reshape', '--plan', '--json=short').stdout)
        self.assertIn('[agent] nova is observe', self.refused(agent, 'reshape'))
        self.assertIn('[agent] nova is observe', self.refused(agent, 'reshape', '--undo'))
        self.assertEqual(self.holds(guest), {agent.root(): {'VCPU': 2, 'MEMORY_MB': 40}})
        self.assertEqual(self.sends(mark), [])
        # With "top" the agent reshapes as at a start.
        self.set_nova(agent, 'top')
        self.assertEqual(sum(part.get('VCPU', 0) for part in self.holds(guest).values()), 2)
        self.assertNotIn(agent.root(), self.holds(guest))

    def test_claims_follow_and_write_nothing(self):
        agent = self.start_published({'hook': {'enabled': 'true'}, 'DEFAULT': {'claim_expiry_time': 3600}})
        told = agent.claim('VCPU=1,MEMORY_MB=40')
        self.assertEqual(self.holds(told['consumer']), {agent.root(): {'VCPU': 1, 'MEMORY_MB': 40}})
        self.set_nova(agent, 'observe')
        mark = self.placement.mark()
        done = agent.claim('VCPU=1', code=1)
        self.assertIn('[agent] nova is observe', done.stderr)
        placed = self.allocate({agent.root(): {'VCPU': 2, 'MEMORY_MB': 64}})
        claim = agent.claim('VCPU=2,MEMORY_MB=64', placed)
        self.assertEqual(claim['allocations'][0]['resources'], {'VCPU': 2, 'MEMORY_MB': 64})
        other = str(uuid.uuid4())
        self.assertIn('[agent] nova is observe', self.refused(agent, 'move', placed, other))
        self.assertIn('[agent] nova is observe',
                      self.refused(agent, 'release', '--allocations', claim['id']))
        guest = self.libvirtd.start_guest('good', memory_mib=40, vcpus=2)
        wait_until(lambda: self.of_guest(agent, guest), 20, 'the claim')
        agent.ctl('release', claim['id'])
        # The removal of an earlier allocation is pending, and the status shows it.
        agent.ctl('release', told['id'])
        agent.ctl('sync')
        status = agent.status()
        self.assertEqual((status['n_pending_writes'], status['n_pending_removals']), (0, 1))
        self.assertIn('[agent] nova is observe', status['pending_writes_error'])
        self.placement.kill()
        agent.wait_state('offline')
        self.assertEqual(agent.claim('VCPU=1', check=False).returncode, 1)
        self.placement.start()
        agent.ctl('sync')
        agent.wait_state(LEFT)
        self.assertEqual(self.sends(mark), [])
        self.assertEqual(self.holds(placed), {agent.root(): {'VCPU': 2, 'MEMORY_MB': 64}})
        self.set_nova(agent, 'none')
        wait_until(lambda: not self.holds(told['consumer']), 20, 'the removal')

    def test_nothing_is_healed(self):
        agent = self.start_published()
        self.set_nova(agent, 'observe')
        mark = self.placement.mark()
        leak = self.leak(agent, {self.provider(agent, GPU_NAME): {'CUSTOM_NVIDIA_35': 1}})
        self.wait_remedy(agent, leak, 'release-share')
        code, findings = self.audit(agent, 'heal')
        self.assertEqual((code, findings[leak]), (3, ('leaked', 'release-share', 'failed')))
        self.assertIn('[agent] nova is observe', agent.ctl('heal', check=False).stdout)
        self.set_nova(agent, 'observe', DEFAULT={'claim_expiry_time': 1, 'update_resources_interval': 1})
        agent.configure({'agent': {'heal_each_cycles': 1}})
        agent.ctl('reload')
        agent.ctl('sync')
        agent.ctl('sync')
        self.assertTrue(self.holds(leak))
        self.assertEqual(self.sends(mark), [])

    def test_cordons_are_refused(self):
        agent = self.start_published()
        agent.ctl('cordon')
        agent.ctl('cordon', '0000:41:00.0')
        self.set_nova(agent, 'observe')
        mark = self.placement.mark()
        for device in ([], ['0000:41:00.0'], ['0000:c1:00.0']):
            self.assertIn('[agent] nova is observe', self.refused(agent, 'cordon', *device))
        # Earlier cordons still reject claims. Nova's changes of their traits are kept.
        self.change(agent, NODE, 'traits', lambda traits: traits.remove(CORDON_TRAIT))
        agent.ctl('sync')
        placed = self.allocate({agent.root(): {'VCPU': 1}})
        self.assertIn('cordoned', agent.claim('VCPU=1', placed, check=False).stderr)
        # They end for claims. Placement does not get that, so it is not a success.
        for device in ([], ['0000:41:00.0']):
            done = agent.ctl('uncordon', *device, code=1)
            self.assertIn('is uncordoned. Not published yet: [agent] nova is observe', done.stdout)
        agent.ctl('sync')
        agent.claim('VCPU=1', placed)
        self.assertEqual(self.sends(mark), [])

    def test_the_name_is_left(self):
        agent = self.start_published()
        self.set_nova(agent, 'observe')
        agent.stop()
        mark = self.placement.mark()
        done = agent.ctl('identity', 'rename', '--config', agent.config, check=False)
        self.assertIn('[agent] nova is observe', done.stdout + done.stderr)
        self.assertEqual(self.sends(mark), [])


class TestBeside(NovaCase):
    def test_allocations_are_written_and_nothing_of_the_tree(self):
        agent = self.start_published()
        self.set_nova(agent, 'beside')
        mark = self.placement.mark()
        self.change(agent, NODE, 'inventories',
                    lambda inventories: inventories['MEMORY_MB'].update(reserved=17))
        self.change(agent, GPU_NAME, 'traits', lambda traits: traits.clear())
        agent.ctl('sync')
        self.assertEqual(self.differences(agent), 2)
        claim = agent.claim('VCPU=1,MEMORY_MB=40')
        self.assertEqual(self.holds(claim['consumer']), {agent.root(): {'VCPU': 1, 'MEMORY_MB': 40}})
        agent.ctl('release', claim['id'])
        wait_until(lambda: not self.holds(claim['consumer']), 20, 'the removal')
        leak = self.leak(agent, {self.provider(agent, GPU_NAME): {'CUSTOM_NVIDIA_35': 1}})
        self.wait_remedy(agent, leak, 'release-share')
        self.assertEqual(self.audit(agent, 'heal')[1][leak][2], 'healed')
        self.assertEqual({path.split('/')[1] for _, path, _ in self.sends(mark)}, {'allocations'})
        self.assertIn('[agent] nova is beside', self.refused(agent, 'reshape'))

    def test_cordons_go_where_nova_leaves_them(self):
        agent = self.start_published()
        agent.ctl('cordon')
        self.set_nova(agent, 'beside')
        mark = self.placement.mark()
        words = self.refused(agent, 'cordon')
        self.assertIn('openstack compute service set --disable', words)
        done = agent.ctl('uncordon', code=1)
        self.assertIn('Not published yet: [agent] nova is beside, so nova-compute manages the tree', done.stdout)
        self.change(agent, NODE, 'traits', lambda traits: traits.remove(CORDON_TRAIT))
        self.assertIn('resets reserved to 0', self.refused(agent, 'cordon', '0000:41:00.0'))
        self.assertEqual(self.sends(mark), [])

        def reserved():
            card = self.placement.tree_by_name(agent.root())[T4_NAME]['inventories']
            return card['CUSTOM_PCI_10DE_1EB8']['reserved']

        agent.ctl('cordon', '0000:c1:00.0', '--reason', 'ECC errors')
        self.assertEqual(reserved(), 1)
        self.assertEqual(self.differences(agent), 0)
        done = agent.claim('CUSTOM_PCI_10DE_1EB8=1', check=False)
        self.assertIn('ECC errors', done.stderr)
        agent.ctl('uncordon', '0000:c1:00.0')
        self.assertEqual(reserved(), 0)
        self.assertEqual({(method, path.split('/')[-1]) for method, path, _ in self.sends(mark)}, {('PUT', 'inventories')})

    def test_each_is_a_stable_state(self):
        agent = self.start_published()
        guest = self.libvirtd.start_guest('good', memory_mib=40, vcpus=2)
        wait_until(lambda: self.of_guest(agent, guest), 20, 'the claim')
        claim = self.of_guest(agent, guest)[0]['id']
        tree = self.placement.tree_by_name(agent.root())
        for mode in ('observe', 'beside', 'top', 'beside', 'observe', 'none'):
            self.set_nova(agent, mode)
            mark = self.placement.mark()
            agent.ctl('sync')
            self.assertEqual(self.sends(mark), [], mode)
            self.assertEqual(self.property('Nova'), 's "%s"' % mode)
            self.assertEqual(self.differences(agent), 0)
            self.assertEqual(self.of_guest(agent, guest)[0]['id'], claim)
        self.assertEqual(self.placement.tree_by_name(agent.root()), tree)


class TestSecondReporter(NovaCase):
    def start_quiet(self, mode='none', **more):
        """Returns an agent whose cycles run only on request, and the path of its metrics."""
        metrics = self.scratch.path / 'agent.prom'
        agent = self.start_published({'DEFAULT': {'update_resources_interval': 3600},
                                      'agent': {'metrics_file': metrics, **more}})
        self.set_nova(agent, mode)
        return agent, metrics

    def fight(self, agent, undo, times):
        """Undoes a change of the agent before each of several cycles, and returns the number of the agent's writes."""
        mark = self.placement.mark()
        for _ in range(times):
            undo()
            agent.ctl('sync', check=False)
        return len(self.sends(mark))

    def take_trait(self, agent, trait):
        self.change(agent, NODE, 'traits', lambda traits: traits.remove(trait) if trait in traits else None)

    def test_a_trait_is_taken_away(self):
        agent, metrics = self.start_quiet()
        conflicts = agent.status()['n_conflicts']
        n = self.fight(agent, lambda: self.take_trait(agent, 'COMPUTE_NODE'), 8)
        # After the third time the agent does not repeat the write for 15 minutes.
        self.assertEqual(n, 2)
        self.assertEqual(agent.status()['n_conflicts'], conflicts)
        words = 'trait COMPUTE_NODE of %s: removed (overwritten 3 times)' % NODE
        self.assertEqual(agent.status()['second_reporter'], words)
        self.assertIn(words, ' '.join(agent.ctl('status', check=False).stdout.split()))
        doctor = agent.ctl_json('doctor', check=False)
        finding, = [one for one in doctor['findings'] if one['check'] == 'second reporter']
        self.assertEqual(finding['state'], 'bad')
        self.assertIn(words, finding['cause'])
        self.assertEqual(agent.log().count('COMPUTE_NODE of %s was overwritten 3 times' % NODE), 1)
        self.assertIn('compute_agent_placement_undone{provider="%s",part="COMPUTE_NODE"} 3\n' % NODE,
                      metrics.read_text())
        # Other values are still written.
        self.assertEqual(self.fight(agent, lambda: self.change(
            agent, NODE, 'inventories', lambda all_: all_['MEMORY_MB'].update(reserved=17)), 1), 1)

    def test_a_refused_part_does_not_hide_it(self):
        agent, _ = self.start_quiet()
        self.placement.api('DELETE', '/resource_providers/' + self.placement.tree_by_name(agent.root())[T4_NAME]['uuid'])
        self.placement.make_provider(T4_NAME)
        n = self.fight(agent, lambda: self.take_trait(agent, 'COMPUTE_NODE'), 6)
        self.assertIn('The name belongs to provider', agent.status()['sync_error'])
        self.assertEqual(agent.status()['second_reporter'], 'trait COMPUTE_NODE of %s: removed (overwritten 3 times)' % NODE)
        # In each cycle the agent tries to make the provider. It writes the trait twice.
        self.assertEqual(n, 6 + 2)

    def test_an_inventory_swings(self):
        for mode in ('none', 'top'):
            agent, _ = self.start_quiet(mode)
            n = self.fight(agent, lambda agent=agent: self.change(
                agent, NODE, 'inventories', lambda all_: all_['MEMORY_MB'].update(reserved=17)), 5)
            self.assertEqual(n, 2, mode)
            self.assertRegex(agent.status()['second_reporter'],
                             r'inventory MEMORY_MB of %s: reserved 17, not \d+ \(overwritten 3 times\)' % NODE)
            agent.stop()
            self.placement.forget_providers()

    def test_reserved_of_pci_devices_is_written_beside_nova(self):
        agent, _ = self.start_quiet('beside')
        agent.ctl('cordon', '0000:c1:00.0')
        n = self.fight(agent, lambda: self.change(
            agent, T4_NAME, 'inventories', lambda all_: all_['CUSTOM_PCI_10DE_1EB8'].update(reserved=0)), 5)
        self.assertEqual(n, 2)
        self.assertIn('CUSTOM_PCI_10DE_1EB8', agent.status()['second_reporter'])

    def test_a_sync_says_what_is_left_to_the_other_writer(self):
        for mode in ('none', 'beside'):
            agent, _ = self.start_quiet(mode)
            agent.ctl('cordon', '0000:c1:00.0')
            self.fight(agent, lambda agent=agent: self.change(
                agent, T4_NAME, 'inventories', lambda all_: all_['CUSTOM_PCI_10DE_1EB8'].update(reserved=0)), 3)
            words = 'inventory CUSTOM_PCI_10DE_1EB8 of %s: reserved 0, not 1 (overwritten 3 times)' % T4_NAME
            self.assertIn(words, agent.ctl('sync', code=1).stderr)
            synced = agent.ctl_json('sync', code=1)
            self.assertFalse(synced['published'])
            self.assertIn(words, synced['error'])
            findings = agent.ctl_json('doctor', check=False)['findings']
            self.assertEqual([one for one in findings if 'is equal to this host' in one['text']], [])
            agent.stop()
            self.placement.forget_providers()

    def test_a_cordon_ends_the_pauses(self):
        for mode in ('none', 'beside'):
            agent, _ = self.start_quiet(mode)

            def card(agent=agent):
                return self.placement.tree_by_name(agent.root())[T4_NAME]['inventories']['CUSTOM_PCI_10DE_1EB8']

            def fight(agent=agent, **values):
                self.fight(agent, lambda: self.change(
                    agent, T4_NAME, 'inventories', lambda all_: all_['CUSTOM_PCI_10DE_1EB8'].update(**values)), 4)

            fight(allocation_ratio=2.0)
            self.assertEqual(card()['allocation_ratio'], 2, mode)
            agent.ctl('cordon', '0000:c1:00.0')
            self.assertEqual(card()['reserved'], 1, mode)
            # The second cordon changes nothing but its author, and the value is in its pause.
            fight(reserved=0)
            self.assertEqual(card()['reserved'], 0, mode)
            self.assertTrue(agent.ctl_json('cordon', '0000:c1:00.0')['published'])
            self.assertEqual(card()['reserved'], 1, mode)
            agent.ctl('uncordon', '0000:c1:00.0')
            self.assertEqual(card()['reserved'], 0, mode)
            agent.stop()
            self.placement.forget_providers()

    def test_a_cordon_of_the_host_ends_the_pauses(self):
        agent, _ = self.start_quiet()
        agent.ctl('cordon')
        self.fight(agent, lambda: self.take_trait(agent, CORDON_TRAIT), 4)
        self.assertNotIn(CORDON_TRAIT, self.placement.tree_by_name(agent.root())[NODE]['traits'])
        agent.ctl('cordon')
        self.assertIn(CORDON_TRAIT, self.placement.tree_by_name(agent.root())[NODE]['traits'])

    def test_a_foreign_trait_is_left(self):
        agent, _ = self.start_quiet(foreign_traits='COMPUTE_NODE')
        self.assertNotIn('COMPUTE_NODE', self.placement.tree_by_name(agent.root())[NODE]['traits'])
        self.change(agent, NODE, 'traits', lambda traits: traits.append('COMPUTE_NODE'))
        agent.ctl('sync')
        self.assertIn('COMPUTE_NODE', self.placement.tree_by_name(agent.root())[NODE]['traits'])
        self.assertEqual(self.fight(agent, lambda: self.take_trait(agent, 'COMPUTE_NODE'), 4), 0)
        self.assertEqual(agent.status()['second_reporter'], '')
