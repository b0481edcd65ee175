# SPDX-License-Identifier: LGPL-2.1-or-later
"""Providers, devices and claims as objects on a real bus."""

import json
import subprocess
import unittest
import uuid

from tests.env.agent import Agent
from tests.env.bus import Bus
from tests.env.fakesys import demo_host
from tests.env.libvirtd import testdriver_xml
from tests.env.scratch import Scratch, wait_until

NAME = 'org.computeagent.Agent1'
NODE = '/org/computeagent/Agent1'
GPU = NODE + '/device/pci_5f0000_5f41_5f00_5f0'
OTHER = 1  # daemon


class Watch:
    """Signals of the agent, as busctl sees them."""

    def __init__(self, scratch, bus):
        self.path = scratch.path / ('signals-%s.log' % uuid.uuid4())
        with self.path.open('w', encoding='utf-8') as output:
            self.process = subprocess.Popen(
                ['busctl', '--address=%s' % bus.address, '--json=short', 'monitor',
                 '--match=sender=%s,type=signal' % NAME], stdout=output,
                stderr=subprocess.DEVNULL)
        scratch.on_close(self.close)

    def close(self):
        self.process.kill()
        self.process.wait()

    def all(self):
        whole = self.path.read_text().rpartition('\n')[0]
        return [json.loads(line) for line in whole.splitlines() if line.startswith('{')]

    def seen(self, member, path, interface):
        """The data of such signals for an object."""
        if member == 'PropertiesChanged':
            return [one['payload']['data'][1] for one in self.all() if one['member'] == member and
                    one['path'] == path and one['payload']['data'][0] == interface]
        return [one['payload']['data'][1] for one in self.all() if one['member'] == member and
                one['payload']['data'][0] == path and interface in one['payload']['data'][1]]


class TestObjects(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = Scratch()
        cls.addClassCleanup(cls.scratch.close)
        cls.bus = Bus(cls.scratch)
        cls.bus.start()
        # Whoever it is may come to the bus.
        for folder in [cls.bus.folder, *cls.bus.folder.parents]:
            if not folder.stat().st_mode & 0o001:
                folder.chmod(folder.stat().st_mode | 0o011)
        cls.host = demo_host()
        cls.agent = Agent(cls.scratch, bus=cls.bus,
                          uri=testdriver_xml(cls.host, cls.scratch.path))
        cls.agent.start()
        cls.agent.wait_state('standalone')
        cls.agent.ctl('sync')

    def busctl(self, *args, **kwargs):
        done = subprocess.run(['busctl', '--address=%s' % self.bus.address, '--json=short', *args],
                              capture_output=True, text=True, timeout=60, check=False, **kwargs)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)['data'] if done.stdout else None

    def objects(self, **kwargs):
        """{path: {interface without the common part: {property: value}}}"""
        data = self.busctl('call', NAME, NODE, 'org.freedesktop.DBus.ObjectManager',
                           'GetManagedObjects', **kwargs)[0]
        return {path: {name.rpartition('.')[2]: {key: value['data'] for key, value in has.items()}
                       for name, has in interfaces.items() if name.startswith(NAME + '.')}
                for path, interfaces in data.items()}

    def of_kind(self, kind, **kwargs):
        return {path: has[kind] for path, has in self.objects(**kwargs).items() if kind in has}

    def claim(self, resources):
        done = self.agent.ctl_json('claim', '--consumer', uuid.uuid4(), '--resources', resources)
        path = '%s/claim/%d' % (NODE, done['id'])
        return done, path

    def watch(self):
        watch = Watch(self.scratch, self.bus)
        self.addCleanup(watch.close)

        def is_on():
            self.agent.ctl('sync')
            return watch.all()
        wait_until(is_on, 20, 'the monitor', step=0.1)
        return watch

    def test_providers_are_those_of_the_tree(self):
        found = self.of_kind('Provider')
        tree = self.agent.ctl_json('tree')['providers']
        self.assertEqual(len(found), len(tree))
        for provider in tree:
            path = NODE + '/provider/' + provider['uuid'].replace('-', '_')
            has = found[path]
            self.assertEqual((has['Uuid'], has['Name'], has['Parent']),
                             (provider['uuid'], provider['name'], provider['parent'] or ''))
            self.assertEqual(sorted(has['Traits']), sorted(provider['traits']))
            fields = ('total', 'reserved', 'min_unit', 'max_unit', 'step_size',
                      'allocation_ratio', 'capacity')
            self.assertEqual(has['Inventories'], {
                name: [record[field] for field in fields]
                for name, record in provider['inventories'].items()})

    def test_devices_are_the_configured_ones(self):
        found = self.of_kind('Device')
        self.assertIn(GPU, found)
        self.assertEqual(found[GPU]['Name'], 'pci_0000_41_00_0')
        self.assertEqual(found[GPU]['Address'], '0000:41:00.0')
        self.assertEqual((found[GPU]['MdevType'], found[GPU]['ResourceClass']),
                         ('nvidia-35', 'VGPU'))

    def test_a_claim_comes_and_goes(self):
        watch = self.watch()
        claim, path = self.claim('VCPU=2,MEMORY_MB=64')
        has = self.of_kind('Claim', user=OTHER, group=OTHER, extra_groups=[], cwd='/')[path]
        self.assertEqual((has['Id'], has['Consumer'], has['State']),
                         (claim['id'], claim['consumer'], 'claimed'))
        self.assertEqual(has['Allocations'][0][2], {'VCPU': 2, 'MEMORY_MB': 64})
        root = NODE + '/provider/' + self.agent.root().replace('-', '_')
        self.assertGreaterEqual(self.of_kind('Provider')[root]['Usage']['VCPU'], 2)
        self.agent.ctl('confirm', claim['id'])
        self.agent.ctl('release', claim['id'])
        wait_until(lambda: watch.seen('InterfacesRemoved', path, NAME + '.Claim'), 10,
                   'the end to be told')
        self.assertEqual(len(watch.seen('InterfacesAdded', path, NAME + '.Claim')), 1)
        changed = watch.seen('PropertiesChanged', path, NAME + '.Claim')
        self.assertEqual([one['State']['data'] for one in changed], ['confirmed'])
        usage = watch.seen('PropertiesChanged', root, NAME + '.Provider')
        self.assertEqual({tuple(one) for one in usage}, {('Usage',)})
        self.assertNotIn(path, self.objects())
        done = self.agent.ctl_json('claims', '--history')
        self.assertIn(claim['id'], [one['id'] for one in done['claims']])

    def test_a_device_tells_who_has_it(self):
        watch = self.watch()
        claim, _ = self.claim('VGPU=1')
        name = claim['devices'][0]['device']
        path = next(path for path, has in self.of_kind('Device').items() if has['Name'] == name)
        self.assertEqual(self.of_kind('Device')[path]['Claims'], [claim['id']])
        self.agent.ctl('release', claim['id'])
        wait_until(lambda: len(watch.seen('PropertiesChanged', path, NAME + '.Device')) >= 2, 10,
                   'the device to be told')
        told = [one['Claims']['data']
                for one in watch.seen('PropertiesChanged', path, NAME + '.Device')]
        self.assertEqual(told, [[claim['id']], []])

    def test_a_quiet_cycle_tells_of_no_object(self):
        watch = self.watch()
        quiet = len([one for one in watch.all() if '/provider/' in one['path'] or
                     one['member'] == 'InterfacesAdded' and
                     '/operation/' not in one['payload']['data'][0]])
        self.assertEqual(quiet, 0, watch.all())

    def test_what_is_no_object(self):
        for path in ('/claim/0', '/claim/01', '/claim/x', '/claim', '/provider/x', '/device/x',
                     '/provider/' + str(uuid.uuid4()).replace('-', '_'), '/claim/999999999'):
            done = subprocess.run(
                ['busctl', '--address=%s' % self.bus.address, 'call', NAME, NODE + path,
                 'org.freedesktop.DBus.Properties', 'GetAll', 's', NAME + '.Claim'],
                capture_output=True, text=True, timeout=30, check=False)
            self.assertNotEqual(done.returncode, 0, path)


if __name__ == '__main__':
    unittest.main()
