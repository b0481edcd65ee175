/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The way from this host over Keystone (where the configuration has one) to Placement, walked once
 * for "computectl doctor": a token, its scope and roles, the endpoint of the catalogue, whether
 * Placement lets this user read, and how new it is. */

#include <jansson.h>

#include "config/config.h"

/* Blocks until there is an answer, at most as long as the time-outs of config allow. The caller
 * owns *ret. What does not work is in the document; -EINVAL with words for a configuration that
 * cannot be used, -ENOMEM. */
int connect_examine(const Config *config, json_t **ret, Error *reterr);
