/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Functions that make texts, and functions that make foreign text safe to show and to forward.
 * Error texts and log lines quote data of servers, files and callers. D-Bus rejects text that is
 * not UTF-8, and a terminal obeys control characters. */

#include <stdarg.h>
#include <stdint.h>

#include "base/macros.h"

/* Returns the output of printf(), which the caller frees; NULL when out of memory. Replaces
 * asprintf(), which leaves its pointer undefined on failure. */
_printf_(1, 2) char *text_format(const char *format, ...);
_printf_(1, 0) char *text_vformat(const char *format, va_list ap);

/* Closes a stream of open_memstream() and returns its text, which the caller frees. If the text
 * could not be written, frees it and returns NULL. */
char *text_close(FILE *stream, char *const *text);

/* Replaces control characters (C0, DEL, C1) and bytes outside of well-formed UTF-8 (RFC 3629) by
 * replacement. The replacement is in place and byte for byte, so the length stays. */
void text_sanitize(char *text, char replacement);

/* Returns the length in bytes of the well-formed UTF-8 sequence at the beginning of text; 0: there
 * is none. text must end with a NUL. An empty text gives 1, the length of its NUL. */
size_t text_sequence_length(const char *text);

/* Removes an incomplete UTF-8 sequence from the end of a text that was cut. */
void text_trim_cut(char *text);

/* Wipes a text up to its NUL and frees it. NULL is allowed. Returns NULL. */
char *text_free_secret(char *secret);
DEFINE_CLEANUP(char *, text_free_secret);

/* Returns the ending of an English noun after a number: "" for 1, else "s". */
static inline const char *text_plural(uint64_t n)
{
        return n == 1 ? "" : "s";
}

/* Compares two elements of an array of texts, for qsort() and bsearch(). */
int text_order(const void *a, const void *b);

/* Returns the number of characters (Unicode code points) of UTF-8 text. In other text, counts all
 * bytes but those from 0x80 to 0xbf. */
size_t text_count_characters(const char *text);

/* Frees an array of owned strings that ends with NULL. NULL is allowed. Returns NULL. */
char **strings_free(char **strings);
DEFINE_CLEANUP(char **, strings_free);

/* Copies such an array; a copy of NULL is empty. -ENOMEM leaves ret unchanged. */
int strings_copy(char *const strings[], char ***ret);
