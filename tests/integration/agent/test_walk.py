# SPDX-License-Identifier: LGPL-2.1-or-later
"""Random walks of two hosts: after any sequence of steps each running guest keeps its allocations, and each device has one owner.

A walk is a small cloud above two real libvirtds, each with its agent, and one real Placement. Its servers are placed by Placement's
own candidates or by the agent. They are built, stopped, edited with virsh, migrated, evacuated and deleted as Nova does it. The
walk writes to Placement itself and sends the agents nothing about that. Between steps it kills agents, heals and waits. The walk
has its own books, and compares them with the hosts after each step:

* Each consumer of the books has exactly its written allocations in Placement, however long its build or copy takes. No other
  consumer has any.

* Each device is in the claims and domains of at most one server.

* A server with an allocation here gets a claim, unless an edit took its device or its device is gone.

Another writer raises amounts beyond those of the domain. Virtual functions come and go under their guests. A GPU gets another vGPU
type, and another GPU replaces one that a guest has.

At the end of a walk Placement, claims, guests and books agree, and an audit finds nothing.

COMPUTE_AGENT_SEEDS=N runs N walks of each kind. A failure prints the seed and its steps, and COMPUTE_AGENT_SEED=S begins with that
seed ("make soak-walk").
"""

import contextlib
import json
import os
import random
import time
import uuid

from tests.env.agent import Agent
from tests.env.bus import Bus
from tests.env.fakesys import Gpu, Host, MdevType, Pci, device_path, simple_host, sriov
from tests.env.libvirtd import Libvirtd, address_xml, guest_xml, hostdev_xml
from tests.env.scratch import EnvError, wait_until
from tests.integration.claims.placement_case import PlacementCase

SEEDS = int(os.environ.get('COMPUTE_AGENT_SEEDS', '1'))
FIRST = int(os.environ.get('COMPUTE_AGENT_SEED', '1'))
STEPS = 25
EXPIRY = 4  # [DEFAULT] claim_expiry_time, in seconds
VF, CARD = 'CUSTOM_VF', 'CUSTOM_A100'
DEVICES = ('VGPU', VF, CARD)
CARD_ADDRESS = '0000:b1:00.0'


class WalkError(AssertionError):
    pass


def need(condition, *words):
    if not condition:
        raise WalkError(*words)


class WalkHost:
    """A host with its agent. Its libvirtd has two GPUs of three mdevs each, four VFs, and a GPU that is allocated as a whole."""

    def __init__(self, scratch, endpoint, name, options):
        self.name = name
        self.mdevs = [str(uuid.uuid5(uuid.NAMESPACE_DNS, '%s-%d' % (name, i))) for i in range(6)]
        plain = simple_host(cells=2, name=name)
        card = sriov('0000:8a:00.0', 4, numa_node=1)
        self.vfs = card[0].vfs
        self.libvirtd = Libvirtd(Host(cells=plain.cells, gpus=[self.gpu(0, False), self.gpu(1, False)],
                                      pci=[*card, self.whole_card('A')], name=name), scratch).start()
        scratch.on_close(self.libvirtd.destroy_guests)
        bus = Bus(scratch).start()
        self.agent = Agent(scratch, endpoint, self.libvirtd.uri, bus, {
            'DEFAULT': {'claim_expiry_time': EXPIRY, 'update_resources_interval': 1, 'cpu_allocation_ratio': 1.0},
            'compute': {'numa_in_placement': options.get('numa', 'false')},
            'agent': {'start_jitter_sec': 0, 'device_hold_sec': 1, 'heal_each_cycles': options.get('heal', 0)},
            'pci': {'device_spec': [json.dumps({'product_id': '154c', 'resource_class': VF}),
                                    json.dumps({'product_id': '20b0', 'resource_class': CARD})],
                    'report_in_placement': 'true'}})
        self.start_agent()
        self.root = self.agent.root()
        # (uuid of the server, device) of each device that an operator attached with virsh.
        self.edited = set()
        self.card, self.lost_vfs = card, False
        self.retyped = set()  # the numbers of GPUs with another vGPU type
        # The serial number of the whole card in the slot, and {server: serial number of the card that it got}.
        self.serial, self.serials = 'A', {}

    def start_agent(self):
        self.agent.start()
        self.agent.wait_state('synced', 60)

    def gpu(self, number, retyped):
        """Returns the GPU as its driver shows it: with three mdevs of the configured type, or with one of another type."""
        other = MdevType('GRID M10-1B', available=0,
                         existing=[str(uuid.uuid5(uuid.NAMESPACE_DNS, '%s-other-%d' % (self.name, number)))])
        usual = MdevType('GRID M10-0B', available=0, existing=self.mdevs[3 * number:3 * number + 3])
        types = {'nvidia-36': other, 'nvidia-35': MdevType('GRID M10-0B', available=0)} if retyped else {'nvidia-35': usual}
        return Gpu('0000:%s:00.0' % ('41', '81')[number], numa_node=number, types=types)

    @staticmethod
    def whole_card(serial):
        return Pci(CARD_ADDRESS, 1, 0x10de, 0x20b0, 0x030200, 'vfio-pci', serial=serial)

    def set_type(self, number, retyped):
        """Reloads the driver of a GPU. It shows another vGPU type if retyped, and the usual one otherwise."""
        gpu = self.gpu(number, retyped)
        self.libvirtd.remove_device(gpu.address)
        self.libvirtd.plug_device(gpu)
        (self.retyped.add if retyped else self.retyped.discard)(number)

    def exchange_card(self, serial):
        """Replaces the GPU in the slot by another one of the same model."""
        self.libvirtd.remove_device(CARD_ADDRESS)
        self.libvirtd.plug_device(self.whole_card(serial))
        self.serial = serial

    def present(self):
        """Returns the devices that a guest can get."""
        mdevs = [mdev for number, mdev in enumerate(self.mdevs) if number // 3 not in self.retyped]
        return mdevs if self.lost_vfs else [*mdevs, *self.vfs]

    def can_lack(self, amounts):
        """Returns whether a placed server might find no device, because an edit took it or it is gone."""
        return bool(self.edited and any(name in amounts for name in DEVICES) or self.lost_vfs and VF in amounts or
                    self.retyped and 'VGPU' in amounts or self.serials and CARD in amounts)

    def set_vfs(self, present):
        """Writes 0 or the number of VFs to the card's sriov_numvfs, as an operator or a reloaded driver does."""
        self.lost_vfs = not present
        for vf in self.card[1:]:
            if present:
                self.libvirtd.plug_device(vf)
            else:
                self.libvirtd.remove_device(vf.address)
        card = device_path(self.libvirtd.sys, self.card[0].address)
        (card / 'sriov_numvfs').write_text('%d\n' % (len(self.vfs) if present else 0))
        for number, address in enumerate(self.vfs):
            link = card / ('virtfn%d' % number)
            if present:
                link.symlink_to('../../%s/%s' % (device_path('', address).parent.name, address))
            else:
                link.unlink()

    def domains(self):
        """Returns {uuid: the devices in its XML} of all domains."""
        found = {}
        for guest in self.libvirtd.virsh('list', '--all', '--uuid').split():
            xml = self.libvirtd.virsh('dumpxml', '--inactive', guest)
            found[guest] = {device for device in [*self.mdevs, *self.vfs, CARD_ADDRESS] if address_xml(device) in xml}
        return found


class Server:
    def __init__(self, number, rng):
        self.uuid = str(uuid.UUID(int=rng.getrandbits(128), version=4))
        self.name = 'server%d' % number
        self.amounts = {'VCPU': rng.choice([1, 1, 2, 3]), 'MEMORY_MB': rng.choice([16, 32, 48])}
        device = rng.choice([None, None, None, 'VGPU', 'VGPU', VF, VF, CARD])
        if device:
            self.amounts[device] = 1
        self.host = self.migration = self.target = None
        self.claim = self.since = None
        self.has_domain = self.unplaced = self.is_copied = False

    def resources(self, separator='='):
        return ','.join('%s%s%d' % (name, separator, amount) for name, amount in self.amounts.items())


class Walk:
    """One walk of one seed. Its steps are the methods that begin with step_. Each returns a description of the step, or None if
    there was nothing to do."""

    def __init__(self, case, seed):
        self.case, self.rng, self.seed = case, random.Random(seed), seed
        self.servers, self.books, self.done, self.number = [], {}, [], 0

    def pick(self, condition):
        found = [server for server in self.servers if condition(server)]
        return self.rng.choice(found) if found else None

    # Steps of a scheduler

    def candidate(self, host, server):
        """Returns {provider: amounts} of one of Placement's candidates, or None."""
        found = self.case.api('GET', '/allocation_candidates?limit=50&resources=%s&in_tree=%s' % (
            server.resources(':'), host.root))['allocation_requests']
        if not found:
            return None
        chosen = self.rng.choice(found)['allocations']
        return {provider: part['resources'] for provider, part in chosen.items()}

    def write(self, consumers):
        """Writes {consumer: {provider: amounts}} in one atomic POST, as Nova does for moves. Nova sends no consumer types."""
        for _ in range(4):  # Nova also retries after a conflict.
            body = {consumer: {
                'allocations': {provider: {'resources': amounts} for provider, amounts in held.items()},
                'project_id': 'project', 'user_id': 'user',
                'consumer_generation': self.case.generation(consumer)} for consumer, held in consumers.items()}
            answer = self.case.placement.request('POST', '/allocations', body, microversion='1.36', record=False)
            if 'placement.concurrent_update' not in answer.text:
                break
        need(answer.status == 204, answer.status, answer.text)
        for consumer, held in consumers.items():
            self.books.pop(consumer, None)
            if held:
                self.books[consumer] = held

    def step_place(self):
        host, server = self.rng.choice(self.case.hosts), Server(self.number, self.rng)
        held = self.candidate(host, server)
        if not held:
            return None
        self.number += 1
        self.write({server.uuid: held})
        server.host, server.since = host, time.monotonic()
        self.servers.append(server)
        return 'place %s on %s: %s' % (server.name, host.name, held)

    # Steps of a host

    def ask_claim(self, host, server):
        """Returns the claim of a placed server, or None if an edit took its device or its device is gone."""
        done = host.agent.claim(server.resources(), server.uuid, check=False)
        if done.returncode == 0:
            return self.note_card(host, server, json.loads(done.stdout))
        need(host.can_lack(server.amounts), done.stderr)
        return None

    @staticmethod
    def note_card(host, server, claim):
        if CARD in server.amounts:
            host.serials[server.uuid] = host.serial
        return claim

    def step_claim(self):
        self.forget_given_up()
        server = self.pick(lambda one: one.host and not one.claim and not one.migration and not self.is_late(one))
        if not server:
            return None
        server.claim = self.ask_claim(server.host, server)
        if not server.claim:
            return 'no device for %s: %s' % (server.name, self.delete(server))
        return 'claim for %s: %s' % (server.name, self.devices(server.claim))

    def step_claim_unplaced(self):
        """Claims without a scheduler, so that the agent writes the allocation. The claim can fail if Placement has no candidate."""
        host, server = self.rng.choice(self.case.hosts), Server(self.number, self.rng)
        room = self.candidate(host, server)
        self.number += 1
        done = host.agent.claim(server.resources(), server.uuid, check=False)
        if done.returncode:
            need(not room or host.can_lack(server.amounts), done.stderr, room)
            return 'no room for %s' % server.name
        self.note_card(host, server, json.loads(done.stdout))
        server.claim, server.host, server.since, server.unplaced = json.loads(done.stdout), host, time.monotonic(), True
        self.books[server.uuid] = self.case.held(server.uuid)
        need(self.books[server.uuid], 'nothing was written for', server.name)
        self.servers.append(server)
        return 'claim %s on %s, unplaced: %s' % (server.name, host.name, self.devices(server.claim))

    @staticmethod
    def devices(claim):
        return [device['mdev'] or device['address'] for device in claim['devices']]

    def define(self, host, server, claim):
        host.libvirtd.define(guest_xml(server.name, server.amounts['MEMORY_MB'], server.amounts['VCPU'], uuid=server.uuid,
                                       devices=self.devices(claim)))

    def start(self, host, server):
        """Starts a guest without devices. A guest with a device stays shut off, because made-up hardware cannot start it."""
        if not self.devices(server.claim) and server.uuid not in {edit[0] for edit in host.edited}:
            with contextlib.suppress(EnvError):  # The guest runs already.
                host.libvirtd.virsh('start', server.name, timeout=90)

    def step_build(self):
        self.forget_given_up()
        server = self.pick(lambda one: one.claim and not one.has_domain and not one.migration and not self.is_late(one))
        if not server:
            return None
        self.define(server.host, server, server.claim)
        server.has_domain = True
        if self.rng.random() < 0.5:
            self.start(server.host, server)
        return 'build %s' % server.name

    def step_start_or_stop(self):
        server = self.pick(lambda one: one.has_domain and not one.migration and not self.devices(one.claim) and
                           one.uuid not in {edit[0] for edit in one.host.edited})
        if not server:
            return None
        if server.name in server.host.libvirtd.virsh('list', '--name').split():
            server.host.libvirtd.virsh('destroy', server.name)
            return 'stop %s' % server.name
        self.start(server.host, server)
        return 'start %s' % server.name

    def step_edit(self):
        """Adds a free device to the persistent definition of a guest. The guest can be running."""
        server = self.pick(lambda one: one.has_domain and not one.migration)
        if not server:
            return None
        host = server.host
        taken = set().union(*self.owners(host)) | {d for one in self.servers if one.claim for d in self.devices(one.claim)}
        free = [device for device in host.present() if device not in taken]
        if not free or host.edited:
            return None
        device = self.rng.choice(free)
        path = host.libvirtd.folder / 'edit.xml'
        path.write_text(hostdev_xml(device))
        host.libvirtd.virsh('attach-device', server.name, path, '--config')
        host.edited.add((server.uuid, device))
        return 'edit %s: %s' % (server.name, device)

    def undefine(self, host, server):
        host.libvirtd.virsh('destroy', server.name, check=False)
        host.libvirtd.virsh('undefine', server.name)
        host.edited = {edit for edit in host.edited if edit[0] != server.uuid}

    def release(self, server):
        """Releases the claim of a server without a scheduler, and waits until the agent removed its allocation."""
        server.host.agent.ctl('release', server.claim['id'], check=False)
        wait_until(lambda: server.host.agent.status()['n_pending_removals'] == 0, 60, 'the removal')
        del self.books[server.uuid]

    def delete(self, server):
        """Deletes a server in either order, as nova-compute or the API does it. A server without a scheduler is undefined first."""
        if server.unplaced:
            steps = [lambda: self.release(server)]
        else:
            steps = [lambda: self.write({server.uuid: {}})]
        if server.has_domain:
            steps.insert(0 if server.unplaced else self.rng.randrange(2), lambda: self.undefine(server.host, server))
        for step in steps:
            step()
        self.servers.remove(server)
        return 'delete %s' % server.name

    def step_delete(self):
        server = self.pick(lambda one: not one.migration)
        return self.delete(server) if server else None

    def step_raise(self):
        """Raises an amount of a guest above that of its domain, as another writer."""
        server = self.pick(lambda one: one.has_domain and not one.migration and not one.unplaced)
        if not server:
            return None
        held = {provider: dict(amounts) for provider, amounts in self.books[server.uuid].items()}
        provider, name = self.rng.choice([(provider, name) for provider, amounts in held.items()
                                          for name in amounts if name in ('VCPU', 'MEMORY_MB')])
        held[provider][name] += self.rng.choice([1, 16])
        if self.case.placement.put(server.uuid, held, project='project') != 204:
            return None  # no capacity
        self.books[server.uuid] = held
        return 'raise %s of %s: %s' % (name, server.name, held)

    def step_vfs(self):
        """Removes the virtual functions of a card from their guests, or returns them."""
        host = self.rng.choice(self.case.hosts)
        return self.return_vfs(host) if host.lost_vfs else self.lose_vfs(host)

    def lose_vfs(self, host):
        host.set_vfs(False)
        wait_until(lambda: not self.offers(host, VF), 30, 'no offer of lost virtual functions')
        return 'lose the virtual functions of %s' % host.name

    def return_vfs(self, host):
        host.set_vfs(True)
        return 'return the virtual functions of %s' % host.name

    def step_type(self):
        """Reloads the driver of a GPU, which then has another vGPU type, or its usual one again."""
        host, number = self.rng.choice(self.case.hosts), self.rng.randrange(2)
        return self.restore_type(host, number) if number in host.retyped else self.change_type(host, number)

    def change_type(self, host, number):
        host.set_type(number, True)
        name = '%s_pci_0000_%s_00_0' % (host.name, ('41', '81')[number])
        wait_until(lambda: self.is_withheld(host, name, 'VGPU'), 30, 'no offer of vGPUs of %s' % name)
        return 'give another vGPU type to GPU %d of %s' % (number, host.name)

    @staticmethod
    def restore_type(host, number):
        host.set_type(number, False)
        return 'give the usual vGPU type to GPU %d of %s' % (number, host.name)

    def is_withheld(self, host, name, resource_class):
        """Returns whether Placement has no such provider, no such inventory, or reserves all of it."""
        record = self.case.placement.tree_by_name(host.root).get(name, {'inventories': {}})['inventories'].get(resource_class)
        return not record or record['reserved'] == record['total']

    def step_exchange(self):
        """Replaces the GPU in the slot by another one of the same model. A server can have the former one."""
        host = self.rng.choice(self.case.hosts)
        return self.exchange(host, self.rng.choice([one for one in 'ABC' if one != host.serial]))

    def exchange(self, host, serial):
        """Exchanges the GPU. If a server has the former one, the agent must withhold the new one."""
        owned = self.owned_serial(host)
        host.exchange_card(serial)
        if owned and owned != serial:
            wait_until(lambda: self.is_withheld(host, '%s_%s' % (host.name, CARD_ADDRESS), CARD), 30, 'no offer of the exchanged card')
        return 'exchange the card of %s for %s' % (host.name, serial)

    def owned_serial(self, host):
        """Returns the serial number of the card that a server of this host was given, or None if no server has one."""
        owners = {self.server_of(claim['consumer']) for claim in host.agent.claims() if CARD_ADDRESS in self.devices(claim)}
        owners |= {guest for guest, devices in host.domains().items() if CARD_ADDRESS in devices}
        return next((host.serials[owner] for owner in owners), None)

    def restore_devices(self, host):
        """Restores each device to its state at the time when a server got it."""
        if host.lost_vfs:
            self.step(lambda: self.return_vfs(host))
        for number in sorted(host.retyped):
            self.step(lambda one=number: self.restore_type(host, one))
        owned = self.owned_serial(host)
        if owned and owned != host.serial:
            self.step(lambda: self.exchange(host, owned))

    def offers(self, host, name):
        return self.case.api('GET', '/allocation_candidates?resources=%s:1&in_tree=%s' % (name, host.root))['allocation_requests']

    # Moves

    def finish_copy(self, server):
        server.is_copied = False
        return self.arrive(server, server.target)

    def abort_copy(self, server):
        server.is_copied = False
        self.write({server.uuid: self.books[server.migration], server.migration: {}})
        server.migration = server.target = None
        return 'abort the copy of %s' % server.name

    def step_end_copy(self):
        server = self.pick(lambda one: one.is_copied)
        return self.rng.choice([self.finish_copy, self.finish_copy, self.abort_copy])(server) if server else None

    def step_migrate(self):
        """Migrates a server cold. The migration has the allocation of the source, where the domain stays, until confirm or revert."""
        server = self.pick(lambda one: one.has_domain and not one.migration and not one.unplaced and
                           one.uuid not in {edit[0] for edit in one.host.edited})
        if not server:
            return None
        target = next(host for host in self.case.hosts if host is not server.host)
        held = self.candidate(target, server)
        if not held:
            return None
        server.migration = str(uuid.UUID(int=self.rng.getrandbits(128), version=4))
        self.write({server.uuid: held, server.migration: self.books[server.uuid]})
        if self.rng.random() < 0.4:
            server.is_copied, server.target = True, target
            return 'begin to copy %s to %s' % (server.name, target.name)
        return self.arrive(server, target)

    def arrive(self, server, target):
        """Claims and defines a migrating server on the target. Without a device there the migration is undone."""
        claim = self.ask_claim(target, server)
        if not claim:
            self.write({server.uuid: self.books[server.migration], server.migration: {}})
            server.migration = server.target = None
            return 'no device there for %s' % server.name
        server.host.libvirtd.virsh('destroy', server.name, check=False)
        self.define(target, server, claim)
        server.target, server.old_claim, server.claim = target, server.claim, claim
        self.start(target, server)
        return 'migrate %s to %s' % (server.name, target.name)

    def confirm(self, server):
        self.write({server.migration: {}})
        self.undefine(server.host, server)
        server.host, server.target, server.migration = server.target, None, None
        return 'confirm %s' % server.name

    def revert(self, server):
        self.undefine(server.target, server)
        self.write({server.uuid: self.books[server.migration], server.migration: {}})
        server.claim, server.target, server.migration = server.old_claim, None, None
        self.start(server.host, server)
        return 'revert %s' % server.name

    def step_end_migration(self):
        server = self.pick(lambda one: one.migration and not one.is_copied)
        if not server:
            return None
        return self.rng.choice([self.confirm, self.revert])(server)

    def step_evacuate(self):
        """Kills the agent of the source host. Nova gives the server both allocations until the host is back."""
        server = self.pick(lambda one: one.has_domain and not one.migration and not one.unplaced)
        if not server:
            return None
        source = server.host
        target = next(host for host in self.case.hosts if host is not source)
        held = self.candidate(target, server)
        if not held:
            return None
        source.agent.kill()
        source.libvirtd.virsh('destroy', server.name, check=False)
        both = {**self.books[server.uuid], **held}
        self.write({server.uuid: both})
        claim = self.ask_claim(target, server)
        if not claim:
            self.write({server.uuid: {p: a for p, a in both.items() if p not in held}})
            source.start_agent()
            return 'no device there for %s, which was to be evacuated' % server.name
        self.define(target, server, claim)
        server.host, server.claim = target, claim
        self.start(target, server)
        if self.rng.random() < 0.5:  # The agent can start before nova-compute has cleaned up.
            source.start_agent()
        self.undefine(source, server)
        self.write({server.uuid: held})
        if not source.agent.running():
            source.start_agent()
        return 'evacuate %s to %s' % (server.name, target.name)

    # Steps of agents

    def step_kill(self):
        host = self.rng.choice(self.case.hosts)
        host.agent.kill()
        host.start_agent()
        return 'kill and start the agent of %s' % host.name

    def step_heal(self):
        host = self.rng.choice(self.case.hosts)
        host.agent.ctl('heal', check=False)
        return 'heal %s' % host.name

    def step_sync(self):
        host = self.rng.choice(self.case.hosts)
        host.agent.ctl('sync')
        return 'sync %s' % host.name

    def step_wait(self):
        seconds = self.rng.choice([0.3, 1, EXPIRY + 1])
        time.sleep(seconds)
        return 'wait %s s' % seconds

    # Checks of the hosts and of Placement

    def server_of(self, consumer):
        """Returns the uuid of the server of a consumer, which can be its migration."""
        return next((one.uuid for one in self.servers if one.migration == consumer), consumer)

    @staticmethod
    def owners(host):
        return host.domains().values()

    @staticmethod
    def is_late(server):
        """Returns whether the allocation, written by the agent, could expire before a build on it ends."""
        return server.unplaced and time.monotonic() - server.since > EXPIRY / 2

    @staticmethod
    def may_be_given_up(server):
        """Returns whether the allocation can expire. Only allocations that the agent wrote expire."""
        return server.unplaced and not server.has_domain and time.monotonic() - server.since > EXPIRY

    def forget_given_up(self):
        for server in list(self.servers):
            if self.may_be_given_up(server) and not self.case.held(server.uuid):
                self.servers.remove(server)
                del self.books[server.uuid]

    def check_placement(self):
        found = self.case.placement.all_held()
        self.forget_given_up()
        for consumer, held in self.books.items():
            need(found.get(consumer, {}) == held, 'consumer %s holds %s, not %s' % (consumer, found.get(consumer), held))
        strangers = {one: held for one, held in self.case.placement.all_held().items() if one not in self.books}
        need(not strangers, 'not written by the walk:', strangers)

    # Checks that each device belongs to one server, by the claims and the domains. A migration counts as its server.
    def check_devices(self, host):
        owners = {}
        for claim in host.agent.claims():
            for device in self.devices(claim):
                owners.setdefault(device, set()).add(self.server_of(claim['consumer']))
        for guest, devices in host.domains().items():
            for device in devices:
                owners.setdefault(device, set()).add(guest)
        twice = {device: guests for device, guests in owners.items() if len(guests) > 1}
        need(not twice, 'on %s belongs to two:' % host.name, twice)

    def check(self):
        self.check_placement()
        for host in self.case.hosts:
            self.check_devices(host)

    def step(self, act):
        did = act()
        if did:
            self.done.append(did)
            self.check()

    # The walk itself

    def run(self):
        weights = {'place': 5, 'claim': 6, 'claim_unplaced': 2, 'build': 6, 'start_or_stop': 2, 'edit': 2, 'delete': 3,
                   'migrate': 4, 'end_migration': 3, 'end_copy': 2, 'raise': 2, 'vfs': 1,
                   'type': 1, 'exchange': 2, 'evacuate': 1, 'kill': 1, 'heal': 3, 'sync': 1, 'wait': 2}
        for name in self.rng.choices(list(weights), list(weights.values()), k=STEPS):
            self.step(getattr(self, 'step_' + name))
        self.end()

    def end(self):
        """Ends each migration, deletes the servers without a domain, and checks that all agree. Then it deletes the last servers."""
        for host in self.case.hosts:
            self.restore_devices(host)
        for server in list(self.servers):
            if server.is_copied:
                self.step(lambda one=server: self.abort_copy(one))
            elif server.migration:
                self.step(lambda one=server: self.rng.choice([self.confirm, self.revert])(one))
            elif not server.has_domain and server in self.servers:
                self.step(lambda one=server: self.delete(one))
        self.wait_agreed()
        for host in self.case.hosts:
            # A device that returned is withheld for a while, and longer after each loss.
            with contextlib.suppress(EnvError):
                wait_until(lambda one=host: not self.findings(one), 60, 'no findings', step=1)
            need(not self.findings(host), 'findings of %s:' % host.name, self.findings(host))
        self.check()
        for server in list(self.servers):
            self.step(lambda one=server: self.delete(one))
        self.wait_agreed()
        self.check()

    @staticmethod
    def findings(host):
        """Returns the problems of an audit, without those of guests that an operator edited. A larger amount of another writer is
        no problem."""
        done = host.agent.ctl('audit', '--json=short', check=False)
        return [one for one in json.loads(done.stdout)['findings']
                if one['problem'] and one['consumer'] not in {edit[0] for edit in host.edited}]

    def wait_agreed(self):
        """Waits until each guest has one confirmed claim, and no other claim is left."""
        for host in self.case.hosts:
            guests = sorted((one.uuid, 'confirmed') for one in self.servers if one.host is host)
            host.agent.ctl('sync')
            with contextlib.suppress(EnvError):
                wait_until(lambda host=host, guests=guests: self.claimed(host) == guests, 30, 'the claims')
            need(self.claimed(host) == guests, 'claims of %s:' % host.name, self.claimed(host), guests)

    @staticmethod
    def claimed(host):
        return sorted((claim['consumer'], claim['state']) for claim in host.agent.claims())


class WalkCase(PlacementCase):
    options = {}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.hosts = [WalkHost(cls.scratch, cls.placement.endpoint, name, cls.options)
                     for name in ('compute-1', 'compute-2')]

    def walk(self):
        for seed in range(FIRST, FIRST + SEEDS):
            walk = Walk(self, seed)
            try:
                walk.run()
            except (AssertionError, EnvError, OSError) as error:
                logs = '\n'.join('--- %s:\n%s' % (host.name, host.agent.log()[-3000:]) for host in self.hosts)
                self.fail('seed %d: %s\n%s\n%s' % (seed, error, '\n'.join(walk.done), logs))


class TestWalk(WalkCase):
    def test_no_living_guest_loses_anything(self):
        self.walk()


class TestWalkThatHeals(WalkCase):
    """The agent heals with each cycle."""

    options = {'heal': 1}

    def test_no_living_guest_loses_anything(self):
        self.walk()


class TestWalkOverCells(WalkCase):
    """VCPU and MEMORY_MB belong to the cells, and a scheduler can allocate them from different cells."""

    options = {'numa': 'true', 'heal': 2}

    def test_no_living_guest_loses_anything(self):
        self.walk()
