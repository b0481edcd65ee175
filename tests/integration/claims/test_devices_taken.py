# SPDX-License-Identifier: LGPL-2.1-or-later
"""A device belongs to one guest. A claim never gets a device of a guest, and "computectl explain" says so before.

Guests claim when they start here ([hook] enabled), so a guest that is off has no claim, and only its domain shows its devices. The
tests use a real libvirtd and no Placement.
"""

import concurrent.futures
import contextlib
import json
import sqlite3

from tests.env.agent import Agent
from tests.env.case import EnvCase
from tests.env.fakesys import Gpu, MdevType, simple_host, sriov
from tests.env.libvirtd import guest_xml, hostdev_xml
from tests.env.scratch import wait_until

MDEV_A, MDEV_B = '11111111-2222-4333-8444-555555555501', '11111111-2222-4333-8444-555555555502'
GPU_A, GPU_B = 'pci_0000_41_00_0', 'pci_0000_81_00_0'
VFS = ['0000:10:01.0', '0000:10:01.1']
VF_CLASS = 'CUSTOM_PCI_8086_154C'


def host():
    """Returns a host with two GPUs of one existing mdev each, and a network card of two virtual functions."""
    made = simple_host(cells=2)
    for bus, mdev in (('41', MDEV_A), ('81', MDEV_B)):
        made.gpus.append(Gpu('0000:%s:00.0' % bus, types={
            'nvidia-35': MdevType('GRID M10-0B', available=0, existing=[mdev])}))
    made.pci = sriov('0000:10:00.0', 2)
    return made


class TakenCase(EnvCase):
    shared = ('scratch', 'libvirtd', 'bus')
    make_host = staticmethod(host)
    hook = True

    def setUp(self):
        self.addCleanup(self.libvirtd.delete_guests)

    def start_agent(self, **default):
        """Starts an agent without a timer, unless the options set one."""
        self.agent = Agent(self.scratch, bus=self.bus, uri=self.libvirtd.uri, options={
            'DEFAULT': {'update_resources_interval': 3600, **default},
            'hook': {'enabled': self.hook},
            'pci': {'device_spec': '{"vendor_id": "8086", "product_id": "154c"}',
                    'report_in_placement': 'true'}})
        self.addCleanup(self.agent.stop)
        self.agent.start('standalone')
        wait_until(lambda: self.agent.status()['n_providers'] == 4, 20, 'four providers')

    def claim(self, resources):
        """Returns the claim's devices, or None if the claim was rejected."""
        done = self.agent.claim(resources, check=False)
        self.words = done.stderr
        return json.loads(done.stdout)['devices'] if done.returncode == 0 else None

    def fits(self, resources):
        done = self.agent.ctl('explain', '--resources', resources, '--json=short', check=False)
        return json.loads(done.stdout)['fits']


class TestFit(TakenCase):
    def test_a_claim_gets_the_gpu_that_no_guest_has(self):
        self.libvirtd.define(guest_xml('off', devices=[MDEV_A]))
        self.start_agent()
        self.assertTrue(self.fits('VGPU=1'))
        self.assertFalse(self.fits('VGPU=2'))
        self.assertEqual([one['mdev'] for one in self.claim('VGPU=1')], [MDEV_B])
        self.assertFalse(self.fits('VGPU=1'))
        self.assertIsNone(self.claim('VGPU=1'))
        self.assertIn('guests have 1', self.words)

    def test_a_claim_gets_the_function_that_no_guest_has(self):
        self.libvirtd.define(guest_xml('off', devices=[VFS[0]]))
        self.start_agent()
        self.assertTrue(self.fits(VF_CLASS + '=1'))
        self.assertFalse(self.fits(VF_CLASS + '=2'))
        self.assertEqual([one['address'] for one in self.claim(VF_CLASS + '=1')], VFS[1:])
        self.assertFalse(self.fits(VF_CLASS + '=1'))
        self.assertIsNone(self.claim(VF_CLASS + '=1'))


class TestEdits(TakenCase):
    """virsh edits guests that are off without an event, and the agent has no timer."""

    def setUp(self):
        super().setUp()
        self.libvirtd.define(guest_xml('off', memory_mib=64, vcpus=2, devices=[MDEV_B]))
        self.start_agent()

    def attach(self, device, verb='attach-device'):
        path = self.scratch.folder('edit') / 'device.xml'
        path.write_text(hostdev_xml(device))
        self.libvirtd.virsh(verb, 'off', path, '--config')

    def domain(self):
        return next(one for one in self.agent.ctl_json('discover')['domains'] if one['name'] == 'off')

    def test_explain_looks_as_a_claim_does(self):
        self.assertTrue(self.fits('VGPU=1'))
        self.attach(MDEV_A)
        self.assertFalse(self.fits('VGPU=1'))

    def test_an_mdev_that_was_attached_is_not_promised(self):
        self.attach(MDEV_A)
        self.assertIsNone(self.claim('VGPU=1'))
        self.assertIn('guests have 1', self.words)
        self.assertFalse(self.fits('VGPU=1'))

    def test_an_mdev_that_was_detached_is_promised(self):
        self.assertTrue(self.claim('VGPU=1'))
        self.assertIsNone(self.claim('VGPU=1'))
        self.attach(MDEV_B, 'detach-device')
        self.assertEqual([one['mdev'] for one in self.claim('VGPU=1')], [MDEV_B])

    def test_a_function_that_was_attached_is_not_promised(self):
        self.attach(VFS[0])
        self.assertEqual([one['address'] for one in self.claim(VF_CLASS + '=1')], VFS[1:])
        self.assertIsNone(self.claim(VF_CLASS + '=1'))

    def test_claims_at_once_share_a_look(self):
        self.attach(VFS[0])
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            got = list(pool.map(lambda _: self.claim(VF_CLASS + '=1'), range(6)))
        self.assertEqual([one[0]['address'] for one in got if one], VFS[1:])

    def edit_all(self):
        """Changes CPUs, memory and their pins, but no device."""
        for words in ('vcpupin off 0 1 --config', 'setvcpus off 3 --maximum --config',
                      'setmaxmem off 131072 --config',
                      'numatune off --mode strict --nodeset 1 --config'):
            self.libvirtd.virsh(*words.split())

    def seen(self):
        domain = self.domain()
        return (domain.get('pins'), domain['vcpus'], domain['memory_kib'], domain.get('memory_cells'))

    def expect_edited(self, seen):
        self.assertEqual(seen, ([{'vcpu': 0, 'cpus': '1'}], 3, 131072, '1'))

    def test_a_sync_sees_every_edit(self):
        self.edit_all()
        self.attach(MDEV_A)
        self.attach(VFS[0])
        self.agent.ctl('sync')
        self.expect_edited(self.seen())
        self.assertEqual(self.domain()['mdevs'], [MDEV_B, MDEV_A])
        self.assertEqual(self.domain()['pci_addresses'], VFS[:1])

    def test_polls_come_round_to_every_edit(self):
        """Each poll reads 4 of the 20 guests that are off again."""
        for number in range(19):
            self.libvirtd.define(guest_xml('more%d' % number))
        self.agent.ctl('sync')
        self.edit_all()
        before = self.seen()
        for number in range(8):
            polls = self.agent.status()['last_poll_usec']
            self.libvirtd.define(guest_xml('another%d' % number))
            wait_until(lambda: self.agent.status()['last_poll_usec'] > polls, 10, 'a poll')
        self.assertEqual(before[1:3], (2, 65536))
        self.expect_edited(self.seen())

    def test_a_device_is_not_promised_while_libvirt_is_away(self):
        self.libvirtd.stop()
        self.addCleanup(self.libvirtd.start)
        self.assertIsNone(self.claim('VGPU=1'))
        self.assertIn('Cannot read the devices of guests', self.words)
        self.assertIsNotNone(self.claim('VCPU=1'))


class TestAdoption(TakenCase):
    hook = False

    def test_a_guest_that_cannot_be_adopted_stops_no_other(self):
        """A trigger in the database rejects one claim, as the store can reject a single claim."""
        ids = ['00000000-0000-4000-8000-00000000000%d' % i for i in range(3)]
        self.start_agent()
        with contextlib.closing(sqlite3.connect(self.agent.state / 'claim.sqlite')) as database:
            database.execute("CREATE TRIGGER refuse BEFORE INSERT ON claims WHEN NEW.instance_uuid = '%s'"
                             " BEGIN SELECT RAISE(ABORT, 'not this one'); END" % ids[1])
        for number, consumer in enumerate(ids):
            self.libvirtd.define(guest_xml('guest%d' % number, uuid=consumer))
        wait_until(lambda: {one['consumer'] for one in self.agent.claims()}
                   == {ids[0], ids[2]}, 10, 'claims of the others')
        self.assertIn('guest1', ' '.join(self.agent.problems()))
