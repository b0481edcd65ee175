/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/config/settings.h"

#include <stdarg.h>
#include <string.h>
#include <strings.h>

int config_settings_read(ConfigSettings *settings, char *const paths[], Error *reterr)
{
        int r = 0;

        for (char *const *path = paths; *path && r >= 0; path++)
                r = config_file_read(settings, *path, reterr);
        return r;
}

static bool same_name(const char *name, const char *want, const char *old)
{
        return strcasecmp(name, want) == 0 || (old && strcasecmp(name, old) == 0);
}

const ConfigEntry *config_settings_find(const ConfigSettings *settings, const char *section,
                                        const char *old_section, const char *key,
                                        const char *old_key)
{
        for (size_t i = settings->n_entries; i > 0; i--) {
                const ConfigEntry *entry = &settings->entries[i - 1];

                if (same_name(entry->key, key, old_key) &&
                    same_name(entry->section, section, old_section))
                        return entry;
        }
        return NULL;
}

static const char *section_of(const ConfigSettings *settings, const ConfigOption *option)
{
        return option->of_auth && settings->auth_section ? settings->auth_section : option->section;
}

int config_settings_follow_auth(ConfigSettings *settings, Error *reterr)
{
        const ConfigEntry *entry =
                config_settings_find(settings, "placement", NULL, "auth_section", NULL);

        if (!entry || entry->value[0] == '\0')
                return 0;
        if (!config_settings_find_section(settings, entry->value))
                return error_setf(reterr, EINVAL,
                                  "%s:%u: [placement] auth_section: there is no section [%.64s]",
                                  entry->file, entry->line, entry->value);
        settings->auth_section = entry->value;
        return 0;
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
        return config_settings_find(settings, section_of(settings, option), NULL, option->key,
                                    option->old_key);
}

const ConfigEntry *config_settings_next(const ConfigSettings *settings, const ConfigOption *option,
                                        size_t *i)
{
        while (*i < settings->n_entries) {
                const ConfigEntry *entry = &settings->entries[(*i)++];

                if (same_name(entry->key, option->key, option->old_key) &&
                    same_name(entry->section, option->section, NULL))
                        return entry;
        }
        return NULL;
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
                          const char *state_path, Error *reterr)
{
        const char *text = entry ? entry->value : option->default_value;
        int r = text ? config_option_set(option, base, text, state_path, reterr) : 0;

        return r < 0 && entry ? config_entry_prefix(entry, r, reterr) : r;
}

int config_set_from_settings(const ConfigOption *option, void *base, const ConfigSettings *settings,
                             const char *state_path, Error *reterr)
{
        const ConfigEntry *entry;
        size_t i = 0;
        int r = 0;

        if (option->type != CONFIG_MULTI)
                return config_set_from_entry(option, base,
                                             config_settings_find_option(settings, option),
                                             state_path, reterr);
        while (r == 0 && (entry = config_settings_next(settings, option, &i)))
                r = config_set_from_entry(option, base, entry, state_path, reterr);
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

void config_warn_unknown(const ConfigSettings *settings)
{
        for (size_t i = 0; i < settings->n_sections; i++) {
                const ConfigSection *section = &settings->sections[i];

                if (!kind_of_section(section->name) && !is_auth_section(settings, section->name))
                        config_warn(settings, "%s:%u: unknown section [%.64s], ignoring",
                                    section->file, section->line, section->name);
        }
        for (size_t i = 0; i < settings->n_entries; i++) {
                const ConfigEntry *entry = &settings->entries[i];
                const char *kind = kind_of_section(entry->section);

                if (kind && !is_known(entry, kind) && !config_settings_option_of(settings, entry))
                        config_warn(settings, "%s:%u: unknown option [%.64s] %.64s, ignoring",
                                    entry->file, entry->line, entry->section, entry->key);
        }
}
