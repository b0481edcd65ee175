# SPDX-License-Identifier: LGPL-2.1-or-later
"""libvirt starts and stops many guests at the same time, each with the hook ("make soak-hook": 50 guests).

Placement and the agent can fail during that time. At the end claims and allocations are exactly those of the running guests.
"""

import concurrent.futures
import itertools
import os
import random
import statistics
import sys

from tests.env import faults
from tests.env.agent import build_folder
from tests.env.scratch import wait_until
from tests.integration.hook.hook_case import HookCase
from tests.integration.claims.placement_case import TROUBLES

GUESTS = int(os.environ.get('COMPUTE_AGENT_GUESTS', '6'))
KILLS = int(os.environ.get('COMPUTE_AGENT_KILLS', '2'))
CPUS = 64  # VCPU of the demo host, with its ratio
GUEST = {'VCPU': 1, 'MEMORY_MB': 16}

# Runs the hook as libvirt does, and writes the duration of each call to a file.
TIMED = '''#!/bin/bash
begin=${EPOCHREALTIME/./}
(exec -a compute-agent %s "$@")
code=$?
echo "$2 $((${EPOCHREALTIME/./} - begin)) $code" >>%s
exit $code
'''


class TestCrowd(HookCase):
    options = {'DEFAULT': {'update_resources_interval': 1, 'claim_expiry_time': 300}}

    @classmethod
    def hook_program(cls):
        folder = cls.scratch.folder('timed')
        cls.times = folder / 'times'
        program = folder / 'hook'
        program.write_text(TIMED % (build_folder() / 'computectl', cls.times))
        program.chmod(0o755)
        return program

    def at_once(self, function, names):
        with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
            return dict(zip(names, pool.map(function, names)))

    def define_all(self, n=GUESTS, **kwargs):
        return {name: self.define(name, **kwargs)
                for name in ['guest-%d' % i for i in range(n)]}

    def start_all(self, guests):
        """Returns the guests that started, and {name: error message} of the failed starts."""
        words = self.at_once(self.start, list(guests))
        started = {name: guests[name] for name in guests if not words[name]}
        self.assertEqual(set(self.libvirtd.virsh('list', '--name').split()), set(started))
        return started, {name: said for name, said in words.items() if said}

    def stop_all(self, names):
        self.at_once(lambda name: self.libvirtd.virsh('destroy', name, timeout=120), list(names))
        self.assertEqual(self.libvirtd.virsh('list', '--name').split(), [])

    def check_claims(self, consumers):
        """Checks that each consumer has one confirmed claim, and that there are no other claims."""
        claims = self.agent.claims()
        self.assertEqual(sorted(claim['consumer'] for claim in claims), sorted(consumers),
                         self.agent.log()[-3000:])
        self.assertEqual({claim['state'] for claim in claims}, {'confirmed'} if claims else set())

    def check_all(self, consumers, resources):
        self.check_claims(consumers)
        self.wait_allocations({consumer: resources for consumer in consumers})
        root = self.agent.root()
        used = self.placement.get('/resource_providers/%s/usages' % root)['usages']
        self.assertEqual({name: amount for name, amount in used.items() if amount},
                         {name: amount * len(consumers) for name, amount in resources.items()
                          if consumers})
        self.assertEqual(self.agent.ctl('audit', check=False).returncode, 0)

    def report(self, what):
        """Prints the durations of the calls since the last report."""
        lines = [line.split() for line in self.times.read_text().splitlines()]
        self.times.write_text('')
        for operation in ('prepare', 'started', 'release'):
            took = sorted(int(usec) / 1e3 for name, usec, _ in lines if name == operation)
            if 'COMPUTE_AGENT_GUESTS' in os.environ and took:
                print('%s: %d times %s: median %.0f ms, longest %.0f ms' % (
                    what, len(took), operation, statistics.median(took), took[-1]), file=sys.stderr)

    # Starts and stops all guests with these faults. Exactly room guests must start.
    def run_crowd(self, what, *faults_, vcpus=1, room=GUESTS):
        guests = self.define_all(vcpus=vcpus, memory_mib=16)
        for fault in faults_:
            self.proxy.add(fault)
        started, refused = self.start_all(guests)
        self.assertEqual(len(started), room, refused)
        self.assertEqual(['no capacity' in said for said in refused.values()], [True] * len(refused))
        self.check_claims(started.values())
        self.report(what)
        self.proxy.clear()
        self.check_all(started.values(), {'VCPU': vcpus, 'MEMORY_MB': 16})
        for fault in faults_:
            self.proxy.add(fault)
        self.stop_all(started)
        self.check_claims([])
        self.report(what)
        self.proxy.clear()
        self.check_all([], GUEST)

    def test_all_of_them(self):
        self.run_crowd('all is well')

    def test_never_more_than_there_is(self):
        vcpus = -(-CPUS * 3 // (2 * GUESTS))
        self.run_crowd('too many', vcpus=vcpus, room=min(GUESTS, CPUS // vcpus))

    def test_placement_fails_now_and_then(self):
        self.run_crowd('Placement fails', faults.server_error(every=3), faults.Cut('after', every=4),
                       faults.Cut('before', every=5))

    def in_trouble(self, fault, act, guests, consumers):
        """Starts or stops guests while requests fail. libvirt notices nothing, and Placement has the right allocations in the end.
        Returns whether the fault occurred."""
        expected = {consumer: GUEST for consumer in consumers}
        with self.proxy.fault(fault):
            act(guests)
            self.check_claims(consumers)
            wait_until(lambda: fault.hits or self.allocations() == expected, 60, 'the trouble, or to be past it')
        self.check_all(consumers, GUEST)
        return fault.hits > 0

    def test_placement_fails_at_each_request(self):
        """The requests are those of the start and the stop of two guests."""
        whole, dice = 'COMPUTE_AGENT_GUESTS' in os.environ, random.Random(os.environ.get('COMPUTE_AGENT_SEED', '1'))
        guests = self.define_all(2, memory_mib=16)
        for name, trouble in TROUBLES.items() if whole else [dice.choice(list(TROUBLES.items()))]:
            for n in itertools.count() if whole else [dice.randrange(4)]:
                hits = None
                with self.subTest(trouble=name, n=n):
                    hits = [self.in_trouble(trouble(skip=n), act, guests, consumers)
                            for act, consumers in ((self.start_all, guests.values()), (self.stop_all, []))]
                if hits is None:
                    return
                if not any(hits):
                    break
            if whole:
                print('%s: two guests at once, at each of %d requests' % (name, n), file=sys.stderr)

    def test_placement_hangs(self):
        """libvirt does not wait for Placement."""
        self.run_crowd('Placement hangs', faults.Hang())

    def expire_after(self, seconds):
        """Sets claim_expiry_time for the next start of the agent, until the test ends."""
        before = {'DEFAULT': {'claim_expiry_time': self.options['DEFAULT']['claim_expiry_time']}}
        self.addCleanup(self.agent.restart)
        self.addCleanup(self.agent.configure, before)
        self.agent.configure({'DEFAULT': {'claim_expiry_time': seconds}})

    def test_the_agent_is_killed_meanwhile(self):
        guests = self.define_all(memory_mib=16)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            starting = pool.submit(self.start_all, guests)
            for _ in range(KILLS):
                self.agent.kill()
                self.agent.start()
            started, refused = starting.result()
        # With "allow", a guest starts without an answer, and a poll finds it.
        self.assertEqual((len(started), refused), (GUESTS, {}))
        wait_until(lambda: len(self.agent.claims()) == GUESTS, 60, 'the claims')
        wait_until(lambda: {one['state'] for one in self.agent.claims()} == {'confirmed'}, 60, 'all')
        self.agent.wait_state('synced')
        self.check_claims(started.values())
        # A guest that a poll finds running gets no allocation. A guest that claimed in time gets one.
        self.assertLessEqual(set(self.allocations()), set(started.values()))
        self.expire_after(5)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            stopping = pool.submit(self.stop_all, started)
            for _ in range(KILLS):
                self.agent.kill()
                self.agent.start()
            stopping.result()
        # The agent did not learn of these stops. Their claims end after claim_expiry_time.
        wait_until(lambda: self.agent.claims() == [], 60, 'the claims to end')
        self.agent.wait_state('synced')
        self.check_all([], GUEST)
