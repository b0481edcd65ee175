/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The folder in which the agent keeps its state: [agent] state_dir, else the first folder of the
 * unit's StateDirectory= ($STATE_DIRECTORY), else /var/lib/compute-agent.
 *
 * Up to version 0.1 [DEFAULT] state_path named this folder. If a configuration still does, the
 * claim database in that folder is the evidence, and the agent goes on with it. The agent also
 * takes it if the folder above does not exist and Nova has no instances in it. */

#include "config/settings.h"

/* Sets config->state_dir. Warns if the folder is that of an older configuration. -EINVAL with words
 * if there are two claim databases, -ENOMEM. Blocks on the disk. */
int config_choose_state_dir(Config *config, const ConfigSettings *settings, Error *reterr);
