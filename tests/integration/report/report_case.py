# SPDX-License-Identifier: LGPL-2.1-or-later
"""The base class of the tests of the report client: one Placement for each class, and report-probe with it.

COMPUTE_AGENT_DATABASE=postgresql or mariadb replaces SQLite by a database server for Placement.
"""

import contextlib
import json
import os
import subprocess
import unittest
import uuid

from tests.env.agent import build_folder
from tests.env.databases import SERVERS
from tests.env.placement import Placement
from tests.env.scratch import Scratch

SPACE = uuid.UUID('6b3f7a52-33b1-4b3a-9d0c-0d8f3b0c5a11')


def uid(name):
    """Returns the uuid that belongs to a name in these tests."""
    return str(uuid.uuid5(SPACE, name))


def inventory(total, **fields):
    return {'total': total, 'reserved': 0, 'min_unit': 1, 'max_unit': total, 'step_size': 1,
            'allocation_ratio': 1.0, **fields}


def provider(name, parent=None, inventories=None, traits=(), aggregates=()):
    return {'uuid': uid(name), 'name': name, 'parent': uid(parent) if parent else None,
            'inventories': inventories or {}, 'traits': sorted(traits),
            'aggregates': sorted(aggregates)}


def big_tree():
    """Returns eight providers on three levels, with standard and custom classes and traits."""
    tree = [provider('host', None, {'VCPU': inventory(16, reserved=1, allocation_ratio=4.0),
                                    'MEMORY_MB': inventory(65536, reserved=512),
                                    'DISK_GB': inventory(100, allocation_ratio=1.1)},
                     ['COMPUTE_NODE', 'HW_CPU_X86_AVX2', 'CUSTOM_RACK_7'])]
    for cell in range(2):
        name = 'host_NUMA%d' % cell
        tree.append(provider(name, 'host', {'PCPU': inventory(8)}, ['HW_NUMA_ROOT']))
        for slot in range(2):
            tree.append(provider('host_pci_0000_%d1_0%d_0' % (cell, slot), name,
                                 {'VGPU': inventory(4), 'CUSTOM_SLICE': inventory(2, step_size=2)},
                                 ['CUSTOM_NVIDIA_A2', 'CUSTOM_SLOT_%d' % slot]))
    tree.append(provider('host_fpga', 'host', {'CUSTOM_FPGA': inventory(1)}))
    return tree


def make_certificate(folder, name, subject):
    """Makes a self-signed certificate, and returns the paths of the certificate and its key."""
    certificate, key = folder / (name + '.pem'), folder / (name + '.key')
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2',
                    '-subj', '/CN=' + name, '-addext', 'subjectAltName=' + subject,
                    '-keyout', str(key), '-out', str(certificate)],
                   check=True, stderr=subprocess.DEVNULL, timeout=60)
    return str(certificate), str(key)


class Stepped:
    """A running "report-probe --step", which waits between refresh and publish."""

    def __init__(self, process):
        self._process = process

    def line(self):
        """Returns the next line that the probe prints."""
        return json.loads(self._process.stdout.readline())

    def __call__(self):
        """Lets the probe publish, and returns its next line."""
        self._process.stdin.write('\n')
        self._process.stdin.flush()
        return self.line()


class ReportCase(unittest.TestCase):
    """One Placement for each class, emptied after each test."""

    server = 'gunicorn'

    @classmethod
    def setUpClass(cls):
        cls.scratch = Scratch.of(cls)
        database = os.environ.get('COMPUTE_AGENT_DATABASE', 'sqlite')
        cls.placement = Placement(cls.scratch, server=cls.server, database=None if database == 'sqlite'
                                  else SERVERS[database](cls.scratch)).start()
        cls.api = cls.placement.api

    def setUp(self):
        self.folder = self.scratch.folder('probe')
        self.addCleanup(self.empty_placement)

    def empty_placement(self):
        """Deletes every consumer, provider and custom name."""
        self.placement.empty()
        for trait in self.api('GET', '/traits?name=startswith:CUSTOM_')['traits']:
            self.api('DELETE', '/traits/' + trait)
        for item in self.api('GET', '/resource_classes')['resource_classes']:
            if item['name'].startswith('CUSTOM_'):
                self.api('DELETE', '/resource_classes/' + item['name'])

    def write(self, name, value):
        path = self.folder / name
        path.write_text(json.dumps(value))
        return str(path)

    def command(self, tree, endpoint=None, allocations=None, root='host', **options):
        """Returns the command of report-probe. The options have _ in place of -, and True if they take no value."""
        argv = [str(build_folder() / 'tests/probes/report-probe'),
                '--endpoint', endpoint or self.placement.endpoint, '--token', 'admin',
                '--root', uid(root), '--name', root,
                '--tree', self.write('tree.json', tree if isinstance(tree, dict)
                                     else {'providers': tree})]
        if allocations is not None:
            argv += ['--allocations', self.write('allocations.json', allocations)]
        for name, value in options.items():
            argv.append('--' + name.replace('_', '-'))
            if value is not True:
                argv.append(str(value))
        return argv

    def rounds(self, tree, **options):
        """Returns the lines of a run to its end."""
        done = subprocess.run(self.command(tree, **options), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return [json.loads(line) for line in done.stdout.splitlines()]

    def publish(self, tree, **options):
        """Publishes one round, and returns its line."""
        return self.rounds(tree, **options)[0]

    def publish_done(self, tree, **options):
        line = self.publish(tree, **options)
        self.assertEqual(line['outcome'], 'done', line['error'])
        return line

    @contextlib.contextmanager
    def stepped(self, tree, **options):
        """Yields a run that has refreshed, as a Stepped."""
        with subprocess.Popen(self.command(tree, step=True, **options), stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as process:
            try:
                stepped = Stepped(process)
                self.assertEqual(stepped.line(), {'event': 'refreshed'})
                yield stepped
            finally:
                process.terminate()

    def remote(self, root='host'):
        """Returns {name: provider} of Placement in the form of provider(). The code that reads it is not the agent's."""
        return {name: {key: value[key] for key in
                       ('uuid', 'name', 'parent', 'inventories', 'traits', 'aggregates')}
                for name, value in self.placement.tree_by_name(uid(root)).items()}

    def assert_remote(self, tree, root='host'):
        self.maxDiff = None
        self.assertEqual(self.remote(root), {item['name']: item for item in tree})

    def generation(self, name):
        return self.api('GET', '/resource_providers/' + uid(name))['generation']

    def allocate(self, consumer, allocations):
        """Allocates {provider name: {class: amount}} for a new consumer."""
        self.placement.place(uid(consumer), {uid(name): resources for name, resources in allocations.items()})

    def consumer(self, name):
        return self.api('GET', '/allocations/' + uid(name))
