# SPDX-License-Identifier: LGPL-2.1-or-later
"""A clock that tests can set without setting the machine's: tests/shims/clock.c, to be preloaded."""

YEAR = 365 * 86400


def write_offset(path, seconds):
    """Set the clock of whoever has $CLOCK_SHIM at path; a reader sees the old or the new."""
    fresh = path.with_suffix('.new')
    fresh.write_text('%d\n' % seconds)
    fresh.chmod(0o644)
    fresh.rename(path)
