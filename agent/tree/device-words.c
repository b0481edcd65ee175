/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Describes the devices of the ledger that are not offered, for people.
 *
 * Tests: tests/unit/agent/tree/test-device-ledger.c */

#include <stdio.h>
#include <stdlib.h>

#include "agent/tree/device-ledger.h"

/* Only devices that are missing, held or blocked are in the text. The order of the branches is that
 * of their importance. */
char *device_ledger_describe_withheld(const DeviceLedger *ledger)
{
        char *text = NULL;
        size_t size = 0, n = 0;
        FILE *file = open_memstream(&text, &size);

        if (!file)
                return NULL;
        for (size_t i = 0; i < ledger->n_devices; i++) {
                const LedgerDevice *device = &ledger->devices[i];

                if (!device->missing && !device->held && !device->blocker[0])
                        continue;
                fprintf(file, "%s%s (", n++ > 0 ? ", " : "", device->name);
                if (device->other[0])
                        fprintf(file, "another device is at its address: %s", device->other);
                else if (device->blocker[0] && !device->missing && !device->held)
                        fprintf(file, "blocked: a guest has %s", device->blocker);
                else if (!device->missing)
                        fputs("back, and available again soon", file);
                else
                        fprintf(file, "missing%s",
                                device->listed ? ": the host lists it without capacity" : "");
                fputc(')', file);
        }
        if (fclose(file) != 0) {
                free(text);
                return NULL;
        }
        return text;
}

char *device_ledger_describe_unclean(const DeviceLedger *ledger)
{
        char *text = NULL;
        size_t size, n = 0;
        FILE *file = open_memstream(&text, &size);

        if (!file)
                return NULL;
        for (size_t i = 0; i < ledger->n_devices; i++)
                if (ledger->devices[i].unclean[0])
                        fprintf(file, "%s%s is %s", n++ > 0 ? ", " : "", ledger->devices[i].name,
                                ledger->devices[i].unclean);
        if (fclose(file) == 0)
                return text;
        free(text);
        return NULL;
}
