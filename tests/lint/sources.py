# SPDX-License-Identifier: LGPL-2.1-or-later
"""The common parts of the checks in this folder: the list of files, and the output.

Each check is a separate script: "tests/lint/NAME.py [FOLDER]" prints its problems as "file:line: text" and exits with
1. Without problems it prints nothing and exits with 0.
"""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

_FOLDER = Path(__file__).resolve().parent
_NOT_CHECKS = {'__init__', 'sources', 'selftest'}
_TREE = Path(__file__).resolve().parents[2]
_SHELLS = ('sh', 'bash', 'dash')


def check_names():
    """Returns the names of the checks in this folder. Debian 13 lacks the version of clang-format that "format"
    needs."""
    names = {path.stem for path in _FOLDER.glob('*.py')} - _NOT_CHECKS
    if platform.freedesktop_os_release().get('VERSION_CODENAME') == 'trixie':
        names.remove('format')
    return sorted(names)


def _git_files(root):
    done = subprocess.run(
        ['git', '-c', 'safe.directory=*', 'ls-files', '-z', '--cached', '--others',
         '--exclude-standard'], cwd=root, stdout=subprocess.PIPE, check=True)
    return [name for name in done.stdout.decode().split('\0') if name]


def _walk(root):
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in ('.git', '__pycache__')]
        for name in names:
            yield str(Path(folder, name).relative_to(root))


class File:
    """One file: its path below the root, and its text."""

    def __init__(self, root, name):
        self.name = name
        self.path = Path(root, name)
        self.folder = name.split('/')[0] if '/' in name else ''
        data = self.path.read_bytes()
        self.binary = b'\0' in data
        self.text = '' if self.binary else data.decode('utf-8', 'replace')
        self.lines = self.text.splitlines()

    def _interpreter(self):
        """Returns the last word of "#!/usr/bin/env python3" without its version, or ''."""
        if not self.text.startswith('#!'):
            return ''
        words = self.lines[0][2:].split()
        return os.path.basename(words[-1]).rstrip('0123456789.') if words else ''

    def is_c(self):
        return self.name.endswith(('.c', '.h'))

    def is_python(self):
        return self.name.endswith('.py') or self._interpreter() == 'python'

    def is_shell(self):
        return self.name.endswith('.sh') or self._interpreter() in _SHELLS

    def is_build(self):
        return self.name.endswith(('.ac', '.am', '.inc'))


def files(root):
    """Returns all files of the project: in a repository those that git does not ignore, else all."""
    names = _git_files(root) if Path(root, '.git').exists() else _walk(root)
    return [File(root, name) for name in sorted(names)
            if Path(root, name).is_file() and not Path(root, name).is_symlink()]


def need(program, package):
    """Returns the path of a program. If it is missing, the check fails and names the package to install."""
    path = shutil.which(program)
    if not path:
        sys.exit('%s is missing: install the Debian package %s' % (program, package))
    return path


def complaints(root, argv, pattern):
    """Returns the matches of pattern in the output of a program. Exits if the program failed without a match."""
    done = subprocess.run(argv, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    found = [match for match in map(pattern.match, done.stdout.splitlines()) if match]
    if done.returncode != 0 and not found:
        sys.exit('%s failed:\n%s' % (argv[0], done.stdout))
    return found


def main(find_problems):
    """Runs a check: find_problems(root, files) yields (file name, line, text)."""
    root = Path(sys.argv[1] if len(sys.argv) > 1 else _TREE).resolve()
    problems = sorted(set(find_problems(root, files(root))))
    for name, line, text in problems:
        print('%s:%d: %s' % (name, line, text))
    sys.exit(1 if problems else 0)
