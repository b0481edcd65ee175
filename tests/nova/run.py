# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs Nova's own tests with the driver of plugins/nova in place of Nova's driver.

    python3 -m tests.nova.run nova|agent [TEST]...        ("make nova-tests")

nova: the tree belongs to Nova, so driver and report client must do everything that Nova's do.

agent: the tree belongs to the agent. A substitute for the agent writes the results of Nova's driver to Placement, and nova-compute reads
and allocates through the plug-in.

It needs Debian's packages of the group "nova-tests" (tests/run/packages). Nova's tests run in one process, each with its own database.
"""

import argparse
import os
import sys
import tempfile
import unittest
from pathlib import Path

import nova.monkey_patch  # before all other imports
import nova.virt

PLUGIN = Path(__file__).resolve().parents[2] / 'plugins/nova'
nova.virt.__path__.append(str(PLUGIN))

from nova import context
from nova.conf import paths
from nova.scheduler.client import report as nova_report
from nova.virt import libvirt as nova_libvirt
from nova.virt.compute_agent import agent, driver, report
from nova.virt.libvirt import driver as nova_driver
from tests.env.openstack import PASTE_NOVA

FUNCTIONAL = 'nova.tests.functional.libvirt.'
UNIT = 'nova.tests.unit.virt.libvirt.test_driver'
FLOWS = [FUNCTIONAL + name for name in ('test_pci_in_placement', 'test_vgpu', 'test_report_cpu_traits', 'test_shared_resource_provider',
                                        'test_evacuate')]
TESTS = {'nova': [UNIT, 'nova.tests.functional.test_report_client', FUNCTIONAL + 'test_reshape', *FLOWS],
         'agent': FLOWS}  # the agent reshapes, not Nova


class WithPlugin:
    """A proxy of a module in which LibvirtDriver is the plug-in's. All other reads and writes reach the module itself, so patches work."""

    def __init__(self, module):
        object.__setattr__(self, '_module', module)

    def __getattr__(self, name):
        return driver.LibvirtDriver if name == 'LibvirtDriver' else getattr(self._module, name)

    def __setattr__(self, name, value):
        setattr(self._module, name, value)

    def __delattr__(self, name):
        delattr(self._module, name)


def put_plugin():
    """Gives Nova and its tests the driver of the plug-in, and makes each report client one of nova-compute. Returns the original
    __init__()."""
    nova_libvirt.LibvirtDriver = driver.LibvirtDriver
    make = nova_report.SchedulerReportClient.__init__

    def make_and_leave(self, *args, **kwargs):
        make(self, *args, **kwargs)
        report.leave_tree_to(agent.Agent(), self)
    nova_report.SchedulerReportClient.__init__ = make_and_leave
    return make


def tell(mode):
    """Makes each agent answer that this is its mode."""
    agent.Agent._ask = lambda self: agent.Answer(mode, mode == 'top')


def stand_in(make_client):
    """Replaces the agent: writes the results of Nova's driver to Placement, and returns Placement's tree as the agent's."""
    def client():
        made = nova_report.SchedulerReportClient.__new__(nova_report.SchedulerReportClient)
        make_client(made)
        return made

    def find(self, provider_tree, nodename, allocations=None):
        nova_driver.LibvirtDriver.update_provider_tree(self, provider_tree, nodename, allocations=allocations)
        left_alone(self, provider_tree, nodename, allocations)

    def publish(self, asking, new_tree, allocations=None):
        own = client()
        for root in new_tree.roots:
            own.get_provider_tree_and_ensure_root(asking, root.uuid)
        own.update_from_provider_tree(asking, new_tree)
        left(self, asking, new_tree, allocations)

    def tell_tree(_self, root):
        return client().get_provider_tree_and_ensure_root(context.get_admin_context(), root)

    left_alone, left = driver.AgentMixin.update_provider_tree, report.ReportClientMixin.update_from_provider_tree
    driver.AgentMixin.update_provider_tree = find
    report.ReportClientMixin.update_from_provider_tree = publish
    agent.Agent.provider_tree = tell_tree


def load(names):
    """Returns the tests with these names, or of these modules. They use the driver of the plug-in."""
    suite = unittest.defaultTestLoader.loadTestsFromNames(names)
    if UNIT in sys.modules:
        sys.modules[UNIT].libvirt_driver = WithPlugin(nova_driver)
    return suite


def give_paste(folder, find=paths.state_path_def):
    """Provides a file of Nova's source tree that the tests need and that no Debian package has."""
    own = Path(folder, 'api-paste.ini')
    own.write_text(PASTE_NOVA)
    paths.state_path_def = lambda *args: str(own) if args == ('etc/nova/api-paste.ini',) else find(*args)


def judge(mode, result):
    """Prints the failures and the numbers. Returns whether no test failed."""
    failed = [*result.errors, *result.failures]
    for test, text in failed:
        print('not ok %s\n%s\n' % (test.id(), '\n'.join(text.splitlines()[-30:])))
    print('%s: %d tests, %d failed, %d skipped' % (mode, result.testsRun, len(failed), len(result.skipped)))
    return not failed


def main():
    parser = argparse.ArgumentParser(prog='python3 -m tests.nova.run')
    parser.add_argument('mode', choices=sorted(TESTS))
    parser.add_argument('tests', nargs='*')
    args = parser.parse_args()
    for name in ('http_proxy', 'https_proxy', 'HTTP_PROXY', 'HTTPS_PROXY'):  # Nova's tests replace Placement within this process
        os.environ.pop(name, None)
    tell('observe' if args.mode == 'nova' else 'top')
    make_client = put_plugin()
    if args.mode == 'agent':
        stand_in(make_client)
    with tempfile.TemporaryDirectory() as folder, open(os.devnull, 'w', encoding='utf-8') as nowhere:
        give_paste(folder)
        result = unittest.TextTestRunner(stream=nowhere).run(load(args.tests or TESTS[args.mode]))
    return 0 if judge(args.mode, result) else 1


if __name__ == '__main__':
    sys.exit(main())
