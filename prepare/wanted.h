/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The files by which the agent starts a run, and the lock of a run. */

#include "prepare/hardware.h"

#define PREPARE_WANTED_SIZE 17 /* bytes of a stamp, with the NUL */

/* Reads the stamp in RUN/compute-agent/NAME: hexadecimal digits. Only the first line counts, up to
 * 16 digits. Other content, and a file that is missing or not the agent's, count as "". */
void prepare_read_wanted(const PreparePaths *paths, const char *name,
                         char ret[static PREPARE_WANTED_SIZE]);

/* Takes the lock in RUN/FOLDER, which one run has at a time. The file stays. Waits up to a minute.
 * Returns its descriptor, -EBUSY if another run does not end, or another negative errno with
 * words. */
int prepare_take_lock(const PreparePaths *paths, const char *folder, Error *reterr);
