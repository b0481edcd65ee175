# SPDX-License-Identifier: LGPL-2.1-or-later
"""The first runs of the Ansible role on a host. test_ansible_changes.py has the later ones."""

from tests.boot import ansible_case
from tests.boot.ansible_case import CONFIG, DROP_IN, TOKEN, AnsibleCase, changed
from tests.boot.case import BootCase


def setUpModule():
    ansible_case.begin()
    # The order of an operator: a dry run, a first run, a second run. The tests check the output of these runs.
    BootCase.looked, BootCase.first, BootCase.second = (
        BootCase.controller.play('--check'), BootCase.controller.play('-vvv', '--diff'), BootCase.controller.play())


class Converge(AnsibleCase):
    def test_check_mode_installs_nothing(self):
        self.assert_recap(self.looked)
        self.assertIn('The package is not installed', self.looked.stdout)
        self.assertIn('Copy the package', changed(self.first))

    def test_first_run_publishes_the_host(self):
        self.assert_recap(self.first)
        shown = self.machine.show('ActiveState', 'UnitFileState')
        self.assertEqual((shown['ActiveState'], shown['UnitFileState']), ('active', 'enabled'))
        answer = self.placement.request('GET', '/resource_providers').json
        self.assertIn('demo', [provider['name'] for provider in answer['resource_providers']])
        self.assertEqual([self.mode(path) for path in (CONFIG, TOKEN, DROP_IN)],
                         ['root:compute-agent 640', 'root:root 600', 'root:root 644'])

    def test_second_run_changes_nothing(self):
        self.assert_recap(self.second, 0)
