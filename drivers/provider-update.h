/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* update_provider_tree for every driver whose poll yields a Snapshot: see driver.h, "Edits tree".
 * Each kind of provider has a file of its own; this one says in which order they come. Pure. */

#include "drivers/driver.h"

int provider_update(const DriverConfig *config, const Snapshot *snapshot, ProviderTree *tree,
                    const char *nodename, DriverReshape *reshape, Error *reterr);
