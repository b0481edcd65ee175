# SPDX-License-Identifier: LGPL-2.1-or-later
"""The agent's [pci] device_spec matches the same devices as Nova's pci/devspec.py (Debian's python3-nova).

If Nova accepts a pattern, the agent reads it in the same way or rejects it. If Nova rejects a pattern, the agent rejects it, too.
"""

import json
import subprocess
import unittest
import warnings
from unittest import mock

from tests.env.agent import build_folder

from nova import exception
from nova.pci import devspec

VALUES = ('81', '8a', '0a', '00', '10', 'ff')
MATCHED = ('81', r'8\d', r'\d\d', r'\d+$', r'[\da-f]+', r'8[^\d]', r'\D', r'\w{2}', r'\S*', '(?!8)', '(?!81)8',
           '(?=8a)', '.(?<=8)a', '.(?<!8)', '(?:8|f).', '(?P<x>.)(?P=x)', r'(.)\1', '(?i)8A', '(?i:FF)',
           '8(?#one)1', '(?#[)8{,3}1', '(?#(?R)8{ 2})8', '8(?#)+', '(?x) 8 1', '(?x)8 + [# 1]', '(?ii:F)', 'f{2}',
           'f{,2}$', 'f{,1}$', '[{,2}]', 'f{,x}', '.{1,}', '.*?a', '.+', '8?1', '8++', '(?>8)1', '(8)?(?(1)a|f)',
           '(?P<n>8)?(?(n)a|f)', '', '^8', '1$', r'\A8', r'8a\Z', r'8\b', r'\B', '[]8]', '[^]8]',
           '8|1', '(0|1)', '0|1', '[8-9]', r'[\x38]', r'\x66', r'\070', '(a*)*', '(a+)+$', '((8|0)*1?)*$',
           '(a|b|(c(d|e)))', '[a-f][a-f]', '.', '..', '...')
# Nova rejects these patterns, too.
REFUSED = ('[', '(', ')', '*', '+8', '8**', 'a)|(b', r'\q', r'\h', r'\K8', r'\Q8\E', '(?<x>8)', '(?|8)', '(?R)',
           '(?1)', "(?'x'8)", '(?C1)', '(*ACCEPT)', '(*UTF)8', '(?P>x)', '8(?i)1', r'\N', r'\X', r'\g1', '[b-a]',
           '(?', '(?<', '(?P', '\\', '8{1}{1}', '(?#8', '(?x-x:8)', '(?P<n>8)(?(<n>)1)', "(?P<n>8)(?('n')1)", '(?(?=8)8|1)',
           '(?(DEFINE)8)', '(?(VERSION>=10)8|1)', '(?(R)8|1)')
# Nova accepts these patterns and the agent rejects them. The two would read them in different ways, or they cost too much.
NARROWER = ('[[:digit:]]', '(?a)8', '((8{1000}){1000}){1000}', '8' * 129, '(?xx:[8 -9])1', r'(?#\)8)1', '(?x)8#[\n1',
            '(?P<DEFINE>8)(?(DEFINE)1)', '(?P<R>8)(?(R)1)', '(?P<VERSION>8)(?(VERSION)1)', '8{1, 2}', '8{ ,2}', '8{1 }',
            '(?x)8\u200e1', '()' * 10 + r'(8)\118', r'\161')


def ask(questions):
    lines = '\n'.join(json.dumps({'address': '0000:00:00.0', 'parent': '', 'serial': False, **question})
                      for question in questions)
    done = subprocess.run([str(build_folder() / 'tests/probes/pci-probe')], input=lines + '\n', capture_output=True,
                          text=True, check=True, timeout=120)
    return [json.loads(line) for line in done.stdout.splitlines()]


def nova_matches(pattern, value):
    """Returns None if Nova rejects the pattern."""
    address = {'domain': '.*', 'bus': pattern, 'slot': '.*', 'function': '.*'}
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        try:
            spec = devspec.PciAddressRegexSpec(address)
        except (exception.PciDeviceWrongAddressFormat, OverflowError):
            return None
    return spec.match(devspec.PhysicalPciAddress('0000:%s:00.0' % value))


class TestPatterns(unittest.TestCase):
    maxDiff = None

    def ours(self, patterns):
        pairs = [(pattern, value) for pattern in patterns for value in VALUES]
        answers = ask({'spec': json.dumps({'address': {'bus': pattern}}), 'address': '0000:%s:00.0' % value}
                      for pattern, value in pairs)
        return dict(zip(pairs, answers))

    def test_patterns_match_what_they_match_in_nova(self):
        ours = {pair: answer['match'] for pair, answer in self.ours(MATCHED).items()}
        self.assertEqual(ours, {pair: nova_matches(*pair) for pair in ours})
        self.assertGreater(list(ours.values()).count(True), 50)
        self.assertGreater(list(ours.values()).count(False), 50)

    def test_refused_by_both(self):
        for (pattern, value), answer in self.ours(REFUSED).items():
            self.assertIsNone(nova_matches(pattern, value), pattern)
            self.assertIsNone(answer['match'], pattern)
            self.assertIn('bus', answer['words'])

    def test_known_differences(self):
        for (pattern, value), answer in self.ours(NARROWER).items():
            self.assertIsNone(answer['match'], pattern)
            self.assertIsNotNone(nova_matches(pattern, value), pattern)


class TestPhysicalFunctions(unittest.TestCase):
    def test_the_address_of_a_physical_function_matches_its_functions(self):
        whole = {'domain': '0000', 'bus': '81', 'slot': '00', 'function': '0'}
        addresses = ['0000:81:00.0', '0:81:0.0', '0000:81:00.*', '81:00.0', whole, {**whole, 'function': ''},
                     {**whole, 'domain': ''}, {**whole, 'bus': '8'}, {**whole, 'slot': '0'}, {'bus': '81'}]
        for address in addresses:
            with mock.patch.object(devspec.utils, 'is_physical_function',
                                   lambda *parts: parts == tuple(whole.values())):
                spec = devspec.WhitelistPciAddress(address, False)
                expected = spec.match('0000:81:10.1', '0000:81:00.0')
            answer, = ask([{'spec': json.dumps({'address': address}), 'address': '0000:81:10.1',
                            'parent': '0000:81:00.0'}])
            self.assertEqual(answer['match'], expected, address)


class TestRemoteManaged(unittest.TestCase):
    def test_a_function_without_a_serial_number_is_left_out(self):
        for remote in ('true', 'false'):
            for serial in (True, False):
                tags = {'vendor_id': '10de', 'product_id': '1eb8', 'remote_managed': remote}
                spec = devspec.PciDeviceSpec(dict(tags))
                device = {'vendor_id': '10de', 'product_id': '1eb8', 'address': '0000:81:00.2',
                          'parent_addr': '0000:81:00.0',
                          'capabilities': {'vpd': {'card_serial_number': 'MT2113'}} if serial else {}}
                answer, = ask([{'spec': json.dumps(tags), 'address': '0000:81:00.2',
                                'parent': '0000:81:00.0', 'serial': serial}])
                self.assertEqual(answer['match'], spec.match(device), (remote, serial))
