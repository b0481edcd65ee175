# SPDX-License-Identifier: LGPL-2.1-or-later
"""Things that are slow to make and the same for every test: made once, then copied.

They live in a folder of this user below the temp folder, or in COMPUTE_AGENT_TEST_CACHE. It
stays after the tests; the names hold what the content depends on.
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
    """The cache, private to this user."""
    path = Path(os.environ.get('COMPUTE_AGENT_TEST_CACHE')
                or Path(tempfile.gettempdir()) / ('compute-agent-test-cache-%d' % os.getuid()))
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.is_symlink() or path.stat().st_uid != os.getuid():
        raise EnvError('%s belongs to somebody else' % path)
    return path


def key_of(*parts):
    """A short name for these texts and for the state of these files (Path)."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, Path):
            stat = part.stat()
            part = '%s %d %d' % (part, stat.st_mtime_ns, stat.st_size)
        digest.update(part.encode() + b'\0')
    return digest.hexdigest()[:16]


def package_folders(*names):
    """Where these packages of Debian's Python are, for key_of()."""
    find = 'import importlib.util as u; print(u.find_spec("%s").origin)'
    where = subprocess.run([PYTHON, '-c', '; '.join(find % name for name in names)], stdout=subprocess.PIPE, check=True, timeout=60)
    return [Path(path).parent for path in where.stdout.decode().split()]


def cached(name, make):
    """The folder of this name; make(folder) fills it the first time, in one process only."""
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
