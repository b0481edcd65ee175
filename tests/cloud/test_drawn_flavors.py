# SPDX-License-Identifier: LGPL-2.1-or-later
"""Servers of random flavours boot in the real cloud, and the agent neither loses nor lowers an amount.

After each boot Nova, Placement, the claims and the domains agree, the audit proposes no remedy, and healing changes nothing in
Placement. A server that Nova itself rejects is counted, printed and replaced by the next draw.

COMPUTE_AGENT_FLAVORS sets the number of servers that must boot, COMPUTE_AGENT_SEED the seed ("make cloud-flavors").
"""

import json
import os
import random
import sys

from tests.cloud.case import CloudCase
from tests.cloud.drawn_flavors import draw, registered
from tests.cloud.test_flavors import BOTH, CARD, FILTERS, MDEVS, overcommit_hugepages
from tests.env.hosts import Pci, simple_host
from tests.env.scratch import EnvError, wait_until

BOOTS = int(os.environ.get('COMPUTE_AGENT_FLAVORS', '6'))
SEED = int(os.environ.get('COMPUTE_AGENT_SEED', '1'))
LICENCES = """meta: {schema_version: '1.0'}
providers:
- identification: {uuid: $COMPUTE_NODE}
  inventories: {additional: [CUSTOM_LICENCE: {total: 8}]}
"""
AT_A_TIME = 3  # servers that exist at the same time


class TestDrawnFlavors(CloudCase):
    """One host of two cells with a vGPU card, a card for passthrough, and an operator's class at the root."""

    @classmethod
    def setUpClass(cls):
        pci = {**BOTH['pci'], 'report_in_placement': 'true'}
        cls.agent_options = {**BOTH, 'pci': pci}
        cls.nova_options = {**BOTH, 'workarounds': {'disable_fallback_pcpu_query': 'true'},
                            'filter_scheduler': {'enabled_filters': FILTERS, 'pci_in_placement': 'true'},
                            'pci': {**pci, 'alias': '{"vendor_id": "10de", "product_id": "1eb8", "name": "card"}'}}
        super().setUpClass()
        folder = cls.host.agent.folder / 'provider_config'
        folder.mkdir()
        (folder / 'licence.yaml').write_text(LICENCES)
        cls.host.agent.configure({'compute': {'provider_config_location': folder}})
        cls.host.agent.restart('synced')

    @classmethod
    def make_host(cls, name):
        host = simple_host(cells=2, gpus=1, name=name)
        host.gpus[0].types['nvidia-35'].existing = MDEVS  # mdevs that exist already, because the kernel cannot create any here
        host.pci = [Pci(CARD, 1, 0x10de, 0x1eb8, 0x030200, 'vfio-pci')]
        return host

    def setUp(self):
        super().setUp()
        overcommit_hugepages(self, 256)

    def boot_drawn(self, number, flavor):
        """Boots a server. Returns its id, or None and the words of Nova's rejection."""
        name = 'drawn-%d' % number
        try:
            self.cloud.flavor(name, flavor.vcpus, flavor.ram, 0, flavor.extra)
            server = self.cloud.create(name, name)
        except EnvError as error:
            return None, str(error)
        told = self.cloud.wait_status(server, 'ACTIVE', 'ERROR')
        if told['status'] == 'ACTIVE':
            return server, ''
        self.cloud.delete(server)
        return None, told['fault']['message']

    def disagreement(self, servers):
        """Returns a text with the first difference between the sources for exactly these servers, or None."""
        running = dict.fromkeys(servers, True)
        placement, claims = self.of_placement()[self.host.name], self.of_claims()[self.host.name]
        if self.of_nova()[self.host.name] != running or self.of_guests()[self.host.name] != running:
            return 'Nova has %s, libvirt has %s' % (self.of_nova(), self.of_guests())
        if set(placement) != set(servers) or set(claims) != set(servers):
            return 'Placement has %s, claims are of %s' % (set(placement), set(claims))
        differing = {server: (dict(placement[server]), dict(claims[server])) for server in servers
                     if any(claims[server][name] != amount for name, amount in placement[server].items())}
        return differing and 'Placement and claims: %s' % differing or None

    def check(self, servers):
        last = []

        def agreed():
            last[:] = [self.disagreement(servers)]
            return not last[0]
        try:
            wait_until(agreed, 60, 'agreement', step=0.5)
        except EnvError:
            self.fail(last[0])
        before = self.of_placement()
        remedies = [one for one in self.findings(self.host) if one['remedy'] != 'none']
        self.assertEqual(remedies, [])
        self.host.agent.ctl('heal', check=False)
        self.assertEqual(self.of_placement(), before)
        self.assertEqual(self.host.agent.problems(), [])

    def test_no_amount_of_a_drawn_flavor_is_lost(self):
        rng, keys = random.Random(SEED), registered()
        servers, booted, refused, number = [], 0, [], 0
        while booted < BOOTS:
            flavor, number = draw(rng, keys), number + 1
            server, words = self.boot_drawn(number, flavor)
            if not server:
                refused.append((flavor, words))
                self.assertLess(len(refused), 10 + 2 * BOOTS, refused)
                continue
            booted += 1
            servers.append(server)
            agreed = False
            with self.subTest(seed=SEED, number=number, flavor=flavor):
                self.check(servers)
                agreed = True
            while servers and (not agreed or len(servers) == AT_A_TIME):  # a server that failed must not make the next one fail
                self.cloud.delete(servers.pop(rng.randrange(len(servers))))
        print('%d drawn flavours: %d booted, %d refused by Nova' % (number, booted, len(refused)), file=sys.stderr)
        print(json.dumps([(one.extra, words[:120]) for one, words in refused], indent=1), file=sys.stderr)
