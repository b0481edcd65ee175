#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks that the programs need no newer library than configure.ac requires. Prints the violations and exits with 1.

    tests/run/floors.py PROGRAM...

Debian's symbols files have the first version of each function of a library. Constants have no such list.
"""

import re
import subprocess
import sys
from pathlib import Path

_TOP = Path(__file__).resolve().parents[2]
_SYMBOLS = Path('/var/lib/dpkg/info')
_LIBC = ('c', (2, 34))  # that of EL9; newer headers of it refer to the newer functions of C23 automatically
_BY_THE_HEADERS = '__isoc23_'


def version(text):
    return tuple(map(int, re.findall(r'\d+', re.split(r'[-+~]', text)[0])))


def short_name(package):
    """Returns the common part of package names such as libcurl4t64 and libcurl4-openssl-dev."""
    return re.match(r'(?:lib)?([a-z]+)', package)[1]


def floors():
    """Returns the required version of each library, by its short name."""
    text = (_TOP / 'configure.ac').read_text(encoding='utf-8')
    found = re.findall(r'^CA_DEPENDENCY\(\[\w+\], \[\S+ >= ([\d.]+)\], \[(\S+)\]\)', text, re.MULTILINE)
    return dict([(short_name(package), version(floor)) for floor, package in found] + [_LIBC])


def first_versions(library):
    """Returns {function, with or without its version: the first version of the library that has it}."""
    first = {}
    for path in _SYMBOLS.glob('lib%s[0-9-]*.symbols' % library):
        for name, since in re.findall(r'^ (\S+)@\S+ (\S+)', path.read_text(encoding='utf-8'), re.MULTILINE):
            first[name] = version(since)
        for tag, since in re.findall(r'^ \*@(\S+) (\S+)', path.read_text(encoding='utf-8'), re.MULTILINE):
            first['*@' + tag] = version(since)
    return first


def functions(program):
    """Returns the functions that a program uses from libraries, as {function: its symbol version, or ''}."""
    out = subprocess.run(['nm', '--dynamic', '--undefined-only', program], stdout=subprocess.PIPE, text=True, check=True).stdout
    names = [line.split()[1] for line in out.splitlines() if line.split()[0] == 'U']
    return dict((name.split('@')[0], name.rpartition('@')[2] if '@' in name else '') for name in names)


def main():
    found = {library: (floor, first_versions(library)) for library, floor in floors().items()}
    n_known, failed = 0, False
    for program in sys.argv[1:]:
        for name, tag in functions(program).items():
            for library, (floor, first) in found.items():
                since = first.get(name, first.get('*@' + tag))
                n_known += since is not None
                if since and since > floor and not name.startswith(_BY_THE_HEADERS):
                    print('%s: %s is of lib%s %s, the floor is %s' % (
                        program, name, library, '.'.join(map(str, since)), '.'.join(map(str, floor))))
                    failed = True
    print('%d functions of libraries' % n_known)
    sys.exit(1 if failed or not n_known else 0)


if __name__ == '__main__':
    main()
