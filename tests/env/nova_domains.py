# SPDX-License-Identifier: LGPL-2.1-or-later
"""Prints the amounts that Nova allocates for flavours and the domains that its own libvirt driver makes of them, as JSON.

    /usr/bin/python3 -P nova_domains.py NOVA_CONF < FLAVOURS

-P is needed because openstack.py, in the same folder, would hide the library of that name.

FLAVOURS is a list of {"uuid", "vcpus", "ram", "extra": {key: value}}. For each flavour this prints {"resources": {class: amount},
"xml": the domain}, or {"refused": words}. The amounts are those that Nova's scheduler requests from Placement. Nova's own functions
place each guest on the empty host. It needs Debian's python3-nova. Run it in the mount namespace of libvirtd. It starts no service and
needs no database.
"""

import json
import os
import sys
import traceback


def load(path):
    """Imports Nova, which takes seconds, and returns its driver. The patches of eventlet come first, as in nova-compute."""
    import nova.monkey_patch  # noqa: F401
    import nova.conf
    from nova import objects
    from nova.virt import fake
    from nova.virt.libvirt import driver
    from oslo_log import log
    log.register_options(nova.conf.CONF)
    objects.register_all()
    nova.conf.CONF([], project='nova', default_config_files=[path])
    nova.conf.CONF.set_override('instance_name_template', '%(uuid)s')
    nova.conf.neutron.register_dynamic_opts(nova.conf.CONF)
    drv = driver.LibvirtDriver(fake.FakeVirtAPI())
    drv._host.initialize()
    drv._update_host_specific_capabilities()
    drv._vpmems_by_name, drv._vpmems_by_rc = {}, {}
    drv._host.is_cpu_control_policy_capable = lambda: True  # the test machine can lack the cgroup
    return drv


def make_flavor(asked):
    from nova import objects
    return objects.Flavor(id=1, flavorid='1', name='asked', vcpus=asked['vcpus'], memory_mb=asked['ram'], root_gb=0, ephemeral_gb=0,
                          swap=0, rxtx_factor=1.0, vcpu_weight=0, disabled=False, is_public=True, extra_specs=asked['extra'])


def fit(drv, flavor, image):
    """Returns the guest's cells on the empty host, as the resource tracker chooses them. Returns None for a guest without cells."""
    import inspect

    from nova import objects
    from nova.virt import hardware
    wanted = hardware.numa_get_constraints(flavor, image)
    if wanted is None:
        return None
    host = objects.NUMATopology.obj_from_primitive(drv._get_host_numa_topology().obj_to_primitive())
    # Nova 31 has the parameter for the providers of groups before the limits.
    mapping = [None] if 'provider_mapping' in inspect.signature(hardware.numa_fit_instance_to_host).parameters else []
    found = hardware.numa_fit_instance_to_host(host, wanted, *mapping, limits=objects.NUMATopologyLimits(
        cpu_allocation_ratio=4.0, ram_allocation_ratio=1.0))
    if found is None:
        raise ValueError('the guest does not fit the cells of the host')
    return found


def make_instance(asked, flavor, cells):
    from nova import objects
    from nova.compute import vm_states
    empty = objects.PciDeviceList(objects=[])
    return objects.Instance(
        id=1, uuid=asked['uuid'], flavor=flavor, numa_topology=cells, display_name='asked', hostname='asked',
        vm_state=vm_states.BUILDING, image_ref='', kernel_id='', ramdisk_id='', root_device_name='/dev/vda', os_type=None, vm_mode=None,
        architecture='x86_64', user_id='user', project_id='project', host='host', node='host', memory_mb=flavor.memory_mb,
        vcpus=flavor.vcpus, root_gb=0, ephemeral_gb=0, ephemeral_key_uuid=None, config_drive='', vcpu_model=None, resources=None,
        trusted_certs=None, device_metadata=None, metadata={}, system_metadata={}, pci_devices=empty, default_ephemeral_device=None,
        default_swap_device=None, pci_requests=objects.InstancePCIRequests(instance_uuid=asked['uuid'], requests=[]), hidden=False)


def ask_for(flavor, image, cells):
    """Returns the amounts that the scheduler requests from Placement, as {class: amount}."""
    from nova import objects
    from nova.scheduler import utils
    spec = objects.RequestSpec(flavor=flavor, image=image, numa_topology=cells, is_bfv=True, requested_resources=[], scheduler_hints={},
                               request_level_params=objects.RequestLevelParams(), requested_destination=None, pci_requests=None)
    return dict(utils.ResourceRequest.from_request_spec(spec).merged_resources())


def make_domain(drv, asked):
    # The storage, the consoles and the record of the server do not influence the domain, and need services that are missing here.
    from unittest import mock

    from nova import objects
    from nova.virt.libvirt import blockinfo
    flavor = make_flavor(asked)
    image = objects.ImageMeta.from_dict({'disk_format': 'raw', 'container_format': 'bare', 'min_ram': 0, 'min_disk': 0,
                                         'properties': asked.get('image', {})})
    cells = fit(drv, flavor, image)
    instance = make_instance(asked, flavor, cells)
    disks = blockinfo.get_disk_info('qemu', instance, image)
    with mock.patch.object(drv, '_get_guest_storage_config', return_value=[]), \
            mock.patch.object(drv, '_create_consoles'), mock.patch.object(objects.Instance, 'save'):
        domain = drv._get_guest_config(instance, [], image, disks)
    return {'resources': ask_for(flavor, image, cells), 'xml': domain.to_xml()}


def answer(drv, asked):
    try:
        return make_domain(drv, asked)
    except Exception as error:  # also for a key that Nova rejects
        return {'refused': '%s: %s' % (type(error).__name__, error), 'where': traceback.format_exc()[-1500:]}


def main(path):
    asked = json.load(sys.stdin)
    drv = load(path)
    json.dump([answer(drv, one) for one in asked], sys.stdout)
    sys.stdout.flush()
    os._exit(0)  # exit at once: the threads of eventlet's pool would wait forever


if __name__ == '__main__':
    main(sys.argv[1])
