# SPDX-License-Identifier: LGPL-2.1-or-later
"""Libraries to be preloaded: tests/shims."""

import subprocess
from pathlib import Path

_SHIMS = Path(__file__).resolve().parents[1] / 'shims'


def build_shim(name, path):
    """Make the library of tests/shims/NAME.c; returns its path."""
    subprocess.run(['cc', '-D_GNU_SOURCE', '-shared', '-fPIC', '-O1', '-o', path, _SHIMS / (name + '.c'), '-ldl'],
                   check=True, timeout=60)
    return path
