# SPDX-License-Identifier: LGPL-2.1-or-later
"""Servers move between two hosts through Nova's API, with the agent below both nova-computes."""

from tests.cloud.case import FLAVOR, LARGER, SECONDS, CloudCase
from tests.env.scratch import wait_until

# The boot code of a guest that writes to 128 of its pages forever: one byte of each page from 0x10000 to 0x8f000.
BUSY = bytes.fromhex('bb0010'    # all:  mov bx, 0x1000
                     '8ec3'      # next: mov es, bx
                     '31ff'      #       xor di, di
                     '26fe05'    # page: inc byte es:[di]
                     '81c70010'  #       add di, 0x1000
                     '75f7'      #       jnz page
                     '81c30010'  #       add bx, 0x1000
                     '81fb0090'  #       cmp bx, 0x9000
                     '75e9'      #       jne next
                     'ebe4')     #       jmp all
# One partition of Linux from the second sector on, because Nova 31 rejects a boot sector without partitions.
PARTITION = bytes.fromhex('80000200' '83000200' '01000000' '01000000')


class TestTwoHosts(CloudCase):
    n_hosts = 2
    # A guest that writes faster than this bandwidth never completes its migration.
    nova_options = {'DEFAULT': {'allow_resize_to_same_host': 'false'}, 'libvirt': {'live_migration_bandwidth': 1}}

    def setUp(self):
        super().setUp()
        self.there = self.hosts[1]

    def over_there(self, *servers, amounts=FLAVOR):
        return {server: (self.there, amounts) for server in servers}

    def test_cold_migration_reverted_and_confirmed(self):
        server = self.boot(host=self.host)
        self.agree(self.here(server))
        self.cloud.act(server, 'migrate', None, 'VERIFY_RESIZE')
        self.cloud.act(server, 'revertResize', None, 'ACTIVE')
        self.agree(self.here(server))
        self.cloud.act(server, 'migrate', None, 'VERIFY_RESIZE')
        self.cloud.act(server, 'confirmResize', None, 'ACTIVE')
        self.agree(self.over_there(server))

    def test_live_migration(self):
        server = self.boot(host=self.host)
        self.agree(self.here(server))
        self.cloud.act(server, 'os-migrateLive', {'host': None, 'block_migration': 'auto'})
        wait_until(lambda: self.cloud.server(server)['OS-EXT-SRV-ATTR:host'] == self.there.name, SECONDS,
                   'the server to be on the other host', step=0.5)
        self.cloud.wait_status(server, 'ACTIVE')
        self.agree(self.over_there(server))

    def test_live_migration_aborted(self):
        busy = self.cloud.upload('busy', (BUSY.ljust(446, b'\0') + PARTITION).ljust(510, b'\0') + b'\x55\xaa' + b'\0' * (1 << 20))
        server = self.cloud.boot('vm', 'small', self.host.name, imageRef=busy)
        self.agree(self.here(server))
        self.cloud.act(server, 'os-migrateLive', {'host': None, 'block_migration': 'auto'})
        path = '/servers/%s/migrations' % server
        moving = wait_until(lambda: [one for one in self.cloud.get(path)['migrations'] if one['status'] == 'running'], SECONDS,
                            'the migration to run', step=0.2)
        wait_until(lambda: server in self.of_claims()[self.there.name], SECONDS, 'the claim of the target', step=0.5)
        self.assertIn(server, self.of_claims()[self.host.name])
        self.assertEqual(self.cloud.nova('DELETE', '%s/%d' % (path, moving[0]['id'])).status, 202)
        self.cloud.wait_status(server, 'ACTIVE')
        # The status is "failed" if Nova polled after libvirt had dropped the result of the job.
        wait_until(lambda: [one['status'] for one in self.cloud.get('/os-migrations?instance_uuid=' + server)['migrations']] in
                   (['cancelled'], ['failed']), SECONDS, 'the migration to be cancelled', step=0.5)
        self.agree(self.here(server))

    def test_resize_to_the_other_host_reverted_and_confirmed(self):
        server = self.boot(host=self.host)
        self.cloud.act(server, 'resize', {'flavorRef': 'large'}, 'VERIFY_RESIZE')
        self.cloud.act(server, 'revertResize', None, 'ACTIVE')
        self.agree(self.here(server))
        self.cloud.act(server, 'resize', {'flavorRef': 'large'}, 'VERIFY_RESIZE')
        self.cloud.act(server, 'confirmResize', None, 'ACTIVE')
        self.agree(self.over_there(server, amounts=LARGER))

    def test_evacuation_and_the_return_of_the_dead_host(self):
        server = self.boot(host=self.host)
        self.agree(self.here(server))
        self.host.compute.kill()
        self.host.agent.kill()
        self.host.libvirtd.destroy_guests()
        self.host.force_down(True)
        self.cloud.act(server, 'evacuate', {}, 'ACTIVE')
        self.host.agent.start()
        self.host.start_compute(wait=False)
        # Nova rejects this until nova-compute has handled the evacuated servers.
        wait_until(lambda: self.host.force_down(False).status == 200, SECONDS,
                   'Nova to take the host back', step=1)
        self.host.compute.wait_ready()
        self.agree(self.over_there(server))

    def test_a_drained_host_gives_away_five_servers_of_one_size(self):
        servers = [self.cloud.create('vm%d' % number, 'small', self.host.name) for number in range(5)]
        for server in servers:
            self.cloud.wait_status(server, 'ACTIVE')
        self.agree(self.here(*servers))
        for server in servers:
            self.cloud.act(server, 'migrate')
        for server in servers:
            self.cloud.wait_status(server, 'VERIFY_RESIZE')
        for server in servers:
            self.cloud.act(server, 'confirmResize')
        for server in servers:
            self.cloud.wait_status(server, 'ACTIVE')
        self.agree(self.over_there(*servers))
