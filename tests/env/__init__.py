# SPDX-License-Identifier: LGPL-2.1-or-later
"""Real test environments: Placement, libvirtd over an artificial /sys, a message bus and a proxy
with faults."""
