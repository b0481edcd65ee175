# SPDX-License-Identifier: LGPL-2.1-or-later
"""Builds the libraries of tests/shims, which tests preload."""

import subprocess
from pathlib import Path

_SHIMS = Path(__file__).resolve().parents[1] / 'shims'


def build_shim(name, path):
    """Builds the library of tests/shims/NAME.c. Returns its path."""
    subprocess.run(['cc', '-D_GNU_SOURCE', '-shared', '-fPIC', '-O1', '-o', path, _SHIMS / (name + '.c'), '-ldl'],
                   check=True, timeout=60)
    return path
