# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests in a Debian that is booted by its own systemd, in a container; they need root."""
