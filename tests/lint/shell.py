#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""shellcheck reports no problem in the shell scripts."""

import re

from sources import complaints, main, need

FINDING = re.compile(r'(?P<name>[^:]+):(?P<line>\d+):\d+: (?P<text>.*)')


def find_problems(root, files):
    names = [file.name for file in files if file.is_shell()]
    if not names:
        return
    for match in complaints(root, [need('shellcheck', 'shellcheck'), '--format=gcc', '--external-sources', *names], FINDING):
        yield match['name'], int(match['line']), match['text']


if __name__ == '__main__':
    main(find_problems)
