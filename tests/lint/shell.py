#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""shellcheck finds nothing in the shell scripts."""

import re
import subprocess
import sys

from sources import main, need

FINDING = re.compile(r'(?P<name>[^:]+):(?P<line>\d+):\d+: (?P<text>.*)')


def find_problems(root, files):
    names = [file.name for file in files if file.is_shell()]
    if not names:
        return
    done = subprocess.run(
        [need('shellcheck', 'shellcheck'), '--format=gcc', '--external-sources', *names],
        cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    complained = False
    for line in done.stdout.splitlines():
        match = FINDING.match(line)
        if match:
            complained = True
            yield match['name'], int(match['line']), match['text']
    if done.returncode != 0 and not complained:
        sys.exit('shellcheck failed:\n' + done.stdout)


if __name__ == '__main__':
    main(find_problems)
