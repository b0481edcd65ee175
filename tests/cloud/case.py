# SPDX-License-Identifier: LGPL-2.1-or-later
"""The base class of tests in a cloud with the agent below nova-compute, and its checks after each flow.

A class has one cloud for all of its tests, which leave no server behind. After a flow four sources must agree on the
place and the amounts of each server: Nova, Placement, the claims and the guests.
"""

import collections
import json
import unittest

from tests.env.hosts import simple_host
from tests.env.libvirtd import mount_namespaces_allowed
from tests.env.openstack import Cloud
from tests.env.scratch import EnvError, wait_until
from tests.integration.hook.hook_case import install_hook

SECONDS = 120
PLUGIN = {'DEFAULT': {'compute_driver': 'compute_agent.LibvirtDriver'}}
# Nova removes leftovers in its periodic tasks. The agent polls every two seconds (tests.env.agent).
NOVA = {'DEFAULT': {'update_resources_interval': 5, 'heal_instance_info_cache_interval': 0,
                    'sync_power_state_interval': -1},
        'quota': {'driver': 'nova.quota.NoopQuotaDriver'}}
FLAVOR = {'VCPU': 1, 'MEMORY_MB': 64}
LARGER = {'VCPU': 2, 'MEMORY_MB': 96}


@unittest.skipUnless(mount_namespaces_allowed(), 'needs root, for libvirtd in namespaces of its own')
class CloudCase(unittest.TestCase):
    """A test case with n_hosts hypervisors, each with an agent. mode is [agent] nova of the agents. agent_options are
    their other options, and nova_options those of Nova.

    cloud_class: Cloud, or a class derived from it.
    """

    cloud_class = Cloud
    n_hosts = 1
    mode = 'top'
    agent_options = {}
    nova_options = {}

    @classmethod
    def setUpClass(cls):
        hosts = [cls.make_host('compute-%d' % (number + 1)) for number in range(cls.n_hosts)]
        cls.cloud = cls.cloud_class(hosts, {section: {**NOVA.get(section, {}), **cls.nova_options.get(section, {})}
                                            for section in {*NOVA, *cls.nova_options}})
        cls.addClassCleanup(cls.cloud.close)
        cls.cloud.start()
        cls.hosts = cls.cloud.hypervisors
        cls.host = cls.hosts[0]
        for host in cls.hosts:
            host.make_agent({'agent': {'nova': cls.mode, 'start_jitter_sec': 0}, **cls.agent_options})
            if 'hook' in cls.agent_options:
                install_hook(host.libvirtd, host.bus, host.agent)
                host.libvirtd.restart()  # libvirt searches for hooks when it starts
        cls.cloud.start_computes(PLUGIN if cls.mode == 'top' else {})
        for host in cls.hosts:
            host.take_identity()
            host.agent.start()
        for host in cls.hosts:
            host.agent.wait_state('synced' if cls.mode in ('none', 'top') else 'left-to-nova', SECONDS)
        cls.cloud.flavor('small', FLAVOR['VCPU'], FLAVOR['MEMORY_MB'])
        cls.cloud.flavor('large', LARGER['VCPU'], LARGER['MEMORY_MB'])
        cls.cloud.image()

    @classmethod
    def make_host(cls, name):
        """Returns the description of the hypervisor with this name."""
        return simple_host(cells=2, name=name)

    def setUp(self):
        self.addCleanup(self.written_for_nova, self.cloud.placement.mark())
        self.addCleanup(self.empty)

    def empty(self):
        """Deletes all servers and waits until the four sources are empty."""
        for server in self.servers():
            self.cloud.delete(server, wait=False)
        self.agree({})

    def written_for_nova(self, mark):
        """Checks that no agent wrote allocations of a server, because Nova owns them. A reshape is the only
        exception."""
        done = [line for line in self.cloud.placement.records_since(mark) if line['status'] < 300 and
                line['method'] != 'GET' and 'compute-agent' in line['agent']]
        self.assertEqual([line for line in done if line['path'].startswith('/allocations')], [])

    def servers(self):
        """Returns {id: server} of all servers of Nova, including those that can be restored."""
        listed = self.cloud.get('/servers/detail?all_tenants=1&soft_deleted=1')['servers']
        return {server['id']: server for server in listed}

    def here(self, *servers, amounts=FLAVOR):
        """Returns the argument of agree() for servers on the first host."""
        return {server: (self.host, amounts) for server in servers}

    # ---- the four sources

    def of_nova(self):
        """Returns {host: {server: whether it runs}} from Nova."""
        told = {host.name: {} for host in self.hosts}
        for uuid, server in self.servers().items():
            host = server['OS-EXT-SRV-ATTR:host']
            if host:
                told[host][uuid] = server['OS-EXT-STS:power_state'] in (1, 3)  # running, paused
        return told

    def of_guests(self):
        return {host.name: host.domains() for host in self.hosts}

    def of_placement(self):
        """Returns {host: {consumer: {class: amount}}} from Placement, as sums over all providers of the host."""
        told = {host.name: collections.defaultdict(collections.Counter) for host in self.hosts}
        for host in self.hosts:
            for provider in self.cloud.placement.tree(host.agent.root()).values():
                for consumer, allocation in provider['allocations'].items():
                    told[host.name][consumer].update(allocation['resources'])
        return told

    def of_claims(self):
        """Returns the same from the claims."""
        told = {host.name: collections.defaultdict(collections.Counter) for host in self.hosts}
        for host in self.hosts:
            for claim in host.agent.claims():
                for allocation in claim['allocations']:
                    told[host.name][claim['consumer']].update(allocation['resources'])
        return told

    def agree(self, wanted, runs=True, seconds=SECONDS):
        """Returns when all four sources match wanted, {server: (host, amounts)}, and no audit has findings.

        (host, amounts, more): the claim has these amounts too, which Nova's scheduler does not request from Placement.

        runs: whether the guests run, or {server: whether}.
        """
        last = {}

        def reached():
            held = {host.name: {} for host in self.hosts}
            claimed = {host.name: {} for host in self.hosts}
            power = {host.name: {} for host in self.hosts}
            for server, (host, amounts, *more) in wanted.items():
                held[host.name][server] = amounts
                claimed[host.name][server] = {**amounts, **(more[0] if more else {})}
                power[host.name][server] = runs if isinstance(runs, bool) else runs[server]
            last.update(nova=self.of_nova(), guests=self.of_guests(), placement=self.of_placement(),
                        claims=self.of_claims())
            return last == {'nova': power, 'guests': power, 'placement': held, 'claims': claimed}
        try:
            wait_until(reached, seconds, 'Nova, Placement, claims and guests to agree', step=0.5)
        except EnvError as error:
            raise AssertionError('%s\nwanted: %s\n%s' % (error, wanted, json.dumps(last, indent=1))) from None
        for host in self.hosts:
            wait_until(lambda host=host: not self.findings(host), 30, 'nothing for the audit of %s to find' % host.name,
                       step=1)

    def findings(self, host):
        """Returns the findings of the audit of a host."""
        return host.agent.ctl_json('audit', check=False)['findings']

    def reshape(self, host, form):
        """Makes an agent move the allocations of guests to another form of [compute] numa_in_placement."""
        host.agent.configure({'compute': {'numa_in_placement': form}})
        host.agent.ctl('reload')
        host.agent.ctl('reshape')
        host.agent.wait_state('synced', SECONDS)

    def boot(self, name='vm', flavor='small', host=None):
        return self.cloud.boot(name, flavor, host and host.name)
