# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes and reads D-Bus messages as bytes on a socket, including messages that a library would refuse to send."""

import os
import socket
import struct

CALL, RETURN, ERROR, SIGNAL = 1, 2, 3, 4
_SIZES = {'y': 1, 'b': 4, 'n': 2, 'q': 2, 'i': 4, 'u': 4, 'x': 8, 't': 8, 'd': 8, 'h': 4, 's': 4, 'o': 4, 'g': 1,
          'a': 4, '(': 8, '{': 8, 'v': 1}
_FORMATS = {'y': '<B', 'b': '<I', 'n': '<h', 'q': '<H', 'i': '<i', 'u': '<I', 'x': '<q', 't': '<Q', 'd': '<d',
            'h': '<I'}
_FIELDS = {1: 'o', 2: 's', 3: 's', 4: 's', 5: 'u', 6: 's', 7: 's', 8: 'g'}


def split(signature):
    """Returns the complete types of a signature."""
    types, begin = [], 0
    while begin < len(signature):
        end = _end(signature, begin)
        types.append(signature[begin:end])
        begin = end
    return types


def _end(signature, at):
    # Returns the end of the complete type that begins at the index at.
    if signature[at] == 'a':
        return _end(signature, at + 1)
    if signature[at] not in '({':
        return at + 1
    at += 1
    while signature[at] not in ')}':
        at = _end(signature, at)
    return at + 1


def _pad(out, size):
    out.extend(b'\0' * (-len(out) % size))


def _put_array(out, kind, value):
    # The length counts the bytes of the elements, without the padding before the first one. It is written last.
    _pad(out, 4)
    place = len(out)
    out.extend(b'\0' * 4)
    _pad(out, _SIZES[kind[1]])
    begin = len(out)
    for item in value.items() if isinstance(value, dict) else value:
        put(out, kind[1:], item)
    struct.pack_into('<I', out, place, len(out) - begin)


def put(out, kind, value):
    """Appends a value of one complete type. A text can be bytes, and a variant is (type, value)."""
    _pad(out, _SIZES[kind[0]])
    if kind in _FORMATS:
        out.extend(struct.pack(_FORMATS[kind], value))
    elif kind[0] in 'sog':
        data = value if isinstance(value, bytes) else value.encode()
        out.extend(struct.pack('<B' if kind == 'g' else '<I', len(data)) + data + b'\0')
    elif kind[0] == 'a':
        _put_array(out, kind, value)
    elif kind == 'v':
        put(out, 'g', value[0])
        put(out, value[0], value[1])
    else:
        for one, item in zip(split(kind[1:-1]), value):
            put(out, one, item)


class _Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def basic(self, kind):
        size = _SIZES[kind]
        self.at += -self.at % size
        if kind in _FORMATS:
            value = struct.unpack_from(_FORMATS[kind], self.data, self.at)[0]
            self.at += size
            return value
        length = int.from_bytes(self.data[self.at:self.at + size], 'little')
        self.at += size + length + 1
        return self.data[self.at - length - 1:self.at - 1].decode()

    def value(self, kind):
        if kind[0] == 'a':
            return self.array(kind[1:])
        if kind == 'v':
            return self.value(self.basic('g'))
        if kind[0] in '({':
            self.at += -self.at % 8
            return tuple(self.value(one) for one in split(kind[1:-1]))
        return self.basic(kind)

    def array(self, kind):
        length = self.basic('u')
        self.at += -self.at % _SIZES[kind[0]]
        end, items = self.at + length, []
        while self.at < end:
            items.append(self.value(kind))
        return items


def message(kind, serial, fields, signature='', values=(), flags=0):
    """Returns the bytes of a message. fields: {number: value}."""
    body, out = bytearray(), bytearray()
    for one, value in zip(split(signature), values):
        put(body, one, value)
    if signature:
        fields = {**fields, 8: signature}
    out += struct.pack('<4BII', ord('l'), kind, flags, 1, len(body), serial)
    put(out, 'a(yv)', [(number, (_FIELDS[number], value)) for number, value in fields.items()])
    _pad(out, 8)
    return out + body


class Answer:
    """A received message: its kind, its fields by number, and its values."""

    def __init__(self, head, data):
        self.kind, self.serial = head[1], struct.unpack_from('<I', head, 8)[0]
        reader = _Reader(head + data)
        reader.at = 12
        self.fields = dict(reader.value('a(yv)'))
        reader.at += -reader.at % 8
        self.body = (head + data)[reader.at:]

    @property
    def values(self):
        reader = _Reader(self.body)
        return [reader.value(kind) for kind in split(self.fields.get(8, ''))]

    @property
    def error(self):
        return self.fields.get(4) if self.kind == ERROR else None


class Wire:
    """A connection to the bus at a path. user: the uid of the connection, which needs root."""

    def __init__(self, path, user=None, seconds=30):
        self.serial = 0
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(seconds)
        own = os.geteuid()
        try:
            # The bus asks the kernel for the effective user of the process that connects.
            if user is not None:
                os.seteuid(user)
            self.socket.connect(path)
        finally:
            os.seteuid(own)
        uid = str(own if user is None else user).encode().hex()
        self.socket.sendall(b'\0AUTH EXTERNAL %s\r\n' % uid.encode())
        if not self.socket.recv(200).startswith(b'OK'):
            raise ConnectionError('the bus refuses')
        self.socket.sendall(b'BEGIN\r\n')
        self.name = self.call('org.freedesktop.DBus', '/org/freedesktop/DBus', 'org.freedesktop.DBus',
                              'Hello').values[0]

    def close(self):
        self.socket.close()

    def send(self, kind, fields, signature='', values=(), flags=0):
        """Sends a message. Returns its serial number."""
        self.serial += 1
        self.socket.sendall(message(kind, self.serial, fields, signature, values, flags))
        return self.serial

    def send_call(self, to, path, interface, member, signature='', values=(), flags=0):
        fields = {1: path, 2: interface, 3: member, 6: to}
        return self.send(CALL, {number: text for number, text in fields.items() if text}, signature, values, flags)

    def receive(self):
        # The fixed part of a header has 16 bytes. It ends with the length of the array of fields.
        head = self._read(16)
        body, fields = struct.unpack_from('<I', head, 4)[0], struct.unpack_from('<I', head, 12)[0]
        return Answer(head, self._read(fields + -fields % 8 + body))

    def call(self, *args):
        """Sends a call. Returns its answer, which can be an error."""
        serial = self.send_call(*args)
        while True:
            answer = self.receive()
            if answer.fields.get(5) == serial and answer.kind in (RETURN, ERROR):
                return answer

    def _read(self, size):
        data = b''
        while len(data) < size:
            part = self.socket.recv(min(size - len(data), 1 << 20))
            if not part:
                raise ConnectionError('the bus closed the connection')
            data += part
        return data
