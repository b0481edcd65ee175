# SPDX-License-Identifier: LGPL-2.1-or-later
"""The nova.conf of a compute node as five deployment tools write it: their sections and options, with values of the tests.

render(name, **values) inserts url (of Keystone, without a version), password, uri (of libvirt), and folder (Nova's state folder).
"""

AUTH = '''auth_type = password
auth_url = {url}/v3
username = agent
password = {password}
user_domain_name = Default
project_name = service
project_domain_name = Default
region_name = RegionOne
'''

KOLLA_ANSIBLE = '''[DEFAULT]
debug = False
log_dir = /var/log/kolla/nova
state_path = {folder}
allow_resize_to_same_host = true
compute_driver = libvirt.LibvirtDriver
my_ip = 127.0.0.1
transport_url = rabbit://openstack:pa$$word@127.0.0.1:5672//

[conductor]
workers = 5

[vnc]
novncproxy_host = $my_ip
novncproxy_port = 6080
server_listen = $my_ip
server_proxyclient_address = $my_ip
novncproxy_base_url = http://127.0.0.1:6080/vnc_lite.html

[serial_console]
enabled = true
base_url = ws://127.0.0.1:6083/
proxyclient_address = $my_ip

[oslo_concurrency]
lock_path = /var/lib/nova/tmp

[glance]
debug = False
api_servers = http://127.0.0.1:9292
cafile =
num_retries = 3

[cinder]
catalog_info = volumev3:cinderv3:internalURL
os_region_name = RegionOne
''' + AUTH + '''
[neutron]
metadata_proxy_shared_secret = secret
service_metadata_proxy = true
''' + AUTH + '''
[libvirt]
connection_uri = {uri}
live_migration_inbound_addr = 127.0.0.1
virt_type = qemu
cpu_mode = none
num_pcie_ports = 16
[workarounds]
skip_cpu_compare_on_dest = True

[upgrade_levels]
compute = auto

[oslo_messaging_notifications]
transport_url = rabbit://openstack:pa$$word@127.0.0.1:5672//
driver = noop

[oslo_messaging_rabbit]
heartbeat_in_pthread = false
amqp_durable_queues = true
rabbit_quorum_queues = true

[privsep_entrypoint]
helper_command = sudo nova-rootwrap /etc/nova/rootwrap.conf privsep-helper --config-file /etc/nova/nova.conf

[guestfs]
debug = False

[placement]
''' + AUTH + '''valid_interfaces = internal
cafile =

[notifications]
notify_on_state_change = vm_and_task_state

[barbican]
auth_endpoint = http://127.0.0.1:5000
barbican_endpoint_type = internal
verify_ssl_path =

[service_user]
send_service_user_token = true
''' + AUTH

OPENSTACK_ANSIBLE = '''# rendered by a role
[DEFAULT]
use_journal = True
debug = False
fatal_deprecations = False
log_dir = /var/log/nova
state_path = {folder}
instances_path = $state_path/instances
executor_thread_pool_size = 64
transport_url = rabbit://nova:secret@127.0.0.1:5671//nova?ssl=1
resume_guests_state_on_host_boot = False
compute_driver = libvirt.LibvirtDriver
instance_name_template = instance-%08x
host = node-7
my_ip = 127.0.0.1
reserved_host_memory_mb = 1024
reserved_host_disk_mb = 2048
cpu_allocation_ratio = 2.0
ram_allocation_ratio = 1.0
disk_allocation_ratio = 1.0
vif_plugging_timeout = 10
vif_plugging_is_fatal = False
max_concurrent_live_migrations = 1
[cache]
enabled = true
backend = oslo_cache.memcache_pool
memcache_servers = 127.0.0.1:11211
[vnc]
enabled = True
server_proxyclient_address = 127.0.0.1
server_listen = 127.0.0.1
[cinder]
catalog_info = volumev3:cinderv3:internalURL
cross_az_attach = True
[service_user]
send_service_user_token = True
[oslo_concurrency]
lock_path = /var/lock/nova
[oslo_messaging_rabbit]
ssl = True
rpc_conn_pool_size = 30
[oslo_messaging_notifications]
driver = noop
[oslo_policy]
policy_file = policy.yaml
[libvirt]
connection_uri = {uri}
inject_partition = -2
inject_password = False
inject_key = False
virt_type = qemu
cpu_mode = none
live_migration_with_native_tls = true
live_migration_scheme = tls
hw_machine_type = x86_64=q35
disk_cachemodes = network=writeback
[neutron]
''' + AUTH + '''insecure = False
[placement]
''' + AUTH + '''insecure = False
valid_interfaces = internal
[wsgi]
api_paste_config = /etc/nova/api-paste.ini
'''

CHARM = '''###############################################################################
# [ WARNING ]
# Configuration file maintained by a charm; local changes may be overwritten.
###############################################################################
[DEFAULT]
verbose=False
debug=False
dhcpbridge_flagfile=/etc/nova/nova.conf
dhcpbridge=/usr/bin/nova-dhcpbridge
logdir=/var/log/nova
state_path={folder}
root_helper=sudo nova-rootwrap /etc/nova/rootwrap.conf
enabled_apis=osapi_compute,metadata
compute_driver=libvirt.LibvirtDriver
use_syslog = False
my_ip = 127.0.0.1
use_neutron = True
firewall_driver = nova.virt.firewall.NoopFirewallDriver
force_raw_images = True
reserved_host_memory_mb = 512
transport_url = rabbit://nova:secret@127.0.0.1:5672/openstack
vcpu_pin_set =
resume_guests_state_on_host_boot = False

[api]
auth_strategy=keystone

[os_vif_ovs]
ovsdb_connection = unix:/var/run/openvswitch/db.sock

[pci]

[key_manager]

[spice]
agent_enabled = True
enabled = True
html5proxy_base_url = http://127.0.0.1:6082/spice_auto.html
server_listen = 0.0.0.0

[libvirt]
connection_uri = {uri}
inject_partition = -2
virt_type = qemu
cpu_mode = none
rbd_user = nova-compute
rbd_secret_uuid = 514c9fca-8cbe-11e2-9c52-3bc8c7819472
live_migration_uri = qemu+ssh://%s/system
disk_cachemodes =

[neutron]
''' + AUTH + '''
[keystone_authtoken]
www_authenticate_uri = {url}
''' + AUTH + '''signing_dir =

[placement]
''' + AUTH + '''
[glance]
api_servers = http://127.0.0.1:9292

[serial_console]
enabled = false
'''

OPENSTACK_HELM = '''[DEFAULT]
compute_driver = libvirt.LibvirtDriver
cpu_allocation_ratio = 3.0
default_ephemeral_format = ext4
disk_allocation_ratio = 1.0
instance_usage_audit = true
instance_usage_audit_period = hour
log_config_append = /etc/nova/logging.conf
metadata_workers = 1
my_ip = 127.0.0.1
osapi_compute_listen = 0.0.0.0
osapi_compute_workers = 1
ram_allocation_ratio = 1.0
resume_guests_state_on_host_boot = true
state_path = {folder}
transport_url = rabbit://nova:secret@127.0.0.1:5672/nova
use_cow_images = true
[api_database]
connection = mysql+pymysql://nova:secret@127.0.0.1:3306/nova_api
max_retries = -1
[cache]
backend = dogpile.cache.memcached
enabled = true
memcache_servers = 127.0.0.1:11211
[cell0_database]
connection = mysql+pymysql://nova:secret@127.0.0.1:3306/nova_cell0
max_retries = -1
[compute]
cpu_shared_set = 0-3
max_disk_devices_to_attach = 28
[conductor]
workers = 1
[database]
connection = mysql+pymysql://nova:secret@127.0.0.1:3306/nova
max_retries = -1
[glance]
num_retries = 3
[ironic]
auth_type = password
memcache_secret_key = x
[keystone_authtoken]
auth_version = v3
memcache_security_strategy = ENCRYPT
''' + AUTH + '''[libvirt]
connection_uri = {uri}
disk_cachemodes = network=writeback
hw_disk_discard = unmap
virt_type = qemu
cpu_mode = none
[neutron]
metadata_proxy_shared_secret = "secret"
service_metadata_proxy = true
[oslo_concurrency]
lock_path = /var/lib/nova/tmp
[oslo_messaging_notifications]
driver = messagingv2
[oslo_messaging_rabbit]
rabbit_ha_queues = true
[oslo_middleware]
enable_proxy_headers_parsing = true
[oslo_policy]
policy_file = /etc/nova/policy.yaml
[placement]
auth_version = v3
''' + AUTH + '''[scheduler]
discover_hosts_in_cells_interval = -1
[service_user]
send_service_user_token = true
[spice]
html5proxy_host = 0.0.0.0
[upgrade_levels]
compute = auto
[vnc]
auth_schemes = none
[wsgi]
api_paste_config = /etc/nova/api-paste.ini
'''

TRIPLEO = '''[DEFAULT]
# state folder
state_path={folder}
instances_path=$state_path/instances
rootwrap_config=/etc/nova/rootwrap.conf
resume_guests_state_on_host_boot=False
reserved_huge_pages=node:0, size:2048, count:8
reserved_host_memory_mb=4096
reserved_host_disk_mb=0
max_concurrent_builds=10
compute_driver=libvirt.LibvirtDriver
vif_plugging_is_fatal=True
vif_plugging_timeout=300
force_raw_images=True
my_ip=127.0.0.1
debug=False
log_dir=/var/log/nova
transport_url=rabbit://guest:secret@compute.internal:5672/?ssl=0
notification_format=unversioned
notify_on_state_change=vm_and_task_state
host=compute-1.localdomain

[cinder]
catalog_info=volumev3:cinderv3:internalURL
cross_az_attach=True
region_name=regionOne

[compute]
consecutive_build_service_disable_threshold=10
live_migration_wait_for_vif_plug=True
max_disk_devices_to_attach=-1
cpu_shared_set=0-1
cpu_dedicated_set=2-3
provider_config_location={folder}/provider_config

[devices]
enabled_mdev_types=

[libvirt]
connection_uri={uri}
live_migration_uri=qemu+ssh://nova_migration@%s:2022/system
cpu_mode=none
cpu_models=
cpu_model_extra_flags=
virt_type=qemu
inject_password=False
inject_key=False
inject_partition=-2
enabled_perf_events=
hw_machine_type=x86_64=q35
max_queues=8
num_pcie_ports=16
mem_stats_period_seconds=10
pmem_namespaces=
swtpm_enabled=False
tx_queue_size=512
rx_queue_size=512
volume_use_multipath=False
images_type=default

[neutron]
''' + AUTH + '''ovs_bridge=br-int
default_floating_pool=nova

[notifications]
notification_format=unversioned

[oslo_concurrency]
lock_path=/var/lib/nova/tmp

[oslo_messaging_rabbit]
heartbeat_timeout_threshold=60
heartbeat_in_pthread=False
rabbit_qos_prefetch_count=0

[os_vif_ovs]
ovsdb_connection=tcp:127.0.0.1:6640

[pci]

[placement]
''' + AUTH + '''valid_interfaces=internal

[privsep_osbrick]
helper_command=sudo nova-rootwrap /etc/nova/rootwrap.conf privsep-helper --config-file /etc/nova/nova.conf

[vif_plug_ovs_privileged]
helper_command=sudo privsep-helper

[vnc]
novncproxy_base_url=http://127.0.0.1:6080/vnc_auto.html
server_listen=127.0.0.1
enabled=True

[workarounds]
enable_numa_live_migration=False
never_download_image_if_on_rbd=False
'''

ALL = {'kolla-ansible': KOLLA_ANSIBLE, 'openstack-ansible': OPENSTACK_ANSIBLE, 'charm': CHARM, 'openstack-helm': OPENSTACK_HELM,
       'tripleo': TRIPLEO}


def render(name, **values):
    return ALL[name].format(**values)
