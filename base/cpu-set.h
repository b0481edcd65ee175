/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A set of CPUs of the host or of a guest, and its text form, for example "0-3,8,10-11". Plain
 * data, any thread. */

#include "base/error.h"

#define CPU_SET_MAX 16384 /* limit of logical CPU numbers, libvirt's; Linux has 8192 */

typedef struct CpuSet {
        uint64_t *words; /* CPU n is bit n % 64 of word n / 64 */
        size_t n_words;
} CpuSet;

#define CPU_SET_INIT ((CpuSet){ 0 })

void cpu_set_done(CpuSet *set);

int cpu_set_add(CpuSet *set, unsigned cpu); /* -ERANGE from CPU_SET_MAX on, -ENOMEM */

/* Adds the CPUs from first to last, which is at least first. Costs one step for each 64 CPUs.
 * Returns the same errors. */
int cpu_set_add_range(CpuSet *set, unsigned first, unsigned last);

void cpu_set_remove(CpuSet *set, unsigned cpu);
bool cpu_set_contains(const CpuSet *set, unsigned cpu);
unsigned cpu_set_count(const CpuSet *set);
bool cpu_set_equal(const CpuSet *a, const CpuSet *b);
bool cpu_set_is_subset(const CpuSet *set, const CpuSet *of);
unsigned cpu_set_count_common(const CpuSet *a, const CpuSet *b); /* number of CPUs in both sets */

/* Returns the lowest CPU of the set that is at least from; CPU_SET_MAX: there is none. */
unsigned cpu_set_next(const CpuSet *set, unsigned from);

#define CPU_SET_FOREACH(cpu_, set_)                                       \
        for (unsigned cpu_ = cpu_set_next((set_), 0); cpu_ < CPU_SET_MAX; \
             cpu_ = cpu_set_next((set_), cpu_ + 1))

/* Replaces ret with a copy. -ENOMEM leaves ret as it was. */
int cpu_set_copy(CpuSet *ret, const CpuSet *set);

/* Parses nova.conf's syntax: numbers and ranges, separated by commas. "^5" and "^5-7" exclude CPUs
 * at any position in the text, so a text with exclusions only gives an empty set. A CPU can occur
 * several times. Spaces around numbers and signs, and empty items, are ignored. An empty text is an
 * empty set. A range that descends, a number from CPU_SET_MAX on, and other characters are errors.
 * Replaces *ret, which must be initialised and is unchanged on failure. -EINVAL with words,
 * -ENOMEM. */
int cpu_set_parse(const char *text, CpuSet *ret, Error *reterr);

/* Returns a text such as "0-3,8"; "" for an empty set, NULL when out of memory. The caller
 * frees it. */
char *cpu_set_format(const CpuSet *set);
