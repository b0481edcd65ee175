/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Runs computectl-helper, which polls the hypervisor once or talks with Placement while the service
 * does not run. It is a program of its own, so that computectl does not load libvirt and libcurl.
 */

#include <jansson.h>
#include <limits.h>

#include "base/error.h"

/* Finds a program of this project: beside this one (an uninstalled build), else where it is
 * installed. */
void ctl_find_program(char path[static PATH_MAX], const char *name, const char *folder);

/* Runs an order of the helper (agent/helper/main.c) and reads its document:
 *
 *   discover  driver ("": the configured one)                        SNAPSHOT_FORMAT
 *   verify                                                           FINDINGS_FORMAT
 *   connect   cloud of clouds.yaml ("": the section [placement])     CONNECT_FORMAT
 *   identity  order, flags, name of the host ("": unknown), cloud    IDENTITY_FORMAT
 *
 * words: the arguments of the order, NULL-terminated; NULL: none. config: a configuration file;
 * NULL: the host's own. Blocks until the program ends, and prints its errors. Negative errno with
 * words. */
int ctl_helper_ask(const char *order, const char *const words[], const char *config, json_t **ret,
                   Error *reterr);
