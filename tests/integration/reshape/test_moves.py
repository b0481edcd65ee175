# SPDX-License-Identifier: LGPL-2.1-or-later
"""The moves that do not depend on the domains of guests, there and back, and the ways in which Placement can reject them. The host
is recorded, and Placement is real.

The rejections are those of Placement's own test of its reshaper (reshaper.yaml). Each one is caused by a change of another client
while the request is held.
"""

import collections
import contextlib
import random

from tests.env import faults
from tests.env.agent import Agent
from tests.env.bus import Bus
from tests.env.hosts import recorded_cells, recorded_host
from tests.env.proxy import Proxy
from tests.env.scratch import wait_until
from tests.integration.reshape.test_random import ReshapesCase, new_uuid

SEV = 'MEM_ENCRYPTION_CONTEXT'
NIC = '{"vendor_id": "8086", "product_id": "1572", "resource_class": "%s"}'


class MovesCase(ReshapesCase):
    """A new host for each test, with two cells, a GPU, two network cards and SEV."""

    def setUp(self):
        self.rng = random.Random(self.id())
        self.name = 'host-' + self._testMethodName
        self.reset(self)
        self.agent.options = {section: dict(keys) for section, keys in self.options.items()}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.options = {section: dict(keys) for section, keys in cls.agent.options.items()}
        cls.options['placement']['timeout'] = 60 # a request can be held for long on a busy machine

    def host(self):
        return recorded_host(
            self.name, driver='libvirt', cells=recorded_cells(),
            emulators=[{'arch': 'x86_64', 'machine': 'pc', 'sev': True, 'sev_max_guests': 15}],
            devices=[{'name': 'pci_0000_41_00_0', 'address': '0000:41:00.0',
                      'mdev_types': [{'id': 'slice', 'available_instances': 4}]},
                     *({'name': 'pci_0000_0%d_00_0' % number, 'address': '0000:0%d:00.0' % number, 'vendor_id': 0x8086,
                        'product_id': 0x1572, 'class_code': 0x020000} for number in (5, 6))])

    def start(self, code=0, **options):
        """Runs the agent once with these options, and returns its tree."""
        self.agent.configure(options)
        done = self.agent.run('--once')
        self.assertEqual(done.returncode, code, done.stderr)
        self.said = done.stderr
        return self.tree(self.agent.root())

    def start_daemon(self):
        """Starts the agent on its own bus until the test ends."""
        bus = Bus(self.scratch).start()
        self.agent.bus = bus
        self.addCleanup(setattr, self.agent, 'bus', None)
        self.agent.start()
        self.addCleanup(self.agent.stop)

    def uuid_of(self, suffix=''):
        return self.tree(self.agent.root())[self.name + suffix]['uuid']

    def hold(self, held):
        """Returns a new consumer with {suffix of a provider's name: {class: amount}}."""
        consumer = new_uuid(self.rng)
        answer = self.put(consumer, {self.uuid_of(suffix): resources
                                     for suffix, resources in held.items()})
        self.assertEqual(answer.status, 204, answer.text)
        return consumer

    def holds(self, consumer):
        """Returns {suffix or uuid: {class: amount}} of a consumer."""
        names = {item['uuid']: name[len(self.name):]
                 for name, item in self.tree(self.agent.root()).items()}
        ret = collections.defaultdict(dict)
        for (provider, name), amount in self.held(consumer).items():
            ret[names.get(provider, provider)][name] = amount
        return dict(ret)

    def change(self, suffix, edit):
        """Edits the inventories of a provider, as an operator would."""
        self.placement.edit(self.uuid_of(suffix), 'inventories', edit)

    @contextlib.contextmanager
    def behind_proxy(self, **options):
        """Configures the agent with these options and a proxy in front of its Placement."""
        with Proxy(self.placement.port) as proxy:
            self.agent.configure({**options, 'placement': {'endpoint_override': proxy.endpoint}})
            yield proxy

    @contextlib.contextmanager
    def held_start(self, proxy, code=0, **match):
        """Runs the agent, and holds it at a request during the with block. It must exit with this code."""
        with proxy.held(lambda: self.agent.run('--once'), **match) as ended:
            yield
        self.said = ended.result().stderr
        self.assertEqual(ended.result().returncode, code, self.said)


class TestMoves(MovesCase):
    """Moves from one provider to another and back. test_guests.py has the moves from one class to another."""

    def test_f3_memory_encryption_from_the_root(self):
        """F3 "SEV": class and allocation move from the root to the provider of SEV. An undo moves them back."""
        self.start()
        trait = 'HW_CPU_X86_AMD_SEV'
        self.assertIn(trait, self.tree(self.agent.root())[self.name + '_amd_sev']['traits'])
        self.change('_amd_sev', lambda classes: classes.clear())
        self.change('', lambda classes: classes.update({SEV: {'total': 15}}))
        consumer = self.hold({'': {SEV: 1, 'VCPU': 2}})
        self.start_daemon()
        self.agent.wait_state('synced')
        self.assertEqual(self.holds(consumer), {'': {'VCPU': 2}, '_amd_sev': {SEV: 1}})
        tree = self.tree(self.agent.root())
        self.assertNotIn(SEV, tree[self.name]['inventories'])
        self.assertEqual(tree[self.name + '_amd_sev']['inventories'][SEV]['total'], 15)
        self.agent.ctl('reshape', '--undo')
        self.assertEqual(self.holds(consumer), {'': {'VCPU': 2, SEV: 1}})
        self.agent.ctl('reshape')
        self.assertEqual(self.holds(consumer), {'': {'VCPU': 2}, '_amd_sev': {SEV: 1}})

    def put_back_sev(self):
        """Restores the old shape: the class is on the root, and SEV has no provider."""
        self.change('', lambda classes: classes.update({SEV: {'total': 15}}))
        self.placement.api('DELETE', '/resource_providers/' + self.uuid_of('_amd_sev'))

    def test_f3_sev_mixed(self):
        """F3 "SEV mixed": one of two hosts was restarted. The other host keeps the old layout, and both accept a guest."""
        old = self.name
        self.start_daemon()
        self.agent.wait_state('synced')
        self.put_back_sev()
        self.agent.ctl('sync', check=False)
        self.agent.wait_state('stale')
        consumers = [self.hold({'': {SEV: 1, 'VCPU': 2}})]
        old_root = self.uuid_of()

        self.name += '-new'
        self.addCleanup(setattr, self, 'agent', self.agent)
        self.agent = Agent(self.scratch, self.placement, host=self.host(), options={'placement': self.options['placement']})
        self.start()
        self.put_back_sev()
        consumers.append(self.hold({'': {SEV: 1, 'VCPU': 2}}))
        self.start()
        self.assertEqual(self.holds(consumers[1]), {'': {'VCPU': 2}, '_amd_sev': {SEV: 1}})
        self.assertEqual(self.held(consumers[0]), {(old_root, SEV): 1, (old_root, 'VCPU'): 2})
        self.assertEqual(set(self.tree(old_root)), {old})

        found = self.placement.api('GET', '/allocation_candidates?resources=VCPU:1,%s:1' % SEV)
        places = {provider: held['resources'] for request in found['allocation_requests']
                  for provider, held in request['allocations'].items() if SEV in held['resources']}
        self.assertLessEqual({old_root, self.uuid_of('_amd_sev')}, set(places))
        self.hold({'_amd_sev': {SEV: 1}, '': {'VCPU': 1}})
        self.assertEqual(self.put(new_uuid(self.rng), {old_root: {SEV: 1, 'VCPU': 1}}).status, 204)

    def test_f1_collapse_onto_the_root_and_expand_again(self):
        """F1 "reshape": everything moves to the root and back. Allocations of other consumers and on other providers are kept."""
        expanded = {'compute': {'numa_in_placement': 'true'}}
        collapsed = {'compute': {'numa_in_placement': 'false'}}
        sharing = self.make_foreign('shared-' + self.name)
        for _ in range(2):
            self.start(**expanded)
        consumers = [self.hold({'_NUMA%d' % cell: {'VCPU': 2, 'MEMORY_MB': 64}, '': {'DISK_GB': 1}})
                     for cell in range(2)]
        consumer = new_uuid(self.rng)
        self.put(consumer, {self.uuid_of('_NUMA1'): {'VCPU': 1}, sharing: {'DISK_GB': 9}})
        picture = self.tree(sharing)
        self.assertEqual(set(self.start(**collapsed)), {self.name, self.name + '_amd_sev'})
        for each in consumers:
            self.assertEqual(self.holds(each), {'': {'VCPU': 2, 'MEMORY_MB': 64, 'DISK_GB': 1}})
        self.assertEqual(self.holds(consumer), {'': {'VCPU': 1}, sharing: {'DISK_GB': 9}})
        self.start(**expanded)
        for each in [*consumers, consumer]:
            sums = self.sums(each, [sharing])
            self.assertEqual((sums['VCPU'], sums['MEMORY_MB']),
                             (1, 0) if each == consumer else (2, 64))
            self.assertNotIn('VCPU', self.holds(each).get('', {}))
            answer = self.placement.api('GET', '/allocations/' + each)
            self.assertEqual((answer['consumer_type'], answer['project_id']), ('INSTANCE', 'p'))
        self.assertEqual(self.tree(sharing), picture)

    def test_withheld_inventories_in_use(self):
        """The guest that moves has allocations from two cordoned devices, a missing one and a withheld disk. Placement refuses amounts
        that do not fit, moved or not. All of them are withheld again, and an uncordoned device gets its capacity back."""
        gpu, nics, disk = '_pci_0000_41_00_0', ('_0000:05:00.0', '_0000:06:00.0'), 'DISK_GB'
        devices = {'VGPU': 1}, {'CUSTOM_NIC': 1}, {'CUSTOM_NIC': 1}
        self.start(devices={'enabled_mdev_types': 'slice'}, pci={'device_spec': NIC % 'CUSTOM_NIC', 'report_in_placement': 'true'})
        amounts, held = {'VCPU': 2, 'MEMORY_MB': 64}, dict(zip((gpu, *nics), devices))
        consumer = self.hold({'': {**amounts, disk: 5}, **held})

        def withheld():
            tree = self.tree(self.agent.root())
            records = [tree[self.name]['inventories'][disk], *(record for suffix in held
                                                               for record in tree[self.name + suffix]['inventories'].values())]
            return [(record['total'], record['reserved'] == record['total']) for record in records]

        self.start_daemon()
        self.agent.wait_state('synced')
        for address in '0000:41:00.0', '0000:05:00.0':
            self.agent.ctl('cordon', address)
        self.agent.stop()
        host = self.host()
        host['devices'].pop()
        self.agent.record(host)
        self.start(compute={'report_local_disk': 'no'})
        expected = withheld()
        self.assertEqual([closed for _, closed in expected], [True] * 4)
        mark = self.placement.mark()
        self.start(compute={'numa_in_placement': 'true'})
        moved = self.holds(consumer)
        self.assertEqual({suffix: moved.get(suffix) for suffix in ('', *held)}, {'': {disk: 5}, **held})
        self.assertEqual(withheld(), expected)
        self.start_daemon()
        self.agent.wait_state('synced')
        self.agent.ctl('reshape', '--undo')
        self.assertEqual(self.holds(consumer), {'': {**amounts, disk: 5}, **held})
        self.agent.ctl('sync', check=False)
        self.assertEqual([closed for _, closed in withheld()], [True] * 4)
        self.agent.ctl('reshape')
        self.assertEqual(self.holds(consumer), moved)
        self.assertEqual(withheld(), expected)
        for address in '0000:41:00.0', '0000:05:00.0':
            self.agent.ctl('uncordon', address)
        tree = self.tree(self.agent.root())
        self.assertEqual([record['reserved'] for suffix in (gpu, nics[0])
                          for record in tree[self.name + suffix]['inventories'].values()], [0, 0])
        self.assertEqual({item[2] for item in self.placement.writes_since(mark) if item[1] == '/reshaper'}, {204})


class TestDeletion(MovesCase):
    """Placement first checks for allocations and then deletes. No generation protects the time between them."""

    def test_no_claim_uses_a_provider_that_is_about_to_go(self):
        """Cells without allocations are removed without a reshape. Their inventories are removed first."""
        self.start(compute={'numa_in_placement': 'true'})
        with self.behind_proxy(compute={'numa_in_placement': 'false'}) as proxy:
            with self.held_start(proxy, method='DELETE', path='^/resource_providers/[^/]+$'):
                cell = next(record.path.rpartition('/')[2] for record in proxy.requests
                            if record.method == 'DELETE' and record.path.count('/') == 2)
                self.assertEqual(self.put(new_uuid(self.rng), {cell: {'VCPU': 1}}).status, 409)
        self.assertEqual(set(self.tree(self.agent.root())), {self.name, self.name + '_amd_sev'})

    def test_a_claim_before_the_reshape_keeps_its_provider(self):
        """Placement rejects the removal of the inventories. The agent reads everything again, and moves the new consumer."""
        self.start(compute={'numa_in_placement': 'true'})
        with self.behind_proxy(compute={'numa_in_placement': 'false'}) as proxy:
            with self.held_start(proxy, method='DELETE', path='/inventories$'):
                cell = next(record.path.split('/')[2] for record in proxy.requests
                            if record.method == 'DELETE')
                consumer = self.placement.place(None, {cell: {'VCPU': 1}})
        self.assertIn('Reshaped', self.said)
        self.assertEqual(self.holds(consumer), {'': {'VCPU': 1}})


class TestRefusals(MovesCase):
    """A flat host gets cells. During the reshape another client changes something."""

    def setUp(self):
        super().setUp()
        self.start()
        self.consumer = self.hold({'': {'VCPU': 2, 'MEMORY_MB': 64}})

    @contextlib.contextmanager
    def held_request(self, code=0, **options):
        """Starts the agent with cells and these options, and holds its POST /reshaper during the with block. It must exit with this
        code."""
        with self.behind_proxy(compute={'numa_in_placement': 'true'}, **options) as proxy:
            with self.held_start(proxy, code, method='POST', path='^/reshaper$'):
                yield
            self.answers = [record.status for record in proxy.requests
                            if (record.method, record.path) == ('POST', '/reshaper')]

    def assert_moved(self, consumer, **sums):
        self.assertEqual(self.sums(consumer, []), collections.Counter(sums))
        self.assertNotIn('', self.holds(consumer))

    def test_e6_somebody_claims_meanwhile(self):
        """Stale generation of a provider: a consumer was added between the read and the request."""
        with self.held_request():
            late = self.hold({'': {'VCPU': 3}})
        self.assertEqual(self.answers, [409, 204])
        self.assert_moved(late, VCPU=3)
        self.assert_moved(self.consumer, VCPU=2, MEMORY_MB=64)

    def test_e6_a_consumer_changes_meanwhile(self):
        """Stale generation of a consumer: it was resized."""
        with self.held_request():
            self.placement.place(self.consumer, {self.uuid_of(): {'VCPU': 1}})
        self.assertEqual(self.answers, [409, 204])
        self.assert_moved(self.consumer, VCPU=1)

    def test_e6_a_consumer_goes_meanwhile(self):
        """A deleted consumer gets no allocation again, although the generation of the provider did not change."""
        other = self.hold({'': {'VCPU': 1}})
        with self.held_request():
            before = self.placement.api('GET', '/resource_providers/' + self.uuid_of())['generation']
            self.placement.api('DELETE', '/allocations/' + self.consumer)
            after = self.placement.api('GET', '/resource_providers/' + self.uuid_of())['generation']
            self.assertEqual(before, after)
        self.assertEqual(self.answers, [409, 204])
        self.assertEqual(self.holds(self.consumer), {})
        self.assert_moved(other, VCPU=1)

    def test_e6_a_provider_goes_meanwhile(self):
        """Unknown provider: 400, and the agent creates it again."""
        with self.held_request():
            self.placement.api('DELETE', '/resource_providers/' + self.uuid_of('_NUMA1'))
        self.assertEqual(self.answers, [400, 204])
        self.assertIn(self.name + '_NUMA1', self.tree(self.agent.root()))
        self.assert_moved(self.consumer, VCPU=2, MEMORY_MB=64)

    def test_e6_no_capacity_elsewhere(self):
        """Over capacity: the allocation of the consumer on another host does not fit there any more. Placement rejects the whole
        request, the agent logs it, and succeeds when there is capacity again."""
        other = self.make_foreign('other-' + self.name)
        self.placement.place(self.consumer, {self.uuid_of(): {'VCPU': 2}, other: {'DISK_GB': 500}})
        before = self.tree(self.agent.root())[self.name]['inventories']
        with self.held_request(code=1):
            self.placement.set_part(other, 'inventories', {'DISK_GB': {'total': 100}})
        self.assertEqual(self.answers, [409, 409, 409])
        self.assertIn('keeps its old shape', self.said)
        self.assertEqual(self.holds(self.consumer), {'': {'VCPU': 2}, other: {'DISK_GB': 500}})
        self.assertEqual(self.tree(self.agent.root())[self.name]['inventories'], before)
        self.placement.set_part(other, 'inventories', {'DISK_GB': {'total': 1000}})
        self.start(placement={'endpoint_override': self.placement.endpoint})
        self.assertEqual(self.sums(self.consumer, [other])['VCPU'], 2)
        self.assertNotIn('', self.holds(self.consumer))

    def test_e6_no_room_for_one_elsewhere(self):
        """max_unit violated: it shrank below the allocation of the consumer on another host."""
        other = self.make_foreign('other-' + self.name)
        self.placement.place(self.consumer, {self.uuid_of(): {'VCPU': 2}, other: {'VCPU': 4}})
        with self.held_request(code=1):
            self.placement.set_part(other, 'inventories', {'VCPU': {'total': 50, 'max_unit': 3}})
        self.assertEqual(self.answers, [409, 409, 409])
        self.assertIn('keeps its old shape', self.said)
        self.assertEqual(self.holds(self.consumer), {'': {'VCPU': 2}, other: {'VCPU': 4}})

    def test_e6_the_class_goes_meanwhile(self):
        """Unknown class: 400, and the agent creates it again."""
        spec = NIC.replace('%s', 'CUSTOM_' + self._testMethodName.upper())
        with self.held_request(pci={'device_spec': spec, 'report_in_placement': 'true'}):
            self.placement.api('DELETE', '/resource_classes/CUSTOM_' + self._testMethodName.upper())
        self.assertEqual(self.answers, [400, 204])
        self.assert_moved(self.consumer, VCPU=2, MEMORY_MB=64)

    def test_e6_a_placement_that_refuses_the_reshaper(self):
        """A Placement before 1.30 knows neither the path nor the version, and a user can lack the role. The old shape stays, and
        the reason is logged."""
        before = self.tree(self.agent.root())[self.name]['inventories']
        for status, words in ((404, 'keeps its old shape'), (406, 'keeps its old shape'), (403, 'needs the role service')):
            with self.subTest(status), self.behind_proxy(compute={'numa_in_placement': 'true'}) as proxy:
                proxy.add(faults.Answer(status, faults.placement_error(
                    status, 'Refused', 'Policy does not allow placement:reshaper:reshape to be performed.',
                    'placement.undefined_code'), method='POST', path='^/reshaper$'))
                self.start(1)
                self.assertIn(words, self.said)
                self.assertEqual(self.tree(self.agent.root())[self.name]['inventories'], before)
                self.assertEqual(self.holds(self.consumer), {'': {'VCPU': 2, 'MEMORY_MB': 64}})

    def test_an_answer_that_is_lost(self):
        """The reshape was done, but its answer was lost. It is not repeated, and can be undone."""
        with self.behind_proxy(compute={'numa_in_placement': 'true'}) as proxy:
            proxy.add(faults.Cut('after', method='POST', path='^/reshaper$', times=1))
            self.agent.run('--once')
        self.assert_moved(self.consumer, VCPU=2, MEMORY_MB=64)
        mark = self.placement.mark()
        self.start(placement={'endpoint_override': self.placement.endpoint})
        self.assertEqual([item for item in self.placement.writes_since(mark)
                          if item[1] == '/reshaper'], [])
        self.assertEqual(sorted(path.name for path in self.agent.state.glob('reshape*')),
                         ['reshape.json'])
        self.start_daemon()
        self.agent.wait_state('synced')
        self.agent.ctl('reshape', '--undo')
        self.assertEqual(self.holds(self.consumer), {'': {'VCPU': 2, 'MEMORY_MB': 64}})

    def test_a_refusal_after_the_reshape_does_not_undo_it(self):
        """Placement rejects the traits after the reshape. The reshape was done, and is logged as done."""
        with self.behind_proxy(compute={'numa_in_placement': 'true'}) as proxy:
            proxy.add(faults.Answer(400, faults.placement_error(
                400, 'Bad Request', 'No such trait.', 'placement.undefined_code'),
                method='PUT', path='_providers/.*/traits$'))
            self.start(1)
        self.assertIn('Reshaped the provider tree', self.said)
        self.assertNotIn('keeps its old shape', self.said)
        self.assert_moved(self.consumer, VCPU=2, MEMORY_MB=64)


class TestStartupFailure(MovesCase):
    """[agent] on_startup_failure = exit, while Placement refuses each reshape."""

    @contextlib.contextmanager
    def refused(self):
        """Publishes the flat host and configures cells. Placement refuses the reshape during the with block."""
        self.start()
        self.consumer = self.hold({'': {'VCPU': 2, 'MEMORY_MB': 64}})
        with self.behind_proxy(compute={'numa_in_placement': 'true'}, agent={'on_startup_failure': 'exit'}) as proxy:
            proxy.add(faults.Answer(403, faults.placement_error(403, 'Refused', 'Policy does not allow it.', 'placement.undefined_code'),
                                    method='POST', path='^/reshaper$'))
            yield proxy
            self.assertEqual(self.holds(self.consumer), {'': {'VCPU': 2, 'MEMORY_MB': 64}})

    def wait_exit(self):
        wait_until(lambda: not self.agent.running(), 60, 'the end of the agent')
        self.assertIn('keeps its old shape', self.agent.log())
        self.assertIn('Exiting, because [agent] on_startup_failure is exit', self.agent.log())

    def test_a_refused_reshape_of_the_start_ends_the_service(self):
        with self.refused():
            self.start_daemon()
            self.wait_exit()

    def test_a_reload_before_the_reshape_of_the_start(self):
        """Placement was away at the start. The reshape is still that of the start after a reload."""
        with self.refused() as proxy:
            away = proxy.add(faults.html())
            self.start_daemon()
            self.agent.wait_state('offline')
            self.agent.ctl('reload', check=False)
            proxy.remove(away)
            self.agent.ctl('sync', check=False)
            self.wait_exit()

    def test_a_refused_reshape_on_request_does_not_end_the_service(self):
        self.start()
        with self.behind_proxy(agent={'on_startup_failure': 'exit'}) as proxy:
            self.start_daemon()
            self.agent.wait_state('synced')
            self.change('_amd_sev', lambda classes: classes.clear())
            self.change('', lambda classes: classes.update({SEV: {'total': 15}}))
            consumer = self.hold({'': {SEV: 1}})
            proxy.add(faults.Answer(403, b'', method='POST', path='^/reshaper$'))
            self.assertIn('403', self.agent.ctl('reshape', code=1).stderr)
            self.assertEqual(self.holds(consumer), {'': {SEV: 1}})
            self.assertTrue(self.agent.running())
            self.assertNotIn('Exiting', self.agent.log())


class TestAsked(MovesCase):
    """Several callers at the same time, and the image of a reshape on disk."""

    def is_asked(self):
        return 'GetReshape' in self.agent.bus.busctl('get-property', 'org.computeagent.Agent1', '/org/computeagent/Agent1',
                                                     'org.computeagent.Agent1', 'Operation').stdout

    def test_a_plan_is_asked_for_while_the_start_reshapes(self):
        self.start()
        consumer = self.hold({'': {'VCPU': 2}})
        with self.behind_proxy(compute={'numa_in_placement': 'true'}) as proxy:
            hang = proxy.add(faults.Hang(method='POST', path='^/reshaper$', times=1))
            self.start_daemon()
            wait_until(hang.reached.is_set, 30, 'POST /reshaper')
            with self.agent.begin('reshape', '--plan') as plan:
                wait_until(self.is_asked, 30, 'the question')
                undo = self.agent.ctl('reshape', '--undo', check=False)
                hang.release()
                words = plan.communicate(timeout=60)[1]
            self.agent.wait_state('synced')
        self.assertEqual(plan.returncode, 0, words)
        self.assertIn('is running', undo.stderr)
        self.assertIn('Reshaped the provider tree', self.agent.log())
        self.assertNotIn('', self.holds(consumer))

    def test_a_reload_before_the_start_could_reshape(self):
        """Placement was away at the start. After a reload the agent still does the reshape of a start."""
        self.start()
        consumer = self.hold({'': {'VCPU': 2}})
        with self.behind_proxy(compute={'numa_in_placement': 'true'}) as proxy:
            proxy.add(faults.html())
            self.start_daemon()
            self.agent.wait_state('offline')
            self.agent.ctl('reload', check=False)
            proxy.clear()
            self.agent.ctl('sync', check=False)
            self.agent.wait_state('synced')
        self.assertNotIn('', self.holds(consumer))

    def test_a_pre_image_of_what_never_was(self):
        """The image of a reshape that was not sent must not replace the image of the last one, so that one can still be undone."""
        self.start()
        self.change('_amd_sev', lambda classes: classes.clear())
        self.change('', lambda classes: classes.update({SEV: {'total': 15}}))
        self.start()
        done, pending = (self.agent.state / name for name in
                         ('reshape.json', 'reshape-pending.json'))
        kept = done.read_text()
        pending.write_text(kept.replace('"total": 15', '"total": 14').replace('"total":15',
                                                                              '"total":14'))
        self.assertNotEqual(pending.read_text(), kept)
        self.change('', lambda classes: classes.update({SEV: {'total': 15}}))
        with self.behind_proxy() as proxy:
            with self.held_start(proxy, path=r'^/resource_providers\?in_tree=', method='GET', skip=1):
                self.change('', lambda classes: classes.pop(SEV))
        self.assertEqual(done.read_text(), kept)

    def test_nothing_to_undo_on_a_host_that_is_gone(self):
        self.start()
        self.change('', lambda classes: classes.update({SEV: {'total': 15}}))
        self.start_daemon()
        self.agent.wait_state('synced')
        for suffix in ('_amd_sev', ''):
            self.placement.api('DELETE', '/resource_providers/' + self.uuid_of(suffix))
        done = self.agent.ctl('reshape', '--undo', check=False)
        self.assertIn('Placement has no provider of this host', done.stderr)
