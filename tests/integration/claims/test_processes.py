# SPDX-License-Identifier: LGPL-2.1-or-later
"""Guests that are processes, which no hypervisor lists. Their claims end with them."""

import subprocess
import time
import uuid

from tests.env.agent import Agent
from tests.env.case import EnvCase
from tests.env.scratch import wait_until

EXPIRY_SEC = 5


class Processes(EnvCase):
    def start_agent(self, driver='linux', placement=None, uri=None, within=()):
        agent = Agent(self.scratch, placement, uri, self.bus, {
            'DEFAULT': {'compute_driver': driver, 'claim_expiry_time': EXPIRY_SEC, 'update_resources_interval': 1}}, within)
        agent.start('synced' if placement else 'standalone')
        agent.ctl('sync')
        return agent

    def start_guest(self):
        """Starts a process, and returns it with the path of its pid file."""
        guest = subprocess.Popen(['sleep', 'infinity'])
        self.addCleanup(guest.wait)
        self.addCleanup(guest.kill)
        path = self.scratch.path / ('guest-%d.pid' % guest.pid)
        path.write_text('%d\n' % guest.pid)
        return guest, path

    def claim(self, agent, path, consumer=None):
        consumer = consumer or str(uuid.uuid4())
        agent.ctl('claim', '--consumer', consumer, '--resources', 'VCPU=1,MEMORY_MB=64', '--pid-file', path)
        return consumer

    def find(self, agent, consumer):
        return next(iter(agent.claims(consumer)), None)

    def wait_confirmed(self, agent, consumer):
        wait_until(lambda: self.find(agent, consumer)['state'] == 'confirmed', 30, 'the claim to be confirmed')

    def wait_gone(self, agent, consumer):
        wait_until(lambda: not self.find(agent, consumer), 60, 'the claim to end')
        ended = next(claim for claim in agent.ctl_json('claims', '--history')['claims'] if claim['consumer'] == consumer)
        self.assertIn('its guest is gone', ended['end_reason'])

    def end(self, guest):
        guest.kill()
        guest.wait()

    def live_and_end(self, agent):
        """Starts three guests. The first ends while the agent runs, and the second while it is down. Returns the third one and its
        consumer."""
        guests = [self.start_guest() for _ in range(3)]
        consumers = [self.claim(agent, path) for _, path in guests]
        for consumer in consumers:
            self.wait_confirmed(agent, consumer)
        self.assertEqual(self.find(agent, consumers[0])['guest'], 'process %d' % guests[0][0].pid)
        self.end(guests[0][0])
        self.wait_gone(agent, consumers[0])
        agent.kill()
        self.end(guests[1][0])
        agent.start()
        self.wait_gone(agent, consumers[1])
        self.assertEqual(self.find(agent, consumers[2])['state'], 'confirmed')
        return consumers[2], guests[2]

    def test_standalone(self):
        agent = self.start_agent()
        consumer, (guest, _) = self.live_and_end(agent)
        # The guest starts again before the claim ends, with another pid.
        again = self.start_guest()
        self.end(guest)
        self.claim(agent, again[1], consumer)
        after = time.monotonic() + EXPIRY_SEC + 3
        while time.monotonic() < after:
            agent.ctl('sync')
            time.sleep(0.5)
        self.assertEqual(self.find(agent, consumer)['guest'], 'process %d' % again[0].pid)

    def test_with_placement(self):
        agent = self.start_agent(placement=self.placement)
        consumer, _ = self.live_and_end(agent)
        path = '/resource_providers/%s/allocations' % agent.root()
        wait_until(lambda: list(self.placement.get(path)['allocations']) == [consumer], 30,
                   'Placement to have the one that lives')

    def test_without_cgroup_v2(self):
        """A host with only cgroup v1 cannot show the state of a unit. Processes are still seen."""
        groups = self.scratch.folder('cgroup')
        (groups / 'cgroup.controllers').touch()
        (groups / 'vm.scope').mkdir()
        (groups / 'vm.scope/cgroup.events').write_text('populated 1\nfrozen 0\n')
        agent = self.start_agent(within=['unshare', '-m', '--propagation', 'private', 'sh', '-ec',
                                         'mount --bind "$0" /sys/fs/cgroup; exec "$@"', str(groups)])

        def claim():
            consumer = str(uuid.uuid4())
            return consumer, self.bus.call_agent(
                'Claim', 'sa(sa{st}asas)a{sv}', consumer, '1', '', '1', 'VCPU', '1', '0', '0', '1', 'control-group', 's', '/vm.scope')
        consumer, done = claim()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.wait_confirmed(agent, consumer)
        for path in (groups / 'cgroup.controllers', groups / 'vm.scope/cgroup.events'):
            path.unlink()
        _, done = claim()
        self.assertIn('This host has no cgroup v2', done.stderr)
        self.live_and_end(agent)  # longer than a claim without a guest is kept
        self.assertEqual(self.find(agent, consumer)['state'], 'confirmed')

    def test_beside_libvirt(self):
        self.live_and_end(self.start_agent('libvirt', uri=self.libvirtd.uri))

    def test_refused(self):
        agent = self.start_agent()
        guest, path = self.start_guest()
        self.end(guest)
        bad = []
        for text in ('x', '-5', '12abc', '0'):
            bad.append(self.scratch.path / ('bad%s.pid' % text))
            bad[-1].write_text(text)
        arguments = ['claim', '--consumer', str(uuid.uuid4()), '--resources', 'VCPU=1']
        for code, options, words in ((1, ['--pid-file', path], 'Process %d does not run' % guest.pid),
                                     *((1, ['--pid-file', each], 'contains no process id') for each in bad),
                                     (1, ['--pid-file', '/nowhere'], 'No such file'),
                                     (2, ['--unit', 'a', '--pid-file', path], 'exclude each other'),
                                     (1, ['--unit', 'a'], 'Cannot ask systemd about a.service')):
            done = agent.ctl(*arguments, *options, code=code)
            self.assertIn(words, done.stderr)
        self.assertEqual(agent.claims(), [])
