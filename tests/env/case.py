# SPDX-License-Identifier: LGPL-2.1-or-later
"""The base class of test cases, with the services around an agent."""

import unittest

from tests.env.bus import Bus
from tests.env.hosts import demo_host
from tests.env.libvirtd import Libvirtd
from tests.env.placement import Placement
from tests.env.proxy import Proxy
from tests.env.scratch import Scratch


class _Started:
    """A descriptor that makes an object at its first use and keeps it for the class, or for the test."""

    def __init__(self, make):
        self._make = make

    def __set_name__(self, _owner, name):
        self._name = name

    def __get__(self, test, cls):
        owner = cls if test is None else test
        if '_scratch' not in vars(owner):
            owner._scratch = Scratch.of(owner)
        made = self._make(owner, owner._scratch)
        setattr(owner, self._name, made)
        if test is None:
            cls.addClassCleanup(delattr, cls, self._name)  # a derived class has its own object
        return made


def _start_proxy(owner, scratch):
    proxy = Proxy(owner.placement.port).listen()
    scratch.on_close(proxy.close)
    return proxy


class EnvCase(unittest.TestCase):
    """A test case whose services start at their first use.

    Each test has its own services. A class shares those that "shared" names. They end with the test or the class. The proxy
    forwards to the Placement, which has placement_config. make_host() returns the hardware that libvirtd sees.
    """

    shared = ()
    make_host = staticmethod(demo_host)
    placement_config = ''

    scratch = _Started(lambda owner, scratch: scratch)
    bus = _Started(lambda owner, scratch: Bus(scratch).start())
    placement = _Started(lambda owner, scratch: Placement(scratch, config=owner.placement_config).start())
    proxy = _Started(_start_proxy)
    host = _Started(lambda owner, scratch: owner.make_host())
    libvirtd = _Started(lambda owner, scratch: Libvirtd(owner.host, scratch).start())

    @classmethod
    def setUpClass(cls):
        for name in cls.shared:
            getattr(cls, name)
