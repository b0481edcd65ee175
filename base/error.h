/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Words for a failure, next to its errno.
 *
 * The rule of the whole program:
 *   < 0  a negative errno: could not do the job; forward it.
 *     0  done.
 *   > 0  a value of the function's own enum: an outcome that the direct caller expects and handles,
 *        and never forwards.
 * A function whose failure a person will read takes "Error *reterr" as its last parameter. It may
 * be NULL; it is written on failure only. No allocation is made. */

#include "base/macros.h"

#define ERROR_TEXT_MAX 512

typedef struct Error {
        int code; /* positive errno, 0 when nothing failed */
        char text[ERROR_TEXT_MAX];
} Error;

#define ERROR_NULL ((Error){ 0 })

/* Stores code (an errno of either sign; 0 becomes EIO, because a failure never returns 0) and the
 * text, and returns -code, so that one can write "return error_setf(reterr, EINVAL, …)". A text of
 * ERROR_TEXT_MAX bytes or more is cut and ends with "…". Control characters and bytes that are not
 * UTF-8 become '?'. The arguments may point into reterr. */
int error_setf(Error *reterr, int code, const char *format, ...) _printf_(3, 4);

/* Puts "prefix: " in front of the text that a callee left, or of strerror(-r) when it left none.
 * Returns r. */
int error_prefixf(Error *reterr, int r, const char *format, ...) _printf_(3, 4);

/* Puts more behind what is there, "; " between, where both failed; the code stays the first's.
 * Either may have failed or not; all may be NULL. */
void error_join(Error *all, const Error *more);

/* -ENOMEM with its words. */
int error_oom(Error *reterr);

/* The text, or strerror(-r) when there is none. Lives as long as error, or until the next call on
 * this thread. */
const char *error_text(const Error *error, int r);
