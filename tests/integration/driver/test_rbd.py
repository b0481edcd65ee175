# SPDX-License-Identifier: LGPL-2.1-or-later
"""[libvirt] images_type = rbd: DISK_GB is the size of a real Ceph cluster, and equals the result of Nova's own code."""

import subprocess

from tests.env.agent import Agent
from tests.env.case import EnvCase
from tests.env.ceph import Ceph
from tests.env.scratch import wait_until

NOVA = '''
import sys
from nova.storage import rbd_utils
driver = rbd_utils.RBDDriver(pool='vms', user='nova', ceph_conf=sys.argv[1], connect_timeout=10)
print(int(driver.get_pool_info()['total'] / 2 ** 30))
'''

TORN_KEY = 'AQBQq1dn00000000000000000000000000000000=='


class TestRbd(EnvCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.ceph = Ceph(cls.scratch).start()
        cls.ceph.make_user('nova', 'vms')
        # ceph prints the key of a malformed keyring on standard error.
        keyring = cls.ceph.folder / 'torn.keyring'
        keyring.write_text('[client.torn]\n\tkey = %s\n' % TORN_KEY)
        with cls.ceph.conf.open('a') as conf:
            conf.write('[client.torn]\nkeyring = %s\n' % keyring)

    def make_agent(self, **libvirt):
        agent = Agent(self.scratch, self.placement, self.libvirtd.uri, self.bus, {
            'DEFAULT': {'update_resources_interval': -1},
            'libvirt': {'images_type': 'rbd', 'images_rbd_pool': 'vms', 'images_rbd_ceph_conf': self.ceph.conf, 'rbd_user': 'nova',
                        **libvirt}})
        self.addCleanup(self.placement.forget_providers)
        self.addCleanup(agent.stop)
        return agent

    def disk(self, agent):
        return self.placement.tree_by_name(agent.root())[self.host.name]['inventories'].get('DISK_GB', {}).get('total')

    def test_the_size_is_that_of_nova(self):
        agent = self.make_agent().start('synced')
        done = subprocess.run(['/usr/bin/python3', '-P', '-W', 'ignore', '-c', NOVA, str(self.ceph.conf)], stdout=subprocess.PIPE, text=True,
                              check=True, timeout=60)
        self.assertEqual(self.disk(agent), int(done.stdout))
        # Without the monitor the amount stays, and the status gives the reason.
        self.ceph.pause()
        self.addCleanup(self.ceph.go_on)
        wait_until(lambda: 'images_type = rbd' in self.status(agent), 60, 'the reason', step=0.5)
        self.assertIn('DISK_GB stays unchanged', self.status(agent))
        self.assertEqual(self.disk(agent), int(done.stdout))
        self.ceph.go_on()
        wait_until(lambda: 'images_type' not in self.status(agent), 60, 'the answer of the monitor', step=0.5)

    def status(self, agent):
        agent.ctl('sync', check=False)
        return agent.ctl('status', check=False).stdout

    def test_failures_do_not_stop_the_start(self):
        for options, path, words in (({'images_rbd_pool': 'gone'}, None, 'the cluster has no pool gone (images_rbd_pool)'),
                                     ({'rbd_user': 'nobody'}, None, 'client.nobody cannot connect: [errno'),
                                     ({'images_rbd_ceph_conf': '/nowhere.conf'}, None, 'ceph cannot read /nowhere.conf'),
                                     ({'rbd_user': 'torn'}, None, 'client.torn cannot connect: [errno'),
                                     ({}, '/nowhere', 'the program ceph is not installed')):
            with self.subTest(words=words):
                agent = self.make_agent(**options)
                if path:
                    agent.more_env = {'PATH': path}
                agent.start()
                wait_until(lambda agent=agent, words=words: words in self.status(agent), 60, words, step=0.5)
                self.assertIn('DISK_GB is not reported', self.status(agent))
                self.assertNotIn(TORN_KEY, self.status(agent) + agent.log())
                tree = self.placement.tree_by_name(agent.root())[self.host.name]
                self.assertIn('VCPU', tree['inventories'])
                self.assertNotIn('DISK_GB', tree['inventories'])
                agent.stop()
                self.placement.forget_providers()
