# SPDX-License-Identifier: LGPL-2.1-or-later
"""The agent with a real Keystone and a real Placement that validates tokens there: tokens, scopes, catalogue and rejected requests."""

import base64
import functools
import http.server
import json
import os
import re
import select
import socket
import socketserver
import ssl
import threading
import time
import unittest
import uuid
from pathlib import Path

from tests.env.agent import Agent
from tests.env.bus import Bus
from tests.env.faults import Delay, Hang
from tests.env.hosts import recorded_cells, recorded_host
from tests.env.keystone import AGENT_PASSWORD, CREDENTIAL_SECRET, SECRETS, Keystone
from tests.env.placement import Placement
from tests.env.proxy import Proxy
from tests.env.scratch import Scratch, wait_until
from tests.integration.report.report_case import make_certificate


@functools.lru_cache(maxsize=None)
def services(expiration):
    """Starts Keystone, a Placement that uses it, and a bus once for each expiration, for all tests of this file."""
    scratch = Scratch()
    unittest.addModuleCleanup(scratch.close)
    keystone = Keystone(scratch, expiration).start()
    placement = Placement(scratch, keystone=keystone).start()
    bus = Bus(scratch).start()
    return keystone, placement, bus


class KeystoneCase(unittest.TestCase):
    expiration = 3600

    @classmethod
    def setUpClass(cls):
        cls.keystone, cls.placement, cls.bus = services(cls.expiration)

    def setUp(self):
        self.scratch = Scratch.of(self)
        self.keystone.set_endpoint(self.placement.endpoint)
        self.addCleanup(self.placement.forget_providers)
        self.mark = self.keystone.mark()

    def options(self, **placement):
        return {'auth_type': 'password', 'auth_url': self.keystone.url + '/v3', 'username': 'agent',
                'password': AGENT_PASSWORD, 'user_domain_name': 'Default',
                'project_name': 'service', 'project_domain_name': 'Default',
                'region_name': 'RegionOne', 'timeout': 20, **placement}

    def make_agent(self, config=None, host=None, credentials=None, **placement):
        """Makes an agent that is not started. The files of credentials, {name: secret}, are those of systemd's LoadCredential=."""
        agent = Agent(self.scratch, bus=self.bus, host=host,
                      options={'placement': self.options(**placement), **(config or {})})
        if credentials:
            folder = self.scratch.folder('credentials')
            agent.more_env = {'CREDENTIALS_DIRECTORY': str(folder)}
            for name, secret in credentials.items():
                (folder / name).write_text(secret)
                (folder / name).chmod(0o600)
        return agent

    def start_synced(self, seconds=60, **kwargs):
        agent = self.make_agent(**kwargs).start()
        agent.wait_state('synced', seconds)
        self.assertTrue(self.placement.tree(agent.root()))
        return agent

    def start_refused(self, **kwargs):
        """Starts an agent that fails, and returns it with the sync_error of its status."""
        agent = self.make_agent(**kwargs).start()
        wait_until(lambda: agent.status().get('sync_error'), 30, 'a refusal')
        return agent, agent.status()['sync_error']

    def n_tokens(self, user='agent'):
        return len(self.keystone.tokens_since(self.mark, user))


NO_PROJECT = {'project_name': None, 'project_domain_name': None}


class TestScopes(KeystoneCase):
    def test_password_and_project(self):
        agent = self.start_synced()
        for _ in range(3):
            agent.ctl('sync')
        self.assertEqual(self.n_tokens(), 1)

    def test_domain_scope_and_an_address_without_version(self):
        self.start_synced(auth_url=self.keystone.url + '/', domain_name='Default', **NO_PROJECT)

    def test_system_scope(self):
        self.start_synced(system_scope='all', **NO_PROJECT)

    def test_application_credential(self):
        self.start_synced(auth_type='v3applicationcredential', username=None, password=None,
                          user_domain_name=None,
                          application_credential_id=self.keystone.credential_id(),
                          application_credential_secret=CREDENTIAL_SECRET, **NO_PROJECT)

    def test_application_credential_by_name(self):
        self.start_synced(auth_type='v3applicationcredential', password=None,
                          application_credential_name='compute-agent',
                          application_credential_secret=CREDENTIAL_SECRET, **NO_PROJECT)

    def test_another_interface_of_another_region(self):
        self.keystone.set_endpoint(self.placement.endpoint, 'RegionTwo', 'admin')
        self.start_synced(region_name='RegionTwo', valid_interfaces='admin, public')

    def test_auth_section(self):
        """The user is in the section of another service, as nova.conf can have it."""
        user = {key: value for key, value in self.options().items()
                if key not in ('region_name', 'timeout')}
        agent = self.make_agent(config={'placement': {
            'auth_section': 'service_user', 'region_name': 'RegionOne'},
            'service_user': {**user, 'send_service_user_token': 'true'}}).start('synced')
        self.assertNotIn('unknown', agent.log())
        shown = agent.ctl('cat-config', '--config', agent.config).stdout
        for secret in SECRETS:
            self.assertNotIn(secret, shown)

    def test_endpoint_override(self):
        self.keystone.set_endpoint('http://127.0.0.1:1')
        self.start_synced(endpoint_override=self.placement.endpoint)


class TestRefusals(KeystoneCase):
    def test_wrong_secret_is_named_and_asked_for_slowly(self):
        agent, words = self.start_refused(password='wrong-Secret-9')
        self.assertIn('Keystone rejected the user agent (401)', words)
        self.assertEqual(agent.status()['sync_state'], 'offline')
        for _ in range(5):
            agent.ctl('sync', check=False)
        self.assertEqual(self.keystone.tokens_since(self.mark, 'agent'), [401])
        self.assertNotIn('wrong-Secret-9', agent.log())
        self.assertEqual(agent.log().count('The credential of [placement] is refused'), 1)

        # A reload uses the corrected password at once.
        agent.configure({'placement': {'password': AGENT_PASSWORD}})
        agent.ctl('reload')
        agent.wait_state('synced')
        self.assertEqual(self.keystone.tokens_since(self.mark, 'agent'), [401, 201])

    def test_a_refusal_of_another_server_is_an_outage(self):
        """A proxy that requires its own password. The agent does not blame the credential, and retries soon."""
        class Refuser(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = b'<html>Who are you?</html>'
                self.send_response(401)
                self.send_header('Content-Length', str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET

            def log_message(self, *args):
                pass

        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Refuser)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        agent, words = self.start_refused(auth_url='http://127.0.0.1:%d/v3' % server.server_port)
        self.assertIn('A server that is not Keystone rejects the request for a token', words)
        self.assertNotIn('The credential of [placement] is refused', agent.log())
        agent.configure({'placement': {'auth_url': self.keystone.url + '/v3'}})
        agent.ctl('reload')
        agent.wait_state('synced')

    def test_wrong_secret_of_an_application_credential(self):
        _, words = self.start_refused(
            auth_type='v3applicationcredential', username=None, password=None,
            user_domain_name=None, application_credential_id=self.keystone.credential_id(),
            application_credential_secret='wrong-Secret-9', **NO_PROJECT)
        self.assertIn('Keystone rejected the application credential', words)

    def test_a_missing_role_is_named(self):
        agent, words = self.start_refused(username='nobody')
        self.assertIn('(403)', words)
        self.assertIn('needs the role service (in an older Placement', words)
        self.assertEqual(self.n_tokens('nobody'), 1)
        self.assertEqual(self.placement.tree(agent.root()), {})

    def test_a_mistyped_user_or_project_is_named(self):
        # Keystone answers 401 to each of these mistakes.
        for changes in ({'username': 'agnet'}, {'project_name': 'servcie'}, {'user_domain_name': 'Defualt'}):
            agent, words = self.start_refused(**changes)
            agent.stop()
            self.assertIn('Keystone rejected the user %s (401). Check its name, domain and password, and its role in the project %s.' %
                          (changes.get('username', 'agent'), changes.get('project_name', 'service')), words)

    def test_a_placement_that_lets_this_role_read_alone(self):
        policy = self.placement.folder / 'policy.yaml'
        self.addCleanup(policy.write_text, policy.read_text())
        policy.write_text('placement:resource_providers:create: "role:nobody_has_it"\n')
        _, words = self.start_refused()
        self.assertIn('Placement forbids POST /resource_providers (403). The user of [placement] needs the role service (in an older', words)

    def test_claims_without_the_right_to_read(self):
        """Placement's policy changes while the agent runs. Claims are served as during an outage, as the message says."""
        self.addCleanup(self.placement.empty)
        agent = self.start_synced()
        placed = str(uuid.uuid4())
        self.placement.place(placed, {agent.root(): {'VCPU': 1}})
        claim = agent.claim('VCPU=1', placed)
        policy = self.placement.folder / 'policy.yaml'
        before = policy.read_text()
        self.addCleanup(policy.write_text, before)
        policy.write_text('placement:allocations:list: "role:nobody_has_it"\n')
        self.assertEqual(agent.claim('VCPU=1', placed)['id'], claim['id'])
        policy.write_text(''.join('placement:%s: "role:nobody_has_it"\n' % rule for rule in ('allocations:list', 'resource_providers:list')))
        agent.ctl('sync', check=False)
        status = agent.status()
        self.assertEqual(status['sync_state'], 'offline')
        self.assertIn('Placement forbids GET /resource_providers (403)', status['sync_error'])
        self.assertIn("Claims are served from this host's own state", agent.log())
        new = agent.claim('VCPU=1')['consumer']
        policy.write_text(before)
        agent.ctl('sync')
        agent.wait_state('synced')
        wait_until(lambda: self.placement.held(new), 30, 'the pending write')

    def test_no_placement_in_that_region(self):
        _, words = self.start_refused(region_name='RegionNine')
        self.assertIn('region_name', words)
        self.assertIn('RegionOne/internal', words)

    def test_keystone_away_at_the_start(self):
        self.keystone.stop()
        try:
            agent, words = self.start_refused()
        finally:
            self.keystone.start()
        self.assertIn('No token from Keystone', words)
        agent.wait_state('synced', 60)

    def test_a_configuration_that_cannot_work_ends_with_78(self):
        agent = self.start_synced()
        agent.configure({'placement': {'password': None}})
        for verb in (['doctor', '--config-only', '--config', agent.config], ['reload']):
            done = agent.ctl(*verb, code=1)
            self.assertIn('or the credential placement-password (LoadCredential= of the unit, read at its start), which is not set', done.stdout + done.stderr)
            self.assertNotIn('stopped', done.stdout + done.stderr)
        agent.stop()
        for changes, place in (({'username': None}, 'auth_type'),
                               ({'system_scope': 'all'}, 'system_scope'),
                               ({'auth_url': None}, 'auth_type')):
            agent = self.make_agent(**changes)
            done = agent.run()
            lines = agent.config.read_text().splitlines()
            line = 1 + next(i for i, text in enumerate(lines) if text.startswith(place + ' '))
            self.assertEqual(done.returncode, 78, done.stderr)
            self.assertIn('%s:%d: [placement] %s: ' % (agent.config, line, place), done.stderr)


# Cycles run only on request. A token from the second of a revocation would be revoked, too.
NO_TIMER = {'DEFAULT': {'update_resources_interval': 3600}}


class TestChanges(KeystoneCase):
    def revoke_tokens(self):
        """Revokes every token of the user, as an administrator does who sets its password.

        Keystone counts in whole seconds, so it would also revoke a token of the same second.
        """
        time.sleep(1.1)
        self.keystone.admin('PATCH', '/users/' + self.keystone.user_id('agent'), {'user': {'password': AGENT_PASSWORD}})
        time.sleep(1.1)

    def test_a_revoked_token_is_replaced_without_a_failed_cycle(self):
        agent = self.start_synced(config=NO_TIMER)
        mark = self.placement.mark()
        self.revoke_tokens()
        agent.ctl('sync')
        statuses = [status for _, _, status in self.placement.requests_since(mark)]
        self.assertEqual(self.n_tokens(), 2)
        self.assertNotIn('cannot be used', agent.log())
        self.assertLessEqual(statuses.count(401), 4)

    def test_a_moved_endpoint_is_found(self):
        with Proxy(self.placement.port) as proxy:
            self.keystone.set_endpoint(proxy.endpoint)
            agent = self.start_synced()
            self.assertGreater(len(proxy.requests), 0)
        # The old address is closed, and the catalogue has the new one.
        self.keystone.set_endpoint(self.placement.endpoint)
        mark = self.placement.mark()
        wait_until(lambda: self.placement.requests_since(mark), 30, 'a request at the new address')
        agent.wait_state('synced')
        self.assertLessEqual(self.n_tokens(), 3)

    def test_an_address_that_another_service_took_over(self):
        # Keystone listens at this address. It answers in JSON that is not Placement's.
        self.keystone.set_endpoint(self.keystone.url + '/elsewhere')
        agent, _ = self.start_refused()
        self.keystone.set_endpoint(self.placement.endpoint)
        agent.wait_state('synced', 60)

    def test_requests_in_parallel_ask_for_one_token(self):
        agent = self.start_synced(config=NO_TIMER, max_connections=8)
        self.revoke_tokens()
        # The agent reads every provider again, so several requests use the revoked token at once.
        self.make_children(agent, 4)
        agent.ctl('sync')
        self.assertEqual(self.n_tokens(), 2)

    def make_children(self, agent, n):
        for number in range(n):
            self.placement.request('POST', '/resource_providers', {
                'name': 'child%d' % number, 'uuid': str(uuid.uuid4()), 'parent_provider_uuid': agent.root()})

    def test_queued_requests_wait_for_the_next_token(self):
        connections = 4
        with Proxy(self.placement.port) as proxy:
            self.keystone.set_endpoint(proxy.endpoint)
            agent = self.start_synced(config=NO_TIMER, max_connections=connections)
            self.make_children(agent, 16)
            mark = proxy.mark()
            hang = proxy.add(Hang(method='GET', path='/(inventories|traits|aggregates)$'))
            syncing = threading.Thread(target=agent.ctl, args=('sync',))
            syncing.start()
            self.assertTrue(hang.reached.wait(30))
            self.revoke_tokens()
            proxy.remove(hang)
            syncing.join(60)
            statuses = [status for _, _, status in proxy.requests_since(mark)]
        self.assertEqual(self.n_tokens(), 2)
        self.assertGreater(statuses.count(200), 3 * 16)
        self.assertIn(statuses.count(401), range(1, connections + 1))


class _Relay(socketserver.BaseRequestHandler):
    """Terminates TLS and forwards the plain bytes to the target of the server."""

    def handle(self):
        with socket.create_connection(('127.0.0.1', self.server.target)) as inside:
            ends = {self.request: inside, inside: self.request}
            while True:
                ready = [self.request] if self.request.pending() else select.select(ends, [], [])[0]
                for end in ready:
                    data = end.recv(65536)
                    if not data:
                        return
                    ends[end].sendall(data)


class _TlsServer(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """Ignores the error, because the test expects the client to reject the certificate."""


class TestTls(KeystoneCase):
    def setUp(self):
        super().setUp()
        self.certificate = make_certificate(self.scratch.folder('tls'), 'server', 'IP:127.0.0.1')
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.certificate)
        server = _TlsServer(('127.0.0.1', 0), _Relay)
        server.target = self.keystone.port
        server.socket = context.wrap_socket(server.socket, server_side=True,
                                            do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.url = 'https://127.0.0.1:%d/v3' % server.server_address[1]

    def test_cafile_is_for_keystone_too(self):
        self.start_synced(auth_url=self.url, cafile=self.certificate[0])

    def test_no_password_goes_to_a_stranger(self):
        _, words = self.start_refused(auth_url=self.url)
        self.assertIn('No token from Keystone', words)
        self.assertIn('an issuer that this host does not trust', words)
        self.assertEqual(self.n_tokens(), 0)


class TestTokenOfAnother(KeystoneCase):
    """Placement validates tokens at another Keystone, which knows no token of the agent's Keystone. That Keystone answers 401."""

    def setUp(self):
        super().setUp()
        self.other = Keystone(self.scratch)
        self.set_keys(lambda path: base64.urlsafe_b64encode(os.urandom(32)))
        self.other.start()
        self.stranger = Placement(self.scratch, keystone=self.other).start()

    def set_keys(self, make):
        for path in (self.other.folder / 'fernet').iterdir():
            path.write_bytes(make(path))

    def test_it_is_asked_again_within_a_minute_and_when_somebody_asks(self):
        """After a rejected password the agent waits up to 30 minutes, because Keystone can lock accounts. After a rejected token it
        retries sooner."""
        agent, words = self.start_refused(endpoint_override=self.stranger.endpoint)
        for _ in range(8):
            self.assertIn('Placement rejects a new token of Keystone (401)', words)
            before = self.n_tokens()
            agent.ctl('sync', check=False)
            self.assertGreater(self.n_tokens(), before)
            words = agent.status()['sync_error']
        wait = wait_until(lambda: re.search(r'next attempt in (\d+) s', agent.status()['sync_error']), 60, 'a pause')
        self.assertLessEqual(int(wait[1]), 60)
        self.assertEqual({status for _, _, status in self.stranger.requests_since()}, {401})
        self.other.stop()
        self.set_keys(lambda path: (self.keystone.folder / 'fernet' / path.name).read_bytes())
        self.other.start()
        agent.ctl('sync')
        self.assertEqual(agent.status()['sync_state'], 'synced')


class TestExpiry(KeystoneCase):
    expiration = 8

    def test_requests_in_parallel_across_the_end_of_a_token(self):
        """Publishing lasts longer than the token, with several requests at a time. One new token is enough, and all providers are
        written."""
        n_cells = 12
        host = recorded_host('wide', online_cpus='0-%d' % (4 * n_cells - 1), cells=recorded_cells(n_cells))
        with Proxy(self.placement.port) as proxy:
            self.keystone.set_endpoint(proxy.endpoint)
            proxy.add(Delay(0.8))
            agent = self.start_synced(seconds=90, max_connections=4, host=host, config={
                **NO_TIMER, 'compute': {'numa_in_placement': 'true'}})
            took = proxy.requests[-1].began - proxy.requests[0].began
            statuses = [record.status for record in proxy.requests]
            self.assertGreater(proxy.connections, 1)
        self.assertGreater(took, self.expiration)
        self.assertEqual(len(self.placement.tree(agent.root())), n_cells + 1)
        self.assertIn('Nothing to do', agent.ctl('plan').stdout)
        # One of the parallel requests renews the token after three quarters of its lifetime.
        tokens = self.keystone.tokens_since(self.mark, 'agent')
        self.assertEqual(set(tokens), {201})
        self.assertIn(len(tokens), range(2, 2 + int((took + 2) / (self.expiration * 3 / 4))))
        # Only requests that were sent with an old token are rejected.
        self.assertLessEqual(statuses.count(401), 4 * (len(tokens) - 1))
        self.assertNotIn('cannot be used', agent.log())

    def test_many_lives_without_a_failed_cycle(self):
        agent = self.start_synced()
        began = time.monotonic()
        while time.monotonic() - began < 18:
            agent.ctl('sync')
            time.sleep(0.5)
        self.assertIn(self.n_tokens(), range(3, 7))
        self.assertNotIn('cannot be used', agent.log())


class TestDoctor(KeystoneCase):
    """"computectl doctor" makes its own requests, and needs no running service."""

    def findings(self, agent, *args, **env):
        agent.more_env = env
        done = agent.ctl('doctor', '--config', agent.config, '--json=short', *args, check=False)
        found = json.loads(done.stdout)['findings']
        return {finding['check']: finding for finding in found}

    def assert_finding(self, found, check, state, words):
        self.assertEqual(found[check]['state'], state, found)
        self.assertIn(words, found[check]['cause'] or found[check]['text'])
        self.assertEqual(state == 'ok', not found[check]['advice'])

    def test_all_is_well(self):
        found = self.findings(self.make_agent())
        self.assert_finding(found, 'keystone', 'ok', 'a token for project service')
        self.assertIn('service', found['keystone']['text'])
        self.assert_finding(found, 'endpoint', 'ok', self.placement.endpoint)
        self.assert_finding(found, 'version', 'ok', 'microversions up to 1.39')
        self.assertNotIn(AGENT_PASSWORD, json.dumps(found))

    def test_each_wrong_option_is_named(self):
        for changes, check, words in (
                ({'password': 'wrong-Secret-9'}, 'keystone', '(401)'),
                ({'username': 'nobody'}, 'role', '(403)'),
                ({'region_name': 'RegionNine'}, 'keystone', 'region_name'),
                ({'auth_url': 'http://127.0.0.1:1/v3'}, 'keystone', 'Cannot connect'),
                ({'auth_url': self.keystone.url + '/nowhere'}, 'keystone', 'no Keystone at')):
            found = self.findings(self.make_agent(**changes))
            self.assert_finding(found, check, 'bad', words)

    def test_a_wrong_path_is_named(self):
        # Placement answers below the first address, and Keystone below the second.
        for endpoint in (self.placement.endpoint + '/nowhere', self.keystone.url + '/nowhere'):
            found = self.findings(self.make_agent(endpoint_override=endpoint))
            self.assert_finding(found, 'endpoint', 'bad', 'There is no Placement at the endpoint (404 to GET /resource_providers). Check the path')

    def test_no_server_at_the_address_of_the_catalogue(self):
        self.keystone.set_endpoint('http://127.0.0.1:1/placement')
        self.assert_finding(self.findings(self.make_agent()), 'endpoint', 'bad', '127.0.0.1:1')

    def test_a_cloud_of_clouds_yaml(self):
        folder = self.scratch.folder('clouds')
        (folder / 'clouds.yaml').write_text(CLOUDS % self.keystone.url)
        (folder / 'secure.yaml').write_text(SECURE % AGENT_PASSWORD)
        agent = self.make_agent(password='wrong-Secret-9')
        env = {'OS_CLIENT_CONFIG_FILE': str(folder / 'clouds.yaml'),
               'OS_CLIENT_SECURE_FILE': str(folder / 'secure.yaml')}
        found = self.findings(agent, OS_CLOUD='devstack', **env)
        self.assert_finding(found, 'keystone', 'ok', 'a token for system')
        self.assert_finding(found, 'endpoint', 'ok', self.placement.endpoint)
        found = self.findings(agent, '--os-cloud', 'nowhere', OS_CLOUD='devstack', **env)
        self.assertEqual(found['keystone']['state'], 'bad')


CLOUDS = '''clouds:
  devstack:
    auth:
      auth_url: %s
      username: agent
      user_domain_id: default
      system_scope: all
    region_name: RegionOne
    interface: internal
'''
SECURE = '''clouds:
  devstack:
    auth:
      password: %s
'''


class TestSecrets(KeystoneCase):
    # Checks that no secret and no token is in /proc, the log, the state folder, or the output of computectl.
    def assert_nowhere(self, agent):
        pid = agent.child.pid
        for name in ('cmdline', 'environ', 'status'):
            text = Path('/proc/%d/%s' % (pid, name)).read_bytes()
            for secret in SECRETS:
                self.assertNotIn(secret.encode(), text)
        written = {'log': agent.log()}
        for path in agent.state.rglob('*'):
            if path.is_file():
                written[path.name] = path.read_bytes().decode(errors='replace')
        for verb in (['status'], ['tree'], ['plan'], ['claims'], ['sync'], ['reload'],
                     ['doctor', '--all', '--config', agent.config], ['cat-config', '--config', agent.config],
                     ['doctor', '--config-only', '--config', agent.config],
                     ['identity', 'show', '--config', agent.config]):
            for json_option in ('off', 'short'):
                done = agent.ctl(*verb, '--json=' + json_option, check=False)
                written[verb[0] + ' ' + json_option] = done.stdout + done.stderr
        for name, text in written.items():
            with self.subTest(name):
                for secret in SECRETS:
                    self.assertNotIn(secret, text)
                # Fernet tokens begin with this text.
                self.assertNotIn('gAAAA', text)

    def test_credentials_go_first_and_no_secret_is_shown(self):
        agent = self.make_agent({'DEFAULT': {'debug': 'true'}}, password='wrong-Secret-9',
                                credentials={'placement-password': AGENT_PASSWORD + '\n'}).start('synced')
        self.assertIn('POST %s/v3/auth/tokens: 201 (req-' % self.keystone.url, agent.log())
        self.assert_nowhere(agent)

    def test_cat_config_shows_none(self):
        agent = self.make_agent(application_credential_secret=CREDENTIAL_SECRET)
        shown = agent.ctl('cat-config', '--config', agent.config).stdout
        self.assertIn('username = agent', shown)
        for secret in SECRETS:
            self.assertNotIn(secret, shown)
