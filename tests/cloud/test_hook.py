# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs the flows of one host and of two hosts again with libvirt's hook, which calls the agent before each
start."""

from tests.cloud import test_one_host, test_two_hosts

HOOK = {'hook': {'enabled': 'true', 'timeout': 20}}


class TestOneHostWithHook(test_one_host.TestOneHost):
    agent_options = HOOK

    def set_away(self, what):
        self.host.agent.configure({'hook': {'when_agent_is_away': what}})
        self.host.agent.ctl('reload')

    def test_boot_while_the_agent_is_away(self):
        self.addCleanup(self.host.agent.start)
        self.host.agent.kill()
        server = self.boot()
        self.host.agent.start()
        self.agree(self.here(server))

    def test_boot_is_refused_while_the_agent_is_away(self):
        self.addCleanup(self.set_away, 'allow')
        self.addCleanup(self.host.agent.start)
        self.set_away('deny')
        self.host.agent.kill()
        server = self.cloud.create('vm', 'small')
        self.cloud.wait_status(server, 'ERROR')
        self.host.agent.start()
        self.cloud.delete(server)
        self.agree({})


class TestTwoHostsWithHook(test_two_hosts.TestTwoHosts):
    agent_options = HOOK
