# SPDX-License-Identifier: LGPL-2.1-or-later
"""The part of ./demo after the build: it shows the agent at work, and compares Placement's answer with the host.

    COMPUTE_AGENT_BUILD=DIR python3 -m tests.run.demo [--here] [--keep]

With --here the host is this machine, which the driver "linux" reads without root. The exit code is 0 only if Placement's answer matches the
host.
"""

import argparse
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

from tests.env.agent import Agent, build_folder
from tests.env.bus import Bus
from tests.env.hosts import demo_host, nodedev_name
from tests.env.libvirtd import Libvirtd, mount_namespaces_allowed, testdriver_xml
from tests.env.placement import Placement
from tests.env.scratch import Scratch

BOLD, DIM, RESET = ('\033[1m', '\033[2m', '\033[0m') if sys.stdout.isatty() else ('', '', '')


def title(text):
    print('\n%s== %s%s' % (BOLD, text, RESET), flush=True)


def show(agent, *args):
    """Runs computectl with its output on this terminal. Returns its exit code."""
    print('%s$ computectl %s%s' % (BOLD, ' '.join(shlex.quote(str(arg)) for arg in args), RESET),
          flush=True)
    done = subprocess.run([str(build_folder() / 'computectl'), '--no-pager', *map(str, args)],
                          env=agent.env(), check=False)
    print(flush=True)
    return done.returncode


def expected_tree(agent, host):
    """Returns the expected inventories of the host, computed independently of the agent.

    The result is {provider name: {resource class: (total, reserved)}}. The total of a GPU is the sum of free and existing mdevs of the
    enabled type.
    """
    memory_mb = sum(cell.memory_kib for cell in host.cells) // 1024
    disk = os.statvfs(agent.folder)
    tree = {host.name: {
        'VCPU': (sum(len(cell.cpus) for cell in host.cells), 0),
        'MEMORY_MB': (memory_mb, 512),
        'DISK_GB': (disk.f_blocks * disk.f_frsize >> 30, 0),
    }}
    for gpu in host.gpus:
        kind = gpu.types['nvidia-35']
        tree['%s_%s' % (host.name, nodedev_name(gpu.address))] = {'VGPU': (kind.available + len(kind.existing), 0)}
    return tree


def expected_here(agent):
    """Returns the expected inventories of this machine without GPUs, because their types are not configured."""
    nodes = sorted(Path('/sys/devices/system/node').glob('node*/meminfo')) or [Path('/proc/meminfo')]
    lines = [line.split() for node in nodes for line in node.read_text().splitlines()]
    memory_kib = sum(int(words[-2]) for words in lines if 'MemTotal:' in words)
    disk = os.statvfs(agent.folder)
    return {agent.status()['node']: {
        'VCPU': (os.sysconf('SC_NPROCESSORS_ONLN'), 0),
        'MEMORY_MB': (memory_kib // 1024, 512),
        'DISK_GB': (disk.f_blocks * disk.f_frsize >> 30, 0),
    }}


def placement_tree(placement, root):
    """Returns the inventories from Placement's answers, in the same form."""
    return {name: {rc: (record['total'], record['reserved'])
                   for rc, record in provider['inventories'].items()}
            for name, provider in placement.tree_by_name(root).items()}


def print_placement(placement, root):
    print('%sGET /resource_providers?in_tree=%s and what it lists:%s' % (DIM, root, RESET))
    for name, provider in sorted(placement.tree_by_name(root).items()):
        print('  %s  (generation %d)' % (name, provider['generation']))
        for rc, record in sorted(provider['inventories'].items()):
            print('      %-10s total %-8d reserved %-5d ratio %g' % (
                rc, record['total'], record['reserved'], record['allocation_ratio']))
        traits = sorted(provider['traits'])
        print('      traits %s%s' % (', '.join(traits[:3]),
                                     ' and %d more' % (len(traits) - 3) if traits[3:] else ''))


def start_hypervisor(scratch, host):
    """Starts a private libvirtd over the host, or prepares libvirt's test driver. Returns the URI."""
    if mount_namespaces_allowed():
        daemon = Libvirtd(host, scratch).start()
        return daemon.uri
    print('Mount namespaces are not allowed here: libvirt\'s test driver stands in for libvirtd.')
    return testdriver_xml(host, scratch.folder('testdriver'))


def claim_and_survive(agent, resources):
    title('A guest claims %s; the claim is on disk before it is promised' %
          ('a vGPU' if 'VGPU' in resources else 'a CPU and memory'))
    consumer = str(uuid.uuid4())
    show(agent, 'claim', '--consumer', consumer, '--resources', resources)
    show(agent, 'tree')
    print('%s$ kill -9 compute-agentd; start it again%s' % (BOLD, RESET))
    agent.kill()
    agent.start()
    show(agent, 'claims')
    return any(claim['consumer'] == consumer for claim in agent.claims())


def quiet_cycle(agent, placement):
    agent.ctl('sync')  # the first cycle after a start also runs an audit
    title('Nothing changed: what one more cycle costs')
    mark = placement.mark()
    show(agent, 'sync')
    requests = placement.requests_since(mark)
    for method, path, status in requests:
        print('  %s %s -> %s' % (method, path, status))
    print('  Requests: %d, writes: %d' % (len(requests), len(placement.writes_since(mark))))
    return not placement.writes_since(mark)


def keep_picture(agent):
    """Writes the output of "computectl tree --svg" to a file, which is not removed. Returns its path."""
    with tempfile.NamedTemporaryFile('w', prefix='compute-agent-host-', suffix='.svg', delete=False) as file:
        file.write(agent.ctl('tree', '--svg').stdout)
    return file.name


def run(scratch, here, keep):
    host = None if here else demo_host()
    print('Starting a private Placement%s …' % (
        '' if here else ' and a private libvirtd over a made-up host'), flush=True)
    placement = Placement(scratch)
    placement.start(wait=False)
    bus = Bus(scratch).start()
    uri = None if here else start_hypervisor(scratch, host)
    placement.wait_ready()
    agent = Agent(scratch, placement, uri, bus,
                  {'DEFAULT': {'update_resources_interval': 60,
                               'compute_driver': 'linux' if here else 'libvirt'}})

    title('compute-agentd starts, and publishes the host')
    agent.start('synced')
    show(agent, 'status')
    title('What this machine has' if here else 'What the hypervisor has')
    show(agent, 'discover')
    title('The tree of resource providers, as the agent has it')
    show(agent, 'tree')
    title('… and as Placement itself answers')
    print_placement(placement, agent.root())
    wanted = expected_here(agent) if here else expected_tree(agent, host)
    found = placement_tree(placement, agent.root())
    survived = claim_and_survive(agent, 'VCPU=1,MEMORY_MB=256' if here
                                 else 'VCPU=2,MEMORY_MB=2048,VGPU=1')
    agent.wait_state('synced')
    quiet = quiet_cycle(agent, placement)
    if here:
        title('The picture of this machine')
        show(agent, 'tree')
        print('$ computectl tree --svg >%s' % keep_picture(agent))

    title('Verdict')
    results = [(wanted == found, 'the tree in Placement is equal to the host (%d provider%s)' %
                (len(found), '' if len(found) == 1 else 's')),
               (survived, 'the claim survived kill -9'),
               (quiet, 'a cycle in which nothing changed wrote nothing')]
    for good, text in results:
        print('  %s  %s' % ('yes' if good else 'NO ', text))
    if wanted != found:
        print('  wanted: %s\n  found:  %s' % (wanted, found))
    if keep:
        stay(agent, placement, uri)
    return all(good for good, _ in results)


def stay(agent, placement, uri):
    print('''
Everything runs until Ctrl-C. In another terminal:
  export DBUS_SYSTEM_BUS_ADDRESS=%s
  export PATH=%s:$PATH
  computectl status; computectl tree; computectl claims; computectl discover; computectl plan
  computectl doctor -c %s
  curl -s -H 'X-Auth-Token: admin' -H 'OpenStack-API-Version: placement 1.39' %s/resource_providers%s
The log is %s.''' % (
        agent.bus.address, build_folder(), agent.config, placement.endpoint,
        "\n  virsh -c '%s' nodedev-list --cap mdev_types" % uri if uri else '',
        agent.folder / ('agent-%d.log' % agent.n_starts)), flush=True)
    try:
        signal.pause()
    except KeyboardInterrupt:
        print()


def main():
    parser = argparse.ArgumentParser(prog='demo')
    parser.add_argument('--here', action='store_true', help='show this machine')
    parser.add_argument('--keep', action='store_true', help='stay until Ctrl-C')
    args = parser.parse_args()
    try:
        with Scratch() as scratch:
            return 0 if run(scratch, args.here, args.keep) else 1
    except KeyboardInterrupt:
        return 130


if __name__ == '__main__':
    sys.exit(main())
