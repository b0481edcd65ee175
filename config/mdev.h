/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* [mdev_TYPE] sections, by Nova's rules (facts C4): the list driver.host.mdev_types that the
 * drivers take. */

#include "config/settings.h"

/* Fills config->driver.host.mdev_types from config->enabled_mdev_types. -EINVAL with words for a
 * bad value or an address that is given twice, -ENOMEM. A type without addresses takes all devices
 * that are left; a second such type is dropped with a warning. */
int config_load_mdev_types(Config *config, const ConfigSettings *settings, Error *reterr);
void config_free_mdev_types(HostConfig *host);
