# SPDX-License-Identifier: LGPL-2.1-or-later
"""A scripted HTTP proxy in front of Placement, which counts requests and applies faults.

    with Proxy(placement.port) as proxy:
        proxy.add(faults.conflict(every=3))
        ...
        assert proxy.count('PUT') == 9
"""

import concurrent.futures
import contextlib
import http.client
import http.server
import socket
import struct
import threading
import time
from dataclasses import dataclass, field

from tests.env import faults
from tests.env.scratch import EnvError, free_port, wait_until

_HOP = {'connection', 'keep-alive', 'transfer-encoding', 'content-length', 'host', 'expect'}


@dataclass
class Record:
    """A received request. status: the status that the client got, or None before an answer was sent."""

    method: str
    path: str
    headers: dict
    body: bytes
    status: int = None
    began: float = field(default_factory=time.monotonic)


class _CutShort(Exception):
    """A fault cut the connection."""


class Proxy:
    """Listens on a free loopback port and forwards requests to 127.0.0.1:port.

    add() and clear() can be called at any time. Faults apply in the order of add(). The first one that ends
    the request wins. refuse() closes the port, and listen() opens the same port again. The body of a
    request needs a Content-Length.
    """

    def __init__(self, port):
        self.target = port
        self.requests = []
        self.connections = 0
        self._faults = []
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._sockets = set()
        self._cut = set()
        self._server = None
        self.port = free_port()

    @property
    def endpoint(self):
        return 'http://127.0.0.1:%d' % self.port

    def __enter__(self):
        return self.listen()

    def __exit__(self, *exc):
        self.close()

    def listen(self):
        """Listens on the port. It is the same after refuse()."""
        if self._server is None:
            self._stopping.clear()
            self._server = _Server(('127.0.0.1', self.port), _Handler)
            self._server.proxy = self
            threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True,
                             name='proxy').start()
        return self

    def refuse(self):
        """Closes the port and cuts each connection, so that new connections are refused."""
        if self._server:
            self._stopping.set()
            self._server.shutdown()
            self._server.socket.close()
            self.cut()
            self._server.server_close()
            self._server = None

    close = refuse

    @contextlib.contextmanager
    def refusing(self):
        """Refuses connections inside a with block."""
        self.refuse()
        try:
            yield
        finally:
            self.listen()

    def cut(self):
        """Cuts each open connection."""
        with self._lock:
            for sock in list(self._sockets):
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)

    def add(self, fault):
        """Adds a fault. Returns it, for its hits and for remove()."""
        with self._lock:
            self._faults.append(fault)
        return fault

    def remove(self, fault):
        with self._lock:
            self._faults.remove(fault)
        if isinstance(fault, faults.Hang):
            fault.release()

    def clear(self):
        """Removes all faults and releases the requests that hang."""
        for fault in list(self._faults):
            self.remove(fault)

    @contextlib.contextmanager
    def fault(self, fault):
        """Adds a fault for the time of a with block."""
        self.add(fault)
        try:
            yield fault
        finally:
            self.remove(fault)

    @contextlib.contextmanager
    def held(self, ask, where='before', **match):
        """Calls ask() in the background, and runs the with block while the first matching request hangs.

        Yields the Future of the result of ask(), which is complete after the block.
        """
        hang = self.add(faults.Hang(where, times=1, **match))
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            future = pool.submit(ask)
            try:
                wait_until(lambda: hang.reached.is_set() or future.done(), 30, 'a request to hang')
                if not hang.reached.is_set():
                    raise EnvError('no request to hang: %s' % (future.result(),))
                yield future
            finally:
                hang.release()

    def count(self, method=None, path=''):
        """Returns the number of requests with this method whose path contains this text."""
        return sum(1 for record in list(self.requests)
                   if method in (None, record.method) and path in record.path)

    def mark(self):
        """Returns the current position in requests, for requests_since()."""
        return len(self.requests)

    def requests_since(self, mark=0):
        """Returns (method, path, status) of each request since mark, in the order of arrival."""
        return [(record.method, record.path, record.status) for record in self.requests[mark:]]

    def _note(self, record):
        with self._lock:
            self.requests.append(record)

    def _take(self, record):
        """Returns the faults of a request, up to the first that ends it."""
        ret = []
        with self._lock:
            for fault in self._faults:
                if fault.takes(record.method, record.path):
                    ret.append(fault)
                    if isinstance(fault, (faults.Answer, faults.Cut)):
                        break
        return ret


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 511

    def shutdown_request(self, request):
        """Closes a connection normally, or with a RST if a fault cut it."""
        if request in self.proxy._cut:
            self.proxy._cut.discard(request)
            request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
            request.close()
        else:
            super().shutdown_request(request)

    def handle_error(self, request, client_address):
        """Ignores the error, because a client can close its connection."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    disable_nagle_algorithm = True

    def setup(self):
        super().setup()
        self.proxy = self.server.proxy
        with self.proxy._lock:
            self.proxy._sockets.add(self.connection)
            self.proxy.connections += 1

    def finish(self):
        with self.proxy._lock:
            self.proxy._sockets.discard(self.connection)
        with contextlib.suppress(OSError, ValueError):
            super().finish()

    def log_message(self, *args):
        pass

    def __getattr__(self, name):
        if name.startswith('do_'):
            return self._handle
        raise AttributeError(name)

    def _handle(self):
        body = self.rfile.read(int(self.headers.get('Content-Length') or 0))
        record = Record(self.command, self.path, dict(self.headers.items()), body)
        self.proxy._note(record)
        try:
            self._apply(record, self.proxy._take(record))
        except _CutShort:
            self.proxy._cut.add(self.connection)
            self.close_connection = True
        except (OSError, http.client.HTTPException):
            self.close_connection = True

    def _apply(self, record, taken):
        # The faults before the request run first. Then Placement gets the request, and the faults after the
        # answer run.
        for fault in taken:
            if isinstance(fault, faults.Delay):
                self.proxy._stopping.wait(fault.seconds)
            elif isinstance(fault, faults.Hang) and fault.where == 'before':
                self._hang(fault)
            elif isinstance(fault, faults.Meanwhile):
                fault.function(record.body)
            elif isinstance(fault, faults.Answer):
                self._send(record, fault.status, fault.headers, fault.body)
                return
            elif isinstance(fault, faults.Cut) and fault.when == 'before':
                raise _CutShort()
        status, headers, body = self._forward(record)
        cut = None
        for fault in taken:
            if isinstance(fault, faults.Hang) and fault.where == 'after':
                self._hang(fault)
            elif isinstance(fault, faults.Cut):
                cut = fault.when
        if cut == 'after':
            raise _CutShort()
        self._send(record, status, headers, body, short=cut == 'middle')

    def _hang(self, fault):
        # The end of the proxy cuts the connection, so that close() does not wait for a held request.
        fault.reached.set()
        while not fault.released.wait(0.02):
            if self.proxy._stopping.is_set():
                raise _CutShort()

    def _forward(self, record):
        """Sends the request to Placement over a new connection. It does not retry, because a retry would
        hide a fault."""
        upstream = http.client.HTTPConnection('127.0.0.1', self.proxy.target, timeout=600)
        headers = {key: value for key, value in record.headers.items()
                   if key.lower() not in _HOP}
        try:
            upstream.request(record.method, record.path, record.body or None, headers)
            answer = upstream.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            upstream.close()

    def _send(self, record, status, headers, body, short=False):
        record.status = status
        self.send_response_only(status)
        for key, value in headers:
            if key.lower() not in _HOP:
                self.send_header(key, value)
        if status != 204:
            self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        if self.command != 'HEAD':
            self.wfile.write(body[:len(body) // 2] if short else body)
        self.wfile.flush()
        if short:
            raise _CutShort()
