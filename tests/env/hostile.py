# SPDX-License-Identifier: LGPL-2.1-or-later
"""Users who send the agent random D-Bus messages of all types, and a polkit with random answers.

It needs root, because the callers are other users than the agent.
"""

import collections
import random
import threading
from xml.etree import ElementTree

from tests.env import wire

NAME, PATH = 'org.computeagent.Agent1', '/org/computeagent/Agent1'
_USERS = (65534, 1, 2)
# Seconds to wait for answers. Some calls never get an answer, and a refusal comes after half a second.
_PATIENCE = 0.7
# Limit of large texts, in bytes. libsystemd reallocates its buffer for each read of a message, and a sanitizer copies the buffer each
# time: 32 MB take 20 s.
_LARGE = 4 << 20
_NUMBERS = (0, 1, 2, 3, 7, 16, 64, 100, 255, 256, 4096, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1)
_SCALARS = 'ybnqiuxtdsog'
_WORDS = ('', '_1', '_GPU', 'VCPU', 'MEMORY_MB', 'PCPU', 'VGPU', 'DISK_GB', 'CUSTOM_NIC', 'CUSTOM_HUGEPAGES_2M', 'COMPUTE_NODE',
          'CUSTOM_A', 'HW_CPU_X86_AVX', 'INSTANCE', 'project', 'cell:0', 'cell:1', 'cpu:3', 'cpu:999999999999', '0-7,^3',
          'pci_0000_41_00_0', '0000:41:00.0', '0000:05:00.0', 'gone', '%s%n', '../../etc', 'a\nb\x1b[31m', '\U0001f525' * 9)
_OPTIONS = {'project': 's', 'user': 's', 'consumer-type': 's', 'resize-target': 'b', 'isolate': 'b', 'same-subtree': 'aas',
            'in-tree': 'a{ss}', 'mappings': 'a{sas}', 'numa-nodes': 't', 'numa-cpus': 'as', 'numa-mem': 'at',
            'cpu-policy': 's', 'cpu-dedicated-mask': 's', 'cpu-thread-policy': 's', 'mem-page-size': 's',
            'pci-numa-affinity-policy': 's', 'numa-strategy': 's'}
_OPTION_WORDS = ('dedicated', 'shared', 'mixed', 'isolate', 'prefer', 'require', 'large', '2048', 'any', 'required',
                 'preferred', 'socket', 'pack', 'spread', 'claims', 'tree', 'Sync')
_XML = ("<domain type='kvm'><name>g</name><uuid>%s</uuid><memory>65536</memory><vcpu>1</vcpu><devices>"
        "<hostdev mode='subsystem' type='pci'><source><address domain='0' bus='5' slot='0' function='0'/></source></hostdev>"
        '</devices></domain>')


class Values:
    """Random values of D-Bus types. Some of them are meaningful to the agent."""

    def __init__(self, chance, consumers):
        self.chance, self.consumers = chance, consumers
        self.room = 0  # bytes of large texts that the current value can still use

    def text(self):
        chance, kind = self.chance, self.chance.random()
        if kind < 0.35:
            return chance.choice(self.consumers)
        if kind < 0.85:
            return chance.choice(_WORDS + _OPTION_WORDS)
        if kind < 0.9:
            return self.cut(_XML % chance.choice(self.consumers))
        if kind < 0.91:
            return '<a>' * chance.choice((10, 1000, 20000))
        if kind < 0.99:
            return ''.join(chr(chance.randrange(1, 0xd7ff)) for _ in range(chance.randrange(40)))
        size = min(self.room, chance.choice((1000, 65536, 262144, 1 << 20)))
        self.room -= size
        return 'x' * size

    def cut(self, text):
        if self.chance.random() < 0.5:
            return text
        place = self.chance.randrange(len(text))
        return text[:place] + text[place + self.chance.randrange(20):]

    def number(self, low, high):
        value = self.chance.choice(_NUMBERS) if self.chance.random() < 0.5 else self.chance.randrange(150)
        return max(low, min(high, -value if self.chance.random() < 0.1 else value))

    def basic(self, kind):
        if kind == 's':
            return self.text()
        if kind == 'o':
            return self.chance.choice(('/', PATH, PATH + '/claim/1'))
        if kind == 'g':
            return self.chance.choice(('', 's', 'a{sv}', '(ss)'))
        if kind == 'd':
            return self.chance.choice((0.0, -1.5, 1e308, float('inf'), float('nan')))
        if kind == 'b':
            return self.chance.randrange(2)
        size = {'y': 8, 'n': 16, 'q': 16, 'i': 32, 'u': 32, 'x': 64, 't': 64}[kind]
        return self.number(-2**(size - 1), 2**(size - 1) - 1) if kind in 'nix' else self.number(0, 2**size - 1)

    def length(self):
        kind = self.chance.random()
        return self.chance.randrange(5) if kind < 0.97 else self.chance.choice((64, 65, 256, 257, 3000))

    def options(self):
        names = self.chance.sample(sorted(_OPTIONS), self.chance.randrange(5))
        return [(name, self.variant(_OPTIONS[name]) if self.chance.random() < 0.9 else self.value('v')) for name in names]

    def variant(self, kind):
        return (kind, self.value(kind))

    def deep(self):
        """Returns variants in variants, up to the depth that dbus-daemon allows, or deeper."""
        value = ('s', 'deep')
        for _ in range(self.chance.choice((3, 20, 50, 62, 70))):
            value = ('v', value)
        return value

    def groups(self):
        """Returns the groups of a claim request, with resource classes that the host can have."""
        chosen = self.chance.sample(('VCPU', 'MEMORY_MB', 'PCPU', 'VGPU', 'CUSTOM_NIC'), self.chance.randrange(1, 4))
        return [('' if self.chance.random() < 0.7 else '_%d' % i, [(name, self.chance.randrange(1, 4)) for name in chosen],
                 [], []) for i in range(self.chance.randrange(1, 3))]

    def value(self, kind, depth=0):
        # The size of arrays below the outermost level is limited, so that the number of values does not grow exponentially.
        if kind == 'a(sa{st}asas)' and self.chance.random() < 0.7:
            return self.groups()
        if kind == 'a{sv}' and self.chance.random() < 0.9:
            return self.options()
        if kind[0] == 'a':
            length = self.length() if depth == 0 else self.chance.randrange(4)
            return [self.value(kind[1:], depth + 1) for _ in range(length)]
        if kind == 'v':
            return self.deep() if self.chance.random() < 0.1 else self.variant(self.chance.choice(_SCALARS))
        if kind[0] in '({':
            return [self.value(one, depth + 1) for one in wire.split(kind[1:-1])]
        return self.basic(kind)


class Polkit(threading.Thread):
    """Answers at random, and "yes" only while allows is true."""

    def __init__(self, path, seed):
        super().__init__(daemon=True)
        self.chance, self.allows, self.late = random.Random(seed), False, []
        self.counts = collections.Counter()
        self.wire = wire.Wire(path, seconds=None)
        self.wire.call('org.freedesktop.DBus', '/org/freedesktop/DBus', 'org.freedesktop.DBus', 'RequestName', 'su',
                       ('org.freedesktop.PolicyKit1', 0))
        self.ended = False
        self.start()

    def run(self):
        try:
            while not self.ended:
                question = self.wire.receive()
                if question.fields.get(3) == 'CheckAuthorization':
                    self._answer(question)
        except OSError:
            pass

    def stop(self):
        self.ended = True
        self.wire.socket.shutdown(2)
        self.join()
        self.wire.close()

    def _answer(self, question):
        # A late answer is sent after two more late ones. "other" has a wrong type, "empty" has no value, and "twice" is two answers to
        # one call.
        to = {6: question.fields[7], 5: question.serial}
        kind = 'late' if self.chance.random() < 0.02 else self.chance.choice(
            ('yes', 'no', 'no', 'ask', 'error', 'other', 'empty', 'twice'))
        if kind == 'yes' and not self.allows:
            kind = 'no'
        self.counts[kind] += 1
        if kind == 'late':
            self.late.append(to)
        elif kind == 'error':
            self.wire.send(wire.ERROR, {**to, 4: 'org.freedesktop.PolicyKit1.Error.Failed'}, 's', ('it failed',))
        elif kind == 'other':
            self.wire.send(wire.RETURN, to, *self.chance.choice((('s', ('yes',)), ('(bb)', ((1, 0),)), ('(sba{ss})', (('1', 1, []),)))))
        elif kind == 'empty':
            self.wire.send(wire.RETURN, to)
        else:
            for _ in range(2 if kind == 'twice' else 1):
                self._decide(to, kind)
        if len(self.late) > 2:
            self._decide(self.late.pop(0), 'no')

    def _decide(self, to, kind):
        self.wire.send(wire.RETURN, to, '(bba{ss})', ((int(kind == 'yes'), int(kind == 'ask'), [('polkit.x', 'y')]),))


class Hostile:
    """Sends random calls. counts has the number of results by the name of the error."""

    def __init__(self, path, seed, consumers):
        self.path, self.chance = path, random.Random(seed)
        self.values = Values(self.chance, consumers)
        self.counts = collections.Counter()
        self.wires = []
        self.methods = self._learn()
        self.paths = [PATH] + [PATH + below for below in (
            '/claim/1', '/x')]

    def _learn(self):
        """Returns each method that introspection shows, as (interface, member, signature)."""
        one = self._open(_USERS[0])
        text = one.call(NAME, PATH, 'org.freedesktop.DBus.Introspectable', 'Introspect').values[0]
        found = []
        for interface in ElementTree.fromstring(text).iter('interface'):
            for method in interface.iter('method'):
                signature = ''.join(arg.get('type') for arg in method.iter('arg') if arg.get('direction', 'in') == 'in')
                found.append((interface.get('name'), method.get('name'), signature))
        return found

    def _open(self, user):
        one = wire.Wire(self.path, user, seconds=_PATIENCE)
        self.wires.append(one)
        return one

    def _drop(self, one):
        self.wires.remove(one)
        one.close()

    def close(self):
        while self.wires:
            self._drop(self.wires[0])

    def _arguments(self, signature):
        """Returns a signature and values of it. The signature is usually the given one."""
        kind = self.chance.random()
        self.values.room = _LARGE
        if kind < 0.08:
            signature = ''.join(self.chance.choice(('s', 'v', 'a{sv}', 'as', 'x', '(su)', 'a(sa{st}asas)', 'aaaas'))
                                for _ in range(self.chance.randrange(5)))
        return signature, [self.values.value(one) for one in wire.split(signature)]

    def _send_call(self, one):
        """Sends a random call. Returns whether an answer must come."""
        interface, member, signature = self.chance.choice(self.methods)
        flags = self.chance.choice((0, 0, 0, 4, 1))
        path = self.chance.choice(self.paths) if self.chance.random() < 0.2 else PATH
        if self.chance.random() < 0.03:
            interface = self.chance.choice((None, NAME, 'x.y'))
        signature, values = self._arguments(signature)
        if self.chance.random() < 0.005:
            signature, values = 's', [b'\xff\xfe\xc0\x80']
        one.send_call(NAME, path, interface, member, signature, values, flags)
        self.counts['calls'] += 1
        return not flags & 1

    def _send_other(self, one):
        """Sends a signal, or an answer without a call."""
        fields = {1: PATH, 2: self.chance.choice(('org.freedesktop.DBus', 'org.freedesktop.PolicyKit1.Authority', NAME)),
                  3: self.chance.choice(('NameOwnerChanged', 'Changed', 'DocumentChanged'))}
        signature, values = self._arguments('sss')
        if self.chance.random() < 0.5:
            one.send(wire.SIGNAL, {**fields, 6: NAME}, signature, values)
        else:
            one.send(wire.RETURN, {5: self.chance.randrange(1, 1000), 6: NAME}, signature, values)
        self.counts['others'] += 1

    def _collect(self, one, due):
        while due > 0:
            answer = one.receive()
            if answer.kind in (wire.RETURN, wire.ERROR):
                due -= 1
                self.counts[(answer.error or 'answered').rpartition('.')[2]] += 1

    def go(self):
        """Sends some calls over one connection, and can close it before the answers come."""
        if len(self.wires) < 6:
            self._open(self.chance.choice(_USERS))
        one = self.chance.choice(self.wires)
        try:
            due = 0
            for _ in range(40 if self.chance.random() < 0.02 else self.chance.randrange(1, 6)):
                if self.chance.random() < 0.05:
                    self._send_other(one)
                else:
                    due += self._send_call(one)
            if self.chance.random() < 0.1:
                self._drop(one)
            else:
                self._collect(one, due)
        except OSError as error:
            self.counts[type(error).__name__] += 1
            self._drop(one)
