/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "config/settings.h"

#include "config/nova-options.h"
#include "config/value.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int config_settings_read(ConfigSettings *settings, char *const paths[], Error *reterr)
{
        int r = 0;

        for (char *const *path = paths; *path && r >= 0; path++)
                r = config_file_read(settings, *path, reterr);
        return r;
}

static bool is_named(const ConfigEntry *entry, const char *section, const char *key)
{
        return strcasecmp(entry->key, key) == 0 && strcasecmp(entry->section, section) == 0;
}

const ConfigEntry *config_settings_find(const ConfigSettings *settings, const char *section,
                                        const char *key)
{
        for (size_t i = settings->n_entries; i > 0; i--)
                if (is_named(&settings->entries[i - 1], section, key))
                        return &settings->entries[i - 1];
        return NULL;
}

static const char *section_of(const ConfigSettings *settings, const ConfigOption *option)
{
        return option->of_auth && settings->auth_section ? settings->auth_section : option->section;
}

#define NO_RANK (CONFIG_OLD_NAMES_MAX + 1)

/* Returns 0 for an entry with the name of the option, more for an old name, NO_RANK for another. */
static size_t rank_of(const ConfigSettings *settings, const ConfigOption *option,
                      const ConfigEntry *entry)
{
        const char *section = section_of(settings, option);

        if (is_named(entry, section, option->key))
                return 0;
        for (size_t i = 0; option->old[i].key; i++)
                if (is_named(entry, option->old[i].section ?: section, option->old[i].key))
                        return i + 1;
        return NO_RANK;
}

int config_settings_follow_auth(ConfigSettings *settings, Error *reterr)
{
        const ConfigEntry *entry = config_settings_find(settings, "placement", "auth_section");

        if (!entry || entry->value[0] == '\0')
                return 0;
        if (!config_settings_find_section(settings, entry->value))
                return error_setf(reterr, EINVAL,
                                  "%s:%u: [placement] auth_section: there is no section [%.64s]",
                                  entry->file, entry->line, entry->value);
        settings->auth_section = strdup(entry->value);
        return settings->auth_section ? 0 : error_oom(reterr);
}

static bool is_auth_section(const ConfigSettings *settings, const char *section)
{
        return settings->auth_section && strcasecmp(settings->auth_section, section) == 0;
}

const ConfigOption *config_settings_option_of(const ConfigSettings *settings,
                                              const ConfigEntry *entry)
{
        const ConfigOption *option = config_find_option(config_options, entry->section, entry->key);

        if (option || !is_auth_section(settings, entry->section))
                return option;
        option = config_find_option(config_options, "placement", entry->key);
        return option && option->of_auth ? option : NULL;
}

const ConfigEntry *config_settings_find_option(const ConfigSettings *settings,
                                               const ConfigOption *option)
{
        const ConfigEntry *best = NULL;
        size_t best_rank = NO_RANK;

        for (size_t i = settings->n_entries; i > 0; i--) {
                const ConfigEntry *entry = &settings->entries[i - 1];
                size_t rank = rank_of(settings, option, entry);

                if (best && entry->file != best->file)
                        break;
                if (rank < best_rank) {
                        best = entry;
                        best_rank = rank;
                }
        }
        return best;
}

const ConfigEntry **config_settings_list(const ConfigSettings *settings, const ConfigOption *option,
                                         size_t *ret_n)
{
        const ConfigEntry **list = calloc(settings->n_entries + 1, sizeof(ConfigEntry *));
        size_t n = 0, end;

        for (size_t begin = 0; list && begin < settings->n_entries; begin = end) {
                for (end = begin; end < settings->n_entries &&
                                  settings->entries[end].file == settings->entries[begin].file;)
                        end++;
                for (size_t rank = NO_RANK; rank > 0; rank--)
                        for (size_t i = begin; i < end; i++)
                                if (rank_of(settings, option, &settings->entries[i]) == rank - 1)
                                        list[n++] = &settings->entries[i];
        }
        *ret_n = n;
        return list;
}

const ConfigSection *config_settings_find_section(const ConfigSettings *settings,
                                                  const char *section)
{
        for (size_t i = settings->n_sections; i > 0; i--)
                if (strcasecmp(settings->sections[i - 1].name, section) == 0)
                        return &settings->sections[i - 1];
        return NULL;
}

int config_entry_prefix(const ConfigEntry *entry, int r, Error *reterr)
{
        return error_prefixf(reterr, r, "%s:%u: [%s] %s", entry->file, entry->line, entry->section,
                             entry->key);
}

int config_set_from_entry(const ConfigOption *option, void *base, const ConfigEntry *entry,
                          Error *reterr)
{
        const char *text = entry ? entry->value : option->default_value;
        int r = text ? config_option_set(option, base, text, reterr) : 0;

        return r < 0 && entry ? config_entry_prefix(entry, r, reterr) : r;
}

int config_set_from_settings(const ConfigOption *option, void *base, const ConfigSettings *settings,
                             Error *reterr)
{
        _cleanup_free_ const ConfigEntry **list = NULL;
        size_t n;
        int r = 0;

        if (option->type != CONFIG_MULTI)
                return config_set_from_entry(option, base,
                                             config_settings_find_option(settings, option), reterr);
        list = config_settings_list(settings, option, &n);
        if (!list)
                return error_oom(reterr);
        for (size_t i = 0; i < n && r == 0; i++)
                r = config_set_from_entry(option, base, list[i], reterr);
        return r;
}

void config_warn(const ConfigSettings *settings, const char *format, ...)
{
        Error text = ERROR_NULL;
        char line[ERROR_TEXT_MAX];
        va_list ap;

        if (!settings->warning)
                return;
        va_start(ap, format);
        vsnprintf(line, sizeof(line), format, ap);
        va_end(ap);
        /* For what it does to control characters and cut text. */
        error_setf(&text, EINVAL, "%s", line);
        settings->warning(text.text, settings->userdata);
}

/* "mdev_TYPE" for the section of any type, "vgpu_TYPE" for its old name. */
static const char *kind_of_section(const char *section)
{
        if (strncasecmp(section, "mdev_", 5) == 0 || strncasecmp(section, "vgpu_", 5) == 0)
                return CONFIG_MDEV_SECTION;
        return config_knows_section(section) ? section : NULL;
}

static bool is_known(const ConfigEntry *entry, const char *kind)
{
        bool mdev = strcmp(kind, CONFIG_MDEV_SECTION) == 0;

        if (mdev && strncasecmp(entry->section, "vgpu_", 5) == 0)
                return strcasecmp(entry->key, "device_addresses") == 0;
        return config_find_option(mdev ? config_mdev_options : config_options, kind, entry->key);
}

/* Returns true if the section is neither one of this agent nor one of Nova. */
static bool is_strange(const ConfigSettings *settings, const char *section)
{
        return !kind_of_section(section) && !is_auth_section(settings, section) &&
               !nova_defines_section(section);
}

/* Warns about an option of Nova that changes the inventory of Nova's driver, and not of this agent.
 */
static void warn_not_implemented(const ConfigSettings *settings)
{
        const ConfigEntry *entry = config_settings_find(settings, "workarounds",
                                                        "reserve_disk_resource_for_image_cache");
        bool value = false;

        if (entry && config_value_bool(entry->value, &value) == 0 && value)
                config_warn(settings,
                            "%s:%u: [workarounds] %s has no effect here: reserve the size of the "
                            "image cache in reserved_host_disk_mb",
                            entry->file, entry->line, entry->key);
}

size_t config_warn_unknown(const ConfigSettings *settings)
{
        size_t n_ignored = 0;

        warn_not_implemented(settings);
        for (size_t i = 0; i < settings->n_sections; i++) {
                const ConfigSection *section = &settings->sections[i];

                if (is_strange(settings, section->name))
                        config_warn(settings, "%s:%u: unknown section [%.64s], ignoring",
                                    section->file, section->line, section->name);
        }
        for (size_t i = 0; i < settings->n_entries; i++) {
                const ConfigEntry *entry = &settings->entries[i];
                const char *kind = kind_of_section(entry->section);

                if ((kind && is_known(entry, kind)) || config_settings_option_of(settings, entry) ||
                    is_strange(settings, entry->section))
                        continue;
                if (!kind || nova_defines_option(entry->section, entry->key))
                        n_ignored++;
                else
                        config_warn(settings, "%s:%u: unknown option [%.64s] %.64s, ignoring",
                                    entry->file, entry->line, entry->section, entry->key);
        }
        return n_ignored;
}
