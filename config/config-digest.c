/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Writes the effective options as text and makes the digest of the text: whether [placement]
 * exists, and one line for each option that differs from its default, except those of one host
 * (is_of_one_host()). So a new version with more options keeps the digest of a configuration that
 * does not use them. An option whose default has a reference to another option, such as
 * $state_path, always has its line (is_default()). The sections with names follow, in the order of
 * the configuration. Comments, files and the order of options make no difference. The order of
 * sections and of items in lists does. */

#include "config/config-digest.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "base/secret.h"
#include "config/table.h"

/* Options that differ between equal hosts. */
static bool is_of_one_host(const ConfigOption *option)
{
        static const char *const keys[] = { "host",
                                            "username",
                                            "user_id",
                                            "application_credential_id",
                                            "application_credential_name",
                                            "device_addresses" };

        for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
                if (strcmp(option->key, keys[i]) == 0)
                        return true;
        return option->secret;
}

/* Prints a text without the user and password of a URL. */
static void print_text(const char *text, FILE *output)
{
        const char *host = strstr(text, "://"), *at = host ? strrchr(host, '@') : NULL;

        if (at)
                fprintf(output, "%.*s", (int)(host + strlen("://") - text), text);
        fprintf(output, "%s;", at ? at + 1 : text);
}

/* Prints a device_spec without its address. Equal devices have other addresses on other hosts. */
static void print_spec(const char *text, FILE *output)
{
        _cleanup_json_ json_t *spec = json_loads(text, 0, NULL);
        size_t i;
        json_t *item;

        json_object_del(spec, "address");
        json_array_foreach(spec, i, item)
                json_object_del(item, "address");
        (void)json_dumpf(spec, output, JSON_COMPACT | JSON_SORT_KEYS);
        fputc(';', output);
}

/* Prints a member or a partition without the PCI addresses in it. */
static void print_shape(const char *text, FILE *output)
{
        while (*text) {
                size_t n = strspn(text, "0123456789ABCDEFabcdef:.");

                if (!memchr(text, ':', n))
                        fprintf(output, "%.*s", (int)(n ?: 1), text);
                text += n ?: 1;
        }
        fputc(';', output);
}

static void print_list(const ConfigOption *option, char *const *list, FILE *output)
{
        bool is_shape = strcmp(option->section, CONFIG_SHAPES_SECTION) == 0;

        for (; list && *list; list++)
                if (strcmp(option->key, "device_spec") == 0)
                        print_spec(*list, output);
                else if (is_shape)
                        print_shape(*list, output);
                else
                        print_text(*list, output);
}

static void print_value(const ConfigOption *option, const void *base, FILE *output)
{
        const void *member = (const char *)base + option->offset;

        switch (option->type) {
        case CONFIG_BOOL:
                fprintf(output, "%d", *(const bool *)member);
                break;
        case CONFIG_ENUM:
                fprintf(output, "%d", *(const int *)member);
                break;
        case CONFIG_DOUBLE:
                fprintf(output, "%.17g", *(const double *)member);
                break;
        case CONFIG_U64:
        case CONFIG_SECONDS:
        case CONFIG_INTERVAL:
                fprintf(output, "%" PRIu64, *(const uint64_t *)member);
                break;
        case CONFIG_STRING:
                print_text(*(char *const *)member ?: "", output);
                break;
        case CONFIG_LIST:
        case CONFIG_MULTI:
                print_list(option, *(char *const *const *)member, output);
                break;
        case CONFIG_UNUSED:
                break;
        }
}

/* Checks whether the option has its default. Returns false if the default has a reference to
 * another option ("$state_path/instances"), because references are not replaced here. */
static bool is_default(const ConfigOption *option, const void *base)
{
        Config defaults = { 0 }; /* as large as the other structs */
        _cleanup_free_ char *text = NULL, *other = NULL;
        size_t n, n_other;
        FILE *output;

        if (option->default_value)
                (void)config_option_set(option, &defaults, option->default_value, NULL);
        output = open_memstream(&other, &n_other);
        if (output) {
                print_value(option, &defaults, output);
                fclose(output);
        }
        config_option_done(option, &defaults);
        output = open_memstream(&text, &n);
        if (output) {
                print_value(option, base, output);
                fclose(output);
        }
        return text && other && strcmp(text, other) == 0;
}

/* Prints the options of one section, or of all sections of config_options. name: the name of a type
 * or group; "": none. */
static void print_options(const ConfigOption *options, const void *base, const char *name,
                          FILE *output)
{
        for (const ConfigOption *o = options; o->key; o++) {
                if (is_of_one_host(o) || is_default(o, base))
                        continue;
                fprintf(output, "%s %s %s = ", o->section, name, o->key);
                print_value(o, base, output);
                fputc('\n', output);
        }
}

/* Prints the sections of a kind. */
static void print_kind(const ConfigKind *kind, const HostConfig *host, FILE *output)
{
        const char *item, *name;
        size_t n;

        memcpy(&item, (const char *)host + kind->items, sizeof(item));
        memcpy(&n, (const char *)host + kind->n_items, sizeof(n));
        for (size_t i = 0; i < n; i++, item += kind->item_size) {
                memcpy(&name, item + kind->item_name, sizeof(name));
                print_options(kind->options, item, name, output);
        }
}

static void print_all(const Config *config, FILE *output)
{
        fprintf(output, "placement = %d\n", config->has_placement);
        print_options(config_options, config, "", output);
        for (const ConfigKind *kind = config_kinds; kind->prefix; kind++)
                if (kind->item_size > 0)
                        print_kind(kind, &config->driver.host, output);
}

int config_make_digest(const Config *config, Digest *ret)
{
        _cleanup_free_ char *text = NULL;
        size_t n = 0;
        FILE *output = open_memstream(&text, &n);

        if (!output)
                return -ENOMEM;
        print_all(config, output);
        if (fclose(output) != 0)
                return -ENOMEM;
        *ret = digest_make(text, n);
        return 0;
}
