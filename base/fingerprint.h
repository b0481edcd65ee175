/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A fingerprint of bytes: their number and their XXH64 hash. It recognises a text that was seen
 * before, in a tenth of the time of a digest (digest.h). It is no evidence against a writer who
 * looks for two texts with the same hash. Pure. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Fingerprint {
        size_t size; /* number of bytes; 0 in a fingerprint that equals no other */
        uint64_t hash;
} Fingerprint;

/* Makes the fingerprint of n bytes; data can be NULL if n is 0. */
Fingerprint fingerprint_make(const void *data, size_t n);

/* Checks whether the bytes have this fingerprint. Compares the sizes before it reads the bytes. */
bool fingerprint_matches(const Fingerprint *fingerprint, const void *data, size_t n);
