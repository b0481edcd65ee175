/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Regular expressions as Python's re has them, which Nova's options are written in.
 *
 * The one place that calls PCRE2. What the two read in different ways is refused, so that a pattern
 * means here what it means in Nova, or nothing. Length, memory and time are bounded, whatever the
 * pattern is. */

#include "base/error.h"

#define REGEX_LENGTH_MAX 128 /* bytes of a pattern */

typedef struct Regex Regex;

/* -EINVAL with words for what is no pattern, -ENOMEM. */
int regex_new(Regex **ret, const char *pattern, Error *reterr);
Regex *regex_free(Regex *regex);
DEFINE_CLEANUP(Regex *, regex_free);

/* As re.match(): it begins where the text does, and the text's end may be left over. False also
 * when the bounds were met, or there is no memory. */
bool regex_matches(const Regex *regex, const char *text);
