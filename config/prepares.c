/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads the sections [device_prepare NAME] of all files into HostPrepare structs, one for each
 * name, and frees them. Headers with the same NAME, in letters of either case, are one section, and
 * the last entry of an option counts. Invariant: a card belongs to one section, because two
 * sections could contradict each other about it.
 *
 * Tests: tests/unit/config/test-prepares.c */

#include "config/prepares.h"

#include "base/text.h"
#include "config/settings.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static void prepare_done(HostPrepare *prepare)
{
        for (const ConfigOption *o = config_prepare_options; o->key; o++)
                config_option_done(o, prepare);
        free(prepare->name);
        *prepare = (HostPrepare){ 0 };
}

void config_prepares_done(HostConfig *host)
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

static void drop_empty(char **text)
{
        if (*text && !**text) {
                free(*text);
                *text = NULL;
        }
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

int config_load_prepares(HostConfig *host, const ConfigSettings *settings, Error *reterr)
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
