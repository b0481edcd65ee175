# SPDX-License-Identifier: LGPL-2.1-or-later
"""Keystone's WSGI application with the record of recorder.py: keystone_app.py HOST PORT."""

import os
import socketserver
import sys
import wsgiref.simple_server

from keystone.server.wsgi import initialize_public_application
from recorder import Recorder


class _Server(socketserver.ThreadingMixIn, wsgiref.simple_server.WSGIServer):
    daemon_threads = True


def main():
    host, port = sys.argv[1], int(sys.argv[2])
    sys.argv = sys.argv[:1]
    application = Recorder(initialize_public_application(), os.environ['PLACEMENT_RECORD'])
    server = wsgiref.simple_server.make_server(host, port, application, server_class=_Server)
    server.serve_forever()


if __name__ == '__main__':
    main()
