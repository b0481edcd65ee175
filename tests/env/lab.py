# SPDX-License-Identifier: LGPL-2.1-or-later
"""Placement, libvirtd and a bus to try things on by hand.

    python3 -m tests.env.lab [--host demo|FILE.json] [--server gunicorn|simple] [--describe]

Prints one JSON object (uri, endpoint, token, bus, folder, sys, enter) on one line and stays
until SIGINT, SIGTERM or the end of its input; then it removes everything. FILE.json is what
--describe prints. Where namespaces are not allowed, uri is that of libvirt's test driver.
"""

import argparse
import json
import signal
import sys

from tests.env.bus import Bus
from tests.env.hosts import Host, demo_host
from tests.env.libvirtd import Libvirtd, mount_namespaces_allowed, testdriver_xml
from tests.env.placement import Placement
from tests.env.scratch import Scratch


def parse_args(argv):
    parser = argparse.ArgumentParser(prog='python3 -m tests.env.lab')
    parser.add_argument('--host', default='demo', help='demo, or a JSON file')
    parser.add_argument('--server', default='gunicorn', choices=['gunicorn', 'simple'])
    parser.add_argument('--describe', action='store_true', help='print the host and exit')
    return parser.parse_args(argv)


def read_host(name):
    if name == 'demo':
        return demo_host()
    with open(name, encoding='utf-8') as file:
        return Host.from_dict(json.load(file))


def start(scratch, host, server):
    """Start everything; returns what to print."""
    ret = {'folder': str(scratch.path), 'token': 'admin', 'hostname': host.name}
    placement = Placement(scratch, server)
    placement.start(wait=False)
    bus = Bus(scratch).start()
    ret['bus'] = bus.address
    if mount_namespaces_allowed():
        daemon = Libvirtd(host, scratch).start()
        ret.update(uri=daemon.uri, sys=str(daemon.sys), enter=' '.join(daemon.enter()))
    else:
        ret['uri'] = testdriver_xml(host, scratch.folder('testdriver'))
    placement.wait_ready()
    ret['endpoint'] = placement.endpoint
    return ret


def main(argv=None):
    args = parse_args(argv)
    host = read_host(args.host)
    if args.describe:
        print(json.dumps(host.to_dict(), indent=2))
        return 0
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with Scratch() as scratch:
            print(json.dumps(start(scratch, host, args.server)), flush=True)
            sys.stdin.read()
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == '__main__':
    sys.exit(main())
