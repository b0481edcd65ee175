#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each source has its licence in one of its first five lines. Each header of the product, and each C file without a header, begins
with a comment on its purpose."""

import re

from sources import main

LICENSE = 'SPDX-License-Identifier: ' + 'LGPL-2.1-or-later'
PRODUCT = re.compile(r'(agent|base|claims|config|ctl|drivers|formats|report)/.*\.[ch]')
SUFFIXES = ('.service', '.socket', '.timer', '.sql', '.xml', '.policy', '.rules', '.catalog')


def says_what_it_is(file):
    text = file.text.partition('\n')[2].lstrip().removeprefix('#pragma once').lstrip()
    return text.startswith('/*')


def find_problems(_root, files):
    headers = {file.name[:-2] for file in files if file.name.endswith('.h')}
    for file in files:
        alone = file.name.endswith('.h') or file.name[:-2] not in headers
        if PRODUCT.fullmatch(file.name) and alone and len(file.lines) > 10 and not says_what_it_is(file):
            yield file.name, 2, 'no comment before all else says what it is'
        source = (file.is_c() or file.is_python() or file.is_shell() or file.is_build()
                  or file.name.endswith(SUFFIXES))
        if source and not any(LICENSE in line for line in file.lines[:5]):
            yield file.name, 1, 'no "%s" in the first five lines' % LICENSE


if __name__ == '__main__':
    main(find_problems)
