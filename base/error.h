/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Texts for failures, beside their errno.
 *
 * The rule of the whole program for a result: below 0 it is a negative errno: the function
 * failed, and the caller forwards it. 0 means done. Above 0 it is a value of the function's own
 * enum: an outcome that the direct caller handles and never forwards.
 *
 * A function whose failure a person will read takes "Error *reterr" as its last parameter. It
 * can be NULL, and it is written on failure only. Nothing is allocated. */

#include "base/macros.h"

#define ERROR_TEXT_MAX 512

typedef struct Error {
        int code; /* positive errno; 0: no failure */
        char text[ERROR_TEXT_MAX];
} Error;

#define ERROR_NULL ((Error){ 0 })

/* Stores code and text and returns -code, so that a caller can write "return error_setf(reterr,
 * EINVAL, …)". The code is an errno of either sign. A code of 0 becomes EIO, because a failure
 * never returns 0. A text of ERROR_TEXT_MAX bytes or more is cut and ends with "…". Control
 * characters and bytes that are not UTF-8 become '?'. The arguments can point into reterr. */
int error_setf(Error *reterr, int code, const char *format, ...) _printf_(3, 4);

/* Puts "prefix: " in front of the text that a callee stored, or of strerror(-r) if it stored none.
 * Sets the code to -r. Returns r, a negative errno. */
int error_prefixf(Error *reterr, int r, const char *format, ...) _printf_(3, 4);

/* Appends the text of more to the text of all, with "; " between two failures. The code of the
 * first failure stays. Does nothing if more is no failure or all is NULL. */
void error_join(Error *all, const Error *more);

/* Stores "Out of memory" and returns -ENOMEM. */
int error_oom(Error *reterr);

/* Returns the text, or strerror(-r) if there is none. It is valid as long as error, or until
 * the next call on this thread. */
const char *error_text(const Error *error, int r);
