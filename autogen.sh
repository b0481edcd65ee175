#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Makes ./configure from configure.ac. Needs the Debian packages autoconf, automake and pkg-config.
set -e
cd "$(dirname "$0")"
mkdir -p build-aux
exec autoreconf --install --force --warnings=all
