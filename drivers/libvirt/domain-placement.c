/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/libvirt/domain-placement.h"

#include <errno.h>

/* A set of CPUs or cells in an attribute; a missing one is the empty set. */
static int read_set(const XmlNode *node, const char *name, CpuSet *ret, Error *reterr)
{
        int r = cpu_set_parse(xml_attribute(node, name), ret, NULL);

        return r == -EINVAL ? error_setf(reterr, EBADMSG, "%s is no set: \"%.60s\"", name,
                                         xml_attribute(node, name))
               : r < 0      ? error_oom(reterr)
                            : 0;
}

static int read_pins(const XmlNode *cputune, SnapshotDomain *domain, Error *reterr)
{
        int r = xml_make_array(cputune, "vcpupin", DOMAIN_VCPUS_MAX, sizeof(DomainPin),
                               &domain->pins, reterr);

        if (r < 0)
                return r;
        XML_FOREACH(vcpupin, cputune, "vcpupin") {
                DomainPin *pin = &domain->pins[domain->n_pins++];
                uint64_t vcpu;

                r = xml_number(xml_attribute(vcpupin, "vcpu"), DOMAIN_VCPUS_MAX - 1,
                               "The number of a guest CPU", &vcpu, reterr);
                if (r < 0)
                        return r;
                pin->vcpu = (unsigned)vcpu;
                r = read_set(vcpupin, "cpuset", &pin->cpus, reterr);
                if (r < 0)
                        return error_prefixf(reterr, r, "Guest CPU %u", pin->vcpu);
        }
        return 0;
}

/* Adds the CPUs of each element of that name. */
static int add_emulator_cpus(const XmlNode *cputune, const char *name, CpuSet *ret, Error *reterr)
{
        XML_FOREACH(pin, cputune, name) {
                _cleanup_(cpu_set_done) CpuSet cpus = CPU_SET_INIT;
                int r = read_set(pin, "cpuset", &cpus, reterr);

                if (r < 0)
                        return error_prefixf(reterr, r, "<%s>", name);
                CPU_SET_FOREACH(cpu, &cpus)
                        if (cpu_set_add(ret, cpu) < 0)
                                return error_oom(reterr);
        }
        return 0;
}

/* Reads the pins of the threads that run no guest CPU: the emulator's and the I/O threads. */
static int read_emulator_cpus(const XmlNode *cputune, SnapshotDomain *domain, Error *reterr)
{
        int r = add_emulator_cpus(cputune, "emulatorpin", &domain->emulator_cpus, reterr);

        return r < 0 ? r
                     : add_emulator_cpus(cputune, "iothreadpin", &domain->emulator_cpus, reterr);
}

/* A cell without an id has the next number, as libvirt counts them. */
static int read_cell(const XmlNode *node, size_t number, DomainCell *cell, Error *reterr)
{
        uint64_t id = number;
        int r = xml_optional_number(xml_attribute(node, "id"), DOMAIN_CELLS_MAX - 1,
                                    "The id of a guest's cell", &id, reterr);

        if (r < 0)
                return r;
        cell->id = (unsigned)id;
        r = xml_scaled_kib(xml_attribute(node, "memory"), xml_attribute(node, "unit"),
                           &cell->memory_kib, reterr);
        if (r == 0)
                r = read_set(node, "cpus", &cell->vcpus, reterr);
        return r < 0 ? error_prefixf(reterr, r, "Guest's cell %u", cell->id) : 0;
}

static int read_cells(const XmlNode *numa, SnapshotDomain *domain, Error *reterr)
{
        int r = xml_make_array(numa, "cell", DOMAIN_CELLS_MAX, sizeof(DomainCell), &domain->cells,
                               reterr);

        if (r < 0)
                return r;
        XML_FOREACH(cell, numa, "cell") {
                size_t number = domain->n_cells++;

                r = read_cell(cell, number, &domain->cells[number], reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int read_memnode(const XmlNode *memnode, SnapshotDomain *domain, Error *reterr)
{
        uint64_t id;
        int r = xml_number(xml_attribute(memnode, "cellid"), DOMAIN_CELLS_MAX - 1,
                           "The cell of a <memnode>", &id, reterr);

        for (size_t i = 0; r == 0 && i < domain->n_cells; i++)
                if (domain->cells[i].id == id)
                        r = read_set(memnode, "nodeset", &domain->cells[i].host_cells, reterr);
        return r;
}

static int read_numatune(const XmlNode *numatune, SnapshotDomain *domain, Error *reterr)
{
        int r = read_set(xml_child(numatune, "memory"), "nodeset", &domain->memory_cells, reterr);

        if (r < 0)
                return r;
        XML_FOREACH(memnode, numatune, "memnode") {
                r = read_memnode(memnode, domain, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* <page> of all the guest, or of the cells that it names. A guest without cells is its cell 0. */
static int read_page(const XmlNode *page, SnapshotDomain *domain, Error *reterr)
{
        _cleanup_(cpu_set_done) CpuSet cells = CPU_SET_INIT;
        uint64_t size_kib;
        int r = xml_scaled_kib(xml_attribute(page, "size"), xml_attribute(page, "unit"), &size_kib,
                               reterr);

        if (r == 0)
                r = read_set(page, "nodeset", &cells, reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "Hugepages");
        if (size_kib == 0)
                return error_setf(reterr, EBADMSG, "Hugepages of size 0");
        if (cpu_set_count(&cells) == 0 || (domain->n_cells == 0 && cpu_set_contains(&cells, 0)))
                domain->page_kib = size_kib;
        for (size_t i = 0; i < domain->n_cells; i++)
                if (cpu_set_contains(&cells, domain->cells[i].id))
                        domain->cells[i].page_kib = size_kib;
        return 0;
}

static int read_pages(const XmlNode *backing, SnapshotDomain *domain, Error *reterr)
{
        const XmlNode *hugepages = xml_child(backing, "hugepages");

        if (!hugepages)
                return 0;
        if (!xml_child(hugepages, "page"))
                domain->page_kib = DOMAIN_HUGE_PAGE_DEFAULT_KIB;
        XML_FOREACH(page, hugepages, "page") {
                int r = read_page(page, domain, reterr);

                if (r < 0)
                        return r;
        }
        for (size_t i = 0; i < domain->n_cells; i++)
                if (domain->cells[i].page_kib == 0)
                        domain->cells[i].page_kib = domain->page_kib;
        return 0;
}

int domain_read_placement(const XmlNode *root, SnapshotDomain *domain, Error *reterr)
{
        int r = read_set(xml_child(root, "vcpu"), "cpuset", &domain->cpus, reterr);

        if (r < 0 || (r = read_pins(xml_child(root, "cputune"), domain, reterr)) < 0 ||
            (r = read_emulator_cpus(xml_child(root, "cputune"), domain, reterr)) < 0 ||
            (r = read_cells(xml_child(xml_child(root, "cpu"), "numa"), domain, reterr)) < 0 ||
            (r = read_numatune(xml_child(root, "numatune"), domain, reterr)) < 0)
                return r;
        return read_pages(xml_child(root, "memoryBacking"), domain, reterr);
}
