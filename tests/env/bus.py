# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs a private dbus-daemon in place of the system bus."""

import os
import subprocess

from tests.env.service import Service, connects

_CONFIG = '''<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path=%s</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_destination="*"/>
    <allow send_type="method_call"/>
    <allow receive_sender="*"/>
  </policy>
</busconfig>
'''


class Bus(Service):
    """A bus on which every user can own each name and call each method.

    address is a value for DBUS_SYSTEM_BUS_ADDRESS. env() is an environment that has it.
    """

    name = 'bus'

    def __init__(self, scratch=None):
        super().__init__(scratch)
        self.socket_path = str(self.folder / 'bus.sock')
        self._config = self.folder / 'bus.conf'
        self._config.write_text(_CONFIG % self.socket_path)

    @property
    def address(self):
        return 'unix:path=' + self.socket_path

    def open_to_all(self):
        """Lets other users reach the socket through the folders above it."""
        for folder in [self.folder, *self.folder.parents]:
            if not folder.stat().st_mode & 0o001:
                folder.chmod(folder.stat().st_mode | 0o011)

    def env(self):
        return {**os.environ, 'DBUS_SYSTEM_BUS_ADDRESS': self.address}

    def busctl(self, *args, **kwargs):
        """Runs busctl on this bus. Returns the CompletedProcess."""
        return subprocess.run(['busctl', '--address=%s' % self.address, *map(str, args)], capture_output=True, text=True,
                              timeout=60, check=False, **kwargs)

    def call_agent(self, method, *args, **kwargs):
        """Calls a method of the agent. Returns the CompletedProcess of busctl."""
        name = 'org.computeagent.Agent1'
        return self.busctl('call', name, '/org/computeagent/Agent1', name, method, *args, **kwargs)

    def _spawn(self):
        return self.scratch.spawn(
            ['dbus-daemon', '--config-file=%s' % self._config, '--nofork', '--nopidfile',
             '--nosyslog'], 'dbus-daemon', self.folder)

    def answers(self):
        return connects(self.socket_path)
