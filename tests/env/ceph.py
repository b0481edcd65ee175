# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs a private Ceph cluster on loopback: one monitor, one manager and one OSD in memory. It needs Debian's ceph-mon, ceph-mgr and
ceph-osd."""

import json
import signal
import subprocess
import uuid

from tests.env.scratch import EnvError, free_port, wait_until

CONF = '''[global]
fsid = {fsid}
mon host = v1:127.0.0.1:{port}
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
keyring = {folder}/keyring
run dir = {folder}
admin socket = {folder}/$name.asok
log file = {folder}/$name.log
pid file =
osd pool default size = 1
osd crush chooseleaf type = 0
ms bind ipv6 = false
ms type = async+posix
[mon]
mon data = {folder}/mon
mon allow pool delete = true
[mgr]
mgr data = {folder}/mgr
mgr modules =
[osd]
osd data = {folder}/osd
osd objectstore = memstore
memstore device bytes = {bytes}
'''


class Ceph:
    """A Ceph cluster. start() returns when the OSD is in and a pool exists."""

    def __init__(self, scratch, size=8 << 30):
        self.monitor = None
        self.scratch, self.folder, self.port = scratch, scratch.folder('ceph'), free_port()
        self.fsid = str(uuid.uuid4())
        self.conf = self.folder / 'ceph.conf'
        self.conf.write_text(CONF.format(fsid=self.fsid, port=self.port, folder=self.folder, bytes=size))
        for name in ('mon', 'mgr', 'osd'):
            (self.folder / name).mkdir()

    def run(self, *argv, timeout=60):
        done = subprocess.run([*map(str, argv)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=timeout, check=False)
        if done.returncode != 0:
            raise EnvError('%s: exit %d: %s' % (argv, done.returncode, done.stderr))
        return done.stdout

    def ceph(self, *argv):
        return self.run('ceph', '--conf', self.conf, *argv)

    def _make_keys(self):
        keyring = self.folder / 'keyring'
        self.run('ceph-authtool', '--create-keyring', keyring, '--gen-key', '-n', 'mon.', '--cap', 'mon', 'allow *')
        for name, caps in (('client.admin', ('mon', 'osd', 'mgr')), ('mgr.x', ('mon', 'osd', 'mgr')), ('osd.0', ('mon', 'osd', 'mgr'))):
            caps = [word for kind in caps for word in ('--cap', kind, 'allow profile osd' if name == 'osd.0' and kind == 'mon' else 'allow *')]
            self.run('ceph-authtool', keyring, '--gen-key', '-n', name, *caps)

    def _spawn(self, program, name):
        return self.scratch.spawn([program, '-f', '--conf', str(self.conf), '-i', name], '%s.%s' % (program, name), self.folder)

    def start(self):
        self._make_keys()
        monmap = self.folder / 'monmap'
        self.run('monmaptool', '--create', '--addv', 'x', '[v1:127.0.0.1:%d]' % self.port, '--fsid', self.fsid, monmap)
        self.run('ceph-mon', '--conf', self.conf, '--mkfs', '-i', 'x', '--monmap', monmap, '--keyring', self.folder / 'keyring')
        self.monitor = self._spawn('ceph-mon', 'x')
        wait_until(self._answers, 60, 'the monitor')
        self._spawn('ceph-mgr', 'x')
        self.ceph('osd', 'new', str(uuid.uuid4()))
        self.run('ceph-osd', '--conf', self.conf, '-i', '0', '--mkfs', '--osd-uuid', self._osd_uuid())
        self._spawn('ceph-osd', '0')
        wait_until(lambda: json.loads(self.ceph('osd', 'stat', '--format=json')).get('num_up_osds') == 1, 90, 'the OSD', step=0.5)
        self.ceph('osd', 'pool', 'create', 'vms', '8')
        wait_until(lambda: json.loads(self.ceph('df', '--format=json'))['stats']['total_bytes'] > 0, 90, 'the size of the cluster', step=0.5)
        return self

    def make_user(self, name, pool):
        """Creates a user with the rights on the pool that Nova needs, and with its own keyring."""
        keyring = self.folder / ('%s.keyring' % name)
        keyring.write_text(self.ceph('auth', 'get-or-create', 'client.' + name, 'mon', 'profile rbd', 'osd', 'profile rbd pool=' + pool))
        with self.conf.open('a') as conf:
            conf.write('[client.%s]\nkeyring = %s\n' % (name, keyring))

    def pause(self):
        """Stops the monitor with SIGSTOP, so that it answers no request."""
        self.monitor.signal(signal.SIGSTOP)

    def go_on(self):
        self.monitor.signal(signal.SIGCONT)

    def _osd_uuid(self):
        return json.loads(self.ceph('osd', 'dump', '--format=json'))['osds'][0]['uuid']

    def _answers(self):
        try:
            self.ceph('status', '--connect-timeout', '5')
        except EnvError:
            return False
        return True
