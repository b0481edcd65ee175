# SPDX-License-Identifier: LGPL-2.1-or-later
"""This version reads the state folder of each release and keeps all of its data.

tests/fixtures/releases has the folders as tests/run/keep_state.py wrote them. Each release in NEWS.md must have its folder.
"""

import json
import re
import sqlite3
import unittest
from pathlib import Path

from tests.env.agent import Agent
from tests.env.bus import Bus
from tests.env.scratch import Scratch
from tests.run.keep_state import expected

ROOT = Path(__file__).resolve().parents[3]
RELEASES = ROOT / 'tests/fixtures/releases'
OPTIONS = {'DEFAULT': {'claim_expiry_time': 0}, 'devices': {'enabled_mdev_types': 'nvidia-35'},
           'compute': {'cpu_shared_set': '0-1,8-9', 'cpu_dedicated_set': '2-7,10-15', 'numa_in_placement': 'root'}}


class TestReleases(unittest.TestCase):
    maxDiff = None

    # Starts the agent with the state folder of a release, and compares its documents with expected.json.
    def check(self, folder):
        scratch = Scratch()
        self.addCleanup(scratch.close)
        agent = Agent(scratch, bus=Bus(scratch).start(), host=json.loads((folder / 'host.json').read_text()), options=OPTIONS)
        for path in folder.iterdir():
            if path.name not in ('claim.sql', 'host.json', 'expected.json'):
                (agent.state / path.name).write_bytes(path.read_bytes())
        with sqlite3.connect(agent.state / 'claim.sqlite') as database:
            database.executescript((folder / 'claim.sql').read_text())
        database.close()
        agent.start('standalone')
        self.assertEqual(expected(agent), json.loads((folder / 'expected.json').read_text()))
        # The agent sets files that it cannot read aside.
        self.assertEqual([path.name for path in agent.state.iterdir() if re.search(r'\.(bad|broken|corrupt)', path.name)], [])
        agent.ctl('claim', '--consumer', '99999999-9999-4999-8999-999999999999', '--resources', 'VCPU=1')
        agent.restart('standalone')
        self.assertEqual(len(agent.claims()), sum(claim['state'] != 'released' for claim in expected(agent)['claims']))

    def test_each_release(self):
        folders = sorted(RELEASES.iterdir())
        self.assertGreaterEqual(len(folders), 2)
        for folder in folders:
            with self.subTest(folder.name):
                self.check(folder)

    def test_each_release_of_the_news_has_its_folder(self):
        released = re.findall(r'^## (\d+\.\d+\.\d+) \(\d', (ROOT / 'NEWS.md').read_text(), re.M)
        self.assertEqual(set(released) - {path.name for path in RELEASES.iterdir()}, set())
