/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A host with two GPUs, "a" and "b", both of type "t", for the tests of claims/ that know guests.
 * mdevs and guests have one letter each: mdevs 1 (t on a), 2 (other type on a), 3 (t on a), 4 (t on
 * b). */

#include <string.h>

#include "claims/claim/host-facts.h"

#define FACTS_GUESTS_MAX 4

typedef struct FactsFixture {
        HostFacts facts;
        HostDevice devices[2];
        HostMdev mdevs[4];
        HostDomain domains[FACTS_GUESTS_MAX];
        Uuid used[FACTS_GUESTS_MAX][4];
        char names[FACTS_GUESTS_MAX][2];
} FactsFixture;

static inline Uuid make_lettered(const char *pattern, char letter)
{
        Uuid uuid = UUID_NULL;
        char text[UUID_TEXT_LENGTH + 1];

        strcpy(text, pattern);
        snprintf(text + UUID_TEXT_LENGTH - 2, 3, "%02x", (unsigned)(unsigned char)letter);
        if (uuid_from_text(text, &uuid) < 0)
                abort();
        return uuid;
}

static inline Uuid make_mdev(char letter)
{
        return make_lettered("33333333-2222-4333-8444-555555555500", letter);
}

static inline Uuid make_guest(char letter)
{
        return make_lettered("44444444-2222-4333-8444-555555555500", letter);
}

static inline void make_facts(FactsFixture *ret)
{
        *ret = (FactsFixture){
                .devices = { { "a", "0000:41:00.0", "t", "VGPU", 1, HOST_CELL_NONE },
                             { "b", "0000:81:00.0", "t", "VGPU", 1, HOST_CELL_NONE } },
                .mdevs = { { make_mdev('1'), "a", "t" },
                           { make_mdev('2'), "a", "other" },
                           { make_mdev('3'), "a", "t" },
                           { make_mdev('4'), "b", "t" } },
        };
        ret->facts = (HostFacts){ .taken_usec = 1000 * USEC_PER_SEC,
                                  .devices = ret->devices,
                                  .n_devices = 2,
                                  .mdevs = ret->mdevs,
                                  .n_mdevs = 4,
                                  .domains = ret->domains };
}

/* Adds a running guest of 2 VCPUs and 512 MiB with the mdevs "1 3". */
static inline HostDomain *facts_guest(FactsFixture *facts, char letter, const char *mdevs)
{
        size_t n = facts->facts.n_domains++;
        HostDomain *domain = &facts->domains[n];

        facts->names[n][0] = letter;
        *domain = (HostDomain){ .uuid = make_guest(letter),
                                .name = facts->names[n],
                                .running = true,
                                .vcpus = 2,
                                .memory_mb = 512,
                                .mdevs = facts->used[n] };
        for (; *mdevs; mdevs++)
                if (*mdevs != ' ')
                        facts->used[n][domain->n_mdevs++] = make_mdev(*mdevs);
        return domain;
}
