# SPDX-License-Identifier: LGPL-2.1-or-later
"""Nova's libvirt driver on a host whose providers compute-agent reports.

This package must be below nova/virt, because Nova searches for drivers only
there. Then set ``[DEFAULT] compute_driver = compute_agent.LibvirtDriver``.
"""

from nova.virt.compute_agent import driver

LibvirtDriver = driver.LibvirtDriver
