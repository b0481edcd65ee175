/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Hugepages: which pages of a cell they are, the names of their resource classes, and the number
 * that [DEFAULT] reserved_huge_pages reserves for the host. Pure. */

#include "drivers/host/host-config.h"

#define HUGE_PAGES_CLASS_SIZE 48 /* bytes of a class name with its NUL */

/* One entry of reserved_huge_pages. */
typedef struct HugePagesReserve {
        unsigned cell;
        uint64_t size_kib;
        /* number of pages */
        uint64_t count;
} HugePagesReserve;

/* Parses "node:0,size:2048,count:64". A size without a unit is in KiB; K, M and G with or
 * without iB or B are units. -EINVAL with an error text. */
int huge_pages_parse_reserve(const char *text, HugePagesReserve *ret, Error *reterr);

/* Returns the number of reserved pages of this size in this cell. The configuration must be
 * valid. */
uint64_t huge_pages_reserved(const HostConfig *config, unsigned cell, uint64_t size_kib);

/* Returns the size of the host's ordinary pages, in KiB: the smallest one that any cell lists.
 * Returns 0 if no cell lists pages, or if that one is too large to be an ordinary page of any
 * processor. */
uint64_t huge_pages_ordinary_size(const Snapshot *snapshot);

/* Writes the name of the class, for example "CUSTOM_HUGEPAGES_2M", with the largest unit of K, M
 * and G without a remainder. size_kib must not be 0. Returns ret. */
const char *huge_pages_class(uint64_t size_kib, char ret[static HUGE_PAGES_CLASS_SIZE]);
