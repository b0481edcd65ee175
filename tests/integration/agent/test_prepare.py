# SPDX-License-Identifier: LGPL-2.1-or-later
"""compute-agent-prepare beside a real agent, over an invented card: plain files in place of /sys and /proc.

The claims of functions are written into the agent's database with sqlite3, because the static driver offers no vGPU functions.
"""

import contextlib
import json
import os
import sqlite3
import subprocess
import uuid

from tests.env import fakesys
from tests.env.agent import Agent, build_folder
from tests.env.case import EnvCase
from tests.env.hosts import recorded_host
from tests.env.scratch import wait_until

SERVICE = 4711  # a uid without a user name
CARD = '0000:c1:00.0'
A, B, C = '0000:c1:00.4', '0000:c1:00.5', '0000:c1:00.6'
FUNCTIONS = (A, B, C, '0000:c1:00.7')


class PrepareCase(EnvCase):
    def setUp(self):
        self.sys, self.proc, self.run_folder = (self.scratch.folder(name) for name in ('sys', 'proc', 'run'))
        (self.run_folder / 'compute-agent').mkdir()
        self.devices = self.sys / 'bus/pci/devices'
        self.put(CARD, 'sriov_totalvfs', '4')
        self.put(CARD, 'sriov_numvfs', '4')
        self.link(CARD, 'driver', '../../drivers/nvidia')
        for i, address in enumerate(FUNCTIONS):
            self.put(address, 'nvidia/current_vgpu_type', '0')
            self.link(CARD, 'virtfn%d' % i, '../' + address)
            self.link(address, 'iommu_group', '../../kernel/iommu_groups/%d' % (40 + i))
        self.agent = Agent(self.scratch, bus=self.bus, host=recorded_host('cards', devices=[
            {'name': 'pci_0000_c1_00_%s' % address[-1], 'is_pci': True, 'address': address, 'physical_function': CARD,
             'vendor_id': 0x10de, 'product_id': 0x26b9} for address in FUNCTIONS]))
        self.agent.configure({'device_prepare gpus': {'device_addresses': CARD, 'vgpu_types': 'true'},
                              'DEFAULT': {'update_resources_interval': 1}})
        self.agent.more_env = {'RUNTIME_DIRECTORY': str(self.run_folder / 'compute-agent')}

    def put(self, address, name, text):
        path = self.devices / address / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + '\n')

    def link(self, address, name, target):
        (self.devices / address / name).symlink_to(target)

    def type_of(self, address):
        return int((self.devices / address / 'nvidia/current_vgpu_type').read_text().split()[0])

    def open(self, pid, group):
        return fakesys.open_vfio(self.sys, self.proc, pid, group)

    def prepare(self, *args, code=0):
        done = subprocess.run([build_folder() / 'compute-agent-prepare', '--config', self.agent.config, '--sys', self.sys, '--proc', self.proc,
                               '--run', self.run_folder, *args], env=self.agent.env(), capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def record(self):
        return json.loads((self.run_folder / 'compute-agent-prepare/prepared.json').read_text())

    def sql(self, text, *values):
        with contextlib.closing(sqlite3.connect(self.agent.state / 'claim.sqlite', timeout=10)) as db, db:
            db.execute(text, values)

    def claim_function(self, claim, address, name):
        self.sql('INSERT INTO claim_devices (claim_id, provider_uuid, request_group, device, address, mdev_type, mdev_uuid)'
                 ' VALUES (?, ?, "", ?, ?, ?, "")', claim, str(uuid.uuid4()), 'pci_' + address, address, name)


class TestPrepare(PrepareCase):
    def test_types_follow_the_claims_of_a_running_agent(self):
        self.agent.start()
        claim = self.agent.claim('VCPU=1')['id']
        other = self.agent.claim('VCPU=1')['id']
        self.claim_function(claim, A, 'nvidia-1428')
        self.claim_function(other, B, 'nvidia-5')
        self.put(C, 'nvidia/current_vgpu_type', '5')
        said = self.prepare('--dry-run')
        self.assertIn('set          Function %s of %s: type nvidia-1428 (claim %d needs it)' % (A, CARD, claim), said)
        self.assertIn('clear        Function %s of %s: end of nvidia-5 (it has no claim)' % (C, CARD), said)
        self.assertEqual(self.type_of(A), 0)
        self.prepare()
        self.assertEqual([self.type_of(address) for address in FUNCTIONS], [1428, 5, 0, 0])
        self.agent.ctl('release', claim)
        self.open(100, 41)
        self.agent.ctl('release', other)
        said = self.prepare()
        self.assertEqual([self.type_of(address) for address in FUNCTIONS], [0, 5, 0, 0])
        self.assertIn('Function %s of %s: end of nvidia-1428: done, because claim %d has ended' % (A, CARD, claim), said)
        function = next(function for function in self.record()['functions'] if function['address'] == B)
        self.assertEqual((function['type'], function['open'], function['claim'], function['error']), ('nvidia-5', True, other, ''))
        self.assertIn('a process has it open', function['waiting'])

    def test_the_agent_writes_a_stamp_until_a_run_has_seen_it(self):
        path = self.run_folder / 'compute-agent/prepare-wanted'
        self.agent.start()
        wait_until(path.exists, 20, 'the first stamp')
        self.prepare()
        first = path.read_text()
        self.assertEqual(self.record()['wanted'], first)
        self.agent.ctl('sync')
        self.assertEqual(path.read_text(), first)
        claim = self.agent.claim('VCPU=1')['id']
        self.assertEqual(path.read_text(), first)  # it has no function
        self.claim_function(claim, A, 'nvidia-5')
        self.agent.ctl('confirm', claim)
        second = path.read_text()
        self.assertNotEqual(second, first)
        wait_until(lambda: path.read_text() != second, 20, 'another stamp, because no run has seen the second one')
        self.assertEqual(path.stat().st_mode & 0o777, 0o644)

    def test_a_process_that_stays_open_makes_the_agent_try_again(self):
        path = self.run_folder / 'compute-agent/prepare-wanted'
        self.agent.start()
        wait_until(path.exists, 20, 'the first stamp')
        self.put(A, 'nvidia/current_vgpu_type', '5')
        handle = self.open(100, 40)
        self.prepare()
        seen = self.record()['wanted']
        wait_until(lambda: path.read_text() != seen, 20, 'another stamp')
        handle.unlink()
        self.prepare()
        self.assertEqual(self.type_of(A), 0)

    def test_no_stamp_without_a_section(self):
        self.agent.configure({'device_prepare gpus': {'vgpu_types': 'false'}})
        self.agent.start()
        self.agent.ctl('sync')
        self.assertFalse((self.run_folder / 'compute-agent/prepare-wanted').exists())

    def test_needs_no_credential_of_the_agent(self):
        self.agent.configure({'placement': {'auth_type': 'password', 'auth_url': 'http://keystone/', 'username': 'nova',
                                            'user_domain_name': 'Default', 'project_name': 'service', 'project_domain_name': 'Default'}})
        self.assertIn('placement-password', self.agent.ctl('doctor', '--config-only', '-c', self.agent.config, code=1).stdout)
        self.prepare()
        self.assertIn('The claim database does not exist', self.prepare('--clean', code=75))

    def test_options_and_configuration(self):
        program = build_folder() / 'compute-agent-prepare'
        self.assertIn('compute-agent ', subprocess.check_output([program, '--version'], text=True))
        self.assertIn('--dry-run', subprocess.check_output([program, '--help'], text=True))
        self.assertEqual(subprocess.run([program, 'x'], capture_output=True, check=False).returncode, 2)
        self.agent.configure({'device_prepare more': {'device_addresses': CARD}})
        self.assertIn('already belongs to [device_prepare gpus]', self.prepare(code=78))
        self.assertIn('already belongs to', self.agent.ctl('doctor', '--config-only', '-c', self.agent.config, code=1).stdout)


class TestForeignFolder(PrepareCase):
    """The state folder belongs to the service's user, who can be an intruder."""

    def setUp(self):
        super().setUp()
        for folder in (self.scratch.path, self.agent.folder):
            folder.chmod(0o711)
        os.chown(self.agent.state, SERVICE, SERVICE)
        self.agent.run('--once', code=1) # It publishes nothing without Placement.

    def files(self):
        return {path.name: (path.read_bytes(), path.stat().st_uid) for path in sorted(self.agent.state.iterdir())}

    def test_the_folder_stays_unchanged(self):
        before = self.files()
        self.assertEqual({uid for _, uid in before.values()}, {SERVICE})
        self.put(A, 'nvidia/current_vgpu_type', '5')
        self.prepare()
        self.assertEqual(self.type_of(A), 0)
        self.assertEqual(self.files(), before)

    def test_a_database_that_cannot_be_read_stops_all(self):
        self.put(A, 'nvidia/current_vgpu_type', '5')
        database = self.agent.state / 'claim.sqlite'
        good = database.read_bytes()
        for bad in (b'nonsense' * 1000, good[:5000]):
            database.write_bytes(bad)
            said = self.prepare(code=75)
            self.assertIn('No card was changed: The claim database', said)
            self.assertIn('is damaged', said)
            self.assertEqual(self.type_of(A), 5)
            self.assertEqual(database.read_bytes(), bad)
            self.assertIn('is damaged', self.record()['error'])
        self.assertEqual([name for name in self.files() if 'corrupt' in name], [])

    def test_a_missing_database_clears_nothing(self):
        for path in self.agent.state.iterdir():
            path.unlink()
        self.put(A, 'nvidia/current_vgpu_type', '5')
        self.prepare()
        self.assertEqual(self.type_of(A), 5)
        self.assertEqual(self.files(), {})

    def test_links_of_the_service_lead_to_no_file_of_root(self):
        victim = self.scratch.folder('roots') / 'victim'
        victim.write_text('secret')
        victim.chmod(0o600)
        for name in ('claim.sqlite', 'claim.sqlite-wal', 'claim.sqlite-shm'):
            path = self.agent.state / name
            kept = path.read_bytes() if path.exists() else None
            path.unlink(missing_ok=True)
            path.symlink_to(victim)
            os.chown(path, SERVICE, SERVICE, follow_symlinks=False)
            self.assertNotIn('secret', self.prepare(code=75))
            self.assertEqual((victim.read_text(), victim.stat().st_uid), ('secret', 0))
            path.unlink()
            if kept:
                path.write_bytes(kept)
                os.chown(path, SERVICE, SERVICE)

    def test_the_record_shows_no_file_that_a_stamp_links_to(self):
        victim = self.scratch.folder('roots') / 'victim'
        victim.write_text('abc123')
        victim.chmod(0o600)
        folder = self.run_folder / 'compute-agent'
        os.chown(folder, SERVICE, SERVICE)
        stamp = folder / 'prepare-wanted'
        stamp.symlink_to(victim)
        self.prepare()
        self.assertEqual(self.record()['wanted'], '')
        stamp.unlink()
        stamp.hardlink_to(victim)
        self.prepare()
        self.assertEqual(self.record()['wanted'], '')
        stamp.unlink()
        stamp.write_text('abc123')
        os.chown(stamp, SERVICE, SERVICE)
        self.prepare()
        self.assertEqual(self.record()['wanted'], 'abc123')
