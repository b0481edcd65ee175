# SPDX-License-Identifier: LGPL-2.1-or-later
"""The hook and devices that are withheld. libvirt has no such hardware, so QEMU fails after the hook has allowed the start."""

import json
import subprocess

from tests.env.agent import build_folder
from tests.env.fakesys import Cell, Host, Pci
from tests.env.libvirtd import guest_xml
from tests.env.scratch import wait_until
from tests.integration.hook.hook_case import HookCase

A, B = '0000:41:00.0', '0000:42:00.0'


def make_host():
    return Host(cells=[Cell(0, list(range(8)), 16 << 20)], pci=[
        Pci(address, vendor=0x144d, device=0xa808, pci_class=0x010802, driver='vfio-pci', serial='S' + address[5:7]) for address in (A, B)])


class TestWithheld(HookCase):
    make_host = staticmethod(make_host)
    options = {'pci': {'device_spec': json.dumps({'vendor_id': '144d', 'resource_class': 'CUSTOM_NVME'}), 'report_in_placement': 'true'},
               'device_clean nvme': {'device_addresses': A, 'clean': 'wipe@.service'}}

    def record(self, address):
        """Returns (total, reserved, used) of the device in Placement."""
        provider = self.placement.tree_by_name(self.agent.root())['compute-1_' + address]
        used = self.placement.get('/resource_providers/%s/usages' % provider['uuid'])['usages']
        return (*(provider['inventories']['CUSTOM_NVME'][key] for key in ('total', 'reserved')), used['CUSTOM_NVME'])

    def wait_record(self, address, *expected):
        def matches():
            self.agent.ctl('sync', check=False)
            return self.record(address) == expected
        wait_until(matches, 30, '%s to be %s in Placement' % (address, expected), step=0.2)

    def prepare(self, name, guest, address):
        """Runs the hook without libvirt, so that the claim stays."""
        subprocess.run([build_folder() / 'computectl', '--config', self.agent.config, 'hook', name, 'prepare', 'begin', '-'], check=True,
                       input=guest_xml(name, uuid=guest, devices=[address]).encode(), env=self.agent.env(), stdout=subprocess.DEVNULL)

    def test_the_last_guest_starts_again(self):
        guest = self.define('again', devices=[A])
        # The agent sees the domain, and withholds its device, before the first start.
        self.wait_record(A, 1, 1, 0)
        self.assertNotIn('compute-agent', self.start('again'))
        self.wait_record(A, 1, 1, 0)
        self.assertEqual(self.agent.claims(), [])
        self.assertNotIn('compute-agent', self.start('again'))
        self.define('stranger', devices=[A])
        self.assertIn('is not clean', self.start('stranger'))
        # Placement would refuse the allocation of a device that is reserved.
        self.wait_record(A, 1, 1, 0)
        self.prepare('again', guest, A)
        self.wait_record(A, 1, 1, 1)
        self.assertEqual(self.agent.status()['n_pending_writes'], 0)

    def test_a_cordon_stops_no_guest(self):
        guest = self.define('cordoned', devices=[B])
        self.agent.ctl('cordon', B)
        self.wait_record(B, 1, 1, 0)
        self.assertNotIn('compute-agent', self.start('cordoned'))
        self.assertIn('Guest cordoned starts with %s, which is cordoned' % B, self.agent.log())
        # Placement refuses the allocation until the cordon ends.
        self.prepare('cordoned', guest, B)
        wait_until(lambda: 'Cannot report all claims' in self.agent.log(), 30, 'the refusal')
        self.assertEqual(self.record(B), (1, 1, 0))
        self.agent.ctl('uncordon', B)
        self.wait_record(B, 1, 0, 1)
