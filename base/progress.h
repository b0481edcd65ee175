/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The progress of a long operation. Plain data. */

#include <stdint.h>

typedef struct Progress {
        const char *phase;        /* a static word for people, for example "gathering"; "": no
                                   * operation */
        uint64_t n_done, n_total; /* requests of this phase; n_total 0: unknown */
} Progress;
