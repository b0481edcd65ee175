# SPDX-License-Identifier: LGPL-2.1-or-later
"""A guest that is resized on its own host has two claims, and one of them ends with the resize.

Nova writes Placement itself: the old allocation moves to a migration, and the instance gets the new one. libvirtd and Placement are
real. Guests with a virtual function can be defined here, but not started.
"""

import time
import uuid

from tests.env.agent import Agent
from tests.env.case import EnvCase
from tests.env.fakesys import simple_host, sriov
from tests.env.libvirtd import guest_xml
from tests.env.scratch import wait_until

CARD, VFS = '0000:10:00.0', ['0000:10:01.0', '0000:10:01.1', '0000:10:01.2']
VF_CLASS = 'CUSTOM_PCI_8086_154C'
EXPIRY = 2


def host():
    """Returns a host with a network card of three virtual functions."""
    made = simple_host()
    made.pci = sriov(CARD, len(VFS))
    return made


class ResizeCase(EnvCase):
    shared = ('scratch', 'libvirtd', 'bus')
    make_host = staticmethod(host)

    def setUp(self):
        self.addCleanup(self.libvirtd.delete_guests)
        self.agent = Agent(self.scratch, bus=self.bus, uri=self.libvirtd.uri, placement=self.placement, options={
            'DEFAULT': {'update_resources_interval': 1, 'claim_expiry_time': EXPIRY},
            'pci': {'device_spec': '{"vendor_id": "8086", "product_id": "154c"}', 'report_in_placement': 'true'}})
        self.addCleanup(self.agent.stop)
        self.agent.start('synced')
        self.root = self.agent.root()
        self.card = next(one['uuid'] for name, one in self.placement.tree_by_name(self.root).items()
                         if name.endswith(CARD))
        self.server, self.migration = str(uuid.uuid4()), str(uuid.uuid4())

    def amounts(self, vcpus, memory_mib, vfs=0):
        held = {self.root: {'VCPU': vcpus, 'MEMORY_MB': memory_mib}}
        return {**held, self.card: {VF_CLASS: vfs}} if vfs else held

    def claim(self, held, *more):
        resources = {name: amount for amounts in held.values() for name, amount in amounts.items()}
        return self.agent.claim(','.join('%s=%d' % item for item in resources.items()), self.server, *more)

    def define(self, vcpus, memory_mib, vfs=()):
        """Destroys the domain and defines it with another size, as Nova does."""
        self.libvirtd.delete_guests()
        self.libvirtd.define(guest_xml('server', memory_mib=memory_mib, vcpus=vcpus, uuid=self.server, devices=vfs))

    def boot(self, held, vcpus, memory_mib):
        """Places a server as the scheduler does, and returns its claim. Its domain is defined."""
        self.placement.write({self.server: held})
        claim = self.claim(held)
        self.define(vcpus, memory_mib, [device['address'] for device in claim['devices']])
        self.agent.ctl('confirm', claim['id'])
        return claim

    def begin(self, old, new):
        self.placement.write({self.migration: old, self.server: new})
        return self.claim(new, '--resize-target')

    def resize(self, old, new):
        """Begins a resize between two flavors, and returns both claims of the server."""
        self.old, self.new = self.amounts(*old), self.amounts(*new)
        return self.boot(self.old, 1, 32), self.begin(self.old, self.new)

    def confirm(self):
        self.placement.write({self.migration: {}})

    def revert(self):
        self.placement.write({self.server: self.old, self.migration: {}})

    def sync(self, n=3):
        for _ in range(n):
            self.agent.ctl('sync')

    def findings(self):
        return self.agent.ctl_json('audit', check=False)['findings']

    def ids(self):
        return [claim['id'] for claim in self.agent.claims()]

    def wait_only(self, claim):
        """Waits until only this claim is left, as the first of its consumer."""
        wait_until(lambda: self.ids() == [claim['id']], 30, 'one claim')
        left, = self.agent.claims()
        self.assertEqual((left['state'], left['resize_target']), ('confirmed', False))
        self.assertEqual([device['address'] for device in left['devices']],
                         [device['address'] for device in claim['devices']])
        wait_until(lambda: not self.findings() and not self.agent.problems(), 20, 'no problems')

    def assert_both(self, first, second):
        """Checks that both claims stay for longer than the expiry time."""
        end = time.monotonic() + 2 * EXPIRY + 1
        while time.monotonic() < end:
            self.sync(1)
            self.assertEqual(self.ids(), [first['id'], second['id']])
            time.sleep(0.3)
        self.assertEqual(self.agent.problems(), [])

    def assert_ended(self, claim, kept):
        ended = [one for one in self.agent.ctl_json('claims', '--history')['claims'] if one['id'] == claim['id']]
        self.assertIn('its resize is over', ended[0]['end_reason'])
        self.assertIn('Released claim %d of %s: its resize is over. Guest server and Placement have the amounts of '
                      'claim %d' % (claim['id'], self.server, kept['id']), self.agent.log())

    def assert_free(self, n):
        """Checks that n servers can claim a virtual function each."""
        for _ in range(n):
            server = str(uuid.uuid4())
            self.placement.write({server: self.amounts(1, 32, 1)}, 'another')
            self.agent.claim('VCPU=1,MEMORY_MB=32,%s=1' % VF_CLASS, server)


class TestConfirmed(ResizeCase):
    def test_the_first_claim_ends_when_nova_deletes_the_migration(self):
        first, second = self.resize((1, 32, 1), (2, 64))
        self.assert_both(first, second)
        self.define(2, 64)
        # VERIFY_RESIZE: the resize can still be reverted.
        self.assert_both(first, second)
        self.confirm()
        self.wait_only(second)
        self.assert_ended(first, second)
        self.assert_free(3)

    def test_the_new_flavor_has_the_device(self):
        first, second = self.resize((1, 32), (1, 32, 1))
        self.define(1, 32, [second['devices'][0]['address']])
        self.assert_both(first, second)
        self.confirm()
        self.wait_only(second)
        self.assert_free(2)

    def test_the_claim_follows_the_device_that_nova_chose(self):
        """Both flavors have a device, and Nova gave the domain another one than the claim has."""
        first, second = self.resize((1, 32, 1), (2, 64, 1))
        taken = [claim['devices'][0]['address'] for claim in (first, second)]
        other, = set(VFS) - set(taken)
        self.define(2, 64, [other])
        self.confirm()
        wait_until(lambda: len(self.ids()) == 1 and self.ids()[0] > second['id'], 30, 'a claim of the guest')
        left, = self.agent.claims()
        self.assertEqual([device['address'] for device in left['devices']], [other])
        self.assertEqual(self.agent.problems(), [])
        self.assert_free(2)

    def test_an_agent_that_was_dead_ends_the_claim_at_its_start(self):
        first, second = self.resize((1, 32, 1), (2, 64))
        self.agent.kill()
        self.define(2, 64)
        self.confirm()
        self.agent.start('synced')
        self.wait_only(second)
        self.assert_ended(first, second)

    def test_a_claim_that_the_caller_released_leaves_the_other_as_the_first(self):
        first, second = self.resize((1, 32, 1), (2, 64))
        self.define(2, 64)
        self.agent.ctl('confirm', second['id'])
        self.agent.ctl('release', first['id'])
        self.confirm()
        self.wait_only(second)

    def test_the_allocation_of_the_first_claim_of_a_resize(self):
        """The agent wrote the first allocation, and Nova moved it to the migration."""
        old, new = self.amounts(1, 32, 1), self.amounts(2, 64)
        first = self.claim(old)
        self.define(1, 32, [first['devices'][0]['address']])
        self.agent.ctl('confirm', first['id'])
        self.assertEqual(self.placement.held(self.server), old)
        second = self.begin(old, new)
        self.define(2, 64)
        self.assert_both(first, second)
        self.confirm()
        self.wait_only(second)
        self.assertEqual(self.placement.held(self.server), new)


class TestBeyondTheDomain(ResizeCase):
    """Both flavors allocate at least the amounts of the domain, so the domain agrees with both claims."""

    def test_the_first_claim_ends_after_a_confirmed_resize(self):
        first, second = self.resize((1, 48), (3, 64))
        self.define(1, 32)
        self.assert_both(first, second)
        self.confirm()
        self.wait_only(second)
        self.assert_ended(first, second)

    def test_the_second_claim_ends_after_a_reverted_resize(self):
        first, second = self.resize((1, 48), (3, 64))
        self.define(1, 32)
        self.agent.ctl('confirm', second['id'])
        self.revert()
        self.define(1, 32)
        self.wait_only(first)
        self.assert_ended(second, first)


class TestReverted(ResizeCase):
    def test_the_second_claim_ends(self):
        first, second = self.resize((1, 32, 1), (2, 64, 1))
        self.define(2, 64, [second['devices'][0]['address']])
        self.agent.ctl('confirm', second['id'])
        self.assert_both(first, second)
        # Nova writes Placement first. At that time the domain still has the new size.
        self.revert()
        self.sync()
        self.assertEqual(self.ids(), [first['id'], second['id']])
        self.define(1, 32, [first['devices'][0]['address']])
        self.wait_only(first)
        self.assert_ended(second, first)
        self.assert_free(2)

    def test_a_resize_that_failed_before_the_domain_was_changed(self):
        first, _ = self.resize((1, 32), (2, 64, 1))
        self.revert()
        self.wait_only(first)
        self.assert_free(3)

    def test_an_agent_that_was_dead(self):
        first, second = self.resize((1, 32, 1), (2, 64))
        self.define(2, 64)
        self.agent.ctl('confirm', second['id'])
        self.agent.kill()
        self.define(1, 32, [first['devices'][0]['address']])
        self.revert()
        self.agent.start('synced')
        self.wait_only(first)


class TestUndecided(ResizeCase):
    def test_claims_of_one_size_are_listed_with_what_to_do(self):
        same = self.amounts(1, 32)
        first = self.boot(same, 1, 32)
        second = self.begin(same, same)
        self.agent.ctl('confirm', second['id'])
        self.assert_both(first, second)
        self.confirm()
        words = 'guest server has claims %d and %d' % (first['id'], second['id'])
        wait_until(lambda: any(words in text for text in self.agent.problems()), 30, 'the problem')
        finding, = wait_until(self.findings, 30, 'the finding')
        self.assertEqual((finding['type'], finding['remedy'], finding['consumer']), ('resized', 'none', self.server))
        self.assertIn('computectl release', finding['text'])
        self.assertEqual(self.ids(), [first['id'], second['id']])
        self.agent.ctl('release', first['id'])
        self.wait_only(second)

    def test_a_placement_that_is_away_ends_nothing(self):
        first, second = self.resize((1, 32, 1), (2, 64))
        self.define(2, 64)
        self.confirm()
        self.agent.stop()
        self.placement.stop()
        self.agent.start()
        time.sleep(2 * EXPIRY)
        self.assertEqual(self.ids(), [first['id'], second['id']])
        self.placement.start()
        self.wait_only(second)
