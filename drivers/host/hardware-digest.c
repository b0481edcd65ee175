/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Writes the hardware as text and makes the digest of the text. Devices are lines that are sorted,
 * because their order in a snapshot is that of their addresses. */

#include "drivers/host/hardware-digest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB_PER_GIB (1024 * 1024)
#define LINE_SIZE   80

typedef struct Line {
        char text[LINE_SIZE];
} Line;

static int order_lines(const void *a, const void *b)
{
        return strcmp(a, b);
}

/* Returns the size in GiB, rounded. Firmware takes different small parts of equal memory. */
static uint64_t to_gib(uint64_t kib)
{
        return (kib + KIB_PER_GIB / 2) / KIB_PER_GIB;
}

static void print_cells(const Snapshot *snapshot, FILE *output)
{
        for (size_t i = 0; i < snapshot->n_cells; i++) {
                const SnapshotCell *cell = &snapshot->cells[i];

                fprintf(output, "cell %u: %" PRIu64 " GiB, pages", cell->id,
                        to_gib(cell->memory_kib));
                for (size_t j = 0; j < cell->n_pages; j++)
                        fprintf(output, " %" PRIu64, cell->pages[j].size_kib);
                fputc('\n', output);
        }
}

/* Prints one line for each device. A device without PCI identity counts only as a device. */
static int print_devices(const Snapshot *snapshot, FILE *output)
{
        Line *lines = calloc(snapshot->n_devices + 1, sizeof(Line));

        if (!lines)
                return -ENOMEM;
        for (size_t i = 0; i < snapshot->n_devices; i++) {
                const SnapshotDevice *device = &snapshot->devices[i];

                snprintf(lines[i].text, sizeof(lines[i].text),
                         "device %d %04" PRIx32 ":%04" PRIx32 " %06" PRIx32 " cell %d, function %d",
                         device->is_pci, device->vendor_id, device->product_id, device->class_code,
                         device->numa_node,
                         device->physical_function[0] ? 2 : device->is_physical_function);
        }
        qsort(lines, snapshot->n_devices, sizeof(Line), order_lines);
        for (size_t i = 0; i < snapshot->n_devices; i++)
                fprintf(output, "%s\n", lines[i].text);
        free(lines);
        return 0;
}

/* Counts all CPUs, because Nova takes idle ones offline. A cell lists only those online. */
static int print_all(const Snapshot *snapshot, FILE *output)
{
        unsigned n_present = cpu_set_count(&snapshot->present_cpus);

        fprintf(output, "%s, %s, %u CPUs, %" PRIu64 " GiB\nfeatures", snapshot->arch,
                snapshot->cpu_model, n_present ?: cpu_set_count(&snapshot->online_cpus),
                to_gib(snapshot->memory_kib));
        for (size_t i = 0; i < snapshot->cpu_features.n_items; i++)
                fprintf(output, " %s", snapshot->cpu_features.items[i]);
        fputc('\n', output);
        print_cells(snapshot, output);
        return print_devices(snapshot, output);
}

int hardware_make_digest(const Snapshot *snapshot, Digest *ret)
{
        char *text = NULL;
        size_t n = 0;
        FILE *output = open_memstream(&text, &n);
        int r;

        if (!output)
                return -ENOMEM;
        r = print_all(snapshot, output);
        if (fclose(output) != 0)
                r = -ENOMEM;
        if (r == 0)
                *ret = digest_make(text, n);
        free(text);
        return r;
}
