/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Hugepages: which of a cell's pages are, what their resource class is called, and how many of them
 * [DEFAULT] reserved_huge_pages keeps from guests. Pure. */

#include "drivers/host/host-config.h"

#define HUGE_PAGES_CLASS_SIZE 48 /* bytes of a class name with its NUL */

/* One value of reserved_huge_pages. */
typedef struct HugePagesReserve {
        unsigned cell;
        uint64_t size_kib;
        uint64_t count;
} HugePagesReserve;

/* Parses "node:0,size:2048,count:64"; a size without a unit is in KiB, KB, MB, GB (and KiB …) may
 * follow. -EINVAL with words. */
int huge_pages_parse_reserve(const char *text, HugePagesReserve *ret, Error *reterr);

/* Every value of the option; -EINVAL with the option's name, also for a size of a cell that is
 * there twice. */
int huge_pages_check(const HostConfig *config, Error *reterr);

/* How many pages of that size of that cell are reserved; 0 when none are. The configuration must
 * have been checked. */
uint64_t huge_pages_reserved(const HostConfig *config, unsigned cell, uint64_t size_kib);

/* The size of the host's ordinary pages, in KiB: the smallest that any cell lists, if it is one
 * that a processor has as its ordinary one; 0 when there is none. */
uint64_t huge_pages_ordinary_size(const Snapshot *snapshot);

/* "CUSTOM_HUGEPAGES_2M", in the largest unit of K, M and G that fits. Returns ret. */
const char *huge_pages_class(uint64_t size_kib, char ret[static HUGE_PAGES_CLASS_SIZE]);
