/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "config/expand.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "config/table.h"

#define DEPTH_MAX          16
#define REFERENCE_MAX      256
#define EXPANDED_MAX_BYTES (64 * 1024)

typedef struct Expansion {
        ConfigSettings *settings;
        unsigned depth;
        bool is_secret; /* the value that is expanded is never quoted */
        Error *reterr;
} Expansion;

static int expand_text(Expansion *expansion, const char *section, const char *text, char **ret);

/* Returns the length of a name at the start of the text: a letter or '_', then these, digits and
 * dots. */
static size_t name_length(const char *text)
{
        size_t n = 0;

        if (!isalpha((unsigned char)text[0]) && text[0] != '_')
                return 0;
        while (isalnum((unsigned char)text[n]) || text[n] == '_' || text[n] == '.')
                n++;
        return n;
}

/* Returns the length of the reference at a dollar sign, and its name; 0: there is none. */
static size_t read_reference(const char *dollar, char name[static REFERENCE_MAX])
{
        bool has_brace = dollar[1] == '{';
        const char *start = dollar + 1 + has_brace;
        size_t n = name_length(start);

        if (n == 0 || n >= REFERENCE_MAX || (has_brace && start[n] != '}'))
                return 0;
        snprintf(name, REFERENCE_MAX, "%.*s", (int)n, start);
        return 1 + n + (has_brace ? 2 : 0);
}

static int expand_entry(Expansion *expansion, ConfigEntry *entry)
{
        char *value;
        int r;

        if (entry->is_expanded)
                return 0;
        if (expansion->depth >= DEPTH_MAX)
                return error_setf(expansion->reterr, EINVAL, "its references lead in a circle");
        expansion->depth++;
        r = expand_text(expansion, entry->section, entry->value, &value);
        expansion->depth--;
        if (r < 0)
                return r;
        text_free_secret(entry->value);
        entry->value = value;
        entry->is_expanded = true;
        return 0;
}

/* Returns true for options whose values must not get into one that messages quote. */
static bool is_secret(const ConfigOption *option, const char *key)
{
        return option ? option->secret
                      : strcasestr(key, "password") || strcasestr(key, "secret") ||
                                strcasestr(key, "token");
}

/* Finds the value of an option: 1 with *ret (the caller frees), 0 if no file sets it and it has no
 * default. */
static int find_value(Expansion *expansion, const char *section, const char *key, char **ret)
{
        const ConfigOption *option = config_find_option(config_options, section, key);
        ConfigEntry *entry;
        int r;

        if (!expansion->is_secret && is_secret(option, key))
                return error_setf(expansion->reterr, EINVAL, "must not refer to the secret %.60s",
                                  key);
        entry = (ConfigEntry *)(option ? config_settings_find_option(expansion->settings, option)
                                       : config_settings_find(expansion->settings, section, key));
        if (entry) {
                r = expand_entry(expansion, entry);
                if (r < 0)
                        return r;
                *ret = strdup(entry->value);
                return *ret ? 1 : error_oom(expansion->reterr);
        }
        if (!option)
                return 0;
        if (expansion->depth >= DEPTH_MAX)
                return error_setf(expansion->reterr, EINVAL, "its references lead in a circle");
        expansion->depth++;
        r = expand_text(expansion, section, option->default_value ?: "", ret);
        expansion->depth--;
        return r < 0 ? r : 1;
}

static int find_reference(Expansion *expansion, const char *section, const char *name, char **ret)
{
        const char *dot = strchr(name, '.');
        char group[REFERENCE_MAX];
        int r;

        if (dot) {
                snprintf(group, sizeof(group), "%.*s", (int)(dot - name), name);
                r = find_value(expansion, group, dot + 1, ret);
        } else {
                r = find_value(expansion, section, name, ret);
                if (r == 0 && strcasecmp(section, "DEFAULT") != 0)
                        r = find_value(expansion, "DEFAULT", name, ret);
        }
        if (r == 0)
                return error_setf(
                        expansion->reterr, EINVAL,
                        "refers to %.100s, which no file sets; write the value, or $$ for a dollar sign",
                        name);
        return r;
}

/* Writes one reference, or the text at a dollar sign that is none. Returns the length of what it
 * replaces. */
static int expand_dollar(Expansion *expansion, const char *section, const char *dollar, FILE *file)
{
        _cleanup_(text_free_secretp) char *value = NULL;
        char name[REFERENCE_MAX];
        size_t n = read_reference(dollar, name);
        int r;

        if (dollar[1] == '$') {
                fputc('$', file);
                return 2;
        }
        if (n == 0) {
                fputc('$', file);
                return 1;
        }
        r = find_reference(expansion, section, name, &value);
        if (r < 0)
                return r;
        fputs(value, file);
        return (int)n;
}

static int write_expanded(Expansion *expansion, const char *section, const char *text, FILE *file)
{
        while (*text) {
                int n = 1;

                if (text[0] == '$') {
                        n = expand_dollar(expansion, section, text, file);
                } else {
                        fputc(*text, file);
                }
                if (n < 0)
                        return n;
                if (ftell(file) > EXPANDED_MAX_BYTES)
                        return error_setf(
                                expansion->reterr, EINVAL,
                                "is longer than %d bytes after its references are replaced",
                                EXPANDED_MAX_BYTES);
                text += n;
        }
        return 0;
}

/* Returns a copy in which each "\\$" is "$$"; oslo.config does this before anything else. */
static char *copy_unescaped(const char *text)
{
        char *copy = strdup(text);

        for (char *place = copy; place && (place = strstr(place, "\\$")); place += 2)
                place[0] = '$';
        return copy;
}

static int expand_text(Expansion *expansion, const char *section, const char *text, char **ret)
{
        _cleanup_(text_free_secretp) char *template = copy_unescaped(text);
        char *value = NULL;
        size_t size = 0;
        FILE *file;
        int r;

        if (!template)
                return error_oom(expansion->reterr);
        if (!strchr(template, '$')) {
                *ret = TAKE_PTR(template);
                return 0;
        }
        file = open_memstream(&value, &size);
        if (!file)
                return error_oom(expansion->reterr);
        r = write_expanded(expansion, section, template, file);
        if (fclose(file) != 0 && r >= 0)
                r = error_oom(expansion->reterr);
        if (r < 0)
                text_free_secret(value);
        else
                *ret = value;
        return r;
}

/* Returns true if the entry sets an option of this agent, and no later entry does. */
static bool counts(const ConfigSettings *settings, const ConfigEntry *entry,
                   const ConfigOption *option)
{
        if (option)
                return option->type == CONFIG_MULTI ||
                       config_settings_find_option(settings, option) == entry;
        return (strncasecmp(entry->section, "mdev_", 5) == 0 ||
                strncasecmp(entry->section, "vgpu_", 5) == 0) &&
               config_settings_find(settings, entry->section, entry->key) == entry;
}

int config_expand(ConfigSettings *settings, Error *reterr)
{
        for (size_t i = 0; i < settings->n_entries; i++) {
                ConfigEntry *entry = &settings->entries[i];
                const ConfigOption *option = config_settings_option_of(settings, entry);
                Expansion expansion = { .settings = settings,
                                        .is_secret = option && option->secret,
                                        .reterr = reterr };
                int r = counts(settings, entry, option) ? expand_entry(&expansion, entry) : 0;

                if (r < 0)
                        return config_entry_prefix(entry, r, reterr);
        }
        return 0;
}

int config_expand_default(ConfigSettings *settings, const char *section, const char *text,
                          char **ret, Error *reterr)
{
        Expansion expansion = { .settings = settings, .reterr = reterr };

        return expand_text(&expansion, section, text, ret);
}
