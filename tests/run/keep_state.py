# SPDX-License-Identifier: LGPL-2.1-or-later
"""Stores the state folder of a release, for the test that each later release can use it.

    COMPUTE_AGENT_BUILD=build /usr/bin/python3 -m tests.run.keep_state FOLDER

It runs the agent of the build over a host from a file, with a real Placement. It makes claims in all states, a cordon and a reshape. FOLDER
gets the files of the state folder (the claim database as SQL), the host, and expected.json with the output of computectl.
"""

import json
import sqlite3
import sys
import uuid
from pathlib import Path

from tests.env.agent import Agent
from tests.env.bus import Bus
from tests.env.placement import Placement
from tests.env.scratch import Scratch

GPU = '0000:41:00.0'


def make_host():
    cells = [{'id': cell, 'memory_kib': 16 << 20, 'hugepages': [], 'distances': [],
              'cpus': [{'id': cpu, 'socket': cell, 'core': cpu // 2, 'siblings': '%d-%d' % (cpu & ~1, cpu | 1)} for cpu in range(8 * cell, 8 * cell + 8)]}
             for cell in range(2)]
    types = [{'id': 'nvidia-35', 'name': 'GRID', 'description': '', 'device_api': 'vfio-pci', 'available_instances': 4, 'created_instances': 0}]
    return {'format': 'compute-agent-host/1', 'driver': 'static', 'nodename': 'kept', 'hypervisor': 'QEMU', 'arch': 'x86_64', 'online_cpus': '0-15',
            'memory_kib': 32 << 20, 'disk_total_bytes': 100 << 30, 'cells': cells, 'mdevs': [], 'domains': [],
            'devices': [{'name': 'pci_0000_41_00_0', 'address': GPU, 'numa_node': 1, 'vendor_id': 0x10de, 'product_id': 0x1eb8, 'class_code': 0x030200,
                         'mdev_types': types}]}


def expected(agent):
    """Returns the values that a later release must show too."""
    keys = 'id', 'consumer', 'state', 'project', 'allocations', 'resize_target'
    claims = [{**{key: claim[key] for key in keys}, 'devices': [device['device'] for device in claim['devices']],
               'cpus': [cpu['cpus'] for cpu in claim['cpus']]} for claim in agent.ctl_json('claims', '--history')['claims']]
    events = [[event['event'], event['claim'], event['consumer'], event['reason']] for event in agent.ctl_json('history')['events']]
    return {'root': agent.root(), 'claims': claims, 'events': events, 'cordon': agent.status()['devices_cordoned']}


def keep(agent, folder):
    folder.mkdir(parents=True)
    (folder / 'expected.json').write_text(json.dumps(expected(agent), indent=1) + '\n')
    agent.stop()
    for path in agent.state.iterdir():
        if path.suffix == '.json' or path.name == 'compute_id':
            (folder / path.name).write_bytes(path.read_bytes())
    (folder / 'host.json').write_bytes((agent.folder / 'host.json').read_bytes())
    with sqlite3.connect(agent.state / 'claim.sqlite') as database:
        pragmas = ['PRAGMA %s = %d;' % (name, database.execute('PRAGMA ' + name).fetchone()[0]) for name in ('application_id', 'user_version')]
        (folder / 'claim.sql').write_text('\n'.join(['-- SPDX-License-Identifier: LGPL-2.1-or-later', *pragmas, *database.iterdump()]) + '\n')


def main(folder):
    scratch = Scratch()
    try:
        placement = Placement(scratch).start()
        agent = Agent(scratch, placement, bus=Bus(scratch).start(), host=make_host(), options={
            'DEFAULT': {'claim_expiry_time': 0}, 'devices': {'enabled_mdev_types': 'nvidia-35'},
            'compute': {'cpu_shared_set': '0-1,8-9', 'cpu_dedicated_set': '2-7,10-15'}}).start('synced')
        names = {name: str(uuid.uuid5(uuid.NAMESPACE_DNS, name + '.example.org')) for name in ('plain', 'gpu', 'numa', 'gone', 'moved', 'target')}
        for args in (['--resources', 'VCPU=2,MEMORY_MB=1024', '--consumer', names['plain'], '--project', 'p', '--user', 'u'],
                     ['--group', 'gpu:VGPU=1', '--resources', 'VCPU=1', '--consumer', names['gpu']],
                     ['--resources', 'PCPU=2,MEMORY_MB=2048', '--numa-nodes', '2', '--cpu-policy', 'dedicated', '--consumer', names['numa']],
                     ['--resources', 'VCPU=1', '--consumer', names['gone']],
                     ['--resources', 'VCPU=1', '--consumer', names['moved']]):
            agent.ctl('claim', *args)
        number = {claim['consumer']: claim['id'] for claim in agent.claims()}
        for name in ('plain', 'numa', 'moved'):
            agent.ctl('confirm', number[names[name]])
        agent.ctl('release', number[names['gone']], '--reason', 'the lab is over')
        agent.ctl('move', names['moved'], names['target'])
        agent.ctl('cordon', GPU, '--reason', 'its fan fails')
        agent.stop()
        agent.configure({'compute': {'numa_in_placement': 'root'}})
        agent.start('synced')
        keep(agent, folder)
    finally:
        scratch.close()


if __name__ == '__main__':
    main(Path(sys.argv[1]).absolute())
