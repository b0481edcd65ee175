#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each source says its licence in one of its first five lines."""

from sources import main

LICENSE = 'SPDX-License-Identifier: ' + 'LGPL-2.1-or-later'
SUFFIXES = ('.service', '.socket', '.timer', '.sql', '.xml', '.policy', '.rules', '.catalog')


def find_problems(_root, files):
    for file in files:
        source = (file.is_c() or file.is_python() or file.is_shell() or file.is_build()
                  or file.name.endswith(SUFFIXES))
        if source and not any(LICENSE in line for line in file.lines[:5]):
            yield file.name, 1, 'no "%s" in the first five lines' % LICENSE


if __name__ == '__main__':
    main(find_problems)
