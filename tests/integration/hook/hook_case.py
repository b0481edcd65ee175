# SPDX-License-Identifier: LGPL-2.1-or-later
"""The base class of the tests of libvirt's hook: a real libvirtd that runs computectl for real guests."""

import uuid

from tests.env.agent import Agent, build_folder
from tests.env.libvirtd import guest_xml
from tests.env.scratch import EnvError, EnvTimeout, wait_until
from tests.integration.claims.placement_case import HostCase


def install_hook(libvirtd, bus, agent, program=None):
    """Installs the hook as the package does. libvirt gives a hook no environment, so bus and configuration are linked to their
    default paths."""
    for name, target in (
            ('etc/hooks/qemu.d/compute-agent', program or build_folder() / 'computectl'),
            ('run/dbus/system_bus_socket', bus.socket_path),
            ('run/compute-agent/compute-agent.conf', agent.config)):
        link = libvirtd.folder / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)


def virsh_words(libvirtd, *args, timeout=120):
    """Runs virsh. Returns its error message, or '' after success."""
    try:
        libvirtd.virsh(*args, timeout=timeout)
    except EnvError as error:
        return str(error)
    return ''


class HookCase(HostCase):
    """A libvirtd, an agent and, unless the class excludes it, a Placement behind a proxy for each class. Each test starts without
    claims and guests."""

    options = {}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        placement = cls.proxy.endpoint if 'placement' in cls.shared else None
        cls.agent = Agent(cls.scratch, placement, bus=cls.bus, uri=cls.libvirtd.uri, options={
            'hook': {'enabled': True, 'timeout': 20}, **cls.options})
        install_hook(cls.libvirtd, cls.bus, cls.agent, cls.hook_program())
        cls.libvirtd.start()
        cls.agent.start('synced' if placement else 'standalone')
        cls.addClassCleanup(cls.libvirtd.destroy_guests)

    @classmethod
    def hook_program(cls):
        """Returns the program that libvirt runs, or None for computectl itself."""

    def setUp(self):
        self.addCleanup(self.start_over)

    def start_over(self):
        if 'placement' in self.shared:
            self.proxy.clear()
        self.agent.start()
        self.libvirtd.delete_guests()
        self.agent.ctl('sync')
        self.agent.release_all()

    def claim_of(self, consumer):
        """Returns the only claim of a consumer, with all its details."""
        found = self.agent.claims(consumer)
        self.assertEqual(len(found), 1, self.agent.log())
        return self.agent.ctl_json('show', found[0]['id'])

    def define(self, name, **kwargs):
        kwargs.setdefault('uuid', str(uuid.uuid4()))
        self.libvirtd.define(guest_xml(name, **kwargs))
        return kwargs['uuid']

    def start(self, name):
        """Runs "virsh start". Returns its error message, or '' after success."""
        return virsh_words(self.libvirtd, 'start', name)

    def configure(self, **options):
        now = self.agent.options['hook']
        before = {key: now.get(key) for key in {*now, *options}}
        self.addCleanup(self.agent.configure, {'hook': before})
        self.agent.configure({'hook': options})

    def allocations(self):
        """Returns {consumer: resources} of the root provider in Placement."""
        path = '/resource_providers/%s/allocations' % self.agent.root()
        return {consumer: item['resources']
                for consumer, item in self.placement.get(path)['allocations'].items()}

    def wait_allocations(self, expected):
        try:
            wait_until(lambda: self.allocations() == expected, 60, 'the allocations', step=0.2)
        except EnvTimeout:
            self.fail('%s instead of %s\n%s' % (self.allocations(), expected, self.agent.log()[-3000:]))
