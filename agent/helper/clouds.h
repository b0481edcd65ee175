/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads one cloud of clouds.yaml, which it finds as the openstack client does. The verbs of
 * computectl that talk to Keystone or Placement themselves use it.
 *
 * The file is $OS_CLIENT_CONFIG_FILE. If that is not set, it is the first clouds.yaml, .yml or
 * .json of the working folder, $XDG_CONFIG_HOME/openstack (~/.config/openstack by default) and
 * /etc/openstack. A second, optional file overrides the values of the first:
 * $OS_CLIENT_SECURE_FILE, or the first secure.yaml, .yml or .json of the same folders. A cloud with
 * a profile of a vendor is rejected. */

#include "config/config.h"

/* Replaces the options of config about Keystone, and the endpoint, the token and the TLS options of
 * [placement], by the values of that cloud. Other options of [placement], such as time-outs, stay.
 * Returns -ENOENT if there is no clouds.yaml, no such cloud in it, or no file that one of the
 * variables names. Returns -EINVAL for a cloud with a profile, a file that is not YAML, a value
 * that cannot be used, or an option that a login at Keystone lacks. Returns another negative errno
 * on other failures. Without a login, an endpoint or token that is missing is no error here. After
 * an error config can be partly changed and must not be used. The words contain no secret. Blocks
 * on the disk. */
int clouds_apply(Config *config, const char *cloud, Error *reterr);
