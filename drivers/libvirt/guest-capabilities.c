/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/libvirt/guest-capabilities.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "drivers/libvirt/xml.h"

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

static int add_copy(const char *text, const char *what, StringSet *ret, Error *reterr)
{
        _cleanup_free_ char *copy = NULL;
        int r = xml_copy(text, what, &copy, reterr);

        if (r < 0 || !copy[0])
                return r;
        return string_set_add(ret, copy) < 0 ? error_oom(reterr) : 0;
}

static int read_cpu(const XmlNode *cpu, GuestCapabilities *capabilities, Error *reterr)
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

/* A machine with "canonical" is a short name for that one. */
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

/* <domain> says for its type what is otherwise than <arch> says for all. */
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
        r = read_cpu(xml_child(xml_child(root, "host"), "cpu"), &capabilities, reterr);
        if (r == 0)
                r = read_guests(root, domain_type, &capabilities, reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "Capabilities");
        *ret = TAKE_STRUCT(capabilities);
        return 0;
}
