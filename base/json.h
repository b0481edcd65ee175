/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* JSON forms that several folders share (Placement's own), and careful reading of foreign JSON. On
 * failure a reader leaves *ret unchanged. A reader of a member puts the name of the field into the
 * error. */

#include <jansson.h>

#include "base/inventory.h"
#include "base/resources.h"
#include "base/string-set.h"
#include "base/uuid.h"

#define _cleanup_json_ _cleanup_(json_decrefp)

/* Parses a text of n bytes (UTF-8, without duplicate keys), which is one object or array and
 * nothing behind it. The caller owns *ret. -EBADMSG with line and column. -ENOMEM, but
 * -EBADMSG if the memory ends inside of a string (jansson does not tell). */
int json_parse(const char *text, size_t n, json_t **ret, Error *reterr);

/* Parses likewise, but accepts U+0000 in strings that are no keys, so that one such string does not
 * cost the whole document. json_read_string() rejects that string. */
int json_parse_with_nul(const char *text, size_t n, json_t **ret, Error *reterr);

/* Reads a member of an object, as do the following functions. Strings, objects and arrays are
 * borrowed from object. -EBADMSG if the member is missing or has another type. A number must be an
 * integer, and for json_read_u64() not negative. A string must have no NUL. A uuid can be in upper
 * case and becomes lower case. */
int json_read_string(const json_t *object, const char *key, const char **ret, Error *reterr);
int json_read_u64(const json_t *object, const char *key, uint64_t *ret, Error *reterr);
int json_read_i64(const json_t *object, const char *key, int64_t *ret, Error *reterr);
int json_read_bool(const json_t *object, const char *key, bool *ret, Error *reterr);
int json_read_uuid(const json_t *object, const char *key, Uuid *ret, Error *reterr);
int json_read_object(const json_t *object, const char *key, json_t **ret,
                     Error *reterr); /* borrowed */
int json_read_array(const json_t *object, const char *key, json_t **ret,
                    Error *reterr); /* borrowed */

/* Makes a number. JSON integers are signed here, so one above INT64_MAX becomes INT64_MAX. */
json_t *json_from_u64(uint64_t number);

/* Converts the record of one class to and from Placement's form: {"total": 8, "reserved": 0, …}.
 * Missing optional fields take Placement's defaults, and unknown fields are ignored. Writers return
 * a new reference, or NULL when out of memory, if a text is not UTF-8, or if a ratio is not finite.
 * Readers of whole values return -EBADMSG for a wrong form, or -ENOMEM. inventory_from_json()
 * requires "total", and rejects a record outside of Placement's limits. */
json_t *inventory_to_json(const Inventory *inventory);
int inventory_from_json(const json_t *object, Inventory *ret, Error *reterr);

/* Converts amounts to and from an object such as {"VCPU": 2}. The reader replaces *ret, which must
 * be initialised. It rejects an invalid name of a class, and an amount that is negative or no
 * integer. It leaves out amounts of 0. Amounts are written by json_from_u64(). */
json_t *resources_to_json(const Resources *resources);
int resources_from_json(const json_t *object, Resources *ret, Error *reterr);

/* Converts a set to and from an array such as ["A", "B"]. The reader replaces *ret, which must be
 * initialised, and stores an item that occurs twice once. */
json_t *string_set_to_json(const StringSet *set);
int string_set_from_json(const json_t *array, StringSet *ret, Error *reterr);
