# SPDX-License-Identifier: LGPL-2.1-or-later
"""The agent reads a nova.conf as oslo.config does with Nova's option definitions (Debian's python3-nova).

Both load the same files: a table of spellings that people write, and random ones. The tests compare the value of each option that a
file sets and that Nova defines, too.
"""

import json
import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from tests.env.agent import build_folder

PROBE = build_folder() / 'tests/probes/config-probe'

# The interpreter that has Nova runs this script. Its arguments are files, and it prints one line of JSON for each.
OSLO = '''
import json, sys
from keystoneauth1 import loading
from oslo_log import log
from nova.conf import CONF

log.register_options(CONF)
CONF.register_opts(loading.get_auth_plugin_conf_options('password'), 'placement')


def load(path):
    CONF(['--config-file', path], project='nova', default_config_dirs=[])
    values = {}
    for section, keys in json.load(open(path + '.keys')).items():
        for key in keys:
            values.setdefault(section, {})[key] = getattr(CONF if section == 'DEFAULT' else CONF[section], key)
    return values


for path in sys.argv[1:]:
    try:
        answer = {'values': load(path)}
    except BaseException as error:  # it ends the program for some
        answer = {'error': '%s: %s' % (type(error).__name__, error)}
    print(json.dumps(answer))
'''

# Spellings as (text, {section: keys to compare}).
SPELLINGS = [
    ('[placement]\nusername = a$$b\n', {'placement': ['username']}),
    ('[placement]\nusername = a\\$b\n', {'placement': ['username']}),
    ('[placement]\nusername = $$$$x$\n', {'placement': ['username']}),
    ('[placement]\nusername = $5${${a\n', {'placement': ['username']}),
    ('[DEFAULT]\nhost = $my_ip\nmy_ip = 10.0.0.1\n', {'DEFAULT': ['host']}),
    ('[DEFAULT]\nstate_path = /srv/nova\n', {'DEFAULT': ['state_path', 'instances_path']}),
    ('[DEFAULT]\nstate_path = /srv/nova\ninstances_path = ${state_path}/i\n', {'DEFAULT': ['instances_path']}),
    ('[DEFAULT]\nhost=${keystone.region_name}\n[keystone]\nregion_name = r\n', {'DEFAULT': ['host']}),
    ('[placement]\npassword = s3cr$$t\nauth_url=http://$my_ip:5000/v3\n[DEFAULT]\nmy_ip=127.0.0.1\n',
     {'placement': ['password', 'auth_url']}),
    ('[placement]\nauth_plugin=password\nusername: nova\npassword="a=b:c"\n', {'placement': ['username', 'password']}),
    ('[placement]\nusername = a=b:c\n', {'placement': ['username']}),
    ('[placement]\nusername: a=b\n', {'placement': ['username']}),
    ("[placement]\nusername\t=\t'n o v a'\n", {'placement': ['username']}),
    ('[placement]\nusername = a#b;c\n', {'placement': ['username']}),
    ('[placement]\nusername = a\n\tb\n  c\n', {'placement': ['username']}),
    ('[placement]\n\u00a0username\u2003=\u00a0"a" \u3000\n \u00a0b\u200a\n\u00a0\n', {'placement': ['username']}),
    ('[placement]\nusername = "a\n b"\n', {'placement': ['username']}),
    ('[DEFAULT]\nhost: a\n', {'DEFAULT': ['host']}),
    ('[DEFAULT]\nhost = a\nhost = b\n', {'DEFAULT': ['host']}),
    ('[DEFAULT]\nhost = a\n[compute]\n[DEFAULT]\nhost = b\n', {'DEFAULT': ['host']}),
    ('\n# c\n; c\n\n[DEFAULT]\n\nhost = a\n', {'DEFAULT': ['host']}),
    ('[libvirt]\nconnection_uri =\ncpu_models = a, b,\n  c\n', {'libvirt': ['cpu_models']}),
    ('[libvirt]\ncpu_model = a,b\n', {'libvirt': ['cpu_models']}),
    ('[libvirt]\ncpu_models = new\ncpu_model = old\n', {'libvirt': ['cpu_models']}),
    ('[devices]\nenabled_mdev_types = nvidia-35 , nvidia-36\n', {'devices': ['enabled_mdev_types']}),
    ('[devices]\nenabled_mdev_types = new\nenabled_vgpu_types = old\n', {'devices': ['enabled_mdev_types']}),
    ('[DEFAULT]\nreserved_huge_pages = node:0, size:2048, count: 64\nreserved_huge_pages = node:1,size:1GB,count:2\n',
     {'DEFAULT': ['reserved_huge_pages']}),
    ('[pci]\ndevice_spec = {"vendor_id": "10de"}\ndevice_spec = {"vendor_id": "8086"}\n'
     'passthrough_whitelist = {"product_id": "154c"}\n[DEFAULT]\npci_passthrough_whitelist = {"product_id": "10fb"}\n',
     {'pci': ['device_spec']}),
    ('[DEFAULT]\ndebug = Yes\nreserved_host_memory_mb = +1024\ncpu_allocation_ratio = 16\n',
     {'DEFAULT': ['debug', 'reserved_host_memory_mb', 'cpu_allocation_ratio']}),
    ('[DEFAULT]\ndebug = true\n[DEFAULT]\ndebug = false\n', {'DEFAULT': ['debug']}),
    ('[compute]\ncpu_dedicated_set = 4-12,^8,15\n', {'compute': ['cpu_dedicated_set']}),
    ('[DEFAULT]\nupdate_resources_interval = -1\n', {'DEFAULT': ['update_resources_interval']}),
]
# Both sides reject these files.
REFUSED = ['[DEFAULT]\nhost = $nowhere\n', '[DEFAULT]\nhost = ${a.b}\n', '[DEFAULT]\nhost = $host\n', '[DEFAULT]\nhost\n', 'host = a\n',
           '[DEFAULT\nhost = a\n', '[DEFAULT] # c\nhost = a\n', '[DEFAULT]\n host = a\n', '[DEFAULT]\nhost = a\n\n b\n',
           '[DEFAULT]\nreserved_host_memory_mb = -1\n', '[DEFAULT]\ndebug = maybe\n']


def random_file(rng):
    """Returns a file with random spellings of options that accept any text, and the {section: keys} to compare. Some values refer
    to other options."""
    names = [('placement', 'username', 'username'), ('placement', 'password', 'password'),
             ('placement', 'region_name', 'region_name'), ('placement', 'user_domain_name', 'user_domain_name'),
             ('placement', 'username', rng.choice(['username', 'user_name']))]
    pieces = ['a', 'B', '-', '$$', '\\$', '$', '${', '}', '5', '=', ':', '#', ';', '"', "'", '.', '$my_ip', '${my_ip}',
              '${keystone.region_name}', '$ ', '@']
    text, keys = {'DEFAULT': ['my_ip = 10.0.0.%d' % rng.randrange(1, 9)], 'keystone': ['region_name = k$$%d' % rng.randrange(9)],
                  'placement': []}, {}
    for section, key, name in names:
        value = 'x' + ''.join(rng.choice(pieces) for _ in range(rng.randrange(0, 7))).replace(' ', '') + '!'
        quote = rng.choice(['', '', '"', "'"])
        text[section].append('%s%s%s%s%s' % (name, rng.choice(['=', ' = ', '\t=\t', ':', ' : ']), quote, value, quote))
        keys.setdefault(section, []).append(key)
    sections = list(text)
    rng.shuffle(sections)
    return '\n'.join(['[%s]\n%s\n' % (section, '\n'.join(text[section])) for section in sections]), keys


def as_pairs(item):
    """Returns an item of reserved_huge_pages as a dict. The agent has its text, and oslo.config has a dict."""
    if isinstance(item, dict):
        return item
    return dict(part.strip().split(':', 1) for part in item.replace(': ', ':').split(','))


def is_same(ours, theirs):
    if isinstance(ours, list) and isinstance(theirs, str):  # an enumeration
        return theirs.lower() in ours
    if isinstance(theirs, list) and theirs and isinstance(theirs[0], dict):
        return [as_pairs(item) for item in ours] == [{key: value.strip() for key, value in item.items()} for item in theirs]
    return ours == theirs


class TestOsloConfig(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='compute-agent-oslo-')
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def load(self, files):
        """Returns [(the agent's values, oslo.config's values)] for [(text, keys)]."""
        paths = []
        for number, (text, keys) in enumerate(files):
            path = self.folder / ('%d.conf' % number)
            path.write_text(text)
            path.with_name(path.name + '.keys').write_text(json.dumps(keys))
            paths.append(str(path))
        answers = []
        for argv in ([str(PROBE)], [sys.executable, '-W', 'ignore', '-c', OSLO]):
            done = subprocess.run([*argv, *paths], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True, timeout=300)
            answers.append([json.loads(line) for line in done.stdout.splitlines()])
        self.assertEqual([len(answer) for answer in answers], [len(files)] * 2)
        return list(zip(*answers))

    def compare(self, files):
        for (text, keys), (ours, theirs) in zip(files, self.load(files)):
            with self.subTest(text=text):
                self.assertEqual('error' in ours, 'error' in theirs, (ours.get('error'), theirs.get('error')))
                for section, names in keys.items() if 'values' in ours else ():
                    for name in names:
                        pair = ours['values'][section][name], theirs['values'][section][name]
                        self.assertTrue(is_same(*pair), '[%s] %s: %s, oslo.config has %s' % (section, name, *pair))

    def test_spellings_mean_the_same(self):
        self.compare(list(map(self.complete, SPELLINGS)))

    @staticmethod
    def complete(spelling):
        """Puts the options of [placement] that both sides need in front of the spelling. Options of the spelling override them."""
        text, keys = spelling
        return ('[placement]\nauth_type = password\nauth_url = http://k\nusername = u\npassword = p\nproject_name = p\n'
                'user_domain_name = d\nproject_domain_name = d\n' + text, keys)

    def test_random_spellings_mean_the_same(self):
        rng = random.Random(5)
        self.compare([self.complete(random_file(rng)) for _ in range(200)])

    def test_files_that_both_refuse(self):
        for text, (ours, theirs) in zip(REFUSED, self.load([(text, {'DEFAULT': ['host', 'debug', 'reserved_host_memory_mb']})
                                                            for text in REFUSED])):
            with self.subTest(text=text):
                self.assertIn('error', theirs)
                self.assertIn('error', ours)
