/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Parses the elements of a domain that name a part of the host. There are two groups: the CPUs and
 * memory of the guest, and its devices. The function domain_set_config() adds parts of the
 * persistent definition to a running domain: the devices that only this definition has, the CPUs of
 * its pins to a single CPU, and those of its emulator and I/O threads.
 *
 * An element that is read and malformed fails the domain (-EBADMSG), as does a list above its
 * limit. The limit of devices also limits the time, because each PCI device is compared with the
 * others. Elements for a guest's cell that does not exist are ignored, as are PCI addresses with
 * numbers that PCI does not have.
 *
 * Tests: tests/unit/drivers/libvirt/test-domain.c */

#include "drivers/libvirt/domain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "drivers/libvirt/xml.h"

/* CPUs and memory of a guest: <vcpu cpuset>, <cputune>, <numatune>, <memoryBacking> and the
 * cells of <cpu> */

/* Parses a set of CPUs or cells in an attribute. A missing attribute is the empty set. */
static int read_set(const XmlNode *node, const char *name, CpuSet *ret, Error *reterr)
{
        int r = cpu_set_parse(xml_attribute(node, name), ret, NULL);

        return r == -EINVAL ? error_setf(reterr, EBADMSG, "%s is not a set: \"%.60s\"", name,
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

/* Adds the CPUs of each element with this name. */
static int add_thread_cpus(const XmlNode *cputune, const char *name, CpuSet *ret, Error *reterr)
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

/* Reads the pins of threads that run no guest CPU: emulator threads and I/O threads. */
static int read_thread_cpus(const XmlNode *cputune, SnapshotDomain *domain, Error *reterr)
{
        int r = add_thread_cpus(cputune, "emulatorpin", &domain->emulator_cpus, reterr);

        return r < 0 ? r : add_thread_cpus(cputune, "iothreadpin", &domain->iothread_cpus, reterr);
}

/* Reads a cell. A cell without an id has its position as its id, because libvirt counts the
 * cells. */
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

/* Reads a <page>, which applies to the cells that it names, or to the whole guest. A guest
 * without cells is its cell 0. */
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

/* Reads the size of pages. A cell without its own size has that of the guest. */
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

/* Fills cpus, pins, emulator_cpus, iothread_cpus, memory_cells, cells and page_kib, not sorted yet
 * (snapshot_seal()). root is <domain>. -EBADMSG with an error text, -ENOMEM; the caller frees
 * the members that are filled. */
static int domain_read_placement(const XmlNode *root, SnapshotDomain *domain, Error *reterr)
{
        int r = read_set(xml_child(root, "vcpu"), "cpuset", &domain->cpus, reterr);

        if (r < 0 || (r = read_pins(xml_child(root, "cputune"), domain, reterr)) < 0 ||
            (r = read_thread_cpus(xml_child(root, "cputune"), domain, reterr)) < 0 ||
            (r = read_cells(xml_child(xml_child(root, "cpu"), "numa"), domain, reterr)) < 0 ||
            (r = read_numatune(xml_child(root, "numatune"), domain, reterr)) < 0)
                return r;
        return read_pages(xml_child(root, "memoryBacking"), domain, reterr);
}

/* Devices */

/* Largest number of mdevs, and of PCI devices, of one guest. It limits the time, because each PCI
 * device is compared with the others. */
#define DOMAIN_DEVICES_MAX 4096

/* A domain during parsing, and the allocated sizes of its arrays. */
typedef struct Reader {
        SnapshotDomain domain;
        size_t n_mdevs_allocated;
        size_t n_pci_addresses_allocated;
} Reader;

static int add_mdev(const XmlNode *address, Reader *reader, Error *reterr)
{
        SnapshotDomain *domain = &reader->domain;
        Uuid uuid;

        if (uuid_from_text(xml_attribute(address, "uuid"), &uuid) < 0)
                return error_setf(reterr, EBADMSG, "A mediated device has no uuid: \"%.40s\"",
                                  xml_attribute(address, "uuid"));
        if (domain->n_mdevs >= DOMAIN_DEVICES_MAX)
                return error_setf(reterr, EBADMSG, "Too many devices");
        if (array_grow(&domain->mdevs, sizeof(Uuid), domain->n_mdevs, &reader->n_mdevs_allocated) <
            0)
                return error_oom(reterr);
        domain->mdevs[domain->n_mdevs++] = uuid;
        return 0;
}

/* Adds an address once. Skips one whose numbers are too large for a PCI address, for example with a
 * domain of more than 16 bits. */
static int add_pci(const XmlNode *node, Reader *reader, Error *reterr)
{
        SnapshotDomain *domain = &reader->domain;
        char address[PCI_ADDRESS_SIZE];
        int r = xml_pci_address(node, xml_attribute, address, reterr);

        if (r < 0 || !address[0] || snapshot_domain_has(domain, address, false))
                return r;
        if (domain->n_pci_addresses >= DOMAIN_DEVICES_MAX)
                return error_setf(reterr, EBADMSG, "Too many devices");
        if (array_grow(&domain->pci_addresses, PCI_ADDRESS_SIZE, domain->n_pci_addresses,
                       &reader->n_pci_addresses_allocated) < 0)
                return error_oom(reterr);
        memcpy(domain->pci_addresses[domain->n_pci_addresses++], address, PCI_ADDRESS_SIZE);
        return 0;
}

static bool is_of_type(const XmlNode *node, const char *type)
{
        return strcmp(xml_attribute(node, "type"), type) == 0;
}

static const XmlNode *source_address(const XmlNode *device)
{
        return xml_child(xml_child(device, "source"), "address");
}

static int read_hostdevs(const XmlNode *devices, Reader *reader, Error *reterr)
{
        XML_FOREACH(hostdev, devices, "hostdev") {
                const XmlNode *address = source_address(hostdev);
                int r = 0;

                if (address && is_of_type(hostdev, "mdev"))
                        r = add_mdev(address, reader, reterr);
                else if (address && is_of_type(hostdev, "pci"))
                        r = add_pci(address, reader, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Reads network interfaces that are host devices, except USB devices. */
static int read_interfaces(const XmlNode *devices, Reader *reader, Error *reterr)
{
        XML_FOREACH(interface, devices, "interface") {
                const XmlNode *address = source_address(interface);
                int r;

                if (!address || !is_of_type(interface, "hostdev") || is_of_type(address, "usb"))
                        continue;
                r = add_pci(address, reader, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Reads an image, which can be an NVMe namespace. Two images can have the same controller. */
static int read_image(const XmlNode *image, Reader *reader, Error *reterr)
{
        const XmlNode *address = source_address(image);

        return address && is_of_type(image, "nvme") ? add_pci(address, reader, reterr) : 0;
}

/* Reads an image, its data file (<dataStore>) and its backing images (<backingStore>). */
static int read_images(const XmlNode *first, Reader *reader, Error *reterr)
{
        int r = 0;

        for (const XmlNode *image = first; image && r == 0;
             image = xml_child(image, "backingStore")) {
                r = read_image(image, reader, reterr);
                if (r == 0)
                        r = read_image(xml_child(xml_child(image, "source"), "dataStore"), reader,
                                       reterr);
        }
        return r;
}

/* Reads the disks. QEMU uses an NVMe disk through VFIO, so the guest has the whole controller.
 * All images of a disk are open at the same time, including the target of a copy (<mirror>). */
static int read_disks(const XmlNode *devices, Reader *reader, Error *reterr)
{
        XML_FOREACH(disk, devices, "disk") {
                int r = read_images(disk, reader, reterr);

                if (r == 0)
                        r = read_images(xml_child(disk, "mirror"), reader, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int read_devices(const XmlNode *devices, Reader *reader, Error *reterr)
{
        int r = read_hostdevs(devices, reader, reterr);

        if (r == 0)
                r = read_interfaces(devices, reader, reterr);
        return r < 0 ? r : read_disks(devices, reader, reterr);
}

/* Reads all members. The firmware's variables (<nvram>) can be an NVMe namespace as well. */
static int read_domain(const XmlNode *root, Reader *reader, Error *reterr)
{
        SnapshotDomain *domain = &reader->domain;
        _cleanup_free_ char *uuid = NULL;
        int r;

        if ((r = xml_copy_child(root, "name", &domain->name, reterr)) < 0 ||
            (r = xml_copy_child(root, "uuid", &uuid, reterr)) < 0)
                return r;
        if (uuid_from_text(uuid, &domain->uuid) < 0)
                return error_setf(reterr, EBADMSG, "%.60s: not a uuid: \"%.40s\"", domain->name,
                                  uuid);
        if ((r = xml_optional_number(xml_child_text(root, "vcpu"), INT32_MAX, "vcpu",
                                     &domain->vcpus, reterr)) < 0 ||
            (r = xml_memory_kib(xml_child(root, "memory"), &domain->memory_kib, reterr)) < 0 ||
            (r = domain_read_placement(root, domain, reterr)) < 0 ||
            (r = read_image(xml_child(xml_child(root, "os"), "nvram"), reader, reterr)) < 0 ||
            (r = read_devices(xml_child(root, "devices"), reader, reterr)) < 0)
                return error_prefixf(reterr, r, "%s", domain->uuid.text);
        return 0;
}

int domain_parse(const char *text, SnapshotDomain *ret, Error *reterr)
{
        _cleanup_(xml_document_freep) XmlDocument *document = NULL;
        Reader reader = { 0 };
        int r;

        r = xml_parse(text, "domain", &document, reterr);
        if (r == 0)
                r = read_domain(xml_root(document), &reader, reterr);
        if (r < 0) {
                snapshot_domain_done(&reader.domain);
                return error_prefixf(reterr, r, "Domain");
        }
        *ret = reader.domain;
        return 0;
}

/* The persistent definition */

/* Adds the mdevs that only the persistent definition has. */
static int add_config_mdevs(SnapshotDomain *domain, const SnapshotDomain *config)
{
        if (config->n_mdevs == 0)
                return 0;
        domain->config_mdevs = calloc(config->n_mdevs, sizeof(Uuid));
        if (!domain->config_mdevs)
                return -ENOMEM;
        for (size_t i = 0; i < config->n_mdevs; i++)
                if (!snapshot_domain_has(domain, config->mdevs[i].text, false))
                        domain->config_mdevs[domain->n_config_mdevs++] = config->mdevs[i];
        return 0;
}

/* Adds the PCI devices that only the persistent definition has. */
static int add_config_pci(SnapshotDomain *domain, const SnapshotDomain *config)
{
        if (config->n_pci_addresses == 0)
                return 0;
        domain->config_pci_addresses = calloc(config->n_pci_addresses, PCI_ADDRESS_SIZE);
        if (!domain->config_pci_addresses)
                return -ENOMEM;
        for (size_t i = 0; i < config->n_pci_addresses; i++)
                if (!snapshot_domain_has(domain, config->pci_addresses[i], false))
                        memcpy(domain->config_pci_addresses[domain->n_config_pci_addresses++],
                               config->pci_addresses[i], PCI_ADDRESS_SIZE);
        return 0;
}

/* Adds the CPU of a set with exactly one CPU. */
static int add_only_cpu(CpuSet *ret, const CpuSet *cpus)
{
        return cpu_set_count(cpus) == 1 ? cpu_set_add(ret, cpu_set_next(cpus, 0)) : 0;
}

static int add_config_cpus(SnapshotDomain *domain, const SnapshotDomain *config)
{
        int r = add_only_cpu(&domain->config_cpus, &config->cpus);

        for (size_t i = 0; r == 0 && i < config->n_pins; i++)
                r = add_only_cpu(&domain->config_cpus, &config->pins[i].cpus);
        CPU_SET_FOREACH(cpu, &config->emulator_cpus)
                if (r == 0)
                        r = cpu_set_add(&domain->config_cpus, cpu);
        CPU_SET_FOREACH(cpu, &config->iothread_cpus)
                if (r == 0)
                        r = cpu_set_add(&domain->config_cpus, cpu);
        return r;
}

int domain_set_config(SnapshotDomain *domain, const SnapshotDomain *config)
{
        free(domain->config_mdevs);
        free(domain->config_pci_addresses);
        cpu_set_done(&domain->config_cpus);
        domain->config_mdevs = NULL;
        domain->config_pci_addresses = NULL;
        domain->config_cpus = CPU_SET_INIT;
        domain->n_config_mdevs = domain->n_config_pci_addresses = 0;
        if (add_config_mdevs(domain, config) < 0 || add_config_pci(domain, config) < 0 ||
            add_config_cpus(domain, config) < 0)
                return -ENOMEM;
        return 0;
}
