/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* libvirt's capabilities XML: architecture, CPU model and NUMA cells of the host. Pure: text in,
 * struct out. It judges nothing: sparse cell ids, cells without CPUs or memory, a CPU in two cells
 * and a host without cells are given as they are. */

#include "drivers/host/snapshot.h"

typedef struct Capabilities {
        char *arch;      /* "" when not given */
        char *cpu_model; /* "" when not given */
        SnapshotCell *cells;
        size_t n_cells;
} Capabilities;

void capabilities_done(Capabilities *capabilities);

/* -EBADMSG with words, -ENOMEM. */
int capabilities_parse(const char *text, Capabilities *ret, Error *reterr);
