#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A file has at most 900 lines, and a function 100. README.md and HACKING.md are short enough to be read at once."""

import ast
import json
import subprocess

from sources import main, need

FILE_MAX = 900
FUNCTION_MAX = 100
DOCUMENT_MAX = {'README.md': 110, 'HACKING.md': 160}


def c_functions(root, names):
    """Yields (file, first line, last line, name) of each C function that universal-ctags finds."""
    done = subprocess.run(
        [need('ctags', 'universal-ctags'), '--options=NONE', '--output-format=json',
         '--fields=+ne', '--language-force=C', '--kinds-C=f', '-f', '-', *names],
        cwd=root, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    for line in done.stdout.splitlines():
        tag = json.loads(line)
        if tag['_type'] == 'tag' and 'end' in tag:
            yield tag['path'], tag['line'], tag['end'], tag['name']


def python_functions(files):
    for file in files:
        try:
            tree = ast.parse(file.text)
        except SyntaxError:
            continue  # python.py reports it
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield file.name, node.lineno, node.end_lineno, node.name


def find_problems(root, files):
    sources = [file for file in files if file.is_c() or file.is_python() or file.is_shell()]
    for file in sources:
        if len(file.lines) > FILE_MAX:
            yield file.name, FILE_MAX + 1, 'the file has %d lines' % len(file.lines)
    for file in files:
        if len(file.lines) > DOCUMENT_MAX.get(file.name, len(file.lines)):
            yield file.name, DOCUMENT_MAX[file.name] + 1, 'the file has %d lines' % len(file.lines)
    names = [file.name for file in sources if file.is_c()]
    functions = list(python_functions([file for file in sources if file.is_python()]))
    functions += c_functions(root, names) if names else []
    for name, first, last, function in functions:
        if last - first + 1 > FUNCTION_MAX:
            yield name, first, '%s() has %d lines' % (function, last - first + 1)


if __name__ == '__main__':
    main(find_problems)
