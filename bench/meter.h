/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a step of a benchmark took: wall time, our own CPU time, and that of the servers. */

#include <sys/types.h>

#include "base/error.h"

typedef struct Meter {
        const pid_t *servers; /* with all their descendants */
        size_t n_servers;
        double wall_ms, client_cpu_ms, server_cpu_ms; /* between begin and end */
} Meter;

void meter_begin(Meter *meter);
void meter_end(Meter *meter);

/* Milliseconds of a clock that only goes forward. */
double meter_now_ms(void);
