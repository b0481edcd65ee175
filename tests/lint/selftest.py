# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each check fails on a tree with a planted violation, names its place, and passes without it."""

import importlib.util
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from tests.lint.sources import check_names

FOLDER = Path(__file__).resolve().parent
STYLE = FOLDER.parents[1] / '.clang-format'
C = '/* SPDX-License-Identifier: LGPL-2.1-or-later */\n'
HASH = '# SPDX-License-Identifier: LGPL-2.1-or-later\n'

SPEC = HASH + '''Name: a
Version: 1
Release: 1
Summary: a
License: a
%description
a
'''

CLEAN = {
    'base/thing.h': C + '#pragma once\n\n#include <stdint.h>\n\n#include "base/macros.h"\n',
    'base/macros.h': C + '#pragma once\n',
    'drivers/libvirt/virt.c': C + '\n#include <libvirt/libvirt.h>\n#include <libxml/tree.h>\n\n'
                          '#include "base/thing.h"\n#include "drivers/driver.h"\n',
    'drivers/driver.h': C + '#pragma once\n',
    'claims/store/store.c': C + '\n#include <sqlite3.h>\n\n#include "base/thing.h"\n#include "config.h"\n',
    'claims/claims.h': C + '#pragma once\n',
    'report/http/loop.c': C + '\n#include <curl/curl.h>\n#include <systemd/sd-event.h>\n',
    'report/publish/plan.h': C + '#pragma once\n',
    'agent/bus/bus.c': C + '\n#include <systemd/sd-bus.h>\n\n#include "claims/claims.h"\n'
                       '#include "drivers/driver.h"\n#include "report/publish/plan.h"\n',
    'config/config.h': C + '#pragma once\n',
    'ctl/verbs/verb.c': C + '\n#include "config/config.h"\n',
    'tests/unit/test-store.c': C + '\n#include <sqlite3.h>\n\n#include "agent/bus/bus.h"\n',
    'tests/tool.py': HASH + 'VALUE = 1\n',
    'tests/tool': '#!/bin/bash\n' + HASH + 'echo "$1"\n',
    'README.md': 'The agent.\n',
    'rpm/a.spec': SPEC,
}


def long_function(n):
    return C + '\nvoid f(void)\n{\n' + '        g();\n' * (n - 3) + '}\n'


# (check, file, its text, the line of the problem, a part of the expected message)
PLANTS = [
    ('precision', 'base/a.c', C + '\nvoid f(void)\n{\n        error_setf(e, 1, "a %" PRIu64 ": %.90s", n, error->text);\n}\n', 5, 'cuts "error->text"'),
    ('includes', 'base/a.c', C + '#include "agent/bus/bus.h"\n', 2, 'base must not include agent/bus'),
    ('includes', 'base/a.c', C + '\n#include "claims/claims.h"\n', 3, 'must not include claims'),
    ('includes', 'drivers/a.c', C + '#  include "report/publish/plan.h"\n', 2, 'must not include report/publish'),
    ('includes', 'drivers/a.h', C + '#include "claims/claims.h"\n', 2, 'must not include claims'),
    ('includes', 'claims/a.c', C + '#include "drivers/driver.h"\n', 2, 'must not include the contract of drivers'),
    ('includes', 'drivers/driver.h', C + '#include "drivers/registry.h"\n', 2, 'must not include drivers'),
    ('includes', 'agent/tree/a.c', C + '#include "agent/cycle/tracker.h"\n', 2, 'must not include agent/cycle'),
    ('includes', 'ctl/verbs/a.c', C + '#include "claims/claims.h"\n', 2, 'must not include claims'),
    ('includes', 'config/config.h', C + '#include "claims/claims.h"\n', 2, 'ctl must not reach claims'),
    ('includes', 'agent/guests/a.c', C + '#include "claims/store/object.h"\n', 2, 'must not include claims/store'),
    ('includes', 'agent/new/a.c', C, 1, 'has no place in the order'),
    ('includes', 'claims/a.c', C + '#include <report/publish/plan.h>\n', 2, 'must not include report/publish'),
    ('includes', 'report/a.c', C + '#include "config/config.h"\n', 2, 'must not include config'),
    ('includes', 'report/a.c', C + '#include "tests/unit/test.h"\n', 2, 'must not include tests/unit'),
    ('includes', 'agent/a.c', C + '#include "bus.h"\n', 2, 'included from the root'),
    ('includes', 'agent/a.c', C + '#include "../base/thing.h"\n', 2, 'included from the root'),
    ('includes', 'agent/a.c', C + '#include "jansson/x.h"\n', 2, 'not a header of this project'),
    ('includes', 'agent/a.c', C + '#include HEADER\n', 2, 'must name its header'),
    ('includes', 'agent/a.c', C + '#include <libvirt/virterror.h>\n', 2, 'libvirt is not allowed'),
    ('includes', 'drivers/a.c', C + '#include <libxml/tree.h>\n', 2, 'libxml2 is not allowed'),
    ('includes', 'claims/fit/a.c', C + '#include <sqlite3.h>\n', 2, 'sqlite3 is not allowed'),
    ('includes', 'base/a.h', C + '#include "sqlite3.h"\n', 2, 'sqlite3 is not allowed'),
    ('includes', 'report/publish/plan.c', C + '#include <curl/curl.h>\n', 2, 'curl is not allowed'),
    ('includes', 'agent/bus/http.c', C + '#include <curl/multi.h>\n', 2, 'curl is not allowed'),
    ('includes', 'ctl/verbs/a.c', C + '#include <systemd/sd-bus.h>\n', 2, 'sd-bus is not allowed'),
    ('includes', 'base/a.c', C + '#include <systemd/sd-bus-protocol.h>\n', 2, 'sd-bus is not'),
    ('format', 'base/a.c', C + '\nint  f(void);\n', 3, 'not formatted'),
    ('format', 'tests/a.h', C + '\nvoid f(void) { g(); }\n', 3, 'not formatted'),
    ('spdx', 'base/a.c', '#include <stdio.h>\n', 1, 'LGPL'),
    ('spdx', 'base/new.h', C + '#pragma once\n\nint f(void);\n' * 4, 2, 'what it is'),
    ('spdx', 'base/new.c', C + '\nint f;\n' * 5, 2, 'what it is'),
    ('spdx', 'base/a.h', '\n' * 6 + C, 1, 'LGPL'),
    ('spdx', 'tests/a.py', '', 1, 'LGPL'),
    ('spdx', 'tests/a', '#!/bin/sh\n', 1, 'LGPL'),
    ('spdx', 'base/Makefile.inc', '\n', 1, 'LGPL'),
    ('spdx', 'systemd/a.service', '[Unit]\n', 1, 'LGPL'),
    ('facts', 'tests/lint/facts.py', HASH, 1, 'has no test_root_table'),
    ('domain-schema', 'tests/lint/domain-schema.py', HASH, 1, 'has no test_nvme_disks_are_pci_devices'),
    ('nova-flavors', 'tests/lint/nova-flavors.py', HASH, 1, 'test-fit.c has no test_groups'),
    ('nova-options', 'config/nova-options.list', HASH, 1, 'the section "api" of the installed Nova is missing'),
    ('english', 'doc/timing.md', 'x\n\nNobody waits.\n', 3, 'name the actor'),
    ('english', 'doc/timing.md', 'What waits ends.\n', 1, 'begin with the subject'),
    ('english', 'doc/timing.md', 'A word ' + 'and a word ' * 10 + '.\n', 1, 'a sentence has 32 words'),
    ('english', 'base/a.h', C + 'int n; /* of the last call */\n', 2, 'begin with a noun'),
    ('english', 'tests/unit/test-a.c', C + 'static void test_who_waits(void **state)\n', 2, 'name the behaviour'),
    ('english', 'base/a.c', C + 'int r = error_setf(e, 1, "A device %s' + ' is gone' * 12 + '. Look");\n', 2, 'has 108 characters, at most 100'),
    ('timing', 'base/a.c', C + '#define A_USEC (3 * USEC_PER_SEC)\n', 2, 'has no row'),
    ('shell', 'tests/a.sh', '#!/bin/sh\n' + HASH + 'cd $1\n', 3, 'SC2086'),
    ('shell', 'check', '#!/bin/bash\n' + HASH + 'for i in x\n', 3, 'SC'),
    ('spec', 'rpm/a.spec', SPEC.replace('%description', '%fi'), 7, 'Unknown'),
    ('spec', 'rpm/a.spec', SPEC + '%if 1\n', 9, 'nclosed %if'),
    ('spec', 'configure.ac', HASH + 'AC_INIT([a], [2])\n', 2, 'a.spec has another version'),
    ('spec', 'configure.ac', HASH + 'CA_DEPENDENCY([X], [x >= 2.1], [libx-dev])\n', 1, 'x >= 2.1 is here or in'),
    ('length', 'base/a.c', long_function(101), 3, 'f() has 101 lines'),
    ('length', 'base/a.c', C + '\n' * 900, 901, 'the file has 901 lines'),
    ('length', 'README.md', 'line\n' * 111, 111, 'the file has 111 lines'),
    ('length', 'tests/a.py', 'def f():\n' + '    g()\n' * 100, 1, 'f() has 101 lines'),
    ('length', 'tests/a.py', 'class A:\n    def f(self):\n' + '        g()\n' * 100, 2, 'f() has'),
    ('manuals', 'man/a.1', '.\\" ' + HASH + '.TH A 1\n.SH NAME\na \\- b\n.FOO\n', 5, 'FOO'),
    ('python', 'tests/a.py', HASH + 'def f(:\n', 2, 'syntax'),
    ('python', 'tests/a', '#!/usr/bin/env python3\nx = (\n', 2, 'never closed'),
    ('python', 'tests/a.py', HASH + 'assert (1, "x")\n', 2, 'assert'),
]

ALLOWED = [
    ('length', 'base/a.c', long_function(100)),
    ('length', 'base/a.c', C + '\n' * 899),
    ('length', 'HACKING.md', 'line\n' * 160),
    ('english', 'tests/unit/test-a.c', C + 'static void test_callers_wait(void **state)\n'),
    ('includes', 'base/a.c', C + '/* #include "agent/bus/bus.h" */\n'),
]


class Tree:
    """A small tree without problems, with one more file in it."""

    def __init__(self, name=None, text=None):
        self._folder = tempfile.TemporaryDirectory(prefix='compute-agent-lint-')
        self.root = Path(self._folder.name)
        contents = dict(CLEAN, **{name: text} if name else {})
        for path, content in contents.items():
            target = self.root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content)
        (self.root / '.clang-format').write_text(STYLE.read_text())

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self._folder.cleanup()

    def check(self, name):
        return subprocess.run(
            ['/usr/bin/python3', '-B', str(FOLDER / ('%s.py' % name)), str(self.root)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


class LintTest(unittest.TestCase):
    def test_clean_tree_passes(self):
        with Tree() as tree:
            for name in check_names():
                done = tree.check(name)
                self.assertEqual((done.returncode, done.stdout), (0, ''), name)

    def test_every_check_has_a_plant(self):
        self.assertLessEqual(set(check_names()), {plant[0] for plant in PLANTS})

    def test_allowed_text_passes(self):
        for name, path, text in ALLOWED:
            with self.subTest(check=name, file=path), Tree(path, text) as tree:
                done = tree.check(name)
                self.assertEqual((done.returncode, done.stdout), (0, ''))


SCHEMA = '''<grammar xmlns="http://relaxng.org/ns/structure/1.0"><start><ref name="domain"/></start>
<define name="domain"><element name="domain"><interleave><element name="pin"><attribute name="cpuset"><ref name="cpuset"/></attribute>
</element><ref name="disk"/><element name="hidden"><attribute><anyName/><ref name="cpuset"/></attribute></element></interleave></element></define>
<define name="disk"><element name="disk"><element name="source"><ref name="pciaddress"/></element><ref name="address"/>
<optional><ref name="disk"/></optional></element></define>
<define name="address"><element name="address"><ref name="pciaddress"/></element></define>
<define name="cpuset"><text/></define><define name="pciaddress"><text/></define></grammar>
'''


class DomainSchemaTest(unittest.TestCase):
    """A grammar with a CPU set, a PCI address in a recursive define, and the address that a guest sees."""

    def setUp(self):
        self.lint = load_check('domain-schema')
        folder = tempfile.TemporaryDirectory(prefix='compute-agent-lint-')
        self.addCleanup(folder.cleanup)
        Path(folder.name, 'domain.rng').write_text('<grammar xmlns="http://relaxng.org/ns/structure/1.0">'
                                                   '<include href="common.rng"/><start><ref name="domain"/></start></grammar>')
        Path(folder.name, 'common.rng').write_text(SCHEMA)
        self.paths = self.lint.read_paths(Path(folder.name))

    def test_paths_of_the_host_are_found(self):
        self.assertEqual(self.paths, {'/domain/pin/@cpuset', '/domain/hidden/@*', '/domain/disk/source'})

    def problems(self, newer=None, version=9000000, **changes):
        parts = {path: self.lint.excluded('why') for path in self.paths}
        parts.update({path.replace('_', '/'): entry for path, entry in changes.items()})
        return list(self.lint.compare(self.paths, {path: entry for path, entry in parts.items() if entry}, newer or {}, version))

    def test_the_table_equals_the_grammar(self):
        gone = {'_domain_gone': self.lint.excluded('why')}
        newer = {'/domain/gone': 10000000}
        self.assertEqual(self.problems(), [])
        self.assertEqual(self.problems(_domain_disk_source=None),
                         ["/domain/disk/source of libvirt's domain schema is neither counted nor excluded"])
        self.assertEqual(self.problems(**gone), ["/domain/gone is not in libvirt's domain schema"])
        self.assertEqual(self.problems(newer, **gone), [])
        self.assertEqual(self.problems(newer, 11003000, **gone), ["/domain/gone is not in libvirt's domain schema"])
        self.assertEqual(self.problems(newer), ['/domain/gone has a version and no entry'])
        self.assertEqual(self.problems(_domain_disk_source=([], '')),
                         ['/domain/disk/source must have either tests or a reason'])


def load_check(name):
    """Returns a check of this folder as a module. Its name can have a hyphen."""
    spec = importlib.util.spec_from_file_location(name.replace('-', '_'), FOLDER / (name + '.py'))
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(FOLDER))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(FOLDER))
    return module


def add_plant_tests():
    """Adds one test for each check, so that the name of a broken check is visible."""
    def make(name):
        def test(self):
            for check, path, text, line, said in PLANTS:
                if check != name:
                    continue
                with self.subTest(file=path, text=text[-60:]), Tree(path, text) as tree:
                    done = tree.check(name)
                    self.assertEqual(done.returncode, 1, done.stdout)
                    self.assertIn('%s:%d: ' % (path, line), done.stdout)
                    self.assertIn(said, done.stdout)
        return test

    for name in check_names():
        setattr(LintTest, 'test_%s_fails' % name, make(name))


add_plant_tests()

if __name__ == '__main__':
    unittest.main()
