/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What requests cost in libcurl and the kernel alone: no client that uses libcurl can take less. */

#include <jansson.h>

#include "base/error.h"

/* Reads what each of consumers ([{"uuid"}]) holds, one after the other over one connection, and
 * throws the answers away. Blocks. -EREMOTEIO when one is not 200, -ENOMEM. */
int floor_read(const char *endpoint, const json_t *consumers, Error *reterr);
