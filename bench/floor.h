/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The cost of requests in libcurl and the kernel alone. No client that uses libcurl can cost
 * less. */

#include <jansson.h>

#include "base/error.h"

/* Reads the allocations of each consumer ([{"uuid"}]) over one connection, one after another, and
 * drops the answers. Blocks. Returns -EREMOTEIO if an answer is not 200, or -ENOMEM. */
int floor_read(const char *endpoint, const json_t *consumers, Error *reterr);
