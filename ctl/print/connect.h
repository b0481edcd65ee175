/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What "computectl doctor" says of the way over Keystone to Placement. Pure. */

#include <jansson.h>

/* connect: the document of agent/helper/main.c. Adds its findings to those of
 * ctl/print/doctor.h. -ENOMEM. */
int ctl_connect_judge(const json_t *connect, json_t *findings);
