#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""doc/timing.md has a row for each interval and each number of attempts of the product, with its value, and no other
row."""

import re
from collections import Counter

from sources import main

TOPS = ('agent', 'base', 'claims', 'config', 'ctl', 'drivers', 'formats', 'prepare', 'report')
DEFINE = re.compile(r'#define\s+(\w*(?:USEC|_SEC|_MSEC|_MAX|_MIN|TRIES|RETRIES|ATTEMPTS|HOLDS)\w*)\s+(.+)')
TRIES = re.compile(r'TRIES|RETRIES|ATTEMPTS|GONE_HOLDS')
TIME = re.compile(r'USEC|_SEC\b|_MSEC\b')
LEFT_OUT = re.compile(r'(USEC_PER|NSEC_PER|PER_USEC|TIMER_ACCURACY|DEFAULT_POLL_INTERVAL_SEC|ENTRIES)')
ROW = re.compile(r'\| ([\w/]+) \| (\w+) \| ([^|]+) \|')
UNITS = {'us': 1, 'ms': 10 ** 3, 's': 10 ** 6, 'min': 60 * 10 ** 6, 'h': 3600 * 10 ** 6, 'd': 86400 * 10 ** 6}
NAMES = {'USEC_PER_SEC': 10 ** 6, 'USEC_PER_MSEC': 1000}


def value_of(name, text, defines):
    """Returns the number of a C expression of integers, products and other constants. Returns None for another
    expression."""
    text = re.sub(r'/\*.*', '', text).strip()
    text = re.sub(r'UINT64_C\((\d+)\)', r'\1', text).replace('"', '')
    text = re.sub(r'[A-Za-z_]\w*', lambda match: str(NAMES.get(match.group(0), defines.get(match.group(0), '?'))), text)
    if not re.fullmatch(r'[\d\s()*]+', text):
        return None
    number = eval(text)  # pylint: disable=eval-used
    if 'USEC_PER' not in name and name.endswith('_SEC'):
        return number * 10 ** 6
    return number * 1000 if name.endswith('_MSEC') else number


def constants(files):
    plain = {}
    for file in files:
        if file.is_c() and file.folder in TOPS:
            for line in file.lines:
                match = re.match(r'#define\s+(\w+)\s+(\d+)\s*$', line)
                if match:
                    plain[match.group(1)] = match.group(2)
    for file in files:
        if not file.is_c() or file.folder not in TOPS:
            continue
        for number, line in enumerate(file.lines, 1):
            match = DEFINE.match(line)
            if not match or LEFT_OUT.search(match.group(1)):
                continue
            name, text = match.groups()
            if not TRIES.search(name) and not TIME.search(name) and 'USEC_PER' not in text:
                continue
            value = value_of(name, text, plain)
            if value is not None:
                yield file.name, number, (file.name.rpartition('/')[0], name, value)


def rows(lines):
    for number, line in enumerate(lines, 1):
        match = ROW.match(line)
        if not match or not match.group(3).strip()[0].isdigit():
            continue
        folder, name, text = match.groups()
        amount, _, unit = text.strip().partition(' ')
        yield number, (folder, name, int(amount.replace(',', '')) * UNITS.get(unit, 1))


def find_problems(_root, files):
    # Several constants of one folder can have the same name and value. They are reported once, and one row is enough
    # for them.
    files = list(files)
    page = next((file for file in files if file.name == 'doc/timing.md'), None)
    lines = page.lines if page else []
    told = Counter(row for _, row in rows(lines))
    found = Counter()
    for name, number, constant in constants(files):
        found[constant] += 1
        if found[constant] > told[constant] and found[constant] == 1:
            yield name, number, 'doc/timing.md has no row "| %s | %s |" with the value %d' % constant
    for number, row in rows(lines):
        if row not in found:
            yield 'doc/timing.md', number, '%s has no constant %s with the value %d' % row


if __name__ == '__main__':
    main(find_problems)
