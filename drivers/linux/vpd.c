/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* PCI vital product data: resources, each a tag and a length, the read-only one a list of keywords
 * of two letters with a byte of length (PCI Local Bus Specification 3.0, appendix I). */

#include <ctype.h>
#include <stdio.h>

#include "base/text.h"
#include "drivers/linux/reader.h"

#define TAG_END       0x78 /* of small resources; the low three bits are the length */
#define TAG_READ_ONLY 0x90
#define LARGE         0x80

static void copy_serial(const uint8_t *bytes, size_t n, char ret[static DEVICE_IDENTITY_SIZE])
{
        size_t first = 0;

        while (first < n && !isgraph(bytes[first]))
                first++;
        while (n > first && !isgraph(bytes[n - 1]))
                n--;
        snprintf(ret, DEVICE_IDENTITY_SIZE, "%.*s", (int)(n - first), (const char *)bytes + first);
        text_sanitize(ret, '?');
}

/* Reads the fields of the read-only part, which begins at start. */
static bool read_fields(const uint8_t *vpd, size_t start, size_t end,
                        char ret[static DEVICE_IDENTITY_SIZE])
{
        for (size_t i = start; i + 3 <= end;) {
                const uint8_t *field = vpd + i;
                size_t next = i + 3 + field[2];

                if (next > end)
                        return false;
                if (field[0] == 'S' && field[1] == 'N')
                        copy_serial(field + 3, field[2], ret);
                if (field[0] == 'R' && field[1] == 'V') {
                        uint8_t sum = 0;

                        /* all bytes up to this field's first add up to nothing */
                        for (size_t j = 0; j <= i + 3 && j < end; j++)
                                sum = (uint8_t)(sum + vpd[j]);
                        return ret[0] && field[2] > 0 && sum == 0;
                }
                i = next;
        }
        return false;
}

static bool find_serial(const uint8_t *vpd, size_t n, char ret[static DEVICE_IDENTITY_SIZE])
{
        for (size_t i = 0; i < n;) {
                size_t start, length;

                if (!(vpd[i] & LARGE)) {
                        if ((vpd[i] & ~7U) == TAG_END)
                                return false;
                        i += 1 + (vpd[i] & 7U);
                        continue;
                }
                if (i + 3 > n)
                        return false;
                start = i + 3;
                length = vpd[i + 1] | (size_t)vpd[i + 2] << 8;
                if (start + length > n)
                        return false;
                if (vpd[i] == TAG_READ_ONLY)
                        return read_fields(vpd, start, start + length, ret);
                i = start + length;
        }
        return false;
}

bool linux_vpd_read_serial(const uint8_t *vpd, size_t n, char ret[static DEVICE_IDENTITY_SIZE])
{
        ret[0] = '\0';
        if (find_serial(vpd, n, ret))
                return true;
        ret[0] = '\0';
        return false;
}
