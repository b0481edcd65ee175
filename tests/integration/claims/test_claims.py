# SPDX-License-Identifier: LGPL-2.1-or-later
"""Claims over D-Bus: the rules of capacity, and the claims after a restart, an outage or an upgrade."""

import concurrent.futures
import socket
import sqlite3
import uuid

from tests.integration.agent.test_agent import GPU_A, GPU_B, AgentCase


class ClaimCase(AgentCase):
    def held(self, agent, name, rc):
        """Returns the amount of a class on a provider that claims use."""
        for provider in agent.ctl_json('tree')['providers']:
            if provider['name'] == name:
                return provider['inventories'][rc]['used']
        raise KeyError(name)


class TestRules(ClaimCase):
    def refused(self, agent, resources, words, consumer=None, code=1):
        done = agent.claim(resources, consumer, code=code)
        self.assertIn(words, done.stderr)

    def test_requests_that_fit_and_that_do_not(self):
        agent = self.start_agent()
        agent.claim('VCPU=16,MEMORY_MB=4096,VGPU=4')
        self.assertEqual(self.held(agent, 'demo', 'VCPU'), 16)
        self.refused(agent, 'VCPU=17', 'max_unit')
        self.refused(agent, 'VGPU=6', 'VGPU')
        self.refused(agent, 'PCPU=1', 'PCPU')
        self.refused(agent, 'VCPU=0', 'VCPU', code=2)
        self.refused(agent, 'VCPU=99999999999999999999', 'VCPU', code=2)
        self.refused(agent, 'vcpu=1', 'vcpu', code=2)
        self.refused(agent, 'VCPU=1', 'uuid', consumer='me')
        self.assertEqual(len(agent.claims()), 1)

    def test_capacity_runs_out_and_comes_back(self):
        agent = self.start_agent()
        # Eight new mdevs of nvidia-35 and one that exists: the total is nine.
        total = self.vgpus(agent, GPU_A) + self.vgpus(agent, GPU_B)
        for _ in range(total):
            agent.claim('VGPU=1')
        self.refused(agent, 'VGPU=1', 'VGPU')
        agent.ctl('release', agent.claims()[0]['id'])
        agent.claim('VGPU=1')
        self.refused(agent, 'VGPU=1', 'VGPU')

    def test_f4_1874664_many_at_once_fill_both_gpus(self):
        """Parallel claims use both cards, not only the first one."""
        agent = self.start_agent()
        total = self.vgpus(agent, GPU_A) + self.vgpus(agent, GPU_B)
        with concurrent.futures.ThreadPoolExecutor(total) as pool:
            list(pool.map(lambda _: agent.claim('VCPU=1,VGPU=1'), range(total)))
        self.assertEqual([self.held(agent, gpu, 'VGPU') for gpu in (GPU_A, GPU_B)],
                         [self.vgpus(agent, gpu) for gpu in (GPU_A, GPU_B)])
        self.refused(agent, 'VCPU=1,VGPU=1', 'VGPU')
        self.assertEqual(len(agent.claims()), total)

    def test_the_same_claim_twice_is_one_and_another_is_refused(self):
        agent = self.start_agent()
        consumer = str(uuid.uuid4())
        first = agent.claim('VCPU=2', consumer)
        again = agent.claim('VCPU=2', consumer)
        self.assertEqual(first['id'], again['id'])
        self.refused(agent, 'VCPU=3', consumer, consumer=consumer)
        self.assertEqual(self.held(agent, 'demo', 'VCPU'), 2)

    def test_release_of_what_is_not_there(self):
        agent = self.start_agent()
        done = agent.ctl('release', 4711, code=1)
        self.assertIn('4711', done.stderr)

    def test_release_of_several_does_what_can_be_done(self):
        agent = self.start_agent()
        ids = [agent.claim('VCPU=1')['id'] for _ in range(3)]
        done = agent.ctl('release', ids[0], 4711, ids[1], 4712, code=1)
        self.assertEqual(done.stdout, 'Claim %d is released.\nClaim %d is released.\n' % tuple(ids[:2]))
        for missing in ('4711', '4712'):
            self.assertIn('no active claim ' + missing, done.stderr)
        self.assertEqual([claim['id'] for claim in agent.claims()], ids[2:])


class TestSurvival(ClaimCase):
    def test_a_claim_survives_kill_9_and_a_restart(self):
        agent = self.start_agent()
        claim = agent.claim('VCPU=2,VGPU=1')
        for _ in range(3):
            agent.kill()
            agent.start()
            self.assertEqual([c['id'] for c in agent.claims()], [claim['id']])
        agent.wait_state('synced')
        self.assertEqual(self.held(agent, 'demo', 'VCPU'), 2)

    def test_the_table_of_the_specification_is_filled(self):
        agent = self.start_agent()
        consumer = str(uuid.uuid4())
        agent.claim('VCPU=2,MEMORY_MB=1024,DISK_GB=3', consumer)
        agent.stop()
        with sqlite3.connect(agent.state / 'claim.sqlite') as database:
            row = database.execute('SELECT vcpus, memory_mb, disk_gb, resize_target, host, node '
                                   'FROM claims '
                                   'WHERE instance_uuid = ?', [consumer]).fetchone()
        self.assertEqual(row, (2, 1024, 3, 0, socket.gethostname(), 'demo'))

    def test_an_operators_ratio_holds_for_claims_without_placement(self):
        agent = self.start_agent()
        self.placement.edit(agent.root(), 'inventories', lambda inventories: inventories['VCPU'].update(allocation_ratio=1.0))
        agent.ctl('sync')
        agent.stop()
        self.placement.kill()
        agent.start('offline')
        agent.claim('VCPU=16')
        done = agent.claim('VCPU=1', code=1)
        self.assertIn('of 16', done.stderr)

    def test_a_database_of_the_future_is_left_alone(self):
        agent = self.start_agent()
        agent.stop()
        path = agent.state / 'claim.sqlite'
        with sqlite3.connect(path) as database:
            table = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE "
                                     "'%table_name%version%'").fetchone()[0]
            database.execute('UPDATE %s SET version = 999' % table)
        database.close()
        agent.start('synced')
        self.assertIn('999', agent.log())
        done = agent.claim('VCPU=1', code=1)
        self.assertIn('999', done.stderr)
