# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the proxy can do to one request. Each is built with words, and applied by proxy.py."""

import json
import re
import threading


class Fault:
    """Something done to the requests that match, times of them (None: all), every n-th of them.

    method: a name or a tuple of names (None: any); path: a regular expression searched for in
    path and query. The first skip of them pass. hits counts how often it was done.
    """

    WRITES = ('PUT', 'POST', 'DELETE', 'PATCH')

    def __init__(self, method=None, path=None, times=None, every=1, skip=0):
        self.methods = (method,) if isinstance(method, str) else method
        self.path = re.compile(path or '')
        self.times = times
        self.every = every
        self.hits = 0
        self._seen = -skip

    def takes(self, method, path):
        """Whether it is done to this request; counts it. The proxy holds its lock."""
        if self.methods and method not in self.methods or not self.path.search(path):
            return False
        if self.times is not None and self.hits >= self.times:
            return False
        self._seen += 1
        if self._seen <= 0 or self._seen % self.every:
            return False
        self.hits += 1
        return True


class Answer(Fault):
    """Answer in place of Placement, which never sees the request."""

    def __init__(self, status, body=b'', content_type='application/json', headers=(), **match):
        super().__init__(**match)
        self.status = status
        self.body = body.encode() if isinstance(body, str) else body
        self.headers = [('Content-Type', content_type), *headers]


class Cut(Fault):
    """Cut the connection: 'before' Placement sees the request, 'after' it has done it (the
    answer is lost), or in the 'middle' of the answer's body (which promises more than comes).
    """

    def __init__(self, when='before', **match):
        super().__init__(**match)
        if when not in ('before', 'after', 'middle'):
            raise ValueError(when)
        self.when = when


class Delay(Fault):
    """Wait before the request goes on to Placement; the faults after this one still apply."""

    def __init__(self, seconds, **match):
        super().__init__(**match)
        self.seconds = seconds


class Hang(Fault):
    """Hold the request until release(), or until the proxy stops; then pass it on.

    where: 'before' Placement sees it or 'after' it has answered.
    """

    def __init__(self, where='before', **match):
        super().__init__(**match)
        self.where = where
        self.released = threading.Event()
        self.reached = threading.Event()

    def release(self):
        self.released.set()


class Meanwhile(Fault):
    """Call function(body) before Placement sees the request: what somebody else does just then."""

    def __init__(self, function, **match):
        super().__init__(**match)
        self.function = function


def placement_error(status, title, detail, code):
    """The body of an error as Placement writes it."""
    return json.dumps({'errors': [{
        'status': status, 'title': title, 'detail': detail, 'code': code,
        'request_id': 'req-00000000-0000-4000-8000-00000000e409'}]})


def conflict(every=1, **match):
    """409 placement.concurrent_update to every n-th write."""
    match.setdefault('method', Fault.WRITES)
    body = placement_error(
        409, 'Conflict', 'There was a conflict when trying to complete your request.\n\n'
        ' resource provider generation conflict  ', 'placement.concurrent_update')
    return Answer(409, body, every=every, **match)


def server_error(status=500, **match):
    """A plain error of Placement's own."""
    body = placement_error(status, 'Internal Server Error', 'The server has either erred or is '
                           'incapable of performing the requested operation.\n\n',
                           'placement.undefined_code')
    return Answer(status, body, **match)


def html(status=503, headers=(), **match):
    """What a load balancer says in front of a Placement that is away."""
    body = ('<html><body><h1>%d Service Unavailable</h1>\nNo server is available to handle this '
            'request.\n</body></html>\n' % status)
    return Answer(status, body, 'text/html', headers, **match)


def oversized(size=64 << 20, **match):
    """200 with a JSON object of about this many bytes."""
    return Answer(200, b'{"resource_providers": [], "pad": "%s"}' % (b'x' * size), **match)


def outages(**match):
    """The ways in which Placement goes away, each to be added by itself."""
    return [Cut('before', **match), Cut('after', **match), server_error(**match), html(**match)]


def garbage(**match):
    """200 with a body that is not JSON though it says so."""
    return Answer(200, b'{"resource_providers": [', **match)
