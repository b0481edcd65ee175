#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The manual pages have no errors of mandoc, and they are complete.

They must have each option of the configuration, each member of the D-Bus interface, and each message and field of the journal. They must
also have each verb and option of computectl, each polkit action and each kind of event. A source file must write each field.
computectl-json(5) must name each verb.

The DESCRIPTION of computectl(1) must name each verb that needs rights.
"""

import re
import subprocess
import tempfile
from pathlib import Path

from sources import main, need

FINDING = re.compile(r'mandoc: [^:]+:(\d+):\d+: (?P<text>.*)')
MADE = {
    'compute-agentd.8': ('agent/cycle/metrics.awk', 'agent/cycle/metrics.list'),
    'compute-agent.conf.5': ('man/conf.awk', 'systemd/compute-agent.conf'),
    'compute-agent-messages.7': ('man/messages.awk', 'systemd/compute-agent.catalog'),
    'org.computeagent.Agent1.5': ('man/interface.awk', 'systemd/org.computeagent.Agent1.xml'),
}
OPTION = re.compile(r'(?:BOOL|NUMBER|WORD|TEXT|PATH|LIST)\(\s*"(\w+)",\s*"(\w+)"|'
                    r'(RESERVED|RATIO|SECRET|KEYSTONE)\("(\w+)"|\{ OPTION\("(\w+)", "(\w+)"|'
                    r'\.key = "(\w+)"')


def make(root, name):
    """Returns the text of a page that the Makefile generates."""
    script, source = MADE[name]
    head = 'head=%s' % (root / 'man' / (name + '.head'))
    tail = 'tail=%s' % (root / 'man' / (name + '.tail'))
    return subprocess.run(['awk', '-v', 'make=manual', '-v', head, '-v', tail, '-f', str(root / script),
                           str(root / source)], env={'LC_ALL': 'C', 'PATH': '/usr/bin:/bin'},
                          stdout=subprocess.PIPE, check=True).stdout.decode()


def plain(text):
    return text.replace('\\-', '-').replace('\\e', '\\')


def option_keys(root):
    for match in OPTION.finditer((root / 'config/table.c').read_text()):
        yield match[2] or match[4] or match[6] or match[7]


def journal_fields(root):
    """Returns {LOG_FIELD_…: the name of the field in the journal}."""
    return dict(re.findall(r'#define (LOG_FIELD_\w+)\s+"(\w+)"', (root / 'base/log.h').read_text()))


def verbs_of(root):
    """Returns {verb of computectl: the macro with its flags}."""
    rows = re.compile(r'^        \{ "([a-z-]+)", ".*?\bCTL_(LOCAL|REMOTE|RIGHTS|CHANGE|VERB_CHANGES|VERB_HIDDEN)(?: \| CTL_VERB_HIDDEN)?,', re.M | re.S)
    return {verb: flags for path in sorted((root / 'ctl/verbs').glob('*.c')) for verb, flags in rows.findall(path.read_text())}


def section(text, name):
    return plain(text).partition('.SH %s\n' % name)[2].partition('\n.SH ')[0]


def verb_problems(root, text):
    """Yields the verbs that DESCRIPTION of computectl(1) and DOCUMENTS of computectl-json(5) do not name. A verb counts only in lines with
    the macros B, BR and RB."""
    verbs = verbs_of(root)
    documents = (root / 'man/computectl-json.5').read_text()
    for page, name, wanted in ((documents, 'DOCUMENTS', set(verbs)),
                               (text, 'DESCRIPTION', {verb for verb, flags in verbs.items() if flags in ('RIGHTS', 'CHANGE') and verb != 'consumers'})):
        lines = [line for line in section(page, name).splitlines() if re.match(r'\.(B|BR|RB) ', line)]
        named = set(re.findall(r'(?<![\w-])[a-z]+(?:-[a-z]+)*', '\n'.join(lines)))
        for verb in sorted(wanted - named):
            yield 'man/computectl.1', 1, 'the section %s does not name the verb "%s"' % (name, verb)


def expected(root):
    """Returns the words that each page must contain."""
    interface = (root / 'systemd/org.computeagent.Agent1.xml').read_text()
    actions = re.findall(r'<action id="([\w.]+)"', (root / 'systemd/org.computeagent.policy').read_text())
    events = re.findall(r'#define EVENT_\w+\s+"([a-z]+)"', (root / 'claims/claim/event.h').read_text())
    options = re.findall(r'^        (?:(?:FLAG|TEXT|REQUEST|NUMA)\(|\{ )"([a-z-]+)"',
                         (root / 'ctl/verbs/options.c').read_text(), re.M)
    return {
        'compute-agent.conf.5': set(option_keys(root)),
        'org.computeagent.Agent1.5': [*re.findall(r'<(?:method|property|signal) name="(\w+)"', interface), *actions, *events],
        'compute-agent-messages.7': [*journal_fields(root).values(),
                                     *re.findall(r'"([0-9a-f]{32})"', (root / 'base/message-ids.h').read_text())],
        'computectl.1': [*verbs_of(root), *('--' + option for option in options), *actions],
        'computectl-json.5': events,
    }


def lint(name, text):
    with tempfile.NamedTemporaryFile('w', suffix=Path(name).suffix) as file:
        file.write(text)
        file.flush()
        done = subprocess.run([need('mandoc', 'mandoc'), '-T', 'lint', '-W', 'warning', file.name],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)
    for line in done.stdout.splitlines():
        match = FINDING.match(line)
        yield 'man/' + name, int(match[1]) if match else 1, match['text'] if match else line


def find_problems(root, files):
    root = Path(root)
    if not any(file.name.startswith('man/') for file in files):
        return
    whole = (root / 'configure.ac').exists()  # a page of the self-test has no sources beside it
    pages = {name: make(root, name) for name in MADE} if whole else {}
    for file in files:
        if re.fullmatch(r'man/[^/]+\.[0-9]', file.name):
            pages[file.name[4:]] = '\n'.join(file.lines) + '\n'
    for name, text in pages.items():
        yield from lint(name, text)
    for name, words in expected(root).items() if whole else ():
        if not words:
            yield 'man/' + name, 1, 'nothing to look for was found in the sources'
        for word in words:
            if not re.search(r'(?<![\w-])%s(?![\w-])' % re.escape(word), plain(pages[name])):
                yield 'man/' + name, 1, '"%s" is missing' % word
    yield from verb_problems(root, pages['computectl.1']) if whole else ()
    written = ''.join('\n'.join(file.lines) for file in files if re.match(r'(agent|claims|config|drivers|formats|report)/.*\.c$', file.name))
    for name in journal_fields(root) if whole else ():
        if name not in written:
            yield 'base/log.h', 1, 'nothing writes %s' % name


if __name__ == '__main__':
    main(find_problems)
