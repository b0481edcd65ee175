#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes inputs that a fuzzer is unlikely to find: names of 10 MB, deep nesting, entities in
entities, quotes and control characters in each place of the corpus.

    tests/fuzz/hostile.py CORPUS-FOLDER OUTPUT-FOLDER
"""

import re
import sys
from pathlib import Path

HUGE = 10 * 1024 * 1024
LARGE = 256 * 1024
DEEP = 100000
VALUES = {
    'quotes': b'\'"`\\\'"&quot;]]>',
    'control': bytes(range(1, 32)) + b'\x7f\x80\xff\xfe',
    'escapes': b'%s%n$(true);../../../../\\u0000&#0;\xc0\xaf\xed\xa0\x80',
    'number': b'184467440737095516160',
    'negative': b'-9223372036854775809',
    'large': b'A' * LARGE,
}
PLACES = {
    '.xml': re.compile(rb'''>([^<>]*[^<>\s][^<>]*)<|=["']([^"']*)["']'''),
    '.json': re.compile(rb'"((?:[^"\\]|\\.)*)"|(?<=:)(\d+)'),
    '.yaml': re.compile(rb'([A-Za-z0-9_$.]+)'),
    '.txt': re.compile(rb'([A-Za-z0-9-]+)'),
}
BOMB = (b'<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa">' +
        b''.join(b'<!ENTITY %c "%s">' % (98 + i, b'&%c;' % (97 + i) * 10) for i in range(12)) +
        b']>')


def nestings(suffix):
    """Yields texts that have only deep nesting."""
    if suffix == '.xml':
        yield b'<device>' * DEEP
        yield b'<domain>' * DEEP + b'</domain>' * DEEP
        yield BOMB + b'<device><name>&m;</name></device>'
        yield b'<device><name>' + b'<a/>' * DEEP + b'</name></device>'
    elif suffix == '.json':
        yield b'[' * DEEP
        yield b'[' * DEEP + b']' * DEEP
        yield b'{"address":' * DEEP + b'1' + b'}' * DEEP
        yield b'[' + b'{},' * DEEP + b'{}]'
    elif suffix == '.txt':
        yield b'\n' + b''.join(b'%d : a\n' % i for i in range(3000))
    else:
        yield b'[' * DEEP
        yield b'- ' * DEEP + b'a'
        yield b'{a: ' * DEEP
        yield b''.join(b' ' * i + b'a:\n' for i in range(2000))
        yield b'a0: &a0 [x, x]\n' + b''.join(b'a%d: &a%d [*a%d, *a%d]\n' % (i, i, i - 1, i - 1)
                                             for i in range(1, 64))


def variants(text, suffix):
    """Yields the text with each value of VALUES in each of its places, and with 10 MB in the first
    two places."""
    for number, match in enumerate(PLACES[suffix].finditer(text)):
        group = next(i for i in range(1, match.re.groups + 1) if match.group(i) is not None)
        start, end = match.span(group)
        for name, value in VALUES.items():
            yield '%d-%s' % (number, name), text[:start] + value + text[end:]
        if number < 2:
            yield '%d-huge' % number, text[:start] + b'A' * HUGE + text[end:]


def main():
    corpus, output = Path(sys.argv[1]), Path(sys.argv[2])
    output.mkdir(parents=True, exist_ok=True)
    suffixes = set()
    for seed in sorted(corpus.iterdir()):
        suffixes.add(seed.suffix)
        for name, text in variants(seed.read_bytes(), seed.suffix):
            (output / ('%s-%s' % (seed.stem, name))).write_bytes(text)
    for suffix in sorted(suffixes):
        for number, text in enumerate(nestings(suffix)):
            (output / ('nesting-%d' % number)).write_bytes(text)


if __name__ == '__main__':
    main()
