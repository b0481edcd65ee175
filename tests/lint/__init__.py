# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks of the sources. "run" runs all of them."""
