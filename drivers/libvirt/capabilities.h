/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* libvirt's capabilities XML: architecture, CPU model and NUMA cells of the host. Pure. It judges
 * nothing: sparse cell ids, cells without CPUs or memory, a CPU in two cells and a host without
 * cells are read as they are. */

#include "drivers/host/snapshot.h"

/* Into a snapshot that has nothing of it yet; what was read before a failure stays there. What is
 * not given is "". -EBADMSG with words, -ENOMEM. */
int capabilities_parse(const char *text, Snapshot *snapshot, Error *reterr);
