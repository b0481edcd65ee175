# SPDX-License-Identifier: LGPL-2.1-or-later
"""Another writer changes anything in Placement between the end of the agent and its next start.

After the start Placement is equal to the host: a full read with "computectl sync --full" finds nothing to write. COMPUTE_AGENT_SEEDS is the
number of restarts ("make soak-restarts"), and COMPUTE_AGENT_SEED the first one.
"""

import contextlib
import hashlib
import json
import os
import random
import shutil
import time
import uuid

from tests.env.agent import Agent
from tests.env.case import EnvCase
from tests.env.hosts import recorded_host
from tests.env.placement import Placement

AGGREGATE = str(uuid.uuid4())


def checksum(content):
    text = json.dumps(content, sort_keys=True, separators=(',', ':'), ensure_ascii=False)
    return hashlib.blake2b(text.encode(), digest_size=32).hexdigest()


class TestRestarts(EnvCase):
    def setUp(self):
        self.placement = Placement(self.scratch, 'simple').start()
        self.agent = Agent(self.scratch, self.placement, bus=self.bus, host=self.describe())
        self.agent.configure({'DEFAULT': {'update_resources_interval': -1}, 'devices': {'enabled_mdev_types': 'nvidia-35'},
                              'agent': {'device_settle_sec': 0, 'device_hold_sec': 0}})
        self.file = self.agent.state / 'placement.json'
        self.kept = self.scratch.folder('kept')

    def describe(self, disk=256):
        return recorded_host('compute-1', disk_total_bytes=disk << 30, devices=[
            {'name': 'pci_0000_%02x_00_0' % number, 'address': '0000:%02x:00.0' % number,
             'mdev_types': [{'id': 'nvidia-35', 'name': 'GRID', 'device_api': 'vfio-pci', 'available_instances': 4}]} for number in range(5)])

    # ---- The other writer. Each function changes one thing, and can be refused.

    def pick(self, kind=lambda provider: True):
        found = [provider for provider in self.placement.tree(self.root).values() if kind(provider)]
        return self.random.choice(sorted(found, key=lambda provider: provider['uuid'])) if found else None

    def part(self, provider, part, value):
        self.placement.request('PUT', '/resource_providers/%s/%s' % (provider['uuid'], part), {
            part: value, 'resource_provider_generation': self.generation(provider)}, record=False)

    def generation(self, provider):
        return self.placement.get('/resource_providers/' + provider['uuid'])['generation']

    def change_inventory(self):
        provider = self.pick(lambda one: one['inventories'])
        if provider:
            inventories = provider['inventories']
            record = inventories[self.random.choice(sorted(inventories))]
            record[self.random.choice(['total', 'reserved', 'max_unit'])] = self.random.randrange(1, 9)
            self.part(provider, 'inventories', inventories)

    def remove_inventories(self):
        provider = self.pick()
        if provider:
            self.part(provider, 'inventories', {})

    def change_traits(self):
        provider = self.pick()
        if provider:
            traits = set(provider['traits']) ^ {self.random.choice([*provider['traits'], 'CUSTOM_GOLD', 'HW_CPU_X86_AVX2'])}
            self.part(provider, 'traits', sorted(traits))

    def change_aggregates(self):
        provider = self.pick()
        if provider:
            self.part(provider, 'aggregates', [] if provider['aggregates'] else [AGGREGATE])

    def allocate(self):
        provider = self.pick(lambda one: one['inventories'])
        if provider:
            self.placement.put(str(uuid.uuid4()), {provider['uuid']: {self.random.choice(sorted(provider['inventories'])): 1}})

    def deallocate(self):
        provider = self.pick(lambda one: one['allocations'])
        if provider:
            self.placement.delete(self.random.choice(sorted(provider['allocations'])))

    def delete_provider(self):
        parents = {one['parent'] for one in self.placement.tree(self.root).values()}
        provider = self.pick(lambda one: one['uuid'] not in parents and not one['allocations'])
        if provider:
            self.placement.request('DELETE', '/resource_providers/' + provider['uuid'], record=False)
        return provider

    def make_again(self):
        """Creates a leaf again with its old generation and other inventories."""
        time.sleep(1.1)
        provider = self.delete_provider()
        if not provider:
            return
        self.placement.request('POST', '/resource_providers', {
            'uuid': provider['uuid'], 'name': provider['name'],
            **({'parent_provider_uuid': provider['parent']} if provider['parent'] else {})}, record=False)
        while self.generation(provider) < provider['generation']:
            self.part(provider, 'inventories', {'VGPU': {'total': 10 + self.generation(provider)}})

    def add_child(self):
        self.placement.make_provider('other-%d' % self.random.randrange(1 << 40), parent=self.root)

    def delete_tree(self):
        for _ in range(12):
            if not self.delete_provider():
                break

    # ---- The state file

    def damage(self):
        data = bytearray(self.file.read_bytes())
        data[self.random.randrange(len(data))] ^= 1 << self.random.randrange(8)
        self.file.write_bytes(data)

    def cut(self):
        os.truncate(self.file, self.random.randrange(self.file.stat().st_size))

    def take_old(self):
        old = sorted(self.kept.iterdir())
        if old:
            shutil.copy(self.random.choice(old), self.file)

    def take_foreign(self):
        saved = json.loads(self.file.read_text())
        saved['content']['root'] = str(uuid.uuid4())
        saved['checksum'] = checksum(saved['content'])
        self.file.write_text(json.dumps(saved))

    def step(self, seed):
        """Runs one restart. Returns the names of the changes."""
        self.random = random.Random(seed)
        changes = [self.change_inventory, self.remove_inventories, self.change_traits, self.change_aggregates, self.allocate, self.deallocate,
                   self.delete_provider, self.make_again, self.make_again, self.add_child, self.delete_tree]
        self.agent.ctl('sync', check=False)
        if self.random.random() < 0.1:
            self.agent.kill()
        else:
            self.agent.stop()
        done = [self.random.choice(changes) for _ in range(self.random.choice([0, 1, 1, 1, 2, 3]))]
        if self.file.exists():
            shutil.copy(self.file, self.kept / ('%06d' % seed))
            if self.random.random() < 0.3:
                done.append(self.random.choice([self.damage, self.cut, self.take_old, self.take_old, self.take_foreign]))
        for change in done:
            change()
        if self.random.random() < 0.2:
            self.agent.record(self.describe(self.random.choice([256, 512])))
        self.agent.start('synced')
        return [change.__name__ for change in done]

    def picture(self):
        return {key: {name: value for name, value in provider.items() if name != 'generation'}
                for key, provider in self.placement.tree(self.root).items()}

    def test_placement_is_equal_to_the_host_after_each_restart(self):
        first, n = int(os.environ.get('COMPUTE_AGENT_SEED', '1')), int(os.environ.get('COMPUTE_AGENT_SEEDS', '8'))
        self.placement.api('PUT', '/traits/CUSTOM_GOLD')
        self.agent.start('synced')
        self.root = self.agent.root()
        n_warm = 0
        for seed in range(first, first + n):
            begin = self.placement.mark()
            done = self.step(seed)
            n_warm += not any(line[1].endswith('/inventories') for line in self.placement.requests_since(begin))
            with self.subTest(seed=seed, changes=done):
                before, mark = self.picture(), self.placement.mark()
                self.agent.ctl('sync', '--full', check=False)
                self.assertEqual(self.placement.writes_since(mark), [], self.agent.log()[-3000:])
                self.assertEqual(self.picture(), before)
        with contextlib.suppress(KeyError):
            print('%d restarts, %d of them without a read of an inventory' % (n, n_warm), os.environ['COMPUTE_AGENT_SEEDS'])
