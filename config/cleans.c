/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads the sections [device_clean NAME] of all files. Sections of one name are one section, and
 * the last entry of an option counts, as in all sections. Invariant: an address belongs to one
 * section, and so does a class. An address has precedence over a class (drivers/host/clean.h).
 * Addresses are stored in small letters. Each section is checked when it was read: it must have a
 * unit that cleans, and devices by address or class, and [pci] report_in_placement must be true.
 * The class VGPU is rejected. The first error ends the reading.
 *
 * Tests: tests/unit/config/test-cleans.c */

#include "config/cleans.h"

#include "config/settings.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static void clean_done(HostClean *clean)
{
        for (const ConfigOption *o = config_clean_options; o->key; o++)
                config_option_done(o, clean);
        free(clean->name);
        *clean = (HostClean){ 0 };
}

void config_cleans_done(HostConfig *host)
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

/* Checks that no earlier section has one of the words. list_of: the same list of a section. */
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

static void drop_empty(char **text)
{
        if (*text && !**text) {
                free(*text);
                *text = NULL;
        }
}

/* Checks the section as a whole. */
static int check_section(const HostConfig *host, const HostClean *clean, Error *reterr)
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
        r = check_section(host, clean, reterr);
        return r < 0 ? error_prefixf(reterr, r, "%s:%u: [%.64s]", section->file, section->line,
                                     section->name)
                     : 0;
}

int config_load_cleans(HostConfig *host, const ConfigSettings *settings, Error *reterr)
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
