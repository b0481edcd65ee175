# SPDX-License-Identifier: LGPL-2.1-or-later
"""Writes lines of the kernel to journal files, with systemd-journal-remote, and starts compute-agent-health on them."""

import os
import subprocess
import time
import uuid
from pathlib import Path

from tests.env.agent import build_folder

REMOTE = '/lib/systemd/systemd-journal-remote'
SHIPPED = Path(__file__).resolve().parents[2] / 'health.d'


def this_boot():
    """Returns the boot id in the journal's form."""
    return Path('/proc/sys/kernel/random/boot_id').read_text().strip().replace('-', '')


class KernelJournal:
    """A folder with one journal file. The writer is a child of this process, and stop() ends it."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.begin_usec = time.monotonic_ns() // 1000
        self.writer = subprocess.Popen([REMOTE, '-o', str(self.folder / 'kernel.journal'), '-'],
                                       stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def write(self, *lines, boot=None, ago_sec=0, transport='kernel', identifier='kernel'):
        """Writes lines as entries of the kernel. boot: their boot id; default: this boot."""
        self.write_raw(b''.join(self.entry(line, boot, ago_sec, transport, identifier) for line in lines))

    def write_raw(self, entries):
        self.writer.stdin.write(entries)
        self.writer.stdin.flush()

    @staticmethod
    def entry(line, boot=None, ago_sec=0, transport='kernel', identifier='kernel'):
        """Returns one entry in journald's export format."""
        return ('__REALTIME_TIMESTAMP=%d\n__MONOTONIC_TIMESTAMP=%d\n_BOOT_ID=%s\n_TRANSPORT=%s\nSYSLOG_IDENTIFIER=%s\nMESSAGE=%s\n\n' % (
            time.time_ns() // 1000 - int(ago_sec * 1e6), time.monotonic_ns() // 1000, boot or this_boot(), transport, identifier,
            line)).encode()

    def stop(self):
        if self.writer.poll() is None:
            self.writer.stdin.close()
            self.writer.wait(30)


def helper(folder, journal=None, pipe=None, rules=(SHIPPED,), sysfs='/nonexistent'):
    """Writes a program that starts compute-agent-health with other sources. Returns the environment that selects it."""
    path = Path(folder) / 'health-helper'
    options = ['--rules=%s' % rule for rule in rules] + ['--sysfs=%s' % sysfs]
    options += ['--journal=%s' % journal] if journal else []
    options += ['--pipe=%s' % pipe] if pipe else []
    path.write_text('#!/bin/sh\nexec %s %s "$@"\n' % (build_folder() / 'compute-agent-health', ' '.join(options)))
    path.chmod(0o755)
    return {'COMPUTE_AGENT_HEALTH': str(path)}


def new_boot():
    """Returns the id of another boot."""
    return uuid.uuid4().hex


def make_fifo(path):
    os.mkfifo(path)
    return path
