# SPDX-License-Identifier: LGPL-2.1-or-later
"""Providers, devices, claims and operations as objects on a real bus."""

import contextlib
import json
import os
import pty
import subprocess
import unittest
import uuid

from tests.env.agent import Agent, build_folder
from tests.env.bus import Bus
from tests.env.fakesys import demo_host
from tests.env.faults import Delay, server_error
from tests.env.libvirtd import testdriver_xml
from tests.env.placement import Placement
from tests.env.proxy import Proxy
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


class BusCase(unittest.TestCase):
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

    @classmethod
    def start_agent(cls, options=None):
        cls.agent = Agent(cls.scratch, bus=cls.bus, options=options,
                          uri=testdriver_xml(demo_host(), cls.scratch.path))
        cls.agent.start()

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

    def watch(self):
        watch = Watch(self.scratch, self.bus)
        self.addCleanup(watch.close)

        def is_on():
            self.agent.ctl('sync', check=False)
            return watch.all()
        wait_until(is_on, 20, 'the monitor', step=0.1)
        return watch


class TestObjects(BusCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.start_agent()
        cls.agent.wait_state('standalone')
        cls.agent.ctl('sync')

    def claim(self, resources):
        done = self.agent.ctl_json('claim', '--consumer', uuid.uuid4(), '--resources', resources)
        path = '%s/claim/%d' % (NODE, done['id'])
        return done, path

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


class TestOperations(BusCase):
    CONSUMERS = 4

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.placement = Placement(cls.scratch)
        cls.placement.start()
        cls.proxy = cls.enterClassContext(Proxy(cls.placement.port))
        cls.start_agent({'placement': {'auth_type': 'admin_token', 'token': 'admin',
                                       'endpoint_override': cls.proxy.endpoint,
                                       'max_connections': 1}})
        cls.agent.wait_state('synced')
        cls.consumers = [str(uuid.uuid4()) for _ in range(cls.CONSUMERS)]
        gpu = cls.placement.tree_by_name(cls.agent.root())
        gpu = next(one for name, one in gpu.items() if name.endswith('pci_0000_41_00_0'))
        for consumer in cls.consumers:
            cls.placement.request('PUT', '/allocations/' + consumer, {
                'allocations': {gpu['uuid']: {'resources': {'VGPU': 1}}}, 'project_id': 'p',
                'user_id': 'u', 'consumer_generation': None, 'consumer_type': 'INSTANCE'})

    def setUp(self):
        self.addCleanup(self.proxy.clear)

    def need_reshape(self, name):
        """The VGPUs of the card, which guests hold, are to be of another class."""
        self.agent.configure({'mdev_nvidia-35': {'mdev_class': name}})
        self.agent.ctl('reload')
        self.proxy.add(Delay(0.5, path='^/allocations/'))

    def begin(self, *args):
        """Run computectl on a terminal, in the background."""
        leader, follower = pty.openpty()
        process = subprocess.Popen(
            [str(build_folder() / 'computectl'), '--no-pager', *args], stdin=subprocess.DEVNULL,
            stdout=follower, stderr=follower,
            env={**self.agent.env(), 'TERM': 'xterm', 'COLUMNS': '70'})
        os.close(follower)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(os.close, leader)
        return process, leader

    def read(self, leader):
        text = b''
        with contextlib.suppress(OSError): # the last writer has closed the terminal
            while part := os.read(leader, 65536):
                text += part
        return text.decode()

    def running(self, kind, phase):
        """The path of such an operation that runs, when there is one."""
        for path, has in self.of_kind('Operation').items():
            if (has['Kind'], has['State'], has['Phase']) == (kind, 'running', phase):
                return path
        return None

    def get(self, path):
        return self.of_kind('Operation')[path]

    def classes(self):
        """What of the card's classes guests hold in Placement."""
        held = self.placement.get('/allocations/' + self.consumers[0])['allocations']
        return {name for one in held.values() for name in one['resources']}

    def test_a_terminal_shows_how_far_it_is(self):
        before = self.classes()
        self.need_reshape('CUSTOM_ONE')
        process, leader = self.begin('reshape')
        path = wait_until(lambda: self.running('reshape', 'gathering'), 30, 'it to gather')
        has = self.get(path)
        self.assertEqual((has['Error'], has['EndedUSec']), ('', 0))
        self.assertGreater(has['StartedUSec'], 0)
        text = self.read(leader)
        self.assertEqual(process.wait(30), 0, text)
        self.assertRegex(text, r'reshape: gathering \d/4 \[=*> *\]')
        self.assertRegex(text, r'\r\x1b\[K[^=]')
        has = self.get(path)
        self.assertEqual((has['State'], has['Error'], has['Total']), ('done', '', 0))
        self.assertGreaterEqual(has['EndedUSec'], has['StartedUSec'])
        self.assertNotEqual(self.classes(), before)

    def test_cancelled_before_it_is_sent(self):
        before = self.classes()
        self.need_reshape('CUSTOM_TWO')
        watch = self.watch()
        posts = self.proxy.count('POST', '/reshaper')
        process, leader = self.begin('reshape')
        path = wait_until(lambda: self.running('reshape', 'gathering'), 30, 'it to gather')
        done = subprocess.run(
            ['busctl', '--address=%s' % self.bus.address, 'call', NAME, path,
             NAME + '.Operation', 'Cancel'], capture_output=True, text=True, timeout=30,
            check=False, user=OTHER, group=OTHER, extra_groups=[], cwd='/')
        self.assertIn('Access', done.stderr)
        self.busctl('call', NAME, path, NAME + '.Operation', 'Cancel')
        self.assertIn('It was cancelled', self.read(leader))
        self.assertEqual(process.wait(30), 1)
        self.assertEqual(self.get(path)['State'], 'cancelled')
        wait_until(lambda: {'type': 's', 'data': 'cancelled'} in [
            one.get('State') for one in watch.seen('PropertiesChanged', path,
                                                   NAME + '.Operation')], 10, 'the end to be told')
        done = subprocess.run(
            ['busctl', '--address=%s' % self.bus.address, 'call', NAME, path,
             NAME + '.Operation', 'Cancel'], capture_output=True, text=True, timeout=30,
            check=False)
        self.assertIn('It has ended', done.stderr)
        self.agent.ctl('sync', check=False)
        self.assertEqual(self.proxy.count('POST', '/reshaper'), posts)
        self.assertEqual(self.classes(), before)

    def test_an_audit_is_one_and_can_be_left(self):
        self.proxy.add(Delay(0.5, path='^/allocations/'))
        process, leader = self.begin('audit')
        path = wait_until(lambda: self.running('audit', 'gathering'), 30, 'it to gather')
        text = self.read(leader)
        self.assertEqual(process.wait(30), 0, text)
        self.assertRegex(text, r'audit: gathering \d/4 \[=*> *\]')
        self.assertEqual(self.get(path)['State'], 'done')
        process, leader = self.begin('audit')
        path = wait_until(lambda: self.running('audit', 'gathering'), 30, 'it to gather')
        self.busctl('call', NAME, path, NAME + '.Operation', 'Cancel')
        self.assertIn('It was cancelled', self.read(leader))
        self.assertNotIn(process.wait(30), (0, 3))
        self.assertEqual(self.get(path)['State'], 'cancelled')

    def test_a_heal_is_not_left_halfway(self):
        self.proxy.add(Delay(0.5, path='^/allocations/'))
        process, leader = self.begin('heal')
        path = wait_until(lambda: self.running('heal', 'gathering'), 30, 'it to gather')
        done = subprocess.run(
            ['busctl', '--address=%s' % self.bus.address, 'call', NAME, path,
             NAME + '.Operation', 'Cancel'], capture_output=True, text=True, timeout=30,
            check=False)
        self.assertIn('cannot be cancelled', done.stderr)
        self.read(leader)
        process.wait(30)
        self.assertEqual(self.get(path)['State'], 'done')

    def test_what_is_owed_and_settled_is_told(self):
        self.proxy.add(server_error(503))
        self.agent.ctl('sync', check=False)
        self.agent.wait_state('offline')
        watch = self.watch()

        def told(name):
            """Every value that watchers of the property saw."""
            return [has[name]['data'] for has in watch.seen('PropertiesChanged', NODE, NAME)
                    if name in has]
        claim = self.agent.ctl_json('claim', '--consumer', uuid.uuid4(), '--resources', 'VCPU=1')
        wait_until(lambda: told('NOwedWrites')[-1:] == [1], 20, 'a debt', step=0.1)
        self.proxy.clear()
        self.agent.ctl('sync', check=False)
        wait_until(lambda: told('NOwedWrites')[-1:] == [0], 20, 'it to be settled', step=0.1)
        self.agent.ctl('release', claim['id'])
        wait_until(lambda: told('NOwedRemovals')[-1:] == [0] and 1 in told('NOwedRemovals'), 20,
                   'a removal', step=0.1)

    def test_a_sync_that_fails(self):
        self.proxy.add(server_error(503))
        done = self.agent.ctl('sync', check=False)
        self.assertEqual(done.returncode, 1)
        has = max(self.of_kind('Operation').values(), key=lambda one: one['Id'])
        self.assertEqual((has['Kind'], has['State']), ('sync', 'failed'))
        self.assertIn('503', has['Error'])
        # When it went well last is not forgotten by a reload.
        published = self.agent.status()['last_sync_usec']
        self.assertGreater(published, 0)
        self.agent.ctl('reload')
        shown = self.agent.status()
        self.assertEqual((shown['sync_state'], shown['last_sync_usec']), ('offline', published))
        self.proxy.clear()
        self.agent.ctl('sync', check=False)

    def test_those_that_ended_are_forgotten(self):
        watch = self.watch()
        for _ in range(20):
            self.agent.ctl('sync', check=False)
        self.assertEqual(len(self.of_kind('Operation')), 16)
        self.assertTrue([one for one in watch.all() if one['member'] == 'InterfacesRemoved'])

    def test_no_terminal_no_bar(self):
        self.proxy.add(Delay(1, times=1))
        done = self.agent.ctl('sync', check=False)
        self.assertNotIn('\x1b', done.stdout + done.stderr)


if __name__ == '__main__':
    unittest.main()
