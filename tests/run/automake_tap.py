# SPDX-License-Identifier: LGPL-2.1-or-later
"""Prints the results of "make check", case by case, as TAP.

    python3 -m tests.run.automake_tap BUILD_FOLDER [TEST...]

It reads the .trs and .log files that automake's test driver wrote for each test (all, or those
named). The log of a cmocka program that ran with CMOCKA_MESSAGE_OUTPUT=TAP has a line for each
case, and fewer lines than planned after a crash. Any other program counts as one case. The failed
cases come last, each with its log.
"""

import re
import sys
from pathlib import Path

CASE = re.compile(r'(ok|not ok) \d+ - (.*)')
PLAN = re.compile(r'1\.\.(\d+)$', re.MULTILINE)


def read_result(path):
    match = re.search(r'^:test-result: (\w+)', path.read_text(), re.MULTILINE)
    return match[1] if match else 'ERROR'


def cases_of(name, result, log):
    """Returns the cases of one test program, as [(passed, text)]."""
    cases = [(ok == 'ok', '%s: %s' % (name, text)) for ok, text in CASE.findall(log)]
    if result == 'PASS' and not cases:
        return [(True, name)]
    plan = PLAN.search(log)
    missing = max(0, int(plan[1]) - len(cases)) if plan else 0
    cases += [(False, '%s: a case did not run (%s)' % (name, result))] * missing
    if result != 'PASS' and all(passed for passed, _ in cases):
        cases.append((False, '%s: %s' % (name, result)))
    return cases


def main():
    build = Path(sys.argv[1])
    names = sys.argv[2:] or sorted(str(path.relative_to(build).with_suffix(''))
                                   for path in build.glob('**/*.trs'))
    number = 0
    for name in names:
        trs, log = build / (name + '.trs'), build / (name + '.log')
        result = read_result(trs) if trs.exists() else 'did not run'
        text = log.read_text(errors='replace') if log.exists() else ''
        cases = sorted(cases_of(name, result, text), key=lambda case: not case[0])
        for passed, what in cases:
            number += 1
            print('%s %d - %s' % ('ok' if passed else 'not ok', number, what))
        if not all(passed for passed, _ in cases):
            for line in text.splitlines()[-200:]:
                print('# ' + line)
    if number == 0:
        print('not ok 1 - %s has no test results' % build)


if __name__ == '__main__':
    main()
