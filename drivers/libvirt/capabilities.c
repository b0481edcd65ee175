/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/libvirt/capabilities.h"

#include <errno.h>
#include <string.h>

#include "drivers/libvirt/xml.h"

static int read_cpu(const XmlNode *node, SnapshotCpu *cpu, Error *reterr)
{
        uint64_t id;
        int r;

        r = xml_number(xml_attribute(node, "id"), CPU_SET_MAX - 1, "The id of a CPU", &id, reterr);
        if (r < 0)
                return r;
        cpu->id = (unsigned)id;
        cpu->socket_id = -1; /* left out for CPUs that are offline */
        r = xml_optional_int(xml_attribute(node, "socket_id"), "socket_id", &cpu->socket_id,
                             reterr);
        if (r < 0)
                return r;
        r = cpu_set_parse(xml_attribute(node, "siblings"), &cpu->siblings, reterr);
        return r == -EINVAL ? error_setf(reterr, EBADMSG, "CPU %u: bad siblings", cpu->id) : r;
}

static int read_cpus(const XmlNode *node, SnapshotCell *cell, Error *reterr)
{
        const XmlNode *cpus = xml_child(node, "cpus");
        int r = xml_make_array(cpus, "cpu", XML_ITEMS_MAX, sizeof(SnapshotCpu), &cell->cpus,
                               reterr);

        if (r < 0)
                return r;
        XML_FOREACH(cpu, cpus, "cpu") {
                r = read_cpu(cpu, &cell->cpus[cell->n_cpus++], reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* <pages unit='KiB' size='2048'>8</pages>: the unit is that of the size. */
static int read_pages(const XmlNode *node, SnapshotCell *cell, Error *reterr)
{
        int r = xml_make_array(node, "pages", XML_ITEMS_MAX, sizeof(PageSize), &cell->pages,
                               reterr);

        if (r < 0)
                return r;
        XML_FOREACH(pages, node, "pages") {
                PageSize *page = &cell->pages[cell->n_pages++];
                const char *unit = xml_attribute(pages, "unit");

                if (unit[0] && strcmp(unit, "KiB") != 0)
                        return error_setf(reterr, EBADMSG, "Unknown unit of pages: \"%.20s\"",
                                          unit);
                r = xml_number(xml_attribute(pages, "size"), INT64_MAX, "A page size",
                               &page->size_kib, reterr);
                if (r < 0)
                        return r;
                r = xml_number(xml_text(pages), INT64_MAX, "A number of pages", &page->count,
                               reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int read_cell(const XmlNode *node, SnapshotCell *cell, Error *reterr)
{
        uint64_t id;
        int r;

        r = xml_number(xml_attribute(node, "id"), UINT32_MAX, "The id of a cell", &id, reterr);
        if (r < 0)
                return r;
        cell->id = (unsigned)id;
        if ((r = xml_memory_kib(xml_child(node, "memory"), &cell->memory_kib, reterr)) < 0 ||
            (r = read_pages(node, cell, reterr)) < 0 || (r = read_cpus(node, cell, reterr)) < 0)
                return error_prefixf(reterr, r, "Cell %u", cell->id);
        return 0;
}

static int read_cells(const XmlNode *host, Snapshot *snapshot, Error *reterr)
{
        const XmlNode *cells = xml_child(xml_child(host, "topology"), "cells");
        int r = xml_make_array(cells, "cell", XML_ITEMS_MAX, sizeof(SnapshotCell), &snapshot->cells,
                               reterr);

        if (r < 0)
                return r;
        XML_FOREACH(cell, cells, "cell") {
                r = read_cell(cell, &snapshot->cells[snapshot->n_cells++], reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int read_host(const XmlNode *host, Snapshot *snapshot, Error *reterr)
{
        const XmlNode *cpu = xml_child(host, "cpu");
        int r;

        if ((r = xml_copy_child(cpu, "arch", &snapshot->arch, reterr)) < 0 ||
            (r = xml_copy_child(cpu, "model", &snapshot->cpu_model, reterr)) < 0)
                return r;
        return read_cells(host, snapshot, reterr);
}

int capabilities_parse(const char *text, Snapshot *snapshot, Error *reterr)
{
        _cleanup_(xml_document_freep) XmlDocument *document = NULL;
        int r = xml_parse(text, "capabilities", &document, reterr);

        if (r == 0)
                r = read_host(xml_child(xml_root(document), "host"), snapshot, reterr);
        return r < 0 ? error_prefixf(reterr, r, "Capabilities") : 0;
}
