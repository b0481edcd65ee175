# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs the API of Nova, Glance or Cinder as a server: cloud_app.py nova|glance|cinder HOST PORT [ARGUMENT...].

Nova and Glance find their configuration through OS_NOVA_CONFIG_DIR and OS_GLANCE_CONFIG_DIR, Cinder through the
arguments.
"""

import io
import sys


def chunks(file):
    """Yields the parts of a body with chunked encoding."""
    while size := int(file.readline().partition(b';')[0], 16):
        yield file.read(size)
        file.readline()
    while file.readline().strip():
        pass


def nova_application():
    # Import it first: where Nova still uses eventlet, eventlet patches the modules that follow.
    from nova.api.openstack import wsgi_app
    return wsgi_app.init_application('osapi_compute')


def glance_application():
    from glance.common import wsgi_app
    return wsgi_app.init_app()


def cinder_application():
    from cinder.wsgi import wsgi
    return wsgi.initialize_application()


def main():
    which, host, port, *sys.argv[1:] = sys.argv[1:]
    application = {'nova': nova_application, 'glance': glance_application, 'cinder': cinder_application}[which]()
    import socketserver
    import wsgiref.simple_server

    class Handler(wsgiref.simple_server.WSGIRequestHandler):
        def log_message(self, format, *args):
            pass

        def parse_request(self):
            parsed = super().parse_request()
            if parsed and self.headers['Transfer-Encoding'] == 'chunked':  # Nova sends images like this
                body = b''.join(chunks(self.rfile))
                self.rfile = io.BytesIO(body)
                del self.headers['Transfer-Encoding']
                self.headers['Content-Length'] = str(len(body))
            return parsed

    class Server(socketserver.ThreadingMixIn, wsgiref.simple_server.WSGIServer):
        daemon_threads = True

    wsgiref.simple_server.make_server(host, int(port), application, Server, Handler).serve_forever()


if __name__ == '__main__':
    main()
