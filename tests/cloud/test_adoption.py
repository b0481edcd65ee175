# SPDX-License-Identifier: LGPL-2.1-or-later
"""A cloud with running servers changes from plain Nova to the agent below it, and back, step by step.

No step changes a guest or loses an allocation. doc/nova.md describes these steps.
"""

from tests.cloud.case import FLAVOR, PLUGIN, SECONDS, CloudCase
from tests.env.scratch import wait_until

PLAIN = {'DEFAULT': {'compute_driver': 'libvirt.LibvirtDriver'}}


class TestAdoption(CloudCase):
    mode = 'observe'

    def setUp(self):
        super().setUp()
        self.agent = self.host.agent
        self.agent.stop()  # plain Nova
        self.wanted = {self.boot('vm%d' % number): (self.host, FLAVOR) for number in range(5)}
        self.guests = self.pids()

    def pids(self):
        """Returns {server: pid of its guest}."""
        pids = {}
        for server in self.wanted:
            name = self.host.libvirtd.virsh('domname', server).strip()
            path = self.host.libvirtd.folder / 'sock/qemu' / (name + '.pid')
            pids[server] = path.read_text().strip()
        return pids

    def tree(self):
        return self.cloud.placement.tree_by_name(self.agent.root())

    def set_mode(self, mode, **more):
        self.agent.configure({'agent': {'nova': mode}, **more})
        self.agent.ctl('reload')
        wait_until(lambda: self.agent.status().get('nova') == mode, SECONDS, 'mode %s' % mode)

    def set_driver(self, options):
        self.host.compute.stop()
        self.host.configure(options)
        self.host.start_compute()

    def writes(self):
        """Returns the writes to the tree of the host during two updates, as [(method, path, program)]."""
        mark = self.cloud.placement.mark()
        looks = len(self.updates())
        wait_until(lambda: len(self.updates()) >= looks + 2, SECONDS, 'nova-compute to look twice', step=0.5)
        return [(line['method'], line['path'], line['agent']) for line in self.cloud.placement.records_since(mark)
                if line['method'] != 'GET' and line['path'].startswith('/resource_providers')]

    def updates(self):
        """Returns the requests that nova-compute sends once in each period, independent of the owner of the
        tree."""
        path = '/resource_providers/%s/allocations' % self.agent.root()
        return [line for line in self.cloud.placement.records_since() if line['path'] == path]

    def step(self, name):
        """Checks the state after a step: the four sources agree, the guests are the same processes, and no
        program writes the tree."""
        with self.subTest(step=name):
            self.agree(self.wanted)
            self.assertEqual(self.pids(), self.guests)
            self.assertEqual(self.writes(), [])

    def test_there_and_back(self):
        before = self.tree()
        self.agent.start()
        self.step('observe')
        self.assertEqual(self.tree(), before)
        self.set_mode('beside')
        self.step('beside')
        self.set_driver(PLUGIN)
        self.step('beside, with the driver')
        self.set_mode('top')
        self.agent.wait_state('synced', SECONDS)
        self.step('top')
        self.wanted[self.boot('more')] = (self.host, FLAVOR)
        self.guests = self.pids()
        self.step('top, with one more server')
        for form in ('root', 'true', 'false'):
            self.reshape(self.host, form)
            self.step('top, [compute] numa_in_placement = %s' % form)
        self.set_mode('beside')
        # Nova's driver reads the tree again and writes its own traits, once.
        self.assertLessEqual({(method, path.rsplit('/')[-1]) for method, path, _ in self.writes()}, {('PUT', 'traits')})
        self.step('beside again')
        self.set_driver(PLAIN)
        self.agent.stop()
        self.assertEqual(self.pids(), self.guests)
        self.agent.start()
        self.step('plain Nova')
