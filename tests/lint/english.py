#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks the rules of doc/writing.md that a program can check.

These are words without a clear meaning, sentences without a subject, long sentences, C files without an opening comment, and subjects of
commits.

    tests/lint/english.py            check the paths of CHECKED
    tests/lint/english.py --all PATH...   show all problems below these paths, also those that are not checked yet
"""

import argparse
import ast
import re
import subprocess
import sys
import tokenize
from pathlib import Path

from sources import files, main

# Each file below these paths must have no problems. A path is added when its sentences were rewritten.
CHECKED = ('README.md', 'HACKING.md', 'SECURITY.md', 'NEWS.md', 'doc/writing.md', 'doc/timing.md', 'doc/costs.md', 'doc/nova.md', 'doc/facts.md',
           'doc/decisions', 'man', 'systemd', 'contrib', 'debian', 'rpm', 'demo', 'check', '.ci/run', 'plugins', 'base', 'config', 'formats', 'bench',
           'tests/README.md', 'tests/integration', 'tests/env', 'tests/run', 'tests/boot', 'tests/cloud', 'tests/nova', 'tests/lint', 'tests/fuzz',
           'tests/probes', 'tests/shims', 'tests/fixtures', 'tests/fakes', 'tests/unit', 'tests/vm', 'agent', 'ctl', 'cockpit', 'claims', 'report', 'drivers',
           'doc/guide.md')
# Texts of Placement, which tests and the parser of its answers quote.
QUOTED = ('trait(s)',)
LEFT_OUT = ('tests/lint/english.py', 'tests/lint/selftest.py', 'doc/writing.md')  # these files quote the words
FIRST_COMMIT = 'doc: state how this project writes'
MAX_WORDS = 30
FILE_COMMENT_LINES = 100
MAX_FACT = 100  # characters of the first sentence of a message, with 2 for each value

WORDS = [
    (r'\b(?:some|any|no)body\b', 'name the actor'),
    (r'\bwho(?:ever|soever|mever)\b', 'name the actor'),
    (r'\bmay not\b', 'write "must not" or "might not"'),
    (r'\b(?:is|are|was|were) to (?!\w+/)(?!the\b|a\b|an\b|this\b|its\b|one\b|be\s+found\s+in)[a-z]+', 'write "must" or "will"'),
    (r'\banew\b', 'write "again"'),
    (r'\blest\b', 'write "so that … not"'),
    (r'\bfor want of\b', 'write "without"'),
    (r'\ball the same\b', 'write "still"'),
    (r'\bseen what\b', 'name the thing'),
    (r'\bso many\b', 'write the number, or "n"'),
    (r'\w\(s\)(?!\w)', 'write singular and plural'),
    (r'\bhears? of\b|\bheard of\b', 'write "receives" or "reads"'),
    (r'\b(?:is|are|be|been) owed\b', 'write "pending"'),
    (r'\bby itself\b', 'write "automatically" or "alone"'),
    (r'\bit may be read\b', 'write "can"'),
    (r'\bin the meantime\b|\bmeanwhile\b', 'name the time'),
]
FIRST_WORDS = re.compile(r"(?:What|Who|Whoever|Whose|Whom|Whatever|That which|Of|Nor|Has|Have|Is|Are|Was|Were|May|Once more|Else|"
                         r'All the|So many|Nobody|Somebody|As of|Not)\b(?![^.!?]*\?)')
FRAGMENT = re.compile(r'(?:of|not|nor|and|or|but|which|whose|what|who|like|that) ')  # a comment that begins with it has no subject
ABBREVIATION = re.compile(r'\b(e\.g|i\.e|etc|vs|cf|No|Nr|incl|ca|approx)\.$')
COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|/\*(.*?)\*/', re.S)  # or a string literal, without a group
MESSAGE = re.compile(r'\b(?:error_setf|log_(?:event|error|warning|notice|info)|add)\(')  # its literals are messages
CONVERSION = re.compile(r'%[-+ #0]*[\d.*]*(?:hh|h|ll|l|z|j)?[a-zA-Z]')
LITERALS = re.compile(r'(?:"(?:[^"\\\n]|\\.)*"\s*(?:PRI\w+\s*)?)+')
NOT_ENGLISH = re.compile(r'SELECT|INSERT|UPDATE|DELETE|CREATE|(?:INTEGER|TEXT),|</|/>')  # SQL or XML
NOT_TEXT = re.compile(r'^[^a-zA-Z]*$|^[\w./:%-]+$')
RIDDLE = r'test_(?:what|who|whoever|whose|which|nobody|somebody)_\w+'  # the name of a test that states no behaviour
RIDDLES = re.compile(r'^static void (%s)\(' % RIDDLE, re.M)
SUBJECT = re.compile(r'(?:[\w/.*-]+(?:, )?)+: [a-z]')
NOT_IMPERATIVE = re.compile(r': (?:\w+(?:ed|ing)|(?!pass|process|address|bypass|focus|discuss|express|access|miss|cross|guess|press|compress|less|dismiss|its|always|this|us|as|is|has|was|does)\w+s)\b')


def sentences(text):
    """Returns the sentences of a paragraph."""
    parts, begin = [], 0
    for match in re.finditer(r'[.!?](?:["\')\]*]*)(?=\s+(?:["\'(\[*]*[A-Z0-9`]|"[a-z]))', text):
        if ABBREVIATION.search(text[begin:match.end()]):
            continue
        parts.append(text[begin:match.end()])
        begin = match.end()
    return [part.strip() for part in [*parts, text[begin:]] if part.strip()]


def count_words(sentence):
    """Returns the number of words on the longer side of a colon, because a list after a colon is easy to read."""
    plain = re.sub(r'`[^`]*`|"[^"]*"|\([^)]*\)', 'x', sentence)
    return max(len(re.findall(r'\S*[A-Za-z]\S*', part)) for part in plain.split(': '))


def judge(text, *, is_comment=False, starts_sentence=True):
    """Yields the problems of a paragraph."""
    if text.startswith('{'):
        return  # JSON
    plain = re.sub(r'`[^`]*`', '`x`', text)
    for pattern, advice in WORDS:
        match = re.search(pattern, plain, re.I)
        if match:
            yield '"%s": %s' % (match.group(0), advice)
    for sentence in sentences(plain):
        if not is_comment and sentence.startswith('Not '):
            continue  # "Not a PCI address" is a message
        if starts_sentence and FIRST_WORDS.match(sentence.lstrip('"\'(*-_ ')):
            yield '"%s …": begin with the subject' % ' '.join(sentence.split()[:4])
        if count_words(sentence) > MAX_WORDS:
            yield 'a sentence has %d words: "%s …"' % (count_words(sentence), ' '.join(sentence.split()[:5]))


def line_of(text, position):
    return text.count('\n', 0, position) + 1


def judge_c(file):
    for match in COMMENT.finditer(file.text):
        if match.group(1) is None:
            continue
        body = re.sub(r'^\s*\*', '', match.group(1), flags=re.M)
        if 'SPDX' in body or 'clang-format' in body:
            continue
        for paragraph in re.split(r'\n\s*\n', body):
            for problem in judge(' '.join(paragraph.split()), is_comment=True):
                yield line_of(file.text, match.start()), problem
        if FRAGMENT.match(body.strip()):
            yield line_of(file.text, match.start()), '"%s …": begin with a noun' % ' '.join(body.split()[:4])
    code = COMMENT.sub(lambda match: match.group(0) if match.group(1) is None else re.sub(r'[^\n]', ' ', match.group(0)), file.text)
    code = re.sub(r'^\s*#\s*include.*$', '', code, flags=re.M)
    for match in LITERALS.finditer(code):
        text = ''.join(ast_text(part) for part in re.findall(r'"((?:[^"\\\n]|\\.)*)"', match.group(0)))
        if NOT_TEXT.match(text) or len(text.split()) < 3 or NOT_ENGLISH.search(text):
            continue
        for quoted in QUOTED:
            text = text.replace(quoted, 'x')
        for paragraph in text.split('\n'):
            for problem in judge(paragraph, starts_sentence=bool(re.match(r'[A-Z]', paragraph))):
                yield line_of(code, match.start()), problem
    if not file.name.startswith(('tests/', 'bench/')):
        yield from judge_facts(code)
    for match in RIDDLES.finditer(code):
        yield line_of(code, match.start()), '%s: name the behaviour' % match.group(1)
    if file.name.endswith('.c') and len(file.lines) > FILE_COMMENT_LINES and not file.name.startswith('tests/'):
        head = re.match(r'/\* SPDX[^\n]*\*/\s*/\*', file.text)
        if not head:
            yield 1, 'a file of more than %d lines begins with a comment on its purpose' % FILE_COMMENT_LINES


def judge_facts(code):
    """Yields the messages whose first sentence is too long. Cause and advice belong into further sentences."""
    for call in MESSAGE.finditer(code):
        end = code.find(';', call.end())
        for match in LITERALS.finditer(code, call.end(), end):
            text = ''.join(ast_text(part) for part in re.findall(r'"((?:[^"\\\n]|\\.)*)"', match.group(0)))
            fact = CONVERSION.sub('xx', (sentences(text) or [''])[0])
            if len(fact) > MAX_FACT:
                yield line_of(code, match.start()), 'the first sentence of a message has %d characters, at most %d: "%s …"' % (
                    len(fact), MAX_FACT, ' '.join(fact.split()[:6]))


def ast_text(part):
    return part.replace('\\n', '\n').replace('\\"', '"').replace('\\t', ' ').replace('\\\\', '\\')


def judge_markdown(file):
    in_code, paragraph, start = False, [], 0

    def flush():
        text, paragraph[:] = ' '.join(paragraph), []
        yield from ((start, problem) for problem in judge(text))

    for number, line in enumerate(file.lines, 1):
        if line.lstrip().startswith('```'):
            in_code = not in_code
            continue
        stripped = line.strip()
        if in_code or stripped.startswith('#') or not stripped:
            yield from flush()
        elif stripped.startswith('|'):
            yield from flush()
            if not re.match(r'\|[\s|:-]+$', stripped):
                for cell in stripped.strip('|').split('|'):
                    yield from ((number, problem) for problem in judge(cell.strip()))
        else:
            if re.match(r'([*+-]|\d+\.)\s', stripped):
                yield from flush()
                stripped = re.sub(r'^([*+-]|\d+\.)\s+', '', stripped)
            if not paragraph:
                start = number
            paragraph.append(stripped)
    yield from flush()


def judge_manual(file):
    paragraph, start, is_tag, is_example = [], 0, False, False
    for number, line in enumerate([*file.lines, '.PP'], 1):
        is_example = (is_example or line.startswith('.nf')) and not line.startswith('.fi')
        if is_example:
            continue
        if is_tag:  # the line after .TP is a name, not a sentence
            is_tag = False
            continue
        is_tag = line.startswith('.TP')
        text = re.sub(r'\\f[BIRP]|\\&', '', line).replace('\\-', '-')
        macro = re.match(r"\.(\w+)\s*(.*)", line)
        if macro and macro.group(1) in ('B', 'I', 'BR', 'IR', 'RB', 'RI', 'BI', 'IB'):
            text = re.sub(r'\\f[BIRP]|\\&|"', '', macro.group(2)).replace('\\-', '-')
        elif macro or not line.strip():
            yield from ((start, problem) for problem in judge(' '.join(paragraph)))
            paragraph = []
            continue
        elif line.startswith((".\\\"", "'")):
            continue
        if not paragraph:
            start = number
        paragraph.append(text.strip())


def judge_catalogue(file):
    paragraph, start = [], 0
    for number, line in enumerate([*file.lines, ''], 1):
        if not line.strip() or line.startswith(('-- ', '#')):
            yield from ((start, problem) for problem in judge(' '.join(paragraph)))
            paragraph = []
            continue
        if re.match(r'(Subject|Defined-By|Support|Documentation):', line):
            line = line.partition(':')[2] if line.startswith('Subject') else ''
        if not paragraph:
            start = number
        paragraph.append(line.strip())


def judge_python(file):
    try:
        tree = ast.parse(file.text)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            text = ast.get_docstring(node)
            for paragraph in re.split(r'\n\s*\n', text) if text else ():
                line = node.body[0].lineno
                yield from ((line, problem) for problem in judge(' '.join(paragraph.split()), is_comment=True))
        if isinstance(node, ast.FunctionDef) and re.match(RIDDLE, node.name):
            yield node.lineno, '%s: name the behaviour' % node.name
    comments = []
    with open(file.path, 'rb') as stream:
        for token in tokenize.tokenize(stream.readline):
            if token.type == tokenize.COMMENT and not token.string.startswith('#!'):
                comments.append((token.start[0], token.string.lstrip('# ')))
    for line, text in comments:
        yield from ((line, problem) for problem in judge(text, is_comment=True))


def judge_plain(file):
    """Checks the comments of shell scripts, units, configurations and Makefiles."""
    for number, line in enumerate(file.lines, 1):
        match = re.match(r'\s*[#;]\s?(.*)', line)
        if match and not line.startswith('#!') and 'SPDX' not in line:
            yield from ((number, problem) for problem in judge(match.group(1), starts_sentence=False))


def judge_script(file):
    """Checks the comments and longer texts of JavaScript."""
    for match in re.finditer(r'/\*(.*?)\*/|(?<![:\w])//([^\n]*)', file.text, re.S):
        body = re.sub(r'^\s*\*', '', match.group(1) or match.group(2) or '', flags=re.M)
        if 'SPDX' not in body:
            for paragraph in re.split(r'\n\s*\n', body):
                yield from ((line_of(file.text, match.start()), problem) for problem in judge(' '.join(paragraph.split()), is_comment=True))
    for match in re.finditer(r"'((?:[^'\\\n]|\\.)*)'|`([^`]*)`", file.text):
        text = match.group(1) or match.group(2) or ''
        if len(text.split()) >= 3:
            yield from ((line_of(file.text, match.start()), problem)
                        for problem in judge(text, starts_sentence=bool(re.match('[A-Z]', text))))


def judge_file(file):
    if file.is_c():
        return judge_c(file)
    if file.name.endswith('.js'):
        return judge_script(file)
    if file.name.endswith('.md'):
        return judge_markdown(file)
    if re.match(r'man/.*\.(\d|head|tail)$', file.name):
        return judge_manual(file)
    if file.name.endswith('.catalog'):
        return judge_catalogue(file)
    if file.is_python():
        return judge_python(file)
    if file.is_shell() or file.is_build() or file.name.startswith(('systemd/', 'contrib/', 'debian/', 'rpm/')):
        return judge_plain(file)
    return ()


def judge_commits(root):
    """Checks the subjects of commits since FIRST_COMMIT. Without a repository it checks nothing."""
    if not Path(root, '.git').exists():
        return
    done = subprocess.run(['git', '-c', 'safe.directory=*', 'log', '-n', '500', '--format=%h %s'], cwd=root, text=True,
                          stdout=subprocess.PIPE, check=False)
    for line in done.stdout.splitlines():
        commit, _, subject = line.partition(' ')
        if not SUBJECT.match(subject):
            yield commit, 1, 'the subject of a commit is "area: verb object": %s' % subject
        elif NOT_IMPERATIVE.search(subject):
            yield commit, 1, 'the subject of a commit has a verb in the imperative: %s' % subject
        if subject == FIRST_COMMIT:
            return


def is_below(name, paths):
    return any(name == path or name.startswith(path.rstrip('/') + '/') for path in paths)


def find_problems(root, sources):
    for file in sources:
        if is_below(file.name, CHECKED) and file.name not in LEFT_OUT:
            yield from ((file.name, line, problem) for line, problem in judge_file(file))
    subjects = subprocess.run(['git', '-c', 'safe.directory=*', 'log', '-n', '500', '--format=%s'], cwd=root, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout.splitlines()
    if FIRST_COMMIT in subjects:
        yield from judge_commits(root)


def show_all(paths):
    root = Path(__file__).resolve().parents[2]
    number = 0
    for file in files(root):
        if is_below(file.name, paths) and file.name not in LEFT_OUT:
            for line, problem in judge_file(file):
                print('%s:%d: %s' % (file.name, line, problem))
                number += 1
    print('%d problems' % number)


if __name__ == '__main__':
    if '--all' in sys.argv:
        parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
        parser.add_argument('--all', action='store_true')
        parser.add_argument('paths', nargs='+')
        show_all(parser.parse_args().paths)
    else:
        main(find_problems)
