# SPDX-License-Identifier: LGPL-2.1-or-later
"""The identity of this host in Placement: "computectl identity", a name that is taken, and child providers that Nova created."""

import json
import subprocess
import uuid

from tests.env.agent import Agent
from tests.env.case import EnvCase
from tests.env.hosts import recorded_cells, recorded_host
from tests.env.scratch import wait_until


class IdentityCase(EnvCase):
    """One Placement for all tests. Each test has a host with its own name and a child provider for each cell."""

    shared = ('scratch', 'placement', 'bus')

    def setUp(self):
        self.name = 'host-' + uuid.uuid4().hex[:8]
        self.agent = Agent(self.scratch, self.placement, bus=self.bus, host=self.host(self.name), options={
            'compute': {'numa_in_placement': 'true'}})
        self.addCleanup(self.agent.stop)

    def host(self, name):
        return recorded_host(name, cells=recorded_cells())

    def provider(self, name, parent=None):
        """Creates a provider with a random uuid, as Nova does."""
        return self.placement.make_provider(name, parent=parent)

    def identity(self, *args, code=0):
        done = self.agent.ctl('identity', *args, '--config', self.agent.config, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code == 0 else done.stdout + done.stderr

    def document(self):
        return json.loads(self.identity('show', '--json=short'))

    def names(self, root):
        return {provider['name']: provider['uuid']
                for provider in self.placement.tree(root).values()}


class TestShow(IdentityCase):
    def test_from_a_new_host_to_a_published_one(self):
        before = self.document()
        self.assertEqual((before['state'], before['uuid'], before['file'], before['own']),
                         ('new', '', '', None))
        self.assertFalse((self.agent.state / 'compute_id').exists())
        self.identity('check', code=1)
        self.assertEqual(self.agent.run('--once').returncode, 0)
        after = self.document()
        self.assertEqual((after['state'], after['name'], after['uuid'], after['below']),
                         ('good', self.name, self.agent.root(), 2))
        self.assertEqual(after['file'], str(self.agent.state / 'compute_id'))
        self.assertEqual(after['own']['consumers'], 0)
        self.assertEqual(after['own']['generation'],
                         self.placement.tree(self.agent.root())[self.agent.root()]['generation'])
        self.assertGreater(after['own']['modified_usec'], 1e15)
        self.identity('check')
        text = self.identity('show')
        for word in (self.agent.root(), str(self.agent.state / 'compute_id'), self.name,
                     'used by 0 consumers', 'changed '):
            self.assertIn(word, text)

    def test_with_the_agent_running_and_placement_away(self):
        self.agent.start('synced')
        self.identity('check')
        self.assertIn('the agent of this host is running', self.identity('adopt', code=1).lower())
        self.agent.stop()
        endpoint = self.agent.options['placement']['endpoint_override']
        self.agent.configure({'placement': {'endpoint_override': 'http://127.0.0.1:1'}})
        away = self.document()
        self.assertEqual((away['state'], away['uuid']), ('unknown', self.agent.root()))
        self.assertIn('127.0.0.1:1', away['placement_error'])
        self.identity('check', code=1)
        self.identity('rename', code=1)
        self.agent.configure({'placement': {'endpoint_override': endpoint}})

    def test_wrong_use(self):
        for args, words in ((('shwo',), 'Did you mean "show"'), (('show', '--force'), '--force'),
                            (('check', '--dry-run'), '--dry-run'), ((), 'missing')):
            with self.subTest(args):
                self.assertIn(words, self.identity(*args, code=2))


class TestAdopt(IdentityCase):
    def test_e3_a_name_that_is_taken_is_explained_and_adopted(self):
        """After a new installation the old provider of the host is still in Placement, with allocations."""
        old = self.provider(self.name)
        cells = [self.provider('%s_NUMA%d' % (self.name, cell), old) for cell in range(2)]
        self.placement.set_part(old, 'inventories', {'VCPU': {'total': 8}})
        self.placement.place(None, {old: {'VCPU': 1}})
        self.agent.start('stale')
        error = self.agent.status()['sync_error']
        for word in (old, '1 consumer has allocations', 'last changed', 'computectl identity adopt'):
            self.assertIn(word, error)
        doctor = self.agent.ctl('doctor', '--all', '--config', self.agent.config, check=False).stdout
        self.assertRegex(doctor, r'bad +identity +The name %s belongs to provider %s' % (
            self.name, old))
        self.agent.stop()
        own = self.agent.root()
        self.assertIn('--force', self.identity('adopt', code=1))
        self.assertIn(old, self.identity('adopt', '--force', '--dry-run'))
        self.assertEqual(self.agent.root(), own)
        self.identity('check', code=1)
        self.identity('adopt', '--force')
        self.assertEqual(self.agent.root(), old)
        self.identity('check')
        mark = self.placement.mark()
        self.agent.start('synced')
        # The agent keeps the uuids of Nova's children, and does not create them again.
        self.assertEqual(self.names(old), {
            self.name: old, self.name + '_NUMA0': cells[0], self.name + '_NUMA1': cells[1]})
        self.assertEqual([line for line in self.placement.requests_since(mark)
                          if line[2] == 409 or line[:2] == ('POST', '/resource_providers')], [])

    def test_a2_before_the_first_start_no_force_is_needed(self):
        old = self.provider(self.name)
        self.assertIn('computectl identity adopt', self.identity('check', code=1))
        self.identity('adopt')
        self.assertEqual(self.agent.root(), old)
        self.assertEqual(self.agent.run('--once').returncode, 0)
        self.assertEqual(self.names(old)[self.name], old)
        self.assertIn('already', self.identity('adopt', code=1))

    def test_claims_follow(self):
        """Claims from before the adoption name the adopted provider afterwards."""
        self.agent.configure({'placement': {'endpoint_override': 'http://127.0.0.1:1'}})
        self.agent.start()
        wait_until(lambda: self.agent.status().get('n_providers') == 3, 30, 'the first poll')
        self.agent.claim('VCPU=2')
        self.agent.ctl('confirm', '1')
        self.agent.stop()
        old = self.provider(self.name)
        for cell in range(2):
            self.provider('%s_NUMA%d' % (self.name, cell), old)
        self.agent.configure({'placement': {'endpoint_override': self.placement.endpoint}})
        self.identity('adopt', '--force')
        self.agent.start('synced')
        claim = self.agent.ctl_json('show', 1)
        self.assertLessEqual({item['provider'] for item in claim['allocations']},
                             set(self.names(old).values()))
        self.assertEqual(self.agent.status()['n_providers'], 3)

    def test_a_child_of_another_root_and_no_provider(self):
        self.assertIn('nothing to adopt', self.identity('adopt', code=1))
        parent = self.provider('parent-of-' + self.name)
        self.provider(self.name, parent)
        self.assertIn('not a host', self.identity('adopt', code=1))
        self.assertEqual(self.document()['state'], 'taken-below')
        self.assertFalse((self.agent.state / 'compute_id').exists())

    def test_an_operators_file_is_not_written(self):
        old = self.provider(self.name)
        mine = str(uuid.uuid4())
        path = self.agent.config.parent / 'compute_id'
        path.write_text(mine)
        for options in (['--dry-run'], []):
            self.assertIn(str(path), self.identity('adopt', '--force', *options, code=1))
        self.assertEqual(path.read_text(), mine)
        path.write_text(old)
        self.identity('adopt', code=1)
        self.assertEqual(self.document()['state'], 'good')


class TestRename(IdentityCase):
    def test_a2_a_host_that_was_renamed(self):
        self.assertEqual(self.agent.run('--once').returncode, 0)
        root = self.agent.root()
        old = self.names(root)
        foreign = self.provider('neutron-' + self.name, root)
        new = 'new-' + self.name
        self.agent.record(self.host(new))
        self.agent.start('stale')
        self.assertIn('computectl identity rename', self.agent.status()['sync_error'])
        self.assertIn('"%s"' % self.name, self.identity('check', code=1))
        mark = self.placement.mark()
        plan = self.identity('rename', '--dry-run')
        for name in old:
            self.assertIn(name + ' ', plan.replace('→', ' →'))
        self.assertEqual(self.placement.writes_since(mark), [])
        self.identity('rename')
        self.assertEqual(self.names(root), {
            **{'new-' + name: value for name, value in old.items()},
            'neutron-' + self.name: foreign})
        self.identity('check')
        self.agent.ctl('sync')
        self.agent.wait_state('synced')
        self.assertEqual(len(self.names(root)), 4)
        self.assertIn('already', self.identity('rename', code=1))

    def test_no_allocations_are_written_under_another_name(self):
        """The state folder can be a copy of another host's, whose guests have the allocations."""
        self.agent.start('synced')
        with subprocess.Popen(['sleep', 'infinity']) as guest:
            pid_file = self.agent.folder / 'guest.pid'
            pid_file.write_text('%d\n' % guest.pid)
            old = self.agent.claim('DISK_GB=2', None, '--pid-file', pid_file)['consumer']
            self.agent.ctl('confirm', '1')
            self.agent.stop()
            guest.kill()
        held = self.placement.held(old)
        self.agent.configure({'DEFAULT': {'claim_expiry_time': 1}})
        self.agent.record(self.host('copy-of-' + self.name))
        mark = self.placement.mark()
        self.agent.start('stale')
        wait_until(lambda: not self.agent.claims(old), 30, 'the end of the claim without a guest')
        new = self.agent.claim('DISK_GB=1')['consumer']
        self.agent.ctl('sync', check=False)
        self.assertEqual(self.placement.writes_since(mark), [])
        self.assertEqual(self.placement.held(old), held)
        status = self.agent.status()
        self.assertEqual((status['n_pending_writes'], status['n_pending_removals']), (1, 1), status)
        self.agent.stop()
        self.agent.record(self.host(self.name))
        self.agent.start('synced')
        wait_until(lambda: self.placement.held(new) and not self.placement.held(old), 30, 'the pending work')

    def test_a_clone_does_not_rename_a_host_with_guests(self):
        """The clone has the state folder of a running host. A cell alone has the allocation of a guest there."""
        self.assertEqual(self.agent.run('--once').returncode, 0)
        root, new = self.agent.root(), 'new-' + self.name
        old = self.names(root)
        guest = self.placement.place(None, {old[self.name + '_NUMA1']: {'VCPU': 1}})
        self.agent.record(self.host(new))
        self.assertIn('clone', self.identity('check', code=1))
        for options in ((), ('--dry-run',)):
            self.assertIn('--force', self.identity('rename', *options, code=1))
        self.assertEqual(self.names(root), old)
        self.agent.start('stale')
        self.assertIn('clone', self.agent.status()['sync_error'])
        # Neither the force nor a host that has its name already needs the consumers of the children.
        mark = self.placement.mark()
        self.identity('rename', '--force')
        self.assertEqual(set(self.names(root)), {new, new + '_NUMA0', new + '_NUMA1'})
        self.assertIn('already', self.identity('rename', code=1))
        cell = '/resource_providers/%s/allocations' % old[self.name + '_NUMA1']
        self.assertFalse([line for line in self.placement.requests_since(mark) if line[1].endswith(cell)])
        self.placement.delete(guest)

    def test_cut_short_it_goes_on(self):
        """The new name of a child is taken. The root keeps its name, and the next rename finishes the work."""
        self.assertEqual(self.agent.run('--once').returncode, 0)
        root, new = self.agent.root(), 'new-' + self.name
        stranger = self.provider(new + '_NUMA0')
        self.agent.record(self.host(new))
        self.assertIn(self.name + '_NUMA0', self.identity('rename', code=1))
        self.assertIn(self.name, self.names(root))
        self.placement.api('DELETE', '/resource_providers/' + stranger)
        self.identity('rename')
        self.assertEqual(set(self.names(root)), {new, new + '_NUMA0', new + '_NUMA1'})

    def test_the_new_name_is_another_hosts(self):
        self.assertEqual(self.agent.run('--once').returncode, 0)
        new = 'new-' + self.name
        other = self.provider(new)
        self.agent.record(self.host(new))
        self.assertEqual(self.document()['state'], 'twice')
        self.assertIn(other, self.identity('rename', code=1))
        self.assertIn(self.name, self.names(self.agent.root()))
