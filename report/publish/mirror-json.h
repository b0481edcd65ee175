/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The mirror as JSON, so that a later process can continue with it. Pure.
 *
 * The JSON has the form of Placement's own answers: a list of providers, each with its parts. So
 * the readers of report/placement/answer.h check it like an answer from the network. */

#include <jansson.h>

#include "report/publish/mirror.h"

/* Returns the mirror, with the last-modified of its list (mirror->list, which must not be NULL),
 * and the names that Placement lacked. No provider must be stale. A new reference; NULL when out of
 * memory. */
json_t *mirror_to_json(const Mirror *mirror);

/* Makes the mirror again. It has the list, but no fingerprint of it, so that the next list is
 * parsed and compared. Returns -EBADMSG with words for another form, or -ENOMEM; *ret is then
 * unchanged. */
int mirror_from_json(const json_t *json, Mirror **ret, Error *reterr);
