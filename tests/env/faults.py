# SPDX-License-Identifier: LGPL-2.1-or-later
"""The faults that the proxy can apply to a request. proxy.py applies them."""

import json
import re
import threading


class Fault:
    """A fault of the requests that match: times of them (None: all), and of these every n-th.

    method: a name or a tuple of names (None: any). path: a regular expression that is searched for
    in path and query. The first skip matching requests pass. hits counts the requests with the
    fault.
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
        """Returns whether the fault applies to this request, and counts it. The caller holds the
        lock of the proxy."""
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
    """Answers in place of Placement, which never receives the request."""

    def __init__(self, status, body=b'', content_type='application/json', headers=(), **match):
        super().__init__(**match)
        self.status = status
        self.body = body.encode() if isinstance(body, str) else body
        self.headers = [('Content-Type', content_type), *headers]


class Cut(Fault):
    """Cuts the connection. 'before': Placement does not receive the request. 'after': Placement has
    executed it and the answer is lost. 'middle': the body ends before its Content-Length."""

    def __init__(self, when='before', **match):
        super().__init__(**match)
        if when not in ('before', 'after', 'middle'):
            raise ValueError(when)
        self.when = when


class Delay(Fault):
    """Waits before the request is sent to Placement. The faults after this one still apply."""

    def __init__(self, seconds, **match):
        super().__init__(**match)
        self.seconds = seconds


class Hang(Fault):
    """Holds the request until release() or until the proxy stops, and then forwards it.

    where: 'before' Placement receives it or 'after' Placement has answered.
    """

    def __init__(self, where='before', **match):
        super().__init__(**match)
        self.where = where
        self.released = threading.Event()
        self.reached = threading.Event()

    def release(self):
        self.released.set()


class Meanwhile(Fault):
    """Calls function(body) before Placement receives the request. The function can act as another
    writer."""

    def __init__(self, function, **match):
        super().__init__(**match)
        self.function = function


def placement_error(status, title, detail, code):
    """Returns the body of an error in Placement's format."""
    return json.dumps({'errors': [{
        'status': status, 'title': title, 'detail': detail, 'code': code,
        'request_id': 'req-00000000-0000-4000-8000-00000000e409'}]})


def conflict(every=1, **match):
    """Answers every n-th write with 409 placement.concurrent_update."""
    match.setdefault('method', Fault.WRITES)
    body = placement_error(
        409, 'Conflict', 'There was a conflict when trying to complete your request.\n\n'
        ' resource provider generation conflict  ', 'placement.concurrent_update')
    return Answer(409, body, every=every, **match)


def server_error(status=500, **match):
    """Answers with an internal error in Placement's format."""
    body = placement_error(status, 'Internal Server Error', 'The server has either erred or is '
                           'incapable of performing the requested operation.\n\n',
                           'placement.undefined_code')
    return Answer(status, body, **match)


def html(status=503, headers=(), **match):
    """Answers as a load balancer does when Placement is down."""
    body = ('<html><body><h1>%d Service Unavailable</h1>\nNo server is available to handle this '
            'request.\n</body></html>\n' % status)
    return Answer(status, body, 'text/html', headers, **match)


def oversized(size=64 << 20, **match):
    """Answers 200 with a JSON object of about size bytes."""
    return Answer(200, b'{"resource_providers": [], "pad": "%s"}' % (b'x' * size), **match)


def outages(**match):
    """Returns the kinds of an outage of Placement. Add one of them at a time."""
    return [Cut('before', **match), Cut('after', **match), server_error(**match), html(**match)]


def garbage(**match):
    """Answers 200 with a Content-Type of JSON and a body that is not JSON."""
    return Answer(200, b'{"resource_providers": [', **match)
