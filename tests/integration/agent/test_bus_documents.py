# SPDX-License-Identifier: LGPL-2.1-or-later
"""The documents and properties on a real bus: their contents, the signals of their changes, and the progress of operations."""

import json
import re
import subprocess
import time
import uuid
from pathlib import Path

from tests.env.agent import Agent
from tests.env.case import EnvCase
from tests.env.fakesys import demo_host
from tests.env.faults import Delay, server_error
from tests.env.libvirtd import testdriver_xml
from tests.env.scratch import wait_until
from tests.env.terminal import Terminal
from tests.env.wire import SIGNAL, Wire

ROOT = Path(__file__).resolve().parents[3]
NAME = 'org.computeagent.Agent1'
NODE = '/org/computeagent/Agent1'
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

    def wait_quiet(self):
        """Returns when no signal has come for half a second. The agent delays signals of changes, and the monitor can lag."""
        def quiet():
            before = len(self.all())
            time.sleep(0.5)
            return len(self.all()) == before
        wait_until(quiet, 30, 'half a second without a signal')

    def documents(self):
        """Returns the names in the DocumentChanged signals, in order."""
        return [one['payload']['data'][0] for one in self.all() if one['member'] == 'DocumentChanged']

    def values(self, name):
        """Returns the values of a property in the PropertiesChanged signals, in order."""
        return [one['payload']['data'][1][name]['data'] for one in self.all()
                if one['member'] == 'PropertiesChanged' and name in one['payload']['data'][1]]


class BusCase(EnvCase):
    shared = ('scratch', 'bus')

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.bus.open_to_all()

    @classmethod
    def start_agent(cls, options, placement=None):
        cls.agent = Agent(cls.scratch, placement, testdriver_xml(demo_host(), cls.scratch.path), cls.bus, options).start()

    def busctl(self, *args, **kwargs):
        done = self.bus.busctl('--json=short', *args, **kwargs)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)['data'] if done.stdout else None

    def call(self, *args, **kwargs):
        return self.busctl('call', NAME, NODE, NAME, *args, **kwargs)

    def describe(self, name, **kwargs):
        return json.loads(self.call('Describe', 's', name, **kwargs)[0])

    def get(self, *names):
        return [self.busctl('get-property', NAME, NODE, NAME, name) for name in names]

    def refused(self, *args, **kwargs):
        """Calls a method that must fail, and returns the error message."""
        done = self.bus.call_agent(*args, **kwargs)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        return done.stderr

    def watch(self):
        watch = Watch(self.scratch, self.bus)
        self.addCleanup(watch.close)

        def is_on():
            self.agent.ctl('sync', check=False)
            return watch.all()
        wait_until(is_on, 20, 'the monitor', step=0.1)
        return watch


class TestDocuments(BusCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.start_agent({'DEFAULT': {'update_resources_interval': 3600, 'claim_expiry_time': 3600}})
        cls.agent.wait_state('standalone')
        cls.agent.ctl('sync')

    def claim(self, resources):
        claim = self.agent.claim(resources)
        self.addCleanup(self.agent.ctl, 'release', claim['id'], check=False)
        return claim

    def test_formats(self):
        for name, kind in (('status', 'status'), ('tree', 'tree'), ('host', 'host'), ('claims', 'claims'),
                           ('history', 'claims'), ('problems', 'problems')):
            document = self.describe(name, user=OTHER, group=OTHER, extra_groups=[], cwd='/')
            self.assertEqual(document['format'], 'compute-agent-%s/1' % kind)
        self.assertIn('There is no [placement] section', self.refused('Describe', 's', 'plan'))
        self.assertIn('No audit has run', self.refused('Describe', 's', 'audit'))
        self.assertIn('There was no reshape, or it moved nothing', self.refused('Describe', 's', 'reshape'))
        self.assertIn('There is no document "x"', self.refused('Describe', 's', 'x'))

    def test_status_and_properties(self):
        document = self.describe('status')
        names = {'Version': 'version', 'Nova': 'nova', 'TreePublished': 'tree_published'}
        self.assertEqual(self.get(*names), [document[name] for name in names.values()])
        self.assertEqual(self.get('InterfaceVersion'), [3])
        every = self.busctl('call', NAME, NODE, 'org.freedesktop.DBus.Properties', 'GetAll', 's', NAME)[0]
        self.assertEqual({name for name in every if name not in names},
                         {'InterfaceVersion', 'Operation', 'OperationPhase', 'OperationDone', 'OperationTotal'})
        told = re.search(r'The members of "status".*?(?=\n\n      \S)', (ROOT / 'systemd/org.computeagent.Agent1.xml').read_text(), re.S)[0]
        self.assertEqual({'format', *re.findall(r'(?m)^ {8}(\w+)  ', told)}, set(document))

    def test_a_change_signals_a_document_that_a_client_read(self):
        """The client read the value of an operation that ended before its signal was sent. The signal has only the changed properties."""
        Watch(self.scratch, self.bus).wait_quiet()  # the first signal after the start has all properties
        wire = Wire(self.bus.socket_path)
        self.addCleanup(wire.close)
        wire.call('org.freedesktop.DBus', '/org/freedesktop/DBus', 'org.freedesktop.DBus', 'AddMatch', 's',
                  ["type='signal',member='PropertiesChanged',sender='%s'" % NAME])
        seen = set()
        for _ in range(5):
            wire.send_call(NAME, NODE, NAME, 'Sync')
            read = wire.send_call(NAME, NODE, 'org.freedesktop.DBus.Properties', 'Get', 'ss', (NAME, 'Operation'))
            known = None
            while known != '':
                answer = wire.receive()
                if answer.fields.get(5) == read:
                    known = answer.values[0]
                    seen.add(known)
                elif answer.kind == SIGNAL and known is not None:
                    changed = dict(answer.values[1])
                    self.assertLessEqual(set(changed), {'Operation', 'OperationPhase', 'OperationDone', 'OperationTotal'})
                    known = changed.get('Operation', known)
        self.assertIn('Sync', seen)  # "" if the cycle ended before the read

    def test_a_claim_comes_and_goes(self):
        """A page of claims reads a document, waits for the signal of a change, and reads again."""
        watch = self.watch()

        def told(n, what):
            wait_until(lambda: watch.documents().count('claims') == n, 10, what, step=0.02)
            return self.describe('claims')['claims'], self.describe('tree')
        self.describe('claims')
        self.describe('tree')
        self.describe('history')
        begin = time.monotonic()
        claim = self.claim('VCPU=2,MEMORY_MB=64')
        claims, tree = told(1, 'the claim')
        # The limit is for a busy machine. The agent itself needs 50 ms.
        self.assertLess(time.monotonic() - begin, 5)
        found = next(one for one in claims if one['id'] == claim['id'])
        self.assertEqual(found, {key: value for key, value in claim.items() if key != 'format'})
        self.assertEqual(found['allocations'][0]['resources'], {'VCPU': 2, 'MEMORY_MB': 64})
        self.assertGreaterEqual(tree['providers'][0]['inventories']['VCPU']['used'], 2)
        self.agent.ctl('confirm', claim['id'])
        claims, _ = told(2, 'that it is confirmed')
        self.assertEqual(next(one['state'] for one in claims if one['id'] == claim['id']), 'confirmed')
        self.agent.ctl('release', claim['id'], '--reason', 'enough')
        claims, _ = told(3, 'its end')
        self.assertNotIn(claim['id'], [one['id'] for one in claims])
        self.assertEqual(watch.documents().count('history'), 1)
        ended = self.describe('history')['claims'][0]
        self.assertEqual((ended['id'], ended['state'], ended['end_reason']), (claim['id'], 'released', 'enough'))

    def test_an_expired_claim_is_signalled_with_its_reason(self):
        claim = self.claim('VCPU=1')
        self.call('Extend', 'xt', str(claim['id']), str(int((time.time() + 1) * 1e6)))
        watch = self.watch()
        self.describe('history')
        told = watch.documents().count('history')

        def reason():
            # A signal of the test before can come late, so the document must have this claim.
            return next((one['end_reason'] for one in self.describe('history')['claims'] if one['id'] == claim['id']), None)

        wait_until(lambda: self.agent.ctl('sync', check=False) and watch.documents().count('history') > told and reason(), 30, 'its end')
        self.assertEqual(reason(), 'expired')

    def test_a_document_without_readers_is_not_signalled(self):
        watch = self.watch()
        watch.wait_quiet()  # the test before it can have left a change
        for name in ('claims', 'tree'):
            self.describe(name)
        n = len(watch.documents())
        for _ in range(3):
            self.claim('VCPU=1')
        wait_until(lambda: {'claims', 'tree'} <= set(watch.documents()[n:]), 10, 'the first claim')
        time.sleep(0.5)
        self.assertEqual([watch.documents()[n:].count(name) for name in ('claims', 'tree', 'host')], [1, 1, 0])

    def test_a_quiet_cycle_changes_nothing_but_its_time(self):
        self.agent.ctl('sync')
        watch = self.watch()
        watch.wait_quiet()
        for name in ('status', 'tree', 'host', 'claims', 'history', 'problems'):
            self.describe(name)
        n = len(watch.documents())
        self.agent.ctl('sync')
        wait_until(lambda: {'status', 'host'} <= set(watch.documents()[n:]), 10, 'the cycle')
        time.sleep(0.5)
        self.assertEqual(set(watch.documents()[n:]), {'status', 'host'})

    def test_a_cordon_is_told(self):
        watch = self.watch()
        self.describe('tree')
        self.agent.ctl('cordon', '--reason', 'broken')
        self.addCleanup(self.agent.ctl, 'uncordon')
        wait_until(lambda: 'tree' in watch.documents(), 10, 'the tree')
        self.assertTrue(self.describe('tree')['providers'][0]['cordoned'])
        self.assertIn('broken', self.describe('status')['host_cordoned'])

    def test_there_is_one_object(self):
        for path in ('/claim/1', '/provider', '/operation/1', '/x'):
            done = self.bus.busctl('call', NAME, NODE + path, 'org.freedesktop.DBus.Properties', 'GetAll', 's', NAME)
            self.assertIn('no such object', done.stderr, path)


class TestOperations(BusCase):
    CONSUMERS = 4
    shared = (*BusCase.shared, 'placement', 'proxy')

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.start_agent({'placement': {'max_connections': 1}}, cls.proxy)
        cls.agent.wait_state('synced')
        gpu = cls.placement.tree_by_name(cls.agent.root())
        gpu = next(one for name, one in gpu.items() if name.endswith('pci_0000_41_00_0'))
        cls.consumers = [cls.placement.place(None, {gpu['uuid']: {'VGPU': 1}}) for _ in range(cls.CONSUMERS)]

    def setUp(self):
        self.addCleanup(self.proxy.clear)

    def need_reshape(self, name):
        """Configures another class for the VGPUs of the card, which guests have allocated."""
        self.agent.configure({'mdev_nvidia-35': {'mdev_class': name}})
        self.agent.ctl('reload')
        self.proxy.add(Delay(0.5, path='^/allocations/'))

    def begin(self, *args):
        """Runs computectl on a terminal, in the background."""
        return Terminal(self, self.agent.ctl_argv('--no-pager', *args), {**self.agent.env(), 'TERM': 'xterm', 'COLUMNS': '70'},
                        stdin=subprocess.DEVNULL)

    def wait_for(self, method, phase):
        wait_until(lambda: self.get('Operation', 'OperationPhase') == [method, phase], 30, 'it to be at ' + phase)

    def classes(self):
        """Returns the resource classes that the first consumer has in Placement."""
        return {name for amounts in self.placement.held(self.consumers[0]).values() for name in amounts}

    def test_a_terminal_shows_how_far_it_is(self):
        before = self.classes()
        self.need_reshape('CUSTOM_ONE')
        self.proxy.add(Delay(0.5, path='^/allocations/'))
        terminal = self.begin('reshape')
        self.wait_for('Reshape', 'gathering')
        code, text = terminal.end()
        self.assertEqual(code, 0, text)
        self.assertRegex(text, r'Reshape: gathering \d/4 \[=*> *\]')
        self.assertRegex(text, r'\r\x1b\[K[^=]')
        self.assertEqual(self.get('Operation', 'OperationPhase', 'OperationDone', 'OperationTotal'), ['', '', 0, 0])
        self.assertNotEqual(self.classes(), before)
        self.assertEqual(self.describe('reshape')['format'], 'compute-agent-reshape/1')

    def test_a_call_that_waits_for_another_shows_that_one(self):
        self.need_reshape('CUSTOM_SIX')
        self.proxy.add(Delay(0.5, path='^/allocations/'))
        reshape = self.begin('reshape')
        self.wait_for('Reshape', 'gathering')
        code, text = self.begin('sync').end()
        self.assertEqual(code, 0, text)
        self.assertIn('Reshape: gathering', text)
        self.assertNotIn('Sync: gathering', text)
        code, text = reshape.end()
        self.assertEqual(code, 0, text)

    def test_cancelled_before_it_is_sent(self):
        before = self.classes()
        self.need_reshape('CUSTOM_TWO')
        watch = self.watch()
        posts = self.proxy.count('POST', '/reshaper')
        self.proxy.add(Delay(0.5, path='^/allocations/'))
        terminal = self.begin('reshape')
        self.wait_for('Reshape', 'gathering')
        self.assertIn('Access', self.refused('Cancel', 's', 'Reshape', user=OTHER, group=OTHER, extra_groups=[], cwd='/'))
        self.assertIn('No caller waits for Sync()', self.refused('Cancel', 's', 'Sync'))
        self.assertIn('is running', self.agent.ctl('reshape', '--undo', check=False).stderr)
        wait_until(lambda: 'gathering' in watch.values('OperationPhase'), 10, 'the phase to be told')
        self.call('Cancel', 's', 'Reshape')
        code, text = terminal.end()
        self.assertIn('The operation was cancelled', text)
        self.assertEqual(code, 1)
        wait_until(lambda: watch.values('Operation')[-1:] == [''], 10, 'the end to be told')
        self.assertIn('No caller waits for Reshape()', self.refused('Cancel', 's', 'Reshape'))
        self.agent.ctl('sync', check=False)
        self.assertEqual(self.proxy.count('POST', '/reshaper'), posts)
        self.assertEqual(self.classes(), before)

    def test_an_audit_is_one_and_can_be_left(self):
        self.proxy.add(Delay(0.5, path='^/allocations/'))
        terminal = self.begin('audit')
        self.wait_for('Audit', 'gathering')
        code, text = terminal.end()
        self.assertEqual(code, 0, text)
        self.assertRegex(text, r'Audit: gathering \d/4 \[=*> *\]')
        self.assertEqual(self.describe('audit')['format'], 'compute-agent-audit/1')
        terminal = self.begin('audit')
        self.wait_for('Audit', 'gathering')
        self.call('Cancel', 's', 'Audit')
        code, text = terminal.end()
        self.assertIn('The operation was cancelled', text)
        self.assertNotIn(code, (0, 3))

    def test_a_heal_is_not_left_halfway(self):
        self.proxy.add(Delay(0.5, path='^/allocations/'))
        terminal = self.begin('heal')
        self.wait_for('Heal', 'gathering')
        self.assertIn('can no longer be cancelled', self.refused('Cancel', 's', 'Heal'))
        self.assertEqual(terminal.end()[0], 0)

    def test_a_reload_ends_an_operation_with_an_error(self):
        """The document of an earlier audit is no answer to the operation that the reload ended."""
        self.agent.ctl('audit', check=False)
        self.proxy.add(Delay(0.5, path='^/allocations/'))
        for operation in ('audit', 'heal'):
            terminal = self.begin(operation)
            self.wait_for(operation.title(), 'gathering')
            self.agent.ctl('reload')
            code, text = terminal.end()
            self.assertIn('was reloaded during this operation', text)
            self.assertEqual(code, 1, text)

    def test_pending_writes_are_signalled_until_they_are_done(self):
        def reports(name, n):
            wait_until(lambda: self.describe('status')[name] == n, 20, '%s = %d' % (name, n), step=0.1)
        self.proxy.add(server_error(503))
        self.agent.ctl('sync', check=False)
        self.agent.wait_state('offline')
        claim = self.agent.claim('VCPU=1')
        reports('n_pending_writes', 1)
        self.proxy.clear()
        self.agent.ctl('sync', check=False)
        reports('n_pending_writes', 0)
        # The removal is sent as soon as the claim ends. Without this outage the pending write would end before a signal shows it.
        self.proxy.add(server_error(503))
        self.agent.ctl('release', claim['id'])
        reports('n_pending_removals', 1)
        self.proxy.clear()
        self.agent.ctl('sync', check=False)
        reports('n_pending_removals', 0)

    def test_a_sync_that_fails(self):
        self.proxy.add(server_error(503))
        done = self.agent.ctl('sync', code=1)
        self.assertIn('503', done.stderr)
        # A reload keeps the time of the last successful sync.
        published = self.agent.status()['last_sync_usec']
        self.assertGreater(published, 0)
        self.agent.ctl('reload')
        shown = self.agent.status()
        self.assertEqual((shown['sync_state'], shown['last_sync_usec']), ('offline', published))
        self.proxy.clear()
        self.agent.ctl('sync', check=False)

    def test_no_terminal_no_bar(self):
        self.proxy.add(Delay(1, times=1))
        done = self.agent.ctl('sync', check=False)
        self.assertNotIn('\x1b', done.stdout + done.stderr)
