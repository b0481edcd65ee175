/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads the sections [device_prepare NAME], each a group of cards that compute-agent-prepare makes
 * ready at boot. */

#include "config/file.h"
#include "drivers/host/host-config.h"

/* Reads all sections into host->prepares, in the order of their first headers. Returns -EINVAL with
 * words that begin with the place of the bad option or section, or -ENOMEM. Some sections can have
 * been added then. A section without device_addresses is an error, and so is a card that is listed
 * twice. */
int config_load_prepares(HostConfig *host, const ConfigSettings *settings, Error *reterr);

/* Frees host->prepares. */
void config_prepares_done(HostConfig *host);
