#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The architecture as a failing check: which room may include which, and who may include which library.

ROOMS is the order of HACKING.md, "Map": a folder may include itself and what stands here for it. A folder that is not
here has no place yet, and fails."""

import re

from sources import main

# What only describes a host, and what a client may know of the other three. Files of drivers/ are two rooms: the
# contract that every driver keeps, and the face, which knows them all.
CONTRACT = 'the contract of drivers'
_DRIVERS = {'drivers', CONTRACT, 'drivers/host', 'drivers/tree'}
_CLAIMS = {'claims', 'claims/store', 'claims/fit', 'claims/claim'}
_REPORT = {'report', 'report/publish', 'report/session', 'report/keystone', 'report/placement', 'report/http'}
_SIBLINGS = _DRIVERS | _CLAIMS | _REPORT
_CLIENT = {'config', 'formats', CONTRACT, 'drivers/host'}
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
    'agent/state': set(),
    'formats': _SIBLINGS,
    'agent/guests': _SIBLINGS,
    'config': _SIBLINGS | {'agent/state'},
    'agent/tree': _SIBLINGS | {'agent/state'},
    'agent/placing': _SIBLINGS | {'agent/guests', 'config'},
    'agent/reshape': _SIBLINGS | {'agent/guests', 'agent/tree', 'agent/state', 'formats'},
    'agent/audit': _SIBLINGS | {'agent/placing', 'agent/reshape', 'agent/guests', 'formats'},
    'agent/cycle': _SIBLINGS | {'agent/audit', 'agent/reshape', 'agent/tree', 'agent/guests', 'formats'},
    'agent/bus': _SIBLINGS | {'agent/cycle', 'agent/audit', 'agent/placing', 'agent/reshape', 'agent/tree',
                              'agent/guests', 'formats'},
    'agent': _SIBLINGS | {'agent/bus', 'agent/cycle', 'agent/placing', 'agent/tree', 'config', 'agent/guests',
                          'agent/state'},
    'agent/helper': _SIBLINGS | {'config', 'agent/state', 'formats'},
    'ctl/print': _CLIENT,
    'ctl/ask': _CLIENT | {'ctl/print'},
    'ctl/verbs': _CLIENT | {'ctl/ask', 'ctl/print'},
    'ctl': _CLIENT | {'ctl/verbs', 'ctl/ask', 'ctl/print'},
}
CONTRACT_FILES = re.compile(r'drivers/(driver|driver-reshape|driver-words|disk-check|mailbox|thread|virt-thread|poll-thread)\.[ch]$')
TOPS = {room.split('/')[0] for room in ROOMS if room != CONTRACT}

# A library's headers, and the files that may include them.
FENCES = [
    ('libvirt', re.compile(r'libvirt/'), re.compile(r'drivers/libvirt/')),
    ('libxml2', re.compile(r'(libxml2/)?libxml/'), re.compile(r'drivers/libvirt/')),
    ('libudev', re.compile(r'libudev\.h'), re.compile(r'drivers/linux/')),
    ('pcre2', re.compile(r'pcre2'), re.compile(r'drivers/host/regex\.c$')),
    ('sqlite3', re.compile(r'sqlite3(ext)?\.h'), re.compile(r'claims/store/')),
    ('curl', re.compile(r'curl/'), re.compile(r'report/http/')),
    ('sd-bus', re.compile(r'systemd/sd-bus'), re.compile(r'(agent/bus|ctl/ask)/')),
]

INCLUDE = re.compile(r'\s*#\s*include\s*(["<])([^">]*)[">]')
COMPUTED = re.compile(r'\s*#\s*include\s*[^"<\s]')


def room_of(name):
    return CONTRACT if CONTRACT_FILES.match(name) else name.rpartition('/')[0]


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
        return None  # said once, for the file
    if there != here and there != 'base' and there not in ROOMS[here]:
        return '%s must not include %s ("%s")' % (here, there, header)
    if here == 'base' and there != 'base':
        return '%s must not include %s ("%s")' % (here, there, header)
    return None


def check_fences(file, header):
    for library, pattern, allowed in FENCES:
        if pattern.match(header) and not allowed.match(file.name):
            return '%s is not allowed here (<%s>)' % (library, header)
    return None


def find_problems(_root, files):
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
