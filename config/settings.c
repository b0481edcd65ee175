/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Finds the entries of options in the settings, replaces the references between options, and sets
 * options from their entries. Warns about sections and options that neither this agent nor Nova
 * has, and about secrets of this agent that all users can read (config_warn_entries()).
 *
 * Options can have old names, and those of authentication can be in another section, so the search
 * for an option compares entries by rank_of(). Entries are in the order of reading. The last file
 * wins, within it the present name of an option, else the first of its old names, and then the last
 * entry. References are replaced once, in place, and the entry is then marked as expanded. A
 * reference from a value that is no secret to a secret is an error, because messages quote the
 * first value. So secrets are expanded last. Their expansion also expands entries to which only
 * secrets refer, and such an entry can then contain a secret. Values that do not count (counts())
 * are expanded only if a reference leads to them. Limits: a chain of references has at most 16
 * values that are not expanded yet, and an expanded value at most 64 KiB. More is an error.
 *
 * Tests: tests/unit/config/test-settings.c tests/unit/config/test-config.c */

#include "config/settings.h"

#include "base/text.h"
#include "config/value.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "config/nova-options-list.h"

/* Checks whether two names mean the same section. Upper and lower case are equal, and the number of
 * blanks before NAME of [device_prepare NAME] and its like does not matter. */
static bool is_same_section(const char *a, const char *b)
{
        const char *name_a, *name_b;
        const ConfigKind *kind = config_find_kind(a, &name_a);

        if (kind && kind == config_find_kind(b, &name_b))
                return strcasecmp(name_a, name_b) == 0;
        return strcasecmp(a, b) == 0;
}

static bool is_named(const ConfigEntry *entry, const char *section, const char *key)
{
        return strcasecmp(entry->key, key) == 0 && is_same_section(entry->section, section);
}

const ConfigEntry *config_settings_find(const ConfigSettings *settings, const char *section,
                                        const char *key)
{
        for (size_t i = settings->n_entries; i > 0; i--)
                if (is_named(&settings->entries[i - 1], section, key))
                        return &settings->entries[i - 1];
        return NULL;
}

/* Returns the section in which the option is expected. */
static const char *section_of(const ConfigSettings *settings, const ConfigOption *option)
{
        return option->of_auth && settings->auth_section ? settings->auth_section : option->section;
}

#define NO_RANK (CONFIG_OLD_NAMES_MAX + 1)

/* Returns 0 for an entry with the present name of the option, its place among the old names from 1
 * on, and NO_RANK for another option. */
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

static bool is_auth_section(const ConfigSettings *settings, const char *section)
{
        return settings->auth_section && strcasecmp(settings->auth_section, section) == 0;
}

/* Returns the option of config_options that an entry sets: one of its section, or one of
 * authentication of [placement] if the section is auth_section. NULL: there is none. */
static const ConfigOption *option_of(const ConfigSettings *settings, const ConfigEntry *entry)
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
                if (is_same_section(settings->sections[i - 1].name, section))
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
        /* error_setf() replaces control characters and cuts the text. */
        error_setf(&text, EINVAL, "%s", line);
        settings->warning(text.text, settings->userdata);
}

/* References. */

#define DEPTH_MAX          16  /* values of a chain of references */
#define REFERENCE_MAX      256 /* bytes of a name */
#define EXPANDED_MAX_BYTES (64 * 1024)

/* The state of the replacement in one value. All levels of nesting share it. */
typedef struct Expansion {
        ConfigSettings *settings;
        unsigned depth;
        bool is_secret; /* the value is a secret, so it can contain other secrets */
        bool hides;     /* no message quotes a name in the value, which can be part of a secret */
        Error *reterr;
} Expansion;

static int expand_text(Expansion *expansion, const char *section, const char *text, char **ret);

/* Returns the length of a name at the start of the text: a letter or '_', then also digits and
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

/* Returns the length of the reference at a dollar sign and copies its name. Returns 0 if there is
 * none. */
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

/* Replaces the references in an entry, unless that was done. The depth finds circles. */
static int expand_entry(Expansion *expansion, ConfigEntry *entry)
{
        char *value;
        int r;

        if (entry->is_expanded)
                return 0;
        if (expansion->depth >= DEPTH_MAX)
                return error_setf(expansion->reterr, EINVAL, "its references form a loop");
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

/* Checks whether the value of an option is a secret, which must not be copied into a value that
 * messages quote. For an option that this agent does not know, the name decides. */
static bool is_secret(const ConfigOption *option, const char *key)
{
        return option ? option->secret
                      : strcasestr(key, "password") || strcasestr(key, "secret") ||
                                strcasestr(key, "token");
}

/* Finds the value of an option. Returns 1 with *ret, which the caller frees, or 0 if no file sets
 * it and this agent knows no such option. */
static int find_value(Expansion *expansion, const char *section, const char *key, char **ret)
{
        const ConfigOption *option = config_find_option(config_options, section, key);
        ConfigEntry *entry;
        int r;

        if (!expansion->is_secret && is_secret(option, key))
                return error_setf(expansion->reterr, EINVAL, "must not refer to %s%.60s",
                                  expansion->hides ? "a secret" : "the secret ",
                                  expansion->hides ? "" : key);
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
                return error_setf(expansion->reterr, EINVAL, "its references form a loop");
        expansion->depth++;
        r = expand_text(expansion, section, option->default_value ?: "", ret);
        expansion->depth--;
        return r < 0 ? r : 1;
}

/* Finds the value of a reference: "section.name", or a name in the same section and then in
 * [DEFAULT]. An unknown name is an error. */
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
                        "refers to %.100s, which no file sets. Write the value, or $$ for a dollar sign",
                        expansion->hides ? "an option" : name);
        return r;
}

/* Writes the value of the reference at a dollar sign, and "$" for "$$". A dollar sign before any
 * other text stays. Returns the number of characters that were read, or a negative errno with
 * words. */
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
        /* A URL can have a password before its @. */
        if (expansion->is_secret || strchr(dollar, '@'))
                expansion->hides = true;
        r = find_reference(expansion, section, name, &value);
        if (r < 0)
                return r;
        fputs(value, file);
        return (int)n;
}

/* Writes a text with its references replaced, up to the limit. */
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

/* Returns a copy in which each "\$" is "$$", the first step of oslo.config. The caller frees. */
static char *copy_unescaped(const char *text)
{
        char *copy = strdup(text);

        for (char *place = copy; place && (place = strstr(place, "\\$")); place += 2)
                place[0] = '$';
        return copy;
}

/* Replaces the references in a text. The caller frees and wipes *ret, which can be a secret. */
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

/* Checks whether the value of the entry is used: it sets an option of this agent, and no other
 * entry of that option wins. All entries of a repeated option are used. In a section with a name,
 * the last entry of each key is used, also that of an option that the agent does not know. option:
 * that of the entry; NULL: config_options has none. */
static bool counts(const ConfigSettings *settings, const ConfigEntry *entry,
                   const ConfigOption *option)
{
        if (option)
                return option->type == CONFIG_MULTI ||
                       config_settings_find_option(settings, option) == entry;
        return config_find_kind(entry->section, NULL) &&
               config_settings_find(settings, entry->section, entry->key) == entry;
}

/* Replaces the references in all used values of the section that are secrets, or in all that are
 * not. section NULL: all sections. */
static int expand_kind(ConfigSettings *settings, const char *section, bool secrets, Error *reterr)
{
        for (size_t i = 0; i < settings->n_entries; i++) {
                ConfigEntry *entry = &settings->entries[i];
                const ConfigOption *option = option_of(settings, entry);
                Expansion expansion = { .settings = settings,
                                        .is_secret = option && option->secret,
                                        .reterr = reterr };
                int r;

                if (expansion.is_secret != secrets || !counts(settings, entry, option) ||
                    (section && !is_same_section(entry->section, section)))
                        continue;
                r = expand_entry(&expansion, entry);
                if (r < 0)
                        return config_entry_prefix(entry, r, reterr);
        }
        return 0;
}

int config_expand(ConfigSettings *settings, const char *section, Error *reterr)
{
        int r = expand_kind(settings, section, false, reterr);

        return r < 0 ? r : expand_kind(settings, section, true, reterr);
}

/* Sets an option to its default, in which references are replaced too. */
static int set_default(const ConfigOption *option, void *base, ConfigSettings *settings,
                       Error *reterr)
{
        _cleanup_(text_free_secretp) char *text = NULL;
        Expansion expansion = { .settings = settings, .reterr = reterr };
        int r = expand_text(&expansion, option->section, option->default_value, &text);

        return r < 0 ? r : config_option_set(option, base, text, reterr);
}

int config_set_from_settings(const ConfigOption *option, void *base, ConfigSettings *settings,
                             Error *reterr)
{
        _cleanup_free_ const ConfigEntry **list = NULL;
        size_t n;
        int r = 0;

        if (strchr(option->default_value ?: "", '$') &&
            !config_settings_find_option(settings, option))
                return set_default(option, base, settings, reterr);
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

/* Warnings about entries. */

/* Checks whether this agent has the section. */
static bool has_section(const char *section)
{
        if (config_find_kind(section, NULL))
                return true;
        for (const ConfigOption *o = config_options; o->key; o++)
                if (strcasecmp(o->section, section) == 0)
                        return true;
        return false;
}

/* Checks whether the tables have the option. */
static bool is_known(const ConfigSettings *settings, const ConfigEntry *entry)
{
        const ConfigKind *kind = config_find_kind(entry->section, NULL);

        if (!kind)
                return option_of(settings, entry);
        if (kind->only_key)
                return strcasecmp(entry->key, kind->only_key) == 0;
        return config_find_option(kind->options, kind->section, entry->key);
}

static int compare_names(const void *a, const void *b)
{
        return strcasecmp(a, *(const char *const *)b);
}

static bool is_section_of_nova(const char *section)
{
        return bsearch(section, nova_sections, ARRAY_SIZE(nova_sections), sizeof(char *),
                       compare_names);
}

/* Returns true for an option of Nova or its libraries in a section that the agent reads. */
static bool is_option_of_nova(const ConfigEntry *entry)
{
        char name[160];

        snprintf(name, sizeof(name), "%.60s %.90s", entry->section, entry->key);
        return bsearch(name, nova_options, ARRAY_SIZE(nova_options), sizeof(char *), compare_names);
}

/* Checks whether neither this agent nor Nova has the section, and it is not auth_section either. */
static bool is_strange(const ConfigSettings *settings, const char *section)
{
        return !has_section(section) && !is_auth_section(settings, section) &&
               !is_section_of_nova(section);
}

/* Warns if [workarounds] reserve_disk_resource_for_image_cache is true, because it changes the
 * inventory of Nova's driver but not that of this agent. Returns the entry, or NULL. */
static const ConfigEntry *warn_not_implemented(const ConfigSettings *settings)
{
        const ConfigEntry *entry = config_settings_find(settings, "workarounds",
                                                        "reserve_disk_resource_for_image_cache");
        bool value = false;

        if (!entry || config_value_bool(entry->value, &value) < 0 || !value)
                return NULL;
        config_warn(settings,
                    "%s:%u: [workarounds] %s has no effect. Reserve the size of the "
                    "image cache in reserved_host_disk_mb",
                    entry->file, entry->line, entry->key);
        return entry;
}

/* Warns about secrets of this agent in files that all users can read. */
static void warn_readable_secrets(const ConfigSettings *settings)
{
        for (size_t i = 0; i < settings->n_entries; i++) {
                const ConfigEntry *entry = &settings->entries[i];
                const ConfigOption *option = option_of(settings, entry);

                if (entry->world_readable && option && option->secret && entry->value[0] != '\0')
                        config_warn(
                                settings,
                                "%s:%u: [%s] %s is a secret, but every user can read the file. Restrict it with chmod o-r",
                                entry->file, entry->line, entry->section, entry->key);
        }
}

size_t config_warn_entries(const ConfigSettings *settings)
{
        const ConfigEntry *warned = warn_not_implemented(settings);
        size_t n_ignored = 0;

        for (size_t i = 0; i < settings->n_sections; i++) {
                const ConfigSection *section = &settings->sections[i];

                if (is_strange(settings, section->name))
                        config_warn(settings, "%s:%u: unknown section [%.64s], ignoring",
                                    section->file, section->line, section->name);
        }
        for (size_t i = 0; i < settings->n_entries; i++) {
                const ConfigEntry *entry = &settings->entries[i];

                if (entry == warned || is_known(settings, entry) ||
                    is_strange(settings, entry->section))
                        continue;
                if (!has_section(entry->section) || is_option_of_nova(entry))
                        n_ignored++;
                else
                        config_warn(settings, "%s:%u: unknown option [%.64s] %.64s, ignoring",
                                    entry->file, entry->line, entry->section, entry->key);
        }
        warn_readable_secrets(settings);
        return n_ignored;
}
