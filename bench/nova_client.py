# SPDX-License-Identifier: LGPL-2.1-or-later
"""Counts the requests of Nova's own report client for a host with a given provider tree.

    /usr/bin/python3 -B -m bench.nova_client ENDPOINT <TREE

TREE is the JSON of Placement.tree() (tests.env.placement). The Placement must not have this tree yet. The output is a
JSON object with the numbers of requests of a cold start, of a restart, and of an update without a change. Each number
has the requests of one update of Nova's ResourceTracker. A start also finds the version of Placement. The client is
that of Debian's python3-nova.
"""

import nova.monkey_patch  # before all other imports, as nova-compute does

import copy
import http.client
import json
import sys
import tempfile

import nova.conf
from nova import context, objects
from nova.scheduler.client import report
from oslo_log import log

_CONFIG = '[placement]\nauth_type = admin_token\nendpoint = %s\ntoken = admin\n[oslo_concurrency]\nlock_path = %s\n'


class Counter:
    """Counts the HTTP requests of this process from now on."""

    def __init__(self):
        self.n = 0
        self._put = http.client.HTTPConnection.putrequest
        http.client.HTTPConnection.putrequest = lambda *args, **more: self._count(*args, **more)

    def _count(self, *args, **more):
        self.n += 1
        return self._put(*args, **more)

    def measure(self, function, *args):
        """Returns the number of requests of a call."""
        before = self.n
        function(*args)
        return self.n - before


class Host:
    """A nova-compute with this tree, reduced to its requests to Placement."""

    def __init__(self, tree):
        self._tree = tree
        self._root = next(one for one in tree.values() if one['parent'] is None)
        self._client = None
        self._exists = False

    def start(self):
        """Makes a new client, which has read nothing, and updates."""
        self._client = report.SchedulerReportClient()
        self.update()

    def update(self):
        """Sends the requests of ResourceTracker._update_available_resource(), which reads the allocations of the root
        unless the compute node is new."""
        admin, client, name = context.get_admin_context(), self._client, self._root['name']
        if self._exists:
            client.get_allocations_for_resource_provider(admin, self._root['uuid'])
        self._exists = True
        tree = client.get_provider_tree_and_ensure_root(admin, self._root['uuid'], name=name)
        client.get_allocations_for_provider_tree(admin, name)
        self._fill(tree)
        client.update_from_provider_tree(admin, tree)

    def _fill(self, tree):
        """Sets the tree as update_provider_tree() of a driver does. A parent precedes its children."""
        left = sorted(self._tree.values(), key=lambda one: one['name'])
        while left:
            one = next(one for one in left if one['parent'] is None or tree.exists(one['parent']))
            left.remove(one)
            if not tree.exists(one['uuid']):
                tree.new_child(one['name'], one['parent'], uuid=one['uuid'])
            tree.update_inventory(one['uuid'], copy.deepcopy(one['inventories']))
            tree.update_traits(one['uuid'], one['traits'])
            tree.update_aggregates(one['uuid'], one['aggregates'])


def main():
    with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile('w', dir=folder, suffix='.conf') as file:
        file.write(_CONFIG % (sys.argv[1], folder))
        file.flush()
        log.register_options(nova.conf.CONF)
        nova.conf.CONF([], project='nova', default_config_files=[file.name])
        objects.register_all()
        host, counter = Host(json.load(sys.stdin)), Counter()
        print(json.dumps({'cold': counter.measure(host.start), 'restart': counter.measure(host.start),
                          'update': counter.measure(host.update)}))
    return 0


if __name__ == '__main__':
    sys.exit(main())
