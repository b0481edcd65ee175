# SPDX-License-Identifier: LGPL-2.1-or-later
"""Servers use volumes of Cinder. The agent below nova-compute counts the same amounts as Placement, and no GiB of a
volume."""

import xml.etree.ElementTree as ElementTree

from tests.cloud.case import FLAVOR, CloudCase
from tests.env.cinder import CloudWithVolumes
from tests.env.scratch import wait_until

# The code of the guests. It releases each device that QEMU wants to remove, through QEMU's ACPI registers of PCI hotplug.
# Without it QEMU would wait for an operating system. The code is: mov dx,0xae04; in eax,dx; add dl,4; out dx,eax; sti;
# hlt; and again.
CODE = bytes.fromhex('ba04ae 66ed 80c204 66ef fb f4 ebf2')
# Glance rejects a boot sector without partitions.
PARTITION = bytes.fromhex('80000200 83002000 01000000 ff070000')
LETS_GO = CODE.ljust(446, b'\0') + PARTITION.ljust(64, b'\0') + b'\x55\xaa'


class TestVolumes(CloudCase):
    cloud_class = CloudWithVolumes

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.image = cls.cloud.upload('lets-go', LETS_GO.ljust(1 << 20, b'\0'))
        cls.cloud.flavor('disk', FLAVOR['VCPU'], FLAVOR['MEMORY_MB'], 1)

    def volumes(self):
        """Returns {id: volume} of all volumes of Cinder."""
        return {volume['id']: volume for volume in self.cloud.of_cinder('GET', '/volumes/detail?all_tenants=1')['volumes']}

    def files(self):
        return {path.name for path in self.cloud.volumes.iterdir()}

    def empty(self):
        """Deletes the remaining volumes too. A volume that was made for a server is deleted with the server."""
        super().empty()
        for volume, told in self.volumes().items():
            self.cloud.delete_volume(volume, asked=told['status'] == 'deleting')
        self.assertEqual(self.files(), set())

    def boot_from(self, flavor, kind, source, **more):
        """Boots a server whose root is a volume: an existing one, or a new one from an image."""
        return self.cloud.boot('vm', flavor, imageRef='', block_device_mapping_v2=[
            {'boot_index': 0, 'source_type': kind, 'uuid': source, 'destination_type': 'volume', **more}])

    def disks(self, server):
        """Returns the paths of the disks of the running guest."""
        domain = ElementTree.fromstring(self.host.libvirtd.virsh('dumpxml', server))
        return [source.get('file') for source in domain.findall('devices/disk/source')]

    def goes(self, server):
        """Checks that a server whose only disk is a volume has no disk of the host, also after a reboot with a new
        domain."""
        volume, = self.volumes()
        for act in (lambda: None, lambda: self.cloud.act(server, 'reboot', {'type': 'HARD'}, 'ACTIVE')):
            act()
            self.agree({server: (self.host, FLAVOR)})
            self.assertEqual(self.disks(server), [str(self.cloud.volumes / volume)])
        self.cloud.delete(server)
        self.agree({})
        return volume

    def test_flavor_without_disk(self):
        volume = self.goes(self.boot_from('small', 'image', self.image, volume_size=1, delete_on_termination=True))
        self.cloud.wait_volume(volume, None)

    def test_flavor_with_disk(self):
        volume = self.goes(self.boot_from('disk', 'image', self.image, volume_size=1, delete_on_termination=True))
        self.cloud.wait_volume(volume, None)

    def test_volume_that_was_there(self):
        volume = self.cloud.create_volume('root', image=self.image)
        self.assertEqual(self.goes(self.boot_from('disk', 'volume', volume)), volume)
        self.cloud.wait_volume(volume, 'available')

    def attach_and_detach(self, server, amounts):
        self.agree({server: (self.host, amounts)})
        before, volume = self.disks(server), self.cloud.create_volume('more', 2)
        self.cloud.attach(server, volume)
        self.assertEqual(self.disks(server), [*before, str(self.cloud.volumes / volume)])
        self.agree({server: (self.host, amounts)})
        self.cloud.act(server, 'reboot', {'type': 'HARD'}, 'ACTIVE')
        self.agree({server: (self.host, amounts)})
        self.cloud.detach(server, volume)
        wait_until(lambda: self.disks(server) == before, 30, 'the volume to leave the guest', step=0.2)
        self.agree({server: (self.host, amounts)})

    def test_attached_to_a_volume_backed_server(self):
        server = self.boot_from('disk', 'image', self.image, volume_size=1, delete_on_termination=True)
        self.attach_and_detach(server, FLAVOR)

    def test_attached_to_a_server_with_a_disk(self):
        server = self.cloud.boot('vm', 'disk', imageRef=self.image)
        self.attach_and_detach(server, {**FLAVOR, 'DISK_GB': 1})
