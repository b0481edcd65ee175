/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Trees and allocations from JSON, for the programs that drive the reporter alone
 * (tests/report-probe.c, tests/bench/). The files are the tests' own: an odd one ends in an error,
 * not in a crash, and that is all. */

#include <jansson.h>

#include "base/allocation.h"
#include "base/provider-tree.h"

/* -EBADMSG with file and line. */
int tree_file_read(const char *path, json_t **ret, Error *reterr);

/* {"providers": [{"uuid", "name", "parent", "inventories", "traits", "aggregates"}], "remove":
 * ["name"], "remove_traits": ["T"]}, laid over a tree as a driver does: inventories are replaced,
 * traits and aggregates added, other providers kept. */
int tree_file_lay(const json_t *json, ProviderTree *tree, Error *reterr);

/* {consumer: {"allocations": {provider: {"resources": {}}}, "project_id", "user_id",
 * "consumer_generation", "consumer_type"}} */
int tree_file_read_allocations(const json_t *json, Allocations **ret, Error *reterr);
