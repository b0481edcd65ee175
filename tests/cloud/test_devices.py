# SPDX-License-Identifier: LGPL-2.1-or-later
"""The agent chooses the devices of servers ([compute_agent] devices), and Nova attaches exactly these in each flow."""

import json
import xml.etree.ElementTree as ElementTree

from tests.cloud.case import FLAVOR, LARGER, PLUGIN, SECONDS, CloudCase
from tests.env.clean_units import CleanUnits
from tests.env.hosts import Pci, simple_host
from tests.env.scratch import Scratch, wait_until

CARDS = ['0000:81:00.0', '0000:82:00.0', '0000:83:00.0']
MDEVS = ['8b6d7b0a-5f6e-4a52-9c53-0d7f2f6d6c0%d' % i for i in range(2)]
CARD, VGPU = 'CUSTOM_CARD', 'CUSTOM_VGPU'
ONE = {**FLAVOR, CARD: 1}
AGENT = {'pci': {'device_spec': json.dumps({'vendor_id': '10de', 'product_id': '1eb8', 'resource_class': CARD}),
                 'report_in_placement': 'true'},
         'devices': {'enabled_mdev_types': 'nvidia-35'},
         'mdev_nvidia-35': {'device_addresses': '0000:41:00.0', 'mdev_class': VGPU}}


class DevicesCase(CloudCase):
    """Hosts with three cards for passthrough and a vGPU card, which only the agents know."""

    agent_options = AGENT
    nova_options = {'compute_agent': {'devices': '%s, %s' % (CARD, VGPU), 'device_timeout': 5}}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cloud.flavor('card', extra={'resources:' + CARD: '1'})
        cls.cloud.flavor('card-large', LARGER['VCPU'], LARGER['MEMORY_MB'], extra={'resources:' + CARD: '1'})
        cls.cloud.flavor('cards', extra={'resources1:%s' % CARD: '1', 'resources2:%s' % CARD: '1', 'group_policy': 'isolate'})
        cls.cloud.flavor('vgpu', extra={'resources:' + VGPU: '1'})

    @classmethod
    def make_host(cls, name):
        host = simple_host(cells=2, gpus=1, name=name)
        host.gpus[0].types['nvidia-35'].existing = MDEVS  # the kernel makes none here
        host.pci = [Pci(address, 1, 0x10de, 0x1eb8, 0x030200, 'vfio-pci') for address in CARDS]
        return host

    def attached(self, server, host=None):
        """Returns the devices of the server's domain: PCI addresses and uuids of mdevs."""
        domain = ElementTree.fromstring((host or self.host).libvirtd.virsh('dumpxml', '--inactive', server))
        found = []
        for address in domain.findall('devices/hostdev/source/address'):
            parts = [int(address.get(part, '0'), 16) for part in ('domain', 'bus', 'slot', 'function')]
            found.append(address.get('uuid') or '%04x:%02x:%02x.%x' % tuple(parts))
        return sorted(found)

    def claimed(self, server, host=None):
        """Returns the devices of the server's claim in the same form."""
        return sorted(device['mdev'] or device['address'] for claim in (host or self.host).agent.claims()
                      if claim['consumer'] == server for device in claim['devices'])

    def same(self, server, n=1, host=None):
        """Checks that the domain has exactly the n devices of the claim. Returns them."""
        devices = self.attached(server, host)
        self.assertEqual(len(devices), n)
        self.assertEqual(devices, self.claimed(server, host))
        return devices

    def boots(self, flavor='card', host=None, amounts=None):
        """Boots a server with devices on a host. Returns its id."""
        server = self.boot(flavor=flavor, host=host)
        self.agree({server: (host or self.host, amounts or ONE)})
        return server

    def fault(self, server):
        return self.cloud.wait_status(server, 'ERROR')['fault']['message']


class TestDevicesOnOneHost(DevicesCase):
    def test_devices_stay_through_the_life_of_a_server(self):
        server = self.boots()
        devices = self.same(server)
        self.assertEqual(self.host.agent.claims()[0]['devices'][0]['class'], CARD)
        for act in (lambda: self.cloud.act(server, 'reboot', {'type': 'HARD'}, 'ACTIVE'),
                    lambda: (self.cloud.act(server, 'os-stop', None, 'SHUTOFF'), self.cloud.act(server, 'os-start', None, 'ACTIVE')),
                    lambda: self.cloud.act(server, 'rebuild', {'imageRef': self.cloud.image()}, 'ACTIVE'),
                    lambda: self.rescues(server, devices)):
            act()
            self.agree({server: (self.host, ONE)})
            self.assertEqual(self.same(server), devices)
        self.cloud.delete(server)
        self.agree({})

    def rescues(self, server, devices):
        self.cloud.act(server, 'rescue', {'rescue_image_ref': self.cloud.image()}, 'RESCUE')
        self.assertEqual(self.same(server), devices)
        self.cloud.act(server, 'unrescue', None, 'ACTIVE')

    def test_each_server_has_devices_of_its_own(self):
        servers = [self.boot('vm%d' % number, 'card') for number in range(len(CARDS))]
        self.agree({server: (self.host, ONE) for server in servers})
        self.assertEqual(sorted(sum((self.same(server) for server in servers), [])), CARDS)

    def test_two_groups_have_two_devices(self):
        server = self.boots('cards', amounts={**FLAVOR, CARD: 2})
        self.same(server, 2)

    def test_mediated_device(self):
        server = self.boots('vgpu', amounts={**FLAVOR, VGPU: 1})
        devices = self.same(server)
        self.assertIn(devices[0], MDEVS)
        self.cloud.act(server, 'reboot', {'type': 'HARD'}, 'ACTIVE')
        self.agree({server: (self.host, {**FLAVOR, VGPU: 1})})
        self.assertEqual(self.same(server), devices)

    def test_reboot_of_the_host(self):
        server = self.boots()
        devices = self.same(server)
        self.host.compute.kill()
        self.host.agent.kill()
        self.host.libvirtd.destroy_guests()
        self.host.configure({'DEFAULT': {'resume_guests_state_on_host_boot': 'true'}})
        self.addCleanup(self.host.configure, {'DEFAULT': {'resume_guests_state_on_host_boot': 'false'}})
        self.host.agent.start()
        self.host.start_compute()
        self.agree({server: (self.host, ONE)})
        self.assertEqual(self.same(server), devices)

    def test_resize_on_the_host_reverted_and_confirmed(self):
        server = self.boots()
        for action, flavor, amounts in (('revertResize', 'card-large', ONE), ('confirmResize', 'card-large', {**LARGER, CARD: 1}),
                                        ('revertResize', 'small', {**LARGER, CARD: 1}), ('confirmResize', 'cards', {**FLAVOR, CARD: 2}),
                                        ('confirmResize', 'small', FLAVOR), ('confirmResize', 'card', ONE)):
            with self.subTest(action, flavor=flavor):
                self.cloud.act(server, 'resize', {'flavorRef': flavor}, 'VERIFY_RESIZE')
                self.cloud.act(server, action, None, 'ACTIVE')
                self.agree({server: (self.host, amounts)})
                self.same(server, amounts.get(CARD, 0))

    def test_shelved_offloaded_and_unshelved(self):
        server = self.boots()
        self.cloud.act(server, 'shelve', None, 'SHELVED_OFFLOADED')
        self.agree({})
        others = self.boots()
        self.cloud.act(server, 'unshelve', None, 'ACTIVE')
        self.agree({server: (self.host, ONE), others: (self.host, ONE)})
        self.assertNotEqual(self.same(server), self.same(others))

    def test_suspend_is_refused_and_the_guest_runs_on(self):
        server = self.boots()
        self.cloud.act(server, 'suspend')
        self.cloud.wait_status(server, 'ACTIVE')
        self.agree({server: (self.host, ONE)})
        self.assertIn('the server has devices of this host (%s)' % CARD, self.host.compute.log)

    def test_boot_without_the_agent_fails_and_releases_all(self):
        self.addCleanup(self.host.agent.start)
        self.host.agent.kill()
        server = self.cloud.create('vm', 'card')
        self.cloud.wait_status(server, 'ERROR')
        told = [entry['message'] for entry in self.cloud.get('/servers/%s/os-instance-actions' % server)['instanceActions']]
        self.assertIn('compute-agent gives no devices to the server', self.host.compute.log)
        self.assertEqual(self.cloud.placement.held(server), {}, told)
        self.assertEqual(self.host.domains(), {})
        without = self.boot()  # a server without devices boots
        self.host.agent.start()
        self.cloud.delete(server)
        self.agree({without: (self.host, FLAVOR)})

    def test_hard_reboot_without_the_agent_leaves_the_guest_running(self):
        server = self.boots()
        devices = self.same(server)
        self.addCleanup(self.host.agent.start)
        self.host.agent.kill()
        self.cloud.act(server, 'reboot', {'type': 'HARD'})
        wait_until(lambda: self.cloud.server(server)['OS-EXT-STS:task_state'] is None, SECONDS, 'the reboot to fail', step=0.5)
        self.assertEqual(self.host.domains(), {server: True})
        self.host.agent.start()
        self.cloud.act(server, 'os-resetState', {'state': 'active'})
        self.agree({server: (self.host, ONE)})
        self.cloud.act(server, 'reboot', {'type': 'HARD'}, 'ACTIVE')
        self.agree({server: (self.host, ONE)})
        self.assertEqual(self.same(server), devices)

    def restart_compute(self, classes):
        """Restarts nova-compute with other classes."""
        self.host.configure({'compute_agent': {'devices': classes}})
        self.host.compute.stop()
        before = len(self.host.compute.log)
        self.host.start_compute()
        # Nova ends servers that are built before this line.
        wait_until(lambda: 'The owner of the providers of this host' in self.host.compute.log[before:], SECONDS, 'nova-compute to be ready')

    def test_a_class_that_is_not_listed(self):
        """The server is refused, or gets its devices at the next hard reboot if the agent was away."""
        self.restart_compute(CARD)
        refused = self.cloud.create('vm', 'vgpu')
        self.cloud.wait_status(refused, 'ERROR')
        self.assertIn('[compute_agent] devices of nova.conf does not list ' + VGPU, self.host.compute.log)
        self.cloud.delete(refused)
        self.addCleanup(self.host.agent.start)
        self.host.agent.kill()
        server = self.boot(flavor='vgpu')
        self.assertEqual(self.attached(server), [])
        self.host.agent.start()
        self.restart_compute('%s, %s' % (CARD, VGPU))
        self.cloud.act(server, 'reboot', {'type': 'HARD'}, 'ACTIVE')
        self.agree({server: (self.host, {**FLAVOR, VGPU: 1})})
        self.same(server)

    def test_a_server_keeps_its_cordoned_device(self):
        server = self.boots()
        device, = self.same(server)
        self.addCleanup(self.host.agent.ctl, 'uncordon', device, check=False)
        self.host.agent.ctl('cordon', device, '--reason', 'test')
        self.cloud.act(server, 'reboot', {'type': 'HARD'}, 'ACTIVE')
        self.assertEqual(self.same(server), [device])
        self.host.agent.ctl('uncordon', device)
        self.agree({server: (self.host, ONE)})
        self.assertEqual(self.same(server), [device])

    def test_classes_of_nova_are_refused_at_the_start(self):
        for options, words in (
                ({'pci': {'device_spec': json.dumps({'vendor_id': '10de', 'product_id': '1eb8', 'resource_class': 'card'})}},
                 'CUSTOM_CARD is also a class of [pci] device_spec'),
                ({'pci': {'device_spec': json.dumps({'address': CARDS[1]})}},
                 'CUSTOM_CARD counts %s, which is also a device of [pci] device_spec' % CARDS[1]),
                ({'compute_agent': {'devices': 'VCPU'}}, 'VCPU counts no devices')):
            with self.subTest(words):
                self.host.compute.stop()
                before = len(self.host.compute.log)
                self.host.configure(options)
                self.host.start_compute(wait=False)
                wait_until(lambda words=words, before=before: words in self.host.compute.log[before:], SECONDS,
                           'nova-compute to refuse its configuration')
                self.host.compute.kill()
                self.host.options.pop('pci', None)
                self.host.configure({'compute_agent': self.nova_options['compute_agent'], **PLUGIN})
                self.host.start_compute()


class TestCleanedDevices(DevicesCase):
    """A device is reserved from the boot of its server until its units have proved after the deletion that it is clean."""

    agent_options = {**AGENT, 'device_clean cards': {'resource_classes': CARD, 'clean': 'wipe@.service', 'prove': 'prove@.service'}}

    @classmethod
    def setUpClass(cls):
        scratch = Scratch()
        cls.addClassCleanup(scratch.close)
        cls.units = CleanUnits(scratch, {address: (0x10de, 0x1eb8) for address in CARDS})
        cls.addClassCleanup(cls.units.stop)
        super().setUpClass()
        cls.units.start(cls.host.agent.config)

    def reserved(self):
        """Returns the addresses of the cards that Placement has as reserved."""
        tree = self.cloud.placement.tree(self.host.agent.root()).values()
        return sorted(provider['name'][-12:] for provider in tree
                      for resource_class, record in provider['inventories'].items() if resource_class == CARD and record['reserved'])

    def test_a_deleted_server_leaves_no_unclean_device_to_another_one(self):
        server = self.boots()
        device, = self.same(server)
        units = ['wipe@%s.service' % device, 'prove@%s.service' % device]
        wait_until(lambda: self.reserved() == [device], SECONDS, 'the reservation')
        (self.units.folder / ('hold-' + units[0])).touch()
        self.cloud.delete(server)
        wait_until(lambda: self.units.read('started') == units[:1], SECONDS, 'the first unit')
        others = [self.boot('other%d' % number, 'card') for number in range(2)]
        self.agree({other: (self.host, ONE) for other in others})
        self.assertEqual(sorted(sum((self.same(other) for other in others), [])), [card for card in CARDS if card != device])
        self.cloud.wait_status(self.cloud.create('vm', 'card'), 'ERROR')  # no valid host
        (self.units.folder / ('hold-' + units[0])).unlink()
        wait_until(lambda: device not in self.reserved(), SECONDS, 'the device to be offered')
        self.assertEqual(self.units.read('done'), units)


class TestDevicesOnTwoHosts(DevicesCase):
    n_hosts = 2
    nova_options = {**DevicesCase.nova_options, 'DEFAULT': {'allow_resize_to_same_host': 'false'}}

    def setUp(self):
        super().setUp()
        self.there = self.hosts[1]

    def test_cold_migration_reverted_and_confirmed(self):
        server = self.boots(host=self.host)
        devices = self.same(server)
        self.cloud.act(server, 'migrate', None, 'VERIFY_RESIZE')
        self.cloud.act(server, 'revertResize', None, 'ACTIVE')
        self.agree({server: (self.host, ONE)})
        self.assertEqual(self.same(server), devices)
        self.cloud.act(server, 'migrate', None, 'VERIFY_RESIZE')
        self.cloud.act(server, 'confirmResize', None, 'ACTIVE')
        self.agree({server: (self.there, ONE)})
        self.same(server, host=self.there)

    def test_resize_to_the_other_host(self):
        server = self.boots(host=self.host)
        self.cloud.act(server, 'resize', {'flavorRef': 'cards'}, 'VERIFY_RESIZE')
        self.cloud.act(server, 'confirmResize', None, 'ACTIVE')
        self.agree({server: (self.there, {**FLAVOR, CARD: 2})})
        self.same(server, 2, self.there)

    def test_live_migration_is_refused_before_it_starts(self):
        server = self.boots(host=self.host)
        self.cloud.act(server, 'os-migrateLive', {'host': None, 'block_migration': 'auto'})
        path = '/os-migrations?instance_uuid=' + server
        wait_until(lambda: [one['status'] for one in self.cloud.get(path)['migrations']] == ['error'], SECONDS,
                   'the migration to fail', step=0.5)
        self.cloud.wait_status(server, 'ACTIVE')
        self.agree({server: (self.host, ONE)})
        self.assertIn('live migration is impossible: the server has devices of this host (%s)' % CARD,
                      self.there.compute.log + self.cloud.conductor.log)

    def test_evacuation(self):
        server = self.boots(host=self.host)
        self.host.compute.kill()
        self.host.agent.kill()
        self.host.libvirtd.destroy_guests()
        self.host.force_down(True)
        self.cloud.act(server, 'evacuate', {}, 'ACTIVE')
        self.host.agent.start()
        self.host.start_compute(wait=False)
        wait_until(lambda: self.host.force_down(False).status == 200, SECONDS, 'Nova to take the host back', step=1)
        self.host.compute.wait_ready()
        self.agree({server: (self.there, ONE)})
        self.same(server, host=self.there)

    def test_boot_goes_to_the_other_host_without_the_agent(self):
        self.addCleanup(self.host.agent.start)
        self.host.agent.kill()
        servers = [self.boot('vm%d' % number, 'card') for number in range(2)]
        self.host.agent.start()
        self.agree({server: (self.there, ONE) for server in servers})
