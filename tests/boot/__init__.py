# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests in a Debian that its own systemd boots, in a container. They need root."""
