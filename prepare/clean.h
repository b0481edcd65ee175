/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Cleans devices after their guests, as root: starts the units of [device_clean NAME] for the
 * devices that the agent's database calls dirty (claims/claim/unclean.h). Its results are the
 * document CLEANED_FORMAT in RUN/compute-agent-clean/cleaned.json. */

#include "prepare/hardware.h"
#include "prepare/run.h"

/* Cleans the dirty devices, all at the same time, and those that become dirty while a unit runs,
 * once the agent changes clean-wanted. config_file: see config_load(); it is read again at each
 * such change. Returns a PrepareOutcome, or a negative errno with words. PREPARE_FAILED: a device
 * failed, in this run or earlier. PREPARE_UNTOUCHED: the configuration or the claims could not be
 * read, or another run did not end. Blocks until all units or their times have ended, and up to a
 * minute for another run; after an error units can still run. A device that must wait (clean.c),
 * such as one that a process has open, is left for the next change of clean-wanted or a later
 * run. */
int prepare_clean_run(const char *config_file, const PreparePaths *paths, Error *reterr);
