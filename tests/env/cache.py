# SPDX-License-Identifier: LGPL-2.1-or-later
"""Caches test data that is slow to make and equal for all tests. It is made once and then copied.

The cache is a folder of this user below the temporary folder, or COMPUTE_AGENT_TEST_CACHE. It stays after the tests. The name of an
entry contains a hash of the inputs of its content.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.env.scratch import EnvError

PYTHON = '/usr/bin/python3'


def cache_folder():
    """Returns the folder of the cache, which only this user can read. Raises EnvError if another user owns it."""
    path = Path(os.environ.get('COMPUTE_AGENT_TEST_CACHE')
                or Path(tempfile.gettempdir()) / ('compute-agent-test-cache-%d' % os.getuid()))
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.is_symlink() or path.stat().st_uid != os.getuid():
        raise EnvError('%s belongs to somebody else' % path)
    return path


def key_of(*parts):
    """Returns a short hash of these texts and of the path, time and size of these files (Path)."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, Path):
            stat = part.stat()
            part = '%s %d %d' % (part, stat.st_mtime_ns, stat.st_size)
        digest.update(part.encode() + b'\0')
    return digest.hexdigest()[:16]


def package_folders(*names):
    """Returns the folders of these Python packages of Debian, for key_of()."""
    find = 'import importlib.util as u; print(u.find_spec("%s").origin)'
    where = subprocess.run([PYTHON, '-c', '; '.join(find % name for name in names)], stdout=subprocess.PIPE, check=True, timeout=60)
    return [Path(path).parent for path in where.stdout.decode().split()]


def cached(name, make):
    """Returns the folder with this name. If it does not exist, one process calls make(folder) and the others wait for it."""
    base = cache_folder()
    path = base / name
    with open(base / (name + '.lock'), 'w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.is_dir():
            partial = base / (name + '.partial')
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            make(partial)
            partial.rename(path)
    return path
