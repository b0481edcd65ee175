# SPDX-License-Identifier: LGPL-2.1-or-later
"""Devices are given out in partitions ([device_shapes NAME]): the published amounts, the choice, guests, cordons and crashes.

Placement and libvirtd are real. The host has eight GPUs with the partitions of an NVSwitch board.
"""

import json
import subprocess
import uuid

from tests.env.fakesys import Cell, Host, Pci
from tests.env.libvirtd import guest_xml
from tests.env.scratch import wait_until
from tests.integration.claims.test_device_identity import IdentityCase

GPUS = ['0000:%02x:00.0' % bus for bus in range(0x41, 0x49)]
PARTITIONS = '0=1-8, 1=1-4, 2=5-8, 3=1+3, 4=2+4, 5=5+7, 6=6+8, ' + ', '.join('%d=%d' % (member + 6, member) for member in range(1, 9))
PROVIDER = 'compute-1_shapes_hgx'


def gpu(address):
    return Pci(address, vendor=0x10de, device=0x2330, pci_class=0x030200, driver='vfio-pci', serial='S' + address[5:7])


class ShapesCase(IdentityCase):
    make_host = staticmethod(lambda: Host(cells=[Cell(0, list(range(8)), 16 << 20)], pci=[gpu(address) for address in GPUS]))
    options = {'pci': {'report_in_placement': 'true'},
               'device_shapes hgx': {'resource_class': 'CUSTOM_HGX_GPU', 'members': ', '.join(GPUS), 'partitions': PARTITIONS}}

    def gpus(self, amount, consumer=None, code=0):
        return self.agent.claim('CUSTOM_HGX_GPU=%d' % amount, consumer, code=code)

    def record(self):
        """Returns (reserved, max_unit) in Placement."""
        tree = self.placement.tree_by_name(self.agent.root())
        record = tree.get(PROVIDER, {'inventories': {}})['inventories'].get('CUSTOM_HGX_GPU')
        return record and (record['reserved'], record['max_unit'])

    def wait_record(self, *expected):
        wait_until(lambda: self.record() == expected, 30, 'Placement to have %s' % (expected,), step=0.2)

    def put(self, consumer, amount):
        """Writes an allocation as a scheduler does. Returns the status."""
        tree = self.placement.tree_by_name(self.agent.root())
        return self.placement.put(consumer, {tree[PROVIDER]['uuid']: {'CUSTOM_HGX_GPU': amount}})

    def members(self, claim):
        return ''.join(str(GPUS.index(device['address']) + 1) for device in claim['devices'])


class TestShapes(ShapesCase):
    def test_amounts_follow_the_claims(self):
        self.wait_record(0, 8)
        first = self.gpus(4)
        self.assertEqual(self.members(first), '1234')
        self.assertEqual([device['managed'] for device in first['devices']], [True] * 4)
        # The cycle of the claim publishes it, without a timer.
        self.wait_record(0, 4)
        taker, other = str(uuid.uuid4()), str(uuid.uuid4())
        self.assertEqual(self.put(taker, 4), 204)
        self.assertEqual(self.members(self.gpus(4, taker)), '5678')
        # Placement itself refuses the next scheduler.
        self.assertEqual(self.put(other, 4), 409)
        self.wait_record(0, 1)
        self.agent.ctl('release', first['id'])
        self.wait_record(0, 4)
        self.assertEqual(self.members(self.gpus(2)), '13')
        self.wait_record(0, 2)
        self.assertEqual(self.put(other, 4), 409)
        # A single GPU breaks the other pair rather than nothing, and two free ones are no pair.
        self.assertEqual(self.members(self.gpus(1)), '2')
        self.wait_record(0, 1)
        self.assertEqual(self.put(other, 2), 409)

    def test_cordoned_members_and_words(self):
        self.agent.ctl('cordon', GPUS[0], '--reason', 'Xid 79')
        self.wait_record(1, 4)
        self.agent.ctl('cordon', 'pci_0000_45_00_0')
        self.wait_record(2, 2)
        explained = self.agent.ctl('explain', '--resources', 'CUSTOM_HGX_GPU=4', check=False).stdout
        self.assertIn('6 free, but no partition of 4', explained)
        found = self.agent.ctl_json('explain', '--resources', 'CUSTOM_HGX_GPU=4', check=False)
        self.assertEqual([(one['term'], one['free'], one['missing']) for one in found['providers']], [('partition', 6, 0)])
        self.assertIn('no partition of 3', self.agent.ctl('explain', '--resources', 'CUSTOM_HGX_GPU=3', check=False).stdout)
        done = self.agent.claim('CUSTOM_HGX_GPU=4', check=False)
        self.assertIn('6 free, but no partition of 4', done.stderr)
        self.assertIn('Xid 79', self.agent.ctl('status', check=False).stdout)
        self.assertEqual(self.members(self.gpus(2)), '24')
        self.agent.restart('synced')
        self.wait_record(2, 2)
        self.agent.ctl('uncordon', 'pci_0000_41_00_0')
        self.wait_record(1, 2)
        self.agent.ctl('uncordon', GPUS[4])
        self.wait_record(0, 4)
        self.agent.ctl('cordon', PROVIDER)  # the whole set
        self.wait_record(8, 4)
        self.gpus(1, code=1)
        self.agent.ctl('uncordon', PROVIDER)
        self.wait_record(0, 4)

    def test_missing_member(self):
        claim = self.gpus(2)
        self.assertEqual(self.members(claim), '13')
        self.libvirtd.remove_device(GPUS[7])
        self.wait_record(1, 2)
        self.assertEqual(self.members(self.gpus(2)), '24')
        self.assertEqual(self.members(self.gpus(2)), '57')
        self.wait_record(1, 1)
        self.libvirtd.remove_device(GPUS[0])
        done = self.agent.ctl('sync', code=1)
        self.assertIn('[device_shapes hgx]: 2 of 8 devices are missing, first %s' % GPUS[0], done.stderr)
        self.assertIn('names PCI device %s, which this host does not list' % GPUS[0], '\n'.join(self.agent.problems()))
        for address in (GPUS[7], GPUS[0]):
            self.libvirtd.plug_device(gpu(address))
        self.wait_record(0, 2)
        self.assertEqual(self.members(self.gpus(2)), '68')
        self.wait_record(0, 1)
        self.gpus(1, code=1)

    def test_guests_without_a_claim(self):
        odd, pair = str(uuid.uuid4()), str(uuid.uuid4())
        self.libvirtd.define(guest_xml('odd', memory_mib=64, uuid=odd, devices=[GPUS[0], GPUS[1], GPUS[4]]))
        self.addCleanup(self.libvirtd.delete_guests)
        self.wait_record(3, 2)
        self.assertEqual([claim['devices'] for claim in self.agent.claims(odd)], [[]])
        wait_until(lambda: any('odd' in text and GPUS[4] in text for text in self.agent.problems()), 30, 'a problem of the guest')
        self.assertIn('its devices of hgx are no partition', self.agent.log())
        for verb, words, code in (('drain', PROVIDER, 3), ('drain', GPUS[4], 3), ('who', PROVIDER, 0)):
            self.assertEqual(self.agent.ctl(verb, words, code=code).stdout, 'Guest odd needs it for its next start, but has no claim of it.\n')
        self.assertEqual(self.members(self.gpus(2)), '68')
        self.libvirtd.virsh('undefine', 'odd')
        self.libvirtd.define(guest_xml('pair', memory_mib=64, uuid=pair, devices=[GPUS[2], GPUS[0]]))
        wait_until(lambda: [self.members(claim) for claim in self.agent.claims(pair)] in (['13'], ['31']), 30, 'the claim of the guest')
        self.wait_record(0, 2)

    def test_nova_attaches_exactly_the_partition(self):
        """dbus-send calls the agent as the driver for Nova does (plugins/nova)."""
        server, late = str(uuid.uuid4()), str(uuid.uuid4())
        tree = self.placement.tree_by_name(self.agent.root())
        provider = tree[PROVIDER]['uuid']
        self.placement.place(server, {self.agent.root(): {'VCPU': 1}, provider: {'CUSTOM_HGX_GPU': 2}})
        first, again = (json.loads(self.call_placed(server).stdout) for _ in range(2))
        self.assertEqual([(self.members(claim), claim['id']) for claim in (first, again)], [('13', first['id'])] * 2)
        self.wait_record(0, 4)
        self.agent.ctl('cordon', GPUS[4])
        self.wait_record(1, 2)
        # An allocation that is older than the cordon has no partition any more.
        self.placement.set_part(provider, 'inventories', {'CUSTOM_HGX_GPU': {'total': 8}})
        self.placement.place(late, {self.agent.root(): {'VCPU': 1}, provider: {'CUSTOM_HGX_GPU': 4}})
        self.assertIn('no partition of 4', self.call_placed(late).stderr)

    def call_placed(self, server):
        return subprocess.run(['dbus-send', '--bus=' + self.bus.address, '--print-reply=literal', '--reply-timeout=30000',
                               '--dest=org.computeagent.Agent1', '/org/computeagent/Agent1', 'org.computeagent.Agent1.ClaimPlaced',
                               'string:' + server, 'array:string:CUSTOM_HGX_GPU'],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, check=False)

    def test_crash_between_claim_and_publish(self):
        for _ in range(3):
            consumer = str(uuid.uuid4())
            claim = self.gpus(4, consumer)
            self.agent.kill()
            self.agent.start('synced')
            self.wait_record(0, 4)
            self.assertEqual(self.members(self.agent.claims(consumer)[0]), self.members(claim))
            self.assertNotIn(self.members(claim), self.members(self.gpus(4)))
            self.agent.release_all()
            self.wait_record(0, 8)

    def test_a_section_that_contradicts_another(self):
        self.wait_record(0, 8)
        self.agent.stop()
        self.agent.configure({'pci': {'device_spec': json.dumps({'address': GPUS[0], 'resource_class': 'CUSTOM_ONE'})}})
        self.agent.start()
        words = '[device_shapes hgx]: %s also matches [pci] device_spec' % GPUS[0]
        wait_until(lambda: words in self.agent.ctl('status', check=False).stdout, 30, 'the words')
        self.wait_record(8, 8)
        self.gpus(1, code=1)
