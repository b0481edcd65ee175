# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sends single HTTP requests to servers of this machine."""

import http.client
import json
import socket

from tests.env.scratch import EnvError


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__('localhost', timeout=timeout)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Answer:
    """An HTTP answer: status, headers, text, and json (None if the text is not JSON)."""

    def __init__(self, what, response):
        self._what = what
        self.status = response.status
        self.headers = response.headers
        self.text = response.read().decode('utf-8', 'replace')

    @property
    def json(self):
        try:
            return json.loads(self.text)
        except ValueError:
            return None

    def good(self):
        """Returns the JSON. Raises EnvError if the status is 300 or above."""
        if self.status >= 300:
            raise EnvError('%s: %d %s' % (self._what, self.status, self.text[:1000]))
        return self.json


def ask(place, method, path, body=None, headers=(), timeout=30):
    """Sends a request over its own connection. Returns the Answer. Raises OSError or HTTPException if
    there is none.

    place: a port of loopback, or the path of a Unix socket. body: bytes, or an object that becomes
    JSON.
    """
    if body is not None and not isinstance(body, bytes):
        body = json.dumps(body)
        headers = {'Content-Type': 'application/json', **dict(headers)}
    if isinstance(place, int):
        connection = http.client.HTTPConnection('127.0.0.1', place, timeout=timeout)
    else:
        connection = _UnixConnection(place, timeout)
    try:
        connection.request(method, path, body, dict(headers))
        return Answer('%s %s' % (method, path), connection.getresponse())
    finally:
        connection.close()
