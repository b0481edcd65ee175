# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests with a kernel of their own, in QEMU: real virtual functions, IOMMU groups, mediated devices and NUMA nodes. They need root."""
