/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads the sections [device_prepare NAME], [device_clean NAME] and [device_shapes NAME] of all
 * files into HostPrepare, HostClean and HostShapes structs, one for each name, and frees them.
 * Headers with the same NAME, in letters of either case, are one section, and the last entry of an
 * option counts, as in all sections. Each section is checked when it was read. The first error ends
 * the reading. Addresses are stored in small letters, except those of the texts of a set, which
 * base/device-set.h reads.
 *
 * Invariants: a card belongs to one section [device_prepare NAME], because two sections could
 * contradict each other about it. An address belongs to one section [device_clean NAME], and so
 * does a class. An address has precedence over a class (drivers/host/clean.h). A device belongs to
 * one set.
 *
 * Tests: tests/unit/config/test-prepares.c tests/unit/config/test-cleans.c
 * tests/unit/config/test-shapes.c */

#include "config/sections.h"

#include "base/text.h"
#include "config/settings.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static void drop_empty(char **text)
{
        if (*text && !**text) {
                free(*text);
                *text = NULL;
        }
}

/* [device_prepare NAME]. */

static void prepare_done(HostPrepare *prepare)
{
        for (const ConfigOption *o = config_prepare_options; o->key; o++)
                config_option_done(o, prepare);
        free(prepare->name);
        *prepare = (HostPrepare){ 0 };
}

static void free_prepares(HostConfig *host)
{
        for (size_t i = 0; i < host->n_prepares; i++)
                prepare_done(&host->prepares[i]);
        free(host->prepares);
        host->prepares = NULL;
        host->n_prepares = 0;
}

static const HostPrepare *find_prepare(const HostConfig *host, const char *name)
{
        for (size_t i = 0; i < host->n_prepares; i++)
                if (strcasecmp(host->prepares[i].name, name) == 0)
                        return &host->prepares[i];
        return NULL;
}

/* Checks whether one of the first n addresses is this one. */
static bool has_address(const HostPrepare *prepare, size_t n, const char *address)
{
        for (size_t i = 0; i < n && prepare->device_addresses[i]; i++)
                if (strcmp(prepare->device_addresses[i], address) == 0)
                        return true;
        return false;
}

/* Writes the addresses in small letters, as sysfs does. Rejects an address that appears twice in
 * all sections together. */
static int check_addresses(const HostConfig *host, HostPrepare *prepare, Error *reterr)
{
        for (size_t i = 0; prepare->device_addresses[i]; i++) {
                char *address = prepare->device_addresses[i];

                for (char *c = address; *c; c++)
                        *c = (char)tolower((unsigned char)*c);
                if (has_address(prepare, i, address))
                        return error_setf(reterr, EINVAL, "%s is listed twice", address);
                for (size_t j = 0; j < host->n_prepares; j++)
                        if (has_address(&host->prepares[j], SIZE_MAX, address))
                                return error_setf(reterr, EINVAL,
                                                  "%s already belongs to [device_prepare %.64s]",
                                                  address, host->prepares[j].name);
        }
        return 0;
}

/* Sets the options of a section, or their defaults, and checks its addresses. */
static int load_prepare(const HostConfig *host, const ConfigSettings *settings,
                        const ConfigSection *section, HostPrepare *prepare, Error *reterr)
{
        const ConfigEntry *addresses;
        int r;

        for (const ConfigOption *o = config_prepare_options; o->key; o++) {
                r = config_set_from_entry(
                        o, prepare, config_settings_find(settings, section->name, o->key), reterr);
                if (r < 0)
                        return r;
        }
        drop_empty(&prepare->driver_override);
        drop_empty(&prepare->unit);
        if (!prepare->device_addresses || !prepare->device_addresses[0])
                return error_setf(reterr, EINVAL,
                                  "%s:%u: [%.64s] device_addresses must list at least one card",
                                  section->file, section->line, section->name);
        r = check_addresses(host, prepare, reterr);
        addresses = config_settings_find(settings, section->name, config_prepare_options->key);
        return r < 0 && addresses ? config_entry_prefix(addresses, r, reterr) : r;
}

static int load_prepares(HostConfig *host, const ConfigSettings *settings, Error *reterr)
{
        size_t n = 0;

        for (size_t i = 0; i < settings->n_sections; i++)
                n += config_section_name(settings->sections[i].name, config_prepare_options) !=
                     NULL;
        if (n == 0)
                return 0;
        host->prepares = calloc(n, sizeof(HostPrepare));
        if (!host->prepares)
                return error_oom(reterr);
        for (size_t i = 0; i < settings->n_sections; i++) {
                const ConfigSection *section = &settings->sections[i];
                const char *name = config_section_name(section->name, config_prepare_options);
                HostPrepare prepare = { 0 };
                int r;

                if (!name || find_prepare(host, name))
                        continue;
                prepare.name = strdup(name);
                r = prepare.name ? load_prepare(host, settings, section, &prepare, reterr)
                                 : error_oom(reterr);
                if (r < 0) {
                        prepare_done(&prepare);
                        return r;
                }
                host->prepares[host->n_prepares++] = prepare;
        }
        return 0;
}

/* [device_clean NAME]. */

static void clean_done(HostClean *clean)
{
        for (const ConfigOption *o = config_clean_options; o->key; o++)
                config_option_done(o, clean);
        free(clean->name);
        *clean = (HostClean){ 0 };
}

static void free_cleans(HostConfig *host)
{
        for (size_t i = 0; i < host->n_cleans; i++)
                clean_done(&host->cleans[i]);
        free(host->cleans);
        host->cleans = NULL;
        host->n_cleans = 0;
}

static const HostClean *find_clean(const HostConfig *host, const char *name)
{
        for (size_t i = 0; i < host->n_cleans; i++)
                if (strcasecmp(host->cleans[i].name, name) == 0)
                        return &host->cleans[i];
        return NULL;
}

static bool has_word(char *const *list, const char *word)
{
        for (; list && *list; list++)
                if (strcmp(*list, word) == 0)
                        return true;
        return false;
}

/* Checks that no earlier section has one of the words. list_of returns the list of a section in
 * which they must not be: its addresses or its classes. */
static int check_alone(const HostConfig *host, char *const *words,
                       char *const *(*list_of)(const HostClean *clean), Error *reterr)
{
        for (; words && *words; words++)
                for (size_t i = 0; i < host->n_cleans; i++)
                        if (has_word(list_of(&host->cleans[i]), *words))
                                return error_setf(reterr, EINVAL,
                                                  "%s already belongs to [device_clean %s]", *words,
                                                  host->cleans[i].name);
        return 0;
}

static char *const *addresses_of(const HostClean *clean)
{
        return clean->device_addresses;
}

static char *const *classes_of(const HostClean *clean)
{
        return clean->resource_classes;
}

/* Checks the section as a whole. */
static int check_clean(const HostConfig *host, const HostClean *clean, Error *reterr)
{
        bool has_addresses = clean->device_addresses && clean->device_addresses[0];
        bool has_classes = clean->resource_classes && clean->resource_classes[0];
        int r;

        if (!has_addresses && !has_classes)
                return error_setf(reterr, EINVAL,
                                  "device_addresses or resource_classes must list something");
        if (!clean->clean)
                return error_setf(reterr, EINVAL, "clean must name a template of systemd");
        if (!host->report_in_placement)
                return error_setf(reterr, EINVAL, "needs [pci] report_in_placement = true");
        if (has_word(clean->resource_classes, "VGPU"))
                return error_setf(reterr, EINVAL, "vGPUs cannot be cleaned, only whole devices");
        r = check_alone(host, clean->device_addresses, addresses_of, reterr);
        return r < 0 ? r : check_alone(host, clean->resource_classes, classes_of, reterr);
}

/* Sets the options of a section, or their defaults, and checks them. */
static int load_clean(const HostConfig *host, const ConfigSettings *settings,
                      const ConfigSection *section, HostClean *clean, Error *reterr)
{
        int r = 0;

        for (const ConfigOption *o = config_clean_options; o->key && r == 0; o++)
                r = config_set_from_entry(
                        o, clean, config_settings_find(settings, section->name, o->key), reterr);
        if (r < 0)
                return r;
        drop_empty(&clean->clean);
        drop_empty(&clean->prove);
        for (char **a = clean->device_addresses; a && *a; a++)
                for (char *c = *a; *c; c++)
                        *c = (char)tolower((unsigned char)*c);
        r = check_clean(host, clean, reterr);
        return r < 0 ? error_prefixf(reterr, r, "%s:%u: [%.64s]", section->file, section->line,
                                     section->name)
                     : 0;
}

static int load_cleans(HostConfig *host, const ConfigSettings *settings, Error *reterr)
{
        for (size_t i = 0; i < settings->n_sections; i++) {
                const ConfigSection *section = &settings->sections[i];
                const char *name = config_section_name(section->name, config_clean_options);
                HostClean clean = { 0 }, *grown;
                int r;

                if (!name || find_clean(host, name))
                        continue;
                grown = realloc(host->cleans, (host->n_cleans + 1) * sizeof(HostClean));
                if (!grown)
                        return error_oom(reterr);
                host->cleans = grown;
                clean.name = strdup(name);
                r = clean.name ? load_clean(host, settings, section, &clean, reterr)
                               : error_oom(reterr);
                if (r < 0) {
                        clean_done(&clean);
                        return r;
                }
                host->cleans[host->n_cleans++] = clean;
        }
        return 0;
}

/* [device_shapes NAME]. */

static void shapes_done(HostShapes *shapes)
{
        for (const ConfigOption *o = config_shapes_options; o->key; o++)
                config_option_done(o, shapes);
        device_set_done(&shapes->set);
        *shapes = (HostShapes){ 0 };
}

static void free_shapes(HostConfig *host)
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

static bool has_word_in_any_case(char *const *list, const char *word)
{
        for (; list && *list; list++)
                if (strcasecmp(*list, word) == 0)
                        return true;
        return false;
}

/* Checks that a device of a set belongs to no other set, no section [device_clean NAME] and no mdev
 * type. */
static int check_device(const HostConfig *host, const char *address, Error *reterr)
{
        for (size_t i = 0; i < host->n_shapes; i++)
                if (device_set_members_of(&host->shapes[i].set, address))
                        return error_setf(reterr, EINVAL,
                                          "%s already belongs to [device_shapes %s]", address,
                                          host->shapes[i].set.name);
        for (size_t i = 0; i < host->n_cleans; i++)
                if (has_word_in_any_case(host->cleans[i].device_addresses, address))
                        return error_setf(
                                reterr, EINVAL,
                                "%s is in [device_clean %.64s], but devices of a set are not cleaned",
                                address, host->cleans[i].name);
        for (size_t i = 0; i < host->n_mdev_types; i++)
                if (has_word_in_any_case(host->mdev_types[i].device_addresses, address))
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

static bool is_equal(const char *a, const char *b)
{
        return a && b && strcmp(a, b) == 0;
}

/* Checks that no partition of another set starts the same unit: the same template with the same
 * id. */
static int check_units(const HostConfig *host, const HostShapes *shapes, Error *reterr)
{
        for (size_t i = 0; i < host->n_shapes; i++) {
                const HostShapes *other = &host->shapes[i];

                if (!is_equal(shapes->activate, other->activate) &&
                    !is_equal(shapes->activate, other->deactivate) &&
                    !is_equal(shapes->deactivate, other->activate) &&
                    !is_equal(shapes->deactivate, other->deactivate))
                        continue;
                for (size_t j = 0; j < shapes->set.n_partitions; j++)
                        for (size_t k = 0; k < other->set.n_partitions; k++)
                                if (is_equal(shapes->set.partitions[j].id,
                                             other->set.partitions[k].id))
                                        return error_setf(
                                                reterr, EINVAL,
                                                "partition %s has the unit of partition %s of [device_shapes %s]. Change the ID, or a template",
                                                shapes->set.partitions[j].id,
                                                other->set.partitions[k].id, other->set.name);
        }
        return 0;
}

static bool is_name(const char *name)
{
        size_t n =
                strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-");

        return n >= 1 && n <= DEVICE_SET_ID_MAX && !name[n];
}

/* Makes the set of the texts, and checks the section as a whole. */
static int finish_shapes(const HostConfig *host, HostShapes *shapes, const char *name,
                         Error *reterr)
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
                if (has_word_in_any_case(host->cleans[i].resource_classes, shapes->resource_class))
                        return error_setf(
                                reterr, EINVAL,
                                "%.64s is in [device_clean %.64s], but devices of a set are not cleaned",
                                shapes->resource_class, host->cleans[i].name);
        r = device_set_parse(&shapes->set, name, shapes->resource_class, shapes->members,
                             shapes->partitions, reterr);
        if (r == 0)
                r = check_devices(host, &shapes->set, reterr);
        return r < 0 ? r : check_units(host, shapes, reterr);
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
        r = finish_shapes(host, shapes, name, reterr);
        return r < 0 ? error_prefixf(reterr, r, "%s:%u: [%.64s]", section->file, section->line,
                                     section->name)
                     : 0;
}

static int load_all_shapes(HostConfig *host, const ConfigSettings *settings, Error *reterr)
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

/* All kinds. */

int config_load_sections(HostConfig *host, const ConfigSettings *settings, Error *reterr)
{
        int r = load_prepares(host, settings, reterr);

        if (r >= 0)
                r = load_cleans(host, settings, reterr);
        if (r >= 0)
                r = load_all_shapes(host, settings, reterr);
        return r;
}

void config_sections_done(HostConfig *host)
{
        free_prepares(host);
        free_cleans(host);
        free_shapes(host);
}
