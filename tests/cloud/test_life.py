# SPDX-License-Identifier: LGPL-2.1-or-later
"""Servers that are shelved, deleted softly, or booted all at once, with the agent below nova-compute."""

from tests.cloud.case import SECONDS, CloudCase

BOOTS = 20
SETTLED = ('ACTIVE', 'ERROR')


class TestLife(CloudCase):
    # soft deletion as such; and what is shelved stays on its host until somebody offloads it
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
        """Nova keeps what a server has for as long as it may be restored."""
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
        """{server: status} when none of them is being built."""
        for server in servers:
            self.cloud.wait_status(server, *SETTLED, seconds=5 * SECONDS)
        return {server: self.cloud.server(server)['status'] for server in servers}

    def test_many_boots_at_once(self):
        servers = [self.cloud.create('vm%d' % number, 'small') for number in range(BOOTS)]
        self.assertEqual(set(self.settled(servers).values()), {'ACTIVE'})
        self.agree(self.here(*servers), seconds=5 * SECONDS)

    def test_more_boots_at_once_than_there_is_room_for(self):
        """8 CPUs of ratio 4: what does not fit is refused, and what fits has its own."""
        self.cloud.flavor('wide', vcpus=8, ram=64)
        servers = [self.cloud.create('vm%d' % number, 'wide') for number in range(6)]
        told = self.settled(servers)
        self.assertEqual(sorted(told.values()), ['ACTIVE'] * 4 + ['ERROR'] * 2)
        self.agree(self.here(*(server for server in servers if told[server] == 'ACTIVE'),
                             amounts={'VCPU': 8, 'MEMORY_MB': 64}))
