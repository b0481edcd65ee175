/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/tree/provider-yaml.h"
#include "tests/unit/test.h"

#define META   "meta: {schema_version: '1.0'}\n"
#define UUID_A "5d0b6c3e-8a53-4c0f-9d62-3a1d7b6b4e02"

static void append_problem(const char *text, void *userdata)
{
        char *all = userdata;

        assert_true(strlen(all) + strlen(text) + 2 < 4096);
        strcat(all, text);
        strcat(all, "\n");
}

/* Writes the entries as "target CLASS=total/reserved/max/ratio TRAIT; …". */
static void describe(const ProviderYaml *yaml, char *text, size_t size)
{
        size_t n = 0;

        text[0] = '\0';
        for (size_t i = 0; i < yaml->n_entries; i++) {
                const ProviderYamlEntry *entry = yaml->entries[i];

                n += (size_t)snprintf(text + n, size - n, "%s%s", i ? "; " : "", entry->target);
                for (size_t j = 0; j < entry->n_inventories; j++) {
                        const Inventory *record = &entry->inventories[j].inventory;

                        n += (size_t)snprintf(text + n, size - n, " %s=%d/%d/%d/%g",
                                              entry->inventories[j].resource_class,
                                              (int)record->total, (int)record->reserved,
                                              (int)record->max_unit, record->allocation_ratio);
                }
                for (size_t j = 0; j < entry->traits.n_items; j++)
                        n += (size_t)snprintf(text + n, size - n, " %s", entry->traits.items[j]);
        }
}

/* Checks that the only problem contains words ("": no problem), and compares the entries. A file
 * with a problem and without entries is refused. */
static void check(const char *text, const char *words, const char *entries)
{
        ProviderYaml yaml = PROVIDER_YAML_INIT;
        char problems[4096] = "", described[1024];

        assert_int_equal(
                provider_yaml_add(&yaml, "f", text, strlen(text), append_problem, problems),
                words[0] && !entries[0] ? -EINVAL : 0);
        describe(&yaml, described, sizeof(described));
        if (!strstr(problems, words) || (problems[0] && (!words[0] || strchr(problems, '\n')[1])) ||
            strcmp(described, entries) != 0)
                fail_msg("%.200s: \"%s\" %s", text, problems, described);
        provider_yaml_done(&yaml);
}

static void test_a12_files(void **state)
{
        static const struct {
                const char *text, *words, *entries;
        } cases[] = {
                { META, "", "" },
                { META "providers: []", "", "" },
                { META "providers:\n"
                       "- identification: {uuid: $COMPUTE_NODE}\n"
                       "  inventories:\n"
                       "    additional:\n"
                       "    - CUSTOM_A: {total: 10, reserved: 2, max_unit: 5}\n"
                       "    - CUSTOM_B: {total: 7, allocation_ratio: 1.5}\n"
                       "  traits:\n"
                       "    additional: [CUSTOM_T, CUSTOM_S]\n"
                       "  more: of a newer schema\n"
                       "- identification: {uuid: " UUID_A "}\n"
                       "  traits: {additional: ['CUSTOM_T']}\n"
                       "- identification: {name: 'a b'}\n"
                       "  traits: {additional: [CUSTOM_T]}\n",
                  "",
                  "$COMPUTE_NODE CUSTOM_A=10/2/5/1 CUSTOM_B=7/0/2147483647/1.5 CUSTOM_S "
                  "CUSTOM_T; " UUID_A " CUSTOM_T; a b CUSTOM_T" },
                { "meta: {schema_version: \"1.0\"}\nx: &x [CUSTOM_T]\nproviders:\n"
                  "- {identification: {name: a}, traits: {additional: *x}}\n"
                  "- {identification: {name: b}, traits: {additional: *x}}\n",
                  "", "a CUSTOM_T; b CUSTOM_T" },
                { "meta: {schema_version: '1.12'}\nproviders:\n"
                  "- {identification: {name: a}, traits: {additional: [CUSTOM_T]}}",
                  "newer than 1.0", "a CUSTOM_T" },
                { "", "f: the file is empty", "" },
                { "{", "f: not YAML: line 2", "" },
                { "\x01", "f: not YAML", "" },
                { "5", "schema_version must be", "" },
                { "meta: {schema_version: 1.0}", "in quotes", "" },
                { "meta: {schema_version: '2.0'}", "\"2.0\" is not supported", "" },
                { "meta: {schema_version: '1.01'}", "\"1.01\" is not supported", "" },
                { "meta: {schema_version: '1x0'}", "\"1x0\" is not supported", "" },
                { "meta: {schema_version: '1.'}", "\"1.\" is not supported", "" },
                { "meta: {schema_version: '1'}", "\"1\" is not supported", "" },
                { "meta: {schema_version: ''}", "\"\" is not supported", "" },
                { META "providers: 5", "f:2: providers must be a list", "" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                check(cases[i].text, cases[i].words, cases[i].entries);
}

/* G2.13: a bad entry is skipped, without effect on the entries beside it. */
static void test_g2_13_bad_entries(void **state)
{
        static const struct {
                const char *entry, *words;
        } cases[] = {
                { "5", "must be a mapping" },
                { "{traits: {additional: [CUSTOM_T]}}", "either a uuid or a name" },
                { "{identification: {uuid: $COMPUTE_NODE, name: a}}", "either a uuid or a name" },
                { "{identification: {uuid: x}, traits: {additional: [CUSTOM_T]}}",
                  "\"x\" is neither a uuid" },
                { "{identification: {name: ''}, traits: {additional: [CUSTOM_T]}}",
                  "1 to 200 characters" },
                { "{identification: {name: a}}", "neither inventories nor traits" },
                { "{identification: {name: a}, __source_file: f}", "__source_file" },
                { "{identification: {name: a}, traits: {additional: CUSTOM_T}}",
                  "traits: additional must be a list" },
                { "{identification: {name: a}, traits: {additional: [HW_CPU]}}",
                  "\"HW_CPU\" is not a custom trait" },
                { "{identification: {name: a}, traits: {additional: [custom_t]}}", "custom_t" },
                { "{identification: {name: a}, traits: {additional: [[CUSTOM_T]]}}",
                  "is not a custom trait" },
                { "{identification: {name: a}, inventories: {additional: {CUSTOM_A: 5}}}",
                  "inventories: additional must be a list" },
                { "{identification: {name: a}, inventories: {additional: [{VCPU: {total: 5}}]}}",
                  "\"VCPU\" is not a custom resource class" },
                { "{identification: {name: a}, inventories: {additional: [{CUSTOM_A: 5}]}}",
                  "CUSTOM_A must be a mapping" },
                { "{identification: {name: a}, inventories: {additional: [{CUSTOM_A: {}}]}}",
                  "total of CUSTOM_A is missing" },
                { "{identification: {name: a}, inventories: {additional: [{CUSTOM_A: {total: '5'}}]}}",
                  "total must be a whole number" },
                { "{identification: {name: a}, inventories: {additional: [{CUSTOM_A: {total: -5}}]}}",
                  "total must be a whole number" },
                { "{identification: {name: a}, inventories: {additional: [{CUSTOM_A: {total: 99999999999999999999}}]}}",
                  "total must be a whole number" },
                { "{identification: {name: a}, inventories: {additional: [{CUSTOM_A: {total: 5, allocation_ratio: 0}}]}}",
                  "allocation_ratio must be" },
                { "{identification: {name: a}, inventories: {additional: [{CUSTOM_A: {total: 5, allocation_ratio: .inf}}]}}",
                  "allocation_ratio must be" },
                { "{identification: {name: a}, inventories: {additional: [{CUSTOM_A: {total: 5, reserved: 6}}]}}",
                  "reserved of CUSTOM_A" },
                { "{identification: {name: a}, inventories: {additional: [{CUSTOM_A: {total: 5, colour: 6}}]}}",
                  "\"colour\" is not a field" },
                { "{identification: {name: a}, inventories: {additional: [{CUSTOM_A: {total: 5}}, {CUSTOM_A: {total: 6}}]}}",
                  "CUSTOM_A is listed twice" },
                { "{identification: {name: good}, traits: {additional: [CUSTOM_T]}}",
                  "good already has an entry" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char text[1024];

                snprintf(text, sizeof(text),
                         META
                         "providers:\n"
                         "- {identification: {name: good}, traits: {additional: [CUSTOM_T]}}\n"
                         "- %s\n"
                         "- {identification: {name: fine}, traits: {additional: [CUSTOM_T]}}\n",
                         cases[i].entry);
                check(text, cases[i].words, "good CUSTOM_T; fine CUSTOM_T");
        }
}

/* A reader that followed every alias would visit a thousand million nodes. */
static void test_hostile_aliases(void **state)
{
        static const char text[] = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
                                   "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
                                   "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n"
                                   "e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\n" META "providers: *e";
        ProviderYaml yaml = PROVIDER_YAML_INIT;
        char problems[4096] = "";

        assert_int_equal(
                provider_yaml_add(&yaml, "f", text, strlen(text), append_problem, problems), 0);
        assert_int_equal(yaml.n_entries, 0);
        provider_yaml_done(&yaml);
}

static void keep_problem(const char *text, void *userdata)
{
        snprintf(userdata, 200, "%s", text);
}

/* Each provider is short, but aliases name 10000 items in it. The last problem names the limit. */
static void test_too_many_items(void **state)
{
        static const char *const rows[] = {
                "traits: {additional: *l}",
                "inventories: {additional: [{CUSTOM_A: *m}]}",
                "traits: *m",
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                ProviderYaml yaml = PROVIDER_YAML_INIT;
                char problem[200] = "", *text = NULL;
                size_t size;
                FILE *file = open_memstream(&text, &size);

                assert_non_null(file);
                fputs(META "l: &l [CUSTOM_A", file);
                for (int j = 0; j < 10000; j++)
                        fputs(",\n CUSTOM_A", file);
                fputs("]\nm: &m {total: 1", file);
                for (int j = 0; j < 10000; j++)
                        fputs(",\n total: 1", file);
                fputs("}\nproviders:\n", file);
                for (int j = 0; j < 1000; j++)
                        fprintf(file, "- {identification: {name: p%d}, %s}\n", j, rows[i]);
                assert_int_equal(fclose(file), 0);
                assert_int_equal(provider_yaml_add(&yaml, "f", text, size, keep_problem, problem),
                                 -EINVAL);
                if (!strstr(problem, "aliases give the file more than 262144 items"))
                        fail_msg("%s: %s", rows[i], problem);
                assert_true(yaml.n_entries < 30);
                provider_yaml_done(&yaml);
                free(text);
        }
}

static void test_hostile_depth(void **state)
{
        ProviderYaml yaml = PROVIDER_YAML_INIT;
        char problems[4096] = "";
        char *text = malloc(200000);

        memset(text, '[', 200000);
        assert_int_equal(provider_yaml_add(&yaml, "f", text, 200000, append_problem, problems),
                         -EINVAL);
        assert_string_equal(problems, "f: nested too deeply\n");
        problems[0] = '\0';
        memset(text, '-', 200000);
        for (size_t i = 1; i < 200000; i += 2)
                text[i] = ' ';
        assert_int_equal(provider_yaml_add(&yaml, "f", text, 200000, append_problem, problems),
                         -EINVAL);
        assert_string_equal(problems, "f: nested too deeply\n");
        free(text);
        problems[0] = '\0';
        assert_int_equal(provider_yaml_add(&yaml, "f", "", PROVIDER_YAML_MAX_BYTES + 1,
                                           append_problem, problems),
                         -EINVAL);
        assert_non_null(strstr(problems, "larger than"));
        provider_yaml_done(&yaml);
}

TEST_MAIN(test_a12_files, test_g2_13_bad_entries, test_hostile_aliases, test_too_many_items,
          test_hostile_depth)
