# SPDX-License-Identifier: LGPL-2.1-or-later
"""ClaimPlaced() returns the devices of a server that a scheduler placed on this host.

Placement and libvirtd are real. dbus-send calls the agent as the driver for Nova does (plugins/nova).
"""

import concurrent.futures
import json
import os
import random
import subprocess
import time
import uuid

from tests.env.agent import Agent
from tests.env.case import EnvCase
from tests.env.fakesys import Cell, Host, Pci
from tests.env.libvirtd import Libvirtd, guest_xml
from tests.env.scratch import wait_until

CARDS = ['0000:41:00.0', '0000:42:00.0']
CLASS = 'CUSTOM_A100'
ERROR = 'Error org.computeagent.Agent1.Error.'


class PlacedCase(EnvCase):
    """A host with devices for passthrough. Guests start with them (tests/shims/host.c)."""

    spec = {'vendor_id': '10de', 'product_id': '20b0', 'resource_class': CLASS}

    def setUp(self):
        self.libvirtd = Libvirtd(self.make_host(), self.scratch, shared=self.scratch.folder('shared'))
        self.addCleanup(self.libvirtd.close)
        self.libvirtd.start()
        self.agent = Agent(self.scratch, self.placement, self.libvirtd.uri, self.bus, {
            'agent': {'device_hold_sec': 1, 'device_settle_sec': 1},
            'pci': {'device_spec': json.dumps(self.spec), 'report_in_placement': 'true'}})
        self.agent.start('synced')
        self.addCleanup(self.agent.stop)

    def provider(self, address):
        return self.placement.tree_by_name(self.agent.root())['compute-1_' + address]['uuid']

    def send(self, method, *arguments):
        return subprocess.run(['dbus-send', '--bus=' + self.bus.address, '--print-reply=literal', '--reply-timeout=30000',
                               '--dest=org.computeagent.Agent1', '/org/computeagent/Agent1',
                               'org.computeagent.Agent1.' + method, *arguments],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, check=False)

    def call(self, consumer, *classes):
        return self.send('ClaimPlaced', 'string:' + consumer, 'array:string:' + ','.join(classes or [CLASS]))

    def attach(self, consumer):
        """Returns the claim that the agent returns."""
        done = self.call(consumer)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def refused(self, consumer, name, words, *classes):
        done = self.call(consumer, *classes)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(ERROR + name + ': ', done.stderr)
        self.assertIn(words, done.stderr)

    def place(self, *providers, vcpus=1, **more):
        """Allocates devices of these providers to a new server, as a scheduler does. Returns the server."""
        server = str(uuid.uuid4())
        self.placement.place(server, {self.agent.root(): {'VCPU': vcpus, **more}, **{one: {CLASS: 1} for one in providers}})
        return server


class TestClaimPlaced(PlacedCase):
    """Two cards, each with a provider of its own."""

    @staticmethod
    def make_host():
        return Host(cells=[Cell(0, list(range(8)), 16 << 20)], pci=[
            Pci(address, vendor=0x10de, device=0x20b0, pci_class=0x030200, driver='vfio-pci') for address in CARDS])

    def setUp(self):
        super().setUp()
        self.providers = [self.provider(address) for address in CARDS]

    def test_each_call_returns_the_same_claim(self):
        server = self.place(self.providers[1])
        mark = self.placement.mark()
        claim = self.attach(server)
        self.assertEqual([(device['address'], device['class'], device['managed']) for device in claim['devices']],
                         [(CARDS[1], CLASS, True)])
        self.assertEqual(self.attach(server)['id'], claim['id'])
        self.assertIn('created for server %s, which starts,' % server, self.agent.log())
        self.agent.kill()
        self.agent.start('synced')
        self.assertEqual(self.attach(server)['id'], claim['id'])
        self.assertEqual([line for line in self.placement.writes_since(mark) if 'allocations' in str(line)], [])

    def test_claim_follows_the_guest(self):
        """The claim is confirmed when the guest runs, and ends with it. Nova allocates more CPUs than the domain shows."""
        server = self.place(self.providers[0], vcpus=2, MEMORY_MB=64)
        made = self.attach(server)
        self.libvirtd.define(guest_xml('g1', memory_mib=64, uuid=server, devices=[CARDS[0]]))
        self.libvirtd.virsh('start', 'g1')
        self.addCleanup(self.libvirtd.destroy_guests)
        wait_until(lambda: self.agent.claims(server)[0]['state'] == 'confirmed', 30, 'the claim to be confirmed', step=0.5)
        for _ in range(3):
            self.agent.ctl('sync')
        self.assertEqual([(claim['id'], claim['beyond_domain']) for claim in self.agent.claims(server)], [(made['id'], {'VCPU': 1})])
        self.libvirtd.virsh('destroy', 'g1')
        self.libvirtd.virsh('undefine', 'g1')
        self.placement.delete(server)
        wait_until(lambda: not self.agent.claims(server), 60, 'the claim to end', step=0.5)

    def test_start_without_its_preparation(self):
        """The agent restarted during the hook's preparation of the start. The claim follows the domain."""
        server = self.place(self.providers[0], vcpus=2, MEMORY_MB=64)
        made = self.attach(server)
        done = self.send('GuestStarted', 'string:' + server)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.libvirtd.define(guest_xml('g1', memory_mib=64, uuid=server, devices=[CARDS[0]]))
        self.libvirtd.virsh('start', 'g1')
        self.addCleanup(self.libvirtd.destroy_guests)
        for _ in range(3):
            self.agent.ctl('sync')
        self.assertEqual([(claim['id'], claim['state'], claim['beyond_domain']) for claim in self.agent.claims(server)],
                         [(made['id'], 'confirmed', {'VCPU': 1})])

    def test_failed_boot_does_not_keep_its_device(self):
        """The server of the first claim is gone before a guest exists. The next server gets the device at once."""
        first = self.place(self.providers[0])
        self.attach(first)
        self.placement.delete(first)
        self.assertEqual(self.attach(self.place(self.providers[0]))['devices'][0]['address'], CARDS[0])

    def test_named_errors(self):
        self.refused(str(uuid.uuid4()), 'NotPlaced', 'no allocation of %s on this host' % CLASS)
        self.refused(self.place(), 'NotPlaced', CLASS)
        self.refused(self.place(), 'UnknownClass', 'VCPU: compute-1 counts no device', 'VCPU')
        self.refused('me', 'Invalid', 'not a uuid')
        self.refused(str(uuid.uuid4()), 'Invalid', 'is not a resource class', 'custom')
        self.assertEqual(self.agent.claims(), [])

    def test_claim_of_another_program_stays(self):
        server = self.place(self.providers[0])
        self.agent.ctl('claim', '--consumer', server, '--resources', 'VCPU=1', '--group', '_g:%s=1' % CLASS)
        self.assertEqual(self.attach(server)['id'], self.agent.claims(server)[0]['id'])
        self.placement.place(server, {self.agent.root(): {'VCPU': 1}, self.providers[1]: {CLASS: 1}})
        self.refused(server, 'Conflict', 'of another program has other devices')

    def test_withheld_device_is_for_its_claim_alone(self):
        kept, late = self.place(self.providers[0]), self.place(self.providers[1])
        self.attach(kept)
        for address in CARDS:
            self.agent.ctl('cordon', address, '--reason', 'test')
        self.assertEqual(self.attach(kept)['devices'][0]['address'], CARDS[0])
        self.refused(late, 'Unavailable', 'compute-1_%s is withheld' % CARDS[1])

    def test_lost_device_is_not_returned(self):
        server = self.place(self.providers[0])
        self.attach(server)
        self.libvirtd.remove_device(CARDS[0])
        self.agent.ctl('sync', check=False)
        self.refused(server, 'Unavailable', CARDS[0])

    def test_placement_is_away(self):
        known, unknown = self.place(self.providers[0]), self.place(self.providers[1])
        claim = self.attach(known)
        self.placement.stop()
        self.addCleanup(self.placement.start)
        self.assertEqual(self.attach(known)['id'], claim['id'])
        self.refused(unknown, 'Placement', '')


class TestKills(PlacedCase):
    """The agent is killed at random moments while servers start on a card whose functions have one provider.

    COMPUTE_AGENT_PLACED_ROUNDS is the number of kills.
    """

    spec = {'vendor_id': '8086', 'product_id': '154c', 'resource_class': CLASS}

    @staticmethod
    def make_host():
        functions = ['0000:81:02.%x' % number for number in range(6)]
        return Host(cells=[Cell(0, list(range(8)), 16 << 20)], pci=[
            Pci('0000:81:00.0', total_vfs=6, vfs=functions),
            *(Pci(address, device=0x154c, driver='iavf', physfn='0000:81:00.0') for address in functions)])

    def test_kills(self):
        seed = int(os.environ.get('COMPUTE_AGENT_SEED', time.time()))
        chance = random.Random(seed)
        card, servers = self.provider('0000:81:00.0'), {}
        for round_ in range(int(os.environ.get('COMPUTE_AGENT_PLACED_ROUNDS', '4'))):
            with self.subTest(seed=seed, round=round_):
                for server in [one for one in servers if chance.random() < 0.5]:
                    self.placement.delete(server)
                    del servers[server]
                for _number in range(chance.randint(1, 6 - len(servers)) if len(servers) < 6 else 0):
                    servers[self.place(card, vcpus=1)] = None
                self.play(chance, servers)

    def play(self, chance, servers):
        """Lets all servers start while the agent is killed. servers: {server: its device, or None}, which is updated."""
        with concurrent.futures.ThreadPoolExecutor(len(servers) or 1) as pool:
            calls = {server: pool.submit(self.call, server) for server in servers}
            time.sleep(chance.random() * 0.4)
            self.agent.kill()
        for server, call in calls.items():
            if call.result().returncode == 0:
                device, = json.loads(call.result().stdout)['devices']
                self.assertIn(servers[server], (None, device['address']))
                servers[server] = device['address']
        self.agent.start('synced')
        for server, before in servers.items():
            device, = self.attach(server)['devices']
            self.assertIn(before, (None, device['address']), 'a device that was returned before')
            servers[server] = device['address']
        self.assertEqual(len(set(servers.values())), len(servers), servers)
