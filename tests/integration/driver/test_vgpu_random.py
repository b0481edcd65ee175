# SPDX-License-Identifier: LGPL-2.1-or-later
"""Random steps on simulated GPUs without mdev: the agent never allocates more than a card can create, and never offers less.

A real agent with the driver "linux" runs over tests/env/vgpu_sim.py. A step creates or ends a vGPU by a write to sysfs, or makes, confirms
or releases a claim. Other steps kill or reload the agent, reload the driver of a card, or change its mode and its functions. After each
step:

* Each claim names a function, its type and its card. No function is in two claims. Each claim that was made and not released exists.

* The functions of the claims can become vGPUs of their types, beside the present vGPUs.

* If the agent has polled since the last change, the free capacity of each type and card is at most what the card can create. It is equal
  if all claims are vGPUs already.

Between two polls the agent does not know which vGPUs exist. The vGPU of a claim that was made and released since the last poll can
still exist.

    python3 -m tests.integration.driver.test_vgpu_random --steps 100000 --seed 7      (as root; "make soak-vgpu")

A failure prints the seed and the last steps. COMPUTE_AGENT_SEED=S sets the seed of the tests.
"""

import argparse
import collections
import contextlib
import json
import os
import random
import sys
import time
import unittest
import uuid

from tests.env.agent import Agent
from tests.env.bus import Bus
from tests.env.case import EnvCase
from tests.env.scratch import Scratch, wait_until
from tests.env.vgpu_cards import EQUAL_SIZE, MIXED_SIZE, SAME_TYPE, Card, CardError
from tests.env.vgpu_sim import VgpuSim
from tests.env.wire import RETURN, Wire
from tests.integration.driver.vgpu_ideal import FAULTS, IdealHost, ModelError

NAME, NODE = 'org.computeagent.Agent1', '/org/computeagent/Agent1'
CLASSES = {'CUSTOM_L40S_2B': 1426, 'CUSTOM_L40S_2Q': 1428, 'CUSTOM_L40S_8Q': 1432, 'CUSTOM_L40S_48Q': 1436}
STEPS = int(os.environ.get('COMPUTE_AGENT_STEPS', '400'))
SEED = int(os.environ.get('COMPUTE_AGENT_SEED', '1'))
SECONDS = 30  # of the random steps in a test
LONG = 7200  # longer than a claim of these tests lives, in seconds


class WalkError(AssertionError):
    pass


class BusError(Exception):
    """An error that the agent returned. name: its last part."""

    def __init__(self, answer):
        super().__init__('%s: %s' % (answer.error, answer.values[:1]))
        self.name = answer.error.rpartition('.')[2]


def need(condition, *words):
    if not condition:
        raise WalkError(*words)


def config(cards, classes):
    """Returns the options that give each card the types of the classes. A single type needs no addresses."""
    addresses = ','.join(card.address for card in cards) if len(classes) > 1 else None
    options = {'DEFAULT': {'compute_driver': 'linux', 'update_resources_interval': LONG, 'claim_expiry_time': LONG},
               'agent': {'device_settle_sec': 0, 'device_hold_sec': 0},
               'libvirt': {'connection_uri': None, 'keepalive_interval': None, 'keepalive_count': None},
               'devices': {'enabled_mdev_types': ','.join('nvidia-%d' % number for number in classes.values())}}
    for name, number in classes.items():
        options['mdev_nvidia-%d' % number] = {'device_addresses': addresses, 'mdev_class': name}
    return options


class GpuHost:
    """Simulated cards and the agent of their host. calls: a connection to the agent's bus."""

    def __init__(self, scratch, cards, classes, placement=None, options=None):
        self.scratch, self.classes = scratch, classes
        self.sim = VgpuSim(cards, scratch).start()
        self.bus = Bus(scratch).start()
        self.agent = Agent(scratch, placement, bus=self.bus, within=self.sim.enter(), options=config(cards, classes))
        self.agent.configure(options or {})
        self.wire = None
        self.start()

    def start(self):
        """Starts the agent. Returns when it has polled the host."""
        self.agent.start()
        if not self.wire:
            self.wire = self.connect()

        def polled():
            with contextlib.suppress(BusError):
                return self.call('Sync') is not None and self.describe('tree')['providers']
            return False
        wait_until(polled, 60, 'the first poll')

    def connect(self):
        wire = Wire(self.bus.socket_path, seconds=60)
        self.scratch.on_close(wire.close)
        return wire

    def call(self, member, signature='', values=(), wire=None):
        """Calls a method of the agent. Returns its values. Raises BusError."""
        answer = (wire or self.wire).call(NAME, NODE, NAME, member, signature, values)
        if answer.error:
            raise BusError(answer)
        return answer.values

    def describe(self, document, wire=None):
        return json.loads(self.call('Describe', 's', [document], wire)[0])

    def claims(self, wire=None):
        """Returns {id: claim} of the current claims."""
        return {claim['id']: claim for claim in self.describe('claims', wire)['claims']}

    def claim(self, resources, consumer=None, wire=None):
        """Claims resources in a group. Returns the id. Raises BusError."""
        return self.call('Claim', 'sa(sa{st}asas)a{sv}', [consumer or str(uuid.uuid4()), [('_g', resources, [], [])], {}], wire)[0]

    def gpus(self):
        """Returns {(address of the card, resource class): inventory} of the providers of the cards, and {uuid: address of the card}."""
        providers = self.describe('tree')['providers']
        root = next(provider['name'] for provider in providers if not provider['parent'])
        inventories, addresses = {}, {}
        for provider in providers:
            if set(provider['inventories']) & set(self.classes):
                address = address_of(provider['name'], root)
                addresses[provider['uuid']] = address
                inventories.update(((address, name), one) for name, one in provider['inventories'].items())
        return inventories, addresses


def address_of(name, root):
    """Returns the PCI address in the name of a provider."""
    parts = name[len(root) + 1:].split('_')
    return '%s:%s:%s.%s' % tuple(parts[1:]) if parts[0] == 'pci' and len(parts) == 5 else name


def claimed_functions(claims, classes, addresses, cards):
    """Checks the devices of the claims. Returns {address of the card: {address of the function: number of the type}}."""
    found = collections.defaultdict(dict)
    for claim in claims.values():
        wanted = collections.Counter()
        for part in claim['allocations']:
            for name, amount in part['resources'].items():
                if name in classes:
                    wanted[addresses.get(part['provider'], part['name']), classes[name]] += amount
        named = collections.Counter()
        for device in claim['devices']:
            card, number = addresses.get(device['provider'], device['provider']), int(device['mdev_type'].rpartition('-')[2] or 0)
            need(card in cards, 'claim %d has a device of no card:' % claim['id'], device)
            need(device['address'] in [one.address for one in cards[card].functions],
                 'claim %d names no function of its card:' % claim['id'], device)
            need(device['address'] not in found[card], 'two claims have %s' % device['address'])
            named[card, number] += 1
            found[card][device['address']] = number
        need(named == wanted, 'claim %d has %s and names the functions %s' % (claim['id'], dict(wanted), dict(named)))
    return found


def settle(card, claimed):
    """Returns a copy of the card in which each function of a claim is a vGPU, and whether any was none before. Raises WalkError if the
    card cannot create them."""
    missing = {address: number for address, number in claimed.items() if not card.function(address).type}
    for address, number in claimed.items():
        need(card.function(address).type in (0, number), '%s is a vGPU of type %d, claimed as %d' % (
            address, card.function(address).type, number))
    need(card.can_become(missing), 'claimed more than %s can create: %s beside %s in mode %s' % (
        card.address, missing, {one.address: one.type for one in card.vgpus()}, card.mode))
    return card.create(missing), bool(missing)


class Walk:
    """One series of random steps. books: the ids of the claims that must exist."""

    WEIGHTS = {'claim': 40, 'create': 30, 'release': 18, 'end': 22, 'confirm': 10, 'foreign': 3, 'hold': 2, 'drop': 2, 'poll': 5,
               'kill': 0.3, 'reload': 0.5, 'reset': 1, 'rebuild': 1.5, 'trouble': 1}

    def __init__(self, host, seed, modes, functions):
        self.host, self.random, self.modes, self.functions = host, random.Random(seed), modes, functions
        self.books, self.files = set(), {}
        self.polled = True  # since the last change of claims or hardware
        self.done, self.compared, self.trace = collections.Counter(), collections.Counter(), collections.deque(maxlen=40)
        self.cards, self.claims, self.claimed = {}, {}, {}
        host.scratch.on_close(self._close_files)

    def _close_files(self):
        for file in self.files.values():
            os.close(file)
        self.files.clear()

    def run(self, steps, seconds=None):
        """Runs steps and checks the invariants after each. Ends earlier after the given seconds. Returns the number of steps."""
        end = time.monotonic() + seconds if seconds else None
        self.check()
        for number in range(1, steps + 1):
            name, = self.random.choices(list(self.WEIGHTS), self.WEIGHTS.values())
            self.trace.append('%d %s' % (number, name))
            try:
                done = getattr(self, 'step_' + name)()
                self.trace[-1] += ': %s' % (done,)
                self.done[name] += done is not None
                self.check()
            except (WalkError, BusError, OSError) as error:
                raise WalkError('step %d: %s\nthe last steps:\n  %s\ncards: %s\nclaimed: %s' % (
                    number, ' '.join(map(str, error.args)), '\n  '.join(self.trace),
                    [card.as_dict() for card in self.host.sim.state().values()], dict(self.claimed))) from error
            if end and time.monotonic() > end:
                return number
        return steps

    # The invariants.

    def check(self):
        self.cards, self.claims = self.host.sim.state(), self.host.claims()
        need(set(self.claims) == self.books, 'claims of the agent: %s, made and not released: %s' % (
            sorted(self.claims), sorted(self.books)))
        inventories, addresses = self.host.gpus()
        self.claimed = claimed_functions(self.claims, self.host.classes, addresses, self.cards)
        for address, card in self.cards.items():
            claimed = self.claimed[address]
            settled, in_flight = settle(card, claimed)
            for name, number in self.host.classes.items():
                inventory = inventories.get((address, name))
                self.check_free(card, name, inventory, free_of(settled, number, claimed), in_flight)

    def check_free(self, card, name, inventory, free, in_flight):
        shown = inventory['capacity'] - inventory['used'] if inventory else 0
        where = '%s of %s in mode %s, %s' % (name, card.address, card.mode, inventory)
        if self.polled:
            self.compared['bounds'] += 1
            need(shown <= free, 'more is free than the card can create: %d instead of %d, %s' % (shown, free, where))
        if self.polled and not in_flight:
            self.compared['equal'] += 1
            need(shown >= free, 'less is free than the card can create: %d instead of %d, %s' % (shown, free, where))

    # The steps. Each returns what it did, or None if there was nothing to do.

    def choose(self, items):
        items = sorted(items)
        return self.random.choice(items) if items else None

    def poll(self):
        self.host.call('Sync')
        self.polled = True

    def changed(self, chance=0.5):
        """Notes a change of claims or hardware. The agent polls at once with this probability."""
        self.polled = False
        if self.random.random() < chance:
            self.poll()

    def step_poll(self):
        self.poll()
        return ''

    def step_claim(self):
        name = self.choose(self.host.classes)
        try:
            number = self.host.claim({name: self.random.choice((1, 1, 1, 2))})
        except (BusError, ModelError) as error:
            need(error.name == 'NoCapacity', error)
            return '%s refused' % name
        self.books.add(number)
        self.changed()
        return '%s is claim %d' % (name, number)

    def step_confirm(self):
        number = self.choose(number for number, claim in self.claims.items() if claim['state'] == 'claimed')
        if number is None:
            return None
        self.host.call('Confirm', 'x', [number])
        return number

    def step_release(self, number=None):
        number = number or self.choose(self.claims)
        if number is None:
            return None
        self.host.call('Release', 'xs', [number, 'random'])
        self.books.discard(number)
        self.changed()
        return number

    def step_create(self):
        """Makes the functions of a claim vGPUs. The card must be able to, whatever other claims there are."""
        missing = [(address, number) for card, claimed in self.claimed.items() for address, number in claimed.items()
                   if not self.cards[card].function(address).type]
        if not missing:
            return None
        # Mixed-size mode can need the largest first.
        size = max(self.type_size(number) for _address, number in missing)
        address, number = self.choose(pair for pair in missing if self.type_size(pair[1]) == size)
        self.host.sim.write_type(address, number)
        self.changed()
        return '%s = %d' % (address, number)

    def type_size(self, number):
        return next(iter(self.cards.values())).kind.type(number).framebuffer

    def unclaimed(self, wanted):
        """Returns (card, function) of the functions without a claim that are vGPUs, or that are none."""
        return [(card.address, one.address) for card in self.cards.values() for one in card.functions
                if one.address not in self.claimed[card.address] and bool(one.type) == wanted]

    def step_end(self):
        pair = self.choose(self.unclaimed(True))
        if pair is None:
            return None
        busy = pair[1] in self.files
        try:
            self.host.sim.write_type(pair[1], 0)
        except OSError as error:
            need(busy, error)
            return '%s is busy' % pair[1]
        need(not busy, 'a vGPU that is in use ended')
        self.changed()
        return pair[1]

    def step_foreign(self):
        """Another program creates a vGPU that leaves the claims possible. The agent can learn this only by a poll."""
        pair, name = self.choose(self.unclaimed(False)), self.choose(self.host.classes)
        if pair is None:
            return None
        card, number = self.cards[pair[0]], self.host.classes[name]
        missing = {address: kind for address, kind in self.claimed[pair[0]].items() if not card.function(address).type}
        if missing or not card.can_become({pair[1]: number}):
            return None
        self.host.sim.write_type(pair[1], number)
        self.changed(1)
        return '%s = %d' % (pair[1], number)

    def step_hold(self):
        """A guest opens the VFIO group of a vGPU."""
        address = self.choose(one.address for card in self.cards.values() for one in card.vgpus() if one.address not in self.files)
        if address is None:
            return None
        self.files[address] = os.open(self.host.sim.vfio(address), os.O_RDONLY)
        return address

    def step_drop(self):
        address = self.choose(self.files)
        if address is None:
            return None
        os.close(self.files.pop(address))
        return address

    def step_trouble(self):
        """The driver fails to answer for one function during a poll."""
        card = self.cards[self.choose(self.cards)]
        address = self.choose(one.address for one in card.functions)
        name = self.random.choice(('creatable_vgpu_types', 'current_vgpu_type', '*'))
        self.host.sim.control('inject', rule={'op': self.random.choice(('open', 'read')), 'path': '*/%s/nvidia/%s' % (address, name),
                                              'errno': self.random.choice(('EIO', 'ENODEV', 'EAGAIN'))})
        self.poll()
        self.host.sim.control('heal')
        self.polled = False
        return '%s, %s' % (address, name)

    def step_kill(self):
        self.host.agent.kill()
        self.host.start()
        self.polled = True
        return ''

    def step_reload(self):
        self.host.call('Reload')
        self.poll()
        return ''

    def step_reset(self):
        """Reloads the driver of a card, which ends its vGPUs. The operator sets the mode again before anything else happens."""
        card = self.cards[self.choose(self.cards)]
        if any(one.opened for one in card.functions):
            with contextlib.suppress(CardError):
                self.host.sim.control('unload', card=card.address)
                raise WalkError('the driver was unloaded while a vGPU was in use')
            return '%s is busy' % card.address
        self.host.sim.control('unload', card=card.address)
        if self.random.random() < 0.5:
            self.poll()
        self.host.sim.control('load', card=card.address)
        self.host.sim.control('mode', card=card.address, mode=card.mode)
        self.changed(1)
        return card.address

    def step_rebuild(self):
        """Releases all claims of a card, ends its vGPUs, and changes its mode and the number of its functions."""
        card = self.cards[self.choose(self.cards)]
        for number in [number for number, claim in self.claims.items()
                       if any(device['address'] in self.claimed[card.address] for device in claim['devices'])]:
            self.step_release(number)
        for one in card.functions:
            if one.address in self.files:
                os.close(self.files.pop(one.address))
        wait_until(lambda: not any(one.opened for one in self.host.sim.state()[card.address].functions), 10, 'the closed files')
        for one in card.vgpus():
            self.host.sim.write_type(one.address, 0)
        mode, count = self.choose(self.modes), self.choose(self.functions)
        if count != len(card.functions):
            for text in ('0', str(count)):
                (self.host.sim.device(card.address) / 'sriov_numvfs').write_text(text)
        self.host.sim.control('mode', card=card.address, mode=mode)
        self.changed(1)
        return '%s: %s, %d functions' % (card.address, mode, count)


def free_of(card, number, claimed):
    """Returns how many vGPUs of a type claims can get on this card: those without a claim, and those that it can create."""
    idle = sum(one.type == number and one.address not in claimed for one in card.functions)
    return idle + card.count_creatable(number)


def two_cards(placements=False):
    return [Card('0000:%s:00.0' % bus, n_functions=8, placements=placements, serial=bus) for bus in ('c1', 'c2')]


class TestCount(EnvCase):
    """A card of 48 GiB with 32 functions, and nothing else than claims."""

    def claim_all(self, name):
        """Claims vGPUs of one type until there are none. Returns their number."""
        host = GpuHost(self.scratch, [Card('0000:c1:00.0', n_functions=32)], {name: CLASSES[name]})
        inventories, addresses = host.gpus()
        self.assertEqual(sorted(addresses.values()), ['0000:c1:00.0'], '%d providers for one card' % len(addresses))
        count = 0
        with contextlib.suppress(BusError):
            while count < 40:
                host.claim({name: 1})
                count += 1
        self.assertEqual(inventories['0000:c1:00.0', name]['capacity'], count)
        cards = host.sim.state()
        claimed = claimed_functions(host.claims(), host.classes, addresses, cards)
        settle(cards['0000:c1:00.0'], claimed['0000:c1:00.0'])
        return count

    def test_one_vgpu_of_the_whole_framebuffer_is_claimed(self):
        self.assertEqual(self.claim_all('CUSTOM_L40S_48Q'), 1)

    def test_24_vgpus_of_2_gib_are_claimed(self):
        self.assertEqual(self.claim_all('CUSTOM_L40S_2Q'), 24)


class TestBetweenPolls(EnvCase):
    """The agent knows the hardware of the last poll alone."""

    def start(self, *names):
        host = GpuHost(self.scratch, [Card('0000:c1:00.0', n_functions=32)], {name: CLASSES[name] for name in names})
        self.functions = [one.address for one in host.sim.state()['0000:c1:00.0'].functions]
        return host

    def check(self, host):
        """Asserts that the card can create the vGPUs of all claims."""
        card = host.sim.state()['0000:c1:00.0']
        settle(card, claimed_functions(host.claims(), host.classes, host.gpus()[1], {card.address: card})[card.address])

    def claim_all(self, host, name):
        """Claims until the agent refuses. Returns the number of claims."""
        for count in range(40):
            try:
                host.claim({name: 1})
            except BusError:
                return count
        return None

    def test_a_vgpu_counts_after_the_release_of_its_claim(self):
        host = self.start('CUSTOM_L40S_2Q', 'CUSTOM_L40S_8Q')
        number = host.claim({'CUSTOM_L40S_2Q': 1})
        host.sim.write_type(host.claims()[number]['devices'][0]['address'], CLASSES['CUSTOM_L40S_2Q'])
        host.call('Release', 'xs', [number, ''])
        self.claim_all(host, 'CUSTOM_L40S_8Q')
        self.check(host)

    def test_a_change_during_a_poll_does_not_enlarge_the_card(self):
        """The poll reads a vGPU that ends before the lists of the other functions are read. Then they list the whole framebuffer."""
        host = self.start('CUSTOM_L40S_2Q', 'CUSTOM_L40S_8Q')
        host.sim.write_type(self.functions[0], CLASSES['CUSTOM_L40S_8Q'])
        host.call('Sync')
        host.sim.control('inject', rule={'op': 'read', 'path': '*/%s/nvidia/*' % self.functions[1], 'delay': 1, 'count': 1})
        wire = host.connect()
        wire.send_call(NAME, NODE, NAME, 'Sync')
        wait_until(lambda: host.sim.control('waiting'), 20, 'the poll to reach the second function')
        host.sim.write_type(self.functions[0], 0)
        while wire.receive().kind != RETURN:
            pass
        host.call('Sync')
        inventories, _addresses = host.gpus()
        for name, count in (('CUSTOM_L40S_2Q', 24), ('CUSTOM_L40S_8Q', 6)):
            self.assertEqual(inventories['0000:c1:00.0', name]['capacity'], count)

    def test_a_function_that_cannot_be_read_offers_no_more(self):
        host = self.start('CUSTOM_L40S_2Q')
        for address in self.functions[:2]:
            host.sim.write_type(address, 1426)
        for path in ('creatable_vgpu_types', 'current_vgpu_type', '*'):
            host.sim.control('heal')
            host.sim.control('inject', rule={'op': 'read', 'path': '*/%s/nvidia/%s' % (self.functions[1], path), 'errno': 'EIO'})
            host.call('Sync')
            inventory = host.gpus()[0].get(('0000:c1:00.0', 'CUSTOM_L40S_2Q'), {'capacity': 0})
            with self.subTest(path):
                self.assertLessEqual(inventory['capacity'], 22)
        self.claim_all(host, 'CUSTOM_L40S_2Q')
        self.check(host)


class TestJudge(unittest.TestCase):
    """The steps accept a model of the agent, and find each of its faults."""

    def walk(self, fault, steps):
        with Scratch() as scratch:
            return Walk(IdealHost(scratch, two_cards(), CLASSES, fault), SEED, (SAME_TYPE, EQUAL_SIZE, MIXED_SIZE), (4, 8)).run(steps)

    def test_a_correct_agent_is_accepted(self):
        self.walk('', 600)

    def test_each_fault_is_found(self):
        for fault in FAULTS:
            with self.subTest(fault), self.assertRaises(WalkError) as caught:
                self.walk(fault, 3000)
            print('%s: %s' % (fault, str(caught.exception).splitlines()[0]), file=sys.stderr)


class TestRandom(unittest.TestCase):
    def walk(self, modes):
        with Scratch() as scratch:
            print('%s, seed %d' % (modes, SEED), file=sys.stderr)
            Walk(GpuHost(scratch, two_cards(), CLASSES), SEED, modes, (4, 8)).run(STEPS, SECONDS)

    def test_cards_that_change_their_mode(self):
        self.walk((SAME_TYPE, EQUAL_SIZE, MIXED_SIZE))


def main():
    parser = argparse.ArgumentParser(prog='python3 -m tests.integration.driver.test_vgpu_random')
    parser.add_argument('--steps', type=int, default=1000)
    parser.add_argument('--seed', type=int, default=SEED)
    parser.add_argument('--modes', default=','.join((SAME_TYPE, EQUAL_SIZE, MIXED_SIZE)))
    parser.add_argument('--functions', default='4,8', help='numbers of virtual functions')
    parser.add_argument('--classes', default=','.join(CLASSES), help='resource classes of the configured types')
    parser.add_argument('--placements', action='store_true', help='vGPUs of mixed sizes begin at the placements of the documentation')
    args = parser.parse_args()
    with Scratch() as scratch:
        classes = {name: CLASSES[name] for name in args.classes.split(',')}
        walk = Walk(GpuHost(scratch, two_cards(args.placements), classes), args.seed, args.modes.split(','),
                    [int(one) for one in args.functions.split(',')])
        begin = time.monotonic()
        walk.run(args.steps)
        seconds = time.monotonic() - begin
        print('%d steps in %.0f s, %.1f ms each: %s; capacities compared: %s' % (
            args.steps, seconds, 1e3 * seconds / args.steps, dict(walk.done), dict(walk.compared)))


if __name__ == '__main__':
    main()
