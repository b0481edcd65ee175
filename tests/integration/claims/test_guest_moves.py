# SPDX-License-Identifier: LGPL-2.1-or-later
"""Running guests are placed, resized, moved between two hosts, evacuated and deleted, while Placement fails.

Two libvirtds, each with its agent, and Placement are real. A course is a sequence of steps of the layer above. Trouble begins at
the n-th request of each step. This request and all later ones of the step fail, or it is answered with a conflict. A failed step is
repeated without trouble. At the end Placement, claims and guests must agree for each n.

COMPUTE_AGENT_MOVES=all runs each course with each kind of trouble and n = 0, 1, … until no step sends that many requests ("make
soak-moves"). Every request of every step then met every kind. With "alone", one step of a course has trouble. A number is the
number of runs of each course, chosen at random by COMPUTE_AGENT_SEED. The names are those of the facts (F4, F8).
"""

import concurrent.futures
import contextlib
import os
import random
import uuid

from tests.env import faults
from tests.env.agent import Agent
from tests.env.bus import Bus
from tests.env.fakesys import simple_host
from tests.env.libvirtd import Libvirtd, guest_xml
from tests.env.scratch import EnvError, EnvTimeout, wait_until
from tests.integration.claims.placement_case import TROUBLES, PlacementCase

HOW_MANY = os.environ.get('COMPUTE_AGENT_MOVES', '1')
SEED = int(os.environ.get('COMPUTE_AGENT_SEED', '1'))
GUEST = {'VCPU': 1, 'MEMORY_MB': 32}
LARGER = {'VCPU': 2, 'MEMORY_MB': 48}
# More requests than any step or course sends.
REQUESTS_MAX = 60


class Host:
    """A libvirtd with two GPUs, and its agent."""

    def __init__(self, scratch, endpoint, name, libvirtd=None, compute_id=None):
        self.libvirtd = libvirtd or Libvirtd(simple_host(gpus=2, name=name), scratch)
        if not libvirtd:
            self.libvirtd.start()
            scratch.on_close(self.libvirtd.destroy_guests)
        self.bus = Bus(scratch).start()
        self.agent = Agent(scratch, endpoint, self.libvirtd.uri, self.bus, {
            'DEFAULT': {'claim_expiry_time': 3600, 'update_resources_interval': 3600},
            'agent': {'start_jitter_sec': 0}})
        if compute_id:
            (self.agent.state / 'compute_id').write_text(compute_id + '\n')
        self.agent.start('synced')
        self.root = self.agent.root()

    def claim(self, guest, amounts, *more):
        resources = ','.join('%s=%d' % item for item in amounts.items())
        return self.agent.ctl_json('claim', '--consumer', guest, '--resources', resources, *more)

    def claims(self):
        return {(claim['consumer'], claim['state']) for claim in self.agent.claims()}

    def guests(self):
        return set(self.libvirtd.virsh('list', '--all', '--uuid').split())

    def start_guest(self, guest, amounts):
        self.libvirtd.define(guest_xml(guest[:8], amounts['MEMORY_MB'], amounts['VCPU'], uuid=guest))
        self.libvirtd.virsh('start', guest, timeout=90)

    def delete_guest(self, guest):
        self.libvirtd.virsh('destroy', guest, check=False)
        self.libvirtd.virsh('undefine', guest)

    def clean(self):
        """Removes all guests and releases all claims."""
        if not self.agent.running():
            self.agent.start('synced')
        if not self.guests() and not self.claims():
            return
        self.libvirtd.delete_guests()
        self.agent.ctl('sync')
        self.agent.release_all()


class MoveCase(PlacementCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.here = Host(cls.scratch, cls.proxy.endpoint, 'compute-1')
        cls.there = Host(cls.scratch, cls.proxy.endpoint, 'compute-2')
        cls.hosts = (cls.here, cls.there)
        for host in cls.hosts:
            host.tree = cls.placement.tree_by_name(host.root)
            host.vgpus = {provider['uuid']: provider['inventories']['VGPU']['total']
                          for provider in host.tree.values() if 'VGPU' in provider['inventories']}

    def consumers(self):
        """Returns all consumers with allocations on the two hosts."""
        providers = {provider['uuid'] for host in self.hosts for provider in host.tree.values()}
        return {consumer for consumer, held in self.placement.all_held().items() if held.keys() & providers}

    def at_once(self, act):
        """Runs act for all hosts in parallel, and returns the results in the order of the hosts."""
        with concurrent.futures.ThreadPoolExecutor(len(self.hosts)) as pool:
            return list(pool.map(act, self.hosts))

    def clean(self):
        self.proxy.clear()
        self.proxy.listen()
        self.at_once(Host.clean)
        self.delete_consumers(*(provider['uuid'] for host in self.hosts for provider in host.tree.values()))


class TestCourses(MoveCase):
    def setUp(self):
        self.trouble = self.make_trouble = None
        self.everywhere = True
        self.n_hits = 0
        self.addCleanup(self.clean)

    # The layer above

    def step(self, act, *args):
        """Runs a step. If trouble makes it fail, it is repeated without trouble."""
        self.begin_trouble()
        try:
            return act(*args)
        except EnvError:
            if not self.in_trouble():
                raise
            self.end_trouble()
            return wait_until(lambda: self.attempt(act, *args), 30, 'the step to go well')[0]
        finally:
            if self.in_trouble():
                self.end_trouble()

    @staticmethod
    def attempt(act, *args):
        try:
            return (act(*args),)
        except EnvError:
            return None

    def begin_trouble(self):
        """Begins the trouble of the next step. Requests after the answer, as a removal, belong to the step before."""
        if self.in_trouble():
            self.end_trouble()
        if self.make_trouble and (self.everywhere or not (self.trouble or self.n_hits)):
            self.proxy.clear()
            self.trouble = self.proxy.add(self.make_trouble())

    def in_trouble(self):
        return self.trouble is not None and self.trouble.hits > 0

    def forget_trouble(self):
        self.n_hits += self.in_trouble()
        self.proxy.clear()
        self.trouble = None

    def end_trouble(self):
        self.forget_trouble()
        self.at_once(lambda host: host.agent.running() and host.agent.ctl('sync', check=False))

    def start_agent(self, host):
        self.step(self.come_up, host.agent)

    def come_up(self, agent):
        """Starts the agent once. Its first cycle can fail because of the trouble."""
        agent.start()
        state = wait_until(lambda: self.state_after_start(agent), 30, 'the first cycle')
        if state != 'synced':
            raise EnvError(state)

    def state_after_start(self, agent):
        state = agent.status().get('sync_state')
        return state if state == 'synced' or state != 'pending' and self.in_trouble() else None

    def claim(self, host, amounts, *more):
        return self.step(host.claim, self.guest, amounts, *more)['id']

    def run_here(self, host, claim, amounts):
        host.start_guest(self.guest, amounts)
        self.step(host.agent.ctl, 'confirm', claim)

    def move(self, host, source, target):
        return self.step(host.agent.ctl_json, 'move', source, target)['id']

    def release(self, host, claim, *more):
        self.step(self.release_and_tell, host, claim, *more)

    def release_and_tell(self, host, claim, *more):
        """Releases a claim and waits until Placement has no allocation. The agent checks a removal with an unknown result for
        minutes, so trouble ends the wait."""
        host.agent.ctl('release', claim, *more)
        with contextlib.suppress(EnvTimeout):
            wait_until(lambda: self.in_trouble() or not host.agent.status()['n_pending_removals'], 1, 'the removal')

    def vgpu(self, consumer, host):
        """Returns the GPUs of the host on which the consumer has an allocation."""
        return [provider for provider in self.held(consumer) if provider in host.vgpus]

    # The result of a course

    def agree(self, held, claims):
        """Returns the differences from held, {consumer: (host, amounts, number of vGPUs)}, and from claims, {(host, consumer)}."""
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
        for host, found in zip(self.hosts, self.at_once(lambda host: (host.claims(), host.guests()))):
            guests = {consumer for at, consumer in claims if at is host}
            if found != ({(guest, 'confirmed') for guest in guests}, guests):
                wrong.append((host.root, found))
        return wrong

    def end(self, held, claims):
        self.forget_trouble()
        self.at_once(lambda host: host.agent.ctl('sync'))
        try:
            wait_until(lambda: not self.agree(held, claims), 30, 'all to agree')
        except EnvError:
            self.fail('%s\n%s' % (self.agree(held, claims), self.here.agent.log()[-3000:]))

    def audit(self):
        mark = self.placement.mark()
        for done in self.at_once(lambda host: host.agent.ctl_json('audit')):
            self.assertEqual(done['findings'], [])
        self.assertEqual(self.placement.writes_since(mark), [])

    # Courses

    # Each course yields (held, claims) of agree() whenever Placement, claims and guests must agree.
    def course_placed_by_a_scheduler(self):
        self.place(self.guest, {self.here.root: GUEST, next(iter(self.here.vgpus)): {'VGPU': 1}})
        claim = self.claim(self.here, {**GUEST, 'VGPU': 1})
        self.run_here(self.here, claim, GUEST)
        yield {self.guest: [(self.here, GUEST, 1)]}, {(self.here, self.guest)}
        self.here.delete_guest(self.guest)
        self.release(self.here, claim, '--allocations')
        yield {self.guest: []}, set()

    def course_claimed_by_the_agent_in_isolated_groups(self):
        """F4: each of two isolated groups gets a GPU of its own."""
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
        """One cycle runs before the confirmation and one after it."""
        old, new = self.begin_resize()
        self.release(self.here, old)
        self.step(self.here.agent.ctl, 'sync')
        yield {self.guest: [(self.here, LARGER, 1)], self.migration: []}, {(self.here, self.guest)}
        self.here.delete_guest(self.guest)
        self.release(self.here, new)
        yield {self.guest: []}, set()

    def course_1953359_resized_here_and_reverted(self):
        """An agent that starts during the resize counts both sizes and both vGPUs."""
        old, new = self.begin_resize()
        self.here.agent.kill()
        self.start_agent(self.here)
        self.step(self.here.agent.ctl, 'sync')
        self.assertEqual(self.here.claims(), {(self.guest, 'confirmed'), (self.migration, 'confirmed')})
        self.assertEqual([self.held(consumer)[self.here.root] for consumer in (self.migration, self.guest)],
                         [GUEST, LARGER])
        self.release(self.here, new)
        self.here.delete_guest(self.guest)
        self.assertEqual(self.move(self.here, self.migration, self.guest), old)
        self.here.start_guest(self.guest, GUEST)
        yield {self.guest: [(self.here, GUEST, 1)], self.migration: []}, {(self.here, self.guest)}

    # Moves the guest to the target, live or cold, and returns its claim there.
    def migrate(self, source, target, old, live):
        self.assertEqual(self.move(source, self.guest, self.migration), old)
        new = self.claim(target, {**GUEST, 'VGPU': 1})
        if live:
            # The guest is on both hosts for a while. A cycle of the source sees it without its claim.
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
        # The API removes the allocations of the instance. The claims on both hosts end afterwards.
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
        self.start_agent(self.here)
        self.step(self.here.agent.ctl, 'sync')
        self.here.delete_guest(self.guest)
        self.release(self.here, old, '--reason', 'evacuated')
        yield {self.guest: [(self.there, GUEST, 1)]}, {(self.there, self.guest)}
        self.there.delete_guest(self.guest)
        self.release(self.there, new)
        yield {self.guest: []}, set()

    def course_1862633_2025480_shelved_and_an_unshelve_that_fails(self):
        """A cycle runs in the middle of each unshelve."""
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
        self.start_agent(self.here)
        self.release(self.here, claim)
        yield {self.guest: []}, set()

    def course_1679750_deleted_while_placement_is_down(self):
        claim = self.claim(self.here, {**GUEST, 'VGPU': 1})
        self.run_here(self.here, claim, GUEST)
        with self.proxy.refusing():
            self.here.delete_guest(self.guest)
            self.here.agent.ctl('release', claim)
            self.here.agent.ctl('sync', check=False)
            self.assertNotEqual(self.held(self.guest), {})
        self.step(self.here.agent.ctl, 'sync')
        yield {self.guest: []}, set()

    def second_agent(self):
        """Starts another agent for the first host, with a claim database of its own."""
        second = Host(self.scratch, self.proxy.endpoint, 'compute-1', self.here.libvirtd, self.here.root)
        self.addCleanup(second.agent.stop)
        return second

    def promise_nothing_alone(self, *hosts):
        """Makes claims wait for Placement. Otherwise both agents could grant the same device during an outage, each from its own
        database."""
        for host in hosts:
            self.addCleanup(host.agent.restart)
            self.addCleanup(host.agent.configure, {'agent': {'claim_mode': None}})
            host.agent.configure({'agent': {'claim_mode': 'write'}})
            host.agent.restart('synced')

    def race(self, racers):
        """Returns the consumer that got the VGPU, and checks that no second one got it."""
        with concurrent.futures.ThreadPoolExecutor(len(racers)) as pool:
            done = list(pool.map(lambda one: one[1].agent.ctl(
                'claim', '--consumer', one[0], '--resources', 'VGPU=1', check=False), racers.items()))
        winners = [racer for racer, one in zip(racers, done) if one.returncode == 0]
        self.assertLessEqual(len(winners), 1)
        if not winners:
            raise EnvError(''.join(one.stderr for one in done))
        return winners[0]

    def course_two_agents_for_the_last_vgpu_of_all(self):
        if len(self.hosts) == 2:
            second = self.second_agent()
            second.tree = self.here.tree
            self.hosts = (*self.hosts, second)
            self.addCleanup(delattr, self, 'hosts')
            self.promise_nothing_alone(self.here, second)
        second, crowd = self.hosts[2], str(uuid.uuid4())
        (first, n_first), (last, n_last) = self.here.vgpus.items()
        self.place(crowd, {first: {'VGPU': n_first}, last: {'VGPU': n_last - 1}})
        racers = {self.guest: self.here, self.migration: second}
        winner = self.step(self.race, racers)
        loser, = set(racers) - {winner}
        self.forget_trouble()
        again = racers[loser].agent.claim('VGPU=1', loser, check=False)
        self.assertEqual((again.returncode, 'other consumers have allocations of the free resources in Placement' in again.stderr), (1, True), again.stderr)
        self.assertEqual([self.held(one) for one in (winner, loser)], [{last: {'VGPU': 1}}, {}])
        self.assertEqual([len(host.claims()) for host in racers.values()],
                         [int(one == winner) for one in racers])
        self.placement.request('DELETE', '/allocations/' + crowd, record=False)
        self.release(racers[winner], racers[winner].agent.claims()[0]['id'])
        yield {one: [] for one in racers}, set()

    def test_two_agents_for_the_last_vgpu(self):
        """A running guest has all vGPUs of one GPU, and another consumer has all but one of the other GPU."""
        second = self.second_agent()
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
        self.assertIn('other consumers have allocations of the free resources in Placement', done[1 - winner].stderr)
        self.assertEqual([self.held(racer) for racer in (racers[winner], racers[1 - winner])],
                         [{last: {'VGPU': 1}}, {}])

    def take(self, course, trouble, n):
        """Runs a course with trouble at the n-th request of each step or, with "alone", of the course. Returns the number of steps
        that met the trouble."""
        self.guest, self.migration = str(uuid.uuid4()), str(uuid.uuid4())
        self.trouble, self.n_hits = None, 0
        self.everywhere = HOW_MANY != 'alone'
        # The agent might still check earlier guests. Requests for those consumers are excluded.
        match = {'skip': n, 'path': '^/(?!allocations/(?!%s|%s))' % (self.guest, self.migration)}
        fault = TROUBLES[trouble](**match)
        self.make_trouble = (lambda: TROUBLES[trouble](**match)) if self.everywhere else (lambda: fault)
        for held, claims in course():
            self.end(held, claims)
        self.audit()
        self.make_trouble = None
        return self.n_hits

    # Runs a course with each kind of trouble and n = 0, 1, … until no step sends that many requests.
    def walk(self, course):
        for trouble in TROUBLES:
            requests = 0
            for n in range(REQUESTS_MAX):
                hits = None
                with self.subTest(trouble=trouble, n=n):
                    hits = self.take(course, trouble, n)
                self.clean()
                if hits == 0:
                    break
                requests += hits or 0
            print('%s, %s: trouble at %d requests in %d walks' % (
                course.__name__[len('course_'):], trouble, requests, n), flush=True)
            self.assertGreater(n, 0)

    # Runs a course HOW_MANY times with random trouble.
    def sample(self, course):
        dice = random.Random('%d %s' % (SEED, course.__name__))
        for number in range(int(HOW_MANY)):
            if number > 0:
                self.clean()
            trouble, n = dice.choice(list(TROUBLES)), dice.randrange(4)
            with self.subTest(trouble=trouble, n=n):
                self.take(course, trouble, n)


def _make_test(course):
    def test(self):
        (self.walk if HOW_MANY in ('all', 'alone') else self.sample)(getattr(self, course))
    return test


for _name in [name for name in vars(TestCourses) if name.startswith('course_')]:
    setattr(TestCourses, _name.replace('course_', 'test_', 1), _make_test(_name))
