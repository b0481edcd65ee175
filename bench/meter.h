/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Measures a step of a benchmark: wall time, CPU time of this process, and CPU time of the
 * servers. */

#include <sys/types.h>

#include "base/error.h"

typedef struct Meter {
        const pid_t *servers; /* pids; their descendants are included */
        size_t n_servers;
        double wall_ms, client_cpu_ms,
                server_cpu_ms; /* costs of the step; valid after meter_end() */
} Meter;

/* Start and end a step. */
void meter_begin(Meter *meter);
void meter_end(Meter *meter);

/* Returns CLOCK_MONOTONIC in milliseconds. */
double meter_now_ms(void);
