/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* clouds.yaml, as the openstack client reads it: one cloud of it, for the verbs of computectl that
 * speak to Keystone or Placement themselves.
 *
 * The file is $OS_CLIENT_CONFIG_FILE, else the first clouds.yaml, .yml or .json of the working
 * folder, ~/.config/openstack and /etc/openstack. The first secure.yaml of the same places
 * ($OS_CLIENT_SECURE_FILE goes first) is laid over it. A profile of a vendor is not known here. */

#include "config/config.h"

/* Puts that cloud in the place of what config says in [placement]. -ENOENT when there is no file or
 * no such cloud in it, -EINVAL when it cannot be used; with words, and no secret in them. Blocks on
 * the disk. */
int clouds_apply(Config *config, const char *cloud, Error *reterr);
