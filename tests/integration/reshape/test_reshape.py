# SPDX-License-Identifier: LGPL-2.1-or-later
"""Inventory moves under guests, with a real libvirtd over made-up hardware and a real Placement.

The IDs (C5, F3, G2.14, ...) are those of the facts that the tests follow.
"""

import tempfile
import uuid
from pathlib import Path

from tests.env import faults
from tests.env.agent import Agent
from tests.env.case import EnvCase
from tests.env.hosts import Cell, Gpu, Host, MdevType, recorded_cells, recorded_host, simple_host
from tests.env.libvirtd import guest_xml
from tests.env.placement import Placement
from tests.env.scratch import wait_until

MDEVS = ['3f0a4b9e-6c41-4f0b-9a53-8f8f0f6c1d0%d' % number for number in range(4)]
GPUS = ['compute-1_pci_0000_41_00_0', 'compute-1_pci_0000_42_00_0', 'compute-1_pci_0000_43_00_0']
CELLS = ['compute-1_NUMA0', 'compute-1_NUMA1']
ROOT = 'compute-1'


def pins(*cpus):
    """Returns a <cputune> that pins guest CPU n to cpus[n]."""
    return '<cputune>%s</cputune>' % ''.join(
        "<vcpupin vcpu='%d' cpuset='%s'/>" % pair for pair in enumerate(cpus))


class ReshapeCase(EnvCase):
    """One libvirtd for each class. Each test has a new Placement, bus and agent."""

    shared = ('libvirtd',)

    def setUp(self):
        self.agent = Agent(self.scratch, self.placement, self.libvirtd.uri, self.bus)
        self.addCleanup(self.libvirtd.delete_guests)

    def start(self, state='synced', **options):
        """Starts the agent with these sections of options, and waits until it has this state."""
        self.agent.configure(options)
        self.agent.start(state)

    def restart(self, state='synced', **options):
        self.agent.stop()
        self.start(state, **options)

    def tree(self):
        return self.placement.tree_by_name(self.agent.root())

    def uuid(self, name):
        return self.tree()[name]['uuid']

    def put(self, consumer, held, kind='INSTANCE', code=204):
        """Replaces the allocations of a consumer by {provider: {class: amount}}. A provider of another host is given by its uuid."""
        tree = self.tree()
        self.assertEqual(code, self.placement.put(consumer, {
            tree[name]['uuid'] if name in tree else name: amounts for name, amounts in held.items()}, kind))

    def held(self, consumer):
        names = {provider['uuid']: name for name, provider in self.tree().items()}
        return {names.get(key, key): amounts for key, amounts in self.placement.held(consumer).items()}

    def claimed(self):
        """Returns {consumer: {provider: resources}} of the active claims."""
        return {claim['consumer']: {part['name']: part['resources']
                                    for part in claim['allocations']}
                for claim in self.agent.claims()}

    def set_inventories(self, name, change):
        """Edits the inventories of a provider, as an operator or an older agent did."""
        self.placement.edit(self.uuid(name), 'inventories', change)

    def classes(self, name):
        return set(self.tree()[name]['inventories']) - {'DISK_GB'}


class TestVgpus(ReshapeCase):
    """F3, C5.1: a host with VGPU on its root, as old versions of Nova published it."""

    @staticmethod
    def make_host():
        return Host(cells=simple_host().cells, name=ROOT, gpus=[
            Gpu('0000:4%d:00.0' % (number + 1), numa_node=0,
                types={'nvidia-35': MdevType('M10', available=0, existing=[MDEVS[number]])})
            for number in range(3)])

    def make_old_shape(self):
        """Publishes VGPU only on the root. Two guests have one VGPU each, on the second and the third GPU."""
        self.start(devices={'enabled_mdev_types': None})
        self.agent.stop()
        self.set_inventories(ROOT, lambda classes: classes.update(VGPU={'total': 3}))
        self.guests = []
        for number in (1, 2):
            self.libvirtd.define(guest_xml('guest%d' % number, devices=[MDEVS[number]]))
            self.guests.append(self.libvirtd.virsh('domuuid', 'guest%d' % number).strip())
            self.put(self.guests[-1], {ROOT: {'VGPU': 1, 'VCPU': 1, 'MEMORY_MB': 32}})

    def test_f3_from_the_root_to_the_gpus(self):
        self.make_old_shape()
        mark = self.placement.mark()
        self.start(devices={'enabled_mdev_types': 'nvidia-35'})
        self.assertNotIn('VGPU', self.classes(ROOT))
        for guest, gpu in zip(self.guests, GPUS[1:]):
            self.assertEqual(self.held(guest), {ROOT: {'VCPU': 1, 'MEMORY_MB': 32},
                                                gpu: {'VGPU': 1}})
        for gpu in GPUS:
            self.assertEqual(self.tree()[gpu]['inventories']['VGPU']['total'], 1)
        posts = [item for item in self.placement.writes_since(mark) if item[1] == '/reshaper']
        self.assertEqual([item[2] for item in posts], [204])
        self.assertIn('Reshaped the provider tree of compute-1', self.agent.log())
        third = str(uuid.uuid4())
        self.put(third, {GPUS[1]: {'VGPU': 1}}, code=409)
        self.put(third, {GPUS[0]: {'VGPU': 1}})
        mark = self.placement.mark()
        self.restart()
        self.assertEqual(self.placement.writes_since(mark), [])

    def test_g2_14_parts_elsewhere_are_carried_through(self):
        self.make_old_shape()
        elsewhere = self.placement.make_provider('other-host', {'VGPU': 4, 'VCPU': 4})
        pool, aggregate = self.placement.make_provider('pool', {'DISK_GB': 10}, traits=['MISC_SHARES_VIA_AGGREGATE']), str(uuid.uuid4())
        for provider in (pool, self.uuid(ROOT)):
            self.placement.set_part(provider, 'aggregates', [aggregate])
        held = {elsewhere: {'VGPU': 2, 'VCPU': 1}, pool: {'DISK_GB': 3}}
        self.put(self.guests[0], {ROOT: {'VGPU': 1}, **held})
        self.start(devices={'enabled_mdev_types': 'nvidia-35'})
        self.assertEqual(self.held(self.guests[0]), {GPUS[1]: {'VGPU': 1}, **held})
        self.assertEqual(self.agent.ctl_json('tree')['shares'], ['pool'])

    def test_a_consumer_that_cannot_be_placed_blocks_its_class_alone(self):
        self.make_old_shape()
        stranger = str(uuid.uuid4())
        self.put(stranger, {ROOT: {'VGPU': 1}})
        self.start('stale', devices={'enabled_mdev_types': 'nvidia-35'},
                   DEFAULT={'reserved_host_memory_mb': 640})
        self.assertEqual(self.tree()[ROOT]['inventories']['MEMORY_MB']['reserved'], 640)
        self.assertIn('VGPU', self.classes(ROOT))
        self.assertNotIn(GPUS[0], self.tree())
        self.assertIn(stranger, self.agent.status()['sync_error'])
        self.assertIn('it has no domain on this host', self.agent.log())
        # The rest of the host is still published.
        self.agent.ctl('sync', check=False)
        self.assertIn('VGPU', self.classes(ROOT))
        # When the consumer is gone, "computectl reshape" makes the new shape without a restart.
        self.placement.request('DELETE', '/allocations/' + stranger)
        self.agent.ctl('reshape')
        self.agent.wait_state('synced')
        self.assertEqual(self.held(self.guests[1])[GPUS[2]], {'VGPU': 1})

    def test_a_class_that_stays_does_not_hold_back_a_reload(self):
        self.make_old_shape()
        stranger = str(uuid.uuid4())
        self.put(stranger, {ROOT: {'VGPU': 1}})
        self.start('stale', devices={'enabled_mdev_types': 'nvidia-35'})
        error = self.agent.status()['sync_error']
        self.assertIn(stranger, error)
        total = self.tree()[ROOT]['inventories']['MEMORY_MB']['total']
        for reserved, shown in ((1 << 30, total), (640, 640)):
            self.agent.configure({'DEFAULT': {'reserved_host_memory_mb': reserved}})
            self.agent.ctl('reload')
            self.agent.ctl('sync', check=False)
            self.assertEqual(self.tree()[ROOT]['inventories']['MEMORY_MB']['reserved'], shown)
            status = self.agent.status()
            self.assertEqual((status['sync_state'], status['sync_error'][-len(error):]), ('stale', error))
            self.assertEqual('reserved_host_memory_mb' in status['sync_error'], shown == total)
        self.placement.request('DELETE', '/allocations/' + stranger)
        self.agent.ctl('reshape')
        self.agent.wait_state('synced')

    def test_periodically_it_is_reported_and_not_done(self):
        self.start(devices={'enabled_mdev_types': 'nvidia-35'})
        before = self.tree()
        self.set_inventories(ROOT, lambda classes: classes.update(VGPU={'total': 3}))
        self.agent.ctl('sync', check=False)
        self.agent.wait_state('stale')
        self.assertIn('VGPU', self.classes(ROOT))
        self.assertEqual(set(self.tree()), set(before))
        self.assertIn('must change shape', self.agent.log())
        plan = self.agent.ctl('plan').stdout
        self.assertIn('Nothing to send now, but Placement is not equal to this host: The tree must change shape', plan)

    def test_plan_and_undo(self):
        self.make_old_shape()
        self.start(devices={'enabled_mdev_types': 'nvidia-35'})
        moved = {guest: self.held(guest) for guest in self.guests}
        self.agent.ctl('reshape', '--undo')
        self.assertIn('VGPU', self.classes(ROOT))
        for guest in self.guests:
            self.assertEqual(self.held(guest), {ROOT: {'VGPU': 1, 'VCPU': 1, 'MEMORY_MB': 32}})
        self.assertNotIn(GPUS[0], self.tree())
        mark = self.placement.mark()
        plan = self.agent.ctl_json('reshape', '--plan')
        self.assertEqual(self.placement.writes_since(mark), [])
        self.assertEqual(set(plan['after']['consumers']), set(self.guests))
        self.assertIn('VGPU 1', self.agent.ctl('reshape', '--plan').stdout)
        self.agent.ctl('reshape')
        self.assertEqual({guest: self.held(guest) for guest in self.guests}, moved)

    def test_an_undo_whose_answer_is_lost(self):
        """Placement has the old shape already. The next cycle sees it, and the claims follow."""
        self.make_old_shape()
        self.start(devices={'enabled_mdev_types': 'nvidia-35'}, placement={'endpoint_override': self.proxy.endpoint})
        mark = self.placement.mark()
        with self.proxy.fault(faults.Cut('after', method='POST', path='^/reshaper$')):
            self.agent.ctl('reshape', '--undo', code=1)
        self.agent.ctl('sync', check=False)
        self.assertIn('VGPU', self.classes(ROOT))
        self.assertEqual([item[2] for item in self.placement.writes_since(mark) if item[1] == '/reshaper' and item[2] < 300], [204])
        held = {guest: {ROOT: {'VGPU': 1, 'VCPU': 1, 'MEMORY_MB': 32}} for guest in self.guests}
        self.assertEqual({guest: self.held(guest) for guest in self.guests}, held)
        self.assertEqual(self.claimed(), held)
        self.assertIn('Restored the provider tree of compute-1, with the allocations of 2 consumers', self.agent.log())
        self.assertNotIn('was not undone', self.agent.log())

    def test_a_requested_reshape_whose_answer_is_lost(self):
        """The next cycle sees its shape, and an undo restores the shape before it, not an earlier one."""
        self.make_old_shape()
        self.start(devices={'enabled_mdev_types': 'nvidia-35'}, placement={'endpoint_override': self.proxy.endpoint})
        self.agent.ctl('reshape', '--undo')
        with self.proxy.fault(faults.Cut('after', method='POST', path='^/reshaper$')):
            self.agent.ctl('reshape', code=1)
        self.agent.ctl('sync')
        self.assertNotIn('VGPU', self.classes(ROOT))
        self.agent.ctl('reshape', '--undo')
        for guest in self.guests:
            self.assertEqual(self.held(guest), {ROOT: {'VGPU': 1, 'VCPU': 1, 'MEMORY_MB': 32}})

    def test_a_dry_run_that_fails_is_an_error(self):
        """Placement refuses the read of the allocations. The answer is neither "nothing moves" nor an earlier document."""
        self.make_old_shape()
        self.start(devices={'enabled_mdev_types': 'nvidia-35'}, placement={'endpoint_override': self.proxy.endpoint})
        self.agent.ctl('reshape', '--undo')
        with self.proxy.fault(faults.Answer(403, '{}', method='GET', path='/allocations')):
            done = self.agent.ctl('reshape', '--dry-run', code=1)
        self.assertEqual(done.stdout, '')
        self.assertIn('403', done.stderr)
        self.assertEqual(set(self.agent.ctl_json('reshape', '--dry-run')['after']['consumers']), set(self.guests))

    def test_undo_is_refused_when_the_host_is_not_what_it_was(self):
        self.make_old_shape()
        self.start(devices={'enabled_mdev_types': 'nvidia-35'})
        late = str(uuid.uuid4())
        self.put(late, {GPUS[0]: {'VGPU': 1}})
        done = self.agent.ctl('reshape', '--undo', code=1)
        self.assertIn(late, done.stderr)
        self.assertEqual(self.held(late), {GPUS[0]: {'VGPU': 1}})
        # The failed undo changed nothing.
        self.assertEqual(self.agent.status()['sync_state'], 'synced')
        self.assertNotIn('VGPU', self.classes(ROOT))

    def test_an_undo_without_a_reshape_is_an_error_and_no_state(self):
        """The undo fails with the reason. The state of the host stays "synced", because Placement equals the host."""
        self.start(devices={'enabled_mdev_types': 'nvidia-35'},
                   agent={'on_startup_failure': 'exit'})
        for text, words in ((None, 'no reshape to undo'), ('{', 'set aside')):
            if text:
                (self.agent.state / 'reshape.json').write_text(text)
            done = self.agent.ctl('reshape', '--undo', check=False)
            self.assertEqual((done.returncode, done.stdout), (1, ''))
            self.assertIn(words, done.stderr)
            status = self.agent.status()
            self.assertEqual((status['sync_state'], status['sync_error']), ('synced', ''))
        self.assertTrue(self.agent.running())
        self.assertIn('Nothing to do', self.agent.ctl('reshape').stdout)


class TestCells(ReshapeCase):
    """The flat shape becomes NUMA cells and returns, under running guests."""

    @staticmethod
    def make_host():
        # Running guests need CPUs of the test machine for their pins. CPUs 0 and 1 exist, and each cell has one of them.
        return Host(name=ROOT, cells=[Cell(0, [0, 2, 3, 4], 4 << 20, {2048: 64}),
                                      Cell(1, [1, 5, 6, 7], 4 << 20, {2048: 64})])

    def test_there_and_back(self):
        pinned = self.libvirtd.start_guest('pinned', memory_mib=40, vcpus=2, extra=pins('1', '1,5-7'))
        wide = self.libvirtd.start_guest('wide', vcpus=2, extra=pins('0', '1'))
        floating = self.libvirtd.start_guest('floating')
        self.start()
        wait_until(lambda: len(self.claimed()) == 3, 20, 'three claims')
        claimed = self.claimed()
        self.assertEqual(claimed[pinned], {ROOT: {'VCPU': 2, 'MEMORY_MB': 40}})
        self.put(pinned, {ROOT: {'VCPU': 2, 'MEMORY_MB': 40, 'DISK_GB': 1}})
        self.put(wide, {ROOT: {'VCPU': 2, 'MEMORY_MB': 32}})
        self.put(floating, {ROOT: {'VCPU': 1, 'MEMORY_MB': 32}})
        before = {guest: self.held(guest) for guest in (pinned, wide, floating)}

        self.restart(compute={'numa_in_placement': 'true'})
        self.assertEqual(self.classes(ROOT), set())
        # Claims name the providers, too. The amounts that no guest shows are as they were placed.
        self.assertEqual(self.claimed()[pinned], self.held(pinned))
        self.assertEqual(self.claimed()[wide], self.held(wide))
        self.assertEqual(self.claimed()[floating], self.held(floating))
        self.assertEqual(self.held(pinned), {ROOT: {'DISK_GB': 1},
                                             CELLS[1]: {'VCPU': 2, 'MEMORY_MB': 40}})
        self.assertEqual(self.held(wide), {CELLS[0]: {'VCPU': 1, 'MEMORY_MB': 16},
                                           CELLS[1]: {'VCPU': 1, 'MEMORY_MB': 16}})
        self.assertEqual(sum(cell['VCPU'] for cell in self.held(floating).values()), 1)

        self.restart(compute={'numa_in_placement': 'false'})
        self.assertEqual({guest: self.held(guest) for guest in before}, before)
        self.assertEqual(self.claimed(), before)
        self.assertEqual(list(self.tree()), [ROOT])

    def test_a_dry_run_and_a_plan_name_the_reshape(self):
        """No request is left to send, but Placement has another shape than this host."""
        self.start()
        self.agent.stop()
        self.assertIn('Nothing to do', self.agent.run('--dry-run').stdout)
        for mode, words in ('none', 'The next start of the agent moves'), ('observe', '"computectl reshape --dry-run"'):
            self.agent.configure({'compute': {'numa_in_placement': 'true'}, 'agent': {'nova': mode}})
            self.assertRegex(self.agent.run('--dry-run').stdout,
                             r'^Placement .*: The tree must change shape .*\. ' + words)
        self.start('left-to-nova')
        self.assertEqual(self.agent.status()['n_differences'], 1)
        self.assertRegex(self.agent.ctl('plan').stdout, 'not equal to this host: The tree must change shape')

    def test_c5_2_dedicated_cpus_there_and_back(self):
        guest = self.libvirtd.start_guest('pinned', vcpus=2, extra=pins('1', '1'))
        moving = self.libvirtd.start_guest('moving', vcpus=2, memory_mib=64, extra=pins('1', '1'))
        floating = self.libvirtd.start_guest('floating')
        migration = str(uuid.uuid4())
        self.start()
        self.put(guest, {ROOT: {'VCPU': 2}})
        self.put(migration, {ROOT: {'VCPU': 2, 'MEMORY_MB': 64}}, kind='MIGRATION')
        elsewhere = self.placement.make_provider('other-host', {'VCPU': 4})
        self.put(moving, {elsewhere: {'VCPU': 2}})
        self.put(floating, {ROOT: {'VCPU': 1}})
        self.restart(compute={'cpu_shared_set': '0,2-4', 'cpu_dedicated_set': '1,5-7'})
        self.assertEqual(self.held(guest), {ROOT: {'PCPU': 2}})
        self.assertEqual(self.held(migration), {ROOT: {'PCPU': 2, 'MEMORY_MB': 64}})
        self.assertEqual(self.held(moving), {elsewhere: {'VCPU': 2}})
        self.assertEqual(self.held(floating), {ROOT: {'VCPU': 1}})
        self.restart(compute={'cpu_shared_set': None, 'cpu_dedicated_set': None})
        self.assertEqual(self.held(guest), {ROOT: {'VCPU': 2}})
        self.assertEqual(self.held(migration), {ROOT: {'VCPU': 2, 'MEMORY_MB': 64}})


class TestOffline(EnvCase):
    """"computectl migrate-inventory", with the daemon and all services down."""

    def setUp(self):
        self.placement = Placement(self.scratch)
        self.agent = self.make_agent(ROOT)

    def make_agent(self, name):
        return Agent(self.scratch, self.placement, bus=self.bus, host=recorded_host(name, cells=recorded_cells()))

    def migrate(self, *args, code=0):
        done = self.agent.ctl('migrate-inventory', '--config', self.agent.config, *args,
                              check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def tree(self):
        """Returns the tree in the database. A Placement is started only for the read."""
        self.placement.start()
        tree = self.placement.tree_by_name(self.agent.root())
        self.placement.stop()
        return tree

    def test_with_a_placement_of_its_own(self):
        self.migrate('--direct', self.placement.folder)
        root = self.tree()[ROOT]
        self.assertIn('VCPU', root['inventories'])
        self.placement.start()
        consumer = self.placement.place(None, {root['uuid']: {'VCPU': 3}})
        self.placement.stop()
        self.agent.configure({'compute': {'numa_in_placement': 'true'}})
        self.assertIn('has the inventory', self.migrate('--direct', self.placement.folder).stdout)
        tree = self.tree()
        self.assertEqual(set(tree), {ROOT, *CELLS})
        self.placement.start()
        held = self.placement.held(consumer)
        self.placement.stop()
        self.assertEqual(list(held.values()), [{'VCPU': 3}])
        self.assertNotIn(root['uuid'], held)
        # A second run changes nothing, and no file of the private Placement is left.
        self.migrate('--direct', self.placement.folder)
        self.assertEqual(self.tree(), tree)
        self.assertEqual([path for path in Path(tempfile.gettempdir()).glob('computectl-*')
                          if path.owner() == Path(self.agent.folder).owner()], [])

    def test_several_nodes_one_after_the_other(self):
        """Each node is reshaped alone, with one private Placement for all. After a failed node the command continues with the next one."""
        agents = [self.make_agent('node-%d' % number) for number in range(3)]
        files = [agent.config for agent in agents]

        def migrate(code):
            done = self.agent.ctl('migrate-inventory', '--direct', self.placement.folder, *files,
                                  check=False)
            self.assertEqual(done.returncode, code, done.stderr)
            return done

        self.assertIn('inventory of these nodes', migrate(0).stdout)
        self.placement.start()
        roots = [agent.root() for agent in agents]
        consumer = self.placement.place(None, {root: {'VCPU': 1} for root in roots})
        for agent in agents:
            agent.configure({'compute': {'numa_in_placement': 'true'}})
        broken = agents[1].folder / 'host.json'
        text = broken.read_text()
        broken.write_text('{')
        self.assertIn('%s: The inventory was not migrated' % files[1], migrate(1).stderr)
        broken.write_text(text)
        held = self.placement.held(consumer)
        self.assertEqual([root in held for root in roots], [False, True, False])
        self.assertEqual([len(self.placement.tree_by_name(root)) for root in roots], [3, 1, 3])
        self.assertEqual(list(held.values()), [{'VCPU': 1}] * 3)
        migrate(0)
        self.assertEqual([len(self.placement.tree_by_name(root)) for root in roots], [3, 3, 3])

    def test_a_run_that_publishes_nothing_fails(self):
        self.placement.start()
        self.agent.start('synced')
        self.agent.ctl('cordon')
        self.agent.ctl('retire', '--yes')
        self.agent.stop()
        self.assertIn('the host is retired', self.migrate(code=1).stderr)
        self.agent.start()
        self.agent.ctl('retire', '--undo')
        self.agent.stop()
        self.migrate()
        for mode in 'observe', 'beside':
            self.agent.configure({'agent': {'nova': mode}})
            self.assertIn('nova-compute owns the tree', self.migrate(code=1).stderr)
        del self.agent.options['placement']
        self.agent.configure({'agent': {'nova': None}})
        self.assertIn('there is no [placement] section', self.migrate(code=1).stderr)

    def test_exit_codes(self):
        self.migrate(code=1)
        self.migrate('--direct', self.agent.folder / 'not-there', code=1)
        empty = self.agent.folder / 'empty'
        empty.mkdir()
        (empty / 'placement.conf').write_text('[placement_database]\nconnection = nonsense\n')
        self.migrate('--direct', empty, code=4)
        self.placement.start()
        self.agent.start()
        self.assertIn('stop the agent first', self.migrate(code=3).stderr)
