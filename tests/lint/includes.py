#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The architecture as a failing check: agent -> {drivers, claims, report} -> base, and who may
include which library."""

import re

from sources import main

# Whose headers a folder may include. Folders that are not here (tests/) may include any.
MAY_INCLUDE = {
    'base': {'base'},
    'drivers': {'drivers', 'base'},
    'claims': {'claims', 'base'},
    'report': {'report', 'base'},
    'agent': {'agent', 'drivers', 'claims', 'report', 'base'},
}

# A library's headers, and the files that may include them.
FENCES = [
    ('libvirt', re.compile(r'libvirt/'), re.compile(r'drivers/')),
    ('pcre2', re.compile(r'pcre2\.h'), re.compile(r'drivers/regex\.')),
    ('libxml2', re.compile(r'(libxml2/)?libxml/'), re.compile(r'drivers/')),
    ('sqlite3', re.compile(r'sqlite3(ext)?\.h'), re.compile(r'claims/')),
    ('curl', re.compile(r'curl/'), re.compile(r'report/http[^/]*$')),
    ('sd-bus', re.compile(r'systemd/sd-bus'), re.compile(r'agent/')),
]

INCLUDE = re.compile(r'\s*#\s*include\s*(["<])([^">]*)[">]')
COMPUTED = re.compile(r'\s*#\s*include\s*[^"<\s]')


def check_own(file, header):
    folder, slash, _ = header.partition('/')
    if header == 'config.h':
        return None
    if not slash or folder == '..' or folder == '.':
        return 'write "folder/%s": own headers are included from the root' % header
    if folder not in MAY_INCLUDE and folder != 'tests':
        return '"%s" is not a header of this project: use <>' % header
    if folder not in MAY_INCLUDE[file.folder]:
        return '%s/ must not include %s/ ("%s")' % (file.folder, folder, header)
    return None


def check_fences(file, header):
    for library, pattern, allowed in FENCES:
        if pattern.match(header) and not allowed.match(file.name):
            return '%s is not allowed here (<%s>)' % (library, header)
    return None


def find_problems(_root, files):
    for file in files:
        if not file.is_c() or file.folder not in MAY_INCLUDE:
            continue
        for number, line in enumerate(file.lines, 1):
            if COMPUTED.match(line):
                yield file.name, number, 'an include must name its header'
            match = INCLUDE.match(line)
            if not match:
                continue
            quote, header = match.groups()
            problem = check_fences(file, header) or (quote == '"' and check_own(file, header))
            if not problem and quote == '<' and header.split('/')[0] in MAY_INCLUDE:
                problem = check_own(file, header)
            if problem:
                yield file.name, number, problem


if __name__ == '__main__':
    main(find_problems)
