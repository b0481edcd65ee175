/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads the sections [device_shapes NAME] of all files into HostShapes structs, one for each name,
 * and frees them. base/device-set.h reads the texts of members and partitions. This file checks
 * their addresses, and each set against the other options. Invariant: a device belongs to one set.
 *
 * Tests: tests/unit/config/test-shapes.c */

#include "config/shapes.h"

#include "config/settings.h"

#include <string.h>
#include <strings.h>

static void shapes_done(HostShapes *shapes)
{
        for (const ConfigOption *o = config_shapes_options; o->key; o++)
                config_option_done(o, shapes);
        device_set_done(&shapes->set);
        *shapes = (HostShapes){ 0 };
}

void config_shapes_done(HostConfig *host)
{
        for (size_t i = 0; i < host->n_shapes; i++)
                shapes_done(&host->shapes[i]);
        free(host->shapes);
        host->shapes = NULL;
        host->n_shapes = 0;
}

static const HostShapes *find_shapes(const HostConfig *host, const char *name)
{
        for (size_t i = 0; i < host->n_shapes; i++)
                if (strcasecmp(host->shapes[i].set.name, name) == 0)
                        return &host->shapes[i];
        return NULL;
}

static bool has_word(char *const *list, const char *word)
{
        for (; list && *list; list++)
                if (strcasecmp(*list, word) == 0)
                        return true;
        return false;
}

/* Checks that a device belongs to no other section. */
static int check_device(const HostConfig *host, const char *address, Error *reterr)
{
        for (size_t i = 0; i < host->n_shapes; i++)
                if (device_set_members_of(&host->shapes[i].set, address))
                        return error_setf(reterr, EINVAL,
                                          "%s already belongs to [device_shapes %s]", address,
                                          host->shapes[i].set.name);
        for (size_t i = 0; i < host->n_cleans; i++)
                if (has_word(host->cleans[i].device_addresses, address))
                        return error_setf(
                                reterr, EINVAL,
                                "%s is in [device_clean %.64s], but devices of a set are not cleaned",
                                address, host->cleans[i].name);
        for (size_t i = 0; i < host->n_mdev_types; i++)
                if (has_word(host->mdev_types[i].device_addresses, address))
                        return error_setf(reterr, EINVAL, "%s is in [mdev_%.64s]", address,
                                          host->mdev_types[i].type);
        return 0;
}

static int check_devices(const HostConfig *host, const DeviceSet *set, Error *reterr)
{
        const char *address;
        int r = 0;

        for (size_t i = 0; (address = device_set_device(set, i)) && r == 0; i++) {
                if (!config_value_has_form(address, CONFIG_FORM_PCI_ADDRESS))
                        return error_setf(reterr, EINVAL,
                                          "\"%.40s\" must be a PCI address such as 0000:c1:00.0",
                                          address);
                r = check_device(host, address, reterr);
        }
        return r;
}

static bool is_name(const char *name)
{
        size_t n =
                strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-");

        return n >= 1 && n <= DEVICE_SET_ID_MAX && !name[n];
}

static void drop_empty(char **text)
{
        if (*text && !**text) {
                free(*text);
                *text = NULL;
        }
}

/* Makes the set of the texts, and checks the section as a whole. */
static int finish(const HostConfig *host, HostShapes *shapes, const char *name, Error *reterr)
{
        int r;

        drop_empty(&shapes->activate);
        drop_empty(&shapes->deactivate);
        if (!is_name(name))
                return error_setf(reterr, EINVAL,
                                  "the name must have 1 to %d letters, digits, \"_\", \".\" and "
                                  "\"-\"",
                                  DEVICE_SET_ID_MAX);
        if (!host->report_in_placement)
                return error_setf(reterr, EINVAL, "needs [pci] report_in_placement = true");
        if (!shapes->resource_class || strcmp(shapes->resource_class, "VGPU") == 0)
                return error_setf(reterr, EINVAL,
                                  "resource_class must be a class such as CUSTOM_HGX_GPU");
        if (!shapes->activate != !shapes->deactivate)
                return error_setf(reterr, EINVAL, "activate and deactivate need each other");
        for (size_t i = 0; i < host->n_cleans; i++)
                if (has_word(host->cleans[i].resource_classes, shapes->resource_class))
                        return error_setf(
                                reterr, EINVAL,
                                "%.64s is in [device_clean %.64s], but devices of a set are not cleaned",
                                shapes->resource_class, host->cleans[i].name);
        r = device_set_parse(&shapes->set, name, shapes->resource_class, shapes->members,
                             shapes->partitions, reterr);
        return r < 0 ? r : check_devices(host, &shapes->set, reterr);
}

/* Sets the options of a section, or their defaults, and checks them. */
static int load_shapes(const HostConfig *host, const ConfigSettings *settings,
                       const ConfigSection *section, const char *name, HostShapes *shapes,
                       Error *reterr)
{
        int r = 0;

        for (const ConfigOption *o = config_shapes_options; o->key && r == 0; o++)
                r = config_set_from_entry(
                        o, shapes, config_settings_find(settings, section->name, o->key), reterr);
        if (r < 0)
                return r;
        r = finish(host, shapes, name, reterr);
        return r < 0 ? error_prefixf(reterr, r, "%s:%u: [%.64s]", section->file, section->line,
                                     section->name)
                     : 0;
}

int config_load_shapes(HostConfig *host, const ConfigSettings *settings, Error *reterr)
{
        for (size_t i = 0; i < settings->n_sections; i++) {
                const ConfigSection *section = &settings->sections[i];
                const char *name = config_section_name(section->name, config_shapes_options);
                HostShapes shapes = { 0 }, *grown;
                int r;

                if (!name || find_shapes(host, name))
                        continue;
                grown = realloc(host->shapes, (host->n_shapes + 1) * sizeof(HostShapes));
                if (!grown)
                        return error_oom(reterr);
                host->shapes = grown;
                r = load_shapes(host, settings, section, name, &shapes, reterr);
                if (r < 0) {
                        shapes_done(&shapes);
                        return r;
                }
                host->shapes[host->n_shapes++] = shapes;
        }
        return 0;
}
