/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How far something that takes its time has come. Plain data. */

#include <stdint.h>

typedef struct Progress {
        const char *phase;        /* a word for people, static: "gathering"; "" for nothing */
        uint64_t n_done, n_total; /* requests of this phase; n_total 0: they are not counted */
} Progress;
