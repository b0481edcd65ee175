# SPDX-License-Identifier: LGPL-2.1-or-later
"""Two agents of one identity, an operator and a scheduler write to one tree at the same time.

COMPUTE_AGENT_TOGETHER_SECONDS is the duration, a few seconds in ./check. Afterwards all writes of the operator and the scheduler
must be in Placement, and the agents must write nothing.
"""

import os
import threading
import time
import uuid

from tests.env.agent import Agent
from tests.env.bus import Bus
from tests.env.case import EnvCase
from tests.env.hosts import recorded_host
from tests.env.scratch import wait_until

SECONDS = float(os.environ.get('COMPUTE_AGENT_TOGETHER_SECONDS', '8'))
ROOT = '5b0c8f57-9d0f-4a38-8d0d-7e1d2f1f6c11'
HOST = recorded_host('shared', memory_kib=1 << 26, online_cpus='0-63')


class TestTogether(EnvCase):
    def setUp(self):
        self.agents = [self.make_agent() for _ in range(2)]
        self.stopping = threading.Event()
        self.ratio = None
        self.traits, self.consumers, self.troubles = set(), set(), []

    def make_agent(self):
        agent = Agent(self.scratch, self.placement, bus=Bus(self.scratch).start(), host=HOST, options={
            'DEFAULT': {'update_resources_interval': 1}})
        (agent.state / 'compute_id').write_text(ROOT + '\n')
        return agent

    def root(self, what):
        return '/resource_providers/%s/%s' % (ROOT, what)

    def edit(self, what, change):
        """Reads, changes and writes a part of the root, and repeats this after conflicts. Returns False if the test ends before."""
        while not self.stopping.is_set():
            body = self.placement.get(self.root(what))
            change(body)
            answer = self.placement.request('PUT', self.root(what), body, record=False)
            if answer.status == 200:
                return True
            if answer.status not in (409, 500, 503):
                raise AssertionError(answer.text)
        return False

    def operate(self):
        """Changes the ratio of VCPU and adds one trait in each round, as an operator would."""
        for number in range(10000):
            ratio, trait = 2.0 + number % 7, 'CUSTOM_OPERATOR_%d' % number

            def set_ratio(body, ratio=ratio):
                body['inventories']['VCPU']['allocation_ratio'] = ratio

            if not self.edit('inventories', set_ratio):
                return
            self.ratio = ratio
            self.placement.request('PUT', '/traits/' + trait, record=False)
            if not self.edit('traits', lambda body, name=trait: body['traits'].append(name)):
                return
            self.traits.add(trait)

    def schedule(self):
        """Writes one consumer with one CPU after another, as a scheduler would."""
        while not self.stopping.is_set():
            consumer = str(uuid.uuid4())
            answer = self.placement.request('PUT', '/allocations/' + consumer, {
                'allocations': {ROOT: {'resources': {'VCPU': 1}}}, 'project_id': 'p',
                'user_id': 'u', 'consumer_generation': None, 'consumer_type': 'INSTANCE'},
                record=False)
            if answer.status == 204:
                self.consumers.add(consumer)
            elif answer.status not in (409, 500, 503):
                raise AssertionError(answer.text)

    # Runs the operator and the scheduler for SECONDS, and longer until both have written.
    def run_others(self):
        def guarded(function):
            try:
                function()
            except Exception as error:
                self.troubles.append(repr(error))

        threads = [threading.Thread(target=guarded, args=(function,))
                   for function in (self.operate, self.schedule)]
        for thread in threads:
            thread.start()
        time.sleep(SECONDS)
        wait_until(lambda: self.troubles or self.traits and self.consumers, 60, 'the others to write')
        self.stopping.set()
        for thread in threads:
            thread.join()
        self.assertEqual(self.troubles, [])

    def is_synced(self, agent):
        return agent.status().get('sync_state') == 'synced'

    def test_nothing_is_lost_and_nothing_oscillates(self):
        for agent in self.agents:
            agent.start()
        wait_until(lambda: all(map(self.is_synced, self.agents)), 60, 'both agents')
        self.run_others()
        for agent in self.agents:
            wait_until(lambda agent=agent: self.is_synced(agent), 60, 'an agent after it')
            agent.ctl('sync')
        mark = self.placement.mark()
        for _ in range(3):
            for agent in self.agents:
                agent.ctl('sync')
        self.assertEqual(self.placement.writes_since(mark), [])
        root = self.placement.tree(ROOT)[ROOT]
        self.assertEqual(root['inventories']['VCPU']['allocation_ratio'], self.ratio)
        self.assertLessEqual(self.traits, set(root['traits']))
        self.assertIn('COMPUTE_NODE', root['traits'])
        self.assertEqual(set(root['allocations']), self.consumers)
        self.assertEqual(root['usages']['VCPU'], len(self.consumers))
