#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""config/nova-options.list has each section of the installed Nova, and each option of the sections that the agent reads.

The names come from the entry points "oslo.config.opts" of Debian's python3-nova and its libraries, and from keystoneauth's plug-ins. The
file has the names of all versions of Nova on which this program ran with --write, which adds names and removes none.
"""

import importlib.metadata
import sys
from pathlib import Path

from sources import main

FILE = Path('config/nova-options.list')
READ = ('DEFAULT', 'compute', 'devices', 'libvirt', 'pci', 'placement')  # the sections of Nova that the agent reads
OTHERS = ('placement', 'glance', 'keystone', 'castellan.tests')  # prefixes of the entry points of other services
PRIVILEGED = {'nova_sys_admin', 'privsep', 'privsep_osbrick', 'vif_plug_linux_bridge_privileged', 'vif_plug_ovs_privileged'}
# Options of earlier versions of Nova that templates of deployment tools still write.
FORMER = (
    'auth_strategy block_device_allocate_retries config_drive_cdrom connection_type control_exchange cpu_allocation_ratio '
    'default_floating_pool dhcp_domain dhcpbridge dhcpbridge_flagfile ec2_private_dns_show_ip enabled_ssl_apis fatal_deprecations '
    'firewall_driver flat_injected flat_interface force_dhcp_release glance_api_servers image_service injected_network_template '
    'iscsi_helper libvirt_inject_partition libvirt_type libvirt_use_virtio_for_bridges linuxnet_interface_driver logdir memcached_servers '
    'metadata_host metadata_port multi_host network_api_class network_manager notification_driver notification_topics '
    'notify_on_any_change notify_on_state_change novncproxy_base_url novncproxy_host novncproxy_port osapi_volume_listen '
    'rabbit_host rabbit_password rabbit_userid rabbit_virtual_host ram_weight_multiplier resume_guests_state_on_host_boot '
    'root_helper rpc_backend scheduler_default_filters scheduler_driver security_group_api service_neutron_metadata_proxy '
    'share_dhcp_address sql_connection use_forwarded_for use_ipv6 use_neutron use_syslog verbose vnc_enabled vncserver_listen '
    'vncserver_proxyclient_address volume_api_class volumes_path').split()
PLUGINS = ('password', 'v3password', 'v3applicationcredential', 'token', 'v3token', 'admin_token', 'none')
HEAD = '''# SPDX-License-Identifier: LGPL-2.1-or-later
# The sections, and the options of the sections that the agent reads, of Nova and its libraries, in all versions of Nova that
# "tests/lint/nova-options.py --write" has seen. Sorted without regard to case.
'''


def is_of_nova(name):
    return not name.startswith(OTHERS) or name.startswith('keystonemiddleware')


def names_of(option):
    """Yields the names of an option with its old ones, as (section or None, name)."""
    yield None, option.dest
    for old in option.deprecated_opts:
        yield old.group, (old.name or option.name).replace('-', '_')


def installed():
    """Returns the sections, and "section option" for the sections that the agent reads."""
    sections, options = set(PRIVILEGED), {'DEFAULT %s' % name for name in FORMER}

    def add(group, found):
        for option in found:
            for section, name in names_of(option):
                section = section or group
                sections.add(section)
                if section in READ:
                    options.add('%s %s' % (section, name))

    for entry in importlib.metadata.entry_points(group='oslo.config.opts'):
        if is_of_nova(entry.name):
            for group, found in entry.load()():
                add(getattr(group, 'name', group) or 'DEFAULT', found)
    from keystoneauth1 import loading
    for plugin in PLUGINS:
        add('placement', loading.get_auth_plugin_conf_options(plugin))
    for common in (loading.get_auth_common_conf_options, loading.get_session_conf_options, loading.get_adapter_conf_options):
        add('placement', common())
    return sections, options


def stored(text):
    """Returns the same from the text of the file."""
    lines = [line for line in text.splitlines() if not line.startswith('#')]
    return ({line[1:-1] for line in lines if line.startswith('[')}, {line for line in lines if not line.startswith('[')})


def write(sections, options):
    names = ['[%s]' % name for name in sorted(sections, key=lambda name: (name.lower(), name))] + sorted(options, key=str.lower)
    FILE.write_text(HEAD + '\n'.join(names) + '\n')


def find_problems(root, files):
    if not (root / FILE).exists():
        return  # not the tree of this project
    have = stored((root / FILE).read_text())
    for names, there, what in zip(installed(), have, ('section', 'option')):
        for name in sorted(names - there):
            yield str(FILE), 1, 'the %s "%s" of the installed Nova is missing: run tests/lint/nova-options.py --write' % (what, name)


if __name__ == '__main__':
    if sys.argv[1:] == ['--write']:
        before = stored(FILE.read_text()) if FILE.exists() else (set(), set())
        write(*(new | old for new, old in zip(installed(), before)))
    else:
        main(find_problems)
