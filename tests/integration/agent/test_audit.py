# SPDX-License-Identifier: LGPL-2.1-or-later
"""Placement, claims and running guests: the findings of an audit, the writes of healing, and the consumers that healing does not
change.

The IDs (F8, G2.8, ...) are those of the facts that the tests follow.
"""

import concurrent.futures
import json
import time
import uuid

from tests.env import faults
from tests.env.fakesys import Gpu, Host, Pci, m10_types, simple_host
from tests.env.scratch import wait_until
from tests.integration.claims.test_guests import GuestCase

T4 = '0000:c1:00.0'
NODE, GPU_NAME, T4_NAME = 'compute-1', 'compute-1_pci_0000_41_00_0', 'compute-1_0000:C1:00.0'
OPTIONS = {'DEFAULT': {'claim_expiry_time': 1, 'update_resources_interval': 1},
           'mdev_nvidia-35': {'mdev_class': 'CUSTOM_NVIDIA_35'},
           'pci': {'device_spec': json.dumps({'vendor_id': '10de', 'product_id': '1eb8'}),
                   'report_in_placement': 'true'}}


class AuditCase(GuestCase):
    """A host with a GPU that makes mdevs of a custom class, and a PCI device that is allocated as a whole."""

    @staticmethod
    def make_host():
        return Host(cells=simple_host(cells=2).cells, gpus=[Gpu('0000:41:00.0', numa_node=0, types=m10_types())], pci=[
            Pci(T4, 0, vendor=0x10de, device=0x1eb8, pci_class=0x030200, driver='nvidia')])

    def provider(self, agent, name):
        return self.placement.tree_by_name(agent.root())[name]['uuid']

    def allocate(self, held, consumer=None, consumer_type='INSTANCE'):
        """Replaces all allocations of a consumer by {provider: {class: amount}} and returns the uuid of the consumer."""
        return self.placement.place(consumer, held, kind=consumer_type)

    def leak(self, agent, held, consumer_type='INSTANCE'):
        """Allocates as allocate() does, and releases a claim of the consumer afterwards, which is evidence that the server ended."""
        return self.leak_all(agent, [held], consumer_type)[0]

    def leak_all(self, agent, all_held, consumer_type='INSTANCE', pools=()):
        """Leaks one consumer for each item of all_held. The claims also include the amounts on the sharing providers of pools."""
        consumers = [self.allocate(held, consumer_type=consumer_type) for held in all_held]
        counted = {provider['uuid'] for provider in self.placement.tree_by_name(agent.root()).values()} | set(pools)
        agent.end_claims(self.placement, {
            consumer: ','.join('%s=%d' % item for provider, amounts in held.items() if provider in counted
                               for item in amounts.items()) for consumer, held in zip(consumers, all_held)})
        return consumers

    def holds(self, consumer):
        return self.placement.held(consumer)

    def audit(self, agent, verb='audit', *options):
        """Returns the exit code and {consumer: (type, remedy, outcome)}."""
        done = agent.ctl(verb, '--json=short', *options, check=False)
        self.assertIn(done.returncode, (0, 3, 4), done.stderr)
        findings = json.loads(done.stdout)['findings']
        return done.returncode, {finding['consumer']: (finding['type'], finding['remedy'],
                                                       finding['outcome']) for finding in findings}

    def wait_findings(self, agent, types):
        wait_until(lambda: {c: f[0] for c, f in self.audit(agent)[1].items()} == types, 20,
                   'the findings %s' % types)

    def wait_remedy(self, agent, consumer, remedy):
        """Waits for the remedy of a consumer. A consumer that was written a moment ago has none yet."""
        wait_until(lambda: self.audit(agent)[1].get(consumer, ('', ''))[1] == remedy, 20,
                   'the remedy %s' % remedy)

    def start_behind_proxy(self):
        """Returns the proxy in front of Placement and an agent whose cycles run only on request."""
        options = {**OPTIONS, 'DEFAULT': {'claim_expiry_time': 1, 'update_resources_interval': 3600}}
        return self.start_agent(options, placement=self.proxy), self.proxy

    def start_with_guest(self, running=True):
        """Returns an agent and a guest whose claim and allocation are equal."""
        agent = self.start_agent(OPTIONS)
        guest = self.libvirtd.start_guest('good', memory_mib=40, vcpus=2)
        wait_until(lambda: self.of_guest(agent, guest), 20, 'the claim')
        self.allocate({agent.root(): {'VCPU': 2, 'MEMORY_MB': 40, 'DISK_GB': 1}}, guest)
        if not running:
            self.libvirtd.virsh('destroy', 'good')
        return agent, guest


class TestAudit(AuditCase):
    def test_g2_7_leaks_on_child_providers_are_found_and_healed(self):
        """Nova's own check reads the root and a few classes. These leaks are in custom classes of child providers."""
        agent, guest = self.start_with_guest()
        sharing, aggregate = self.placement.make_provider('store', {'DISK_GB': 1000}, traits=['MISC_SHARES_VIA_AGGREGATE']), str(uuid.uuid4())
        for provider in (sharing, agent.root()):
            self.placement.set_part(provider, 'aggregates', [aggregate])
        other = self.placement.make_provider('other-host', {'VCPU': 8})
        gpu, card = self.provider(agent, GPU_NAME), self.provider(agent, T4_NAME)
        foreign = self.allocate({sharing: {'DISK_GB': 7}})
        vgpu, whole = self.leak_all(agent, [{gpu: {'CUSTOM_NVIDIA_35': 1}, sharing: {'DISK_GB': 3}},
                                            {card: {'CUSTOM_PCI_10DE_1EB8': 1}, sharing: {'DISK_GB': 5},
                                             other: {'VCPU': 1}}], pools=[sharing])
        self.wait_findings(agent, {vgpu: 'leaked', whole: 'leaked'})

        code, findings = self.audit(agent, 'heal', '--dry-run')
        self.assertEqual(code, 3)
        self.assertEqual(findings[vgpu], ('leaked', 'release-share', 'found'))
        self.assertEqual(self.holds(vgpu), {gpu: {'CUSTOM_NVIDIA_35': 1}, sharing: {'DISK_GB': 3}})

        code, findings = self.audit(agent, 'heal')
        self.assertEqual((code, findings[vgpu], findings[whole]),
                         (4, ('leaked', 'release-share', 'healed'),
                          ('leaked', 'release-share', 'healed')))
        self.assertEqual(self.audit(agent), (0, {}))
        self.assertEqual(self.holds(vgpu), {})
        # G2.8: the amounts of other hosts are unchanged, and those of sharing providers where another host is named.
        self.assertEqual(self.holds(whole), {sharing: {'DISK_GB': 5}, other: {'VCPU': 1}})
        self.assertEqual(self.holds(foreign), {sharing: {'DISK_GB': 7}})
        self.assertEqual(self.holds(guest), {agent.root(): {'VCPU': 2, 'MEMORY_MB': 40,
                                                            'DISK_GB': 1}})
        self.assertRegex(agent.log(), 'Evidence: claim [0-9]+ was released at .* by root')
        mark = self.placement.mark()
        agent.ctl('sync')
        requests = [path for _, path, *_ in self.placement.requests_since(mark)]
        self.assertTrue(requests)
        self.assertFalse([path for path in requests if 'allocations' in path], requests)

        text = agent.ctl('audit', '--all').stdout
        self.assertIn('good', text)
        consumer, = agent.ctl_json('audit', '--all')['consumers']
        self.assertEqual((consumer['guest'], consumer['project'], consumer['here'][0]['resources']),
                         ('good', 'demo', {'VCPU': 2, 'MEMORY_MB': 40, 'DISK_GB': 1}))

    def test_claims_that_placement_has_otherwise_or_not_at_all(self):
        """F8 1848343: a claim without an allocation, one with another amount, and the migration of a guest that was deleted during
        its move."""
        bare = str(uuid.uuid4())
        agent = self.start_agent({**OPTIONS, 'DEFAULT': {'claim_expiry_time': 3600}})
        claim = agent.claim('VCPU=1,MEMORY_MB=40', bare)
        self.libvirtd.start_guest('told', memory_mib=40, vcpus=1, uuid=bare)
        agent.ctl('confirm', claim['id'])
        agent.stop()
        agent.configure(OPTIONS)
        agent.start('synced')
        root = agent.root()
        guest = self.libvirtd.start_guest('good', memory_mib=40, vcpus=2)
        wait_until(lambda: self.of_guest(agent, guest), 20, 'the claim')
        self.allocate({root: {'VCPU': 1, 'MEMORY_MB': 40, 'DISK_GB': 1}}, guest)
        migration = self.leak(agent, {root: {'VCPU': 3, 'MEMORY_MB': 48}}, 'MIGRATION')
        self.allocate({}, bare)
        self.wait_findings(agent, {guest: 'amount', migration: 'migration', bare: 'missing'})
        self.wait_remedy(agent, guest, 'write-claim')
        self.assertEqual(self.audit(agent, 'heal')[0], 4)
        self.assertEqual(self.audit(agent), (0, {}))
        self.assertEqual(self.holds(guest), {root: {'VCPU': 2, 'MEMORY_MB': 40, 'DISK_GB': 1}})
        self.assertEqual(self.holds(bare), {root: {'VCPU': 1, 'MEMORY_MB': 40}})
        self.assertEqual(self.holds(migration), {})
        # 14: a running guest keeps its allocation, also when its claim is released.
        first, = self.of_guest(agent, bare)
        agent.ctl('release', first['id'])
        wait_until(lambda: [claim['id'] != first['id'] for claim in self.of_guest(agent, bare)] == [True],
                   20, 'another claim')
        self.wait_findings(agent, {})
        self.assertEqual(self.holds(bare), {root: {'VCPU': 1, 'MEMORY_MB': 40}})
        # The allocation is removed when the guest is gone.
        self.libvirtd.delete_guest('told')
        wait_until(lambda: not self.holds(bare), 20, 'the removal')

    def test_consumers_in_transition_are_not_judged(self):
        """F8 1849165, 2025480: the scheduler has just made the consumer, and its guest is not here yet."""
        agent = self.start_agent({**OPTIONS, 'DEFAULT': {'claim_expiry_time': 3600}})
        self.allocate({agent.root(): {'VCPU': 1}})
        document = agent.ctl_json('heal')
        self.assertEqual((document['findings'], document['in_flight'], document['holding']),
                         ([], 1, 1))

    def test_placement_that_cannot_be_read(self):
        agent = self.start_agent(OPTIONS)
        self.placement.kill()
        for verb in ('audit', 'heal'):
            done = agent.ctl(verb, code=1)
            self.assertTrue(done.stderr)
        agent.stop()
        self.assertEqual(agent.ctl('audit', check=False).returncode, 1)

    def test_by_itself_when_it_is_told_to(self):
        agent = self.start_agent({**OPTIONS, 'agent': {'heal_each_cycles': 1}})
        leaked = self.leak(agent, {agent.root(): {'VCPU': 1}})
        wait_until(lambda: not self.holds(leaked), 20, 'healing')


class TestHealTrouble(AuditCase):
    def test_healing_that_fails_at_each_request(self):
        """F8: repeated healing removes the leak completely, and leaves the allocations of other hosts."""
        agent, proxy = self.start_behind_proxy()
        other = self.placement.make_provider('other-host', {'VCPU': 8})
        gpu, rest = self.provider(agent, GPU_NAME), {other: {'VCPU': 1}}
        for kind in range(len(faults.outages())):
            leaks = self.leak_all(agent, [{gpu: {'CUSTOM_NVIDIA_35': 1}, **rest}] * 2)
            self.wait_findings(agent, {leak: 'leaked' for leak in leaks})
            n = 0
            while True:
                fault = proxy.add(faults.outages(skip=n)[kind])
                code = agent.ctl('heal', check=False).returncode
                proxy.clear()
                if not fault.hits:
                    break
                self.assertIn(code, (1, 3), (kind, n))
                for leak in leaks:
                    self.assertEqual(self.holds(leak).get(other), rest[other])
                n += 1
            self.assertGreaterEqual(n, 3, 'reading the tree, who holds what, and writing')
            self.assertEqual(code, 4)
            self.assertEqual(agent.ctl('heal').returncode, 0)
            self.assertEqual(self.audit(agent), (0, {}))
            self.assertEqual([self.holds(leak) for leak in leaks], [rest, rest])

    def healing(self, agent, proxy):
        """Returns a context manager that holds "computectl heal" between its read and its write of a consumer."""
        return proxy.held(lambda: self.audit(agent, 'heal'), method='PUT', path='^/allocations/')

    def race(self, agent, proxy, consumer, held):
        """Writes the consumer between the agent's read and its write, and returns the result of healing."""
        with self.healing(agent, proxy) as healing:
            self.allocate(held, consumer)
        return healing.result()

    def test_a_claim_for_what_is_being_healed_waits_and_is_written(self):
        """If the claim were verified before the removal, the claim would succeed without an allocation."""
        agent, proxy = self.start_behind_proxy()
        root, amounts = agent.root(), {'VCPU': 1, 'MEMORY_MB': 40}
        agent.ctl('sync')
        late = self.leak(agent, {root: amounts})
        self.wait_findings(agent, {late: 'leaked'})
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            with self.healing(agent, proxy) as healing:
                claiming = pool.submit(agent.ctl, 'claim', '--consumer', late, '--resources', 'VCPU=1,MEMORY_MB=40')
                # The claim does not read Placement while the removal is sent.
                time.sleep(0.3)
                self.assertFalse(claiming.done())
            self.assertEqual(healing.result()[1], {late: ('leaked', 'release-share', 'healed')})
            claiming.result()
        self.assertEqual(self.holds(late), {root: amounts})

    def test_a_claim_for_what_is_being_healed_for_long_is_no_trouble_of_the_database(self):
        agent, proxy = self.start_behind_proxy()
        agent.ctl('sync')
        leaked = self.leak(agent, {agent.root(): {'VCPU': 1}})
        self.wait_findings(agent, {leaked: 'leaked'})
        with self.healing(agent, proxy) as healing:
            done = agent.claim('VCPU=1', leaked, check=False)
        healing.result()
        self.assertEqual(done.returncode, 1)
        self.assertIn('being healed. Try again', done.stderr)
        self.assertNotIn('New claims are refused', agent.log())
        self.assertEqual(agent.status()['claim_error'], '')

    def test_a_scheduler_that_writes_what_is_being_healed(self):
        agent, proxy = self.start_behind_proxy()
        other = self.placement.make_provider('other-host', {'VCPU': 8})
        root, guest = agent.root(), self.libvirtd.start_guest('bare', memory_mib=40, vcpus=1)
        agent.ctl('sync')
        leaked = self.leak(agent, {root: {'VCPU': 1}})
        self.wait_findings(agent, {guest: 'unallocated', leaked: 'leaked'})
        written = {root: {'VCPU': 2}, other: {'VCPU': 1}}
        self.allocate({root: {'VCPU': 1, 'MEMORY_MB': 40}}, guest)
        code, findings = self.race(agent, proxy, leaked, written)
        self.assertEqual((code, findings), (3, {leaked: ('leaked', 'release-share', 'failed')}))
        self.assertEqual(self.holds(leaked), written)
        # The writer of the consumer has time to create its guest.
        self.assertEqual(self.audit(agent, 'heal'), (0, {}))
        self.assertEqual(self.holds(leaked), written)

        # The same race with an amount that differs from the claim.
        self.wait_findings(agent, {leaked: 'leaked'})
        self.allocate({}, leaked)
        self.allocate({root: {'VCPU': 1, 'MEMORY_MB': 24}}, guest)
        self.wait_remedy(agent, guest, 'write-claim')
        written = {root: {'VCPU': 3, 'MEMORY_MB': 64}}
        code, findings = self.race(agent, proxy, guest, written)
        self.assertEqual((code, findings), (3, {guest: ('amount', 'write-claim', 'failed')}))
        self.assertEqual(self.holds(guest), written)

    def test_a_write_that_arrived_twice_is_healing_all_the_same(self):
        agent, proxy = self.start_behind_proxy()
        leaked = self.leak(agent, {agent.root(): {'VCPU': 1}})
        self.wait_findings(agent, {leaked: 'leaked'})
        proxy.add(faults.Cut('after', method='PUT', path='^/allocations/', times=1))
        self.assertEqual(self.audit(agent, 'heal'),
                         (4, {leaked: ('leaked', 'release-share', 'healed')}))
        self.assertEqual(self.holds(leaked), {})


class TestStart(AuditCase):
    def test_claims_are_built_from_placement_too(self):
        """The classes that a guest does not show come from Placement, and its devices come from the guest."""
        agent, guest = self.start_with_guest()
        stranger = self.allocate({agent.root(): {'VCPU': 3}})
        agent.stop()
        agent.lose_claims()
        agent.start('synced')
        told = {'VCPU': 2, 'MEMORY_MB': 40, 'DISK_GB': 1}
        wait_until(lambda: [claim['allocations'][0]['resources']
                            for claim in self.of_guest(agent, guest)] == [told], 20, 'the claim')
        self.wait_findings(agent, {stranger: 'leaked'})
        self.assertTrue([text for text in agent.problems() if stranger in text])
        self.assertEqual(len(self.holds(stranger)), 1)

    def test_a14_claims_of_guests_that_were_evacuated(self):
        """F8 1794996, 1896463: a dead host comes back after its guest was evacuated to another host."""
        agent, guest = self.start_with_guest(running=False)
        agent.kill()
        other = self.placement.make_provider('other-host', {'VCPU': 8, 'MEMORY_MB': 1024})
        self.allocate({other: {'VCPU': 2, 'MEMORY_MB': 40}}, guest)
        agent.start('synced')
        wait_until(lambda: not self.of_guest(agent, guest), 20, 'the end of the claim')
        ended = agent.ctl_json('claims', '--history')['claims'][0]
        self.assertEqual((ended['consumer'], ended['end_reason']), (guest, 'evacuated'))
        agent.ctl('sync')
        self.assertEqual(agent.claims(), [])
        self.assertEqual(len(agent.problems()), 1)
        self.assertEqual(self.holds(guest), {other: {'VCPU': 2, 'MEMORY_MB': 40}})
        self.assertIn('good', self.libvirtd.virsh('list', '--all', '--name'))
        # The guest is started here anyway. It gets a claim, because it uses resources of this host.
        self.libvirtd.virsh('start', 'good')
        wait_until(lambda: self.of_guest(agent, guest), 20, 'the claim')
        self.wait_findings(agent, {guest: 'elsewhere'})
