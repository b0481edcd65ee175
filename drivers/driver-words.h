/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What people are advised to do where polls of a driver fail. Pure. */

typedef struct DriverWords {
        const char *command; /* to be looked at next */
        const char *advice;  /* a sentence without its stop */
} DriverWords;

/* Static; name NULL, or of no driver: as of "libvirt". */
const DriverWords *driver_words(const char *name);
