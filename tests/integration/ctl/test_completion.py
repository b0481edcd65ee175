# SPDX-License-Identifier: LGPL-2.1-or-later
"""The shell completion of computectl, as the build makes it."""

import json
import shlex
import subprocess
import tempfile
import unittest
from pathlib import Path

from tests.env.agent import build_folder

SCRIPT = '''source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_computectl; printf '%s\\n' "${COMPREPLY[@]}"'''


def complete(*words):
    """Returns the completions that bash offers for the last word."""
    path = build_folder() / 'ctl/completion/computectl'
    done = subprocess.run(['bash', '-euc', SCRIPT, 'bash', str(path), 'computectl', *words],
                          stdout=subprocess.PIPE, text=True, check=True, timeout=30)
    return done.stdout.split()


class Completion(unittest.TestCase):
    def test_every_verb_of_the_help(self):
        text = subprocess.run([str(build_folder() / 'computectl'), '--help'], text=True,
                              stdout=subprocess.PIPE, check=True).stdout
        lines = text.split('Look:\n')[1].split('Options:\n')[0].splitlines()
        # A long synopsis has its description in the next line.
        verbs = [line.split()[0] for line in lines if line.startswith('  ') and line[2] != ' ']
        self.assertEqual(sorted(complete('')), sorted(verbs))

    def test_words(self):
        cases = [(['re'], ['reshape', 'reload', 'retire', 'release', 'report']),
                 (['claim', '--res'], ['--resources', '--resize-target']),
                 (['status', '--res'], []),
                 (['identity', 'r'], ['rename']),
                 (['identity', '--f'], ['--force']),
                 (['claims', '--h'], ['--help', '--host', '--hosts-file', '--history']),
                 (['status', '--json', '=', ''], ['pretty', 'short', 'off']),
                 (['--json', '=', 's'], ['short'])]
        for words, expected in cases:
            with self.subTest(words):
                self.assertEqual(complete(*words), expected)

    def test_arguments_by_the_table(self):
        """A verb offers the names of its row in the table. computectl itself lists these names."""
        path = build_folder() / 'ctl/completion/computectl'
        script = SCRIPT.replace('; shift', """; shift
computectl() { case "$*" in claims\\ --history*) echo ' 7  x  released';; claims*) echo ' 5  y  claimed';;
tree*) echo '{"providers":[{"name":"h_pci_1","uuid":"u"}]}';; esac; }""", 1)
        for verb, expected in (('confirm', '5'), ('release', '5'), ('show', '7'), ('cordon', 'h_pci_1'), ('who', 'h_pci_1'),
                               ('drain', 'h_pci_1'), ('identity', 'show check adopt rename'), ('sync', '')):
            done = subprocess.run(['bash', '-euc', script, 'bash', str(path), 'computectl', verb, ''],
                                  stdout=subprocess.PIPE, text=True, check=True, timeout=30)
            self.assertEqual(' '.join(done.stdout.split()), expected, verb)

    def test_names_of_providers_are_no_code(self):
        """A writer of Placement chooses these names. A name with other characters than those of devices is not offered."""
        path = build_folder() / 'ctl/completion/computectl'
        with tempfile.TemporaryDirectory() as folder:
            mark = Path(folder) / 'mark'
            names = ['h_pci_1', '0000:41:00.0', 'x$(touch %s)' % mark, 'y`touch %s`' % mark, '-Hevil', 'a b', 'c;d', 'e"f', 'g\nh', 'ö', '']
            document = json.dumps({'providers': [{'name': name} for name in names]}, separators=(',', ':'))
            script = SCRIPT.replace('; shift', '; computectl() { printf %%s %s; }; shift' % shlex.quote(document), 1)
            for verb in ('cordon', 'uncordon', 'drain', 'who'):
                done = subprocess.run(['bash', '-euc', script, 'bash', str(path), 'computectl', verb, ''],
                                      stdout=subprocess.PIPE, text=True, check=True, timeout=30)
                self.assertEqual(done.stdout.split('\n'), ['h_pci_1', '0000:41:00.0', ''], verb)
            self.assertFalse(mark.exists())

    def test_shellcheck(self):
        path = build_folder() / 'ctl/completion/computectl'
        subprocess.run(['shellcheck', '--shell=bash', str(path)], check=True)

    def test_zsh_has_every_verb(self):
        text = (build_folder() / 'ctl/completion/_computectl').read_text()
        self.assertTrue(text.startswith('#compdef computectl\n'))
        for verb in complete(''):
            self.assertIn("                '%s:" % verb, text)
