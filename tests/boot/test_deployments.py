# SPDX-License-Identifier: LGPL-2.1-or-later
"""The packaged unit starts with the whole nova.conf of each deployment tool, and publishes the same tree as Nova's driver.

Keystone, Placement and Nova's driver run outside. Proxies of systemd forward the agent's connections to 127.0.0.1 from the machine. Nova's
driver has its own libvirtd over the same host.
"""

import types
import unittest

from tests.boot.case import BootCase
from tests.boot.machine import UNIT, Machine
from tests.env.fakesys import simple_host
from tests.env.keystone import AGENT_PASSWORD, Keystone
from tests.env.libvirtd import Libvirtd
from tests.env.placement import Placement
from tests.env.scratch import Scratch, wait_until
from tests.integration.driver import deployments
from tests.integration.driver.test_deployments import RATIOS, WARNINGS_MAX
from tests.integration.driver.test_nova_agrees import NovaCase, inventories

CONFIG = '/etc/compute-agent/compute-agent.conf'
PROXY = '/lib/systemd/systemd-socket-proxyd'
KEYSTONE_PORT, PLACEMENT_PORT = 5000, 8778  # in the machine, which has its own network


def forward(scratch, path, port):
    """Forwards connections to a Unix socket to a port of 127.0.0.1."""
    scratch.spawn(['systemd-socket-activate', '--listen=%s' % path, PROXY, '127.0.0.1:%d' % port], 'proxy', scratch.path)
    wait_until(path.exists, 10, 'the socket %s' % path)


def setUpModule():
    scratch = Scratch()
    unittest.addModuleCleanup(scratch.close)
    outside = scratch.folder('outside')
    keystone = Keystone(scratch).start()
    placement = Placement(scratch, keystone=keystone).start()
    keystone.set_endpoint('http://127.0.0.1:%d' % PLACEMENT_PORT)
    for name, port in (('keystone', keystone.port), ('placement', placement.port)):
        forward(scratch, outside / (name + '.sock'), port)
    TestPasted.scratch, TestPasted.placement = scratch, placement
    machine = Machine(types.SimpleNamespace(socket_path=outside / 'placement.sock'), scratch, simple_host(cells=1, name='pasted'))
    BootCase.machine = machine
    unittest.addModuleCleanup(machine.kill)
    machine.start()
    BootCase.install()
    for name, port in (('keystone', KEYSTONE_PORT), ('placement', PLACEMENT_PORT)):
        machine.run('systemd-run', '--unit=%s-proxy' % name, 'systemd-socket-activate', '--listen=127.0.0.1:%d' % port, PROXY,
                    '/outside/%s.sock' % name)


class TestPasted(NovaCase, unittest.TestCase):
    maxDiff = None

    def find_nova_tree(self, name):
        """Returns the tree that Nova's driver publishes with the same file on the same host."""
        libvirtd = Libvirtd(simple_host(cells=1, name='pasted'), self.scratch).start()
        self.addCleanup(libvirtd.stop)
        folder = self.scratch.folder('nova')
        (folder / 'instances').mkdir()
        path = folder / 'nova.conf'
        path.write_text(self.render(name, uri=libvirtd.uri, folder=folder))
        nova, = self.nova(libvirtd, [str(path)])
        self.assertNotIn('refused', nova)
        return nova['tree']

    @staticmethod
    def render(name, **values):
        return deployments.render(name, url='http://127.0.0.1:%d' % KEYSTONE_PORT, password=AGENT_PASSWORD.replace('$', '$$'), **values) + RATIOS

    def forget(self):
        machine = BootCase.machine
        machine.run('systemctl', 'stop', UNIT)
        machine.run('find', '/var/lib/compute-agent', '-mindepth', '1', '-delete')
        self.placement.forget_providers()

    def check(self, name):
        # The complete file of a deployment tool can cause some warnings, but at most WARNINGS_MAX.
        machine = BootCase.machine
        wanted = self.find_nova_tree(name)
        machine.run('mkdir', '-p', '/var/lib/nova/instances')
        machine.write(CONFIG, self.render(name, uri='qemu:///system', folder='/var/lib/nova'))
        machine.run('chown', 'root:compute-agent', CONFIG)
        machine.run('chmod', '640', CONFIG)
        self.addCleanup(self.forget)
        done = machine.run('systemctl', 'start', UNIT, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, machine.journal_text()[-5000:])
        machine.wait_state('synced', 90)
        entries = machine.journal('_SYSTEMD_INVOCATION_ID=' + machine.show('InvocationID')['InvocationID'])
        warnings = [entry['MESSAGE'] for entry in entries if int(entry['PRIORITY']) <= 4]
        self.assertLessEqual(len(warnings), WARNINGS_MAX, warnings)
        root, = (provider for provider in machine.ctl_json('tree')['providers'] if not provider['parent'])
        ours = self.placement.tree_by_name(root['uuid'])
        self.assertEqual(set(ours), set(wanted))
        for provider, theirs in wanted.items():
            self.assertEqual(inventories(ours[provider]), inventories(theirs))
        doctor = machine.run('computectl', 'doctor', '--config-only', '--all', check=False)
        self.assertLessEqual(doctor.stdout.count('warning '), WARNINGS_MAX, doctor.stdout)
        self.assertNotEqual(doctor.returncode, 1, doctor.stdout)

    def test_the_unit_starts_with_the_file_of_each_tool(self):
        for name in deployments.ALL:
            with self.subTest(name):
                self.check(name)
            self.doCleanups()
