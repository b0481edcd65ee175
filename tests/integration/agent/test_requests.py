# SPDX-License-Identifier: LGPL-2.1-or-later
"""The number of requests that the agent sends to Placement for a new host, for inventory in use, and after a restart."""

import hashlib
import json
import re
import time
import uuid

from tests.env.agent import Agent
from tests.env.case import EnvCase
from tests.env.hosts import Host, Pci, recorded_host, simple_host
from tests.env.placement import Placement
from tests.env.scratch import wait_until
from tests.integration.agent.test_agent import AgentCase


def route(line):
    """Returns method and route of a request, for example "PUT /resource_providers/{uuid}/traits"."""
    path = re.sub('[0-9a-f]{8}-[0-9a-f-]{27}', '{uuid}', line[1].split('?')[0])
    return '%s %s' % (line[0], path)


class TestNewHost(AgentCase):
    """A root, three GPUs and three network cards of different classes. Another host made the classes and traits before."""

    CLASSES = ['CUSTOM_NIC_%d' % number for number in range(3)]

    @staticmethod
    def make_host():
        host = simple_host(gpus=3)
        return Host(cells=host.cells, gpus=host.gpus,
                    pci=[Pci('0000:%02x:00.0' % (5 + number), device=0x1572 + number) for number in range(3)])

    def test_seven_providers_take_eighteen_requests(self):
        self.placement = Placement(self.scratch, 'simple').start()
        for name in self.CLASSES:
            self.placement.api('PUT', '/resource_classes/' + name)
        self.placement.api('PUT', '/traits/CUSTOM_NIC')
        agent = self.make_agent({
            'DEFAULT': {'update_resources_interval': -1},
            'pci': {'report_in_placement': 'true', 'device_spec': [
                json.dumps({'product_id': '%04x' % (0x1572 + number), 'resource_class': name, 'traits': 'CUSTOM_NIC'})
                for number, name in enumerate(self.CLASSES)]}})
        mark = self.placement.mark()
        agent.start('synced')
        agent.ctl('sync')
        lines = self.placement.requests_since(mark)
        self.assertEqual(len(self.placement.tree(agent.root())), 7)
        # The last request is that of "sync", after the end of the first cycle with its audit.
        self.assertEqual([route(line) for line in lines[:-1]], [
            'GET /resource_providers', 'GET /traits', 'GET /resource_classes', *['POST /resource_providers'] * 7,
            'POST /reshaper', *['PUT /resource_providers/{uuid}/traits'] * 7])
        self.assertEqual([line for line in lines if line[2] >= 400], [])
        self.assertEqual(agent.status()['reshape_access'], 'allowed')


class TestInUse(EnvCase):
    def test_an_inventory_in_use_takes_no_request_in_a_quiet_cycle(self):
        """Its consumers are read once. A later sync reads them again, and removes the inventory when it is free."""
        agent = Agent(self.scratch, self.placement, bus=self.bus, host=recorded_host('compute-1', disk_total_bytes=1 << 38))
        agent.configure({'DEFAULT': {'update_resources_interval': 1}, 'agent': {'device_settle_sec': 0}})
        agent.start('synced')
        root = agent.root()
        consumer = self.placement.place(None, {root: {'DISK_GB': 10}})
        agent.record(recorded_host('compute-1', disk_total_bytes=0))
        agent.ctl('sync', check=False)
        self.assertEqual(self.placement.tree(root)[root]['inventories']['DISK_GB']['reserved'], 256)
        agent.ctl('sync', check=False)
        mark = self.placement.mark()
        wait_until(lambda: len(self.placement.requests_since(mark)) >= 3, 20, 'three cycles')
        self.assertEqual({route(line) for line in self.placement.requests_since(mark)}, {'GET /resource_providers'})
        # A new allocation raises the generation, so that the consumers are read again.
        mark = self.placement.mark()
        other = self.placement.place(None, {root: {'VCPU': 1}})
        wait_until(lambda: any(line[1].endswith('/allocations') for line in self.placement.requests_since(mark)), 20, 'a read')
        for uuid in (consumer, other):
            self.placement.delete(uuid)
        agent.ctl('sync', check=False)
        self.assertNotIn('DISK_GB', self.placement.tree(root)[root]['inventories'])
        self.assertNotIn('refused', agent.log())


class TestQuiet(EnvCase):
    """Checks of Placement slow down on a host without changes: here after 45 s from one to three seconds."""

    QUIET = 3

    def start(self, name, quiet):
        agent = Agent(self.scratch, self.placement, bus=self.bus, host=recorded_host(name))
        agent.configure({'DEFAULT': {'update_resources_interval': 1}, 'agent': {'device_settle_sec': 0, 'quiet_interval_max_sec': quiet}})
        return agent.start('synced')

    def checks(self, agent, seconds):
        """Returns the number of requests of an agent in this time. Each of them reads the list of its tree."""
        mark = self.placement.mark()
        time.sleep(seconds)
        lines = [line for line in self.placement.requests_since(mark) if agent.root() in line[1]]
        self.assertEqual({route(line) for line in lines}, {'GET /resource_providers'})
        return len(lines)

    def test_a_host_without_changes_is_checked_less_often(self):
        edited, grown, always = (self.start(name, quiet) for name, quiet in (('edited', self.QUIET), ('grown', self.QUIET), ('always', 0)))
        self.assertGreaterEqual(self.checks(edited, 12), 9)
        time.sleep(15 * self.QUIET + self.QUIET - 12)
        before = grown.status()['last_poll_usec']
        self.assertIn(self.checks(edited, 12), (3, 4, 5))
        self.assertIn(self.checks(grown, 12), (3, 4, 5))
        self.assertGreaterEqual(self.checks(always, 8), 5)
        self.assertGreater(grown.status()['last_poll_usec'] - before, 30 * 10**6)  # The host is polled as before.

        def memory(agent):
            return self.placement.tree(agent.root())[agent.root()]['inventories']['MEMORY_MB']
        # A change of the host is published by the next poll.
        total = memory(grown)['total']
        began = time.monotonic()
        grown.record(recorded_host('grown', memory_kib=(total + 1024) * 1024))
        wait_until(lambda: memory(grown)['total'] == total + 1024, 20, 'the new memory', step=0.05)
        self.assertLess(time.monotonic() - began, 2.5)
        grown.ctl('sync')  # The write is recorded only when it is answered, and the database has it before.
        self.assertGreaterEqual(self.checks(grown, 8), 5)
        # Another writer's change is found by the next check. After it, each cycle checks again.
        reserved = memory(edited)['reserved']
        began = time.monotonic()
        self.placement.edit(edited.root(), 'inventories', lambda inventories: inventories['MEMORY_MB'].update(reserved=17))
        wait_until(lambda: memory(edited)['reserved'] == reserved, 20, 'the repair', step=0.05)
        self.assertLess(time.monotonic() - began, self.QUIET + 2)
        edited.ctl('sync')
        self.assertGreaterEqual(self.checks(edited, 8), 5)


class TestRestart(AgentCase):
    """A restart of a host with a root and 16 GPUs."""

    @staticmethod
    def make_host():
        return simple_host(gpus=16)

    def start_settled(self):
        """Returns an agent whose last cycle changed nothing, so that it leaves a file. Cycles run only on request."""
        agent = self.start_agent({'DEFAULT': {'update_resources_interval': -1}})
        agent.ctl('sync')
        agent.ctl('sync')
        return agent

    def restart(self, agent):
        """Restarts the agent. Returns its requests until the end of the first cycle."""
        agent.stop()
        mark = self.placement.mark()
        agent.start('synced')
        agent.ctl('sync')
        return self.placement.requests_since(mark)[:-1]

    def test_an_unchanged_host_takes_one_request(self):
        agent = self.start_settled()
        tree = self.placement.tree(agent.root())
        self.assertEqual(len(tree), 17)
        for _ in range(2):
            self.assertEqual([route(line) for line in self.restart(agent)], ['GET /resource_providers'])
        self.assertEqual(self.placement.tree(agent.root()), tree)
        self.assertNotIn('Ignoring', agent.log())

    def test_a_host_with_guests_takes_one_request(self):
        """The claim of a guest follows Placement. Its allocations are not read, because no generation has changed."""
        agent = self.start_settled()
        self.addCleanup(self.libvirtd.delete_guests)
        guest = self.libvirtd.start_guest('good', memory_mib=40, vcpus=2)
        agent.claim('VCPU=1,MEMORY_MB=64')
        wait_until(lambda: agent.claims(guest), 20, 'the claim of the guest')
        agent.ctl('audit', check=False)
        agent.ctl('sync')
        agent.ctl('sync')
        for _ in range(2):
            self.assertEqual([route(line) for line in self.restart(agent)], ['GET /resource_providers'])
        agent.stop()
        self.placement.put(guest, {agent.root(): {'VCPU': 2, 'MEMORY_MB': 80}})
        agent.start('synced')
        wait_until(lambda: agent.claims(guest)[0]['allocations'][0]['resources']['MEMORY_MB'] == 80, 20, 'the claim to follow Placement')

    def test_everything_is_read_after_a_change(self):
        """The other providers have their generations, but one could have been created again. And the start audits."""
        agent = self.start_settled()
        agent.stop()
        gpu = self.placement.tree_by_name(agent.root())['compute-1_pci_0000_42_00_0']['uuid']
        self.placement.edit(gpu, 'inventories', lambda inventories: inventories['VGPU'].update(total=2))
        mark = self.placement.mark()
        agent.start('synced')
        agent.ctl('sync')
        lines = [route(line) for line in self.placement.requests_since(mark)][:-1]
        self.assertEqual(sorted(lines), [
            'GET /resource_providers', *('GET /resource_providers/{uuid}/' + part for part in ('aggregates', 'allocations', 'inventories', 'traits')
                                         for _ in range(17)),
            'PUT /resource_providers/{uuid}/inventories'])
        self.assertEqual(self.placement.tree(agent.root())[gpu]['inventories']['VGPU']['total'], 4)

    def test_a_reload_before_the_first_read_keeps_the_audit_due(self):
        """The start has not yet seen whether a provider changed, so the reload cannot leave out the audit either."""
        metrics = self.scratch.path / 'agent.prom'
        agent = self.start_agent({'DEFAULT': {'update_resources_interval': -1}, 'agent': {'metrics_file': metrics}}, placement=self.proxy)
        agent.ctl('sync')
        agent.stop()
        self.placement.put(str(uuid.uuid4()), {agent.root(): {'VCPU': 1}})
        self.proxy.refuse()
        metrics.unlink()
        agent.start('offline')
        wait_until(metrics.exists, 20, 'the metrics')
        line, = [line for line in metrics.read_text().splitlines() if line.startswith('compute_agent_last_audit_timestamp_seconds ')]
        self.assertGreater(float(line.split()[1]), 0)
        mark = self.placement.mark()
        self.proxy.listen()
        agent.ctl('reload')
        agent.ctl('sync')
        lines = [route(line) for line in self.placement.requests_since(mark)]
        self.assertEqual(lines.count('GET /resource_providers/{uuid}/allocations'), 17)

    def test_a_file_that_cannot_be_used(self):
        """It is ignored with one line. Everything is read, and audited unless the file is only too old."""
        agent = self.start_settled()
        agent.stop()
        path = agent.state / 'placement.json'
        saved = json.loads(path.read_text())
        foreign = json.loads(json.dumps(saved).replace(saved['content']['root'], '11111111-1111-4111-8111-111111111111'))
        foreign['checksum'] = self.checksum(foreign)
        old = {**saved, 'content': {**saved['content'], 'full_at_usec': saved['content']['saved_usec']}}
        old['checksum'] = self.checksum(old)
        cases = [('damaged', 'checksum is wrong', {**saved, 'checksum': 'x'}), ('foreign', 'the tree of another host', foreign),
                 ('old', 'a full read is due', old), ('cut', 'set aside', None)]
        for name, words, content in cases:
            with self.subTest(name):
                path.write_text(json.dumps(content) if content else path.read_text()[:500] if path.exists() else '{')
                mark = self.placement.mark()
                agent.start('synced')
                agent.ctl('sync')
                self.assertGreaterEqual(len(self.placement.requests_since(mark)), 17 * (3 if name == 'old' else 4), words)
                self.assertEqual(len(re.findall('Ignoring the saved state of Placement', agent.log())), 1)
                self.assertIn(words, agent.log())
                agent.stop()

    @staticmethod
    def checksum(saved):
        text = json.dumps(saved['content'], sort_keys=True, separators=(',', ':'), ensure_ascii=False)
        return hashlib.blake2b(text.encode(), digest_size=32).hexdigest()

    def test_an_agent_that_was_killed_leaves_no_file(self):
        agent = self.start_settled()
        agent.restart('synced')
        agent.kill()
        self.assertFalse((agent.state / 'placement.json').exists())
        mark = self.placement.mark()
        agent.start('synced')
        agent.ctl('sync')
        lines = [route(line) for line in self.placement.requests_since(mark)]
        self.assertEqual(lines.count('GET /resource_providers/{uuid}/inventories'), 17)
        self.assertEqual(lines.count('GET /resource_providers/{uuid}/allocations'), 17)
