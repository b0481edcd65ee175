# SPDX-License-Identifier: LGPL-2.1-or-later
"""A model of the agent's claims on simulated GPUs, in memory. It proves that the random steps accept a correct agent, and that they
find an agent with one of FAULTS. The real agent shares no code with it."""

import copy
import itertools

from tests.env.vgpu_sim import VgpuSim

# {name: what the model does wrong}
FAULTS = {
    'no-framebuffer': 'counts functions, and ignores the framebuffer',
    'list-alone': 'offers each type that a function lists, whatever claims are not vGPUs yet',
    'one-only': 'offers at most one vGPU of a type',
    'same-function': 'gives a function to two claims',
    'forgets': 'loses a claim at each restart',
    'blind': 'offers functions that another program made vGPUs of another type',
    'no-idle': 'offers no vGPU that has no claim',
    'early': 'offers the function of a released claim for other types before a poll has shown that its vGPU is gone',
}


class ModelError(Exception):
    name = 'NoCapacity'


class _Agent:
    """The restart of the model."""

    def __init__(self, host):
        self.host = host

    def kill(self):
        if self.host.fault == 'forgets' and self.host.made:
            self.host.made.popitem()


class IdealHost:
    """A host with the interface of GpuHost that the random steps use. fault: one of FAULTS, or ''."""

    def __init__(self, scratch, cards, classes, fault=''):
        self.scratch, self.classes, self.fault = scratch, classes, fault
        self.sim = VgpuSim(cards, scratch).start()
        self.agent = _Agent(self)
        self.made, self.numbers = {}, itertools.count(1)
        self.start()

    def start(self):
        self.snapshot, self.ended = self.sim.state(), {}

    def call(self, member, _signature='', values=()):
        if member in ('Sync', 'Reload'):
            self.start()
        elif member == 'Release':
            for device in self.made.pop(values[0])['devices']:
                if self.fault != 'early':
                    self.ended[device['address']] = int(device['mdev_type'][7:])
        elif member == 'Confirm':
            self.made[values[0]]['state'] = 'confirmed'

    def claims(self):
        return copy.deepcopy(self.made)

    def claimed(self, card):
        """Returns {address of a function: number of the type} of the claims on a card."""
        return {device['address']: int(device['mdev_type'][7:]) for claim in self.made.values() for device in claim['devices']
                if device['provider'] == card.address}

    def free(self, card, number):
        """Returns the functions that a claim of this type can get: idle vGPUs first, then functions that can become one. The vGPU of a
        released claim can exist until a poll shows that it is gone."""
        claimed, kind = self.claimed(card), card.kind.type(number)
        types = {one.address: one.type or claimed.get(one.address) or self.ended.get(one.address, 0) for one in card.functions}
        idle = [address for address, type_ in types.items() if type_ == number and address not in claimed]
        if self.fault == 'same-function':
            idle += [address for address in claimed if claimed[address] == number][:1]
        untyped = [address for address, type_ in types.items() if not type_ or self.fault == 'blind' and address not in claimed]
        left = card.kind.framebuffer - sum(card.kind.type(type_).framebuffer for type_ in types.values() if type_)
        count = min(len(untyped), left // kind.framebuffer)
        if self.fault in ('no-framebuffer', 'blind'):
            count = len(untyped)
        if self.fault == 'one-only':
            count = min(count, 1)
        if not any(card.can_create(address, kind) for address in untyped) and self.fault != 'blind':
            count = 0
        if not self.may_share(card, kind, claimed) and self.fault != 'list-alone':
            count = 0
        return ([] if self.fault == 'no-idle' else idle) + untyped[:max(0, count)]

    def may_share(self, card, kind, claimed):
        """Returns whether claims that are no vGPUs yet leave the type possible: they have the same type, or the card shows that it
        can have two types at the same time."""
        waiting = {number for address, number in {**claimed, **self.ended}.items()
                   if address in [one.address for one in card.functions if not one.type]}
        present = {one.type for one in card.vgpus()}
        if waiting <= {kind.number}:
            return True
        listed = {number for number in self.classes.values() for one in card.functions if card.can_create(one.address, card.kind.type(number))}
        return any(listed - {number} for number in present)

    def claim(self, resources):
        (name, amount), = resources.items()
        for card in self.snapshot.values():
            found = self.free(card, self.classes[name])[:amount]
            if len(found) == amount:
                number = next(self.numbers)
                self.made[number] = {'id': number, 'state': 'claimed', 'allocations': [
                    {'provider': card.address, 'name': card.address, 'resources': {name: amount}}], 'devices': [
                    {'provider': card.address, 'address': address, 'mdev_type': 'nvidia-%d' % self.classes[name]} for address in found]}
                return number
        raise ModelError

    def gpus(self):
        inventories = {}
        for card in self.snapshot.values():
            for name, number in self.classes.items():
                used = list(self.claimed(card).values()).count(number)
                inventories[card.address, name] = {'capacity': used + len(self.free(card, number)), 'used': used}
        return inventories, {address: address for address in self.snapshot}
