#!/usr/bin/python3 -IS
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A FUSE mount whose server never answers, like the mount of a file server that is down.

As a program it mounts at the folder argv[1], prints "mounted", and keeps the mount until it ends. Then the kernel ends each waiting
call.
"""

import ctypes
import os
import signal
import sys

_HERE = os.path.abspath(__file__)


class HungMount:
    """Mounts at path, in the mount namespace that the argv prefix `within` enters. close() can be called again."""

    def __init__(self, scratch, path, within=()):
        self._process = scratch.spawn([*within, '/usr/bin/python3', '-I', '-S', _HERE, str(path)], 'hung-mount')
        self._process.wait_ready(lambda: 'mounted' in self._process.log_tail(), 10, 'the mount')
        scratch.on_close(self.close)

    def close(self):
        self._process.stop()


def main(path):
    libc = ctypes.CDLL(None, use_errno=True)
    fuse = os.open('/dev/fuse', os.O_RDWR)
    options = b'fd=%d,rootmode=40000,user_id=0,group_id=0' % fuse
    if libc.mount(b'hung', path.encode(), b'fuse', 0, options) != 0:
        sys.exit('mount: %s' % os.strerror(ctypes.get_errno()))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    print('mounted', flush=True)
    try:
        signal.pause()
    finally:
        os.close(fuse)
        libc.umount2(path.encode(), 2)  # MNT_DETACH


if __name__ == '__main__':
    main(sys.argv[1])
