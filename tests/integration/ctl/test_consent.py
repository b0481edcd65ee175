# SPDX-License-Identifier: LGPL-2.1-or-later
"""computectl asks for consent on a terminal before retire, heal and reshape. In a script it does not ask."""

import fcntl
import os
import termios
import uuid

from tests.env.fakesys import Host, simple_host
from tests.env.scratch import wait_until
from tests.env.terminal import Terminal
from tests.integration.reshape import test_reshape
from tests.integration.reshape.test_reshape import GPUS, ROOT

QUESTION = '[y/N] '


class ConsentCase(test_reshape.ReshapeCase):
    def type_to_ctl(self, keys, *args, stderr=None):
        """Runs computectl with a terminal as its input, and types keys at its question. keys is None if it must not ask. Returns
        the exit code and the text of the terminal."""
        terminal = Terminal(self, self.agent.ctl_argv(*args), {**self.agent.env(), 'TERM': 'xterm', 'SYSTEMD_PAGER': ''},
                            **({'stderr': stderr} if stderr else {}), start_new_session=True,
                            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        if keys:
            terminal.wait_for(QUESTION)
            terminal.type(keys)
        return terminal.end()


class TestRetireAndHeal(ConsentCase):
    @staticmethod
    def make_host():
        return Host(cells=simple_host().cells, name=ROOT)

    def providers(self):
        return self.placement.get('/resource_providers')['resource_providers']

    def test_retire(self):
        self.start(agent={})
        self.agent.ctl('cordon')
        for keys in (b'n\n', b'\n', b'\x04', b'maybe\n'):
            code, shown = self.type_to_ctl(keys, 'retire')
            self.assertEqual(code, 1, shown)
            self.assertIn(ROOT, shown)
            self.assertIn('Nothing was changed', shown)
            self.assertEqual(len(self.providers()), 1)
        # Neither a dry run nor --yes asks.
        code, shown = self.type_to_ctl(None, 'retire', '--dry-run')
        self.assertEqual((code, QUESTION in shown), (0, False))
        code, shown = self.type_to_ctl(b'y\n', 'retire')
        self.assertEqual(code, 0, shown)
        self.assertIn('The host is retired', shown)
        self.assertEqual(self.providers(), [])
        self.agent.ctl('retire', '--undo')
        self.agent.wait_state('synced')
        code, shown = self.type_to_ctl(None, 'retire', '--yes')
        self.assertEqual((code, QUESTION in shown), (0, False))
        self.assertEqual(self.providers(), [])

    def test_retire_does_not_ask_if_it_is_refused(self):
        self.start(agent={})
        self.agent.ctl('cordon')
        guest = str(uuid.uuid4())
        self.put(guest, {ROOT: {'VCPU': 1}})
        code, shown = self.type_to_ctl(None, 'retire')
        self.assertEqual((code, QUESTION in shown), (3, False))
        self.assertIn(guest, shown)

    def test_heal_a_consumer(self):
        self.start(agent={}, DEFAULT={'claim_expiry_time': 1})
        guest = str(uuid.uuid4())
        self.put(guest, {ROOT: {'VCPU': 1}})
        code, shown = self.type_to_ctl(b'n\n', 'heal', guest)
        self.assertEqual(code, 1)
        self.assertIn(guest, shown)
        self.assertEqual(self.held(guest), {ROOT: {'VCPU': 1}})
        code, shown = self.type_to_ctl(b'yes\n', 'heal', guest)
        self.assertEqual(code, 4, shown)
        self.assertEqual(self.held(guest), {})

    def test_heal_asks_only_if_there_is_a_remedy(self):
        self.start(agent={}, DEFAULT={'claim_expiry_time': 1})
        code, shown = self.type_to_ctl(None, 'heal')
        self.assertEqual((code, QUESTION in shown), (0, False))
        guest = str(uuid.uuid4())
        self.put(guest, {ROOT: {'VCPU': 1}})
        self.agent.end_claims(self.placement, {guest: 'VCPU=1'})
        wait_until(lambda: 'release-share' in self.agent.ctl('audit', check=False).stdout, 20, 'a finding with a remedy')
        code, shown = self.type_to_ctl(b'n\n', 'heal')
        self.assertEqual(code, 1, shown)
        self.assertIn('release-share', shown)
        self.assertEqual(self.held(guest), {ROOT: {'VCPU': 1}})
        code, shown = self.type_to_ctl(b'y\n', 'heal')
        self.assertEqual(code, 4, shown)
        self.assertEqual(self.held(guest), {})


class TestReshape(ConsentCase):
    make_host = staticmethod(test_reshape.TestVgpus.make_host)
    make_old_shape = test_reshape.TestVgpus.make_old_shape

    def test_reshape_and_undo(self):
        self.make_old_shape()
        self.start(devices={'enabled_mdev_types': 'nvidia-35'})
        moved = self.held(self.guests[0])
        code, shown = self.type_to_ctl(b'n\n', 'reshape', '--undo')
        self.assertEqual((code, self.held(self.guests[0])), (1, moved), shown)
        code, shown = self.type_to_ctl(b'y\n', 'reshape', '--undo')
        self.assertEqual(code, 0, shown)
        self.assertIn('VGPU', self.classes(ROOT))
        code, shown = self.type_to_ctl(b'n\n', 'reshape')
        self.assertEqual(code, 1, shown)
        self.assertIn(GPUS[1], shown)
        self.assertIn('VGPU', self.classes(ROOT))
        # The question appears on the terminal although errors go to a file.
        with open(os.devnull, 'wb') as nowhere:
            code, shown = self.type_to_ctl(b'y\n', 'reshape', '--json=short', stderr=nowhere)
        self.assertEqual((code, self.held(self.guests[0])), (0, moved), shown)
        code, shown = self.type_to_ctl(None, 'reshape')
        self.assertEqual((code, QUESTION in shown), (0, False))
        self.assertIn('Nothing to do', shown)

    def test_dry_run_and_its_old_spelling(self):
        self.make_old_shape()
        self.start(devices={'enabled_mdev_types': 'nvidia-35'})
        self.agent.ctl('reshape', '--undo')
        mark = self.placement.mark()
        new, old = (self.agent.ctl('reshape', option) for option in ('--dry-run', '--plan'))
        self.assertEqual(self.placement.writes_since(mark), [])
        self.assertIn('VGPU 1', new.stdout)
        self.assertEqual((new.stderr, old.stdout), ('', new.stdout))
        self.assertIn('--plan is now --dry-run', old.stderr)
        self.assertIn('--dry-run or --undo, not both', self.agent.ctl('reshape', '--dry-run', '--undo', code=2).stderr)

