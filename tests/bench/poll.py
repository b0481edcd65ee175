# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a poll of a big host costs: time and calls, the first poll and the second.

    COMPUTE_AGENT_BUILD=DIR python3 -m tests.bench.poll [--domains N] [--devices N]     ("make bench-poll")

A private libvirtd over a made-up host of 4 cells, SR-IOV cards of 64 VFs and 500 defined guests is
asked by tests/bench/poll, which makes the driver's own polls. Ends with 1 when the second poll took
more than a tenth of the first, or asked for more single things than the guests that each poll reads
again. The last line is what a claim of a device waits for: every guest is off here, and is read.
"""

import argparse
import subprocess
import sys

from tests.env.agent import build_folder
from tests.env.hosts import simple_host, sriov
from tests.env.libvirtd import Libvirtd, guest_xml
from tests.env.scratch import Scratch


REFRESHED = 8  # POLL_CACHE_REFRESH_MAX


def big_host(devices):
    host = simple_host(cells=4)
    for number in range((devices + 64) // 65):
        vfs = min(64, devices - 65 * number - 1)
        host.pci += sriov('0000:%02x:00.0' % (0x10 + number), vfs, numa_node=number % 4,
                          total_vfs=64)
    return host


def define_domains(libvirtd, count):
    folder = libvirtd.scratch.folder('domains')
    paths = []
    for number in range(count):
        paths.append(folder / ('%d.xml' % number))
        paths[-1].write_text(guest_xml('guest%d' % number))
    for begin in range(0, count, 50):
        libvirtd.virsh('; '.join('define %s' % path for path in paths[begin:begin + 50]),
                       timeout=120)


def main():
    parser = argparse.ArgumentParser(prog='python3 -m tests.bench.poll')
    parser.add_argument('--domains', type=int, default=500)
    parser.add_argument('--devices', type=int, default=300)
    args = parser.parse_args()
    with Scratch() as scratch:
        libvirtd = Libvirtd(big_host(args.devices), scratch).start()
        define_domains(libvirtd, args.domains)
        done = subprocess.run([build_folder() / 'tests/bench/poll', libvirtd.uri], text=True,
                              stdout=subprocess.PIPE, check=True)
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}
    first, again = float(rows['first'][0]), float(rows['median'][0])
    print('%s devices, %s domains' % tuple(rows['first'][3:5]))
    print('first poll   %8.1f ms, %5s calls of libvirt, %5s for a single thing'
          % (first, *rows['first'][1:3]))
    print('later polls  %8.1f ms, %5s calls of libvirt, %5s for a single thing (median of %s)'
          % (again, *rows['next'][1:3], rows['median'][2]))
    print('look at guests %6.1f ms, %5s calls of libvirt, %5s for a single thing'
          % (float(rows['guests'][0]), *rows['guests'][1:3]))
    return 0 if again * 10 <= first and int(rows['next'][2]) <= REFRESHED else 1


if __name__ == '__main__':
    sys.exit(main())
