/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Small texts for people: escaped names, times, amounts. Pure, except for the time zone. */

#include "base/macros.h"

#define CTL_TEXT_MAX 128 /* bytes; enough for each text in a caller's buffer */

/* Returns a copy in which nothing can control a terminal; the caller frees. Control characters (C0,
 * DEL, C1), characters that separate lines or change the direction of writing, and bytes that are
 * not UTF-8 become \xNN. Without utf8, all that is not ASCII does too. NULL: memory ran out. */
char *ctl_text_escape(const char *foreign, bool utf8);

/* Returns a copy of an escaped text that has at most n characters (n >= 3): "host…_41_00_0". The
 * caller frees. NULL: memory ran out. */
char *ctl_text_cut(const char *text, size_t n, bool utf8);

/* Wraps an escaped text in place, at blanks. Only a line of one word can be longer than n
 * characters. */
void ctl_text_wrap(char *text, size_t n);

/* Write into buffer and return it. This one: "Mon 2025-01-06 12:00:00 UTC" (local time), or
 * "@SECONDS" for a time that has no date. */
const char *ctl_text_time(char buffer[static CTL_TEXT_MAX], uint64_t realtime_usec);
/* Writes "12s ago", "3min 20s ago", "2 days ago", "4min left" or "now". */
const char *ctl_text_relative(char buffer[static CTL_TEXT_MAX], uint64_t realtime_usec,
                              uint64_t now_usec);
/* Writes "31.2 GiB". */
const char *ctl_text_kib(char buffer[static CTL_TEXT_MAX], uint64_t kib);

/* Returns the word of table (NULL-terminated) that was probably meant: one that begins with word,
 * or that differs from it in at most two letters. The number of differences must be below the
 * length of word. NULL: there is none. A word of 32 letters or more has none, and longer words of
 * the table are skipped. Borrowed. */
const char *ctl_text_nearest(const char *word, const char *const *table);
