/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Advice for the operator when polls of a driver fail. Pure. */

typedef struct DriverWords {
        const char *command; /* the command to run next */
        const char *advice;  /* a sentence without its full stop */
} DriverWords;

/* Returns the words of the driver, which are static. A name that is NULL or unknown gets those
 * of "libvirt". */
const DriverWords *driver_words(const char *name);
