#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each C file has the format that clang-format 14 with .clang-format writes ("make format").

Other versions of clang-format write another format, so the check needs version 14.
"""

import re
import shutil
import subprocess
import sys

from sources import complaints, main

VERSION = 14
WARNING = re.compile(r'(?P<name>[^:]+):(?P<line>\d+):\d+: (?:error|warning): (?P<text>.*)')


def find_clang_format():
    seen = []
    for name in ('clang-format-%d' % VERSION, 'clang-format'):
        path = shutil.which(name)
        if not path:
            continue
        done = subprocess.run([path, '--version'], stdout=subprocess.PIPE, text=True, check=True)
        if re.search(r'version %d\.' % VERSION, done.stdout):
            return path
        seen.append(done.stdout.strip())
    sys.exit('clang-format %d is missing%s: install the Debian package clang-format-%d'
             % (VERSION, ' (here: %s)' % ', '.join(seen) if seen else '', VERSION))


def find_problems(root, files):
    names = [file.name for file in files if file.is_c()]
    if not names:
        return
    for match in complaints(root, [find_clang_format(), '--dry-run', *names], WARNING):
        yield match['name'], int(match['line']), 'not formatted ("make format")'


if __name__ == '__main__':
    main(find_problems)
