#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each Python file compiles without a warning."""

import warnings

from sources import main


def find_problems(_root, files):
    warnings.simplefilter('error')
    for file in files:
        if not file.is_python():
            continue
        try:
            compile(file.text, file.name, 'exec', dont_inherit=True)
        except (SyntaxError, Warning, ValueError) as error:
            yield file.name, getattr(error, 'lineno', 1) or 1, str(error)


if __name__ == '__main__':
    main(find_problems)
