/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A digest of bytes: their number and their BLAKE2b hash (RFC 7693) of 256 bits. A digest
 * recognises a damaged file. It has no key and protects no secret. Pure. */

#include <stddef.h>
#include <stdint.h>

#define DIGEST_HASH_SIZE 32
#define DIGEST_TEXT_MAX  (2 * DIGEST_HASH_SIZE + 1)

typedef struct Digest {
        size_t size; /* number of bytes */
        uint8_t hash[DIGEST_HASH_SIZE];
} Digest;

/* Makes the digest of n bytes; data can be NULL if n is 0. */
Digest digest_make(const void *data, size_t n);

/* Writes the hash in hexadecimal digits to text, and returns text. */
const char *digest_to_text(const Digest *digest, char text[static DIGEST_TEXT_MAX]);
