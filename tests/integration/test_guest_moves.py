# SPDX-License-Identifier: LGPL-2.1-or-later
"""Running guests that are placed, resized, moved between two hosts, evacuated and deleted, while Placement fails.

Two real libvirtds, each with its agent, and one real Placement. What the layer above does is written down as a course of steps. In
each course one request of the agents meets trouble: it and all that follow fail until the step has ended, or it is answered with a
conflict. A step that failed is done again. In the end Placement, claims and guests have to say the same, whichever request it was.

COMPUTE_AGENT_MOVES=all walks over every request of each course and every kind of trouble ("make soak-moves"); a number is how many
are tried of each course, taken at random from COMPUTE_AGENT_SEED. The names are those of the facts (F4, F8).
"""

import concurrent.futures
import json
import os
import random
import unittest
import uuid

from tests.env import faults
from tests.env.agent import Agent
from tests.env.bus import Bus
from tests.env.fakesys import simple_host
from tests.env.libvirtd import Libvirtd
from tests.env.placement import Placement
from tests.env.proxy import Proxy
from tests.env.scratch import EnvError, Scratch, wait_until

HOW_MANY = os.environ.get('COMPUTE_AGENT_MOVES', '1')
SEED = int(os.environ.get('COMPUTE_AGENT_SEED', '1'))
TROUBLES = {
    'cut before': lambda n: faults.Cut('before', skip=n),
    'cut after': lambda n: faults.Cut('after', skip=n),
    '500': lambda n: faults.server_error(skip=n),
    '409': lambda n: faults.conflict(skip=n, times=1),
}
GUEST = {'VCPU': 1, 'MEMORY_MB': 32}
LARGER = {'VCPU': 2, 'MEMORY_MB': 48}
# No course sends as many.
REQUESTS_MAX = 60


class Host:
    """A libvirtd with two GPUs, and its agent."""

    def __init__(self, scratch, endpoint, name, libvirtd=None, compute_id=None):
        self.libvirtd = libvirtd or Libvirtd(simple_host(gpus=2, name=name), scratch)
        if not libvirtd:
            self.libvirtd.start()
            scratch.on_close(self.libvirtd.destroy_guests)
        self.bus = Bus(scratch)
        self.bus.start()
        self.agent = Agent(scratch, endpoint, self.libvirtd.uri, self.bus, {
            'DEFAULT': {'claim_expiry_time': 3600, 'update_resources_interval': 3600},
            'agent': {'start_jitter_sec': 0}})
        if compute_id:
            (self.agent.state / 'compute_id').write_text(compute_id + '\n')
        self.agent.start()
        self.agent.wait_state('synced')
        self.root = self.agent.root()

    def claim(self, guest, amounts, *more):
        resources = ','.join('%s=%d' % item for item in amounts.items())
        return self.agent.ctl_json('claim', '--consumer', guest, '--resources', resources, *more)

    def claims(self):
        return {(claim['consumer'], claim['state']) for claim in self.agent.ctl_json('claims')['claims']}

    def guests(self):
        names = self.libvirtd.virsh('list', '--all', '--name').split()
        return {self.libvirtd.virsh('domuuid', name).strip() for name in names}

    def start_guest(self, guest, amounts):
        self.libvirtd.start_guest(guest[:8], amounts['MEMORY_MB'], amounts['VCPU'], uuid=guest)

    def delete_guest(self, guest):
        self.libvirtd.virsh('destroy', guest, check=False)
        self.libvirtd.virsh('undefine', guest)

    def clean(self):
        """Nothing is promised, and nothing runs."""
        if not self.agent.status():
            self.agent.start()
            self.agent.wait_state('synced')
        if not self.guests() and not self.claims():
            return
        self.libvirtd.destroy_guests()
        for guest in self.guests():
            self.libvirtd.virsh('undefine', guest)
        self.agent.ctl('sync')
        for claim in self.agent.ctl_json('claims')['claims']:
            self.agent.ctl('release', claim['id'])


class MoveCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = Scratch()
        cls.addClassCleanup(cls.scratch.close)
        cls.placement = Placement(cls.scratch)
        cls.placement.start()
        cls.proxy = Proxy(cls.placement.port).listen()
        cls.scratch.on_close(cls.proxy.close)
        cls.here = Host(cls.scratch, cls.proxy.endpoint, 'compute-1')
        cls.there = Host(cls.scratch, cls.proxy.endpoint, 'compute-2')
        cls.hosts = (cls.here, cls.there)
        for host in cls.hosts:
            host.tree = cls.placement.tree_by_name(host.root)
            host.vgpus = {provider['uuid']: provider['inventories']['VGPU']['total']
                          for provider in host.tree.values() if 'VGPU' in provider['inventories']}

    @classmethod
    def api(cls, method, path, body=None):
        answer = cls.placement.request(method, path, body, record=False)
        assert answer.status < 300, (method, path, answer.status, answer.text)
        return answer.json

    def held(self, consumer):
        found = self.api('GET', '/allocations/' + consumer)['allocations']
        return {provider: item['resources'] for provider, item in found.items()}

    def consumers(self):
        """Everybody who holds something of the two hosts."""
        found = set()
        for host in self.hosts:
            for provider in host.tree.values():
                found |= set(self.api('GET', '/resource_providers/%s/allocations' %
                                      provider['uuid'])['allocations'])
        return found

    def place(self, consumer, held):
        """What a scheduler writes."""
        now = self.api('GET', '/allocations/' + consumer)
        self.api('PUT', '/allocations/' + consumer, {
            'allocations': {provider: {'resources': amounts} for provider, amounts in held.items()},
            'project_id': 'project', 'user_id': 'user', 'consumer_type': 'INSTANCE',
            'consumer_generation': now.get('consumer_generation')})

    def clean(self):
        self.proxy.clear()
        self.proxy.listen()
        for host in self.hosts:
            host.clean()
        for consumer in self.consumers():
            self.placement.request('DELETE', '/allocations/' + consumer, record=False)


class TestCourses(MoveCase):
    def setUp(self):
        self.trouble = None
        self.addCleanup(self.clean)

    # The layer above

    def step(self, act, *args):
        """Do it; when it fails for the trouble, do it again behind that."""
        try:
            return act(*args)
        except EnvError:
            if not (self.trouble and self.trouble.hits):
                raise
            self.end_trouble()
            return wait_until(lambda: self.attempt(act, *args), 30, 'the step to go well')[0]
        finally:
            if self.trouble and self.trouble.hits:
                self.end_trouble()

    @staticmethod
    def attempt(act, *args):
        try:
            return (act(*args),)
        except EnvError:
            return None

    def end_trouble(self):
        if self.trouble:
            self.proxy.clear()
            self.trouble = None
            for host in self.hosts:
                if host.agent.status():
                    host.agent.ctl('sync', check=False)

    def claim(self, host, amounts, *more):
        return self.step(host.claim, self.guest, amounts, *more)['id']

    def run_here(self, host, claim, amounts):
        host.start_guest(self.guest, amounts)
        self.step(host.agent.ctl, 'confirm', claim)

    def move(self, host, source, target):
        return self.step(host.agent.ctl_json, 'move', source, target)['id']

    def release(self, host, claim, *more):
        self.step(host.agent.ctl, 'release', claim, *more)

    def vgpu(self, consumer, host):
        """The one of the host's GPUs that it holds something of."""
        return [provider for provider in self.held(consumer) if provider in host.vgpus]

    # What came of it

    def agree(self, held, claims):
        """held: {consumer: (host, amounts, number of vGPUs)}; claims: {(host, consumer)}. Empty when all is as it should be."""
        wrong = []
        for consumer, parts in held.items():
            found = self.held(consumer)
            expected = {host.root: amounts for host, amounts, _ in parts}
            vgpus = sum(n for _, _, n in parts)
            if {p: r for p, r in found.items() if p in expected} != expected or \
                    sum(r.get('VGPU', 0) for r in found.values()) != vgpus or \
                    any('VGPU' not in r for p, r in found.items() if p not in expected):
                wrong.append((consumer, found))
        if self.consumers() != {consumer for consumer, parts in held.items() if parts}:
            wrong.append(('consumers', self.consumers()))
        for host in self.hosts:
            expected = {(consumer, 'confirmed') for at, consumer in claims if at is host}
            if host.claims() != expected:
                wrong.append((host.root, host.claims()))
            if host.guests() != {consumer for at, consumer in claims if at is host}:
                wrong.append((host.root, host.guests()))
        return wrong

    def end(self, held, claims):
        self.proxy.clear()
        self.trouble = None
        for host in self.hosts:
            host.agent.ctl('sync')
        try:
            wait_until(lambda: not self.agree(held, claims), 30, 'all to agree')
        except EnvError:
            self.fail('%s\n%s' % (self.agree(held, claims), self.here.agent.log()[-3000:]))
        mark = self.placement.mark()
        for host in self.hosts:
            done = host.agent.ctl('audit', '--json=short')
            self.assertEqual(json.loads(done.stdout)['findings'], [])
        self.assertEqual(self.placement.writes_since(mark), [])

    # Courses

    def course_placed_by_a_scheduler(self):
        self.place(self.guest, {self.here.root: GUEST, next(iter(self.here.vgpus)): {'VGPU': 1}})
        claim = self.claim(self.here, {**GUEST, 'VGPU': 1})
        self.run_here(self.here, claim, GUEST)
        yield {self.guest: [(self.here, GUEST, 1)]}, {(self.here, self.guest)}
        self.here.delete_guest(self.guest)
        self.release(self.here, claim, '--allocations')
        yield {self.guest: []}, set()

    def course_claimed_by_the_agent_in_isolated_groups(self):
        """F4: two groups that are isolated get one GPU each."""
        done = self.step(self.here.claim, self.guest, GUEST, '--group', '_A:VGPU=1', '--group',
                         '_B:VGPU=1', '--isolate')
        self.assertEqual(len({device['device'] for device in done['devices']}), 2)
        self.run_here(self.here, done['id'], GUEST)
        yield {self.guest: [(self.here, GUEST, 2)]}, {(self.here, self.guest)}
        self.assertEqual(sorted(self.vgpu(self.guest, self.here)), sorted(self.here.vgpus))
        self.here.delete_guest(self.guest)
        self.release(self.here, done['id'])
        yield {self.guest: []}, set()

    def begin_resize(self):
        old = self.claim(self.here, {**GUEST, 'VGPU': 1})
        self.run_here(self.here, old, GUEST)
        self.assertEqual(self.move(self.here, self.guest, self.migration), old)
        new = self.claim(self.here, {**LARGER, 'VGPU': 1})
        self.here.delete_guest(self.guest)
        self.run_here(self.here, new, LARGER)
        self.step(self.here.agent.ctl, 'sync')
        return old, new

    def course_1879878_resized_here_and_confirmed(self):
        """With a cycle before the confirmation and one behind it."""
        old, new = self.begin_resize()
        self.release(self.here, old)
        self.step(self.here.agent.ctl, 'sync')
        yield {self.guest: [(self.here, LARGER, 1)], self.migration: []}, {(self.here, self.guest)}
        self.here.delete_guest(self.guest)
        self.release(self.here, new)
        yield {self.guest: []}, set()

    def course_1953359_resized_here_and_reverted(self):
        """An agent that starts in the middle of it counts both sizes, and both GPUs' shares."""
        old, new = self.begin_resize()
        self.here.agent.kill()
        self.here.agent.start()
        self.step(self.here.agent.wait_state, 'synced', 15)
        self.step(self.here.agent.ctl, 'sync')
        self.assertEqual(self.here.claims(), {(self.guest, 'confirmed'), (self.migration, 'confirmed')})
        self.assertEqual([self.held(consumer)[self.here.root] for consumer in (self.migration, self.guest)],
                         [GUEST, LARGER])
        self.release(self.here, new)
        self.here.delete_guest(self.guest)
        self.assertEqual(self.move(self.here, self.migration, self.guest), old)
        self.here.start_guest(self.guest, GUEST)
        yield {self.guest: [(self.here, GUEST, 1)], self.migration: []}, {(self.here, self.guest)}

    def migrate(self, source, target, old, live):
        self.assertEqual(self.move(source, self.guest, self.migration), old)
        new = self.claim(target, {**GUEST, 'VGPU': 1})
        if live:
            # The guest is in both places for a while; a cycle of the source sees it without its claim.
            self.step(source.agent.ctl, 'sync')
            source.libvirtd.virsh('migrate', self.guest, target.libvirtd.uri,
                                  'unix://%s' % (self.scratch.path / 'migrate'), '--live',
                                  '--undefinesource', '--persistent', timeout=120)
        else:
            source.delete_guest(self.guest)
            target.start_guest(self.guest, GUEST)
        self.step(target.agent.ctl, 'confirm', new)
        self.release(source, old)
        return new

    def there_and_back(self, live):
        claim = self.claim(self.here, {**GUEST, 'VGPU': 1})
        self.run_here(self.here, claim, GUEST)
        claim = self.migrate(self.here, self.there, claim, live)
        yield {self.guest: [(self.there, GUEST, 1)], self.migration: []}, {(self.there, self.guest)}
        self.migrate(self.there, self.here, claim, live)
        yield {self.guest: [(self.here, GUEST, 1)], self.migration: []}, {(self.here, self.guest)}

    def course_migrated_cold_to_another_host_and_back(self):
        return self.there_and_back(live=False)

    def course_1849165_migrated_live_to_another_host_and_back(self):
        return self.there_and_back(live=True)

    def course_1825537_a_start_on_the_other_host_that_fails(self):
        old = self.claim(self.here, {**GUEST, 'VGPU': 1})
        self.run_here(self.here, old, GUEST)
        self.move(self.here, self.guest, self.migration)
        new = self.claim(self.there, {**GUEST, 'VGPU': 1})
        self.release(self.there, new, '--reason', 'finish_resize failed')
        self.assertEqual(self.move(self.here, self.migration, self.guest), old)
        yield {self.guest: [(self.here, GUEST, 1)], self.migration: []}, {(self.here, self.guest)}

    def course_1848343_deleted_while_its_migration_is_rolled_back(self):
        old = self.claim(self.here, {**GUEST, 'VGPU': 1})
        self.run_here(self.here, old, GUEST)
        self.move(self.here, self.guest, self.migration)
        new = self.claim(self.there, {**GUEST, 'VGPU': 1})
        # The API removes what the instance has; what is left is found where it is.
        self.here.delete_guest(self.guest)
        self.placement.request('DELETE', '/allocations/' + self.guest, record=False)
        self.release(self.there, new)
        self.step(self.here.agent.ctl, 'sync')
        self.release(self.here, old)
        yield {self.guest: [], self.migration: []}, set()

    def course_1896463_evacuated_and_the_dead_host_comes_back(self):
        old = self.claim(self.here, {**GUEST, 'VGPU': 1})
        self.run_here(self.here, old, GUEST)
        self.here.agent.kill()
        self.here.libvirtd.destroy_guests()
        new = self.claim(self.there, {**GUEST, 'VGPU': 1})
        self.run_here(self.there, new, GUEST)
        self.step(self.there.agent.ctl, 'sync')
        self.here.agent.start()
        self.step(self.here.agent.wait_state, 'synced', 15)
        self.step(self.here.agent.ctl, 'sync')
        self.here.delete_guest(self.guest)
        self.release(self.here, old, '--reason', 'evacuated')
        yield {self.guest: [(self.there, GUEST, 1)]}, {(self.there, self.guest)}
        self.there.delete_guest(self.guest)
        self.release(self.there, new)
        yield {self.guest: []}, set()

    def course_1862633_2025480_shelved_and_an_unshelve_that_fails(self):
        """With a cycle in the middle of each unshelve."""
        claim = self.claim(self.here, GUEST)
        self.run_here(self.here, claim, GUEST)
        self.here.delete_guest(self.guest)
        self.release(self.here, claim, '--reason', 'shelved')
        failed = self.claim(self.there, GUEST)
        self.step(self.there.agent.ctl, 'sync')
        self.release(self.there, failed, '--reason', 'unshelve failed')
        claim = self.claim(self.here, GUEST)
        self.step(self.here.agent.ctl, 'sync')
        self.run_here(self.here, claim, GUEST)
        yield {self.guest: [(self.here, GUEST, 0)]}, {(self.here, self.guest)}

    def course_1679750_deleted_while_the_agent_is_down(self):
        claim = self.claim(self.here, {**GUEST, 'VGPU': 1})
        self.run_here(self.here, claim, GUEST)
        self.here.agent.stop()
        self.here.delete_guest(self.guest)
        self.here.agent.start()
        self.step(self.here.agent.wait_state, 'synced', 15)
        self.release(self.here, claim)
        yield {self.guest: []}, set()

    def course_1679750_deleted_while_placement_is_down(self):
        claim = self.claim(self.here, {**GUEST, 'VGPU': 1})
        self.run_here(self.here, claim, GUEST)
        self.proxy.refuse()
        try:
            self.here.delete_guest(self.guest)
            self.here.agent.ctl('release', claim)
            self.here.agent.ctl('sync', check=False)
            self.assertNotEqual(self.held(self.guest), {})
        finally:
            self.proxy.listen()
        self.step(self.here.agent.ctl, 'sync')
        yield {self.guest: []}, set()

    def test_two_agents_for_the_last_vgpu(self):
        """Two services of one host, each with books of its own; a guest runs with all of the rest."""
        second = Host(self.scratch, self.proxy.endpoint, 'compute-1', self.here.libvirtd, self.here.root)
        self.addCleanup(second.agent.stop)
        (first, n_first), (last, n_last) = self.here.vgpus.items()
        self.guest = str(uuid.uuid4())
        self.place(self.guest, {self.here.root: GUEST, first: {'VGPU': n_first}})
        self.place(str(uuid.uuid4()), {last: {'VGPU': n_last - 1}})
        self.here.start_guest(self.guest, GUEST)
        hang = self.proxy.add(faults.Hang(method='PUT', path='^/allocations/', times=2))
        racers = [str(uuid.uuid4()) for _ in range(2)]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            claims = [pool.submit(agent.ctl, 'claim', '--consumer', racer, '--resources', 'VGPU=1',
                                  check=False)
                      for agent, racer in zip((self.here.agent, second.agent), racers)]
            try:
                wait_until(lambda: hang.hits == 2, 20, 'both to write')
            finally:
                hang.release()
            done = [claim.result() for claim in claims]
        self.assertEqual(sorted(one.returncode for one in done), [0, 1])
        winner = [one.returncode for one in done].index(0)
        self.assertIn('Placement has no candidate', done[1 - winner].stderr)
        self.assertEqual([self.held(racer) for racer in (racers[winner], racers[1 - winner])],
                         [{last: {'VGPU': 1}}, {}])

    def take(self, course, trouble, n):
        """Returns whether the trouble came, from the n-th request on."""
        self.guest, self.migration = str(uuid.uuid4()), str(uuid.uuid4())
        fault = self.trouble = self.proxy.add(TROUBLES[trouble](n))
        for held, claims in course():
            self.end(held, claims)
            # What has not come yet may come later in the course.
            if not fault.hits:
                self.trouble = self.proxy.add(fault)
        return fault.hits > 0

    def walk(self, course):
        done = 0
        for trouble in TROUBLES:
            for n in range(REQUESTS_MAX):
                with self.subTest(trouble=trouble, n=n):
                    hit = self.take(course, trouble, n)
                    self.clean()
                if not hit:
                    break
                done += 1
        print('%s: %d requests failed' % (course.__name__[len('course_'):], done), flush=True)
        self.assertGreater(done, len(TROUBLES))

    def sample(self, course):
        dice = random.Random('%d %s' % (SEED, course.__name__))
        for _ in range(int(HOW_MANY)):
            trouble, n = dice.choice(list(TROUBLES)), dice.randrange(6)
            with self.subTest(trouble=trouble, n=n):
                self.take(course, trouble, n)
                self.clean()


def _make_test(course):
    def test(self):
        (self.walk if HOW_MANY == 'all' else self.sample)(getattr(self, course))
    return test


for _name in [name for name in vars(TestCourses) if name.startswith('course_')]:
    setattr(TestCourses, _name.replace('course_', 'test_', 1), _make_test(_name))


if __name__ == '__main__':
    unittest.main()
