#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks the order of the folders: their includes, the public headers of the libraries, the headers that computectl can reach, and the
users of foreign libraries.

ROOMS is the order of HACKING.md, "Map": a folder can include itself and the folders of its row. A folder without a row is an error.
"""

import re

from sources import main

# The files of drivers/ are in two rooms: the contract of all drivers, and the interface, which knows all drivers.
CONTRACT = 'the contract of drivers'

# The public headers of the three libraries: the interface of each, the types of its functions, and its pure functions that decide. The
# agent, the configuration and the documents can include only these.
PUBLIC = {
    'drivers': {'driver.h', 'driver-config.h', 'driver-reshape.h', 'driver-words.h', 'host/clean.h', 'host/hardware-digest.h', 'host/host-config.h',
                'host/pci-spec.h', 'host/snapshot.h', 'host/vgpu-sizes.h', 'registry.h', 'tree/cpu-plan.h', 'tree/huge-pages.h', 'tree/mdev-plan.h', 'tree/mdev-types.h',
                'tree/shape-providers.h', 'update.h', 'verify.h'},
    'claims': {'claim/claim.h', 'claim/event.h', 'claim/host-facts.h', 'claim/host-view.h', 'claim/unclean.h', 'claims.h', 'fit/attach.h',
               'fit/device-choice.h', 'fit/guest-share.h',
               'follow.h', 'guest-index.h', 'reconcile.h', 'reconcile-compare.h'},
    'report': {'consumers.h', 'gather.h', 'keystone/config.h', 'placement/answer.h', 'placement/outcome.h', 'placement/request.h',
               'publish/name-holder.h', 'publish/plan.h', 'publish/step.h', 'reporter.h', 'session/nova-mode.h',
               'session/session.h'},
}

# The rooms that computectl can include, directly or through other headers: its own files, the configuration, the documents, and the
# description of a host. It includes nothing of the daemon, and no library that only the daemon needs.
CLIENT = {'base', 'config', 'formats', CONTRACT, 'drivers/host', 'ctl', 'ctl/ask', 'ctl/print', 'ctl/verbs'}
ROOMS = {
    'base': set(),
    'drivers/host': set(),
    CONTRACT: {'drivers/host'},
    'drivers/tree': {CONTRACT, 'drivers/host'},
    'drivers/reshape': {'drivers/tree', CONTRACT, 'drivers/host'},
    'drivers/libvirt': {CONTRACT, 'drivers/host'},
    'drivers/linux': {CONTRACT, 'drivers/host'},
    'drivers': {'drivers/libvirt', 'drivers/linux', 'drivers/reshape', 'drivers/tree', CONTRACT, 'drivers/host'},
    'claims/claim': set(),
    'claims/fit': {'claims/claim'},
    'claims/store': {'claims/fit', 'claims/claim'},
    'claims': {'claims/store', 'claims/fit', 'claims/claim'},
    'report/http': set(),
    'report/placement': {'report/http'},
    'report/keystone': {'report/placement', 'report/http'},
    'report/session': {'report/keystone', 'report/placement', 'report/http'},
    'report/publish': {'report/session', 'report/keystone', 'report/placement', 'report/http'},
    'report': {'report/publish', 'report/session', 'report/keystone', 'report/placement', 'report/http'},
    'config': set(),
    'agent/state': {'config'},
    'formats': set(),
    'agent/guests': set(),
    'agent/tree': {'agent/state'},
    'agent/health': {'agent/tree', 'agent/guests', 'agent/state', 'config'},
    'agent/placing': {'agent/guests', 'config'},
    'agent/reshape': {'agent/guests', 'agent/tree', 'agent/state', 'formats'},
    'agent/audit': {'agent/placing', 'agent/reshape', 'agent/guests', 'formats'},
    'agent/cycle': {'agent/audit', 'agent/health', 'agent/reshape', 'agent/tree', 'agent/guests', 'agent/state', 'formats'},
    'agent/bus': {'agent/cycle', 'agent/audit', 'agent/placing', 'agent/reshape', 'agent/tree',
                              'agent/guests', 'formats'},
    'agent': {'agent/bus', 'agent/cycle', 'agent/health', 'agent/placing', 'agent/tree', 'config', 'agent/guests',
                          'agent/state'},
    'agent/helper': {'config', 'agent/state', 'formats'},
    'prepare': {'config', 'agent/state', 'formats'},
    'ctl/print': CLIENT - {'ctl', 'ctl/ask', 'ctl/verbs'},
    'ctl/ask': CLIENT - {'ctl', 'ctl/verbs'},
    'ctl/verbs': CLIENT - {'ctl'},
    'ctl': CLIENT,
}
CONTRACT_FILES = re.compile(r'drivers/(driver|driver-reshape|driver-words|disk-check|poll-thread)\.[ch]$')
TOPS = {room.split('/')[0] for room in ROOMS if room != CONTRACT}

# Headers of foreign libraries, and the files that can include them.
FENCES = [
    ('libvirt', re.compile(r'libvirt/'), re.compile(r'drivers/libvirt/')),
    ('libxml2', re.compile(r'(libxml2/)?libxml/'), re.compile(r'drivers/libvirt/')),
    ('libudev', re.compile(r'libudev\.h'), re.compile(r'drivers/linux/')),
    ('pcre2', re.compile(r'pcre2'), re.compile(r'(drivers/host/pci-spec|agent/health/rule)\.c$')),
    ('sqlite3', re.compile(r'sqlite3(ext)?\.h'), re.compile(r'claims/store/')),
    ('curl', re.compile(r'curl/'), re.compile(r'report/http/')),
    ('sd-bus', re.compile(r'systemd/sd-bus'), re.compile(r'(agent/bus|ctl/ask)/')),
]

INCLUDE = re.compile(r'\s*#\s*include\s*(["<])([^">]*)[">]')
COMPUTED = re.compile(r'\s*#\s*include\s*[^"<\s]')


def room_of(name):
    return CONTRACT if CONTRACT_FILES.match(name) else name.rpartition('/')[0]


def may_include(here, there, header):
    if there == here or there == 'base':
        return True
    top, _, name = header.partition('/')
    if here.split('/')[0] in ('agent', 'config', 'formats', 'prepare') and top in PUBLIC:
        return name in PUBLIC[top]
    return there in ROOMS[here]


def check_own(file, header):
    top, slash, _ = header.partition('/')
    if header == 'config.h':
        return None
    if not slash or top in ('..', '.'):
        return 'write "folder/%s": own headers are included from the root' % header
    if top not in TOPS and top not in ('bench', 'tests'):
        return '"%s" is not a header of this project: use <>' % header
    here, there = room_of(file.name), room_of(header)
    if here not in ROOMS:
        return None  # reported once, for the file
    if not may_include(here, there, header):
        return '%s must not include %s ("%s")' % (here, there, header)
    return None


def check_fences(file, header):
    for library, pattern, allowed in FENCES:
        if pattern.match(header) and not allowed.match(file.name):
            return '%s is not allowed here (<%s>)' % (library, header)
    return None


def find_closure_problems(files):
    """Follows the includes of ctl/, and yields each include that leaves the rooms of the client."""
    by_name = {file.name: file for file in files if file.is_c()}
    todo = [name for name in by_name if name.startswith('ctl/')]
    seen = set(todo)
    while todo:
        file = by_name[todo.pop()]
        for number, line in enumerate(file.lines, 1):
            match = INCLUDE.match(line)
            header = match.group(2) if match else ''
            if header not in by_name or header in seen:
                continue
            seen.add(header)
            todo.append(header)
            if room_of(header) not in CLIENT and not file.name.startswith('ctl/'):
                yield file.name, number, 'ctl must not reach %s ("%s"), and includes this file' % (room_of(header), header)


def find_problems(_root, files):
    yield from find_closure_problems(files)
    for file in files:
        if not file.is_c() or file.folder not in TOPS:
            continue
        if room_of(file.name) not in ROOMS:
            yield file.name, 1, '%s has no place in the order of tests/lint/includes.py' % room_of(file.name)
        for number, line in enumerate(file.lines, 1):
            if COMPUTED.match(line):
                yield file.name, number, 'an include must name its header'
            match = INCLUDE.match(line)
            if not match:
                continue
            quote, header = match.groups()
            problem = check_fences(file, header) or (quote == '"' and check_own(file, header))
            if not problem and quote == '<' and header.split('/')[0] in TOPS:
                problem = check_own(file, header)
            if problem:
                yield file.name, number, problem


if __name__ == '__main__':
    main(find_problems)
