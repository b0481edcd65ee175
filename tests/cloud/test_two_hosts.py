# SPDX-License-Identifier: LGPL-2.1-or-later
"""Servers that move between two hosts, through Nova's API, with the agent below both nova-computes."""

from tests.cloud.case import FLAVOR, LARGER, SECONDS, CloudCase
from tests.env.scratch import wait_until


class TestTwoHosts(CloudCase):
    n_hosts = 2
    nova_options = {'DEFAULT': {'allow_resize_to_same_host': 'false'}}

    def setUp(self):
        super().setUp()
        self.here, self.there = self.hosts

    def at(self, host, *servers, amounts=FLAVOR):
        return {server: (host, amounts) for server in servers}

    def test_cold_migration_reverted_and_confirmed(self):
        server = self.boot(host=self.here)
        self.agree(self.at(self.here, server))
        self.cloud.act(server, 'migrate', None, 'VERIFY_RESIZE')
        self.cloud.act(server, 'revertResize', None, 'ACTIVE')
        self.agree(self.at(self.here, server))
        self.cloud.act(server, 'migrate', None, 'VERIFY_RESIZE')
        self.cloud.act(server, 'confirmResize', None, 'ACTIVE')
        self.agree(self.at(self.there, server))

    def test_live_migration(self):
        server = self.boot(host=self.here)
        self.agree(self.at(self.here, server))
        self.cloud.act(server, 'os-migrateLive', {'host': None, 'block_migration': 'auto'})
        wait_until(lambda: self.cloud.server(server)['OS-EXT-SRV-ATTR:host'] == self.there.name, SECONDS,
                   'the server to be on the other host', step=0.5)
        self.cloud.wait_status(server, 'ACTIVE')
        self.agree(self.at(self.there, server))

    def test_resize_to_the_other_host_reverted_and_confirmed(self):
        server = self.boot(host=self.here)
        self.cloud.act(server, 'resize', {'flavorRef': 'large'}, 'VERIFY_RESIZE')
        self.cloud.act(server, 'revertResize', None, 'ACTIVE')
        self.agree(self.at(self.here, server))
        self.cloud.act(server, 'resize', {'flavorRef': 'large'}, 'VERIFY_RESIZE')
        self.cloud.act(server, 'confirmResize', None, 'ACTIVE')
        self.agree(self.at(self.there, server, amounts=LARGER))

    def test_evacuation_and_the_return_of_the_dead_host(self):
        server = self.boot(host=self.here)
        self.agree(self.at(self.here, server))
        service = '/os-services/' + self.cloud.get(
            '/os-services?binary=nova-compute&host=' + self.here.name)['services'][0]['id']
        self.here.compute.kill()
        self.here.agent.kill()
        self.here.libvirtd.destroy_guests()
        self.cloud.nova('PUT', service, {'forced_down': True})
        self.cloud.act(server, 'evacuate', {}, 'ACTIVE')
        self.here.agent.start()
        self.here.start_compute(wait=False)
        # refused until nova-compute has looked what was evacuated
        wait_until(lambda: self.cloud.nova('PUT', service, {'forced_down': False}).status == 200, SECONDS,
                   'Nova to take the host back', step=1)
        self.here.compute.wait_ready()
        self.agree(self.at(self.there, server))

    def test_a_drained_host_gives_away_five_servers_of_one_size(self):
        servers = [self.cloud.create('vm%d' % number, 'small', self.here.name) for number in range(5)]
        for server in servers:
            self.cloud.wait_status(server, 'ACTIVE')
        self.agree(self.at(self.here, *servers))
        for server in servers:
            self.cloud.act(server, 'migrate')
        for server in servers:
            self.cloud.wait_status(server, 'VERIFY_RESIZE')
        for server in servers:
            self.cloud.act(server, 'confirmResize')
        for server in servers:
            self.cloud.wait_status(server, 'ACTIVE')
        self.agree(self.at(self.there, *servers))
