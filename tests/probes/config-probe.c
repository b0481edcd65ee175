/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* config-probe FILE...: reads each configuration file and prints one line of JSON for it:
 *
 *   {"values": {"section": {"key": value}}, "warnings": ["text"]} or {"error": "text"}
 *
 * The values are the options of config/table.c without [mdev_TYPE]. Times are in seconds. A value
 * of an enumeration is a list of all words with that meaning. Options that are not set are null. */

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "config/table.h"

static void on_warning(const char *text, void *userdata)
{
        json_array_append_new(userdata, json_string(text));
}

static json_t *words_of(const ConfigOption *option, int value)
{
        json_t *words = json_array();

        for (const ConfigWord *word = option->words; word->word; word++)
                if (word->value == value)
                        json_array_append_new(words, json_string(word->word));
        return words;
}

static json_t *list_of(char *const *items)
{
        json_t *list = json_array();

        for (; items && *items; items++)
                json_array_append_new(list, json_string(*items));
        return list;
}

static json_t *value_of(const ConfigOption *option, const Config *config)
{
        const void *member = (const char *)config + option->offset;

        switch (option->type) {
        case CONFIG_BOOL:
                return json_boolean(*(const bool *)member);
        case CONFIG_U64:
                return json_integer((json_int_t) * (const uint64_t *)member);
        case CONFIG_SECONDS:
        case CONFIG_INTERVAL:
                return json_integer(
                        *(const uint64_t *)member == UINT64_MAX
                                ? -1
                                : (json_int_t)(*(const uint64_t *)member / USEC_PER_SEC));
        case CONFIG_DOUBLE:
                return json_real(*(const double *)member);
        case CONFIG_STRING:
                return *(char *const *)member ? json_string(*(char *const *)member) : json_null();
        case CONFIG_LIST:
        case CONFIG_MULTI:
                return list_of(*(char **const *)member);
        case CONFIG_ENUM:
                return words_of(option, *(const int *)member);
        default:
                return json_null();
        }
}

static json_t *values_of(const Config *config)
{
        json_t *values = json_object();

        for (const ConfigOption *option = config_options; option->key; option++) {
                json_t *section = json_object_get(values, option->section);

                if (!section) {
                        section = json_object();
                        json_object_set_new(values, option->section, section);
                }
                json_object_set_new(section, option->key, value_of(option, config));
        }
        return values;
}

int main(int argc, char *argv[])
{
        for (int i = 1; i < argc; i++) {
                _cleanup_(config_freep) Config *config = NULL;
                json_t *warnings = json_array(), *answer;
                Error error = ERROR_NULL;

                if (config_load(&config, argv[i], on_warning, warnings, &error) < 0)
                        answer = json_pack("{ss}", "error", error.text);
                else
                        answer = json_pack("{soso}", "values", values_of(config), "warnings",
                                           json_incref(warnings));
                json_dumpf(answer, stdout, JSON_COMPACT);
                putchar('\n');
                json_decref(answer);
                json_decref(warnings);
        }
        return EXIT_SUCCESS;
}
