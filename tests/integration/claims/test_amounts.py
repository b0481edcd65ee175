# SPDX-License-Identifier: LGPL-2.1-or-later
"""Amounts that another writer set in Placement and that no domain shows, and CPUs of emulator and I/O threads.

Nova allocates more than a domain shows: one PCPU for hw:emulator_threads_policy=isolate, or the amounts of a flavor with
resources:VCPU. No remedy lowers these amounts, and the claim of the guest includes them.
"""

import re
import uuid

from tests.env.hosts import simple_host
from tests.env.libvirtd import guest_xml
from tests.env.scratch import wait_until
from tests.integration.claims.test_guests import GuestCase

FAST = {'claim_expiry_time': 1, 'update_resources_interval': 1}
CPUS = {'cpu_shared_set': '0-3', 'cpu_dedicated_set': '4-7'}


def pinned(*pins, extra='', cell=1):
    """Returns elements of a domain whose guest CPUs are pinned to one host CPU each."""
    return ('<cputune>%s%s</cputune><numatune><memory mode="strict" nodeset="%d"/></numatune>'
            % (''.join('<vcpupin vcpu="%d" cpuset="%d"/>' % pin for pin in enumerate(pins)), extra, cell))


SHARED = "<cputune><vcpupin vcpu='0' cpuset='0-1'/><vcpupin vcpu='1' cpuset='0-1'/></cputune>"
EMULATOR = '<emulatorpin cpuset="4"/>'


class AmountCase(GuestCase):
    @staticmethod
    def make_host():
        return simple_host(cells=2)  # 8 CPUs, 4 on each cell

    def start(self, heal=None, options=None, **more):
        sections = {'DEFAULT': FAST, 'compute': CPUS, **(options or {})}
        if heal:
            sections['agent'] = {'heal_each_cycles': heal}
        return self.start_agent(sections, **more)

    def resources(self, agent, guest):
        """Returns the sums of all claims of a guest, by resource class."""
        sums = {}
        for claim in self.of_guest(agent, guest):
            for allocation in claim['allocations']:
                for name, amount in allocation['resources'].items():
                    sums[name] = sums.get(name, 0) + amount
        return sums

    def wait_resources(self, agent, guest, expected):
        wait_until(lambda: len(self.of_guest(agent, guest)) == 1 and self.resources(agent, guest) == expected, 30,
                   'a claim of %s' % expected)

    def beyond(self, agent, guest):
        claim, = self.of_guest(agent, guest)
        return claim['beyond_domain']

    def place(self, agent, amounts, guest=None):
        return self.placement.place(guest, {agent.root(): amounts})

    def assert_untouched(self, agent, guest, amounts):
        """Checks that no remedy is proposed or applied, and that the status is good."""
        # An audit waits for the expiry time before it judges a consumer. Some cycles pass in this time.
        for _ in range(4):
            agent.ctl('sync')
        wait_until(lambda: agent.ctl_json('audit')['in_flight'] == 0, 20, 'no consumer that is young')
        document = agent.ctl_json('audit')
        self.assertEqual([(f['type'], f['text']) for f in document['findings'] if f['problem']], [])
        self.assertEqual([f['remedy'] for f in document['findings'] if f['remedy'] != 'none'], [])
        agent.ctl('heal')
        self.assertEqual(self.placement.held(guest), {agent.root(): amounts})
        self.assertEqual(agent.problems(), [])
        agent.ctl('status')


class TestLarger(AmountCase):
    def start_isolated(self, heal=None):
        """Starts with hw:emulator_threads_policy=isolate: Nova allocates PCPU=3, and the domain shows two CPUs."""
        agent = self.start(heal)
        amounts = {'PCPU': 3, 'MEMORY_MB': 32}
        guest = self.place(agent, amounts)
        self.libvirtd.define(guest_xml('nova', 32, 2, uuid=guest, extra=pinned(5, 6, extra=EMULATOR)))
        self.wait_resources(agent, guest, amounts)
        return agent, guest, amounts

    def test_an_isolated_emulator_thread_keeps_its_pcpu(self):
        agent, guest, amounts = self.start_isolated(heal=1)
        self.assertEqual(self.beyond(agent, guest), {'PCPU': 1})
        self.assertIn('not shown by the domain', agent.ctl('claims').stdout)
        self.assert_untouched(agent, guest, amounts)
        claim, = self.of_guest(agent, guest)
        agent.restart('synced')
        self.assert_untouched(agent, guest, amounts)
        # A restart creates no new claim.
        self.assertEqual([c['id'] for c in self.of_guest(agent, guest)], [claim['id']])

    def test_amounts_of_a_flavor_with_resources(self):
        """A flavor with resources:VCPU=4, a larger MEMORY_MB and a custom class of the root."""
        folder = self.scratch.folder('provider-config')
        (folder / 'root.yaml').write_text(
            "meta: {schema_version: '1.0'}\nproviders:\n- identification: {name: %s}\n"
            '  inventories:\n    additional:\n    - CUSTOM_LICENCE: {total: 5}\n' % self.make_host().name)
        agent = self.start(heal=1, options={'compute': {**CPUS, 'provider_config_location': folder}})
        amounts = {'VCPU': 4, 'MEMORY_MB': 64, 'CUSTOM_LICENCE': 2}
        guest = self.place(agent, amounts)
        self.libvirtd.start_guest('nova', memory_mib=32, vcpus=2, uuid=guest, extra=SHARED)
        self.wait_resources(agent, guest, amounts)
        self.assertEqual(self.beyond(agent, guest), {'VCPU': 2, 'MEMORY_MB': 32})
        self.assert_untouched(agent, guest, amounts)

    def test_amounts_that_grow_and_shrink_after_the_claim_was_made(self):
        agent = self.start()
        guest = self.place(agent, {'VCPU': 2, 'MEMORY_MB': 32})
        self.libvirtd.start_guest('nova', memory_mib=32, vcpus=2, uuid=guest, extra=SHARED)
        self.wait_resources(agent, guest, {'VCPU': 2, 'MEMORY_MB': 32})
        for amounts in ({'VCPU': 4, 'MEMORY_MB': 32}, {'VCPU': 3, 'MEMORY_MB': 48, 'DISK_GB': 1},
                        {'VCPU': 2, 'MEMORY_MB': 32}):
            self.place(agent, amounts, guest)
            self.wait_resources(agent, guest, amounts)
            self.assert_untouched(agent, guest, amounts)
        # The claim is never below the domain.
        self.place(agent, {'VCPU': 3, 'MEMORY_MB': 32}, guest)
        self.wait_resources(agent, guest, {'VCPU': 3, 'MEMORY_MB': 32})
        self.place(agent, {'VCPU': 1, 'MEMORY_MB': 16}, guest)
        self.wait_resources(agent, guest, {'VCPU': 2, 'MEMORY_MB': 32})
        self.assertIn('Placement has other amounts', agent.log())

    def test_a_cycle_in_which_nobody_wrote_reads_no_allocation(self):
        agent = self.start(options={'DEFAULT': {'claim_expiry_time': 1, 'update_resources_interval': 3600}})
        guest = self.place(agent, {'VCPU': 4, 'MEMORY_MB': 32})
        self.libvirtd.start_guest('nova', memory_mib=32, vcpus=2, uuid=guest, extra=SHARED)
        self.wait_resources(agent, guest, {'VCPU': 4, 'MEMORY_MB': 32})
        for _ in range(2):
            agent.ctl('sync')
        mark = self.placement.mark()
        agent.ctl('sync')
        self.assertEqual([path for _, path, *_ in self.placement.requests_since(mark) if 'allocations' in path], [])
        self.place(agent, {'VCPU': 4, 'MEMORY_MB': 33}, guest)
        mark = self.placement.mark()
        agent.ctl('sync')
        paths = [path for _, path, *_ in self.placement.requests_since(mark) if 'allocations' in path]
        self.assertEqual(paths, ['/resource_providers/%s/allocations' % agent.root(), '/allocations/' + guest])

    def test_a_lost_database(self):
        agent, guest, amounts = self.start_isolated()
        agent.stop()
        agent.lose_claims()
        agent.start('synced')
        self.wait_resources(agent, guest, amounts)
        self.assertEqual(self.of_guest(agent, guest)[0]['held'], '4-6')
        self.assert_untouched(agent, guest, amounts)

    def test_a_guest_that_is_resized_with_its_surplus(self):
        agent, guest, amounts = self.start_isolated()
        # Nova writes Placement first and the domain afterwards. The guest grows and shrinks.
        for amounts, vcpus, pins in (({'PCPU': 4, 'MEMORY_MB': 40}, 3, (5, 6, 7)),
                                     ({'PCPU': 2, 'MEMORY_MB': 32}, 1, (5,))):
            self.place(agent, amounts, guest)
            agent.ctl('sync')
            self.libvirtd.define(guest_xml('nova', amounts['MEMORY_MB'], vcpus, uuid=guest,
                                           extra=pinned(*pins, extra=EMULATOR)))
            self.wait_resources(agent, guest, amounts)
            wait_until(lambda: len(self.of_guest(agent, guest)) == 1 and self.beyond(agent, guest) == {'PCPU': 1}, 20,
                       'a claim of the resized guest')
            self.assertEqual(self.resources(agent, guest), amounts)
            self.assert_untouched(agent, guest, amounts)

    def test_a_claim_that_a_caller_made_and_another_writer_raised(self):
        """Nova changed an allocation that the agent wrote. The audit lists it, and it is neither lowered nor a problem."""
        agent = self.start(heal=1)
        guest = str(uuid.uuid4())
        claim = agent.claim('VCPU=2,MEMORY_MB=32', guest)
        self.libvirtd.start_guest('told', memory_mib=32, vcpus=2, uuid=guest, extra=SHARED)
        agent.ctl('confirm', claim['id'])
        amounts = {'VCPU': 4, 'MEMORY_MB': 32}
        self.place(agent, amounts, guest)
        wait_until(lambda: [f['type'] for f in agent.ctl_json('audit')['findings']] == ['larger'], 20, 'the finding')
        self.assert_untouched(agent, guest, amounts)
        self.assertIn('Another writer', agent.ctl('audit').stdout)

    def test_a_guest_that_placement_counts_with_another_class_is_not_lowered(self):
        """Placement counts VCPU for a guest that is pinned to dedicated CPUs. A reshape moves it, healing does not."""
        agent = self.start(heal=1)
        amounts = {'VCPU': 2, 'MEMORY_MB': 32}
        guest = self.place(agent, amounts)
        self.libvirtd.define(guest_xml('old', 32, 2, uuid=guest, extra=pinned(5, 6)))
        wait_until(lambda: self.of_guest(agent, guest), 20, 'the claim')
        wait_until(lambda: agent.ctl_json('audit', check=False)['in_flight'] == 0, 20, 'no consumer that is young')
        agent.ctl('heal', check=False)
        finding, = agent.ctl_json('audit', check=False)['findings']
        self.assertEqual((finding['type'], finding['remedy']), ('amount', 'none'))
        self.assertEqual(self.placement.held(guest), {agent.root(): amounts})


class TestThreads(AmountCase):
    def who(self, agent, cpu):
        """Returns the names of the guests that use a host CPU."""
        return [claim['guest'] for claim in agent.ctl_json('who', 'cpu:%d' % cpu, check=False)['claims']]

    def test_cpus_of_emulator_and_io_threads_are_held(self):
        agent = self.start()
        guest = self.place(agent, {'PCPU': 3, 'MEMORY_MB': 32})
        self.libvirtd.define(guest_xml('nova', 32, 2, uuid=guest, extra='<iothreads>1</iothreads>' + pinned(
            5, 6, extra=EMULATOR + '<iothreadpin iothread="1" cpuset="0-1,7"/>')))
        wait_until(lambda: self.of_guest(agent, guest), 20, 'the claim')
        self.assertEqual(self.of_guest(agent, guest)[0]['held'], '4-7')
        self.assertIn("<emulatorpin cpuset='4'/>", agent.ctl('show', self.of_guest(agent, guest)[0]['id'], '--xml').stdout)
        for cpu in (4, 5, 6, 7):
            self.assertEqual(self.who(agent, cpu), ['nova'], cpu)
        self.assertEqual(self.who(agent, 0), [])
        self.assertIn('Host CPUs allocated to other threads: 4,7', agent.ctl('who', 'nova').stdout
                      + agent.ctl('show', self.of_guest(agent, guest)[0]['id']).stdout)
        # No dedicated CPU is left, although Placement has a free one.
        agent.claim('PCPU=1,MEMORY_MB=32', None, '--cpu-policy', 'dedicated', code=1)
        self.assertEqual(agent.problems(), [])

    def test_pins_that_come_and_go(self):
        """The guest can run on all cells, and its emulator thread is pinned."""
        agent = self.start()
        define = lambda extra: self.libvirtd.define(guest_xml('g', 32, 1, uuid=guest, extra=extra))
        guest = str(uuid.uuid4())
        define('<cputune><emulatorpin cpuset="6"/></cputune>')
        wait_until(lambda: self.who(agent, 6) == ['g'], 20, 'the CPU')
        claim, = self.of_guest(agent, guest)
        self.assertEqual((claim['held'], claim['cells']), ('6', []))
        define('<cputune><emulatorpin cpuset="5,7"/></cputune>')
        wait_until(lambda: [c['held'] for c in self.of_guest(agent, guest)] == ['5,7'], 20, 'other CPUs')
        self.assertEqual(self.who(agent, 6), [])
        agent.restart('synced')
        self.assertEqual([(c['id'], c['held']) for c in self.of_guest(agent, guest)], [(claim['id'], '5,7')])
        define('')
        wait_until(lambda: [c['held'] for c in self.of_guest(agent, guest)] == [''], 20, 'no CPU')
        text = re.findall('Claim %d of .*' % claim['id'], agent.log())
        self.assertTrue([line for line in text if 'no longer pinned' in line], text)

    def test_a_claim_of_a_caller_holds_the_cpus_of_its_guests_threads(self):
        agent = self.start()
        claim = agent.claim('PCPU=3,MEMORY_MB=32', None, '--cpu-policy', 'dedicated')
        one, two, three = (cpu['cpus'] for cpu in claim['cpus'])
        guest = claim['consumer']
        self.libvirtd.define(guest_xml('g', 32, 2, uuid=guest, extra=pinned(
            int(one), int(two), extra='<emulatorpin cpuset="%s"/>' % three, cell=claim['cells'][0]['host_cell'])))
        agent.ctl('confirm', claim['id'])
        agent.ctl('sync')
        # The domain shows no third CPU, but its emulator thread uses it.
        self.assertEqual([c['held'] for c in self.of_guest(agent, guest)], [claim['held']])
        self.assertEqual([text for text in agent.problems() if 'VCPUs' in text], [])

    def test_a_cpu_that_another_claim_holds_is_a_problem(self):
        agent = self.start()
        claim = agent.claim('PCPU=1,MEMORY_MB=32', None, '--cpu-policy', 'dedicated')
        self.libvirtd.define(guest_xml('late', 32, 1, extra='<cputune><emulatorpin cpuset="%s"/></cputune>' % claim['held']))
        wait_until(lambda: agent.problems(), 20, 'a problem')
        self.assertIn('guest late is pinned to host CPU %s' % claim['held'], '\n'.join(agent.problems()))
        agent.ctl('release', claim['id'])
        wait_until(lambda: not agent.problems(), 20, 'no problem')
        self.assertEqual(self.who(agent, int(claim['held'])), ['late'])
