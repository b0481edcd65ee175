# SPDX-License-Identifier: LGPL-2.1-or-later
"""The provider and the device of each group of a claim. The caller names them, Placement has them, or the agent finds them."""

import json
import uuid

from tests.env.hosts import nodedev_name, recorded_host
from tests.env.scratch import wait_until
from tests.integration.claims.test_placement_claims import PlacementClaimCase

GPUS = ['0000:41:00.0', '0000:81:00.0']
GPU_CLASS = 'CUSTOM_PCI_10DE_1EB8'


class TestMappings(PlacementClaimCase):
    """Neutron's two NICs and two GPUs, each of them a provider."""

    @classmethod
    def make_agent(cls, name, **kwargs):
        agent = super().make_agent(name, **kwargs)
        agent.record(recorded_host(name, devices=[
            {'name': nodedev_name(address), 'address': address, 'vendor_id': 0x10de, 'product_id': 0x1eb8} for address in GPUS]))
        agent.configure({'pci': {'report_in_placement': True, 'device_spec': json.dumps({'vendor_id': '10de'})}})
        return agent

    def setUp(self):
        super().setUp()
        tree = self.placement.tree_by_name(self.root)
        self.gpus = [tree['one_' + address.upper()]['uuid'] for address in GPUS]

    def claim_groups(self, consumer, provider_a, provider_b, resource_class, *more):
        """Returns a claim with one unit of the class for each of two groups, with their mappings."""
        return self.claim('VCPU=1', consumer, '--group', '_A:%s=1' % resource_class, '--group',
                          '_B:%s=1' % resource_class, '--mapping', '_A=' + provider_a,
                          '--mapping', '_B=' + provider_b, *more)

    def test_of_a_scheduler_told_by_the_caller(self):
        """The amounts are equal, so only the caller can distinguish the groups."""
        for a, b in (self.nics, self.nics[::-1]):
            consumer = str(uuid.uuid4())
            self.place(consumer, {self.root: {'VCPU': 1}, a: {'CUSTOM_BW': 1}, b: {'CUSTOM_BW': 1}})
            claim = self.claim_groups(consumer, a, b, 'CUSTOM_BW')
            self.assertEqual(claim['mappings'], {'': [self.root], '_A': [a], '_B': [b]})
            shown = self.agent.ctl_json('show', claim['id'])
            self.assertEqual(shown['mappings'], claim['mappings'])
            text = self.agent.ctl('show', claim['id']).stdout
            name = 'one_eth%d' % self.nics.index(b)
            self.assertRegex(text, r'GROUP +PROVIDER +DEVICE\n(.*\n)?_B +%s +-\n' % name)

    def test_one_of_two_is_told(self):
        """The other group gets the remaining provider."""
        for a, b in (self.nics, self.nics[::-1]):
            consumer = str(uuid.uuid4())
            self.place(consumer, {self.root: {'VCPU': 1}, a: {'CUSTOM_BW': 1}, b: {'CUSTOM_BW': 1}})
            claim = self.claim('VCPU=1', consumer, '--group', '_A:CUSTOM_BW=1', '--group',
                               '_B:CUSTOM_BW=1', '--mapping', '_A=' + a)
            self.assertEqual(claim['mappings'], {'': [self.root], '_A': [a], '_B': [b]})
            self.assertNotIn('of consumer %s follow from the amounts' % consumer, self.agent.log())

    def test_devices_follow_the_groups(self):
        for a, b in ((0, 1), (1, 0)):
            consumer = str(uuid.uuid4())
            self.place(consumer, {self.root: {'VCPU': 1}, **{gpu: {GPU_CLASS: 1}
                                                             for gpu in self.gpus}})
            claim = self.claim_groups(consumer, self.gpus[a], self.gpus[b], GPU_CLASS)
            self.assertEqual({item['group']: (item['provider'], item['address'])
                              for item in claim['devices']},
                             {'_A': (self.gpus[a], GPUS[a]), '_B': (self.gpus[b], GPUS[b])})
            text = self.agent.ctl('show', claim['id']).stdout
            self.assertRegex(text, r'_A +one_%s +%s\n' % (GPUS[a].upper(), nodedev_name(GPUS[a])))
            self.agent.ctl('release', claim['id'], '--allocations')
            self.agent.ctl('sync')

    def test_a_mapping_to_another_provider_than_placed_is_refused(self):
        consumer = str(uuid.uuid4())
        self.place(consumer, {self.root: {'VCPU': 1}, self.nics[0]: {'CUSTOM_BW': 1}})
        self.refused('VCPU=1', consumer, '_A', '--group', '_A:CUSTOM_BW=1', '--mapping',
                     '_A=' + self.nics[1])
        self.assertEqual(self.agent.claims(), [])
        self.assertEqual(self.held(consumer), {self.root: {'VCPU': 1},
                                               self.nics[0]: {'CUSTOM_BW': 1}})

    def test_an_unplaced_group_goes_to_its_mapped_provider(self):
        for a, b in (self.nics, self.nics[::-1]):
            consumer, mark = str(uuid.uuid4()), self.placement.mark()
            claim = self.claim_groups(consumer, a, b, 'CUSTOM_BW')
            self.assertEqual(claim['mappings'], {'': [self.root], '_A': [a], '_B': [b]})
            self.assertEqual(self.held(consumer), {
                self.root: {'VCPU': 1}, a: {'CUSTOM_BW': 1}, b: {'CUSTOM_BW': 1}})
            put = [record for record in self.placement.records_since(mark)
                   if record['method'] == 'PUT']
            self.assertEqual([json.loads(record['body'])['mappings'] for record in put],
                             [claim['mappings']])
        consumer = str(uuid.uuid4())
        self.refused('VCPU=1', consumer, 'not the provider that the group is mapped to', '--group', '_A:CUSTOM_BW=1', '--mapping',
                     '_A=' + self.root)
        self.assert_nothing_left(consumer)

    def test_a_mapping_of_an_unknown_group_is_refused(self):
        """Without its mapping, the group could get the other provider."""
        consumer = str(uuid.uuid4())
        done = self.call('Claim', 'sa(sa{st}asas)a{sv}', consumer, *'1 _A 1 CUSTOM_BW 1 0 0 1 mappings a{sas} 1 _a 1'.split(),
                         self.nics[1])
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn('mappings: the request has no group "_a"', done.stderr)
        self.assert_nothing_left(consumer)

    def test_while_placement_is_away(self):
        for a, b in (self.nics, self.nics[::-1]):
            consumer = str(uuid.uuid4())
            with self.proxy.refusing():
                claim = self.claim_groups(consumer, a, b, 'CUSTOM_BW')
            self.assertEqual(claim['mappings'], {'': [self.root], '_A': [a], '_B': [b]})
            self.agent.ctl('sync')
            wait_until(lambda: set(self.held(consumer)) == {self.root, a, b}, 20, 'the allocations')

    def test_told_by_nobody(self):
        """Different amounts distinguish the groups. With equal amounts the agent chooses and logs this."""
        consumer = str(uuid.uuid4())
        self.place(consumer, {self.root: {'VCPU': 1}, self.nics[0]: {'CUSTOM_BW': 2},
                              self.nics[1]: {'CUSTOM_BW': 1}})
        claim = self.claim('VCPU=1', consumer, '--group', '_A:CUSTOM_BW=1', '--group',
                           '_B:CUSTOM_BW=2')
        self.assertEqual(claim['mappings'], {'': [self.root], '_A': [self.nics[1]],
                                             '_B': [self.nics[0]]})
        self.assertNotIn('might be wrong', self.agent.log())
        consumer = str(uuid.uuid4())
        self.place(consumer, {self.root: {'VCPU': 1}, **{nic: {'CUSTOM_BW': 1}
                                                         for nic in self.nics}})
        self.claim('VCPU=1', consumer, '--group', '_A:CUSTOM_BW=1', '--group', '_B:CUSTOM_BW=1')
        self.assertIn('has the providers of its groups from the amounts alone. They might be wrong for consumer %s' % consumer,
                      self.agent.log())

    def test_a_provider_by_its_name(self):
        for name, nic in zip(('one_eth0', 'one_eth1'), self.nics):
            claim = self.claim('VCPU=1', str(uuid.uuid4()), '--group', '_A:CUSTOM_BW=1',
                               '--mapping', '_A=' + name)
            self.assertEqual(claim['mappings']['_A'], [nic])

    def test_wrong_ones(self):
        consumer = str(uuid.uuid4())
        for code, mapping, words in ((2, '_B=' + self.nics[0], 'the request has no group "_B"'),
                                     (2, '_A', 'is not a mapping'),
                                     (1, '_A=one_eth7', 'this host has no provider "one_eth7"')):
            self.refused('VCPU=1', consumer, words, '--group', '_A:CUSTOM_BW=1', '--mapping', mapping, code=code)
        self.refused('VCPU=1', consumer, 'mapped to several providers', '--group', '_A:CUSTOM_BW=1',
                     '--mapping', '_A=' + self.nics[0], '--mapping', '_A=' + self.nics[1])
        self.assertEqual(self.agent.ctl('explain', '--mapping', '_A=' + self.root,
                                        check=False).returncode, 2)
