# SPDX-License-Identifier: LGPL-2.1-or-later
"""The daemon between a real libvirtd with made-up hardware and a real Placement: the published tree, the exit codes and the drivers."""

import uuid

from tests.run.demo import expected_tree, placement_tree
from tests.env.agent import Agent
from tests.env.case import EnvCase
from tests.env.fakesys import set_available
from tests.env.libvirtd import guest_xml
from tests.env.placement import Placement
from tests.env.scratch import wait_until

GPU_A = 'demo_pci_0000_41_00_0'
GPU_B = 'demo_pci_0000_81_00_0'


class AgentCase(EnvCase):
    """One libvirtd for each class. Placement and the bus belong to the test, because provider names are global and a test can kill
    both servers."""

    shared = ('host', 'libvirtd')

    def make_agent(self, options=None, **kwargs):
        kwargs.setdefault('placement', self.placement)
        kwargs.setdefault('uri', self.libvirtd.uri)
        kwargs.setdefault('bus', self.bus)
        return Agent(self.scratch, options=options, **kwargs)

    def start_agent(self, options=None, state='synced', **kwargs):
        return self.make_agent(options, **kwargs).start(state)

    def vgpus(self, agent, name=GPU_A):
        tree = self.placement.tree_by_name(agent.root())
        return tree[name]['inventories']['VGPU']['total']


class TestPublish(AgentCase):
    def test_the_tree_in_placement_is_equal_to_the_host(self):
        agent = self.start_agent()
        self.assertEqual(placement_tree(self.placement, agent.root()),
                         expected_tree(agent, self.host))
        tree = self.placement.tree_by_name(agent.root())
        self.assertIsNone(tree['demo']['parent'])
        self.assertEqual(tree[GPU_A]['parent'], agent.root())
        self.assertIn('COMPUTE_NODE', tree['demo']['traits'])
        vcpu = tree['demo']['inventories']['VCPU']
        self.assertEqual((vcpu['min_unit'], vcpu['max_unit'], vcpu['step_size'],
                          vcpu['allocation_ratio']), (1, 16, 1, 4.0))
        self.assertEqual(tree['demo']['inventories']['MEMORY_MB']['allocation_ratio'], 1.0)

    def test_a_quiet_cycle_is_one_request_and_no_write(self):
        agent = self.start_agent()
        agent.ctl('sync')
        mark = self.placement.mark()
        agent.ctl('sync')
        requests = self.placement.requests_since(mark)
        self.assertEqual(self.placement.writes_since(mark), [])
        self.assertEqual(len(requests), 1, requests)
        self.assertIn('in_tree=', requests[0][1])

    def test_b3_7_who_shares_with_this_host_is_known_and_left_alone(self):
        agent = self.start_agent({'compute': {'report_local_disk': 'yes'}})
        root, aggregate = agent.root(), str(uuid.uuid4())
        pool = self.placement.make_provider('pool', {'DISK_GB': 100}, traits=['MISC_SHARES_VIA_AGGREGATE'])
        self.placement.set_part(pool, 'aggregates', [aggregate])
        agent.ctl('sync')
        self.assertEqual(agent.ctl_json('tree')['shares'], [])
        self.placement.set_part(root, 'aggregates', [aggregate])
        before = self.placement.tree(pool)
        mark = self.placement.mark()
        agent.ctl('sync')
        self.assertEqual(len(self.placement.requests_since(mark)), 8)
        self.assertEqual(agent.ctl_json('tree')['shares'], ['pool'])
        self.assertIn('shares: pool\n', agent.ctl('tree').stdout)
        mark = self.placement.mark()
        agent.ctl('sync')
        self.assertEqual(len(self.placement.requests_since(mark)), 2)
        self.assertEqual(self.placement.tree(pool), before)
        self.assertEqual(self.placement.tree(root)[root]['aggregates'], [aggregate])

    def test_one_changed_inventory_is_one_write(self):
        agent = self.start_agent()
        mark = self.placement.mark()
        set_available(self.libvirtd.sys, '0000:41:00.0', 'nvidia-35', 2)
        self.addCleanup(set_available, self.libvirtd.sys, '0000:41:00.0', 'nvidia-35', 4)
        agent.ctl('sync')
        self.assertEqual(self.vgpus(agent), 2)
        self.assertEqual(len(self.placement.writes_since(mark)), 1)

    def test_an_operators_ratio_survives(self):
        agent = self.start_agent()
        self.placement.edit(agent.root(), 'inventories', lambda inventories: inventories['VCPU'].update(allocation_ratio=2.5))
        agent.ctl('sync')
        set_available(self.libvirtd.sys, '0000:41:00.0', 'nvidia-35', 3)
        self.addCleanup(set_available, self.libvirtd.sys, '0000:41:00.0', 'nvidia-35', 4)
        agent.ctl('sync')
        root = self.placement.tree_by_name(agent.root())['demo']
        self.assertEqual(root['inventories']['VCPU']['allocation_ratio'], 2.5)
        self.assertEqual(root['inventories']['VCPU']['total'], 16)

    def test_a_foreign_write_is_read_again_and_kept(self):
        agent = self.start_agent()
        self.placement.request('PUT', '/traits/CUSTOM_GOLD')
        self.placement.edit(agent.root(), 'traits', lambda traits: traits.append('CUSTOM_GOLD'))
        agent.configure({'DEFAULT': {'reserved_host_memory_mb': 1024}})
        agent.restart('synced')
        root = self.placement.tree_by_name(agent.root())['demo']
        self.assertIn('CUSTOM_GOLD', root['traits'])
        self.assertEqual(root['inventories']['MEMORY_MB']['reserved'], 1024)

    def test_the_same_host_under_its_identity_is_not_created_twice(self):
        agent = self.start_agent()
        before = self.placement.tree_by_name(agent.root())
        mark = self.placement.mark()
        agent.restart('synced')
        self.assertEqual(self.placement.writes_since(mark), [])
        self.assertEqual(self.placement.tree_by_name(agent.root()).keys(), before.keys())

    def test_over_a_unix_socket(self):
        placement = Placement(self.scratch, 'unix').start()
        agent = self.start_agent(placement=placement)
        self.assertEqual(placement_tree(placement, agent.root()), expected_tree(agent, self.host))

    def test_a_device_that_left_the_configuration_leaves_placement(self):
        agent = self.start_agent()
        agent.configure({'devices': {'enabled_mdev_types': 'nvidia-36'}})
        agent.restart('synced')
        tree = self.placement.tree_by_name(agent.root())
        # The second GPU has an mdev of nvidia-35, so it can make no mdev of another type.
        self.assertEqual(set(tree), {'demo', GPU_A})
        self.assertEqual(tree[GPU_A]['inventories']['VGPU']['total'], 2)


class TestOnce(AgentCase):
    def test_once_publishes_and_exits_0(self):
        agent = self.make_agent()
        agent.run('--once', code=0)
        self.assertEqual(placement_tree(self.placement, agent.root()),
                         expected_tree(agent, self.host))

    def test_once_exits_1_when_placement_is_down(self):
        agent = self.make_agent()
        self.placement.kill()
        done = agent.run('--once', code=1)
        self.assertIn('Placement', done.stderr)
        self.assertIn(str(self.placement.port), done.stderr)

    def test_once_exits_1_when_the_hypervisor_is_down(self):
        agent = self.make_agent(uri='qemu:///system?socket=/nonexistent/libvirt-sock')
        done = agent.run('--once', code=1)
        self.assertIn('libvirt', done.stderr)

    def test_dry_run_prints_the_plan_and_writes_nothing(self):
        agent = self.make_agent()
        mark = self.placement.mark()
        done = agent.run('--dry-run', code=0)
        self.assertIn('POST /resource_providers', done.stdout)
        self.assertIn('/inventories', done.stdout)
        self.assertEqual(self.placement.writes_since(mark), [])
        self.assertEqual(agent.run('--once').returncode, 0)
        self.assertIn('Nothing to do', agent.run('--dry-run').stdout)

    def test_e3_dry_run_says_that_the_name_is_taken(self):
        other = self.placement.make_provider('demo')
        done = self.make_agent().run('--dry-run', code=1)
        self.assertIn('The name belongs to provider %s in Placement' % other, done.stderr)
        self.assertIn('Another running host might use this name', done.stderr)

    def test_dry_run_on_a_new_host_leaves_no_trace(self):
        for folder in ('there', 'not-there-yet'):
            state = self.scratch.folder('dry-run') / folder
            if folder == 'there':
                state.mkdir()
            agent = self.make_agent({'agent': {'state_dir': state}})
            done = agent.run('--dry-run', code=0)
            self.assertIn('POST /resource_providers', done.stdout)
            self.assertEqual(list(state.rglob('*')), [])

    def test_dry_run_leaves_damaged_state(self):
        agent = self.make_agent()
        agent.run('--once', code=0)
        for name in ('cordon', 'devices', 'provider-config', 'retained'):
            (agent.state / (name + '.json')).write_text('{')
        before = sorted((path.name, path.read_bytes()) for path in agent.state.iterdir())
        words = agent.run('--dry-run', code=0).stderr
        self.assertIn('cordon.json: damaged', words)
        self.assertEqual(sorted((path.name, path.read_bytes()) for path in agent.state.iterdir()), before)

    def test_direct_is_for_one_cycle(self):
        done = self.make_agent().run('--direct', self.scratch.path / 'socket', timeout=20, code=2)
        self.assertIn('--once or --dry-run', done.stderr)

    def test_a_bad_value_exits_78_with_file_line_and_key(self):
        agent = self.make_agent({'DEFAULT': {'reserved_host_memory_mb': 'lots'}})
        done = agent.run('--once', code=78)
        line = agent.config.read_text().splitlines().index('reserved_host_memory_mb = lots') + 1
        self.assertIn('%s:%d' % (agent.config, line), done.stderr)
        self.assertIn('reserved_host_memory_mb', done.stderr)

    def test_an_unknown_key_is_a_warning(self):
        agent = self.make_agent({'DEFAULT': {'reserved_host_memroy_mb': '1'}})
        done = agent.run('--once', code=0)
        self.assertIn('reserved_host_memroy_mb', done.stderr)
        self.assertIn('%s:' % agent.config, done.stderr)

    def test_a_keystone_that_is_not_there_fails_clearly(self):
        agent = self.make_agent({'placement': {'auth_type': 'password'}})
        done = agent.run('--once')
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('auth_type', done.stderr)


class TestDrivers(AgentCase):
    def test_a_static_file_that_is_no_host_is_said_in_words(self):
        path = self.scratch.path / 'bad.json'
        path.write_text('{"format": "compute-agent-host/1", "cells": 7}')
        agent = self.make_agent({'DEFAULT': {'compute_driver': 'static'}, 'static': {'path': path}})
        done = agent.run('--once', code=1)
        self.assertIn(str(path), done.stderr)

    def test_standalone(self):
        agent = self.make_agent(placement=None).start('standalone')
        wait_until(lambda: agent.status().get('n_providers') == 3, 10, 'three providers')
        agent.claim('VGPU=1')

    def test_a_domain_event_leads_to_a_poll(self):
        agent = self.start_agent({'DEFAULT': {'update_resources_interval': 3600}})
        self.libvirtd.define(guest_xml('later'))
        self.addCleanup(self.libvirtd.virsh, 'undefine', 'later')
        wait_until(lambda: 'later' in agent.ctl('discover', '--json=short').stdout, 5,
                   'the domain in discover', step=0.1)
