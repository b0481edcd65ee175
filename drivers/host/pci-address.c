/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/host/pci-address.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

int pci_address_format(uint64_t domain, uint64_t bus, uint64_t slot, uint64_t function,
                       char ret[PCI_ADDRESS_SIZE])
{
        if (domain > 0xffff || bus > 0xff || slot > 0x1f || function > 7)
                return -ERANGE;
        snprintf(ret, PCI_ADDRESS_SIZE, "%04" PRIx64 ":%02" PRIx64 ":%02" PRIx64 ".%" PRIx64,
                 domain, bus, slot, function);
        return 0;
}

int pci_address_parse(const char *text, char ret[PCI_ADDRESS_SIZE])
{
        static const char shape[] = "xxxx:xx:xx.x";
        char address[PCI_ADDRESS_SIZE];

        if (strnlen(text, PCI_ADDRESS_SIZE) != PCI_ADDRESS_SIZE - 1)
                return -EINVAL;
        for (size_t i = 0; i < PCI_ADDRESS_SIZE; i++) {
                unsigned char c = (unsigned char)text[i];

                if (shape[i] == 'x' ? !isxdigit(c) : c != (unsigned char)shape[i])
                        return -EINVAL;
                address[i] = (char)tolower(c);
        }
        /* slots have five bits, functions three */
        if (address[8] > '1' || address[11] > '7')
                return -EINVAL;
        memcpy(ret, address, PCI_ADDRESS_SIZE);
        return 0;
}
