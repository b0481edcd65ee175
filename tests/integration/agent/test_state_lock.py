# SPDX-License-Identifier: LGPL-2.1-or-later
"""One agent uses a state folder. A second agent of the same folder exits before it changes anything."""

import uuid

from tests.env.agent import Agent
from tests.env.bus import Bus
from tests.env.case import EnvCase
from tests.env.hosts import recorded_host

BUSY = 75


class TestStateLock(EnvCase):
    def setUp(self):
        self.first, self.second = self.make_agent(), self.make_agent()
        self.second.configure({'agent': {'state_dir': self.first.state}})

    def make_agent(self):
        agent = Agent(self.scratch, self.placement, bus=Bus(self.scratch).start(), host=recorded_host('locked'), options={
            'DEFAULT': {'update_resources_interval': 60}})
        self.addCleanup(agent.stop)
        return agent

    def picture(self):
        """Returns times and contents of all files of the state folder that a second agent could have written."""
        return {path.name: (path.stat().st_mtime_ns, path.read_bytes())
                for path in sorted(self.first.state.iterdir()) if not path.name.endswith('-shm')}

    def expect_busy(self, done):
        self.assertEqual(done.returncode, BUSY, done.stderr)
        self.assertIn('Process %d already uses this state folder' % self.first.child.pid,
                      done.stderr)

    def test_a_second_agent_ends_with_the_pid_of_the_first_and_touches_nothing(self):
        self.first.start('synced')
        self.first.claim('VCPU=1')
        before = self.picture()
        self.expect_busy(self.second.run())
        self.expect_busy(self.second.run('--once'))
        self.assertEqual(self.picture(), before)
        self.assertEqual(len(self.first.claims()), 1)

    def test_a_dry_run_looks_beside_the_agent(self):
        self.first.start('synced')
        self.second.run('--dry-run', code=0)

    def test_a_killed_agent_leaves_no_lock(self):
        for _ in range(3):
            self.first.start()
            self.first.kill()
        self.second.start('synced')

    def test_the_identity_is_not_replaced_below_a_running_agent(self):
        """computectl has no bus here, so it cannot see the agent. The lock rejects the change."""
        self.first.start('synced')
        before = self.first.root()
        (self.first.state / 'compute_id').write_text(str(uuid.uuid4()) + '\n')
        changed = self.first.root()
        done = self.second.ctl('identity', 'adopt', '--force', '--config', self.second.config,
                               check=False)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn('Process %d already uses' % self.first.child.pid, done.stdout + done.stderr)
        self.assertEqual(self.first.root(), changed)
        self.first.stop()
        self.second.ctl('identity', 'adopt', '--force', '--config', self.second.config)
        self.assertEqual(self.first.root(), before)
