/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/ctl/print/xml.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "agent/ctl/print/json.h"
#include "base/cpu-set.h"
#include "base/uuid.h"

/* A foreign name for an XML comment or element: libvirt's names and types are of these letters. */
static void print_name(const char *name, FILE *output)
{
        for (const char *p = name; *p; p++) {
                bool dashes = p[0] == '-' && p[1] == '-';

                fputc(!dashes && (isalnum((unsigned char)*p) || strchr("_-.:+", *p)) ? *p : '?',
                      output);
        }
}

/* What a claim says of its layout, checked: texts that are no sets are empty ones. */
static int read_set(const json_t *object, const char *member, CpuSet *ret)
{
        int r = cpu_set_parse(ctl_json_text(object, member), ret, NULL);

        return r == -ENOMEM ? r : 0;
}

static int add_all(const CpuSet *set, CpuSet *ret)
{
        CPU_SET_FOREACH(cpu, set)
                if (cpu_set_add(ret, cpu) < 0)
                        return -ENOMEM;
        return 0;
}

/* " cpuset='0-3'" or another attribute; nothing for an empty set. */
static int print_set(const char *attribute, const CpuSet *set, FILE *output)
{
        char *text = cpu_set_format(set);

        if (!text)
                return -ENOMEM;
        if (text[0])
                fprintf(output, " %s='%s'", attribute, text);
        free(text);
        return 0;
}

/* <vcpu> and <cputune>. */
static int print_cpus(const json_t *claim, FILE *output)
{
        _cleanup_(cpu_set_done) CpuSet all = CPU_SET_INIT;
        _cleanup_(cpu_set_done) CpuSet vcpus = CPU_SET_INIT;
        const json_t *cells = json_object_get(claim, "cells"), *cell,
                     *cpus = json_object_get(claim, "cpus"), *cpu;
        size_t i;

        json_array_foreach(cells, i, cell) {
                _cleanup_(cpu_set_done) CpuSet set = CPU_SET_INIT;

                if (read_set(cell, "vcpus", &set) < 0 || add_all(&set, &vcpus) < 0)
                        return -ENOMEM;
        }
        fprintf(output, "<vcpu placement='static'>%u</vcpu>\n", cpu_set_count(&vcpus));
        if (json_array_size(cpus) == 0)
                return 0;
        fputs("<cputune>\n", output);
        json_array_foreach(cpus, i, cpu) {
                _cleanup_(cpu_set_done) CpuSet set = CPU_SET_INIT;

                if (read_set(cpu, "cpus", &set) < 0 || add_all(&set, &all) < 0)
                        return -ENOMEM;
                fprintf(output, "  <vcpupin vcpu='%" PRIu64 "'", ctl_json_u64(cpu, "vcpu"));
                if (print_set("cpuset", &set, output) < 0)
                        return -ENOMEM;
                fputs("/>\n", output);
        }
        fputs("  <emulatorpin", output);
        if (print_set("cpuset", &all, output) < 0)
                return -ENOMEM;
        fputs("/>\n</cputune>\n", output);
        return 0;
}

static int print_numatune(const json_t *cells, FILE *output)
{
        _cleanup_(cpu_set_done) CpuSet all = CPU_SET_INIT;
        const json_t *cell;
        size_t i;

        json_array_foreach(cells, i, cell) {
                uint64_t host_cell = ctl_json_u64(cell, "host_cell");

                if (host_cell < CPU_SET_MAX && cpu_set_add(&all, (unsigned)host_cell) < 0)
                        return -ENOMEM;
        }
        fputs("<numatune>\n  <memory mode='strict'", output);
        if (print_set("nodeset", &all, output) < 0)
                return -ENOMEM;
        fputs("/>\n", output);
        json_array_foreach(cells, i, cell)
                fprintf(output,
                        "  <memnode cellid='%" PRIu64 "' mode='strict' nodeset='%" PRIu64 "'/>\n",
                        ctl_json_u64(cell, "cell"), ctl_json_u64(cell, "host_cell"));
        fputs("</numatune>\n", output);
        return 0;
}

/* Cells of small pages are not named. */
static void print_pages(const json_t *cells, FILE *output)
{
        const json_t *cell;
        bool found = false;
        size_t i;

        json_array_foreach(cells, i, cell) {
                uint64_t page_kib = ctl_json_u64(cell, "page_kib");

                if (page_kib == 0)
                        continue;
                if (!found)
                        fputs("<memoryBacking>\n  <hugepages>\n", output);
                found = true;
                fprintf(output, "    <page size='%" PRIu64 "' unit='KiB' nodeset='%" PRIu64 "'/>\n",
                        page_kib, ctl_json_u64(cell, "cell"));
        }
        if (found)
                fputs("  </hugepages>\n</memoryBacking>\n", output);
}

static int print_cells(const json_t *cells, FILE *output)
{
        const json_t *cell;
        size_t i;

        fputs("<cpu>\n  <numa>\n", output);
        json_array_foreach(cells, i, cell) {
                _cleanup_(cpu_set_done) CpuSet vcpus = CPU_SET_INIT;

                fprintf(output, "    <cell id='%" PRIu64 "'", ctl_json_u64(cell, "cell"));
                if (read_set(cell, "vcpus", &vcpus) < 0 || print_set("cpus", &vcpus, output) < 0)
                        return -ENOMEM;
                fprintf(output, " memory='%" PRIu64 "' unit='MiB'/>\n",
                        ctl_json_u64(cell, "memory_mb"));
        }
        fputs("  </numa>\n</cpu>\n", output);
        return 0;
}

static int print_layout(const json_t *claim, FILE *output)
{
        const json_t *cells = json_object_get(claim, "cells"), *cell;
        uint64_t memory_mb = 0;
        size_t i;

        if (json_array_size(cells) == 0)
                return 0;
        json_array_foreach(cells, i, cell)
                memory_mb += ctl_json_u64(cell, "memory_mb");
        if (memory_mb > 0)
                fprintf(output, "<memory unit='MiB'>%" PRIu64 "</memory>\n", memory_mb);
        if (print_cpus(claim, output) < 0)
                return -ENOMEM;
        /* A guest whose memory was not asked for has its memory anywhere. */
        if (memory_mb == 0)
                return 0;
        if (print_numatune(cells, output) < 0)
                return -ENOMEM;
        print_pages(cells, output);
        return print_cells(cells, output);
}

static void print_unmade(const json_t *device, const char *mdev, FILE *output)
{
        fputs("<!-- to be made (virsh nodedev-define, nodedev-start):\n<device>\n  <parent>",
              output);
        print_name(ctl_json_text(device, "device"), output);
        fputs("</parent>\n  <capability type='mdev'>\n    <type id='", output);
        print_name(ctl_json_text(device, "mdev_type"), output);
        fprintf(output, "'/>\n    <uuid>%s</uuid>\n  </capability>\n</device>\n-->\n", mdev);
}

static void print_mdev(const json_t *device, const char *mdev, FILE *output)
{
        if (!json_is_true(json_object_get(device, "exists")))
                print_unmade(device, mdev, output);
        fprintf(output,
                "<hostdev mode='subsystem' type='mdev' managed='no' model='vfio-pci'>\n"
                "  <source>\n    <address uuid='%s'/>\n  </source>\n</hostdev>\n",
                mdev);
}

static void print_pci(const json_t *device, FILE *output)
{
        const char *address = ctl_json_text(device, "address");
        bool managed = !json_is_false(json_object_get(device, "managed"));
        unsigned domain, bus, slot, function;
        int end = 0;

        if (sscanf(address, "%4x:%2x:%2x.%1u%n", &domain, &bus, &slot, &function, &end) != 4 ||
            address[end] != '\0')
                return;
        fprintf(output,
                "<hostdev mode='subsystem' type='pci' managed='%s'>\n  <source>\n"
                "    <address domain='0x%04x' bus='0x%02x' slot='0x%02x' function='0x%x'/>\n"
                "  </source>\n</hostdev>\n",
                managed ? "yes" : "no", domain, bus, slot, function);
}

int ctl_xml_print(const json_t *claim, FILE *output)
{
        const json_t *devices = json_object_get(claim, "devices"), *device;
        size_t i;
        int r = print_layout(claim, output);

        if (r == 0 && json_array_size(devices) > 0 &&
            json_array_size(json_object_get(claim, "cells")) > 0)
                fputs("<!-- into <devices>: -->\n", output);
        json_array_foreach(devices, i, device) {
                Uuid mdev;

                if (uuid_from_text(ctl_json_text(device, "mdev"), &mdev) == 0)
                        print_mdev(device, mdev.text, output);
                else
                        print_pci(device, output);
        }
        return r;
}
