#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A text for people is not cut at a fixed number of bytes.

A format such as "%.190s" of an error ends in the middle of a word. The format of a name or path from outside can have a limit. error_setf()
ends a long text with "…".
"""

import re

from sources import main

CONVERSION = re.compile(r'%(?:%|[-+ #0]*(?:\*|\d+)?(?:\.(?P<precision>\*|\d+))?(?:hh|h|ll|l|j|z|t)?(?P<kind>[a-zA-Z]))')
SENTENCES = re.compile(r'(?:(?:error|words|why|trouble)(?:->|\.)text|(?:\b|_)(?:words|reason|why|doubt|problem|message|summary|advice|evidence|trouble|detail))\b(?!->|\.|\()')
CALLS = re.compile(r'\b(?:error_text|strerror|sqlite3_errmsg|curl_easy_strerror)\(')
LITERAL = r'"(?:[^"\\]|\\.)*"'


def split_arguments(text):
    """Returns the arguments of a call. text begins after the opening parenthesis."""
    depth, begin, found = 0, 0, []
    for match in re.finditer(LITERAL + r"|'(?:[^'\\]|\\.)'|[(){}\[\],]", text):
        token = match[0]
        if token in '([{':
            depth += 1
        elif token in ')]}':
            if depth == 0:
                return [*found, text[begin:match.start()].strip()]
            depth -= 1
        elif token == ',' and depth == 0:
            found.append(text[begin:match.start()].strip())
            begin = match.end()
    return found


def cut_sentences(arguments):
    """Yields the arguments that are texts for people and that a format among the arguments cuts."""
    for number, argument in enumerate(arguments):
        if not re.match(r'(?:%s|\w+|\s)+$' % LITERAL, argument) or '"' not in argument:
            continue
        if '…' in ''.join(arguments):
            return  # it shows that the text was cut
        index = number + 1
        for conversion in CONVERSION.finditer(re.sub(r'"\s*PRI\w+\s*"?', 'd', argument)):
            if conversion['kind'] is None:
                continue
            index += '*' in conversion[0].split('.')[0]
            precise = conversion['precision'] not in (None, '*')
            index += conversion['precision'] == '*'
            value = arguments[index] if index < len(arguments) else ''
            if precise and conversion['kind'] == 's' and (SENTENCES.search(value) or CALLS.search(value)):
                yield value
            index += 1
        return


def find_problems(_root, files):
    # The window must be longer than a call. Most windows have no precision, so their arguments are not split.
    for file in files:
        if not file.name.endswith('.c') or file.folder in ('bench', 'tests'):
            continue
        for call in re.finditer(r'\b\w+\(', file.text):
            window = file.text[call.end():call.end() + 2000]
            if '%.' not in window:
                continue
            for value in cut_sentences(split_arguments(window)):
                yield file.name, file.text.count('\n', 0, call.start()) + 1, 'cuts "%s", a text for people' % value


if __name__ == '__main__':
    main(find_problems)
