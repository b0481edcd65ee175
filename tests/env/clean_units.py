# SPDX-License-Identifier: LGPL-2.1-or-later
"""A unit manager for the cleaning of devices: a script in place of systemctl, and compute-agent-prepare --clean after each stamp.

tests/boot/test_clean.py has the real ones.
"""

import os
import shutil
import subprocess
import threading

from tests.env.agent import build_folder

SYSTEMCTL = '''#!/bin/sh
cd "${0%/*}/.."
case "$1" in
show) printf 'ActiveState=failed\\nLoadState=loaded\\nType=oneshot\\nRemainAfterExit=no\\n' ;;
is-system-running) echo running ;;
*)
    # As systemd does: a unit that runs is waited for, not started twice.
    exec 9>"lock-$3"
    flock -n 9 || { flock 9; [ ! -e "fail-$3" ]; exit; }
    echo "$3" >>started
    while [ -e "hold-$3" ]; do sleep 0.05; done
    [ -e "fail-$3" ] && exit 1
    echo "$3" >>done ;;
esac
'''


class CleanUnits:
    """folder has the files of the units: started and done list them, hold-UNIT delays one, and fail-UNIT makes one fail.

    devices: {address: (vendor, product)} of /sys. It must be made before the agent, which gets its runtime folder from the environment.
    """

    def __init__(self, scratch, devices):
        self.folder, self.run, self.sys, self.proc = (scratch.folder(name) for name in ('units', 'run', 'sys', 'proc'))
        (self.run / 'compute-agent').mkdir()
        (self.folder / 'bin').mkdir()
        for name, text in (('systemctl', SYSTEMCTL), ('busctl', '#!/bin/sh\necho "a(sbbsi) 0"\n'),
                           ('journalctl', '#!/bin/sh\necho "sanitize: device error 7"\n')):
            (self.folder / 'bin' / name).write_text(text)
            (self.folder / 'bin' / name).chmod(0o755)
        for address, (vendor, product) in devices.items():
            device = self.sys / 'bus/pci/devices' / address
            device.mkdir(parents=True)
            (device / 'vendor').write_text('0x%04x\n' % vendor)
            (device / 'device').write_text('0x%04x\n' % product)
            (device / 'iommu_group').symlink_to('../../kernel/iommu_groups/%s' % address[6])
        self.log, self.program = scratch.path / 'clean.log', None
        self._stops, self._watcher = threading.Event(), None
        os.environ['RUNTIME_DIRECTORY'] = str(self.run / 'compute-agent')

    def start(self, config):
        """Starts the program after each change of the stamp, as the path unit does. config: the agent's file."""
        self._watcher = threading.Thread(target=self._watch, args=(config,))
        self._watcher.start()

    def stop(self):
        for path in self.folder.glob('hold-*'):
            path.unlink(missing_ok=True)
        self._stops.set()
        if self._watcher:
            self._watcher.join()
        os.environ.pop('RUNTIME_DIRECTORY', None)

    def _watch(self, config):
        path, seen = self.run / 'compute-agent/clean-wanted', None
        env = {**os.environ, 'PATH': '%s:%s' % (self.folder / 'bin', os.environ['PATH'])}
        while not self._stops.wait(0.05):
            now = path.read_text() if path.exists() else None
            if now == seen:
                continue
            seen = now
            with self.log.open('a') as log, \
                    subprocess.Popen([build_folder() / 'compute-agent-prepare', '--clean', '--config', config, '--sys', self.sys,
                                      '--proc', self.proc, '--run', self.run], env=env, stdout=log, stderr=log) as self.program:
                while self.program.poll() is None and not self._stops.wait(0.02):
                    pass
                if self.program.poll() is None:
                    self.program.kill()

    def read(self, name):
        """Returns the names of the units that started or are done, in their order."""
        path = self.folder / name
        return path.read_text().split() if path.exists() else []

    def forget(self):
        """Removes what a reboot of the host removes: the results."""
        shutil.rmtree(self.run / 'compute-agent-clean', ignore_errors=True)
