# SPDX-License-Identifier: LGPL-2.1-or-later
"""Devices are cleaned after their guests, with proof, before they are offered again.

Placement and libvirtd are real, and the unit manager is a script (tests/env/clean_units.py). COMPUTE_AGENT_CLEAN_ROUNDS sets the number
of kills.
"""

import contextlib
import json
import os
import random
import sqlite3
import time
import uuid
from pathlib import Path

from tests.env import fakesys, faults
from tests.env.clean_units import CleanUnits
from tests.env.fakesys import Cell, Host, Pci
from tests.env.libvirtd import guest_xml
from tests.env.scratch import wait_until
from tests.integration.claims.test_device_identity import IdentityCase

A, B = '0000:41:00.0', '0000:42:00.0'
PROVIDER_A, PROVIDER_B = 'compute-1_0000:41:00.0', 'compute-1_0000:42:00.0'
SPEC = {'vendor_id': '144d', 'resource_class': 'CUSTOM_NVME'}
# Seconds beyond the time of the units. A machine with more work than processors is slower.
LIMIT = 2 * max(1, os.getloadavg()[0] / os.cpu_count())
CLEAN, PROVE = 'wipe@%s.service' % A, 'prove@%s.service' % A


class CleanCase(IdentityCase):
    make_host = staticmethod(lambda: Host(cells=[Cell(0, list(range(8)), 16 << 20)], pci=[
        Pci(address, vendor=0x144d, device=0xa808, pci_class=0x010802, driver='vfio-pci', serial='S' + address[5:7]) for address in (A, B)]))
    spec = SPEC
    options = property(lambda self: {
        'pci': {'device_spec': json.dumps(self.spec), 'report_in_placement': 'true'},
        'device_clean nvme': {'device_addresses': A, 'clean': 'wipe@.service', 'prove': 'prove@.service'}})

    def setUp(self):
        self.manager = CleanUnits(self.scratch, {address: (0x144d, 0xa808) for address in (A, B)})
        self.units, self.read = self.manager.folder, self.manager.read
        self.addCleanup(self.manager.stop)
        super().setUp()
        self.manager.start(self.agent.config)

    def touch(self, name):
        (self.units / name).touch()
        self.addCleanup((self.units / name).unlink, missing_ok=True)

    def row(self):
        rows = self.rows()
        return rows[0] if rows else None

    def rows(self):
        with contextlib.closing(sqlite3.connect(self.agent.state / 'claim.sqlite', timeout=10)) as db:
            return db.execute('SELECT address, state, reason FROM unclean_devices ORDER BY address').fetchall()

    def wait_state(self, state):
        wait_until(lambda: (self.row() or (A, None))[1] == state, 30, 'the device to be %s' % state, step=0.05)

    def nvme(self, consumer=None, code=0):
        return self.claim('CUSTOM_NVME=1', consumer, code)


class TestClean(CleanCase):
    def test_reserved_from_the_claim_until_the_proof(self):
        self.wait_offers({PROVIDER_A: (1, 0), PROVIDER_B: (1, 0)})
        claim = self.nvme()
        self.assertEqual(claim['devices'][0]['address'], A)
        self.wait_offers({PROVIDER_A: (1, 1), PROVIDER_B: (1, 0)})
        wait_until(lambda: self.agent.ctl('status', check=False).returncode == 0, 10, 'the claim to be published')
        self.touch('hold-' + CLEAN)
        self.agent.ctl('release', claim['id'])
        self.wait_state('dirty')
        wait_until(lambda: self.read('started') == [CLEAN], 10, 'the first unit', step=0.05)
        # It is neither offered nor given to a claim while it is cleaned.
        self.assertEqual(self.offers(), {PROVIDER_A: (1, 1), PROVIDER_B: (1, 0)})
        other = self.nvme()
        self.assertEqual(other['devices'][0]['address'], B)
        self.nvme(code=1)
        # The next cycle knows the device, and stores the tree at its end.
        words = 'not clean: cleaning since '
        for command, expected in ((['status'], '%s is %s' % (PROVIDER_A, words)), (['who', A], words), (['tree'], 'not clean'),
                                  (['explain', '--resources', 'CUSTOM_NVME=1'], words), (['doctor'], words)):
            wait_until(lambda: expected in self.agent.ctl(*command, check=False).stdout, 10, '"%s" in %s' % (expected, command[0]))
        # Placement is equal to the host again when the claims are published. The exit code is 0 then.
        wait_until(lambda: self.agent.ctl('status', check=False).returncode == 0, 10, 'the claims to be published')
        self.assertIn('Device %s will be cleaned: claim %d has ended, and no guest has it.' % (A, claim['id']), self.agent.log())
        began = time.monotonic()
        (self.units / ('hold-' + CLEAN)).unlink()
        wait_until(lambda: self.offers()[PROVIDER_A] == (1, 0), 10, 'the device to be offered', step=0.05)
        self.assertLess(time.monotonic() - began, LIMIT)
        self.assertEqual(self.read('done'), [CLEAN, PROVE])
        self.assertIsNone(self.row())
        self.assertIn('Device %s is clean: its units have succeeded.' % A, self.agent.log())
        self.assertEqual(self.nvme()['devices'][0]['address'], A)

    def test_offered_within_two_seconds_of_the_release(self):
        claim = self.nvme()
        self.wait_offers({PROVIDER_A: (1, 1), PROVIDER_B: (1, 0)})
        began = time.monotonic()
        self.agent.ctl('release', claim['id'])
        wait_until(lambda: self.offers()[PROVIDER_A] == (1, 0), 10, 'the device to be offered', step=0.05)
        self.assertLess(time.monotonic() - began, LIMIT)

    def test_comes_back_though_the_clock_was_set_back(self):
        """A row of the future gets the time of now, so that a later poll shows that no guest has the device."""
        consumer = str(uuid.uuid4())
        claim = self.nvme(consumer)
        self.libvirtd.define(guest_xml('g1', memory_mib=64, uuid=consumer, devices=[A]))
        self.agent.ctl('sync')
        self.agent.ctl('release', claim['id'])
        self.agent.ctl('sync', check=False)
        self.agent.release_all()  # the agent made another claim of the guest
        with contextlib.closing(sqlite3.connect(self.agent.state / 'claim.sqlite', timeout=10)) as db, db:
            self.assertEqual(db.execute("UPDATE unclean_devices SET since_usec = since_usec * 2 WHERE state = 'held'").rowcount, 1)
        self.libvirtd.virsh('undefine', 'g1')
        self.agent.ctl('sync', check=False)
        self.agent.release_all()
        self.wait_offers({PROVIDER_A: (1, 0), PROVIDER_B: (1, 0)})

    def test_a_failed_proof_cordons_until_a_person_lifts_it(self):
        claim = self.nvme()
        self.touch('fail-' + PROVE)
        self.agent.ctl('release', claim['id'])
        self.wait_state('failed')
        self.assertEqual(self.row()[2].split('.')[0], 'prove@0000:41:00')
        log = self.agent.log()
        self.assertIn('Device %s was not proved to be clean, and stays withheld until its cordon is lifted' % A, log)
        self.assertIn("The unit's last lines: sanitize: device error 7", log)
        self.assertIn('%s cordoned by compute-agent since' % A, self.agent.ctl('status', check=False).stdout)
        wait_until(lambda: 'not clean: cleaning failed at' in self.agent.ctl('status', check=False).stdout, 10, 'the words of the failure')
        self.agent.restart('synced')
        self.agent.ctl('sync', check=False)
        self.assertEqual(self.row()[1], 'failed')
        self.assertEqual(self.offers()[PROVIDER_A], (1, 1))
        # Lifting starts the cleaning again, and never offers the device before.
        started = len(self.read('started'))
        self.agent.ctl('uncordon', A)
        wait_until(lambda: len(self.read('started')) >= started + 2, 10, 'both units')
        self.wait_state('failed')
        self.assertEqual(self.offers()[PROVIDER_A], (1, 1))
        (self.units / ('fail-' + PROVE)).unlink()
        self.agent.ctl('uncordon', A)
        self.wait_offers({PROVIDER_A: (1, 0), PROVIDER_B: (1, 0)})

    def test_a_defined_guest_keeps_the_device(self):
        consumer = str(uuid.uuid4())
        claim = self.nvme(consumer)
        self.libvirtd.define(guest_xml('g1', memory_mib=64, uuid=consumer, devices=[A]))
        self.agent.ctl('sync')
        self.agent.ctl('release', claim['id'])
        for _ in range(3):
            self.agent.ctl('sync', check=False)
        self.assertNotEqual(self.row()[1], 'dirty')
        self.assertEqual(self.read('started'), [])
        self.libvirtd.virsh('undefine', 'g1')
        self.agent.ctl('sync', check=False)
        self.agent.release_all()  # the agent made another claim of the guest
        self.wait_offers({PROVIDER_A: (1, 0), PROVIDER_B: (1, 0)})
        self.assertEqual(self.read('done'), [CLEAN, PROVE])

    def test_a_process_that_has_it_open_delays_the_cleaning(self):
        claim = self.nvme()
        handle = fakesys.open_vfio(self.manager.sys, self.manager.proc, 77, 1)
        self.agent.ctl('release', claim['id'])
        self.wait_state('dirty')
        time.sleep(1)
        self.assertEqual(self.read('started'), [])
        self.assertEqual(self.offers()[PROVIDER_A], (1, 1))
        handle.unlink()
        self.wait_offers({PROVIDER_A: (1, 0), PROVIDER_B: (1, 0)})

    def test_a_result_of_another_database_is_no_proof(self):
        """The results are in /run and stay when the database is replaced, whose ids begin again."""
        claim = self.nvme()
        self.touch('hold-' + CLEAN)
        self.agent.ctl('release', claim['id'])
        wait_until(lambda: self.read('started') == [CLEAN], 10, 'the first unit', step=0.05)
        path = self.manager.run / 'compute-agent-clean/cleaned.json'
        wait_until(lambda: path.exists() and json.loads(path.read_text())['devices'], 10, 'the record', step=0.05)
        record = json.loads(path.read_text())
        device = record['devices'][0]
        device['state'], device['since'] = 'clean', device['since'] - 1
        path.with_suffix('.tmp').write_text(json.dumps(record))
        path.with_suffix('.tmp').rename(path)
        time.sleep(1)
        self.assertEqual((self.row()[1], self.offers()[PROVIDER_A]), ('dirty', (1, 1)))
        (self.units / ('hold-' + CLEAN)).unlink()
        self.wait_offers({PROVIDER_A: (1, 0), PROVIDER_B: (1, 0)})

    def test_a_section_that_is_gone_does_not_offer_the_device(self):
        claim = self.nvme()
        self.agent.configure({'device_clean nvme': {'device_addresses': B}})
        self.agent.ctl('reload')
        self.agent.ctl('release', claim['id'])
        self.wait_state('failed')
        self.assertIn('no section [device_clean NAME] has it', self.row()[2])
        self.assertEqual(self.read('started'), [])
        self.agent.ctl('uncordon', A)
        self.wait_offers({PROVIDER_A: (1, 0), PROVIDER_B: (1, 0)})
        self.assertIn('is offered without a cleaning. Its cordon was lifted', self.agent.log())

    def test_a_section_that_is_gone_before_the_reload_is_named(self):
        """The agent still has the section, and compute-agent-prepare reads the file."""
        claim = self.nvme()
        self.agent.configure({'device_clean nvme': {'device_addresses': B}})
        self.agent.ctl('release', claim['id'])
        self.wait_state('dirty')
        words = 'no section [device_clean NAME] has it'
        wait_until(lambda: 'Device %s is not cleaned yet: %s.' % (A, words) in self.agent.log(), 40, 'the message')
        wait_until(lambda: words in self.agent.ctl('status', check=False).stdout, 10, 'the status')
        # compute-agent-prepare is not started every few seconds for days.
        stamps = set()
        for _ in range(3):
            stamps.add((self.manager.run / 'compute-agent/clean-wanted').read_text())
            time.sleep(4)
        self.assertLessEqual(len(stamps), 2)
        self.agent.configure({'device_clean nvme': {'device_addresses': A}})
        self.wait_offers({PROVIDER_A: (1, 0), PROVIDER_B: (1, 0)})
        self.assertEqual(self.agent.log().count('is not cleaned yet'), 1)

    def test_the_end_of_a_health_rule_is_no_order_of_a_person(self):
        claim = self.nvme()
        self.agent.ctl('cordon', A)
        self.give_cordon_to_rule(Path('/proc/sys/kernel/random/boot_id').read_text().strip().replace('-', ''))
        self.touch('fail-' + PROVE)
        self.agent.ctl('release', claim['id'])
        self.wait_state('failed')
        self.assertIn('not proved to be clean (cordoned by health rule xid before): ' + PROVE, self.agent.status()['devices_cordoned'])
        # An older version left the cordon to the rule, which ends it soon after this start.
        self.give_cordon_to_rule(str(uuid.uuid4()))
        for _ in range(3):
            self.agent.ctl('sync', check=False)
            time.sleep(0.5)
        self.assertEqual(self.read('started'), [CLEAN, PROVE])
        self.assertEqual((self.row()[1], self.offers()[PROVIDER_A]), ('failed', (1, 1)))
        self.assertIn('%s cordoned by compute-agent since' % A, self.agent.status()['devices_cordoned'])
        (self.units / ('fail-' + PROVE)).unlink()
        self.agent.ctl('uncordon', A)
        self.wait_offers({PROVIDER_A: (1, 0), PROVIDER_B: (1, 0)})

    def give_cordon_to_rule(self, boot):
        """Lets the only cordon belong to a health rule until the end of this boot."""
        self.agent.stop()
        path = self.agent.state / 'cordon.json'
        cordons = json.loads(path.read_text())
        cordons['cordons'][0].update(rule='xid', lift='boot', boot_id=boot)
        path.write_text(json.dumps(cordons))
        self.agent.start('synced')

    def test_another_device_at_the_address_is_not_cleaned(self):
        claim = self.nvme()
        self.agent.stop()
        self.libvirtd.remove_device(A)
        self.libvirtd.plug_device(Pci(A, vendor=0x144d, device=0xa80a, pci_class=0x010802, driver='vfio-pci', serial='X'))
        self.agent.start()
        self.agent.ctl('release', claim['id'])
        self.wait_state('failed')
        self.assertEqual(self.row()[2], 'another device is at its address')
        self.assertEqual(self.read('started'), [])


class TestOfferedInPlacement(CleanCase):
    """No unit runs while Placement can give the device to a server, or has done so."""

    def use(self):
        """Lets a guest have the device for a moment."""
        self.libvirtd.define(guest_xml('g1', memory_mib=64, uuid=str(uuid.uuid4()), devices=[A]))
        wait_until(lambda: self.row() is not None, 20, 'a row of the guest')
        self.libvirtd.virsh('undefine', 'g1')

    def wait_message(self, words):
        """Waits until the journal has the words, and checks that no unit was started."""
        wait_until(lambda: 'Device %s is not cleaned yet: %s' % (A, words) in self.agent.log(), 20, '"%s"' % words)
        self.assertEqual((self.row()[1], self.read('started')), ('held', []))

    def wait_words(self, words):
        self.wait_message(words)
        for command in (('status',), ('doctor', '--all'), ('who', A)):
            wait_until(lambda: 'not clean: ' + words in ' '.join(self.agent.ctl(*command, check=False).stdout.split()), 20,
                       '"%s" in %s' % (words, command[0]))

    def wait_clean(self):
        self.wait_offers({PROVIDER_A: (1, 0), PROVIDER_B: (1, 0)})
        self.assertEqual((self.row(), self.read('done')), (None, [CLEAN, PROVE]))

    def test_nothing_is_cleaned_where_nothing_is_reserved(self):
        self.agent.configure({'agent': {'nova': 'observe'}})
        self.agent.ctl('reload')
        self.use()
        self.wait_words('[agent] nova is observe, so nothing is written to Placement')
        self.assertEqual(self.offers()[PROVIDER_A], (1, 0))
        self.agent.configure({'agent': {'nova': 'top'}})
        self.agent.ctl('reload')
        self.wait_clean()

    def test_a_lifted_cordon_starts_no_unit_either(self):
        claim = self.nvme()
        self.touch('fail-' + PROVE)
        self.agent.ctl('release', claim['id'])
        self.wait_state('failed')
        self.agent.configure({'agent': {'nova': 'observe'}})
        self.agent.ctl('reload')
        self.agent.ctl('uncordon', A, check=False)
        wait_until(lambda: self.row()[2].startswith('not repeated yet: [agent] nova is observe'), 20, 'the reason')
        self.assertEqual((self.row()[1], self.read('started')), ('failed', [CLEAN, PROVE]))
        (self.units / ('fail-' + PROVE)).unlink()
        self.agent.configure({'agent': {'nova': 'top'}})
        self.agent.ctl('reload')
        self.wait_offers({PROVIDER_A: (1, 0), PROVIDER_B: (1, 0)})

    def test_a_retired_host_cleans_without_placement(self):
        """Placement has no provider of it, and is not read after a restart."""
        claim = self.nvme()
        self.touch('fail-' + PROVE)
        self.agent.ctl('release', claim['id'])
        self.wait_state('failed')
        self.agent.ctl('cordon')
        self.agent.ctl('retire')
        self.agent.restart('retired')
        (self.units / ('fail-' + PROVE)).unlink()
        self.agent.ctl('uncordon', A)
        wait_until(lambda: self.row() is None, 30, 'the device to be clean')

    def test_an_outage_of_placement_delays_the_cleaning(self):
        claim = self.nvme()
        self.wait_offers({PROVIDER_A: (1, 1), PROVIDER_B: (1, 0)})
        self.agent.stop()
        self.placement.edit(self.placement.tree_by_name(self.agent.root())[PROVIDER_A]['uuid'], 'inventories',
                            lambda inventories: inventories['CUSTOM_NVME'].update(reserved=0))
        self.placement.stop()
        self.agent.start()
        self.agent.ctl('release', claim['id'])
        self.wait_message('Placement was not read yet')
        self.placement.start()
        self.wait_clean()

    def test_another_class_of_its_provider_does_not_matter(self):
        """A class of provider.yaml is beside that of the device, and is never reserved for the cleaning."""
        folder = self.scratch.folder('provider-config')
        (folder / 'x.yaml').write_text(
            "meta: {schema_version: '1.0'}\nproviders:\n- identification: {name: '%s'}\n"
            '  inventories:\n    additional:\n    - CUSTOM_OTHER: {total: 3}\n' % PROVIDER_A)
        self.agent.configure({'compute': {'provider_config_location': folder}})
        self.agent.restart('synced')
        self.use()
        wait_until(lambda: self.row() is None, 30, 'the device to be clean')
        self.assertEqual(self.read('done'), [CLEAN, PROVE])
        self.assertEqual(self.placement.tree_by_name(self.agent.root())[PROVIDER_A]['inventories']['CUSTOM_OTHER']['reserved'], 0)

    def test_an_allocation_of_another_consumer_delays_the_cleaning(self):
        """Its end raises no generation, so only a read at an interval sees it."""
        self.agent.configure({'DEFAULT': {'update_resources_interval': 1}})
        self.agent.ctl('reload')
        provider = self.placement.tree_by_name(self.agent.root())[PROVIDER_A]
        consumer = self.placement.place(None, {provider['uuid']: {'CUSTOM_NVME': 1}})
        self.use()
        self.wait_words('Placement has 1 used by consumer ' + consumer)
        self.assertEqual(self.offers()[PROVIDER_A], (1, 1))
        self.placement.delete(consumer)
        wait_until(lambda: self.read('started'), 50, 'the first unit')
        self.wait_clean()

    def test_an_answer_from_before_a_change_does_not_count(self):
        """A server gets the device, and nova-compute reserves it, between two reads of its allocations."""
        provider = self.placement.tree_by_name(self.agent.root())[PROVIDER_A]
        record = provider['inventories']['CUSTOM_NVME']
        self.agent.configure({'placement': {'endpoint_override': self.proxy.endpoint}})
        self.agent.restart('synced')
        self.addCleanup(self.proxy.clear)
        unwritten = self.proxy.add(faults.server_error(503, method='PUT', path='/inventories'))
        self.use()
        self.wait_message('Placement still offers it')
        path = '/resource_providers/%s/allocations' % provider['uuid']
        self.agent.ctl('sync', check=False)
        self.assertGreater(self.proxy.count('GET', path), 0)
        consumer = self.placement.place(None, {provider['uuid']: {'CUSTOM_NVME': 1}})
        self.placement.set_part(provider['uuid'], 'inventories', {'CUSTOM_NVME': {**record, 'reserved': 1}})
        unread = self.proxy.add(faults.server_error(503, method='GET', path=path))
        for _ in range(2):
            self.agent.ctl('sync', check=False)
        self.wait_message('its allocations in Placement were not read yet')
        self.proxy.remove(unread)
        self.proxy.remove(unwritten)
        self.wait_words('Placement has 1 used by consumer ' + consumer)
        self.placement.delete(consumer)
        self.wait_clean()


class TestOneTimeUse(CleanCase):
    """Nova reserves such a device for ever after its first use."""
    spec = {'vendor_id': '144d', 'resource_class': 'CUSTOM_NVME', 'one_time_use': 'yes'}

    def test_comes_back_after_a_guest(self):
        consumer = str(uuid.uuid4())
        self.libvirtd.define(guest_xml('g1', memory_mib=64, uuid=consumer, devices=[A]))
        wait_until(lambda: self.row() is not None, 20, 'a row of the guest')
        self.wait_offers({PROVIDER_A: (1, 1), PROVIDER_B: (1, 0)})
        self.libvirtd.virsh('undefine', 'g1')
        self.wait_offers({PROVIDER_A: (1, 0), PROVIDER_B: (1, 0)})
        self.assertEqual(self.read('done'), [CLEAN, PROVE])

    def test_comes_back_if_placement_alone_knows_of_its_use(self):
        provider = self.placement.tree_by_name(self.agent.root())[PROVIDER_A]
        self.agent.stop()
        record = provider['inventories']['CUSTOM_NVME']
        self.placement.set_part(provider['uuid'], 'inventories', {'CUSTOM_NVME': {**record, 'reserved': 1}})
        self.agent.start()
        self.wait_offers({PROVIDER_A: (1, 0), PROVIDER_B: (1, 0)})
        self.assertEqual(self.read('done'), [CLEAN, PROVE])
        self.assertIn('Placement has it reserved after one_time_use', self.agent.log())

    def test_waits_for_the_server_that_has_the_device_in_placement(self):
        """nova-compute reserves the device before it builds the server, whose domain comes later."""
        provider = self.placement.tree_by_name(self.agent.root())[PROVIDER_A]
        record = provider['inventories']['CUSTOM_NVME']
        self.agent.stop()
        consumer = self.placement.place(None, {provider['uuid']: {'CUSTOM_NVME': 1}})
        self.placement.set_part(provider['uuid'], 'inventories', {'CUSTOM_NVME': {**record, 'reserved': 1}})
        self.agent.start()
        for _ in range(3):
            self.agent.ctl('sync', check=False)
            self.assertEqual((self.row(), self.read('started')), (None, []))
        self.placement.delete(consumer)
        self.wait_offers({PROVIDER_A: (1, 0), PROVIDER_B: (1, 0)})
        self.assertEqual(self.read('done'), [CLEAN, PROVE])


class TestKills(CleanCase):
    """The agent and the program are killed at random moments. No device is given out twice or unclean."""

    def test_kills(self):
        seed = int(os.environ.get('COMPUTE_AGENT_SEED', time.time()))
        chance = random.Random(seed)
        for round_ in range(int(os.environ.get('COMPUTE_AGENT_CLEAN_ROUNDS', '4'))):
            with self.subTest(seed=seed, round=round_):
                self.play(chance)

    def play(self, chance):
        for name in ('started', 'done'):
            (self.units / name).unlink(missing_ok=True)
        claim = self.nvme()
        self.assertEqual(claim['devices'][0]['address'], A)
        wait_until(lambda: self.offers()[PROVIDER_A] == (1, 1), 20, 'the reservation', step=0.02)
        held = chance.choice((None, None, CLEAN, PROVE))
        if held:
            (self.units / ('hold-' + held)).touch()
        release = self.agent.begin('release', str(claim['id']))
        time.sleep(chance.random() * 1.2)
        what = chance.choice(('agent', 'program', 'both', 'reboot'))
        program = self.manager.program
        if what != 'agent' and program and program.poll() is None:
            program.kill()
        if what != 'program':
            self.agent.kill()
        release.communicate()
        if what == 'reboot':
            self.manager.forget()
        self.check()
        for path in self.units.glob('hold-*'):
            path.unlink()
        if what != 'program':
            self.agent.start()
        self.agent.ctl('release', claim['id'], check=False)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and (self.offers()[PROVIDER_A] != (1, 0) or self.row()):
            self.check()
            time.sleep(0.02)
        self.assertEqual((self.offers()[PROVIDER_A], self.row()), ((1, 0), None), what)
        self.agent.ctl('sync', check=False)

    def check(self):
        """A device without a row has run both units since its claim, and no claim gets one with a row."""
        if self.row() is None:
            self.assertEqual(self.read('done')[-2:], [CLEAN, PROVE])
