# SPDX-License-Identifier: LGPL-2.1-or-later
"""The server of VgpuSim (vgpu_sim.py): a file system of FUSE with the files of the cards.

    python3 -m tests.env.vgpu_fuse ORDER      (in mount and network namespaces of its own; serves until it is killed)

    bus/pci/devices/ADDRESS            links, as in sysfs
    bus/pci/drivers/nvidia/ADDRESS     links
    devices/pciDDDD:BB/ADDRESS/...     the files of a function
    dev/vfio/GROUP                     an open file of it is an open vGPU

The kernel caches the existence of names. The server invalidates names that vanish. All files are read and written without a cache. When
functions or the driver change, it sends the events of udev.
"""

import asyncio
import contextlib
import dataclasses
import errno
import fnmatch
import itertools
import json
import os
import socket
import stat
import sys
import time
from pathlib import Path

import pyfuse3
import pyfuse3_asyncio

from tests.env import fakesys, udev
from tests.env.hosts import Pci
from tests.env.nsinit import MS_BIND, MS_REC, make_target, mount
from tests.env.vgpu_cards import Card, CardError

_HEADING = 'ID    : vGPU Name'
_FOREVER = 3600  # seconds that the kernel keeps a name
_FIRST_GROUP = 40


class Missing(OSError):
    def __init__(self):
        super().__init__(errno.ENOENT, 'no such file')


# A node is a list of names (a folder), bytes (the target of a link), or a File.
@dataclasses.dataclass
class File:
    """read: returns the text or bytes. write: takes the written text; None for a read-only file. opened: called with +1 and -1."""

    read: object
    write: object = None
    opened: object = None


def _number(text):
    """Parses a number as the kernel does. Raises CardError."""
    try:
        number = int(text.strip(), 10)
    except ValueError:
        raise CardError(errno.EINVAL, 'no number') from None
    if not 0 <= number < 1 << 32:
        raise CardError(errno.EINVAL, 'out of range')
    return number


class Tree:
    """The files of the cards. find() returns the node of a path. changed() must be called when names appear or vanish."""

    def __init__(self, cards, on_change):
        self.cards = cards
        self._on_change, self._nodes, self._groups = on_change, {}, {}
        for card in cards:
            for index in range(card.kind.functions):
                self._groups[card.function_address(index)] = _FIRST_GROUP + len(self._groups)

    def changed(self):
        self._nodes.clear()
        self._on_change()

    def find(self, path):
        """Returns the node of a path below the root. Raises Missing."""
        if path not in self._nodes:
            self._nodes[path] = self._find(path)
        return self._nodes[path]

    def functions(self):
        """Returns {address: (card, its Function, or None for the card)} of what is present."""
        found = {}
        for card in self.cards:
            found[card.address] = (card, None)
            found.update((one.address, (card, one)) for one in card.functions)
        return found

    def _find(self, path):
        parts = path.split('/') if path else []
        present = self.functions()
        if parts[:3] == ['bus', 'pci', 'devices'] and len(parts) == 4:
            return self._link(present, parts[3], '../../../devices')
        if parts[:4] == ['bus', 'pci', 'drivers', 'nvidia'] and len(parts) == 5:
            return self._link(present, parts[4], '../../../../devices')
        if parts[:1] == ['devices'] and len(parts) >= 3:
            if parts[2] not in present or parts[1] != 'pci' + parts[2][:7]:
                raise Missing
            return self._function(*present[parts[2]], parts[3:])
        if parts[:2] == ['dev', 'vfio'] and len(parts) == 3:
            return self._vfio(present, parts[2])
        folders = {'': ['bus', 'devices', 'dev'], 'bus': ['pci'], 'bus/pci': ['devices', 'drivers'],
                   'bus/pci/devices': list(present), 'bus/pci/drivers': ['nvidia'], 'bus/pci/drivers/nvidia': list(present),
                   'devices': self.buses(), 'dev': ['vfio'],
                   'dev/vfio': [str(self._groups[name]) for name in present if name in self._groups]}
        folders.update(('devices/' + bus, [name for name in present if 'pci' + name[:7] == bus]) for bus in self.buses())
        if path not in folders:
            raise Missing
        return folders[path]

    def buses(self):
        """Returns the names of all folders below devices that can have functions. They do not change."""
        return sorted({'pci' + address[:7] for address in [*self._groups, *(card.address for card in self.cards)]})

    @staticmethod
    def _link(present, address, devices):
        if address not in present:
            raise Missing
        return ('%s/pci%s/%s' % (devices, address[:7], address)).encode()

    @staticmethod
    def _beside(address):
        """Returns the target of a link from the folder of one function to that of another one."""
        return ('../../pci%s/%s' % (address[:7], address)).encode()

    def _vfio(self, present, name):
        for address, group in self._groups.items():
            if str(group) == name and address in present:
                function = present[address][1]

                def opened(step):
                    function.opened += step
                return File(lambda: '', opened=opened)
        raise Missing

    def _function(self, card, function, parts):
        names = self._card_names(card) if function is None else self._function_names(card, function)
        names.update(self._common_names(card))
        address = function.address if function else card.address
        names['uevent'] = lambda: File(lambda: self._uevent(card, address))
        if not parts:
            return list(names)
        if parts[0] not in names:
            raise Missing
        node = names[parts[0]]()
        if len(parts) == 1:
            return list(node) if isinstance(node, dict) else node
        if len(parts) > 2 or not isinstance(node, dict) or parts[1] not in node:
            raise Missing
        return node[parts[1]]

    # Each of these returns {name: a function that makes the node}. A folder is a dict of nodes.

    def _function_names(self, card, function):
        def nvidia():
            return {'creatable_vgpu_types': File(lambda: self._creatable(card, function.address)),
                    'current_vgpu_type': File(lambda: str(card.function(function.address).type),
                                              lambda text: card.set_type(function.address, _number(text)))}
        names = {'physfn': lambda: self._beside(card.address),
                 'iommu_group': lambda: b'../../../kernel/iommu_groups/%d' % self._groups[function.address],
                 'driver_override': lambda: File(lambda: function.driver_override or '(null)',
                                                 lambda text: setattr(function, 'driver_override', text.strip()))}
        return {**names, 'nvidia': nvidia} if card.loaded else names

    def _card_names(self, card):
        names = {'sriov_totalvfs': lambda: File(lambda: str(card.kind.functions)),
                 'sriov_numvfs': lambda: File(lambda: str(len(card.functions)), lambda text: self._set_functions(card, text)),
                 'vpd': lambda: File(lambda: fakesys.vital_product_data(card.serial or card.address))}
        for index, one in enumerate(card.functions):
            names['virtfn%d' % index] = lambda one=one: self._beside(one.address)
        return names

    def _common_names(self, card):
        def text(value):
            return lambda: File(lambda: value)
        names = {'vendor': text('0x10de'), 'device': text('0x%04x' % card.kind.device), 'subsystem_vendor': text('0x10de'),
                 'subsystem_device': text('0x0000'), 'class': text('0x030200'), 'numa_node': text(str(card.numa_node)),
                 'subsystem': lambda: b'../../../bus/pci'}
        return {**names, 'driver': lambda: b'../../../bus/pci/drivers/nvidia'} if card.loaded else names

    @staticmethod
    def _uevent(card, address):
        device = Pci(address, card.numa_node, 0x10de, card.kind.device, 0x030200, 'nvidia' if card.loaded else '')
        return '\n'.join('%s=%s' % pair for pair in fakesys.uevent(device).items())

    @staticmethod
    def _creatable(card, address):
        return '\n'.join([_HEADING, *('%-5d : %s' % (one.number, one.name) for one in card.creatable(address))])

    def _set_functions(self, card, text):
        card.set_functions(_number(text))
        self.changed()


class Faults:
    """Delays and errors that a test injects. A rule is {"path": pattern, "op": "open", "read" or "write", "errno": name or None,
    "delay": seconds, "count": number of times, or None}."""

    def __init__(self):
        self.rules, self.waiting = [], 0

    async def apply(self, op, path):
        for rule in list(self.rules):
            if rule['op'] != op or not fnmatch.fnmatch(path, rule['path']):
                continue
            if rule.get('count') is not None:
                rule['count'] -= 1
                if rule['count'] <= 0:
                    self.rules.remove(rule)
            if rule.get('delay'):
                self.waiting += 1
                await asyncio.sleep(rule['delay'])
                self.waiting -= 1
            if rule.get('errno'):
                raise CardError(getattr(errno, rule['errno']), 'injected')


class Handle:
    """An open file. data: its text since the last read at the beginning."""

    def __init__(self, path, node):
        self.path, self.node, self.data = path, node, None


@contextlib.contextmanager
def _errors(missing=errno.ENOENT):
    """Turns the errors of the cards into answers to the kernel. missing: the error for a file that does not exist."""
    try:
        yield
    except OSError as caught:
        raise pyfuse3.FUSEError(missing if caught.errno == errno.ENOENT else caught.errno) from None


class Operations(pyfuse3.Operations):
    """The operations of the file system. Its inodes are numbers of paths and are never forgotten."""

    def __init__(self, tree, faults):
        super().__init__()
        self.tree, self.faults = tree, faults
        self.paths, self.inodes, self.handles = {pyfuse3.ROOT_INODE: ''}, {'': pyfuse3.ROOT_INODE}, {}
        self.numbers = itertools.count(1)

    def attributes(self, path):
        node, entry = self.tree.find(path), pyfuse3.EntryAttributes()
        if path not in self.inodes:
            self.inodes[path] = len(self.inodes) + 1
            self.paths[self.inodes[path]] = path
        entry.st_ino = self.inodes[path]
        if isinstance(node, list):
            entry.st_mode = stat.S_IFDIR | 0o755
        elif isinstance(node, bytes):
            entry.st_mode, entry.st_size = stat.S_IFLNK | 0o777, len(node)
        else:
            entry.st_mode = stat.S_IFREG | (0o644 if node.write else 0o600 if node.opened else 0o444)
            entry.st_size = 4096
        entry.st_nlink = 1
        entry.entry_timeout = entry.attr_timeout = _FOREVER
        return entry

    def child(self, inode, name):
        """Returns the path of a name in a folder."""
        return self.paths[inode] + '/' + name if self.paths[inode] else name

    async def getattr(self, inode, ctx=None):
        with _errors():
            return self.attributes(self.paths[inode])

    async def setattr(self, inode, attr, fields, fh, ctx):
        return await self.getattr(inode)  # a shell truncates before it writes

    async def lookup(self, parent_inode, name, ctx=None):
        with _errors():
            return self.attributes(self.child(parent_inode, os.fsdecode(name)))

    async def readlink(self, inode, ctx):
        with _errors():
            return self.tree.find(self.paths[inode])

    async def open(self, inode, flags, ctx):
        path = self.paths[inode]
        with _errors():
            await self.faults.apply('open', path)
            node = self.tree.find(path)
        if node.opened:
            node.opened(1)
        fh = next(self.numbers)
        self.handles[fh] = Handle(path, node)
        return pyfuse3.FileInfo(fh=fh, direct_io=True)

    async def read(self, fh, off, size):
        handle = self.handles[fh]
        if off == 0 or handle.data is None:
            with _errors(errno.ENODEV):
                await self.faults.apply('read', handle.path)
                text = self.tree.find(handle.path).read()
            handle.data = text if isinstance(text, bytes) else (text + '\n').encode()
        return handle.data[off:off + size]

    async def write(self, fh, off, buf):
        handle = self.handles[fh]
        with _errors(errno.ENODEV):
            await self.faults.apply('write', handle.path)
            node = self.tree.find(handle.path)
            if not node.write:
                raise CardError(errno.EACCES, 'read-only')
            node.write(buf.decode(errors='replace'))
        return len(buf)

    async def release(self, fh):
        handle = self.handles.pop(fh)
        if handle.node.opened:
            handle.node.opened(-1)

    async def opendir(self, inode, ctx):
        return inode

    async def readdir(self, fh, start_id, token):
        with _errors():
            names = self.tree.find(self.paths[fh])
        for place, name in enumerate(names[start_id:], start_id + 1):
            with contextlib.suppress(Missing):
                if not pyfuse3.readdir_reply(token, os.fsencode(name), self.attributes(self.child(fh, name)), place):
                    return


class Server:
    """Answers the control socket. A request is a JSON object in a line: {"do": name, ...}. The reply is {"value": ...} or {"errno":
    number}."""

    def __init__(self, cards):
        self.cards = {card.address: card for card in cards}
        self.tree, self.faults = Tree(cards, self.on_change), Faults()
        self.operations = Operations(self.tree, self.faults)
        self.present = self.bound()
        self.events = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, udev.NETLINK_KOBJECT_UEVENT)

    def bound(self):
        """Returns {address: whether the driver is bound} of all functions."""
        return {address: card.loaded for address, (card, _function) in self.tree.functions().items()}

    def on_change(self):
        self.invalidate()
        before, self.present = self.present, self.bound()
        for address in {**before, **self.present}:
            old, new = before.get(address), self.present.get(address)
            if old != new:
                self.announce('remove' if new is None else 'add' if old is None else 'bind' if new else 'unbind', address)

    def announce(self, action, address):
        """Sends the event of udev to the programs in the network namespace."""
        with contextlib.suppress(ConnectionRefusedError):  # no program listens
            self.events.sendto(udev.message({
                'ACTION': action, 'SUBSYSTEM': 'pci', 'DEVPATH': '/devices/pci%s/%s' % (address[:7], address), 'PCI_SLOT_NAME': address,
                'SEQNUM': time.monotonic_ns()}), (0, udev.GROUP_UDEV))

    def invalidate(self):
        """Lets the kernel forget names that do not exist any more. A thread of pyfuse3 does it later. Until then only stat() shows
        them."""
        inodes = self.operations.inodes
        for path in list(inodes):
            folder, _slash, name = path.rpartition('/')
            if folder in inodes:
                try:
                    self.tree.find(path)
                except Missing:
                    pyfuse3.invalidate_entry_async(inodes[folder], os.fsencode(name), ignore_enoent=True)

    async def serve(self, reader, writer):
        while line := await reader.readline():
            order = json.loads(line)
            try:
                reply = {'value': getattr(self, 'do_' + order.pop('do'))(**order)}
            except CardError as caught:
                reply = {'errno': caught.errno}
            writer.write(json.dumps(reply).encode() + b'\n')
            await writer.drain()
        writer.close()

    def do_state(self):
        return [card.as_dict() for card in self.cards.values()]

    def do_mode(self, card, mode):
        self.cards[card].set_mode(mode)

    def do_instances(self, card, profiles):
        self.cards[card].set_instances(profiles)

    def do_unload(self, card):
        self.cards[card].unload()
        self.tree.changed()

    def do_load(self, card):
        self.cards[card].load()
        self.tree.changed()

    def do_inject(self, rule):
        self.faults.rules.append(rule)

    def do_waiting(self):
        return self.faults.waiting

    def do_heal(self):
        self.faults.rules.clear()


def _bind(tree, mountpoint, sysfs):
    """Binds the served folders over those of sysfs, and sysfs over /sys. The file system must be served already."""
    for name in ['bus/pci', *('devices/' + bus for bus in tree.buses())]:
        target = Path(sysfs) / name
        target.mkdir(parents=True, exist_ok=True)
        mount('%s/%s' % (mountpoint, name), str(target), None, MS_BIND)
    mount(str(sysfs), '/sys', None, MS_BIND | MS_REC)
    if not os.path.exists('/dev/vfio'):
        make_target('/dev/vfio', str(Path(sysfs).parent / 'spare'))
    mount('%s/dev/vfio' % mountpoint, '/dev/vfio', None, MS_BIND)


async def _serve(server, order):
    fuse = asyncio.create_task(pyfuse3.main())
    await asyncio.to_thread(_bind, server.tree, order['mountpoint'], order['sysfs'])
    control = await asyncio.start_unix_server(server.serve, order['control'] + '.new')
    os.rename(order['control'] + '.new', order['control'])
    async with control:
        await fuse


def main():
    order = json.loads(sys.argv[1])
    pyfuse3_asyncio.enable()
    server = Server([Card(**card) for card in order['cards']])
    pyfuse3.init(server.operations, order['mountpoint'], {*pyfuse3.default_options, 'allow_other', 'fsname=vgpu-sim'})
    asyncio.run(_serve(server, order))


if __name__ == '__main__':
    main()
