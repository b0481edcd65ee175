# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs Placement's WSGI application with a record of its requests.

The servers that placement.py starts run it. As a script it is Placement's own single-threaded
server: placement_app.py HOST PORT. Without arguments it only creates or updates the database.
"""

import os
import sys
import wsgiref.simple_server

from placement.wsgi import init_application
from recorder import Recorder


def make_application():
    return Recorder(init_application(), os.environ['PLACEMENT_RECORD'])


def main():
    if len(sys.argv) < 3:
        init_application()
        return
    server = wsgiref.simple_server.make_server(sys.argv[1], int(sys.argv[2]),
                                               make_application())
    server.serve_forever()


if __name__ == '__main__':
    main()
elif os.environ.get('PLACEMENT_SERVER') == 'uwsgi':
    application = make_application()
