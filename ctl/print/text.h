/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Small pieces of text for people: foreign names made harmless, times, amounts, usage bars. Pure,
 * but for the time zone. */

#include "base/macros.h"

#define CTL_TEXT_MAX 128 /* room for any of the texts that are written into a caller's buffer */

/* A copy in which nothing can steer a terminal: control characters (C0, DEL, C1), characters that
 * turn the direction of writing, and bytes that are not UTF-8 become \xNN; without utf8, everything
 * that is not ASCII. NULL when out of memory. */
char *ctl_text_escape(const char *foreign, bool utf8);

/* A copy of such a text that has at most n characters (n >= 3): "host1_…_00_0". The caller frees;
 * NULL when out of memory. */
char *ctl_text_cut(const char *text, size_t n, bool utf8);

/* Breaks lines of such a text, in place, at blanks, so that none is longer than n characters unless
 * a word is. */
void ctl_text_wrap(char *text, size_t n);

/* Writes, and returns buffer:
 * "Mon 2025-01-06 12:00:00 UTC" (local time) */
const char *ctl_text_time(char buffer[static CTL_TEXT_MAX], uint64_t realtime_usec);
/* "12s ago", "3min 20s ago", "2 days ago", "4min left", "now" */
const char *ctl_text_relative(char buffer[static CTL_TEXT_MAX], uint64_t realtime_usec,
                              uint64_t now_usec);
/* "31.2 GiB" */
const char *ctl_text_kib(char buffer[static CTL_TEXT_MAX], uint64_t kib);

/* "▉▉░░░", n characters wide (at most 20; "##---" without utf8). Whoever uses anything gets at
 * least one mark, and a bar is full only when nothing is left. */
const char *ctl_text_bar(char buffer[static CTL_TEXT_MAX], uint64_t used, uint64_t capacity,
                         unsigned n, bool utf8);

/* The word of table (NULL-terminated) that was probably meant, or NULL. */
const char *ctl_text_nearest(const char *word, const char *const *table);
