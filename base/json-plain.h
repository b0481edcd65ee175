/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The JSON that services write nearly always, read several times faster than jansson reads all of
 * it: printable ASCII without escapes, numbers without sign and exponent, no name twice, few
 * levels.
 *
 * A value is what jansson would make of the same text. NULL says only that the text is not plain:
 * then jansson reads it, and has the last word. */

#include <jansson.h>

/* A new reference to an object or array, or NULL. */
json_t *json_parse_plain(const char *text, size_t n);
