# SPDX-License-Identifier: LGPL-2.1-or-later
"""Servers change through Nova's API while the agent, nova-compute or Placement is down."""

import time

from tests.cloud.case import FLAVOR, LARGER, SECONDS, CloudCase
from tests.env.scratch import wait_until

TRAIT = 'COMPUTE_STATUS_DISABLED'


class TestOutages(CloudCase):
    # A periodic task searches for servers that Nova deleted while nova-compute was down.
    agent_options = {'DEFAULT': {'claim_expiry_time': 4}}
    nova_options = {'DEFAULT': {'running_deleted_instance_poll_interval': 5}}

    def empty(self):
        self.all_up()
        super().empty()

    def all_up(self):
        self.cloud.placement.start()
        self.host.force_down(False)
        self.host.start_compute()
        self.host.agent.start()

    def synced_again(self):
        self.host.agent.start()
        self.host.agent.wait_state('synced', SECONDS)

    def test_the_agent_is_down(self):
        deleted, stopped, resized = [self.boot(name) for name in ('deleted', 'stopped', 'resized')]
        self.agree(self.here(deleted, stopped, resized))
        self.host.agent.kill()
        self.cloud.delete(deleted)
        self.cloud.act(stopped, 'os-stop', None, 'SHUTOFF')
        self.cloud.act(resized, 'resize', {'flavorRef': 'large'}, 'VERIFY_RESIZE')
        self.cloud.act(resized, 'confirmResize', None, 'ACTIVE')
        booted = self.boot('booted')
        self.synced_again()
        self.agree({**self.here(stopped, booted), **self.here(resized, amounts=LARGER)},
                   {stopped: False, booted: True, resized: True})

    def test_nova_compute_is_down(self):
        """Nova does not know that nova-compute is down, so the request waits in its queue."""
        server = self.boot()
        self.agree(self.here(server))
        self.host.compute.kill()
        self.cloud.delete(server, wait=False)
        self.host.start_compute()
        self.agree({})

    def test_nova_compute_is_known_to_be_down(self):
        """Nova deletes its record at once. The guest runs until nova-compute is back, and keeps its claim."""
        server, other = self.boot(), self.boot('other')
        self.agree(self.here(server, other))
        self.host.compute.kill()
        self.host.force_down(True)
        self.cloud.delete(server)
        self.assertNotIn(server, self.of_placement()[self.host.name])
        self.host.agent.ctl('sync')
        self.assertIn(server, self.host.domains())
        self.assertEqual(self.of_claims()[self.host.name][server], FLAVOR)
        found = [finding for finding in self.findings(self.host) if finding['consumer'] == server]
        self.assertNotIn('write-claim', [finding['remedy'] for finding in found])
        self.host.agent.ctl('heal', check=False)
        self.assertNotIn(server, self.of_placement()[self.host.name])
        self.host.force_down(False)
        self.host.start_compute()
        self.agree(self.here(other))

    def test_the_service_is_enabled_while_nova_compute_is_down(self):
        """Nova's API leaves the trait to nova-compute then. The trait of a cordon stays."""
        def is_disabled():
            return TRAIT in self.cloud.placement.tree(self.host.agent.root())[self.host.agent.root()]['traits']
        self.addCleanup(self.host.enable, True)
        self.addCleanup(self.host.agent.ctl, 'uncordon', check=False)
        self.host.enable(False)
        wait_until(is_disabled, SECONDS, 'the trait')
        self.host.compute.kill()
        self.host.force_down(True)
        self.host.enable(True)
        self.assertTrue(is_disabled())
        self.host.force_down(False)
        self.host.start_compute()
        wait_until(lambda: not is_disabled(), SECONDS, 'the trait to go')
        self.host.agent.ctl('cordon')
        time.sleep(12)  # two periods of nova-compute
        self.host.agent.ctl('sync')
        self.assertTrue(is_disabled())
        self.assertEqual(self.host.agent.status()['second_reporter'], '')
        self.host.agent.ctl('uncordon')
        self.agree(self.here(self.boot()))

    def test_placement_is_down_and_the_root_has_nothing_of_the_server(self):
        deleted = self.boot('deleted')
        self.addCleanup(self.reshape, self.host, 'false')
        self.reshape(self.host, 'true')
        self.agree(self.here(deleted))
        self.assertNotIn(self.host.agent.root(), self.cloud.placement.get('/allocations/' + deleted)['allocations'])
        self.cloud.placement.stop()
        self.cloud.delete(deleted)
        self.cloud.placement.start()
        self.assertIn(deleted, self.of_placement()[self.host.name])
        self.agree({})

    def test_placement_is_down(self):
        deleted, stopped = self.boot('deleted'), self.boot('stopped')
        self.agree(self.here(deleted, stopped))
        self.cloud.placement.stop()
        self.cloud.delete(deleted)
        self.cloud.act(stopped, 'os-stop', None, 'SHUTOFF')
        self.assertIn(stopped, self.of_claims()[self.host.name])
        self.cloud.placement.start()
        self.host.agent.wait_state('synced', SECONDS)
        self.agree(self.here(stopped), runs=False)
