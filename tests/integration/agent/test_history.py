# SPDX-License-Identifier: LGPL-2.1-or-later
"""The history of claims: each claim with its end, cordons, healing and adoption, each with its author. It survives a restart."""

import getpass
import json
import os
import shutil
import sqlite3
import subprocess
import uuid
from pathlib import Path

from tests.env.agent import build_folder
from tests.env.scratch import wait_until
from tests.integration.agent.test_agent import AgentCase


class TestHistory(AgentCase):
    def events(self, agent, *what):
        done = agent.ctl('history', *what, '--json=short', check=False)
        return json.loads(done.stdout)['events']

    def kinds(self, agent, *what):
        """Returns the kinds of the events, the oldest first."""
        return [one['event'] for one in self.events(agent, *what)][::-1]

    def claim(self, agent, consumer=None):
        return agent.claim('VCPU=2', consumer)['id']

    def test_events_name_their_callers(self):
        agent = self.start_agent()
        consumer, migration = str(uuid.uuid4()), str(uuid.uuid4())
        number = self.claim(agent, consumer)
        agent.ctl('move', consumer, migration)
        agent.ctl('release', '--reason', 'made by a \x1b[31mred\x1b[m hand', number)
        agent.ctl('cordon', 'demo_pci_0000_41_00_0', '--reason', 'smoke')
        agent.ctl('uncordon', 'demo_pci_0000_41_00_0')

        self.assertEqual(self.kinds(agent), ['claimed', 'moved', 'released', 'cordoned', 'uncordoned'])
        # The history of a claim, of each of its consumers, and of a device.
        self.assertEqual(self.kinds(agent, number), ['claimed', 'moved', 'released'])
        self.assertEqual(self.kinds(agent, consumer.upper()), ['claimed', 'moved', 'released'])
        self.assertEqual(self.kinds(agent, migration), ['moved', 'released'])
        self.assertEqual(self.kinds(agent, 'demo_pci_0000_41_00_0'), ['cordoned', 'uncordoned'])
        first = self.events(agent)[-1]
        self.assertEqual((first['claim'], first['consumer'], first['uid'], first['allocations']),
                         (number, consumer, os.getuid(), [{'name': 'demo', 'class': 'VCPU', 'amount': 2}]))
        self.assertRegex(first['author'], r'^%s \(computectl, pid \d+' % getpass.getuser())
        shown = agent.ctl('history', number).stdout
        self.assertIn('made by a \\x1b[31mred\\x1b[m hand', shown)
        self.assertIn('demo: VCPU=2', shown)
        self.assertIn('from consumer ' + consumer, shown)
        nothing = agent.ctl('history', '4711', check=False)
        self.assertEqual((nothing.returncode, nothing.stdout), (1, 'No events found.\n'))

        before = self.events(agent)
        agent.restart('synced')
        self.assertEqual(self.events(agent), before)

    def test_a_caller_that_calls_itself_what_it_likes(self):
        agent = self.start_agent()
        command = Path(agent.folder) / 'a\x1b[2J,(\n'
        shutil.copy(build_folder() / 'computectl', command)
        done = subprocess.run([command, 'cordon', '--reason', 'two\nlines'], env=agent.env(), check=True,
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.stderr, '')
        event = self.events(agent)[0]
        self.assertIn(' (a?[2J??', event['author'])
        self.assertEqual(event['reason'], 'two\nlines')
        shown = agent.ctl('history').stdout
        self.assertNotIn('\x1b', shown)
        self.assertIn('two\\x0alines', shown)

    def test_a_refused_claim_is_none(self):
        agent = self.start_agent()
        agent.ctl('claim', '--consumer', uuid.uuid4(), '--resources', 'VCPU=4000', code=1)
        self.assertEqual(self.events(agent), [])

    def test_a_guest_by_its_name(self):
        """computectl accepts the name of a guest in place of its uuid in each verb."""
        agent, name, guest = self.start_agent(), 'web-1', str(uuid.uuid4())
        self.libvirtd.start_guest(name, uuid=guest)
        self.addCleanup(self.libvirtd.virsh, 'undefine', guest, check=False)
        self.addCleanup(self.libvirtd.virsh, 'destroy', guest, check=False)
        agent.ctl('sync')
        wait_until(lambda: self.kinds(agent, name) == ['adopted'], 20, 'the adoption')
        number = self.events(agent, guest)[0]['claim']
        for one in (name, guest, guest.upper()):
            with self.subTest(one):
                self.assertEqual([claim['id'] for claim in agent.ctl_json('who', one)['claims']], [number])
                self.assertIn('adopted', self.kinds(agent, one))
        self.assertIn(name, agent.ctl('drain', check=False).stdout)
        migration = str(uuid.uuid4())
        self.assertIn(migration, agent.ctl('move', name, migration).stdout)
        self.assertIn(guest, agent.ctl('move', migration, name).stdout)
        second = agent.claim('VCPU=1', name, '--resize-target')
        self.assertEqual(second['consumer'], guest)
        agent.ctl('release', second['id'])
        for words in (('claim', '--consumer', 'web-2', '--resources', 'VCPU=1'), ('move', 'web-2', name), ('move', name, 'web-2')):
            done = agent.ctl(*words, check=False)
            self.assertEqual((done.returncode, done.stdout), (1, ''), words)
            self.assertIn('"web-2" is neither a uuid nor a guest of this host', done.stderr)

    def test_a_guest_that_runs(self):
        agent = self.start_agent()
        guest = str(uuid.uuid4())
        self.libvirtd.start_guest('web-1', uuid=guest)
        self.addCleanup(self.libvirtd.virsh, 'undefine', guest, check=False)
        self.addCleanup(self.libvirtd.virsh, 'destroy', guest, check=False)
        agent.ctl('sync')
        wait_until(lambda: self.kinds(agent, 'web-1') == ['adopted'], 20, 'the adoption')
        event = self.events(agent, guest)[0]
        self.assertEqual((event['author'], event['uid'], event['reason'], event['guest']),
                         ('', -1, 'guest web-1 had no claim', 'web-1'))
        self.assertIn('the agent', agent.ctl('history').stdout)
        number = event['claim']
        self.libvirtd.delete_guest(guest)
        agent.ctl('sync')
        wait_until(lambda: self.kinds(agent, number) == ['adopted', 'released'], 20, 'the release')

    def test_an_unconfirmed_claim_expires(self):
        agent = self.start_agent({'DEFAULT': {'claim_expiry_time': 1}})
        self.claim(agent)
        wait_until(lambda: self.kinds(agent)[:2] in (['claimed', 'expired'], ['claimed', 'released']), 30, 'the end')

    def test_healing(self):
        agent = self.start_agent({'DEFAULT': {'claim_expiry_time': 1}})
        lost = self.placement.place(None, {agent.root(): {'VCPU': 1}})
        agent.end_claims(self.placement, {lost: 'VCPU=1'})

        def healed():
            agent.ctl('heal', check=False)
            return self.kinds(agent, lost) == ['claimed', 'released', 'healed']

        wait_until(healed, 60, 'the healing')
        self.assertIn('computectl', self.events(agent, lost)[0]['author'])
        self.assertEqual(self.placement.held(lost), {})

    def test_an_old_database(self):
        """A database with the schema of version 1. Its claims are kept, and they have no events."""
        agent = self.start_agent()
        agent.stop()
        path = Path(agent.state) / 'claim.sqlite'
        path.unlink()
        guest = uuid.uuid4()
        with sqlite3.connect(path) as database:
            database.executescript("""
                CREATE TABLE versions (table_name TEXT, version INTEGER);
                INSERT INTO versions VALUES ('claims', 1);
                CREATE TABLE claims (id INTEGER, host TEXT, node TEXT, instance_uuid TEXT, vcpus INTEGER, memory_mb INTEGER,
                                     disk_gb INTEGER, pci TEXT, resize_target INTEGER, created_at TEXT);
                INSERT INTO claims VALUES (7, 'h', 'h', '%s', 1, 40, 0, '[]', 0, '2014-05-01T10:20:30')""" % guest)
        agent.start('synced')
        self.assertIn('Upgraded from version 1 to 10 with 1 of 1 claims', agent.log())
        self.assertEqual([(one['id'], one['consumer']) for one in agent.claims()], [(7, str(guest))])
        self.assertEqual(self.events(agent), [])
        agent.ctl('release', 7)
        self.assertEqual(self.kinds(agent), ['released'])
