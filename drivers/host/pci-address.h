/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The one text form of a PCI address in this program: "0000:41:00.0", lower case, 16-bit domain. */

#include "base/macros.h"

#define PCI_ADDRESS_SIZE 13 /* with the NUL */

/* -ERANGE, ret untouched, when a number does not fit: a domain above 16 bits, for one, which guests
 * cannot be given devices of. */
int pci_address_format(uint64_t domain, uint64_t bus, uint64_t slot, uint64_t function,
                       char ret[PCI_ADDRESS_SIZE]);

/* Any case; -EINVAL, ret untouched, for something else. */
int pci_address_parse(const char *text, char ret[PCI_ADDRESS_SIZE]);
