# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs a private RabbitMQ with its own epmd, both on loopback."""

import os
import socket

from tests.env.scratch import free_port
from tests.env.service import Service, connects

_SERVER = '/usr/lib/rabbitmq/bin/rabbitmq-server'
_GREETING = b'AMQP\x00\x00\x09\x01'


class RabbitMQ(Service):
    """RabbitMQ on a port that stays the same from start to start."""

    name = 'rabbitmq'

    def __init__(self, scratch=None):
        super().__init__(scratch)
        self.port, self._epmd_port, self._peer_port = free_port(), free_port(), free_port()
        self._epmd = None

    @property
    def url(self):
        """Returns the URL for oslo.messaging."""
        return 'rabbit://guest:guest@127.0.0.1:%d/' % self.port

    def _env(self):
        folder = self.folder
        return {
            **os.environ, 'HOME': str(folder), 'LC_ALL': 'C.UTF-8', 'ERL_EPMD_PORT': str(self._epmd_port),
            'ERL_EPMD_ADDRESS': '127.0.0.1', 'RABBITMQ_NODENAME': 'cloud%d@localhost' % self.port,
            'RABBITMQ_NODE_IP_ADDRESS': '127.0.0.1', 'RABBITMQ_NODE_PORT': str(self.port),
            'RABBITMQ_DIST_PORT': str(self._peer_port), 'RABBITMQ_MNESIA_BASE': str(folder / 'mnesia'),
            'RABBITMQ_LOG_BASE': str(folder / 'log'), 'RABBITMQ_PID_FILE': str(folder / 'pid'),
            'RABBITMQ_CONFIG_FILE': str(folder / 'rabbitmq'), 'RABBITMQ_CONF_ENV_FILE': str(folder / 'env.conf'),
            'RABBITMQ_ENABLED_PLUGINS_FILE': str(folder / 'plugins'),
            'RABBITMQ_FEATURE_FLAGS_FILE': str(folder / 'flags'),
            'RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS':
                '-kernel inet_dist_use_interface {127,0,0,1} +S 1:1 +sbwt none +sbwtdcpu none +sbwtdio none'}

    def _spawn(self):
        if not (self._epmd and self._epmd.alive()):
            # Without this epmd the server would start one that outlives it.
            self._epmd = self.scratch.spawn(
                ['epmd', '-port', self._epmd_port, '-address', '127.0.0.1'], 'epmd', self.folder)
            self._epmd.wait_ready(lambda: connects(self._epmd_port), 10, 'epmd')
        return self.scratch.spawn([_SERVER], 'rabbitmq', self.folder, env=self._env(), cwd=self.folder)

    def answers(self):
        """Returns whether the server answers the greeting of AMQP."""
        with socket.create_connection(('127.0.0.1', self.port), 2) as sock:
            sock.sendall(_GREETING)
            return sock.recv(1) == b'\x01'

    def close(self):
        if self._epmd:
            self._epmd.kill()
            self._epmd = None
        super().close()
