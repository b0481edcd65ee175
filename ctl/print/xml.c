/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Prints the libvirt XML of a claim for the option --xml: the layout of the guest on the host, and
 * its devices. Pure.
 *
 * The output is a fragment: memory, CPUs, NUMA tuning, pages and cells for <domain>, then a
 * <hostdev> for each device. The elements for <domain> appear only if the claim has a layout.
 * <cputune> appears only for a pinned guest, and <memoryBacking> only with huge pages. If the
 * layout has no memory, only <vcpu> and <cputune> can appear. Invariant: names from the document
 * are reduced to letters that need no escaping. Limits: I/O threads have no element. A PCI address
 * that cannot be parsed has no <hostdev>. */

#include "ctl/print/xml.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/cpu-set.h"
#include "base/uuid.h"
#include "ctl/print/json.h"

/* Consumer type of claims that were created from a guest: CLAIM_TYPE_GUEST of
 * claims/claim/claim.h. */
#define CLAIM_TYPE_OF_GUEST "LIBVIRT"

/* Prints a name for an XML comment or element. libvirt's names and types have only these letters. A
 * double dash would end a comment, so its first dash is replaced. */
static void print_name(const char *name, FILE *output)
{
        for (const char *p = name; *p; p++) {
                bool dashes = p[0] == '-' && p[1] == '-';

                fputc(!dashes && (isalnum((unsigned char)*p) || strchr("_-.:+", *p)) ? *p : '?',
                      output);
        }
}

/* Adds the CPU set in a member of a JSON object to a set. A text that cannot be parsed counts as
 * empty. */
static void add_set(const json_t *object, const char *member, CpuSet *to, CtlPage *page)
{
        _cleanup_(cpu_set_done) CpuSet set = CPU_SET_INIT;

        page->failed |= cpu_set_parse(ctl_json_text(object, member), &set, NULL) == -ENOMEM;
        CPU_SET_FOREACH(cpu, &set)
                page->failed |= cpu_set_add(to, cpu) < 0;
}

/* Prints " cpuset='0-3'" or another attribute. Prints nothing for an empty set. */
static void print_set(const char *attribute, const CpuSet *set, CtlPage *page)
{
        _cleanup_free_ char *text = cpu_set_format(set);

        if (text && text[0])
                fprintf(page->output, " %s='%s'", attribute, text);
        page->failed |= !text;
}

/* Prints the pin of the emulator threads. If the claim was created from a guest, it is the pin in
 * the guest's domain. For each other claim, and if the domain has no pin or is unknown, it is the
 * host CPUs of the guest CPUs. The CPUs that the claim holds are never used, because I/O threads
 * and the next start of the guest have some of them. */
static void print_emulator(const json_t *claim, const json_t *host, const CpuSet *of_guest_cpus,
                           CtlPage *page)
{
        bool was_guest = strcmp(ctl_json_text(claim, "consumer_type"), CLAIM_TYPE_OF_GUEST) == 0;
        _cleanup_(cpu_set_done) CpuSet threads = CPU_SET_INIT;

        if (was_guest)
                add_set(ctl_json_find(json_object_get(host, "domains"), "uuid",
                                      ctl_json_text(claim, "consumer")),
                        "emulator_cpus", &threads, page);
        fputs("  <emulatorpin", page->output);
        print_set("cpuset", cpu_set_count(&threads) > 0 ? &threads : of_guest_cpus, page);
        fputs("/>\n", page->output);
}

/* Prints <vcpu> and, if the guest is pinned, <cputune>. */
static void print_cpus(const json_t *claim, const json_t *host, CtlPage *page)
{
        _cleanup_(cpu_set_done) CpuSet all = CPU_SET_INIT, vcpus = CPU_SET_INIT;
        const json_t *cells = json_object_get(claim, "cells"), *cell,
                     *cpus = json_object_get(claim, "cpus"), *cpu;
        size_t i;

        json_array_foreach(cells, i, cell)
                add_set(cell, "vcpus", &vcpus, page);
        fprintf(page->output, "<vcpu placement='static'>%u</vcpu>\n", cpu_set_count(&vcpus));
        if (json_array_size(cpus) == 0)
                return;
        fputs("<cputune>\n", page->output);
        json_array_foreach(cpus, i, cpu) {
                _cleanup_(cpu_set_done) CpuSet set = CPU_SET_INIT;

                add_set(cpu, "cpus", &set, page);
                add_set(cpu, "cpus", &all, page);
                fprintf(page->output, "  <vcpupin vcpu='%" PRIu64 "'", ctl_json_u64(cpu, "vcpu"));
                print_set("cpuset", &set, page);
                fputs("/>\n", page->output);
        }
        print_emulator(claim, host, &all, page);
        fputs("</cputune>\n", page->output);
}

/* Prints <numatune>: the host cells of all memory, and that of each guest cell. Modes are strict,
 * because the claim reserves memory in these cells. */
static void print_numatune(const json_t *cells, CtlPage *page)
{
        _cleanup_(cpu_set_done) CpuSet all = CPU_SET_INIT;
        const json_t *cell;
        size_t i;

        json_array_foreach(cells, i, cell) {
                uint64_t host_cell = ctl_json_u64(cell, "host_cell");

                if (host_cell < CPU_SET_MAX)
                        page->failed |= cpu_set_add(&all, (unsigned)host_cell) < 0;
        }
        fputs("<numatune>\n  <memory mode='strict'", page->output);
        print_set("nodeset", &all, page);
        fputs("/>\n", page->output);
        json_array_foreach(cells, i, cell)
                fprintf(page->output,
                        "  <memnode cellid='%" PRIu64 "' mode='strict' nodeset='%" PRIu64 "'/>\n",
                        ctl_json_u64(cell, "cell"), ctl_json_u64(cell, "host_cell"));
        fputs("</numatune>\n", page->output);
}

/* Prints <memoryBacking> with the huge pages of the cells. Cells of small pages need no element. */
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

static void print_cells(const json_t *cells, CtlPage *page)
{
        const json_t *cell;
        size_t i;

        fputs("<cpu>\n  <numa>\n", page->output);
        json_array_foreach(cells, i, cell) {
                _cleanup_(cpu_set_done) CpuSet vcpus = CPU_SET_INIT;

                add_set(cell, "vcpus", &vcpus, page);
                fprintf(page->output, "    <cell id='%" PRIu64 "'", ctl_json_u64(cell, "cell"));
                print_set("cpus", &vcpus, page);
                fprintf(page->output, " memory='%" PRIu64 "' unit='MiB'/>\n",
                        ctl_json_u64(cell, "memory_mb"));
        }
        fputs("  </numa>\n</cpu>\n", page->output);
}

static void print_layout(const json_t *claim, const json_t *host, CtlPage *page)
{
        const json_t *cells = json_object_get(claim, "cells"), *cell;
        uint64_t memory_mb = 0;
        size_t i;

        if (json_array_size(cells) == 0)
                return;
        json_array_foreach(cells, i, cell)
                memory_mb += ctl_json_u64(cell, "memory_mb");
        if (memory_mb > 0)
                fprintf(page->output, "<memory unit='MiB'>%" PRIu64 "</memory>\n", memory_mb);
        print_cpus(claim, host, page);
        /* Without requested memory, the memory of the guest can be in any cell, so no element binds
         * it. */
        if (memory_mb == 0)
                return;
        print_numatune(cells, page);
        print_pages(cells, page->output);
        print_cells(cells, page);
}

/* Prints a comment with the XML of an mdev that does not exist yet. */
static void print_unmade(const json_t *device, const char *mdev, FILE *output)
{
        fputs("<!-- create this device (virsh nodedev-define, nodedev-start):\n<device>\n  <parent>",
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

/* Prints the <hostdev> of a whole PCI device. The address of the document is hexadecimal. */
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

void ctl_xml_print(const json_t *claim, const json_t *host, CtlPage *page)
{
        const json_t *devices = json_object_get(claim, "devices"), *device;
        size_t i;

        print_layout(claim, host, page);
        if (json_array_size(devices) > 0 && json_array_size(json_object_get(claim, "cells")) > 0)
                fputs("<!-- insert into <devices>: -->\n", page->output);
        json_array_foreach(devices, i, device) {
                Uuid mdev;

                if (uuid_from_text(ctl_json_text(device, "mdev"), &mdev) == 0)
                        print_mdev(device, mdev.text, page->output);
                else
                        print_pci(device, page->output);
        }
}
