/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The identity of a PCI device apart from its address, for example "10de:20b0 1322921055123".
 * It has the vendor and the product in hexadecimal, and behind a blank the serial number, if it
 * is known. "" is an unknown identity. Pure. */

#include <string.h>

#include "base/text.h"

#define DEVICE_IDENTITY_SIZE 80 /* with the NUL */

/* Writes the identity, or "" for vendor 0 or 0xffff, which no device has. A serial number that
 * is too long is cut. NULL and "" mean an unknown serial number. */
static inline void device_identity_make(uint32_t vendor_id, uint32_t product_id, const char *serial,
                                        char ret[static DEVICE_IDENTITY_SIZE])
{
        bool has_serial = serial && serial[0];

        ret[0] = '\0';
        if (vendor_id == 0 || vendor_id >= 0xffff)
                return;
        snprintf(ret, DEVICE_IDENTITY_SIZE, "%04x:%04x%s%s", vendor_id, product_id & 0xffff,
                 has_serial ? " " : "", has_serial ? serial : "");
        text_trim_cut(ret);
}

/* Returns true if two identities differ for certain. An unknown identity, or a serial number
 * that only one side has, is no difference. */
static inline bool device_identity_differs(const char *a, const char *b)
{
        const size_t n_ids = sizeof("10de:20b0") - 1;

        if (strlen(a) < n_ids || strlen(b) < n_ids)
                return false;
        if (strncmp(a, b, n_ids) != 0)
                return true;
        return a[n_ids] && b[n_ids] && strcmp(a, b) != 0;
}

/* Returns true if now can be the same device as before, and has a part that before lacks: all of
 * it, or the serial number. */
static inline bool device_identity_completes(const char *before, const char *now)
{
        return !device_identity_differs(before, now) && strlen(now) > strlen(before);
}
