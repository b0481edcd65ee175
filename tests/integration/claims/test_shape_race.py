# SPDX-License-Identifier: LGPL-2.1-or-later
"""Two schedulers and one local caller claim partitions of random sets of devices at the same time, on a real Placement.

A scheduler takes a candidate of Placement, writes its allocations and lets the agent claim them, as Nova does. It removes them if the
agent refuses. The local caller claims without a scheduler, and the agent writes the allocations. No member is in two claims, and each
claim has exactly the devices of one partition. The agent refuses a scheduler only while max_unit is stale, and only once for each value
that it has published. Two schedulers can be refused for one value, if both have written before the next one. The exception is an amount
below max_unit without a free partition, which Placement cannot express.

    python3 -m tests.integration.claims.test_shape_race --rounds 1000 --seed 7      (as root; "make soak-shapes")
"""

import argparse
import collections
import json
import os
import random
import sys
import threading
import unittest
import uuid

from tests.env.agent import Agent
from tests.env.bus import Bus
from tests.env.fakesys import Cell, Host, Pci
from tests.env.libvirtd import Libvirtd
from tests.env.placement import Placement
from tests.env.scratch import Scratch, wait_until
from tests.env.wire import Wire
from tests.integration.driver.test_vgpu_random import NAME, NODE, BusError, need

ROUNDS = int(os.environ.get('COMPUTE_AGENT_ROUNDS', '30'))
SEED = int(os.environ.get('COMPUTE_AGENT_SEED', '1'))
# The replies of an agent that lost a race. Any other error fails the test.
REFUSALS = ('NoCapacity', 'Conflict', 'Busy', 'Mismatch', 'Placement')


class Shapes:
    """A random set. members: the addresses, or the number of slots. partitions: {id: (mask, devices)}."""

    def __init__(self, name, bus, chance):
        self.name, self.resource_class = name, 'CUSTOM_' + name.upper()
        self.n = chance.choice((4, 6, 8))
        self.addresses = ['0000:%02x:%02x.0' % (bus, number) for number in range(2 * self.n)]
        self.slots = chance.random() < 0.4
        masks = self.board() if chance.random() < 0.5 else self.odd(chance)
        self.devices = self.addresses if self.slots else self.addresses[:self.n]
        used = iter(self.addresses * 8)
        self.partitions = {str(number): (mask, [next(used)] if self.slots else [self.addresses[bit] for bit in range(self.n) if mask >> bit & 1])
                           for number, mask in enumerate(masks[:2 * self.n] if self.slots else masks)}

    def board(self):
        """Halves as on an NVSwitch board: all, halves, pairs and single members."""
        size, masks = self.n, []
        while size:
            masks += [(1 << size) - 1 << start for start in range(0, self.n - size + 1, size)]
            size //= 2
        return masks

    def odd(self, chance):
        masks = {(1 << self.n) - 1}
        while len(masks) < self.n + 3:
            masks.add(chance.randrange(1, 1 << self.n))
        return sorted(masks, key=lambda _mask: chance.random())

    def options(self):
        def numbers(mask):
            return '+'.join(str(bit + 1) for bit in range(self.n) if mask >> bit & 1)
        partitions = ', '.join('%s=%s%s' % (number, numbers(mask), '@' + '+'.join(devices) if self.slots else '')
                               for number, (mask, devices) in self.partitions.items())
        return {'resource_class': self.resource_class, 'members': self.n if self.slots else ', '.join(self.addresses[:self.n]),
                'partitions': partitions}

    def mask_of(self, devices):
        """Returns the members of the partition with exactly these devices."""
        found = [mask for mask, of_it in self.partitions.values() if sorted(of_it) == sorted(devices)]
        need(len(found) == 1, 'no partition of %s: %s' % (self.name, devices))
        return found[0]

    def amounts(self):
        return sorted({bin(mask).count('1') for mask, _devices in self.partitions.values()})


class Client(threading.Thread):
    """A thread that claims and releases. owned: {id of a claim: its consumer}."""

    def __init__(self, race, number, scheduler):
        super().__init__()
        self.race, self.scheduler, self.random = race, scheduler, random.Random(race.seed * 100 + number)
        self.wire = race.connect()
        self.owned, self.failure, self.claimed, self.refused = {}, None, 0, 0

    def run(self):
        try:
            for _ in range(self.race.rounds):
                if self.owned and self.random.random() < 0.5:
                    self.release(self.random.choice(sorted(self.owned)))
                else:
                    shapes = self.random.choice(self.race.sets)
                    self.claim(shapes, self.random.choice(shapes.amounts()))
        except Exception as error:
            self.failure = error

    def place(self, consumer, shapes, amount):
        """Writes the allocations of a candidate. Returns the position in Placement's record, or None if Placement refused."""
        answer = self.race.placement.request('GET', '/allocation_candidates?resources=%s:%d&in_tree=%s' % (
            shapes.resource_class, amount, self.race.root))
        found = answer.good()['allocation_requests'] if answer.status == 200 else []
        if not found:
            return None
        chosen = self.random.choice(found)['allocations']
        status = self.race.placement.put(consumer, {one: part['resources'] for one, part in chosen.items()})
        return self.race.placement.mark() if status == 204 else None

    def claim(self, shapes, amount):
        consumer = str(uuid.uuid4())
        mark = self.place(consumer, shapes, amount) if self.scheduler else None
        if self.scheduler and mark is None:
            return
        groups = [('_g', {shapes.resource_class: amount}, [], [])]
        try:
            number = self.race.call('Claim', 'sa(sa{st}asas)a{sv}', [consumer, groups, {}], self.wire)[0]
        except BusError as error:
            need(error.name in REFUSALS, error)
            self.refused += 1
            if self.scheduler:
                wait_until(lambda: self.race.placement.request('DELETE', '/allocations/' + consumer).status in (204, 404), 20, 'the removal')
                # A scheduler waits longer between two attempts than a cycle takes.
                self.race.call('Sync', wire=self.wire)
                self.race.note_refusal(self, shapes, amount, mark, error)
            return
        self.claimed += 1
        self.owned[number] = consumer
        self.race.check(self.race.claims(self.wire))

    def release(self, number):
        del self.owned[number]
        self.race.call('ReleaseAllocations', 'xs', [number, 'race'], self.wire)


class Race:
    """A host with random sets, its agent, and the clients of both."""

    def __init__(self, scratch, rounds, seed):
        chance = random.Random(seed)
        self.rounds, self.seed, self.scratch = rounds, seed, scratch
        self.sets = [Shapes('set%d' % number, 0x41 + number, chance) for number in range(2)]
        self.lock, self.refusals, self.words, self.gaps = threading.Lock(), collections.Counter(), [], 0
        host = Host(cells=[Cell(0, list(range(8)), 16 << 20)], pci=[
            Pci(address, vendor=0x10de, device=0x2330, pci_class=0x030200, driver='vfio-pci')
            for shapes in self.sets for address in shapes.devices])
        self.libvirtd = Libvirtd(host, scratch).start()
        self.placement = Placement(scratch).start()
        self.bus = Bus(scratch).start()
        self.agent = Agent(scratch, self.placement, bus=self.bus, within=self.libvirtd.enter('-m', '-u', '-p'), options={
            'DEFAULT': {'compute_driver': 'linux', 'update_resources_interval': 7200, 'claim_expiry_time': 7200},
            'pci': {'report_in_placement': 'true'},
            **{'device_shapes ' + shapes.name: shapes.options() for shapes in self.sets}})
        self.agent.start('synced')
        scratch.on_close(self.agent.stop)
        self.wire, self.root = self.connect(), self.agent.root()
        names = self.placement.tree_by_name(self.root)
        self.providers = {shapes.name: next(one['uuid'] for name, one in names.items() if name.endswith('_shapes_' + shapes.name))
                          for shapes in self.sets}

    def connect(self):
        wire = Wire(self.bus.socket_path, seconds=60)
        self.scratch.on_close(wire.close)
        return wire

    def call(self, member, signature='', values=(), wire=None):
        answer = (wire or self.wire).call(NAME, NODE, NAME, member, signature, values)
        if answer.error:
            raise BusError(answer)
        return answer.values

    def claims(self, wire=None):
        return {claim['id']: claim for claim in json.loads(self.call('Describe', 's', ['claims'], wire)[0])['claims']}

    def note_refusal(self, client, shapes, amount, mark, error):
        """Counts the refusals of a client for each record that the agent has published: the number of its writes up to the mark. An amount below
        max_unit of this record and of the next one is not counted: no partition of it was free, but a larger one."""
        path = '/resource_providers/%s/inventories' % self.providers[shapes.name]

        def writes_of(records):
            return [json.loads(one['body'])['inventories'][shapes.resource_class] for one in records
                    if one['method'] == 'PUT' and one['path'].startswith(path) and one['status'] == 200]
        with self.lock:
            records = self.placement.records_since()
            later = writes_of(self.placement.records_since(mark))
            published = writes_of(records)[:-len(later) or None]
            if all(amount < one['max_unit'] for one in (published[-1], *later[:1])):
                self.gaps += 1
                return
            key = (shapes.name, len(published), client.name)
            self.refusals[key] += 1
            self.words.append((key, amount, published[-1]['max_unit'], str(error)))

    def check(self, claims):
        """No member is in two claims, and each claim has one partition of its amount. Returns {name of a set: taken members}."""
        taken = collections.Counter()
        for claim in claims.values():
            for shapes in self.sets:
                devices = [device['address'] for device in claim['devices'] if device['address'] in shapes.devices]
                if not devices:
                    continue
                mask = shapes.mask_of(devices)
                need(taken[shapes.name] & mask == 0, 'a member is in two claims: %s' % list(claims.values()))
                taken[shapes.name] |= mask
                amount = sum(part['resources'].get(shapes.resource_class, 0) for part in claim['allocations'])
                need(amount == bin(mask).count('1'), 'claim %d has %d and a partition of %s' % (claim['id'], amount, bin(mask)))
        return taken

    def run(self):
        clients = [Client(self, number, number < 2) for number in range(3)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        for client in clients:
            if client.failure:
                raise client.failure
            need(client.claimed > 0, 'a client claimed nothing')
        self.finish({number: consumer for client in clients for number, consumer in client.owned.items()})
        return clients

    def finish(self, owned):
        """Compares the claims, the sets and Placement with the books of the clients."""
        wait_until(lambda: self.call('Sync') == [''], 30, 'the agent to publish')
        claims = self.claims()
        need(set(claims) == set(owned), 'claims %s, but %s are owned' % (sorted(claims), sorted(owned)))
        wait_until(lambda: set(self.placement.all_held()) == set(owned.values()), 30, 'the last removals')
        taken, tree = self.check(claims), self.placement.tree(self.root)
        for shapes in self.sets:
            provider = tree[self.providers[shapes.name]]
            record = provider['inventories'][shapes.resource_class]
            fits = [bin(mask).count('1') for mask, _devices in shapes.partitions.values() if not mask & taken[shapes.name]]
            n_taken = bin(taken[shapes.name]).count('1')
            consumers = {owned[number] for number, claim in claims.items() for part in claim['allocations']
                         if part['provider'] == self.providers[shapes.name]}
            need(set(provider['allocations']) == consumers, 'other consumers: %s' % provider['allocations'])
            need((record['max_unit'], record['reserved']) == ((max(fits), 0) if fits else (min(shapes.amounts()), shapes.n - n_taken)),
                 'published %s, but %s fit beside %s' % (record, fits, bin(taken[shapes.name])))
        worst = max(self.refusals.values(), default=0)
        need(worst <= 1, 'more than one refusal for a published value: %s' % [one for one in self.words if self.refusals[one[0]] > 1])


class TestShapeRace(unittest.TestCase):
    def test_no_member_is_in_two_partitions(self):
        print('seed %d' % SEED, file=sys.stderr)
        Race(Scratch.of(self), ROUNDS, SEED).run()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--rounds', type=int, default=1000)
    parser.add_argument('--seed', type=int, default=SEED)
    parser.add_argument('--part', type=int, default=100, help='rounds with one pair of sets')
    arguments = parser.parse_args()
    totals = collections.Counter()
    for number in range(0, arguments.rounds, arguments.part):
        with Scratch() as scratch:
            race = Race(scratch, min(arguments.part, arguments.rounds - number), arguments.seed + number // arguments.part)
            clients = race.run()
        totals.update(rounds=race.rounds, claims=sum(client.claimed for client in clients), refusals=sum(client.refused for client in clients),
                      refused_schedulers=sum(client.refused for client in clients if client.scheduler), gaps=race.gaps)
        print('seed %d: %s' % (race.seed, dict(totals)), flush=True)


if __name__ == '__main__':
    main()
