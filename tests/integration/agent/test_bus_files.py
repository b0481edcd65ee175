# SPDX-License-Identifier: LGPL-2.1-or-later
"""The D-Bus policy and the interface description, compared with a real bus and the real daemon."""

import os
import unittest
import uuid
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from tests.env.agent import Agent
from tests.env.bus import Bus
from tests.env.fakesys import demo_host
from tests.env.libvirtd import testdriver_xml
from tests.env.scratch import Scratch

ROOT = Path(__file__).resolve().parents[3]
NAME = 'org.computeagent.Agent1'
NODE = '/org/computeagent/Agent1'
OWNER, OTHER = 65534, 1  # uid 65534, in place of the user compute-agent; and daemon

# The rules of Debian's system bus that matter here.
_CONFIG = '''<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>%s</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <deny own="*"/>
    <deny send_type="method_call"/>
    <allow send_type="signal"/>
    <allow send_requested_reply="true" send_type="method_return"/>
    <allow send_requested_reply="true" send_type="error"/>
    <allow receive_type="method_call"/>
    <allow receive_type="method_return"/>
    <allow receive_type="error"/>
    <allow receive_type="signal"/>
    <allow send_destination="org.freedesktop.DBus"/>
    <deny send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus.Debug.Stats"/>
  </policy>
  <policy user="root">
    <allow send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus.Debug.Stats"/>
  </policy>
  <include>%s</include>
</busconfig>
'''


class StrictBus(Bus):
    """A bus that rejects each message that no policy allows. It listens on an abstract address, so every user can connect without
    access to a folder."""

    def __init__(self, scratch=None):
        super().__init__(scratch)
        self._address = 'unix:abstract=compute-agent-test-%s' % uuid.uuid4()
        policy = (ROOT / 'systemd/org.computeagent.Agent1.conf').read_text()
        copy = self.folder / 'policy.conf'
        copy.write_text(policy.replace('user="compute-agent"', 'user="%d"' % OWNER))
        self._config.write_text(_CONFIG % (self._address, copy))

    @property
    def address(self):
        return self._address

    def answers(self):
        return self.busctl_as(0, 'list').returncode == 0

    def busctl_as(self, user, *args):
        return self.busctl(*args, user=user, group=user, extra_groups=[], cwd='/', env={'PATH': os.environ['PATH']})


class TestPolicy(unittest.TestCase):
    def setUp(self):
        self.bus = StrictBus()
        self.addCleanup(self.bus.close)
        self.bus.start()

    def request_name(self, user):
        return self.bus.busctl_as(user, 'call', 'org.freedesktop.DBus', '/org/freedesktop/DBus',
                                  'org.freedesktop.DBus', 'RequestName', 'su', NAME, '4')

    def test_only_the_service_user_gets_the_bus_name(self):
        for user in (0, OWNER):
            done = self.request_name(user)
            self.assertEqual((done.returncode, done.stdout), (0, 'u 1\n'), done.stderr)
        done = self.request_name(OTHER)
        self.assertEqual(done.returncode, 1)
        self.assertIn('Access denied', done.stderr)

    def test_the_agent_may_ask_what_is_unread(self):
        for user, status in ((0, 0), (OWNER, 0), (OTHER, 1)):
            done = self.bus.busctl_as(user, 'call', 'org.freedesktop.DBus', '/org/freedesktop/DBus',
                                      'org.freedesktop.DBus.Debug.Stats', 'GetConnectionStats', 's', 'org.freedesktop.DBus')
            self.assertEqual('Access denied' in done.stderr, status == 1, (user, done.stderr))
        done = self.bus.busctl_as(OWNER, 'call', 'org.freedesktop.DBus', '/org/freedesktop/DBus',
                                  'org.freedesktop.DBus.Debug.Stats', 'GetStats')
        self.assertIn('Access denied', done.stderr)


class TestDaemon(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = Scratch.of(cls)
        cls.bus = StrictBus(scratch).start()
        cls.agent = Agent(scratch, bus=cls.bus, uri=testdriver_xml(demo_host(), scratch.path)).start('standalone')

    def test_everybody_may_read(self):
        for user in (0, OWNER, OTHER):
            done = self.bus.busctl_as(user, 'get-property', NAME, NODE, NAME, 'Nova')
            self.assertEqual((done.returncode, done.stdout), (0, 's "none"\n'), done.stderr)
            done = self.bus.busctl_as(user, 'call', NAME, NODE, NAME, 'Describe', 's', 'claims')
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_not_everybody_may_change(self):
        calls = (('Claim', 'sa(sa{st}asas)a{sv}', str(uuid.uuid4()), '0', '0'),
                 ('Confirm', 'x', '1'), ('Release', 'xs', '1', ''), ('Sync',))
        for call in calls:
            done = self.bus.busctl_as(OTHER, 'call', NAME, NODE, NAME, *call)
            self.assertEqual(done.returncode, 1, call)
            self.assertIn('Access', done.stderr)
        done = self.bus.busctl_as(0, 'call', NAME, NODE, NAME, 'Sync')
        self.assertEqual(done.returncode, 0, done.stderr)

    def members(self, interface):
        """Returns {(kind, name): everything that a client depends on}."""
        ret = {}
        for member in interface:
            parts = [(part.tag, sorted(part.attrib.items())) for part in member]
            # The daemon leaves out the annotation whose value is the default, and the file has it.
            parts = [part for part in parts
                     if part != ('annotation', [
                         ('name', 'org.freedesktop.DBus.Property.EmitsChangedSignal'),
                         ('value', 'true')])]
            annotations = sorted(part for part in parts if part[0] == 'annotation')
            rest = {k: v for k, v in member.attrib.items() if k != 'name'}
            ret[(member.tag, member.get('name'))] = (
                rest, annotations, [part for part in parts if part[0] == 'arg'])
        return ret

    def test_the_description_is_what_the_daemon_says_of_itself(self):
        described = ElementTree.parse(ROOT / ('systemd/%s.xml' % NAME)).getroot()
        for interface in described.findall('interface'):
            name = interface.get('name')
            done = self.bus.busctl_as(0, 'introspect', '--xml-interface', NAME, NODE)
            self.assertEqual(done.returncode, 0, done.stderr)
            served = ElementTree.fromstring(done.stdout).find("interface[@name='%s']" % name)
            self.assertEqual(self.members(interface), self.members(served), name)
