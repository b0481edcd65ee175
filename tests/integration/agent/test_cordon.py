# SPDX-License-Identifier: LGPL-2.1-or-later
"""A host or a device is cordoned: its state in Placement, the claims it rejects, a restart, and uncordon."""

import concurrent.futures
import getpass
import uuid

from tests.env import faults
from tests.env.agent import Agent
from tests.env.fakesys import demo_host
from tests.env.libvirtd import guest_xml, testdriver_xml
from tests.env.scratch import wait_until
from tests.integration.claims.placement_case import HostCase
from tests.integration.agent.test_agent import GPU_A, GPU_B, AgentCase

TRAIT = 'COMPUTE_STATUS_DISABLED'
# This is longer than libvirt sends.
UNREADABLE = "<sysinfo type='smbios'><oemStrings>%s</oemStrings></sysinfo>" % ('<entry>a</entry>' * 200000)


class TestCordon(AgentCase):
    def traits(self, agent):
        """Returns the traits of the root provider."""
        return set(self.placement.get('/resource_providers/%s/traits' % agent.root())['traits'])

    def reserved(self, agent, name):
        record = self.placement.tree_by_name(agent.root())[name]['inventories']['VGPU']
        return record['reserved'], record['total']

    def not_well(self, agent):
        shown, doctor = agent.ctl('status', check=False), agent.ctl('doctor', '--all', '--config', agent.config, check=False)
        self.assertEqual((shown.returncode, doctor.returncode), (4, 4), doctor.stdout)
        self.assertIn('cordoned', shown.stdout.splitlines()[0])
        self.assertIn('"computectl uncordon', doctor.stdout)
        return shown.stdout

    def named(self, agent):
        """Returns the names of the cordoned providers, and checks that the document and the text of the tree agree."""
        named = [one['name'] for one in agent.ctl_json('tree')['providers'] if one['cordoned']]
        lines = [line for line in agent.ctl('tree').stdout.splitlines() if ' cordoned ' in line]
        self.assertEqual(len(lines), len(named), lines)
        for name, line in zip(named, lines):
            self.assertIn(name + ' cordoned ', line)
        return named

    def test_a_host(self):
        agent = self.start_agent()
        consumer = uuid.uuid4()
        claim = agent.claim('VCPU=1', consumer)
        agent.ctl('cordon', '--reason', 'the fan is broken')
        self.assertIn(TRAIT, self.traits(agent))
        done = agent.claim('VCPU=1', code=1)
        self.assertIn('cordoned by %s' % getpass.getuser(), done.stderr)
        self.assertIn('the fan is broken', done.stderr)
        self.assertIn('the fan is broken',
                      agent.ctl('explain', '--resources', 'VCPU=1', check=False).stdout)
        self.assertIn('the fan is broken', self.not_well(agent))
        self.assertEqual(self.named(agent), ['demo'])
        # A claim that exists is still returned.
        self.assertEqual(agent.claim('VCPU=1', consumer)['id'], claim['id'])
        self.assertEqual(agent.ctl('drain', check=False).returncode, 3)
        agent.ctl('release', claim['id'])
        self.assertEqual(agent.ctl('drain').returncode, 0)

        # Another client writes the traits without the agent's trait.
        self.placement.request('PUT', '/traits/CUSTOM_OF_SOMEBODY')
        self.placement.edit(agent.root(), 'traits', lambda traits: traits.remove(TRAIT))
        self.placement.edit(agent.root(), 'traits', lambda traits: traits.append('CUSTOM_OF_SOMEBODY'))
        agent.restart('synced')
        self.assertLessEqual({TRAIT, 'CUSTOM_OF_SOMEBODY'}, self.traits(agent))
        self.assertEqual(agent.claim('VCPU=1', check=False).returncode, 1)

        agent.ctl('uncordon')
        self.assertNotIn(TRAIT, self.traits(agent))
        self.assertEqual(self.named(agent), [])
        agent.claim('VCPU=1')
        done = agent.ctl('uncordon', code=1)
        self.assertIn('not cordoned', done.stderr)
        # A trait that an operator set is kept.
        self.placement.edit(agent.root(), 'traits', lambda traits: traits.append(TRAIT))
        agent.ctl('sync')
        self.assertIn(TRAIT, self.traits(agent))
        agent.ctl('cordon')
        agent.ctl('uncordon')
        agent.ctl('sync')
        self.assertIn(TRAIT, self.traits(agent))

    def test_a_device(self):
        agent = self.start_agent()
        agent.ctl('cordon', '0000:41:00.0', '--reason', 'ECC errors')
        self.assertEqual(self.reserved(agent, GPU_A), (4, 4))
        self.assertEqual(self.reserved(agent, GPU_B), (0, 5))
        for _ in range(5):
            claim = agent.claim('VGPU=1')
            self.assertEqual(claim['allocations'][0]['name'], GPU_B)
        done = agent.claim('VGPU=1', code=1)
        self.assertIn('ECC errors', done.stderr)
        self.assertIn('ECC errors', self.not_well(agent))
        self.assertEqual(self.named(agent), [GPU_A])
        # A device can be given by each of its names. A name of no device is an error, not an empty list.
        for name in ('0000:41:00.0', 'pci_0000_41_00_0', GPU_A):
            self.assertEqual(agent.ctl('drain', name).stdout, 'Neither claims nor guests use %s.\n' % name)
        done = agent.ctl('drain', GPU_B, check=False)
        self.assertEqual((done.returncode, done.stdout.count(claim['consumer'])), (3, 1), done.stdout)
        done = agent.ctl('drain', '0000:41:00.9', check=False)
        self.assertEqual((done.returncode, done.stdout), (1, ''))
        self.assertIn('"0000:41:00.9" is not a device of this host', done.stderr)
        agent.restart('synced')
        self.assertEqual(self.reserved(agent, GPU_A), (4, 4))
        agent.ctl('uncordon', 'pci_0000_41_00_0')  # the name of the node device
        self.assertEqual(self.reserved(agent, GPU_A), (0, 4))
        agent.claim('VGPU=1')
        done = agent.ctl('cordon', '0000:ff:00.0', code=1)
        self.assertIn('is not a device of this host', done.stderr)
        self.assertEqual(agent.ctl('cordon', 'a', 'b', check=False).returncode, 2)

    def start_agent_behind_proxy(self):
        """Starts an agent that reports the GPUs as PCI devices, and reaches Placement through the proxy."""
        options = {'devices': {'enabled_mdev_types': None},
                   'pci': {'report_in_placement': 'true', 'device_spec': '{"vendor_id": "10de"}'}}
        return self.start_agent(options, placement=self.proxy.endpoint)

    def has_effect(self, agent, device):
        """Returns whether Placement has the cordon of the device or, for '', of the host."""
        if not device:
            return TRAIT in self.traits(agent)
        records = self.placement.tree_by_name(agent.root())['demo_0000:41:00.0']['inventories'].values()
        return any(record['reserved'] for record in records)

    CORDONS = ((), 'traits', 'host_cordoned'), (('0000:41:00.0',), 'inventories', 'devices_cordoned')

    def test_the_end_of_a_cordon_whose_write_got_no_answer(self):
        """Placement has made the write, and only the next read shows it."""
        agent = self.start_agent_behind_proxy()
        for device, part, _ in self.CORDONS:
            with self.subTest(part):
                with self.proxy.fault(faults.Cut('after', method='PUT', path='/%s$' % part)):
                    agent.ctl('cordon', *device, code=1)
                self.assertTrue(self.has_effect(agent, device))
                agent.ctl('uncordon', *device)
                self.assertFalse(self.has_effect(agent, device))

    def test_a_plan_does_not_end_a_cordon(self):
        """The plan is made while the answer of Placement to the cordon is on its way."""
        agent = self.start_agent_behind_proxy()
        for device, part, key in self.CORDONS:
            agent.restart('synced')  # the plan of the other cordon can be used again otherwise
            with self.subTest(part), concurrent.futures.ThreadPoolExecutor(1) as pool:
                with self.proxy.held(lambda: agent.ctl('cordon', *device), 'after', method='PUT', path='/%s$' % part):
                    lifts = pool.submit(agent.ctl, 'uncordon', *device)
                    wait_until(lambda: not agent.status()[key], 10, 'the end of the cordon')
                    agent.ctl('plan')
                lifts.result()
                self.assertFalse(self.has_effect(agent, device))

    def test_a_device_before_the_first_poll(self):
        """The names of devices are not known yet, so a misspelled one is not accepted. The host can be cordoned."""
        agent = self.make_agent(uri='qemu:///system?socket=/nonexistent/libvirt-sock').start()
        wait_until(lambda: agent.status().get('hypervisor_error'), 20, 'the failed poll')
        for verb in ('cordon', 'uncordon'):
            done = agent.ctl(verb, '0000:41:00.0', code=1)
            self.assertIn('/nonexistent', done.stderr)
        # The guests are not known yet.
        self.assertIn('/nonexistent', agent.ctl('drain', code=1).stderr)
        self.assertEqual(agent.status()['devices_cordoned'], '')
        self.assertEqual(agent.ctl('cordon', check=False).returncode, 1)  # not published
        self.assertIn('the host is cordoned', agent.status()['host_cordoned'])

    def test_a_device_before_the_first_poll_of_a_later_run(self):
        """The claim database has the devices of the last run, so their names are known at once."""
        agent = self.make_agent().start('synced')
        agent.stop()
        agent.configure({'libvirt': {'connection_uri': 'qemu:///system?socket=/nonexistent/libvirt-sock'}})
        agent.start()
        wait_until(lambda: agent.status().get('hypervisor_error'), 20, 'the failed poll')
        self.assertIn('is not a device of this host', agent.ctl('cordon', '0000:4l:00.0', check=False).stderr)
        agent.ctl('cordon', '0000:41:00.0', check=False)  # not published
        self.assertIn('0000:41:00.0', agent.status()['devices_cordoned'])
        agent.ctl('uncordon', '0000:41:00.0', check=False)
        self.assertEqual(agent.status()['devices_cordoned'], '')


class TestDrain(AgentCase):
    """The host is free without claims and without guests that have none."""

    def test_a_guest_that_could_not_get_a_claim(self):
        guest = self.libvirtd.start_guest('web-1')
        self.addCleanup(self.libvirtd.delete_guests)
        self.libvirtd.define(guest_xml('web-1', uuid=guest, extra=UNREADABLE))
        agent = self.start_agent(state='stale')
        self.assertEqual(agent.claims(), [])
        tree = [one['name'] for one in agent.ctl_json('tree')['providers']]
        # The guest can have each device, and be in each cell.
        for words in ([], ['0000:41:00.0'], *([name] for name in tree)):
            self.assertEqual(agent.ctl('drain', *words, code=3).stdout, 'Guest web-1 is on this host without a claim.\n', words)
        self.assertEqual(agent.ctl_json('drain', code=3)['guests'], [{'uuid': guest, 'name': 'web-1'}])
        # A guest that is off needs only its devices.
        self.libvirtd.destroy_guests()
        agent.ctl('sync', check=False)
        self.assertEqual(agent.ctl('drain').stdout, 'Neither claims nor guests use this host.\n')
        agent.ctl('drain', '0000:41:00.0', code=3)
        self.libvirtd.delete_guests()
        agent.ctl('sync')
        agent.ctl('drain', '0000:41:00.0')

    def test_a_driver_without_guests(self):
        agent = self.make_agent({'DEFAULT': {'compute_driver': 'linux'}}, placement=None).start('standalone')
        self.assertEqual(agent.ctl('drain').stdout, 'No claims use this host. The driver linux does not know guests without a claim.\n')
        agent.claim('VCPU=1')
        agent.ctl('drain', code=3)


class TestWhoItWas(HostCase):
    shared = ('scratch', 'bus')

    def test_events_of_a_claim_name_the_caller(self):
        agent = Agent(self.scratch, bus=self.bus, uri=testdriver_xml(demo_host(), self.scratch.path))
        self.addCleanup(agent.stop)
        agent.start('standalone')
        consumer = str(uuid.uuid4())
        claim = agent.claim('VCPU=1', consumer)['id']
        agent.ctl('confirm', claim)
        agent.ctl('release', claim, '--reason', 'moved to rack 7')
        by = r'by %s \(computectl, pid \d+(, [^)]+)?\)' % getpass.getuser()
        for what in ('created for %s %s; ' % (consumer, by), 'confirmed %s; ' % by,
                     'released %s: moved to rack 7; ' % by):
            self.assertRegex(agent.log(), r'Claim %d %sVCPU=1 of vm\.\n' % (claim, what))

    def test_no_directory_is_asked(self):
        agent = Agent(self.scratch, bus=self.bus, uri=testdriver_xml(demo_host(), self.scratch.path))
        # The directory of users does not answer.
        asked = agent.folder / 'asked'
        agent.preload('nss', NSS_SHIM=str(asked))
        self.addCleanup(agent.stop)
        agent.start()
        # The call does not use computectl, which the directory would delay, too.
        for method, *args in (('Cordon', 'ss', '', 'a fan'), ('Uncordon', 's', '')):
            done = self.bus.call_agent(method, *args)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('was cordoned by root: a fan', agent.log())
        self.assertIn('was uncordoned by root', agent.log())
        self.assertFalse(asked.exists())
