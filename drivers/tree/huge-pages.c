/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Parses reserved_huge_pages, and finds the number of reserved pages of a cell. Also names the
 * resource classes of hugepages, and finds the size of the host's ordinary pages. These are the
 * smallest pages of any cell, if they have at most ORDINARY_MAX_KIB; all others are hugepages.
 *
 * An entry has the parts node, size and count, in any order and each once. Blanks around words are
 * allowed, as in oslo.config, but not between a size and its unit. Letters can be of either case. A
 * size without a unit is in KiB. Each function that needs the option parses the texts again;
 * nothing is cached.
 *
 * Tests: tests/unit/drivers/tree/test-huge-pages.c */
#include "drivers/tree/huge-pages.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

/* Largest ordinary page of any processor, in KiB. If the smallest page of a host is larger, the
 * host lists no ordinary pages. */
#define ORDINARY_MAX_KIB 64

/* Parses a decimal number, and moves *text to the character after it. Returns -EINVAL without a
 * digit and for an overflow. */
static int read_number(const char **text, uint64_t *ret)
{
        uint64_t value = 0;
        const char *c = *text;

        if (!isdigit((unsigned char)*c))
                return -EINVAL;
        for (; isdigit((unsigned char)*c); c++)
                if (u64_mul_overflow(value, 10, &value) ||
                    u64_add_overflow(value, (uint64_t)(*c - '0'), &value))
                        return -EINVAL;
        *text = c;
        *ret = value;
        return 0;
}

/* Multiplies the size by its unit. All units are powers of 1024. The table has longer names first,
 * because "K" also begins "KIB". Without a unit *text stays. Returns -EINVAL for an overflow. */
static int read_size_unit(const char **text, uint64_t *size)
{
        static const struct {
                const char *unit;
                uint64_t kib;
        } units[] = { { "KIB", 1 }, { "MIB", 1024 }, { "GIB", 1024 * 1024 },
                      { "KB", 1 },  { "MB", 1024 },  { "GB", 1024 * 1024 },
                      { "K", 1 },   { "M", 1024 },   { "G", 1024 * 1024 } };

        for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
                size_t n = strlen(units[i].unit);

                if (strncasecmp(*text, units[i].unit, n) != 0)
                        continue;
                *text += n;
                return u64_mul_overflow(*size, units[i].kib, size) ? -EINVAL : 0;
        }
        return 0;
}

static const char *skip_blanks(const char *c)
{
        return c + strspn(c, " \t\n");
}

/* Parses "KEY:NUMBER" and the comma after it. Returns -EINVAL for a malformed number or a comma at
 * the end, which oslo.config refuses, too. Returns -ENOENT for another key or one without a colon:
 * huge_pages_parse_reserve() then tries the next key, and returns -EINVAL if none is left. */
static int read_part(const char **text, const char *key, uint64_t *ret)
{
        size_t n = strlen(key);
        const char *c = skip_blanks(*text);
        int r;

        if (strncasecmp(c, key, n) != 0)
                return -ENOENT;
        c = skip_blanks(c + n);
        if (*c != ':')
                return -ENOENT;
        c = skip_blanks(c + 1);
        r = read_number(&c, ret);
        if (r == 0 && strcmp(key, "size") == 0)
                r = read_size_unit(&c, ret);
        c = skip_blanks(c);
        if (r < 0 || (*c && *c != ',') || (*c && !c[1]))
                return -EINVAL;
        *text = *c ? c + 1 : c;
        return 0;
}

int huge_pages_parse_reserve(const char *text, HugePagesReserve *ret, Error *reterr)
{
        static const char *const keys[] = { "node", "size", "count" };
        uint64_t values[ARRAY_SIZE(keys)] = { 0 };
        bool seen[ARRAY_SIZE(keys)] = { false };
        const char *c = text;
        bool good = true;

        while (good && *c) {
                int r = -ENOENT;

                for (size_t i = 0; i < ARRAY_SIZE(keys) && r == -ENOENT; i++) {
                        r = read_part(&c, keys[i], &values[i]);
                        if (r == 0 && seen[i])
                                r = -EINVAL;
                        seen[i] = r == 0 || seen[i];
                }
                good = r == 0;
        }
        for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
                good = good && seen[i];
        if (!good || values[0] > INT32_MAX || values[1] == 0 || values[1] > INT64_MAX ||
            values[2] > INVENTORY_MAX_AMOUNT)
                return error_setf(reterr, EINVAL,
                                  "\"%.60s\" is not of the form node:0,size:2048,count:64", text);
        *ret = (HugePagesReserve){ (unsigned)values[0], values[1], values[2] };
        return 0;
}

uint64_t huge_pages_reserved(const HostConfig *config, unsigned cell, uint64_t size_kib)
{
        for (char **text = config->reserved_huge_pages; text && *text; text++) {
                HugePagesReserve reserve;

                if (huge_pages_parse_reserve(*text, &reserve, NULL) == 0 && reserve.cell == cell &&
                    reserve.size_kib == size_kib)
                        return reserve.count;
        }
        return 0;
}

uint64_t huge_pages_ordinary_size(const Snapshot *snapshot)
{
        uint64_t smallest = UINT64_MAX;

        for (size_t i = 0; i < snapshot->n_cells; i++)
                for (size_t j = 0; j < snapshot->cells[i].n_pages; j++)
                        smallest = MIN(smallest, snapshot->cells[i].pages[j].size_kib);
        return smallest <= ORDINARY_MAX_KIB ? smallest : 0;
}

const char *huge_pages_class(uint64_t size_kib, char ret[static HUGE_PAGES_CLASS_SIZE])
{
        static const struct {
                uint64_t kib;
                char letter;
        } units[] = { { 1024 * 1024, 'G' }, { 1024, 'M' }, { 1, 'K' } };
        size_t i = 0;

        while (size_kib % units[i].kib != 0)
                i++;
        snprintf(ret, HUGE_PAGES_CLASS_SIZE, "CUSTOM_HUGEPAGES_%llu%c",
                 (unsigned long long)(size_kib / units[i].kib), units[i].letter);
        return ret;
}
