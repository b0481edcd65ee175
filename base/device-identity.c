/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/device-identity.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define IDS_LENGTH 9 /* "10de:20b0" */

void device_identity_make(uint32_t vendor_id, uint32_t product_id, const char *serial,
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

bool device_identity_differs(const char *a, const char *b)
{
        if (strlen(a) < IDS_LENGTH || strlen(b) < IDS_LENGTH)
                return false;
        if (strncmp(a, b, IDS_LENGTH) != 0)
                return true;
        return a[IDS_LENGTH] && b[IDS_LENGTH] && strcmp(a, b) != 0;
}
