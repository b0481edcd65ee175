# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs GPUs with vGPUs (vgpu_cards.py) as files below /sys and /dev/vfio of a namespace.

    python3 -m tests.env.vgpu_sim CARD...    ("0000:c1:00.0", "0000:c1:00.0:A100"; prints the folder and serves until a signal)

A real process is the client. It reads and writes the files as on a host with NVIDIA's driver. vgpu_fuse.py is the server. It mounts the
files in its own namespaces, so that nothing is left if it is killed. A program runs there with enter(). For this process, sys is the
path of that /sys. The control socket changes states without a file: the mode, the driver, GPU instances, delays and errors.
"""

import argparse
import json
import os
import signal
import socket
from pathlib import Path

from tests.env import fakesys
from tests.env.hosts import simple_host
from tests.env.scratch import Scratch
from tests.env.service import Service
from tests.env.vgpu_cards import Card, CardError

_ROOT = Path(__file__).resolve().parents[2]


class VgpuSim(Service):
    """The cards as /sys of a mount namespace, beside the CPUs and memory of host. cards: a list of Card."""

    name = 'vgpu'

    def __init__(self, cards, scratch=None, host=None):
        super().__init__(scratch)
        self._initial, self._host = cards, host or simple_host()
        self._control = str(self.folder / 'control')
        self._socket = None

    def _spawn(self):
        for name in ('mount', 'sys'):
            (self.folder / name).mkdir(exist_ok=True)
        fakesys.write(self._host, self.folder / 'sys')
        order = {'cards': [card.as_dict() for card in self._initial], 'mountpoint': str(self.folder / 'mount'),
                 'sysfs': str(self.folder / 'sys'), 'control': self._control}
        return self.scratch.spawn(['unshare', '-m', '-n', '--propagation', 'private', '/usr/bin/python3', '-B', '-m', 'tests.env.vgpu_fuse',
                                   json.dumps(order)], 'vgpu-sim', self.folder, cwd=_ROOT)

    def answers(self):
        return os.path.exists(self._control) and self.state() is not None

    def enter(self):
        """Returns the argv prefix that runs a command with these cards in its /sys. Its network has only their events."""
        return ['nsenter', '-t', str(self.child.pid), '-m', '-n', '--']

    @property
    def sys(self):
        """Returns the path of the namespace's /sys for this process."""
        return Path('/proc/%d/root/sys' % self.child.pid)

    def device(self, address):
        """Returns the folder of a PCI function."""
        return self.sys / 'bus/pci/devices' / address

    def vfio(self, address):
        """Returns the file of the VFIO group of a virtual function. A process that opens it uses the vGPU."""
        group = os.path.basename(os.readlink(self.device(address) / 'iommu_group'))
        return Path('/proc/%d/root/dev/vfio' % self.child.pid) / group

    def write_type(self, address, number):
        """Writes current_vgpu_type. Raises OSError as write() does."""
        descriptor = os.open(self.device(address) / 'nvidia/current_vgpu_type', os.O_WRONLY)
        try:
            os.write(descriptor, b'%d\n' % number)
        finally:
            os.close(descriptor)

    def control(self, do, **arguments):
        """Sends an order to the server. Returns its value. Raises CardError if the driver refuses it."""
        if self._socket is None:
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.connect(self._control)
            self._reader = self._socket.makefile('rb')
            self.scratch.on_close(self._socket.close)
            self.scratch.on_close(self._reader.close)
        self._socket.sendall(json.dumps({'do': do, **arguments}).encode() + b'\n')
        reply = json.loads(self._reader.readline())
        if 'errno' in reply:
            raise CardError(reply['errno'], '%s: %s' % (do, os.strerror(reply['errno'])))
        return reply['value']

    def state(self):
        """Returns the cards as they are now, as copies: {address: Card}."""
        return {card['address']: Card(**card) for card in self.control('state')}


def main():
    parser = argparse.ArgumentParser(prog='python3 -m tests.env.vgpu_sim')
    parser.add_argument('--functions', type=int, default=8, help='virtual functions of each card')
    parser.add_argument('cards', nargs='*', metavar='ADDRESS[:MODEL]')
    args = parser.parse_args()
    cards = []
    for text in args.cards or ['0000:c1:00.0']:
        model = text[13:] or 'L40S'
        cards.append(Card(text[:12], model, n_functions=args.functions))
    with Scratch() as scratch, VgpuSim(cards, scratch) as sim:
        print('%s\n%s sh' % (sim.sys, ' '.join(sim.enter())), flush=True)
        signal.pause()


if __name__ == '__main__':
    main()
