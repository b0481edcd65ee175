/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The JSON forms that several folders share (Placement's own), and careful reading of foreign JSON.
 * Every reader leaves *ret untouched on failure and puts the name of the field into the error. */

#include <jansson.h>

#include "base/inventory.h"
#include "base/resources.h"
#include "base/string-set.h"
#include "base/uuid.h"

#define _cleanup_json_ _cleanup_(json_decrefp)

/* Parses text of n bytes (UTF-8, no duplicate keys). -EBADMSG with line and column. */
int json_parse(const char *text, size_t n, json_t **ret, Error *reterr);

/* The same of a text in which one string with U+0000 is not to cost the others: json_read_string()
 * refuses that one. */
int json_parse_with_nul(const char *text, size_t n, json_t **ret, Error *reterr);

/* Reads a member of an object: -EBADMSG when it is missing or of another type. The string is
 * borrowed from object. */
int json_read_string(const json_t *object, const char *key, const char **ret, Error *reterr);
int json_read_u64(const json_t *object, const char *key, uint64_t *ret, Error *reterr);
int json_read_i64(const json_t *object, const char *key, int64_t *ret, Error *reterr);
int json_read_bool(const json_t *object, const char *key, bool *ret, Error *reterr);
int json_read_uuid(const json_t *object, const char *key, Uuid *ret, Error *reterr);
int json_read_object(const json_t *object, const char *key, json_t **ret,
                     Error *reterr); /* borrowed */
int json_read_array(const json_t *object, const char *key, json_t **ret,
                    Error *reterr); /* borrowed */

/* The record of one class as Placement writes it: {"total": 8, "reserved": 0, …}. Missing optional
 * fields take Placement's defaults; unknown ones are ignored. Writers return a new reference, or
 * NULL when out of memory. */
json_t *inventory_to_json(const Inventory *inventory);
int inventory_from_json(const json_t *object, Inventory *ret, Error *reterr);

/* {"VCPU": 2}. ret must be initialised. */
json_t *resources_to_json(const Resources *resources);
int resources_from_json(const json_t *object, Resources *ret, Error *reterr);

/* ["A", "B"]. ret must be initialised. */
json_t *string_set_to_json(const StringSet *set);
int string_set_from_json(const json_t *array, StringSet *ret, Error *reterr);
