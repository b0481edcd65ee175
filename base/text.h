/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Makes texts; and makes foreign text safe to show and to pass on. Error texts and log lines quote
 * what servers, files and callers sent: D-Bus refuses what is not UTF-8, and a terminal obeys
 * control characters. */

#include <stdarg.h>
#include <stdint.h>

#include "base/macros.h"

/* What printf() would print, owned by the caller; NULL when out of memory. Instead of asprintf(),
 * which leaves its pointer undefined when it fails. */
_printf_(1, 2) char *text_format(const char *format, ...);
_printf_(1, 0) char *text_vformat(const char *format, va_list ap);

/* Closes a stream of open_memstream() and returns its text, or NULL if it could not be written. The
 * text is the caller's. */
char *text_close(FILE *stream, char *const *text);

/* Replaces in place every control character (C0, DEL, C1) and every byte that is not part of
 * well-formed UTF-8 (RFC 3629) by replacement, byte for byte: the length stays. */
void text_sanitize(char *text, char replacement);

/* The length of the well-formed UTF-8 sequence that text, which ends with a NUL, begins with; 0
 * when it begins with none. */
size_t text_sequence_length(const char *text);

/* Takes away the first bytes of a UTF-8 sequence that was cut off at the end of text. */
void text_trim_cut(char *text);

/* Wipes a text before it is freed; NULL is allowed. Returns NULL. */
char *text_free_secret(char *secret);
DEFINE_CLEANUP(char *, text_free_secret);

/* Returns the ending of an English noun after a number: "" for 1, else "s". */
static inline const char *text_plural(uint64_t n)
{
        return n == 1 ? "" : "s";
}

/* For qsort() and bsearch(): the order of texts in an array of pointers to them. */
int text_order(const void *a, const void *b);

/* The number of characters (Unicode code points) of UTF-8 text. */
size_t text_count_characters(const char *text);

/* Of an array of owned strings that ends with NULL: NULL is allowed. Returns NULL. */
char **strings_free(char **strings);
DEFINE_CLEANUP(char **, strings_free);

/* A copy of such an array; of NULL an empty one. -ENOMEM leaves ret alone. */
int strings_copy(char *const strings[], char ***ret);
