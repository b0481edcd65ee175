# SPDX-License-Identifier: LGPL-2.1-or-later
"""The devices that the driver for Nova (plugins/nova) gets from the agent: which servers, which domain, which waits and refusals.

Nova (Debian's python3-nova) is real. dbus-send and the agent are fakes here, and real in tests/cloud/test_devices.py.
"""

import inspect
import json
import unittest
from pathlib import Path
from unittest import mock

import nova.cmd  # before all that eventlet patches  # noqa: F401
import nova.virt
from nova import exception, objects
from nova.compute import provider_tree
from oslo_concurrency import processutils

PLUGIN = str(Path(__file__).resolve().parents[3] / 'plugins/nova')
if PLUGIN not in nova.virt.__path__:
    nova.virt.__path__.append(PLUGIN)

from nova.virt.compute_agent import agent, devices, driver  # noqa: E402
from nova.virt.libvirt import driver as libvirt_driver  # noqa: E402

objects.register_all()
SERVER = '11111111-2222-4333-8444-555555555555'
MDEV = '8b6d7b0a-5f6e-4a52-9c53-0d7f2f6d6c00'
CARD = {'class': 'CUSTOM_CARD', 'device': 'pci_0000_41_00_0', 'address': '0000:41:00.0', 'mdev_type': '', 'mdev': '', 'exists': True,
        'managed': True}
VGPU = {**CARD, 'class': 'CUSTOM_VGPU', 'mdev_type': 'nvidia-35', 'mdev': MDEV, 'exists': False, 'managed': False}
CONF = agent.CONF


class OptionsCase(unittest.TestCase):
    def set_options(self, group='compute_agent', **options):
        for name, value in options.items():
            CONF.set_override(name, value, group=group)
            self.addCleanup(CONF.clear_override, name, group=group)


def flavor(**extra):
    return objects.Flavor(extra_specs={key.replace('__', ':'): value for key, value in extra.items()})


class TestClasses(OptionsCase):
    def test_classes_that_a_flavor_requests(self):
        classes = ['CUSTOM_CARD', 'CUSTOM_VGPU']
        for extra, wanted in (({}, []), ({'resources:CUSTOM_CARD': '1'}, ['CUSTOM_CARD']), ({'resources:CUSTOM_CARD': '0'}, []),
                              ({'resources1:CUSTOM_VGPU': '2', 'resources_x-1:CUSTOM_CARD': '1'}, classes),
                              ({'resources:CUSTOM_OTHER': '1', 'resources:VCPU': '4'}, []),
                              ({'resources:CUSTOM_CARD': 'many'}, []), ({'trait:CUSTOM_CARD': 'required'}, [])):
            with self.subTest(extra):
                self.assertEqual(devices.requested(objects.Flavor(extra_specs=extra), classes), wanted)

    def test_classes_that_contradict_nova(self):
        specs = ['{"vendor_id": "10de", "product_id": "1eb8"}', '[{"address": "0000:41:00.0", "resource_class": "my-nic"}]', 'not JSON', '7']
        aliases = ['{"name": "a", "resource_class": "CUSTOM_FPGA"}', '{"name": "b", "vendor_id": "8086", "product_id": "154d"}']
        of_pci = devices.pci_classes(specs, aliases)
        self.assertEqual(of_pci, {'CUSTOM_PCI_10DE_1EB8': '[pci] device_spec', 'CUSTOM_MY_NIC': '[pci] device_spec',
                                  'CUSTOM_FPGA': '[pci] alias', 'CUSTOM_PCI_8086_154D': '[pci] alias'})
        for classes, words in ((['CUSTOM_CARD'], None), (['CUSTOM_CARD', 'CUSTOM_MY_NIC'], 'CUSTOM_MY_NIC is also a class of [pci] device_spec'),
                               (['VGPU'], 'VGPU is also a class of [devices] enabled_mdev_types'), (['MEMORY_MB'], 'counts no devices'),
                               (['custom'], 'custom is no resource class'), ([], None)):
            with self.subTest(classes):
                reason = devices.contradiction(classes, of_pci, {'VGPU'})
                self.assertTrue(words in reason if words else reason is None, reason)

    def test_addresses_of_providers(self):
        tree = provider_tree.ProviderTree()
        root = tree.new_root('host', SERVER)
        for name, resource_class in (('host_0000:41:00.0', 'CUSTOM_CARD'), ('host_pci_0000_42_00_0', 'CUSTOM_CARD'),
                                     ('host_0000:43:00.0', 'CUSTOM_OTHER')):
            tree.update_inventory(tree.new_child(name, root), {resource_class: {'total': 1}})
        self.assertEqual(devices.provider_addresses(tree, ['CUSTOM_CARD']), {'0000:41:00.0': 'CUSTOM_CARD'})


    def test_nova_does_not_take_the_providers_for_its_own(self):
        """Nova with report_in_placement = false ends at a provider with this trait."""
        self.set_options(devices=['CUSTOM_CARD'])
        tree = provider_tree.ProviderTree()
        root = tree.new_root('host', SERVER)
        for name, resource_class in (('host_0000:41:00.0', 'CUSTOM_CARD'), ('host_0000:43:00.0', 'CUSTOM_OTHER')):
            child = tree.new_child(name, root)
            tree.update_inventory(child, {resource_class: {'total': 1}})
            tree.update_traits(child, [agent.NOVAS_PCI, 'CUSTOM_FAST'])
        self.assertIs(agent.hide_from_pci_tracker(tree), tree)
        self.assertEqual(tree.data('host_0000:41:00.0').traits, {'CUSTOM_FAST'})
        self.assertEqual(tree.data('host_0000:43:00.0').traits, {agent.NOVAS_PCI, 'CUSTOM_FAST'})


class TestDomain(OptionsCase):
    def test_form_of_each_device(self):
        """computectl claim --xml has the same form (tests/unit/ctl/print)."""
        for device, wanted in ((CARD, '<hostdev mode="subsystem" type="pci" managed="yes">'),
                               ({**CARD, 'managed': False}, '<hostdev mode="subsystem" type="pci" managed="no">'),
                               (VGPU, '<hostdev mode="subsystem" type="mdev" managed="no" model="vfio-pci">')):
            text = devices.hostdev(device).to_xml(pretty_print=False)
            text = text.decode() if isinstance(text, bytes) else text
            self.assertIn(wanted, text)
            self.assertIn('uuid="%s"' % MDEV if device['mdev'] else 'domain="0x0000" bus="0x41" slot="0x00" function="0x0"', text)


class FakeCalls(agent.Agent):
    """An agent whose answers are given: each is (None, document) or (name of an error, words)."""

    def __init__(self, *answers):
        self.now, self.calls, self.answers = 0.0, [], list(answers)
        super().__init__(clock=lambda: self.now)

    def _sleep(self, seconds):
        self.now += seconds

    def _claim_placed(self, server, classes, seconds):
        self.calls.append((server, classes, seconds))
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def document(*found):
    return None, json.dumps({'format': agent.CLAIM_FORMAT, 'devices': found})


class TestCalls(OptionsCase):
    def setUp(self):
        self.set_options(device_timeout=10)

    def fails(self, fake, words):
        with self.assertRaises(agent.DevicesUnavailable) as caught:
            fake.claimed_devices(SERVER, ['CUSTOM_CARD'])
        self.assertIn(words, caught.exception.format_message())

    def test_devices_of_other_classes_are_left_to_nova(self):
        fake = FakeCalls(document(CARD, VGPU))
        self.assertEqual(fake.claimed_devices(SERVER, ['CUSTOM_CARD']), [CARD])
        self.assertEqual(fake.calls, [(SERVER, ['CUSTOM_CARD'], 10)])

    def test_passing_errors_are_waited_for(self):
        for name in ('org.computeagent.Agent1.Error.Busy', 'org.computeagent.Agent1.Error.Placement', 'org.freedesktop.DBus.Error.ServiceUnknown',
                     'org.freedesktop.DBus.Error.LimitsExceeded'):
            fake = FakeCalls((name, 'away'), (name, 'away'), document(CARD))
            self.assertEqual(fake.claimed_devices(SERVER, ['CUSTOM_CARD']), [CARD])
            self.assertEqual(len(fake.calls), 3)

    def test_wait_ends_with_the_words_of_the_error(self):
        fake = FakeCalls(('org.freedesktop.DBus.Error.ServiceUnknown', 'no agent'))
        self.fails(fake, 'no agent')
        self.assertLessEqual(fake.now, 10)
        self.assertGreater(len(fake.calls), 5)

    def test_final_errors_end_the_start_at_once(self):
        for name in ('NotPlaced', 'UnknownClass', 'Unavailable', 'NoCapacity', 'Conflict'):
            fake = FakeCalls(('org.computeagent.Agent1.Error.' + name, 'words'))
            self.fails(fake, 'words')
            self.assertEqual(fake.now, 0)

    def test_unknown_documents_are_refused(self):
        for text in ('', '[]', '{}', json.dumps({'format': 'compute-agent-claim/2', 'devices': []})):
            self.fails(FakeCalls((None, text)), 'cannot parse the claim')

    def test_errors_that_dbus_send_prints(self):
        real = agent.Agent()
        for stderr, name in (('Error org.computeagent.Agent1.Error.NotPlaced: no: here\n', 'org.computeagent.Agent1.Error.NotPlaced'),
                             ('Failed to open connection to "system" message bus: No such file\n', 'org.freedesktop.DBus.Error.NoServer'),
                             ('', 'unknown')):
            failed = processutils.ProcessExecutionError(stderr=stderr)
            with mock.patch.object(processutils, 'execute', side_effect=failed):
                self.assertEqual(real._claim_placed(SERVER, ['CUSTOM_CARD'], 5)[0], name)
        with mock.patch.object(processutils, 'execute', side_effect=OSError('none')):
            self.assertEqual(real._claim_placed(SERVER, ['CUSTOM_CARD'], 5), ('OSError', 'cannot run dbus-send: none'))
        with mock.patch.object(processutils, 'execute', return_value=('text', '')) as execute:
            self.assertEqual(real._claim_placed(SERVER, ['A', 'B'], 5), (None, 'text'))
        self.assertEqual(execute.call_args.args[-2:], ('string:' + SERVER, 'array:string:A,B'))


class TestDriver(OptionsCase):
    def setUp(self):
        self.set_options(devices=['CUSTOM_CARD', 'CUSTOM_VGPU'])
        self.driver = driver.LibvirtDriver.__new__(driver.LibvirtDriver)
        self.driver._compute_agent = FakeCalls(document(CARD, VGPU))
        self.driver.mdev_classes = {'VGPU'}
        self.server = objects.Instance(uuid=SERVER, flavor=flavor(resources__CUSTOM_CARD='1', resources__CUSTOM_VGPU='1'))
        self.other = objects.Instance(uuid=SERVER, flavor=flavor())

    def made(self, server):
        guest = mock.Mock()
        with mock.patch.object(libvirt_driver.LibvirtDriver, '_get_guest_config', return_value=guest) as nova_made:
            self.assertIs(self.driver._get_guest_config(server, 1, two=2), guest)
        nova_made.assert_called_once_with(server, 1, two=2)
        return [call.args[0] for call in guest.add_device.call_args_list]

    def test_domain_has_the_devices_and_the_mdev_is_made(self):
        with mock.patch.object(libvirt_driver.LibvirtDriver, '_create_mdev', create=True) as create:
            pci, mdev = self.made(self.server)
        self.assertEqual((pci.bus, mdev.uuid), ('41', MDEV))
        create.assert_called_once_with('pci_0000_41_00_0', 'nvidia-35', uuid=MDEV)

    def test_mdev_of_an_old_nova_is_made_by_its_address(self):
        with mock.patch('nova.privsep.libvirt.create_mdev') as create, mock.patch.object(driver, 'hasattr', return_value=False, create=True):
            self.driver._make_mdev(VGPU)
        create.assert_called_once_with('0000:41:00.0', 'nvidia-35', uuid=MDEV)

    def test_servers_without_classes_do_not_need_the_agent(self):
        self.assertEqual(self.made(self.other), [])
        self.assertEqual(self.driver._compute_agent.calls, [])

    def test_devices_of_nova_are_refused(self):
        self.driver._nova_addresses = {'0000:41:00.0'}
        with self.assertRaises(agent.DevicesUnavailable) as caught:
            self.made(self.server)
        self.assertIn('0000:41:00.0 is also a device of [pci] device_spec', caught.exception.format_message())
        self.driver._nova_addresses = set()
        self.set_options('devices', enabled_mdev_types=['nvidia-36'])
        with self.assertRaises(agent.DevicesUnavailable) as caught:
            self.made(self.server)
        self.assertIn('[devices] enabled_mdev_types', caught.exception.format_message())

    def give_tree(self, **classes):
        """Gives the driver an agent in "top". classes: {end of the name of a provider: class}."""
        tree = provider_tree.ProviderTree()
        root = tree.new_root('host', SERVER)
        tree.update_inventory(root, {'CUSTOM_LICENCE': {'total': 1}})
        for end, name in classes.items():
            tree.update_inventory(tree.new_child('host_' + end, root), {name: {'total': 1}})
        fake = self.driver._compute_agent
        fake._ask = lambda: agent.Answer('top', True)
        fake.any_tree = mock.Mock(return_value=tree)
        return fake

    def test_devices_that_are_not_listed_are_refused(self):
        fake = self.give_tree(**{'0000:81:00.0': 'CUSTOM_A100', 'pci_0000_41_00_0': 'VGPU', 'shapes_nvswitch': 'CUSTOM_H100',
                                 'NUMA0': 'CUSTOM_HUGEPAGES_2M'})
        for name in ('CUSTOM_A100', 'VGPU', 'CUSTOM_H100'):
            server = objects.Instance(uuid=SERVER, flavor=flavor(**{'resources__' + name: '1', 'resources__CUSTOM_CARD': '1'}))
            with self.assertRaises(agent.DevicesUnavailable) as caught:
                self.made(server)
            self.assertIn('[compute_agent] devices of nova.conf does not list %s. Add it' % name, caught.exception.format_message())
        self.assertEqual(fake.calls, [])
        vgpu = objects.Instance(uuid=SERVER, flavor=flavor(resources__VGPU='1'))
        fake._ask, fake._asked_at = lambda: agent.Answer('beside', False), None
        self.assertEqual(self.made(vgpu), [], 'the tree is Nova\'s')
        fake._ask, fake._asked_at = lambda: agent.Answer('top', True), None
        self.set_options('devices', enabled_mdev_types=['nvidia-36'])
        self.assertEqual(self.made(vgpu), [])
        fake.any_tree.return_value = None
        self.assertEqual(self.made(server=objects.Instance(uuid=SERVER, flavor=flavor(resources__CUSTOM_A100='1'))), [])

    def test_other_classes_are_amounts(self):
        fake = self.give_tree(**{'0000:41:00.0': 'CUSTOM_CARD', '0000:81:00.0': 'CUSTOM_MINE', 'NUMA0': 'CUSTOM_HUGEPAGES_2M'})
        self.set_options('pci', device_spec=['{"vendor_id": "10de", "product_id": "1eb8", "resource_class": "mine"}'])
        self.assertEqual(self.made(objects.Instance(uuid=SERVER, flavor=flavor(
            resources__CUSTOM_LICENCE='1', resources__CUSTOM_HUGEPAGES_2M='32'))), [])
        fake.any_tree.reset_mock()
        self.assertEqual(self.made(objects.Instance(uuid=SERVER, flavor=flavor(resources__VCPU='2', resources__CUSTOM_MINE='1'))), [])
        fake.any_tree.assert_not_called()

    def test_hard_reboot_asks_before_the_guest_ends(self):
        self.driver._compute_agent = FakeCalls(('org.computeagent.Agent1.Error.Unavailable', 'gone'))
        with mock.patch.object(libvirt_driver.LibvirtDriver, '_hard_reboot') as nova_reboots:
            self.assertRaises(agent.DevicesUnavailable, self.driver._hard_reboot, None, self.server, [])
            nova_reboots.assert_not_called()
            self.driver._hard_reboot(None, self.other, [])
            nova_reboots.assert_called_once_with(None, self.other, [])

    def test_live_migration_and_suspension_are_refused(self):
        for check in (lambda: self.driver.check_can_live_migrate_source(None, self.server, None),
                      lambda: self.driver.check_can_live_migrate_destination(None, self.server, None, None)):
            with self.assertRaises(exception.MigrationPreCheckError) as caught:
                check()
            self.assertIn('the server has devices of this host (CUSTOM_CARD, CUSTOM_VGPU)', caught.exception.format_message())
        self.assertRaises(exception.InstanceFaultRollback, self.driver.suspend, None, self.server)
        with mock.patch.object(libvirt_driver.LibvirtDriver, 'check_can_live_migrate_source') as nova_checks:
            self.driver.check_can_live_migrate_source(None, self.other, 1)
        nova_checks.assert_called_once_with(None, self.other, 1, None)

    def test_arguments_of_public_methods_are_novas(self):
        for name in ('init_host', 'suspend', 'check_can_live_migrate_source', 'check_can_live_migrate_destination'):
            self.assertEqual(*(inspect.getfullargspec(getattr(one, name))
                               for one in (driver.LibvirtDriver, libvirt_driver.LibvirtDriver)), name)

    def test_mdevs_belong_to_the_agent_where_nova_has_no_types(self):
        with mock.patch.object(libvirt_driver.LibvirtDriver, '_get_all_assigned_mediated_devices', return_value={MDEV: SERVER}):
            self.assertEqual(self.driver._get_all_assigned_mediated_devices(), {})
            self.set_options('devices', enabled_mdev_types=['nvidia-36'])
            self.assertEqual(self.driver._get_all_assigned_mediated_devices(), {MDEV: SERVER})

    def test_contradictions_stop_the_start(self):
        self.driver.mdev_classes = {'VGPU'}
        self.set_options('pci', device_spec=['{"vendor_id": "10de", "product_id": "1eb8", "resource_class": "card"}'])
        self.assertRaisesRegex(exception.InvalidConfiguration, 'CUSTOM_CARD is also a class of .pci. device_spec',
                               self.driver.init_host, 'host')
