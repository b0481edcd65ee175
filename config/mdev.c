/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "config/mdev.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define SECTION_MAX 264 /* of a type's name, which config_is_mdev_type() bounds */

static void free_type(HostMdevType *type)
{
        for (const ConfigOption *o = config_mdev_options; o->key; o++)
                config_option_done(o, type);
        free(type->type);
}

void config_free_mdev_types(HostConfig *host)
{
        for (size_t i = 0; i < host->n_mdev_types; i++)
                free_type(&host->mdev_types[i]);
        free(host->mdev_types);
        host->mdev_types = NULL;
        host->n_mdev_types = 0;
}

/* Finds an option in [mdev_TYPE]; its addresses in [vgpu_TYPE], too. */
static const ConfigEntry *find_entry(const ConfigSettings *settings, const char *type,
                                     const ConfigOption *option)
{
        char name[SECTION_MAX];
        const ConfigEntry *entry;

        snprintf(name, sizeof(name), "mdev_%s", type);
        entry = config_settings_find(settings, name, option->key);
        if (entry || strcmp(option->key, "device_addresses") != 0)
                return entry;
        snprintf(name, sizeof(name), "vgpu_%s", type);
        return config_settings_find(settings, name, option->key);
}

static const HostMdevType *find_type(const HostConfig *host, const char *type)
{
        for (size_t i = 0; i < host->n_mdev_types; i++)
                if (strcasecmp(host->mdev_types[i].type, type) == 0)
                        return &host->mdev_types[i];
        return NULL;
}

static bool has_address(const HostMdevType *type, size_t n, const char *address)
{
        for (size_t i = 0; i < n && type->device_addresses[i]; i++)
                if (strcmp(type->device_addresses[i], address) == 0)
                        return true;
        return false;
}

/* PCI addresses in small letters, as libvirt writes them; none twice, in any type. */
static int check_addresses(const HostConfig *host, HostMdevType *type, Error *reterr)
{
        for (size_t i = 0; type->device_addresses && type->device_addresses[i]; i++) {
                char *address = type->device_addresses[i];

                for (char *c = address; address[0] != '/' && *c; c++)
                        *c = (char)tolower((unsigned char)*c);
                if (has_address(type, i, address))
                        return error_setf(reterr, EINVAL, "%s is there twice", address);
                for (size_t j = 0; j < host->n_mdev_types; j++)
                        if (host->mdev_types[j].device_addresses &&
                            has_address(&host->mdev_types[j], SIZE_MAX, address))
                                return error_setf(reterr, EINVAL,
                                                  "%s is given to the type %s already", address,
                                                  host->mdev_types[j].type);
        }
        return 0;
}

static int load_type(const Config *config, const ConfigSettings *settings, HostMdevType *type,
                     Error *reterr)
{
        const ConfigEntry *addresses;
        int r;

        for (const ConfigOption *o = config_mdev_options; o->key; o++) {
                r = config_set_from_entry(o, type, find_entry(settings, type->type, o), reterr);
                if (r < 0)
                        return r;
        }
        r = check_addresses(&config->driver.host, type, reterr);
        addresses = find_entry(settings, type->type, config_mdev_options);
        if (r < 0 && addresses)
                return config_entry_prefix(addresses, r, reterr);
        return r;
}

static bool takes_what_is_left(const HostMdevType *type)
{
        return !type->device_addresses || !type->device_addresses[0];
}

/* The first type without addresses, or NULL. */
static const HostMdevType *find_default(const HostConfig *host)
{
        for (size_t i = 0; i < host->n_mdev_types; i++)
                if (takes_what_is_left(&host->mdev_types[i]))
                        return &host->mdev_types[i];
        return NULL;
}

static int add_type(Config *config, const ConfigSettings *settings, const char *name, Error *reterr)
{
        _cleanup_(free_type) HostMdevType type = {};
        const HostMdevType *fallback;
        int r;

        type.type = strdup(name);
        if (!type.type)
                return error_oom(reterr);
        r = load_type(config, settings, &type, reterr);
        if (r < 0)
                return r;

        fallback = find_default(&config->driver.host);
        if (fallback && takes_what_is_left(&type)) {
                config_warn(
                        settings,
                        "[mdev_%.59s] device_addresses is not set, and the type %.64s takes all devices that are left already, ignoring the type",
                        name, fallback->type);
                return 0;
        }
        config->driver.host.mdev_types[config->driver.host.n_mdev_types++] = type;
        type = (HostMdevType){};
        return 0;
}

static bool is_enabled(const Config *config, const char *type)
{
        for (char **t = config->enabled_mdev_types; t && *t; t++)
                if (strcasecmp(*t, type) == 0)
                        return true;
        return false;
}

static void warn_not_enabled(const Config *config, const ConfigSettings *settings)
{
        for (size_t i = 0; i < settings->n_sections; i++) {
                const ConfigSection *section = &settings->sections[i];

                if (strncasecmp(section->name, "mdev_", 5) != 0 &&
                    strncasecmp(section->name, "vgpu_", 5) != 0)
                        continue;
                if (!is_enabled(config, section->name + 5))
                        config_warn(
                                settings,
                                "%s:%u: [devices] enabled_mdev_types does not list the type of [%.64s], ignoring",
                                section->file, section->line, section->name);
        }
}

int config_load_mdev_types(Config *config, const ConfigSettings *settings, Error *reterr)
{
        size_t n = 0;
        int r;

        warn_not_enabled(config, settings);
        for (char **t = config->enabled_mdev_types; t && *t; t++)
                n++;
        if (n == 0)
                return 0;
        config->driver.host.mdev_types = calloc(n, sizeof(HostMdevType));
        if (!config->driver.host.mdev_types)
                return error_oom(reterr);

        for (char **t = config->enabled_mdev_types; *t; t++) {
                if (find_type(&config->driver.host, *t))
                        continue;
                r = add_type(config, settings, *t, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}
