/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Makes digests. The hash is BLAKE2b without a key, as RFC 7693 defines it. Names are those of the
 * RFC: h is the state, v the work vector, m the message block, and sigma the order of its words in
 * each round. Words are little-endian. A text must be shorter than 2^64 bytes. */

#include "base/digest.h"

#include <endian.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define BLOCK_SIZE 128
#define N_WORDS    (BLOCK_SIZE / sizeof(uint64_t))
#define N_ROUNDS   12

static const uint64_t iv[8] = {
        0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
        0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179,
};

static const uint8_t sigma[10][N_WORDS] = {
        { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 },
        { 14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3 },
        { 11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4 },
        { 7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8 },
        { 9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13 },
        { 2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9 },
        { 12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11 },
        { 13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10 },
        { 6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5 },
        { 10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0 },
};

static inline uint64_t rotate(uint64_t word, unsigned n)
{
        return (word >> n) | (word << (64 - n));
}

/* The function G of the RFC. x and y are words of the block, the others are words of v. */
static inline void mix(uint64_t *a, uint64_t *b, uint64_t *c, uint64_t *d, uint64_t x, uint64_t y)
{
        *a += *b + x;
        *d = rotate(*d ^ *a, 32);
        *c += *d;
        *b = rotate(*b ^ *c, 24);
        *a += *b + y;
        *d = rotate(*d ^ *a, 16);
        *c += *d;
        *b = rotate(*b ^ *c, 63);
}

/* Adds one block to the state. n_done counts the bytes of data up to its end; is_last marks the
 * last block. */
static void compress(uint64_t h[8], const uint8_t block[BLOCK_SIZE], uint64_t n_done, bool is_last)
{
        uint64_t m[N_WORDS], v[16];

        memcpy(m, block, sizeof(m));
        for (size_t i = 0; i < N_WORDS; i++)
                m[i] = le64toh(m[i]);
        memcpy(v, h, 8 * sizeof(uint64_t));
        memcpy(v + 8, iv, sizeof(iv));
        v[12] ^= n_done;
        if (is_last)
                v[14] = ~v[14];
        for (size_t i = 0; i < N_ROUNDS; i++) {
                const uint8_t *s = sigma[i % 10];

                mix(&v[0], &v[4], &v[8], &v[12], m[s[0]], m[s[1]]);
                mix(&v[1], &v[5], &v[9], &v[13], m[s[2]], m[s[3]]);
                mix(&v[2], &v[6], &v[10], &v[14], m[s[4]], m[s[5]]);
                mix(&v[3], &v[7], &v[11], &v[15], m[s[6]], m[s[7]]);
                mix(&v[0], &v[5], &v[10], &v[15], m[s[8]], m[s[9]]);
                mix(&v[1], &v[6], &v[11], &v[12], m[s[10]], m[s[11]]);
                mix(&v[2], &v[7], &v[8], &v[13], m[s[12]], m[s[13]]);
                mix(&v[3], &v[4], &v[9], &v[14], m[s[14]], m[s[15]]);
        }
        for (size_t i = 0; i < 8; i++)
                h[i] ^= v[i] ^ v[i + 8];
}

Digest digest_make(const void *data, size_t n)
{
        const uint8_t *bytes = data;
        uint8_t last[BLOCK_SIZE] = { 0 };
        Digest digest = { .size = n };
        size_t n_done = 0;
        uint64_t h[8];

        memcpy(h, iv, sizeof(h));
        /* The parameter block: length of the hash, no key, sequential mode. */
        h[0] ^= 0x01010000 ^ DIGEST_HASH_SIZE;
        for (; n - n_done > BLOCK_SIZE; n_done += BLOCK_SIZE)
                compress(h, bytes + n_done, n_done + BLOCK_SIZE, false);
        if (n > n_done)
                memcpy(last, bytes + n_done, n - n_done);
        compress(h, last, n, true);
        for (size_t i = 0; i < DIGEST_HASH_SIZE / sizeof(uint64_t); i++)
                h[i] = htole64(h[i]);
        memcpy(digest.hash, h, DIGEST_HASH_SIZE);
        return digest;
}

const char *digest_to_text(const Digest *digest, char text[static DIGEST_TEXT_MAX])
{
        for (size_t i = 0; i < DIGEST_HASH_SIZE; i++)
                sprintf(text + 2 * i, "%02x", digest->hash[i]);
        return text;
}
