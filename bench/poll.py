# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measures a poll of a large host: time and calls of the first poll and of later ones, of both drivers.

    COMPUTE_AGENT_BUILD=DIR python3 -m bench.poll [--domains N] [--devices N] [--gpus N]     ("make bench-poll")

bench/poll runs the polls of the driver. The private libvirtd has an artificial host of 4 cells, SR-IOV cards of 64 VFs and 500
defined guests. The exit code is 1 if the second poll took more than a tenth of the first. It is also 1 if the second poll had
more calls for single objects than the number of guests that each poll reads again. A claim of a device waits for "look at
guests". Here each guest is off and is read.

The driver "linux" reads an artificial /sys of 128 CPUs and 1,024 virtual functions. Its later polls, without an event between
them, can take at most 3 ms of CPU.
"""

import argparse
import subprocess
import sys

from tests.env import fakesys
from tests.env.agent import build_folder
from tests.env.hosts import Cell, Gpu, Host, MdevType, simple_host, sriov
from tests.env.libvirtd import Libvirtd, guest_xml
from tests.env.scratch import Scratch


REFRESHED = 4  # POLL_CACHE_REFRESH_MAX


def big_host(devices, gpus):
    host = simple_host(cells=4)
    for number in range(gpus):
        host.gpus.append(Gpu('0001:%02x:00.0' % number, numa_node=number % 4, types={'nvidia-35': MdevType('nvidia-35')}))
    for number in range((devices + 64) // 65):
        vfs = min(64, devices - 65 * number - 1)
        host.pci += sriov('0000:%02x:00.0' % (0x10 + number), vfs, numa_node=number % 4,
                          total_vfs=64)
    return host


def measure(*arguments):
    """Returns the rows that bench/poll prints, by their first word."""
    done = subprocess.run([build_folder() / 'bench/poll', *arguments], text=True, stdout=subprocess.PIPE, check=True)
    return {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}


def compare_linux(scratch):
    """Returns whether later polls of the linux driver are fast enough."""
    cells = [Cell(number, list(range(32 * number, 32 * number + 32)), 64 << 20, {2048: 1024}, threads=2) for number in range(4)]
    host = Host(name='wide', cells=cells)
    for number in range(16):
        host.pci += sriov('0000:%02x:00.0' % (0x10 + number), 64, numa_node=number % 4)
    rows = measure(fakesys.write(host, scratch.folder('wide')), '99')
    print('driver linux: %s devices, 128 CPUs' % rows['first'][1])
    print('first poll   %8.1f ms of CPU' % float(rows['first'][0]))
    print('later polls  %8.1f ms of CPU (median of %s)' % (float(rows['median'][0]), rows['median'][2]))
    return float(rows['median'][0]) <= 3


def define_domains(libvirtd, count):
    # virsh defines 50 domains in one call, because each start of virsh takes time.
    folder = libvirtd.scratch.folder('domains')
    paths = []
    for number in range(count):
        paths.append(folder / ('%d.xml' % number))
        paths[-1].write_text(guest_xml('guest%d' % number))
    for begin in range(0, count, 50):
        libvirtd.virsh('; '.join('define %s' % path for path in paths[begin:begin + 50]),
                       timeout=120)


def main():
    parser = argparse.ArgumentParser(prog='python3 -m bench.poll')
    parser.add_argument('--domains', type=int, default=500)
    parser.add_argument('--devices', type=int, default=300)
    parser.add_argument('--gpus', type=int, default=0, help='cards with mdev types, which each later poll reads')
    args = parser.parse_args()
    with Scratch() as scratch:
        libvirtd = Libvirtd(big_host(args.devices, args.gpus), scratch).start()
        define_domains(libvirtd, args.domains)
        rows = measure(libvirtd.uri)
        libvirtd.stop()
        quick = compare_linux(scratch)
    first, again = float(rows['first'][0]), float(rows['median'][0])
    print('%s devices, %s domains' % tuple(rows['first'][3:5]))
    print('first poll   %8.1f ms, %5s calls of libvirt, %5s for a single thing'
          % (first, *rows['first'][1:3]))
    print('later polls  %8.1f ms, %5s calls of libvirt, %5s for a single thing (median of %s)'
          % (again, *rows['next'][1:3], rows['median'][2]))
    print('look at guests %6.1f ms, %5s calls of libvirt, %5s for a single thing'
          % (float(rows['guests'][0]), *rows['guests'][1:3]))
    # A GPU costs two calls: it is found by its name, and read.
    return 0 if quick and (args.gpus or again * 10 <= first) and int(rows['next'][2]) <= REFRESHED + 2 * args.gpus else 1


if __name__ == '__main__':
    sys.exit(main())
