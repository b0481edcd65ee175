# SPDX-License-Identifier: LGPL-2.1-or-later
"""Nova's libvirt driver on a host whose providers compute-agent reports.

This package belongs below nova/virt, since Nova looks for its drivers nowhere
else; then ``[DEFAULT] compute_driver = compute_agent.LibvirtDriver``.
"""

from nova.virt.compute_agent import driver

LibvirtDriver = driver.LibvirtDriver
