#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Makes ./configure from configure.ac.
set -e
cd "$(dirname "$0")"
for tool in autoreconf automake pkg-config; do
        command -v "$tool" >/dev/null && continue
        echo "$tool is missing. Debian: apt-get install build-essential autoconf automake pkg-config" >&2
        exit 1
done
mkdir -p build-aux
exec autoreconf --install --force --warnings=all
