# SPDX-License-Identifier: LGPL-2.1-or-later
"""Real test environments: Placement, libvirtd over a made-up /sys, a bus, a faulty proxy."""
