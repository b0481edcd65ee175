# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs compute-agentd with its own configuration and state, and computectl against it."""

import json
import os
import re
import socket
import subprocess
import threading
import uuid
from pathlib import Path

from tests.env.scratch import EnvError, wait_until
from tests.env.service import Service
from tests.env.shim import build_shim

_ROOT = Path(__file__).resolve().parents[2]


def build_folder():
    """Returns the folder of the built programs: $COMPUTE_AGENT_BUILD, or build/ in the source tree."""
    return Path(os.environ.get('COMPUTE_AGENT_BUILD', _ROOT / 'build')).resolve()


def has_sanitizers():
    """True if the programs under test have sanitizers, which make them two to three times as slow."""
    return b'__asan_init' in (build_folder() / 'compute-agentd').read_bytes()


# libvirt 11 can leak one virError of 80 bytes when virConnectClose() runs beside an event loop. A program of five lines shows it too. The
# stack ends in GLib, which keeps no frame pointers. Unwinding without frame pointers makes the tests three times as long, so the leak is
# matched by its size.
_LOST_BY_LIBVIRT = re.compile(r'Direct leak of (\d+) byte\(s\) in (\d+) object\(s\) allocated from:\n'
                              r' +#0 \S+ in calloc .*\n +#1 \S+ in g_malloc0 .*\n\n')
_ONLY_LEAKS = re.compile(r'==\d+==ERROR: LeakSanitizer: detected memory leaks\n\nSUMMARY: .*\n')


def refuse_sanitizers(program, text):
    """Raises EnvError if text has a report of a sanitizer, apart from the known leak of libvirt."""
    found = _LOST_BY_LIBVIRT.sub(lambda leak: '' if int(leak[1]) == 80 * int(leak[2]) else leak[0], text)
    found = _ONLY_LEAKS.sub('', found)
    if 'Sanitizer' in found or 'runtime error: ' in found:
        raise EnvError('%s:\n%s' % (program, text[-8000:]))


class Agent(Service):
    """compute-agentd in the foreground, with its state in its own folder.

    placement: a service or a URL. uri: the connection URI of libvirt. bus: a Bus. Each can be omitted. options: more configuration as
    {section: {key: value}}; a list of values repeats the key. within: the argv prefix of a command that runs the programs, for example
    Libvirtd.enter() for its /sys. host: the host of the static driver (tests.env.hosts.recorded_host()), which replaces libvirt.

    A notification socket replaces that of systemd. notifications has the lines that the daemon sent, and start() waits for READY=1.
    """

    name = 'agent'

    def __init__(self, scratch=None, placement=None, uri=None, bus=None, options=None,
                 within=(), host=None):
        super().__init__(scratch)
        self.within = list(within)
        self.more_env = {}
        self.bus = bus
        self.state = self.folder / 'state'
        self.state.mkdir(mode=0o700)
        self.config = self.folder / 'compute-agent.conf'
        self.options = {
            'DEFAULT': {'state_path': self.folder / 'nova', 'instances_path': self.folder, 'update_resources_interval': 2},
            'agent': {'state_dir': self.state, 'start_jitter_sec': 0},
            'libvirt': {'connection_uri': uri or 'test:///default', 'keepalive_interval': 1,
                        'keepalive_count': 2},
            'devices': {'enabled_mdev_types': 'nvidia-35'},
        }
        if placement:
            endpoint = getattr(placement, 'endpoint', placement)
            if getattr(placement, 'socket_path', None):
                endpoint = 'unix://%s' % placement.socket_path
            self.options['placement'] = {'auth_type': 'admin_token', 'token': 'admin',
                                         'endpoint_override': endpoint, 'timeout': 5}
        if host is not None:
            self.configure({'DEFAULT': {'compute_driver': 'static'}, 'devices': {'enabled_mdev_types': None}})
            self.record(host)
        self.configure(options or {})
        self.notifications = []
        self.watchdog_usec = None
        self._notify_path = str(self.folder / 'notify.sock')
        self._notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._notify.bind(self._notify_path)
        # sd_notify() blocks while the queue of the socket is full, so a thread reads all the time, as systemd does.
        self._reader = threading.Thread(target=self._read_notifications, daemon=True)
        self._reader.start()
        self.scratch.on_close(self._stop_reading)
        self.scratch.on_close(self._look_for_sanitizers)
        self.n_starts = 0

    def configure(self, options):
        """Merges options into the configuration and writes the file. The value None omits a key."""
        for section, keys in options.items():
            self.options.setdefault(section, {}).update(keys)
        lines = []
        for section, keys in self.options.items():
            lines.append('[%s]' % section)
            for key, values in keys.items():
                values = values if isinstance(values, list) else [values]
                lines += ['%s = %s' % (key, value) for value in values if value is not None]
        self.config.write_text('\n'.join(lines) + '\n')
        self.config.chmod(0o600)

    def record(self, host):
        """Writes the host that the static driver reads."""
        path = self.folder / 'host.json'
        path.write_text(json.dumps(host))
        self.configure({'static': {'path': path}})

    def env(self):
        env = self.bus.env() if self.bus else {
            **os.environ, 'DBUS_SYSTEM_BUS_ADDRESS': 'unix:path=%s' % (self.folder / 'no-bus')}
        env.pop('JOURNAL_STREAM', None)
        env.pop('NOTIFY_SOCKET', None)
        # A leak must not change the exit code: _look_for_sanitizers() finds the report in the log.
        env['LSAN_OPTIONS'] = 'exitcode=0'
        return {**env, **self.more_env}

    def preload(self, shim, **env):
        """Preloads a library of tests/shims into the programs that start from now on. env: environment variables for the library."""
        library = build_shim(shim, self.folder / (shim + '-shim.so'))
        self.more_env = {**env, 'LD_PRELOAD': str(library),
                         # The sanitizer's library is loaded after the preloaded one.
                         'ASAN_OPTIONS': os.environ.get('ASAN_OPTIONS', '') + ':verify_asan_link_order=0'}

    def argv(self, *args):
        return [*self.within, str(build_folder() / 'compute-agentd'), '--config', str(self.config), *map(str, args)]

    def _spawn(self):
        self.notifications = []
        self.n_starts += 1
        env = {**self.env(), 'NOTIFY_SOCKET': self._notify_path}
        if self.watchdog_usec:
            env['WATCHDOG_USEC'] = str(self.watchdog_usec)
        child = self.scratch.spawn(self.argv(), 'agent-%d' % self.n_starts, self.folder, env=env,
                                   wrapper=bool(self.within))
        # Stop it before the scratch folder kills it: a sanitizer reports leaks only at a normal exit.
        self.scratch.on_close(child.stop)
        return child

    def log(self):
        """Returns the log of the daemon that runs now or ran last."""
        path = self.folder / ('agent-%d.log' % self.n_starts)
        return path.read_text(errors='replace') if path.exists() else ''

    def _read_notifications(self):
        while message := self._notify.recv(65536):
            self.notifications += message.decode().splitlines()

    def _stop_reading(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto(b'', self._notify_path)
        self._reader.join()
        self._notify.close()

    def _look_for_sanitizers(self):
        for path in sorted(self.folder.glob('agent-*.log')):
            refuse_sanitizers('compute-agentd', path.read_text(errors='replace'))

    def start(self, state=None, wait=True):
        """Starts the daemon. With state, returns only when SyncState has this value. Without wait, returns at once."""
        super().start(wait)
        if state:
            self.wait_state(state)
        return self

    def restart(self, state=None):
        self.stop()
        return self.start(state)

    def lose_claims(self, damaged=False):
        """Removes the claim database of the stopped agent, or overwrites it with garbage if damaged is true."""
        for path in self.state.glob('claim.sqlite*'):
            if not damaged:
                path.unlink()
            elif not path.name.endswith('-shm'):
                path.write_bytes(b'\x13' * 8192)

    def reboot(self):
        """Simulates a reboot: rewrites the agent's state so that the devices were last seen in another boot."""
        path = self.state / 'devices.json'
        ledger = json.loads(path.read_text())
        for device in ledger['devices']:
            device['boot_id'] = '11111111-1111-4111-8111-111111111111'
        path.write_text(json.dumps(ledger))

    def answers(self):
        return 'READY=1' in self.notifications

    def run(self, *args, timeout=60, code=None):
        """Runs compute-agentd to its end, for example with --once. Returns the CompletedProcess. code: the expected exit code, or None for
        any."""
        return self._run(self.argv(*args), timeout, code)

    def _run(self, argv, timeout, code):
        done = subprocess.run(argv, env={**self.env(), 'SYSTEMD_PAGER': ''}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, check=False)
        what = ' '.join(argv[len(self.within):])
        refuse_sanitizers(what, done.stderr)
        if code not in (None, done.returncode):
            raise EnvError('%s: exit %d, not %d: %s\n--- log of the agent:\n%s' % (
                what, done.returncode, code, done.stdout + done.stderr, self.log()[-2000:]))
        return done

    def ctl_argv(self, *args):
        """Returns the command line of computectl."""
        return [*self.within, str(build_folder() / 'computectl'), *map(str, args)]

    def ctl(self, *args, check=True, timeout=60, code=0):
        """Runs computectl. Returns the CompletedProcess. Raises EnvError for another exit code than code, unless check is false."""
        return self._run(self.ctl_argv(*args), timeout, code if check else None)

    def begin(self, *args):
        """Starts computectl. Returns the Popen, with standard output and error in pipes."""
        return subprocess.Popen(self.ctl_argv(*args), env=self.env(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def ctl_json(self, *args, **how):
        return json.loads(self.ctl(*args, '--json=short', **how).stdout)

    def end_claims(self, placement, placed):
        """Creates claims for the allocations in placed ({consumer: 'VCPU=1'}) and releases them. It first moves the times of the
        allocations 4 seconds back. This is more than Placement's clock and its whole seconds can differ, so they are evidence that the
        servers ended."""
        for consumer, resources in placed.items():
            placement.written_later(consumer, -4)
            self.ctl('release', self.claim(resources, consumer)['id'])

    def claim(self, resources, consumer=None, *more, check=True, code=0):
        """Creates a claim for a consumer, by default for a new one. Returns the claim. Returns the CompletedProcess if check is false or
        code is not 0."""
        done = self.ctl('claim', '--consumer', consumer or uuid.uuid4(), '--resources', resources, *more, '--json=short',
                        check=check, code=code)
        return json.loads(done.stdout) if check and code == 0 else done

    def claims(self, consumer=None):
        """Returns the current claims, of all consumers or of one."""
        return [claim for claim in self.ctl_json('claims')['claims'] if consumer in (None, claim['consumer'])]

    def release_all(self):
        for claim in self.claims():
            self.ctl('release', claim['id'])

    def problems(self):
        """Returns the texts of the problems with claims that computectl prints."""
        done = self.ctl('claims', '--problems', '--json=short', check=False)
        problems = json.loads(done.stdout)['problems']
        if done.returncode != (3 if problems else 0):
            raise EnvError('claims --problems: exit %d: %s' % (done.returncode, problems))
        return [problem['text'] for problem in problems]

    def status(self):
        return json.loads(self.ctl('status', '--json=short', check=False).stdout or '{}')

    def wait_state(self, state, seconds=90):
        """Returns when SyncState has the value state, and the host was polled. Raises EnvError with status and log after the
        given seconds."""
        def check():
            status = self.status()
            # A host without Placement is standalone before its first poll, too.
            return status.get('sync_state') == state and (state != 'standalone' or status.get('last_poll_usec'))

        try:
            wait_until(check, seconds, 'sync state %s' % state, step=0.1)
        except EnvError as error:
            raise EnvError('%s\nstatus: %s\nlog:\n%s' % (error, self.status(), self.log()[-3000:]))

    def root(self):
        """Returns the uuid of the root provider."""
        return (self.state / 'compute_id').read_text().strip()
