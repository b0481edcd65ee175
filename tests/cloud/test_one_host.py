# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests the life of servers on one host through Nova's API, with the agent below nova-compute."""

from tests.cloud.case import LARGER, CloudCase


class TestOneHost(CloudCase):
    def test_boot_stop_start_reboot_rebuild_delete(self):
        server = self.boot()
        self.agree(self.here(server))
        self.cloud.act(server, 'os-stop', None, 'SHUTOFF')
        self.agree(self.here(server), runs=False)
        self.cloud.act(server, 'os-start', None, 'ACTIVE')
        self.agree(self.here(server))
        self.cloud.act(server, 'reboot', {'type': 'HARD'}, 'ACTIVE')
        self.agree(self.here(server))
        self.cloud.act(server, 'rebuild', {'imageRef': self.cloud.image()}, 'ACTIVE')
        self.agree(self.here(server))
        self.cloud.delete(server)
        self.agree({})

    def test_resize_reverted_and_confirmed(self):
        server = self.boot()
        self.cloud.act(server, 'resize', {'flavorRef': 'large'}, 'VERIFY_RESIZE')
        self.cloud.act(server, 'revertResize', None, 'ACTIVE')
        self.agree(self.here(server))
        self.cloud.act(server, 'resize', {'flavorRef': 'large'}, 'VERIFY_RESIZE')
        self.cloud.act(server, 'confirmResize', None, 'ACTIVE')
        self.agree(self.here(server, amounts=LARGER))
