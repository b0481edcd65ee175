# SPDX-License-Identifier: LGPL-2.1-or-later
"""The server of the mount at instances_path is away. DISK_GB stays, the agent reports the path, and devices are still polled."""

from tests.env.fakesys import Gpu, Host, m10_types, simple_host
from tests.env.hung_mount import HungMount
from tests.env.scratch import wait_until
from tests.integration.driver.test_vanish import GPU, GPU_NAME, HostCase


class TestHungMount(HostCase):
    @staticmethod
    def make_host():
        return Host(cells=simple_host().cells, gpus=[Gpu(GPU, types=m10_types())])

    def test_devices_are_polled_while_instances_path_hangs(self):
        path = self.scratch.folder('instances')
        self.begin(DEFAULT={'instances_path': path, 'compute_driver': self.driver, 'update_resources_interval': -1})
        disk = self.record(self.host.name, 'DISK_GB')
        self.assertGreater(disk[0], 0)
        mount = HungMount(self.scratch, path, self.libvirtd.enter('-m'))
        self.cycles()
        self.assertIn('instances_path: the file system of %s does not answer; DISK_GB stays unchanged' % path, self.status())
        self.libvirtd.remove_device(GPU)
        self.wait_record(GPU_NAME, 'VGPU', (4, 4))
        self.assertEqual(self.record(self.host.name, 'DISK_GB'), disk)
        self.assertNotIn('hypervisor', self.status())
        self.agent.claim('VCPU=1,MEMORY_MB=64')
        mount.close()

        def answers():
            self.cycles(1)
            return 'does not answer' not in self.status()
        wait_until(answers, 30, 'the file system to answer')
        self.assertEqual(self.record(self.host.name, 'DISK_GB'), disk)


class TestHungMountLinux(TestHungMount):
    driver = 'linux'
