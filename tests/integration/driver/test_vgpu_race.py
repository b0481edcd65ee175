# SPDX-License-Identifier: LGPL-2.1-or-later
"""Two schedulers and one local caller claim vGPUs of simulated cards at the same time, on a real Placement.

A scheduler takes a candidate of Placement, writes its allocations and lets the agent claim them, as Nova does. It removes them if the
agent refuses. The local caller claims without a scheduler, and the agent writes the allocations. Each of them creates its vGPU by a write
to sysfs, and ends it before it releases the claim. No function gets two owners, and each write succeeds.
"""

import os
import random
import sys
import threading
import unittest
import uuid

from tests.env.placement import Placement
from tests.env.scratch import Scratch, wait_until
from tests.integration.driver.test_vgpu_random import (CLASSES, SEED, BusError, GpuHost, address_of, claimed_functions, need, settle,
                                                       two_cards)

ROUNDS = int(os.environ.get('COMPUTE_AGENT_ROUNDS', '30'))
RACED = {name: CLASSES[name] for name in ('CUSTOM_L40S_2Q', 'CUSTOM_L40S_8Q')}
# The replies of an agent that lost a race. Any other error fails the test.
REFUSALS = ('NoCapacity', 'Conflict', 'Busy', 'Mismatch', 'Placement')


class Client(threading.Thread):
    """A thread that claims and releases. owned: {id of a claim: (its consumer, its functions)}."""

    def __init__(self, test, host, number, scheduler):
        super().__init__()
        self.test, self.host, self.scheduler = test, host, scheduler
        self.random, self.wire = random.Random(SEED * 100 + number), host.connect()
        self.owned, self.failure, self.claimed, self.refused = {}, None, 0, 0

    def run(self):
        try:
            for _ in range(ROUNDS):
                if self.owned and self.random.random() < 0.4:
                    self.release(self.random.choice(sorted(self.owned)))
                else:
                    self.claim(self.random.choice(sorted(RACED)))
        except Exception as error:
            self.failure = error

    def place(self, consumer, name):
        """Writes the allocations of a candidate. Returns whether there was one and Placement accepted it."""
        answer = self.test.placement.request('GET', '/allocation_candidates?resources=%s:1&in_tree=%s' % (name, self.test.root))
        found = answer.good()['allocation_requests'] if answer.status == 200 else []
        if not found:
            return False
        chosen = self.random.choice(found)['allocations']
        return self.test.placement.put(consumer, {one: part['resources'] for one, part in chosen.items()}) == 204

    def claim(self, name):
        consumer = str(uuid.uuid4())
        if self.scheduler and not self.place(consumer, name):
            return
        try:
            number = self.host.claim({name: 1}, consumer, self.wire)
        except BusError as error:
            need(error.name in REFUSALS, error)
            self.refused += 1
            if self.scheduler:
                wait_until(lambda: self.test.placement.request('DELETE', '/allocations/' + consumer).status in (204, 404), 20, 'the removal')
            return
        self.claimed += 1
        devices = self.host.claims(self.wire)[number]['devices']
        need(len(devices) == 1, 'claim %d names no function' % number)
        self.owned[number] = (consumer, [device['address'] for device in devices])
        for device in devices:
            need(device['mdev_type'] == 'nvidia-%d' % RACED[name], 'claim %d has the type %s' % (number, device['mdev_type']))
            self.host.sim.write_type(device['address'], 0)  # an idle vGPU of the type, too
            self.host.sim.write_type(device['address'], RACED[name])

    def release(self, number):
        for address in self.owned.pop(number)[1]:
            self.host.sim.write_type(address, 0)
        self.host.call('ReleaseAllocations', 'xs', [number, 'race'], self.wire)


class TestRace(unittest.TestCase):
    def test_no_function_has_two_owners(self):
        print('seed %d' % SEED, file=sys.stderr)
        self.scratch = Scratch.of(self)
        self.placement = Placement(self.scratch, 'unix').start()  # the agent's network has no other host
        host = GpuHost(self.scratch, two_cards(), RACED, self.placement, {'DEFAULT': {'update_resources_interval': 1}})
        host.agent.wait_state('synced')
        self.root = host.agent.root()
        clients = [Client(self, host, number, number < 2) for number in range(3)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        for client in clients:
            if client.failure:
                raise client.failure
            self.assertGreater(client.claimed, 0, 'a client claimed nothing')
        self.check(host, clients)

    def check(self, host, clients):
        """Compares the claims, the cards and Placement with the books of the clients."""
        owned = {number: part for client in clients for number, part in client.owned.items()}
        wait_until(lambda: host.call('Sync') == [''], 30, 'the agent to publish')
        claims, cards = host.claims(), host.sim.state()
        self.assertEqual(set(claims), set(owned))
        inventories, addresses = host.gpus()
        claimed = claimed_functions(claims, RACED, addresses, cards)
        for address, card in cards.items():
            _settled, in_flight = settle(card, claimed[address])
            self.assertFalse(in_flight)
            self.assertEqual({one.address for one in card.vgpus()}, set(claimed[address]))
        wait_until(lambda: set(self.placement.all_held()) == {consumer for consumer, _ in owned.values()}, 30, 'the last removals')
        tree = self.placement.tree(self.root)
        for provider, address in addresses.items():
            consumers = {owned[number][0] for number, claim in claims.items() for part in claim['allocations'] if part['provider'] == provider}
            self.assertEqual(set(tree[provider]['allocations']), consumers)
            self.assertEqual(address_of(tree[provider]['name'], tree[self.root]['name']), address)
            for name, inventory in tree[provider]['inventories'].items():
                self.assertEqual(inventory['total'] - inventory['reserved'], inventories[address, name]['capacity'])
