# SPDX-License-Identifier: LGPL-2.1-or-later
"""A WSGI application around another one, which writes a line for each request before the answer is
sent.

The line is in the file before the client has the first byte of the answer. An access log does not
guarantee this.
"""

import io
import json
import os
import time


class Recorder:
    def __init__(self, application, path):
        self._application = application
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def __call__(self, environ, start_response):
        began = time.monotonic()
        body = b''
        length = environ.get('CONTENT_LENGTH')
        if length:
            body = environ['wsgi.input'].read(int(length))
            environ['wsgi.input'] = io.BytesIO(body)

        def record(status, headers, *rest):
            self._write(environ, body, status, began)
            return start_response(status, headers, *rest)

        return self._application(environ, record)

    def _write(self, environ, body, status, began):
        path = environ.get('PATH_INFO', '')
        if environ.get('QUERY_STRING'):
            path += '?' + environ['QUERY_STRING']
        line = {
            'method': environ['REQUEST_METHOD'],
            'path': path,
            'status': int(status.split()[0]),
            'microversion': environ.get('HTTP_OPENSTACK_API_VERSION', ''),
            'request_id': environ.get('HTTP_X_OPENSTACK_REQUEST_ID', ''),
            'agent': environ.get('HTTP_USER_AGENT', ''),
            'body': body.decode('utf-8', 'replace'),
            'began': began,
            'took': time.monotonic() - began,
        }
        os.write(self._fd, (json.dumps(line) + '\n').encode())
