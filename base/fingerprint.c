/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Makes and compares fingerprints. The hash is XXH64 with the seed 0, as its specification (version
 * 0.1.1) defines it: four lanes take the words of a stripe, then their mixture takes the rest.
 * Words are little-endian. */

#include "base/fingerprint.h"

#include <endian.h>
#include <string.h>

#define N_LANES     4
#define STRIPE_SIZE (N_LANES * sizeof(uint64_t))

/* The primes of the specification. */
#define PRIME1 UINT64_C(0x9E3779B185EBCA87)
#define PRIME2 UINT64_C(0xC2B2AE3D27D4EB4F)
#define PRIME3 UINT64_C(0x165667B19E3779F9)
#define PRIME4 UINT64_C(0x85EBCA77C2B2AE63)
#define PRIME5 UINT64_C(0x27D4EB2F165667C5)

static inline uint64_t rotate(uint64_t word, unsigned n)
{
        return (word << n) | (word >> (64 - n));
}

static inline uint64_t read_word(const uint8_t *bytes)
{
        uint64_t word;

        memcpy(&word, bytes, sizeof(word));
        return le64toh(word);
}

static inline uint64_t mix(uint64_t lane, uint64_t word)
{
        return rotate(lane + word * PRIME2, 31) * PRIME1;
}

/* Mixes all whole stripes. */
static uint64_t mix_stripes(const uint8_t *bytes, size_t n)
{
        uint64_t lanes[N_LANES] = { PRIME1 + PRIME2, PRIME2, 0, -PRIME1 }, hash;

        for (; n >= STRIPE_SIZE; n -= STRIPE_SIZE, bytes += STRIPE_SIZE)
                for (size_t i = 0; i < N_LANES; i++)
                        lanes[i] = mix(lanes[i], read_word(bytes + i * sizeof(uint64_t)));
        hash = rotate(lanes[0], 1) + rotate(lanes[1], 7) + rotate(lanes[2], 12) +
               rotate(lanes[3], 18);
        for (size_t i = 0; i < N_LANES; i++)
                hash = (hash ^ mix(0, lanes[i])) * PRIME1 + PRIME4;
        return hash;
}

/* Adds the bytes that are no whole stripe: words, then a half word, then bytes. */
static uint64_t mix_rest(uint64_t hash, const uint8_t *bytes, size_t n)
{
        uint32_t half;

        for (; n >= sizeof(uint64_t); n -= sizeof(uint64_t), bytes += sizeof(uint64_t))
                hash = rotate(hash ^ mix(0, read_word(bytes)), 27) * PRIME1 + PRIME4;
        if (n >= sizeof(half)) {
                memcpy(&half, bytes, sizeof(half));
                hash = rotate(hash ^ le32toh(half) * PRIME1, 23) * PRIME2 + PRIME3;
                n -= sizeof(half);
                bytes += sizeof(half);
        }
        for (; n > 0; n--, bytes++)
                hash = rotate(hash ^ *bytes * PRIME5, 11) * PRIME1;
        return hash;
}

Fingerprint fingerprint_make(const void *data, size_t n)
{
        const uint8_t *bytes = data;
        uint64_t hash = n >= STRIPE_SIZE ? mix_stripes(bytes, n) : PRIME5;

        hash += n;
        if (n > 0)
                hash = mix_rest(hash, bytes + n / STRIPE_SIZE * STRIPE_SIZE, n % STRIPE_SIZE);
        hash = (hash ^ hash >> 33) * PRIME2;
        hash = (hash ^ hash >> 29) * PRIME3;
        return (Fingerprint){ .size = n, .hash = hash ^ hash >> 32 };
}

bool fingerprint_matches(const Fingerprint *fingerprint, const void *data, size_t n)
{
        return fingerprint->size > 0 && fingerprint->size == n &&
               fingerprint_make(data, n).hash == fingerprint->hash;
}
