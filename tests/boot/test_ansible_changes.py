# SPDX-License-Identifier: LGPL-2.1-or-later
"""Later runs of the Ansible role: changes of the configuration, refused values, and maintenance."""

from tests.boot import ansible_case
from tests.boot.ansible_case import CONFIG, DROP_IN, TOKEN, AnsibleCase, changed
from tests.boot.case import BootCase
from tests.boot.machine import UNIT

PASSWORD = '/etc/compute-agent/placement-password'
SECRET = 'q7Vw-not-the-token'


def setUpModule():
    ansible_case.begin()
    BootCase.controller.play()


class Change(AnsibleCase):
    def keep(self, path, mode):
        """Restores a file and restarts the daemon at the end of the test. Another run of the role would take longer."""
        self.addCleanup(self.machine.run, 'systemctl', 'restart', UNIT)
        self.addCleanup(self.machine.write, path, self.machine.path(path).read_text(), mode)

    def converge(self, **variables):
        """Runs the role with these variables, until the end of the test."""
        self.keep(CONFIG, 0o640)
        return self.controller.play(**variables)

    def test_an_option_is_reloaded(self):
        pid = self.machine.main_pid()
        done = self.converge(compute_agent_host_config={'DEFAULT': {'reserved_host_memory_mb': 1024}})
        self.assert_recap(done, 2)
        self.assertIn('Reload the configuration', changed(done))
        self.assertEqual(self.machine.main_pid(), pid)
        root = self.machine.ctl_json('status')['root']
        inventories = self.placement.request('GET', '/resource_providers/%s/inventories' % root).json['inventories']
        self.assertEqual(inventories['MEMORY_MB']['reserved'], 1024)

    def test_an_option_that_needs_a_restart_is_restarted(self):
        pid = self.machine.main_pid()
        done = self.converge(compute_agent_host_config={'DEFAULT': {'host': 'other'}})
        self.assert_recap(done, 2)
        self.assertIn('Restart the service', changed(done))
        self.assertNotEqual(self.machine.main_pid(), pid)

    def test_a_change_that_is_not_in_force_is_applied_by_the_next_run(self):
        self.machine.run('touch', '-d', '+1 minute', CONFIG)
        self.addCleanup(self.machine.run, 'touch', CONFIG)
        self.assertEqual(changed(self.controller.play()), ['Reload the configuration'])

    def test_a_refused_reload_is_repeated_by_the_next_run(self):
        more = '/etc/compute-agent/compute-agent.conf.d/more.conf'
        self.machine.write(more, '[DEFAULT]\ncpu_allocation_ratio = many\n')
        self.addCleanup(self.machine.run, 'rm', '-f', more)
        variables = {'compute_agent_host_config': {'DEFAULT': {'reserved_host_memory_mb': 3072}}}
        self.assert_fails(self.converge(**variables), 'must be a number')
        self.machine.run('rm', more)
        self.assertEqual(changed(self.controller.play(**variables)), ['Reload the configuration'])
        root = self.machine.ctl_json('status')['root']
        inventories = self.placement.request('GET', '/resource_providers/%s/inventories' % root).json['inventories']
        self.assertEqual(inventories['MEMORY_MB']['reserved'], 3072)

    def test_check_mode_announces_a_reload_and_writes_nothing(self):
        before = self.machine.path(CONFIG).read_text()
        done = self.controller.play('--check', compute_agent_host_config={'DEFAULT': {'reserved_host_memory_mb': 2048}})
        self.assertIn('Write the configuration', changed(done))
        self.assertEqual(self.machine.path(CONFIG).read_text(), before)

    def test_a_bad_value_is_refused_before_it_is_written(self):
        before = self.machine.path(CONFIG).read_text()
        done = self.controller.play(compute_agent_host_config={'DEFAULT': {'cpu_allocation_ratio': 'many'}})
        self.assert_fails(done, r'\[DEFAULT\] cpu_allocation_ratio: .*must be a number')
        self.assertEqual(self.machine.path(CONFIG).read_text(), before)

    def test_credentials_stay_if_the_configuration_is_refused(self):
        drop_in = self.machine.path(DROP_IN).read_text()
        self.addCleanup(self.machine.run, 'rm', '-f', PASSWORD)
        self.keep(TOKEN, 0o600)
        self.keep(DROP_IN, 0o644)
        done = self.controller.play(compute_agent_host_config={'placement': {'auth_type': 'password', 'auth_url': 'no url'}},
                                    compute_agent_credentials={'placement-password': SECRET})
        self.assert_fails(done, 'auth_url')
        self.assertEqual(self.machine.path(TOKEN).read_text(), 'admin\n')
        self.assertEqual(self.machine.path(DROP_IN).read_text(), drop_in)

    def assert_enabled(self, *units):
        for unit in units:
            shown = self.machine.show('UnitFileState', 'ActiveState', unit=unit)
            self.assertEqual((unit, shown['UnitFileState']), (unit, 'enabled'))
            self.assertTrue(unit.endswith('.service') or shown['ActiveState'] == 'active', unit)

    def test_a_device_that_is_cleaned_enables_the_unit(self):
        for name in ('wipe@.service', 'prove@.service'):
            self.machine.write('/etc/systemd/system/' + name, '[Service]\nType=oneshot\nExecStart=/bin/true\n')
        self.addCleanup(self.machine.run, 'systemctl', 'disable', '--now', 'compute-agent-clean.path')
        done = self.converge(compute_agent_host_config={
            'pci': {'report_in_placement': True, 'device_spec': [{'vendor_id': '144d', 'resource_class': 'CUSTOM_NVME'}]},
            'device_clean disks': {'resource_classes': ['CUSTOM_NVME'], 'clean': 'wipe@.service', 'prove': 'prove@.service'}})
        self.assert_recap(done)
        self.assert_enabled('compute-agent-clean.path')

    def test_a_prepared_card_enables_the_units_and_is_checked(self):
        units = ('compute-agent-prepare.service', 'compute-agent-prepare.path')
        self.addCleanup(self.machine.run, 'systemctl', 'disable', '--now', *units)
        done = self.converge(compute_agent_host_config={
            'device_prepare gpus': {'device_addresses': '0000:c1:00.0', 'virtual_functions': 4}})
        self.assert_fails(done, 'prepare: Card 0000:c1:00.0')
        self.assert_enabled(*units)

    def test_the_gate_fails_with_the_words_of_the_agent(self):
        self.assert_fails(self.converge(compute_agent_host_config={'agent': {'log_levle': 'info'}}),
                          r'"configuration: .*unknown option \[agent\] log_levle')

    def test_a_refused_credential_fails_and_is_not_shown(self):
        self.keep(TOKEN, 0o600)
        done = self.controller.play('-vvv', '--diff', compute_agent_credentials={'placement-token': SECRET})
        self.assert_fails(done, 'Placement forbids GET')
        self.assertNotIn(SECRET, done.stdout)

    def test_a_secret_in_the_configuration_is_refused_and_not_shown(self):
        done = self.controller.play('-vvv', compute_agent_host_config={'placement': {'password': SECRET}})
        self.assert_fails(done, 'has a secret: password')
        self.assertNotIn(SECRET, done.stdout)


class Maintenance(AnsibleCase):
    """The tests skip the reboot, which nspawn does not survive here."""

    def cordon(self):
        return self.machine.ctl_json('status', check=False)['host_cordoned']

    def maintain(self, **variables):
        return self.controller.play('--skip-tags', 'reboot', playbook='maintenance.yml', **variables)

    def test_cordons_and_uncordons(self):
        done = self.maintain()
        self.assert_recap(done, 2)
        self.assertEqual(changed(done), ['Cordon the host', 'Uncordon the host'])
        self.assertEqual(self.cordon(), '')

    def test_a_claim_stops_it_and_the_host_stays_cordoned(self):
        claim = self.claim_cpu().stdout.strip()
        self.addCleanup(self.machine.run, 'computectl', 'uncordon')
        done = self.maintain(compute_agent_drain_timeout=5)
        self.machine.run('computectl', 'release', claim)
        self.assert_fails(done, 'Wait until the host has no claims and no running guests')
        self.assertRegex(self.cordon(), 'maintenance by Ansible$')

    def test_the_cordon_of_an_operator_stays(self):
        self.machine.run('computectl', 'cordon', '--reason', 'its fan is broken')
        self.addCleanup(self.machine.run, 'computectl', 'uncordon')
        self.assert_recap(self.maintain(), 0)
        self.assertRegex(self.cordon(), 'its fan is broken$')
