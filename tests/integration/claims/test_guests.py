# SPDX-License-Identifier: LGPL-2.1-or-later
"""Claims and guests: names of devices, guests without claims, orphans, and disagreements between a guest and its claim."""

import json
import sqlite3
import uuid
from xml.etree import ElementTree

from tests.env.hosts import DEMO_MDEV
from tests.env.libvirtd import guest_xml
from tests.env.scratch import wait_until
from tests.integration.agent.test_agent import GPU_A, GPU_B
from tests.integration.claims.test_claims import ClaimCase

ADDRESS_A, ADDRESS_B = '0000:41:00.0', '0000:81:00.0'


class GuestCase(ClaimCase):
    def tearDown(self):
        self.libvirtd.delete_guests()

    def of_guest(self, agent, guest):
        """Returns the active claims of a guest."""
        done = agent.ctl('who', guest, '--json=short', check=False)
        return json.loads(done.stdout)['claims']


class TestDevices(GuestCase):
    def test_a_claim_names_its_device_and_prints_it_for_the_domain(self):
        agent = self.start_agent()
        claims = [agent.claim('VGPU=1') for _ in range(8)]
        devices = [claim['devices'][0] for claim in claims]
        self.assertEqual(len({device['mdev'] for device in devices}), 8)
        for claim, device in zip(claims, devices):
            self.assertEqual(claim['allocations'][0]['name'], 'demo_' + device['device'])
            self.assertEqual(device['mdev_type'], 'nvidia-35')
            self.assertIn(device['address'], (ADDRESS_A, ADDRESS_B))
        # The existing mdev is used before the agent plans another one.
        self.assertIn(DEMO_MDEV, [device['mdev'] for device in devices])
        self.assertEqual([device['exists'] for device in devices].count(True), 1)

        shown = agent.ctl_json('show', claims[0]['id'])
        self.assertEqual(shown['devices'], claims[0]['devices'])
        self.assertEqual(len(shown['boot_id']), 32)
        self.assertIn(devices[0]['mdev'], agent.ctl('show', claims[0]['id']).stdout)

        xml = agent.ctl('show', claims[0]['id'], '--xml').stdout
        hostdev = ElementTree.fromstring('<devices>%s</devices>' % xml).find('hostdev')
        self.assertEqual(hostdev.find('source/address').get('uuid'), devices[0]['mdev'])
        # libvirt accepts the XML unchanged.
        self.libvirtd.define(guest_xml('taker', extra='<devices>%s</devices>' % xml))
        self.assertIn(devices[0]['mdev'], self.libvirtd.virsh('dumpxml', 'taker'))

    def test_an_mdev_that_is_made_with_the_uuid_is_the_claims(self):
        agent = self.start_agent()
        claim = agent.claim('VGPU=1', None, '--required', '!CUSTOM_NONE')
        device = claim['devices'][0]
        if device['exists']:
            claim = agent.claim('VGPU=1')
            device = claim['devices'][0]
        self.assertFalse(device['exists'])
        self.libvirtd.create_mdev(device['address'], 'nvidia-35', device['mdev'])
        self.addCleanup(self.libvirtd.remove_mdev, device['mdev'])
        agent.ctl('sync')
        self.assertTrue(agent.ctl_json('show', claim['id'])['devices'][0]['exists'])
        others = [agent.claim('VGPU=1')['devices'][0]['mdev'] for _ in range(5)]
        self.assertNotIn(device['mdev'], others)

    def test_an_mdev_of_a_guest_is_not_given_away(self):
        self.libvirtd.define(guest_xml('owner', devices=[DEMO_MDEV]))
        agent = self.start_agent()
        total = self.vgpus(agent, GPU_A) + self.vgpus(agent, GPU_B) - 1
        given = [agent.claim('VGPU=1')['devices'][0]['mdev'] for _ in range(total)]
        self.assertNotIn(DEMO_MDEV, given)
        self.assertEqual(agent.claim('VGPU=1', check=False).returncode, 1)

    def test_the_verb_who_lists_claims_of_devices_and_guests(self):
        agent = self.start_agent()
        consumer = str(uuid.uuid4())
        claim = agent.claim('VGPU=1', consumer)
        device = claim['devices'][0]
        provider = [held['name'] for held in claim['allocations'] if 'VGPU' in held['resources']][0]
        for what in (consumer, device['mdev'], device['address'], device['device'], provider):
            found = agent.ctl_json('who', what)['claims']
            self.assertEqual([c['id'] for c in found], [claim['id']], what)
        for what, words in ((str(uuid.uuid4()), 'No claims.'), ('cpu:0', 'No claims.'), ('cell:0', 'No claims.'),
                            (({GPU_A, GPU_B} - {provider}).pop(), 'No claims.'),
                            ('0000:ff:00.0', '"0000:ff:00.0" is not a device, provider, CPU, cell or guest'), ('cell:99', 'is not a device'),
                            ('cpu:9999', 'is not a device'), ("x' OR 1=1", 'is not a device')):
            done = agent.ctl('who', what, code=1)
            self.assertIn(words, done.stdout + done.stderr)
        agent.ctl('release', claim['id'], '--reason', 'done with it')
        self.assertEqual(agent.ctl('who', device['mdev'], check=False).returncode, 1)
        ended = agent.ctl_json('claims', '--history')['claims'][0]
        self.assertEqual((ended['devices'][0]['mdev'], ended['end_reason']),
                         (device['mdev'], 'done with it'))


class TestGuests(GuestCase):
    def test_guests_that_were_there_first_get_claims(self):
        running = self.libvirtd.start_guest('running', memory_mib=40, vcpus=2)
        self.libvirtd.define(guest_xml('off', memory_mib=64, vcpus=3, devices=[DEMO_MDEV]))
        off = self.libvirtd.virsh('domuuid', 'off').strip()
        agent = self.start_agent()
        wait_until(lambda: len(agent.claims()) == 2, 20, 'two claims')
        claim, = self.of_guest(agent, running)
        self.assertEqual(claim['state'], 'confirmed')
        self.assertEqual(claim['allocations'][0]['resources'], {'VCPU': 2, 'MEMORY_MB': 40})
        self.assertEqual(self.of_guest(agent, 'running'), [claim])
        self.assertEqual(self.of_guest(agent, 'not-there'), [])
        claim, = self.of_guest(agent, off)
        self.assertEqual([device['mdev'] for device in claim['devices']], [DEMO_MDEV])
        self.assertEqual(self.held(agent, 'demo', 'VCPU'), 5)
        self.assertEqual(self.held(agent, GPU_B, 'VGPU'), 1)
        self.assertEqual(agent.problems(), [])
        self.assertIn('had no claim', agent.log())
        # The guests are adopted once, also after a restart.
        agent.kill()
        agent.start('synced')
        agent.ctl('sync')
        self.assertEqual(len(agent.claims()), 2)
        self.assertNotIn('had no claim', agent.log())

    def test_a_damaged_database_is_set_aside_and_built_again_from_the_guests(self):
        guest = self.libvirtd.start_guest('kept', vcpus=2)
        agent = self.start_agent()
        wait_until(lambda: self.of_guest(agent, guest), 20, 'a claim')
        agent.stop()
        agent.lose_claims(damaged=True)
        agent.start('synced')
        self.assertIn('corrupt', agent.log())
        self.assertTrue(list(agent.state.glob('*corrupt*')))
        wait_until(lambda: self.of_guest(agent, guest), 20, 'a claim')
        self.assertEqual(self.held(agent, 'demo', 'VCPU'), 2)
        agent.claim('VCPU=1')

    def test_a_database_that_is_moved_away_is_made_again(self):
        guest = self.libvirtd.start_guest('kept', vcpus=2)
        agent = self.start_agent()
        wait_until(lambda: self.of_guest(agent, guest), 20, 'a claim')
        for path in agent.state.glob('claim.sqlite*'):
            path.rename(path.with_name('moved-' + path.name))
        agent.claim('VCPU=1', code=1)
        agent.ctl('sync')
        agent.claim('VCPU=1')
        self.assertEqual(len(self.of_guest(agent, guest)), 1)

    def test_a_database_that_is_damaged_under_the_agent_is_set_aside(self):
        guest = self.libvirtd.start_guest('kept', vcpus=2)
        agent = self.start_agent()
        wait_until(lambda: self.of_guest(agent, guest), 20, 'a claim')
        # Another writer makes the agent read the database again. Then every page except the first is overwritten.
        with sqlite3.connect(agent.state / 'claim.sqlite') as database:
            database.execute("UPDATE claims SET project_id = 'x'")
        database.execute('PRAGMA wal_checkpoint(TRUNCATE)')
        database.close()
        path = agent.state / 'claim.sqlite'
        with open(path, 'r+b') as file:
            file.seek(4096)
            file.write(b'\x13' * (path.stat().st_size - 4096))
        wait_until(lambda: list(agent.state.glob('*corrupt*')), 30, 'the file to be set aside')
        wait_until(lambda: self.of_guest(agent, guest), 20, 'the claim to be made again')
        agent.claim('VCPU=1')
        self.assertIn('corrupt', agent.log())

    def test_an_orphan_is_released_and_a_guest_that_is_off_is_none(self):
        agent = self.start_agent({'DEFAULT': {'claim_expiry_time': 3}})
        gone = self.libvirtd.start_guest('gone')
        off = self.libvirtd.start_guest('off')
        wait_until(lambda: len(agent.claims()) == 2, 20, 'two claims')
        self.libvirtd.virsh('destroy', 'off')
        self.libvirtd.delete_guest('gone')
        wait_until(lambda: not self.of_guest(agent, gone), 30, 'the orphan to go')
        self.assertEqual(len(self.of_guest(agent, off)), 1)
        ended = [c for c in agent.ctl_json('claims', '--history')['claims']
                 if c['consumer'] == gone]
        self.assertIn('orphan', ended[0]['end_reason'])
        self.assertIn('not on this host any more', agent.log())

    def test_a_claim_whose_guest_came_is_not_lost_when_nobody_confirmed(self):
        agent = self.start_agent({'DEFAULT': {'claim_expiry_time': 4}})
        consumer = str(uuid.uuid4())
        claim = agent.claim('VCPU=1,MEMORY_MB=32', consumer)
        self.libvirtd.start_guest('forgotten', uuid=consumer)
        wait_until(lambda: [(c['id'], c['state']) for c in self.of_guest(agent, consumer)]
                   == [(claim['id'], 'confirmed')], 30, 'the claim to be confirmed')

    def test_a_claim_of_another_boot_is_checked_again(self):
        guest = self.libvirtd.start_guest('kept')
        agent = self.start_agent()
        wait_until(lambda: self.of_guest(agent, guest), 20, 'a claim')
        claim, = self.of_guest(agent, guest)
        agent.stop()
        with sqlite3.connect(agent.state / 'claim.sqlite') as database:
            database.execute("UPDATE claims SET boot_id = 'another'")
        database.close()
        agent.start()
        wait_until(lambda: self.of_guest(agent, guest)[0]['boot_id'] == claim['boot_id'], 20,
                   'the claim to be checked')

    def test_a_difference_is_listed_and_logged_once(self):
        agent = self.start_agent()
        consumer = str(uuid.uuid4())
        claim = agent.claim('VCPU=4,MEMORY_MB=32,VGPU=1', consumer)
        agent.ctl('confirm', claim['id'])
        self.libvirtd.define(guest_xml('other', vcpus=2, uuid=consumer))
        wait_until(lambda: len(agent.problems()) == 2, 20, 'two problems')
        text = '\n'.join(agent.problems())
        self.assertIn('has 2 VCPUs, but its claim has 4', text)
        self.assertIn('does not have mdev %s' % claim['devices'][0]['mdev'], text)
        for _ in range(3):
            agent.ctl('sync')
        self.assertEqual(agent.log().count('its claim has 4'), 1)
        # The agent changes nothing. After the release of the claim the guest gets a new one from its domain.
        self.assertEqual(self.of_guest(agent, consumer)[0]['id'], claim['id'])
        agent.ctl('release', claim['id'])
        agent.ctl('sync')
        self.assertEqual(self.held(agent, 'demo', 'VCPU'), 2)
        self.assertEqual(agent.problems(), [])

    def test_guests_that_are_too_much_for_the_host_are_counted_and_listed(self):
        self.libvirtd.define(guest_xml('huge', memory_mib=1 << 20))
        agent = self.start_agent()
        wait_until(lambda: agent.problems(), 20, 'a problem')
        self.assertIn('MEMORY_MB', agent.problems()[0])
        self.assertEqual(self.held(agent, 'demo', 'MEMORY_MB'), 1 << 20)
        agent.claim('MEMORY_MB=1', code=1)


class TestExplain(GuestCase):
    def test_the_first_term_that_fails_and_by_how_much(self):
        agent = self.start_agent()
        done = agent.ctl('explain', '--resources', 'VCPU=2', '--json=short')
        self.assertTrue(json.loads(done.stdout)['fits'])
        agent.claim('MEMORY_MB=1000')
        inventory = [p for p in agent.ctl_json('tree')['providers'] if p['name'] == 'demo'][0]
        memory = inventory['inventories']['MEMORY_MB']
        free = memory['capacity'] - memory['used']
        done = agent.ctl('explain', '--resources', 'MEMORY_MB=%d' % (free + 7),
                         '--group', 'gpu:VGPU=1', '--required', 'gpu:CUSTOM_FAST',
                         '--json=short', code=1)
        document = json.loads(done.stdout)
        self.assertFalse(document['fits'])
        terms = {(p['name'], p['class']): (p['term'], p['missing']) for p in document['providers']}
        self.assertEqual(terms[('demo', 'MEMORY_MB')], ('capacity', 7))
        self.assertEqual(terms[(GPU_A, 'VGPU')], ('trait', 0))
        self.assertEqual(terms[(GPU_B, 'VGPU')], ('trait', 0))
        text = agent.ctl('explain', '--resources', 'VCPU=99', check=False).stdout
        self.assertIn('max_unit', text)
        self.assertEqual(agent.ctl('explain', '--resources', 'CUSTOM_X=1', check=False).returncode, 1)
        for trait, words in (('CUSTOM_GOLD', 'lacks the required trait CUSTOM_GOLD'),
                             ('!HW_ARCH_X86_64', 'has the forbidden trait HW_ARCH_X86_64')):
            done = agent.ctl('explain', '--resources', 'VCPU=1', '--required', trait, code=1)
            self.assertRegex(done.stdout, r'demo +trait +- +%s\n' % words)
        self.assertEqual(len(agent.claims()), 1)
