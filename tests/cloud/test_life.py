# SPDX-License-Identifier: LGPL-2.1-or-later
"""Servers are shelved, deleted softly, or booted at the same time, with the agent below nova-compute."""

from tests.cloud.case import SECONDS, CloudCase

BOOTS = 20
SETTLED = ('ACTIVE', 'ERROR')


class TestLife(CloudCase):
    # Deletion is soft, and a shelved server stays on its host until it is offloaded explicitly.
    nova_options = {'DEFAULT': {'reclaim_instance_interval': 3600, 'shelved_offload_time': -1}}

    def empty(self):
        for server in self.servers():
            self.cloud.act(server, 'forceDelete')
        self.agree({}, seconds=5 * SECONDS)

    def test_shelved_offloaded_and_unshelved(self):
        server = self.boot()
        self.agree(self.here(server))
        self.cloud.act(server, 'shelve', None, 'SHELVED')
        self.agree(self.here(server), runs=False)
        self.cloud.act(server, 'unshelve', None, 'ACTIVE')
        self.agree(self.here(server))
        self.cloud.act(server, 'shelve', None, 'SHELVED')
        self.cloud.act(server, 'shelveOffload', None, 'SHELVED_OFFLOADED')
        self.agree({})
        self.cloud.act(server, 'unshelve', None, 'ACTIVE')
        self.agree(self.here(server))

    def test_suspended_and_paused(self):
        server = self.boot()
        self.cloud.act(server, 'pause', None, 'PAUSED')
        self.agree(self.here(server))
        self.cloud.act(server, 'unpause', None, 'ACTIVE')
        self.cloud.act(server, 'suspend', None, 'SUSPENDED')
        self.agree(self.here(server), runs=False)
        self.cloud.act(server, 'resume', None, 'ACTIVE')
        self.agree(self.here(server))

    def test_deleted_softly_and_restored(self):
        """Nova keeps the allocations of a server as long as it can be restored."""
        server = self.boot()
        self.agree(self.here(server))
        self.cloud.delete(server, wait=False)
        self.cloud.wait_status(server, 'SOFT_DELETED')
        self.agree(self.here(server), runs=False)
        self.cloud.act(server, 'restore', None, 'ACTIVE')
        self.agree(self.here(server))
        self.cloud.delete(server, wait=False)
        self.cloud.wait_status(server, 'SOFT_DELETED')
        self.cloud.act(server, 'forceDelete')
        self.agree({})

    def settled(self, servers):
        """Returns {server: status} when none of the servers is being built."""
        for server in servers:
            self.cloud.wait_status(server, *SETTLED, seconds=5 * SECONDS)
        return {server: self.cloud.server(server)['status'] for server in servers}

    def test_many_boots_at_once(self):
        servers = [self.cloud.create('vm%d' % number, 'small') for number in range(BOOTS)]
        self.assertEqual(set(self.settled(servers).values()), {'ACTIVE'})
        self.agree(self.here(*servers), seconds=5 * SECONDS)

    def test_more_boots_at_once_than_capacity(self):
        """The host has 8 CPUs with a ratio of 4. The servers beyond this capacity fail, and the others
        have their own allocations."""
        self.cloud.flavor('wide', vcpus=8, ram=64)
        servers = [self.cloud.create('vm%d' % number, 'wide') for number in range(6)]
        told = self.settled(servers)
        self.assertEqual(sorted(told.values()), ['ACTIVE'] * 4 + ['ERROR'] * 2)
        self.agree(self.here(*(server for server in servers if told[server] == 'ACTIVE'),
                             amounts={'VCPU': 8, 'MEMORY_MB': 64}))
