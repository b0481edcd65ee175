/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads one cloud of clouds.yaml, as the openstack client does. The verbs of computectl that talk
 * to Keystone or Placement themselves use it.
 *
 * The file is $OS_CLIENT_CONFIG_FILE. If that is not set, it is the first clouds.yaml, .yml or
 * .json of the working folder, ~/.config/openstack and /etc/openstack. The first secure.yaml of the
 * same places overrides its values; $OS_CLIENT_SECURE_FILE comes first. Profiles of vendors are not
 * supported. */

#include "config/config.h"

/* Replaces the [placement] section of config by that cloud. Returns -ENOENT if there is no file or
 * no such cloud, or -EINVAL if it cannot be used. The words contain no secret. Blocks on the
 * disk. */
int clouds_apply(Config *config, const char *cloud, Error *reterr);
