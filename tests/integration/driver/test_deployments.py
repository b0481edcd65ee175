# SPDX-License-Identifier: LGPL-2.1-or-later
"""The agent uses a whole nova.conf of a deployment tool: it starts with few warnings, and publishes the same as Nova's driver.

Keystone, Placement and libvirtd are real. Nova's driver (Debian's python3-nova) reads the same file.
"""

from tests.env.agent import Agent
from tests.env.case import EnvCase
from tests.env.fakesys import simple_host
from tests.env.keystone import AGENT_PASSWORD, Keystone
from tests.env.libvirtd import Libvirtd
from tests.env.placement import Placement
from tests.env.bus import Bus
from tests.integration.driver import deployments
from tests.integration.driver.test_nova_agrees import NovaCase, inventories, standard_traits, TRAIT_DIFFERENCES

# The defaults of these options differ between versions of Nova.
RATIOS = '''
[DEFAULT]
initial_cpu_allocation_ratio = 4.0
initial_ram_allocation_ratio = 1.0
initial_disk_allocation_ratio = 1.0
'''
# Traits that the agent's tracker adds, as Nova's resource tracker does (facts A9).
ADDED = {'COMPUTE_NODE', 'OWNER_NOVA'}
WARNINGS_MAX = 3


class TestDeployments(NovaCase, EnvCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.keystone = Keystone(cls.scratch).start()
        cls.placement = Placement(cls.scratch, keystone=cls.keystone).start()
        cls.keystone.set_endpoint(cls.placement.endpoint)

    # Runs the agent and Nova's driver with the file of a deployment tool, and compares their providers.
    def check(self, name):
        libvirtd = Libvirtd(simple_host(cells=1, name='pasted'), self.scratch).start()
        self.addCleanup(self.placement.forget_providers)
        agent = Agent(self.scratch, uri=libvirtd.uri, bus=Bus(self.scratch).start())
        self.addCleanup(agent.stop)
        folder = self.scratch.folder('nova')
        (folder / 'instances').mkdir()
        agent.config.write_text(deployments.render(name, url=self.keystone.url, password=AGENT_PASSWORD.replace('$', '$$'),
                                                   uri=libvirtd.uri, folder=folder) + RATIOS)
        own = agent.config.with_name(agent.config.name + '.d')
        own.mkdir()
        (own / 'own.conf').write_text('[agent]\nstate_dir = %s\nstart_jitter_sec = 0\n' % agent.state)
        nova, = self.nova(libvirtd, [str(agent.config)])
        self.assertNotIn('refused', nova)
        agent.start()
        agent.wait_state('synced', 60)
        warnings = [line for line in agent.log().splitlines() if line.startswith('warning:')]
        self.assertLessEqual(len(warnings), WARNINGS_MAX, warnings)
        ours = self.placement.tree_by_name(agent.root())
        self.assertEqual(set(ours), set(nova['tree']))
        for provider, theirs in nova['tree'].items():
            self.assertEqual(inventories(ours[provider]), inventories(theirs))
            different = standard_traits(ours[provider]) ^ standard_traits(theirs)
            self.assertEqual(different - set(TRAIT_DIFFERENCES) - ADDED, set())

    def test_kolla_ansible(self):
        self.check('kolla-ansible')

    def test_openstack_ansible(self):
        self.check('openstack-ansible')

    def test_charm(self):
        self.check('charm')

    def test_openstack_helm(self):
        self.check('openstack-helm')

    def test_tripleo(self):
        self.check('tripleo')
