# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sends messages of udev inside a network namespace. libvirtd accepts them and reads /sys again."""

import ctypes
import os
import socket
import struct
import threading

NETLINK_KOBJECT_UEVENT = 15
GROUP_UDEV = 2
CLONE_NEWNET = 0x40000000
_MAGIC = 0xfeedcafe
_HEADER = struct.Struct('=8sIIIIIIII')
_MASK = 0xffffffff
_libc = ctypes.CDLL(None, use_errno=True)


def murmur2(data, seed=0):
    """Returns the 32-bit MurmurHash2 of data. Listeners filter on this hash of the subsystem."""
    mul = 0x5bd1e995
    value = (seed ^ len(data)) & _MASK
    whole = len(data) // 4 * 4
    for (word,) in struct.iter_unpack('<I', data[:whole]):
        word = word * mul & _MASK
        word = (word ^ word >> 24) * mul & _MASK
        value = (value * mul & _MASK) ^ word
    if data[whole:]:
        value = (value ^ int.from_bytes(data[whole:], 'little')) * mul & _MASK
    value = (value ^ value >> 13) * mul & _MASK
    return value ^ value >> 15


def message(properties):
    """Returns the bytes of one udev message. properties must have SUBSYSTEM."""
    body = b''.join(b'%s=%s\0' % (key.encode(), str(value).encode())
                    for key, value in properties.items())
    header = _HEADER.pack(b'libudev\0', socket.htonl(_MAGIC), _HEADER.size, _HEADER.size,
                          len(body), socket.htonl(murmur2(properties['SUBSYSTEM'].encode())),
                          0, 0, 0)
    return header + body


def multicast(pid, properties):
    """Sends the message in the network namespace of process pid. Raises OSError if this fails."""
    failure = []

    def send():
        try:
            _enter(pid)
            with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_KOBJECT_UEVENT) as sock:
                sock.sendto(message(properties), (0, GROUP_UDEV))
        except OSError as error:
            failure.append(error)

    # setns() moves only the calling thread, so use a thread that ends after the message.
    thread = threading.Thread(target=send)
    thread.start()
    thread.join()
    if failure:
        raise failure[0]


def _enter(pid):
    namespace = os.open('/proc/%d/ns/net' % pid, os.O_RDONLY)
    try:
        if _libc.setns(namespace, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), 'setns failed')
    finally:
        os.close(namespace)
