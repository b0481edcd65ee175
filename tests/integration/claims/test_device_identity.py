# SPDX-License-Identifier: LGPL-2.1-or-later
"""The identity of a device is more than its address. A different device at the address of a claimed one is withheld and reported.

Placement is real, and so is libvirtd, whose devices are exchanged.
"""

import contextlib
import json
import sqlite3
import time
import uuid

from tests.env.agent import Agent
from tests.env.case import EnvCase
from tests.env.fakesys import Cell, Gpu, Host, MdevType, Pci, sriov
from tests.env.libvirtd import guest_xml
from tests.env.scratch import wait_until

CARD, OTHER = '0000:41:00.0', '0000:42:00.0'
PROVIDER, OTHER_PROVIDER = 'compute-1_0000:41:00.0', 'compute-1_0000:42:00.0'
SPEC = json.dumps({'vendor_id': '10de', 'product_id': '20b0', 'resource_class': 'CUSTOM_A100'})


def card(address, serial, device=0x20b0):
    return Pci(address, vendor=0x10de, device=device, pci_class=0x030200, driver='vfio-pci', serial=serial)


def nvme(address, serial='S5ABC'):
    return Pci(address, vendor=0x144d, device=0xa808, pci_class=0x010802, driver='nvme', serial=serial)


class IdentityCase(EnvCase):
    driver = 'libvirt'
    make_host = staticmethod(lambda: Host(cells=[Cell(0, list(range(8)), 16 << 20)], pci=[card(CARD, 'A1')]))
    options = {'pci': {'device_spec': SPEC, 'report_in_placement': 'true'}}

    def setUp(self):
        within = self.libvirtd.enter('-m', '-u', '-p') if self.driver == 'linux' else ()
        uri = self.libvirtd.uri if self.driver == 'libvirt' else None
        self.agent = Agent(self.scratch, self.placement, uri, self.bus, {
            'DEFAULT': {'compute_driver': self.driver}, 'agent': {'device_hold_sec': 1, 'device_settle_sec': 1},
            **self.options}, within)
        self.agent.start('synced')
        self.addCleanup(self.agent.stop)

    def claim(self, resources, consumer=None, code=0):
        """Returns the claim, or None if code is not 0."""
        done = self.agent.ctl('claim', '--consumer', consumer or str(uuid.uuid4()), '--resources', 'VCPU=1', '--group',
                              '_g:' + resources, '--json=short', code=code)
        return json.loads(done.stdout) if code == 0 else None

    def exchange(self, *devices):
        """Replaces the device at CARD by other devices, there or beside it. The linux driver gets no event here, so it polls after
        the removal."""
        self.libvirtd.remove_device(CARD)
        if self.driver == 'linux' and self.agent.running():
            self.agent.ctl('sync')
        for device in devices:
            self.libvirtd.plug_device(device)

    def offers(self):
        """Returns {name: (total, reserved)} of the providers of devices."""
        tree = self.placement.tree_by_name(self.agent.root())
        return {name: (record['total'], record['reserved']) for name, provider in tree.items()
                for resource_class, record in provider['inventories'].items() if resource_class.startswith(('CUSTOM_', 'VGPU'))}

    def wait_offers(self, expected):
        def settled():
            self.agent.ctl('sync')
            return self.offers() == expected
        wait_until(settled, 30, 'Placement to have %s' % expected, step=0.5)

    def assert_named(self, *words):
        """Checks that status, problems and journal name the devices."""
        status = self.agent.ctl('status', check=False).stdout
        problems = self.agent.ctl('claims', '--problems', check=False).stdout
        for word in words:
            self.assertIn(word, problems)
        self.assertIn('another device is at its address: ' + words[0], status)
        self.assertIn('Another device (%s) is at the address of' % words[0], self.agent.log())
        self.assertIn('Claims and guests disagree: another device is at', self.agent.log())


class TestWholeDevice(IdentityCase):
    """The only GPU belongs to a claim and is exchanged."""

    def test_exchanged_while_the_agent_is_off(self):
        consumer = str(uuid.uuid4())
        claim = self.claim('CUSTOM_A100=1', consumer)
        self.assertEqual(claim['devices'][0]['identity'], '10de:20b0 A1')
        if self.driver == 'libvirt':
            self.libvirtd.define(guest_xml('g1', memory_mib=64, uuid=consumer, devices=[CARD]))
        self.agent.stop()
        self.exchange(nvme(CARD), card(OTHER, 'B2'))
        self.agent.start('synced')
        self.wait_offers({PROVIDER: (1, 1), OTHER_PROVIDER: (1, 0)})
        # libvirt does not report the serial number of an NVMe controller, and the agent cannot read the /sys of that host.
        self.assert_named('144d:a808 S5ABC' if self.driver == 'linux' else '144d:a808', CARD, '10de:20b0 A1')
        self.assertEqual(self.claim('CUSTOM_A100=1')['devices'][0]['address'], OTHER)
        self.claim('CUSTOM_A100=1', code=1)
        self.assertEqual(self.agent.claims(consumer)[0]['devices'][0]['identity'], '10de:20b0 A1')
        # The first device is in its place again.
        self.exchange(card(CARD, 'A1'))
        self.wait_offers({PROVIDER: (1, 0), OTHER_PROVIDER: (1, 0)})
        self.agent.ctl('audit', check=False)
        self.assertEqual(self.agent.problems(), [])

    def test_same_model_with_another_serial_number(self):
        claim = self.claim('CUSTOM_A100=1')
        self.exchange(card(CARD, 'C3'))
        self.wait_offers({PROVIDER: (1, 1)})
        self.assert_named('10de:20b0 C3', CARD, '10de:20b0 A1')
        # Without the claim it is accepted as a new device.
        self.agent.ctl('release', claim['id'])
        self.wait_offers({PROVIDER: (1, 0)})
        self.assertEqual(self.claim('CUSTOM_A100=1')['devices'][0]['identity'], '10de:20b0 C3')

    def test_stays_withheld_while_claims_cannot_be_read(self):
        self.claim('CUSTOM_A100=1')
        self.exchange(card(CARD, 'C3'))
        self.wait_offers({PROVIDER: (1, 1)})
        self.agent.stop()
        self.set_version(99)
        self.agent.start('synced')
        # This lasts longer than device_hold_sec, after which a returned device is offered.
        for _ in range(4):
            time.sleep(1)
            self.agent.ctl('sync')
        self.assertIn('this program supports versions up to', self.agent.log())
        self.assertEqual(self.offers(), {PROVIDER: (1, 1)})
        self.agent.stop()
        self.set_version(9)
        self.agent.start('synced')
        self.exchange(card(CARD, 'A1'))
        self.wait_offers({PROVIDER: (1, 0)})

    def set_version(self, version):
        """Sets the version of the claim database."""
        with contextlib.closing(sqlite3.connect(self.agent.state / 'claim.sqlite')) as database:
            database.execute('UPDATE versions SET version = %d' % version)
            database.commit()

    def test_device_without_a_claim_is_replaced(self):
        self.exchange(card(CARD, 'C3'))
        self.wait_offers({PROVIDER: (1, 0)})
        self.assertEqual(self.agent.problems(), [])
        self.assertNotIn('Another device', self.agent.log())

    def test_claim_gets_its_missing_identity_once(self):
        claim = self.claim('CUSTOM_A100=1')
        for before in '', '10de:20b0':  # the second one is of a device whose serial number could not be read
            self.agent.stop()
            with sqlite3.connect(self.agent.state / 'claim.sqlite') as database:
                database.execute('UPDATE claim_devices SET identity = ?', (before,))
            database.close()
            self.agent.start('synced')
            wait_until(lambda: self.agent.claims(claim['consumer'])[0]['devices'][0]['identity'] == '10de:20b0 A1', 30,
                       'the identity to be recorded')
        self.exchange(card(CARD, 'C3'))
        self.wait_offers({PROVIDER: (1, 1)})
        self.assertEqual(self.agent.claims(claim['consumer'])[0]['devices'][0]['identity'], '10de:20b0 A1')


class TestWholeDeviceOnLinux(TestWholeDevice):
    driver = 'linux'


class TestClassByModel(IdentityCase):
    """Without resource_class in device_spec, the class follows from the model."""

    options = {'pci': {'device_spec': json.dumps({'vendor_id': '10de'}), 'report_in_placement': 'true'}}
    FORMER, NEW = 'CUSTOM_PCI_10DE_20B0', 'CUSTOM_PCI_10DE_20B1'

    def wait_classes(self, expected):
        """Waits until the provider has these classes: {class: (total, reserved)}."""
        def classes():
            self.agent.ctl('sync')
            records = self.placement.tree_by_name(self.agent.root())[PROVIDER]['inventories']
            return {name: (record['total'], record['reserved']) for name, record in records.items()}
        wait_until(lambda: classes() == expected, 30, 'Placement to have %s' % expected, step=0.5)

    def test_another_model_replaces_a_free_card(self):
        self.exchange(card(CARD, 'B2', 0x20b1))
        self.wait_classes({self.NEW: (1, 0)})
        self.assertEqual(self.claim(self.NEW + '=1')['devices'][0]['identity'], '10de:20b1 B2')
        self.assertNotIn('reshape', self.agent.ctl('status').stdout)

    def test_another_model_replaces_a_claimed_card(self):
        consumer = str(uuid.uuid4())
        claim = self.claim(self.FORMER + '=1', consumer)
        self.agent.stop()
        self.exchange(card(CARD, 'B2', 0x20b1))
        # The VCPU of the claim moves to a cell, and its card does not move.
        self.agent.configure({'compute': {'numa_in_placement': 'true'}})
        self.agent.start('synced')
        self.wait_classes({self.FORMER: (1, 1)})
        self.assert_named('10de:20b1 B2', CARD, '10de:20b0 A1')
        tree = self.placement.tree_by_name(self.agent.root())
        self.assertEqual(self.placement.held(consumer), {
            tree[PROVIDER]['uuid']: {self.FORMER: 1}, tree['compute-1_NUMA0']['uuid']: {'VCPU': 1}})
        self.assertNotIn('reshape', self.agent.ctl('status', check=False).stdout)
        # Without the claim, the new card is offered.
        self.agent.ctl('release', claim['id'])
        self.wait_classes({self.NEW: (1, 0)})


class TestGpu(IdentityCase):
    """The parent of a claimed mdev is exchanged. The agent must create no mdev on the new one."""

    make_host = staticmethod(lambda: Host(cells=[Cell(0, list(range(8)), 16 << 20)], gpus=[TestGpu.gpu('A1')]))
    options = {}

    @staticmethod
    def gpu(serial):
        return Gpu(CARD, serial=serial, types={'nvidia-35': MdevType('GRID M10-0B', available=4)})

    def test_no_more_of_another_gpu(self):
        claim = self.claim('VGPU=1')
        self.assertEqual(claim['devices'][0]['identity'], '10de:13bd A1')
        self.exchange(self.gpu('B2'))
        self.wait_offers({'compute-1_pci_0000_41_00_0': (4, 4)})
        self.assert_named('10de:13bd B2', CARD, '10de:13bd A1')
        self.claim('VGPU=1', code=1)


class TestVirtualFunction(IdentityCase):
    """A virtual function has the serial number of its card."""

    options = {'pci': {'device_spec': json.dumps({'vendor_id': '8086', 'product_id': '154c', 'resource_class': 'CUSTOM_VF'}),
                       'report_in_placement': 'true'}}

    @staticmethod
    def make_host():
        made = sriov(CARD, 2)
        made[0].serial = 'PF1'
        return Host(cells=[Cell(0, list(range(8)), 16 << 20)], pci=made)

    def test_identity_of_a_function(self):
        self.assertEqual(self.claim('CUSTOM_VF=1')['devices'][0]['identity'], '8086:154c PF1')
