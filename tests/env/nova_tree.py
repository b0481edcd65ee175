# SPDX-License-Identifier: LGPL-2.1-or-later
"""Prints the trees that Nova's own libvirt driver makes of a host, as JSON.

    /usr/bin/python3 -P nova_tree.py NOVA_CONF...

-P is needed because openstack.py, in the same folder, would hide the library of that name.

For each file it prints one object: {"tree": {provider name: ...}}, or {"refused": words}. It needs
Debian's python3-nova. Run it in the mount namespace of libvirtd. It starts no service and needs no
database. It runs only the driver, its checks of the configuration, and update_provider_tree() on a
tree that has only the root.
"""

import json
import os
import sys

ROOT = 'aaaaaaaa-0000-4000-8000-000000000001'


def load():
    """Imports Nova, which takes seconds. The patches of eventlet come first, as in nova-compute."""
    import nova.monkey_patch  # noqa: F401
    import nova.conf
    from nova import objects
    from nova.virt.libvirt import driver  # noqa: F401
    from oslo_log import log
    log.register_options(nova.conf.CONF)
    objects.register_all()


def make_tree(path):
    import nova.conf
    from nova.compute import provider_tree
    from nova.virt import fake
    from nova.virt.libvirt import driver
    nova.conf.CONF([], project='nova', default_config_files=[path])
    drv = driver.LibvirtDriver(fake.FakeVirtAPI())
    host = drv._host
    # This function asks the database for guests with dedicated CPUs, to move their VCPU to PCPU.
    # Here are none.
    drv._update_provider_tree_for_pcpu = lambda *args, **kwargs: None
    host.initialize()
    drv._update_host_specific_capabilities()
    drv._check_cpu_set_configuration()
    if hasattr(drv, '_check_file_backed_memory_support'):  # removed in 2025.1
        drv._check_file_backed_memory_support()
    name = host.get_hostname()
    tree = provider_tree.ProviderTree()
    tree.new_root(name, ROOT)
    drv.update_provider_tree(tree, name)
    for trait, supported in drv.capabilities_as_traits().items():
        (tree.add_traits if supported else tree.remove_traits)(name, trait)
    told = {}
    for uuid in tree.get_provider_uuids():
        data = tree.data(uuid)
        parent = tree.data(data.parent_uuid).name if data.parent_uuid else None
        told[data.name] = {'parent': parent, 'inventories': data.inventory,
                           'traits': sorted(data.traits)}
    return told


def answer(path, out):
    try:
        told = {'tree': make_tree(path)}
    except Exception as error:
        told = {'refused': '%s: %s' % (type(error).__name__, error)}
    with os.fdopen(out, 'w') as stream:
        json.dump(told, stream)
    # Exit at once: the threads of eventlet's pool would wait forever.
    os._exit(0)


def main(paths):
    load()
    answers = []
    for path in paths:
        # Configuration and driver are global in a process, so each file gets a process of its own.
        ours, theirs = os.pipe()
        pid = os.fork()
        if pid == 0:
            answer(path, theirs)
        os.close(theirs)
        with os.fdopen(ours) as stream:
            answers.append(json.loads(stream.read() or '{"refused": "nothing was said"}'))
        os.waitpid(pid, 0)
    json.dump(answers, sys.stdout)
    sys.stdout.flush()
    os._exit(0)


if __name__ == '__main__':
    main(sys.argv[1:])
