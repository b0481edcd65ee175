/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The identity of a PCI device beside its address: "10de:20b0 1322921055123", the vendor and the
 * product in hexadecimal, and behind a blank the serial number where it is known. "" is an unknown
 * identity. Pure. */

#include <stdbool.h>
#include <stdint.h>

#define DEVICE_IDENTITY_SIZE 80 /* with the NUL */

/* Writes the identity; "" for vendor 0 or 0xffff, which no device has. A serial number (NULL or "":
 * unknown) is cut to the room. */
void device_identity_make(uint32_t vendor_id, uint32_t product_id, const char *serial,
                          char ret[static DEVICE_IDENTITY_SIZE]);

/* Compares two identities. Only facts count: an unknown identity, or a serial number that one side
 * does not know, is no difference. */
bool device_identity_differs(const char *a, const char *b);
