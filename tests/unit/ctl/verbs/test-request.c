/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/verbs/options.h"

#include "base/text.h"
#include "tests/fixtures/ctl-capture.h"

#define GPU  "12345678-1234-1234-1234-123456789abc"
#define ROOT "12345678-1234-1234-1234-123456789abd"

#define WORDS_MAX 16

/* An option of "claim" and its value. */
typedef struct Given {
        const char *option, *text;
} Given;

/* The options of a command line, which borrow its words. */
typedef struct Line {
        char *owned[WORDS_MAX];
        char *words[WORDS_MAX]; /* in the order of getopt_long(3) */
        CtlOptions options;
} Line;

static void line_done(Line *line)
{
        ctl_options_done(&line->options);
        for (size_t i = 0; i < WORDS_MAX; i++)
                free(line->owned[i]);
}

/* Parses "computectl claim" with these options. Returns their request. */
static CtlRequest *parse(Line *line, const Given *given, size_t n)
{
        assert_true(n + 3 <= WORDS_MAX);
        line->words[0] = (char *)"computectl";
        line->words[1] = (char *)"claim";
        for (size_t i = 0; i < n; i++) {
                line->owned[i] = text_format("--%s=%s", given[i].option, given[i].text);
                line->words[2 + i] = line->owned[i];
        }
        assert_int_equal(ctl_options_parse((int)n + 2, line->words, &line->options, NULL), 0);
        return &line->options.request;
}

static void test_a_whole_request(void **state)
{
        static const Given options[] = {
                { "group", "gpu:VGPU=1" },     { "resources", "VCPU=2,MEMORY_MB=512" },
                { "resources", "DISK_GB=1" },  { "group", "gpu:CUSTOM_X=3" },
                { "required", "HW_A,!HW_B" },  { "required", "gpu:CUSTOM_C" },
                { "in-tree", "gpu:" ROOT },    { "same-subtree", "gpu,nic" },
                { "group", "nic:CUSTOM_N=1" }, { "numa-nodes", "2" },
                { "numa-cpus", "0:0-1" },      { "numa-cpus", "1:2-3" },
                { "numa-mem", "0:512" },
        };
        _cleanup_(line_done) Line line = { 0 };
        const CtlRequest *request = parse(&line, options, ARRAY_SIZE(options));
        const ResourceRequest *resources = &request->resources;

        assert_int_equal(ctl_request_check(request, NULL), 0);

        assert_int_equal(resources->n_groups, 3);
        assert_string_equal(resources->groups[0].suffix, "");
        assert_int_equal(resources->groups[0].resources.n_items, 3);
        assert_true(string_set_contains(&resources->groups[0].required, "HW_A"));
        assert_true(string_set_contains(&resources->groups[0].forbidden, "HW_B"));
        assert_string_equal(resources->groups[1].suffix, "gpu");
        assert_int_equal(resources_get(&resources->groups[1].resources, "VGPU"), 1);
        assert_int_equal(resources_get(&resources->groups[1].resources, "CUSTOM_X"), 3);
        assert_true(string_set_contains(&resources->groups[1].required, "CUSTOM_C"));
        assert_string_equal(resources->groups[1].in_tree.text, ROOT);
        assert_int_equal(resources->n_subtrees, 1);
        assert_int_equal(request->numa.nodes, 2);
        assert_int_equal(request->numa.n_cpus, 2);
        assert_string_equal(request->numa.cpus[1], "2-3");
        assert_int_equal(request->numa.memory_mb[0], 512);
}

/* The first error is kept, with the name of its option. */
static void test_wrong_texts(void **state)
{
        static const struct {
                const char *option, *text, *words;
        } cases[] = {
                { "resources", "", "" },
                { "resources", "VCPU", "" },
                { "resources", "VCPU=0", "VCPU" },
                { "resources", "vcpu=1", "vcpu" },
                { "resources", "DISK_GB=1", "twice" },
                { "group", "VGPU=1", "not a group" },
                { "group", ":VGPU=1", "not a group" },
                { "group", "a b:VGPU=1", "suffix" },
                { "group", "1:", "" },
                { "group", "1:VGPU=-1", "" },
                { "required", "", "trait" },
                { "required", "HW_A,", "trait" },
                { "required", "!", "trait" },
                { "required", "!!HW_A", "trait" },
                { "required", "hw_a", "hw_a" },
                { "required", "1:", "trait" },
                { "required", "HW_A,!HW_A", "both" },
                { "required", "!HW_Z,HW_Z", "both" },
                { "in-tree", "1:host", "not the uuid of a provider" },
                { "numa-nodes", "0", "not a number of cells" },
                { "numa-cpus", "1:0", "must begin with 0:" },
                { "numa-mem", "0:x", "not a number of MiB" },
                { "mapping", "", "is not a mapping" },
                { "mapping", "gpu", "is not a mapping" },
                { "mapping", GPU, "is not a mapping" },
                { "mapping", "gpu=", "is not a mapping" },
                { "mapping", "gpu:x", "is not a mapping" },
                { "mapping", "=", "is not a mapping" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const Given given[] = { { "resources", "DISK_GB=1" },
                                        { cases[i].option, cases[i].text },
                                        { "numa-nodes", "no" } };
                _cleanup_(line_done) Line line = { 0 };
                const CtlRequest *request = parse(&line, given, ARRAY_SIZE(given));
                Error error = ERROR_NULL;

                assert_int_equal(ctl_request_check(request, &error), -EINVAL);
                assert_true(strncmp(error.text, "--", 2) == 0);
                assert_contains(error.text, cases[i].option);
                assert_contains(error.text, cases[i].words);
        }
}

static void test_check(void **state)
{
        static const struct {
                const char *option, *text, *error;
        } cases[] = {
                { "required", "nic:HW_A", "A group with required traits has no resources: nic" },
                { "required", "gpu:HW_A", NULL },
                { "mapping", "gpu=" GPU, NULL },
                { "mapping", "gpu=host_pci_1", NULL },
                { "mapping", "=" ROOT, "--mapping: the request has no group \"\"" },
                { "mapping", "=host", "--mapping: the request has no group \"\"" },
                { "mapping", "g=host", "--mapping: the request has no group \"g\"" },
                { "mapping", "gpu2=host", "--mapping: the request has no group \"gpu2\"" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const Given given[] = { { "group", "gpu:VGPU=1" },
                                        { cases[i].option, cases[i].text } };
                _cleanup_(line_done) Line line = { 0 };
                const CtlRequest *request = parse(&line, given, ARRAY_SIZE(given));
                Error error = ERROR_NULL;

                assert_int_equal(ctl_request_check(request, &error), cases[i].error ? -EINVAL : 0);
                if (cases[i].error)
                        assert_string_equal(error.text, cases[i].error);
        }
}

static void test_names_of_providers(void **state)
{
        static const struct {
                const char *suffix, *provider;
        } wanted[] = { { "", ROOT }, { "a", ROOT }, { "gpu", GPU } };
        _cleanup_(json_done) json_t *tree =
                parse_json("{\"providers\": [{\"uuid\": \"" ROOT "\", \"name\": \"host\"},"
                           " {\"uuid\": \"" GPU "\", \"name\": \"host_0000:41:00.0\"}]}");
        static const Given known[] = { { "mapping", "=" ROOT },
                                       { "mapping", "gpu=host_0000:41:00.0" },
                                       { "mapping", "a=host" } },
                           unknown[] = { { "mapping", "a=host" }, { "mapping", "b=other" } };
        _cleanup_(line_done) Line line = { 0 }, other = { 0 };
        CtlRequest *request = parse(&line, known, ARRAY_SIZE(known));
        Error error = ERROR_NULL;

        assert_int_equal(ctl_request_resolve(request, tree, NULL), 0);
        assert_int_equal(request->mappings.n_items, ARRAY_SIZE(wanted));
        for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
                assert_string_equal(request->mappings.items[i].suffix, wanted[i].suffix);
                assert_string_equal(request->mappings.items[i].provider.text, wanted[i].provider);
        }
        request = parse(&other, unknown, ARRAY_SIZE(unknown));
        assert_int_equal(ctl_request_resolve(request, tree, &error), -EINVAL);
        assert_contains(error.text, "this host has no provider \"other\"");
}

TEST_MAIN(test_a_whole_request, test_wrong_texts, test_check, test_names_of_providers)
