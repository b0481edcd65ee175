# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs Keystone's WSGI application with the record of recorder.py: keystone_app.py HOST PORT."""

import os
import socketserver
import sys
import threading
import wsgiref.simple_server

from keystone.server.wsgi import initialize_public_application
from recorder import Recorder


class _Server(socketserver.ThreadingMixIn, wsgiref.simple_server.WSGIServer):
    daemon_threads = True
    request_queue_size = 511  # as Apache has it. With the default of 5, connections of a fleet wait for their next SYN


class _WritersInTurn:
    """Serializes the requests that can write. SQLite rejects a writer that has read before another one committed.

    The first token of a user in a day is such a write.
    """

    def __init__(self, application):
        self._application = application
        self._lock = threading.Lock()

    def __call__(self, environ, start_response):
        if environ['REQUEST_METHOD'] in ('GET', 'HEAD'):
            return self._application(environ, start_response)
        with self._lock:
            return self._application(environ, start_response)


def main():
    host, port = sys.argv[1], int(sys.argv[2])
    sys.argv = sys.argv[:1]
    application = Recorder(_WritersInTurn(initialize_public_application()), os.environ['PLACEMENT_RECORD'])
    server = wsgiref.simple_server.make_server(host, port, application, server_class=_Server)
    server.serve_forever()


if __name__ == '__main__':
    main()
