/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A digest of the configuration, by which a fleet finds hosts whose configuration differs. Hosts
 * with equal options have equal digests, although each has a name, an account and addresses of its
 * own. The effective values count, so hosts that use different state folders have different digests
 * (choose_state_dir() in config.c). No secret is part of it, so none can be guessed from it.
 * Pure. */

#include "base/digest.h"
#include "config/config.h"

/* Makes the digest of all options that differ from their defaults, and of whether [placement]
 * exists. These are not part of it: secrets, users and passwords of URLs, the name of the host,
 * the account of Keystone, and addresses of devices. Returns -ENOMEM on failure. */
int config_make_digest(const Config *config, Digest *ret);
