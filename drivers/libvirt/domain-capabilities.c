/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/libvirt/domain-capabilities.h"

#include <errno.h>
#include <string.h>

#include "drivers/libvirt/xml.h"

static bool is_supported(const XmlNode *node)
{
        return node && strcmp(xml_attribute(node, "supported"), "no") != 0;
}

static const XmlNode *find_enum(const XmlNode *parent, const char *name)
{
        XML_FOREACH(choice, parent, "enum")
                if (strcmp(xml_attribute(choice, "name"), name) == 0)
                        return choice;
        return NULL;
}

/* The values of <enum name='…'> of a device that is supported. */
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

static int enum_has(const XmlNode *parent, const char *name, const char *value, bool *ret,
                    Error *reterr)
{
        _cleanup_(string_set_done) StringSet values = STRING_SET_INIT;
        int r = read_enum(parent, name, &values, reterr);

        if (r == 0)
                *ret = string_set_contains(&values, value);
        return r;
}

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

static int read_all(const XmlNode *root, SnapshotEmulator *emulator, Error *reterr)
{
        const XmlNode *loader = xml_child(xml_child(root, "os"), "loader");
        int r;

        if ((r = xml_copy_child(root, "arch", &emulator->arch, reterr)) < 0 ||
            (r = xml_copy_child(root, "machine", &emulator->machine, reterr)) < 0)
                return r;
        /* containers, and some other kinds, have no machine types */
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
