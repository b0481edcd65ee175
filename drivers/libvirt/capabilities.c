/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Parses the XML in which libvirt describes a host. There are four kinds of input: the capabilities
 * for a poll, the capabilities that stay the same while libvirt runs, the domain capabilities, and
 * a CPU model, which this file also formats.
 *
 * The functions get a text and fill structs. They check the form of numbers and the limits of
 * lists, but not whether the host makes sense; the code that uses a snapshot decides that. For a
 * malformed text they return -EBADMSG with words. Elements that an older libvirt lacks are
 * optional. Two small functions apply cpu_model_extra_flags to a set of features, and name the CPU
 * model that guests of an architecture have with cpu_mode = none.
 *
 * Tests: tests/unit/drivers/libvirt/test-capabilities.c */

#include "drivers/libvirt/capabilities.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "drivers/libvirt/xml.h"

/* Reads a CPU of a cell. Only its id is mandatory. Without the attribute "siblings" the set is
 * empty. */
static int read_cpu(const XmlNode *node, SnapshotCpu *cpu, Error *reterr)
{
        uint64_t id;
        int r;

        r = xml_number(xml_attribute(node, "id"), CPU_SET_MAX - 1, "The id of a CPU", &id, reterr);
        if (r < 0)
                return r;
        cpu->id = (unsigned)id;
        cpu->socket_id = -1; /* libvirt omits socket_id for offline CPUs */
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

/* Parses elements such as <pages unit='KiB' size='2048'>8</pages>. The unit belongs to the size. */
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
                if (page->size_kib == 0)
                        return error_setf(reterr, EBADMSG, "A page size is 0");
                r = xml_number(xml_text(pages), INT64_MAX, "A number of pages", &page->count,
                               reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Reads a cell with its pages and CPUs. Only its id is mandatory. */
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

/* The capabilities that stay the same while libvirt runs */

#define EMULATORS_MAX 1024

static void emulator_done(GuestEmulator *emulator)
{
        free(emulator->arch);
        free(emulator->path);
        string_set_done(&emulator->machines);
        *emulator = (GuestEmulator){ 0 };
}

void guest_capabilities_done(GuestCapabilities *capabilities)
{
        for (size_t i = 0; i < capabilities->n_emulators; i++)
                emulator_done(&capabilities->emulators[i]);
        free(capabilities->emulators);
        free(capabilities->cpu_arch);
        free(capabilities->cpu_model);
        free(capabilities->cpu_vendor);
        string_set_done(&capabilities->cpu_features);
        *capabilities = (GuestCapabilities){ 0 };
}

/* Adds a copy of the text to the set; an empty text is ignored. what names the text in errors. */
static int add_copy(const char *text, const char *what, StringSet *ret, Error *reterr)
{
        _cleanup_free_ char *copy = NULL;
        int r = xml_copy(text, what, &copy, reterr);

        if (r < 0 || !copy[0])
                return r;
        return string_set_add(ret, copy) < 0 ? error_oom(reterr) : 0;
}

/* Reads the CPU of the host. Features without a name are ignored. */
static int read_cpu_model(const XmlNode *cpu, GuestCapabilities *capabilities, Error *reterr)
{
        int r;

        if ((r = xml_copy_child(cpu, "arch", &capabilities->cpu_arch, reterr)) < 0 ||
            (r = xml_copy_child(cpu, "model", &capabilities->cpu_model, reterr)) < 0 ||
            (r = xml_copy_child(cpu, "vendor", &capabilities->cpu_vendor, reterr)) < 0)
                return r;
        XML_FOREACH(feature, cpu, "feature") {
                r = add_copy(xml_attribute(feature, "name"), "feature", &capabilities->cpu_features,
                             reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Reads the machine types with an attribute "canonical". Each is a short name of the canonical
 * one, for example "q35". */
static int read_machines(const XmlNode *parent, StringSet *ret, Error *reterr)
{
        XML_FOREACH(machine, parent, "machine") {
                int r = 0;

                if (xml_attribute(machine, "canonical")[0])
                        r = add_copy(xml_text(machine), "machine", ret, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Reads one emulator. The <emulator> of the <domain> with this type replaces that of <arch>. Its
 * <machine> elements, if it has any, replace all of those of <arch>. */
static int read_emulator(const XmlNode *arch, const char *domain_type, GuestEmulator *emulator,
                         Error *reterr)
{
        const XmlNode *domain = xml_child_of_type(arch, "domain", domain_type);
        const XmlNode *path = xml_child(domain, "emulator");
        int r;

        if ((r = xml_copy(xml_attribute(arch, "name"), "arch", &emulator->arch, reterr)) < 0 ||
            (r = xml_copy(xml_text(path ? path : xml_child(arch, "emulator")), "emulator",
                          &emulator->path, reterr)) < 0)
                return r;
        return read_machines(xml_child(domain, "machine") ? domain : arch, &emulator->machines,
                             reterr);
}

/* Reads the emulator of each <guest>. One without an architecture is skipped. */
static int read_guests(const XmlNode *root, const char *domain_type,
                       GuestCapabilities *capabilities, Error *reterr)
{
        size_t n_allocated = 0;

        XML_FOREACH(guest, root, "guest") {
                _cleanup_(emulator_done) GuestEmulator emulator = { 0 };
                const XmlNode *arch = xml_child(guest, "arch");
                int r;

                if (capabilities->n_emulators >= EMULATORS_MAX)
                        return error_setf(reterr, EBADMSG, "More than %d guests", EMULATORS_MAX);
                r = read_emulator(arch, domain_type, &emulator, reterr);
                if (r < 0)
                        return r;
                if (!emulator.arch[0])
                        continue;
                if (array_grow(&capabilities->emulators, sizeof(GuestEmulator),
                               capabilities->n_emulators, &n_allocated) < 0)
                        return error_oom(reterr);
                capabilities->emulators[capabilities->n_emulators++] = TAKE_STRUCT(emulator);
        }
        return 0;
}

int guest_capabilities_parse(const char *text, const char *domain_type, GuestCapabilities *ret,
                             Error *reterr)
{
        _cleanup_(guest_capabilities_done) GuestCapabilities capabilities = { 0 };
        _cleanup_(xml_document_freep) XmlDocument *document = NULL;
        const XmlNode *root;
        int r;

        r = xml_parse(text, "capabilities", &document, reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "Capabilities");
        root = xml_root(document);
        r = read_cpu_model(xml_child(xml_child(root, "host"), "cpu"), &capabilities, reterr);
        if (r == 0)
                r = read_guests(root, domain_type, &capabilities, reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "Capabilities");
        *ret = TAKE_STRUCT(capabilities);
        return 0;
}

/* Domain capabilities: abilities of guests with one architecture and machine type */

/* Returns false if the element is missing or has supported='no'. Older versions of libvirt write no
 * attribute "supported": then returns true. */
static bool is_supported(const XmlNode *node)
{
        return node && strcmp(xml_attribute(node, "supported"), "no") != 0;
}

/* Finds <enum name='…'>. NULL: an older libvirt does not write it. */
static const XmlNode *find_enum(const XmlNode *parent, const char *name)
{
        XML_FOREACH(choice, parent, "enum")
                if (strcmp(xml_attribute(choice, "name"), name) == 0)
                        return choice;
        return NULL;
}

/* Adds the values of <enum name='…'>, if its parent is supported. */
static int read_enum(const XmlNode *parent, const char *name, StringSet *ret, Error *reterr)
{
        if (!is_supported(parent))
                return 0;
        XML_FOREACH(value, find_enum(parent, name), "value") {
                _cleanup_free_ char *text = NULL;
                int r = xml_copy(xml_text(value), name, &text, reterr);

                if (r < 0)
                        return r;
                if (ret->n_items >= SNAPSHOT_LIST_MAX)
                        return error_setf(reterr, EBADMSG, "%s: more than %d values", name,
                                          SNAPSHOT_LIST_MAX);
                if (string_set_add(ret, text) < 0)
                        return error_oom(reterr);
        }
        return 0;
}

/* Checks whether an enum has this value. An enum that is missing has none, and neither has one
 * below an element that is not supported. */
static int enum_has(const XmlNode *parent, const char *name, const char *value, bool *ret,
                    Error *reterr)
{
        _cleanup_(string_set_done) StringSet values = STRING_SET_INIT;
        int r = read_enum(parent, name, &values, reterr);

        if (r == 0)
                *ret = string_set_contains(&values, value);
        return r;
}

/* Reads the values that guests can have for each kind of device. */
static int read_devices(const XmlNode *devices, SnapshotEmulator *emulator, Error *reterr)
{
        const struct {
                const char *device, *name;
                StringSet *set;
        } enums[] = {
                { "disk", "bus", &emulator->disk_buses },
                { "video", "modelType", &emulator->video_models },
                { "filesystem", "driverType", &emulator->filesystem_drivers },
                { "tpm", "model", &emulator->tpm_models },
                { "tpm", "backendModel", &emulator->tpm_backends },
                { "tpm", "backendVersion", &emulator->tpm_versions },
        };

        for (size_t i = 0; i < ARRAY_SIZE(enums); i++) {
                int r = read_enum(xml_child(devices, enums[i].device), enums[i].name, enums[i].set,
                                  reterr);

                if (r < 0)
                        return r;
        }
        return 0;
}

/* Reads the abilities of AMD SEV. An older libvirt does not report the number of guests: the
 * limit of SEV is then unknown (INT64_MAX), and SEV-ES is off. */
static int read_sev(const XmlNode *features, SnapshotEmulator *emulator, Error *reterr)
{
        const XmlNode *sev = xml_child(features, "sev");
        int r;

        emulator->sev_max_guests = INT64_MAX;
        emulator->sev = is_supported(sev);
        if (!emulator->sev)
                return 0;
        if ((r = xml_optional_number(xml_child_text(sev, "maxGuests"), INT64_MAX, "maxGuests",
                                     &emulator->sev_max_guests, reterr)) < 0 ||
            (r = xml_optional_number(xml_child_text(sev, "maxESGuests"), INT64_MAX, "maxESGuests",
                                     &emulator->sev_es_max_guests, reterr)) < 0)
                return r;
        emulator->sev_es = emulator->sev_es_max_guests > 0;
        return enum_has(xml_child(features, "launchSecurity"), "sectype", "sev-snp",
                        &emulator->sev_snp, reterr);
}

/* Reads the whole document. Only the architecture is mandatory. */
static int read_all(const XmlNode *root, SnapshotEmulator *emulator, Error *reterr)
{
        const XmlNode *loader = xml_child(xml_child(root, "os"), "loader");
        int r;

        if ((r = xml_copy_child(root, "arch", &emulator->arch, reterr)) < 0 ||
            (r = xml_copy_child(root, "machine", &emulator->machine, reterr)) < 0)
                return r;
        /* containers and some other kinds have no machine types, but an arch */
        if (!emulator->arch[0])
                return error_setf(reterr, EBADMSG, "No arch");
        if ((r = enum_has(loader, "secure", "yes", &emulator->secure_boot, reterr)) < 0 ||
            (r = read_devices(xml_child(root, "devices"), emulator, reterr)) < 0)
                return r;
        return read_sev(xml_child(root, "features"), emulator, reterr);
}

int domain_capabilities_parse(const char *text, SnapshotEmulator *ret, Error *reterr)
{
        _cleanup_(snapshot_emulator_done) SnapshotEmulator emulator = { 0 };
        _cleanup_(xml_document_freep) XmlDocument *document = NULL;
        int r;

        r = xml_parse(text, "domainCapabilities", &document, reterr);
        if (r == 0)
                r = read_all(xml_root(document), &emulator, reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "Domain capabilities");
        *ret = TAKE_STRUCT(emulator);
        return 0;
}

/* libvirt's XML of a CPU, which virConnectBaselineCPU() takes and returns */

/* Returns whether the text is not empty, and has only letters, digits and the other characters of
 * libvirt's names. Such a text needs no escapes in XML. */
static bool is_name(const char *text)
{
        for (const char *c = text; *c; c++)
                if (!isalnum((unsigned char)*c) && !strchr("._+- ", *c))
                        return false;
        return text[0] != '\0';
}

static bool are_names(const StringSet *set)
{
        for (size_t i = 0; set && i < set->n_items; i++)
                if (!is_name(set->items[i]))
                        return false;
        return true;
}

int cpu_model_format(const char *arch, const char *model, const char *vendor,
                     const StringSet *features, char **ret)
{
        _cleanup_free_ char *text = NULL;
        size_t size;
        FILE *stream;
        bool failed;

        if (!is_name(arch) || !is_name(model) || !are_names(features))
                return -EINVAL;
        stream = open_memstream(&text, &size);
        if (!stream)
                return -ENOMEM;
        fprintf(stream, "<cpu><arch>%s</arch><model>%s</model>", arch, model);
        if (vendor && is_name(vendor))
                fprintf(stream, "<vendor>%s</vendor>", vendor);
        for (size_t i = 0; features && i < features->n_items; i++)
                fprintf(stream, "<feature name='%s'/>", features->items[i]);
        fprintf(stream, "</cpu>");
        failed = ferror(stream) != 0;
        if (fclose(stream) != 0 || failed)
                return -ENOMEM;
        *ret = TAKE_PTR(text);
        return 0;
}

int cpu_model_read_features(const char *text, StringSet *ret, Error *reterr)
{
        _cleanup_(xml_document_freep) XmlDocument *document = NULL;
        int r = xml_parse(text, "cpu", &document, reterr);

        if (r < 0)
                return error_prefixf(reterr, r, "CPU");
        XML_FOREACH(feature, xml_root(document), "feature") {
                _cleanup_free_ char *name = NULL;

                if (strcmp(xml_attribute(feature, "policy"), "disable") == 0 ||
                    strcmp(xml_attribute(feature, "policy"), "forbid") == 0)
                        continue;
                r = xml_copy(xml_attribute(feature, "name"), "feature", &name, reterr);
                if (r < 0)
                        return error_prefixf(reterr, r, "CPU");
                if (name[0] && string_set_add(ret, name) < 0)
                        return error_oom(reterr);
        }
        return 0;
}

int cpu_model_apply_flags(char *const flags[], StringSet *features)
{
        for (; flags && *flags; flags++) {
                _cleanup_free_ char *name = strdup(*flags + (**flags == '+' || **flags == '-'));

                if (!name)
                        return -ENOMEM;
                for (char *c = name; *c; c++)
                        *c = (char)tolower((unsigned char)*c);
                if (**flags == '-')
                        string_set_remove(features, name);
                else if (string_set_add(features, name) < 0)
                        return -ENOMEM;
        }
        return 0;
}

const char *cpu_model_of_arch(const char *arch)
{
        static const struct {
                const char *arch, *model;
        } models[] = {
                { "x86_64", "qemu64" },
                { "i686", "qemu32" },
                { "ppc64le", "POWER8" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(models); i++)
                if (strcmp(models[i].arch, arch) == 0)
                        return models[i].model;
        return NULL;
}
