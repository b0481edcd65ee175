#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""rpm can parse the spec files, and their version and their libraries are those of configure.ac."""

import re

from sources import complaints, main, need

FINDING = re.compile(r'(?:error|warning): (?:line (?P<line>\d+): )?(?P<text>.*)')


def find_complaints(root, file):
    for match in complaints(root, [need('rpmspec', 'rpm'), '--parse', file.name], FINDING):
        yield file.name, int(match['line'] or 1), match['text']


def find_version(files):
    """Returns the version of AC_INIT, and its line."""
    for file in files:
        for number, line in enumerate(file.lines if file.name == 'configure.ac' else (), 1):
            if match := re.match(r'AC_INIT\(\[[^]]*\], \[([^]]*)\]', line):
                return match[1], number
    return None, 0


def find_floors(files):
    """Yields (pkg-config module, version) of each library in configure.ac."""
    for file in files:
        if file.name == 'configure.ac':
            yield from re.findall(r'\[([^\s\[\]]+) >= ([\d.]+)\]', re.sub(r'(?m)^PKG_CHECK_EXISTS.*', '', file.text))


def find_problems(root, files):
    files = list(files)
    version, number = find_version(files)
    for file in files:
        if not file.name.endswith('.spec'):
            continue
        yield from find_complaints(root, file)
        if version and not re.search(r'^Version:\s*%s$' % re.escape(version), file.text, re.MULTILINE):
            yield 'configure.ac', number, '%s has another version' % file.name
        needed = set(re.findall(r'pkgconfig\(([^)]+)\) >= ([\d.]+)$', file.text, re.MULTILINE))
        for module, floor in sorted(set(find_floors(files)) ^ needed):
            yield 'configure.ac', 1, '%s >= %s is here or in %s, and not in both' % (module, floor, file.name)


if __name__ == '__main__':
    main(find_problems)
