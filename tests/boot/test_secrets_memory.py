# SPDX-License-Identifier: LGPL-2.1-or-later
"""A core dump of the agent has none of its secrets, and by default the kernel makes no core dump.

The test makes no core dump. It reads the memory that a dump would have from the running process: the mappings without the flag "dd"
of the kernel. The test is in this folder because it needs the packaged programs. A sanitizer has its own heap.
"""

import os
import re
import unittest
from pathlib import Path

from tests.env.agent import Agent
from tests.env.hosts import recorded_host
from tests.env.keystone import AGENT_PASSWORD, CREDENTIAL_SECRET
from tests.env.proxy import Proxy
from tests.env.scratch import Scratch
from tests.integration.agent.test_keystone import NO_PROJECT, KeystoneCase

_MAPPING = re.compile(r'^([0-9a-f]+)-([0-9a-f]+) (\S+) ')


def dumped(pid):
    """Returns (name, bytes) of each mapping that a core dump has."""
    mappings, flags = [], []
    for line in Path('/proc/%d/smaps' % pid).read_text().splitlines():
        found = _MAPPING.match(line)
        if found:
            mappings.append((int(found[1], 16), int(found[2], 16), found[3], line.split()[-1]))
        elif line.startswith('VmFlags:'):
            flags.append(line.split()[1:])
    with open('/proc/%d/mem' % pid, 'rb', buffering=0) as memory:
        for (begin, end, rights, name), flag in zip(mappings, flags):
            if 'dd' in flag or rights[0] != 'r' or name in ('[vvar]', '[vsyscall]'):
                continue
            memory.seek(begin)
            yield name, memory.read(end - begin)


class TestCore(KeystoneCase):
    def setUp(self):
        super().setUp()
        self.proxy = self.enterContext(Proxy(self.placement.port))

    def start(self, credentials, **options):
        agent = self.make_agent(credentials=credentials, endpoint_override=self.proxy.endpoint, password=None, **options).start()
        agent.wait_state('synced', 60)
        return agent

    def sent(self):
        """Returns the tokens that were sent to Placement, oldest first."""
        return list(dict.fromkeys(record.headers['X-Auth-Token'] for record in self.proxy.requests
                                  if 'X-Auth-Token' in record.headers))

    def check_nothing(self, agent, secrets):
        # If a text was partly overwritten, its end remains.
        parts = {secret: secret.encode()[-24:] for secret in secrets}
        found = ['%s of %d bytes in %s' % (secret[:8], len(secret), name) for name, memory in dumped(agent.child.pid)
                 for secret, part in parts.items() if part in memory]
        self.assertEqual(found, [])

    def check_seen(self, agent):
        """Finds a text that is not secret, which proves that the search works."""
        self.assertTrue(any(b'compute-agent/' in memory for _, memory in dumped(agent.child.pid)))

    def renew(self, agent, n):
        """Makes the agent get n more tokens, one after another."""
        for _ in range(n):
            before = len(self.sent())
            agent.ctl('reload')
            agent.ctl('sync')
            self.assertEqual(len(self.sent()), before + 1)

    def test_password_and_tokens(self):
        agent = self.start({'placement-password': AGENT_PASSWORD})
        self.renew(agent, 3)
        self.check_seen(agent)
        self.check_nothing(agent, [AGENT_PASSWORD, *self.sent()])

    def test_application_credential(self):
        agent = self.start({'placement-application-credential-secret': CREDENTIAL_SECRET},
                           auth_type='v3applicationcredential', username=None, user_domain_name=None,
                           application_credential_id=self.keystone.credential_id(), **NO_PROJECT)
        self.renew(agent, 2)
        self.check_nothing(agent, [CREDENTIAL_SECRET, *self.sent()])

    def test_refused_and_away(self):
        """Failed and repeated requests leave no secrets either."""
        agent = self.start({'placement-password': AGENT_PASSWORD})
        self.keystone.kill()
        self.addCleanup(self.keystone.start)
        for _ in range(3):
            agent.ctl('sync', check=False)
        self.proxy.refuse()
        agent.ctl('sync', check=False)
        self.proxy.listen()
        agent.ctl('sync', check=False)
        self.check_nothing(agent, [AGENT_PASSWORD, *self.sent()])


@unittest.skipIf(os.getuid() != 0, 'needs root')
class TestDumpable(unittest.TestCase):
    def owner(self, limit):
        """Returns the owner of the memory file in /proc of an agent of another user. It is root if the kernel makes no core dump of
        the process."""
        with Scratch() as scratch:
            scratch.path.chmod(0o755)
            agent = Agent(scratch, host=recorded_host('host'), within=['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups',
                                                                       'prlimit', '--core=%s' % limit])
            for path in [agent.folder, *agent.folder.rglob('*')]:
                os.chown(path, 65534, 65534)
            agent.start()
            return os.stat('/proc/%d/mem' % agent.child.pid).st_uid

    def test_no_core_unless_the_limit_is_raised(self):
        self.assertEqual(self.owner('0'), 0)
        self.assertEqual(self.owner('unlimited'), 65534)
