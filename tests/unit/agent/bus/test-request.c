/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Requests in D-Bus messages, valid and malformed. */

#include <inttypes.h>

#include "agent/bus/methods.h"
#include "tests/fakes/bus.h"

#define GROUPS "sa{st}asas"
#define UUID   "2f2c3e0a-7f5c-4b7e-9a3d-0d4a0a8a1b11"

static FakeBus fake;

static int setup(void **state)
{
        fake_bus_begin(&fake);
        return 0;
}

static int teardown(void **state)
{
        fake_bus_end(&fake);
        return 0;
}

static sd_bus_message *begin_message(void)
{
        sd_bus_message *m;

        assert_true(sd_bus_message_new_method_call(fake.bus, &m, NULL, "/x", "x.y", "Explain") >=
                    0);
        assert_true(sd_bus_message_open_container(m, 'a', "(" GROUPS ")") >= 0);
        return m;
}

/* Reads the message and frees it. Returns the result. text gets the request in words, or the words
 * of the error. */
static int read_message(sd_bus_message *m, ClaimRequest *request, char *text, size_t size)
{
        _cleanup_free_ char *formatted = NULL;
        Error error = ERROR_NULL;
        int r;

        assert_true(sd_bus_message_seal(m, 1, 0) >= 0);
        assert_true(sd_bus_message_rewind(m, true) >= 0);
        r = bus_read_resources(m, request, &error);
        formatted = r < 0 ? NULL : resource_request_format(&request->resources);
        snprintf(text, size, "%s", formatted ? formatted : error.text);
        sd_bus_message_unref(m);
        return r;
}

/* Appends a group that has the class n times. If n is not 1, a number makes the class names
 * different. */
static void append_group(sd_bus_message *m, const char *suffix, const char *class, uint64_t amount,
                         unsigned n, const char *required, const char *forbidden)
{
        char name[96];

        assert_true(sd_bus_message_open_container(m, 'r', GROUPS) >= 0);
        assert_true(sd_bus_message_append(m, "s", suffix) >= 0);
        assert_true(sd_bus_message_open_container(m, 'a', "{st}") >= 0);
        for (unsigned i = 0; i < n; i++) {
                snprintf(name, sizeof(name), n == 1 ? "%s" : "%s_%u", class, i);
                assert_true(sd_bus_message_append(m, "{st}", name, amount) >= 0);
        }
        assert_true(sd_bus_message_close_container(m) >= 0);
        assert_true(sd_bus_message_append(m, "as", required ? 1 : 0, required) >= 0);
        assert_true(sd_bus_message_append(m, "as", forbidden ? 1 : 0, forbidden) >= 0);
        assert_true(sd_bus_message_close_container(m) >= 0);
}

static void test_groups(void **state)
{
        static const struct {
                const char *suffix, *class;
                uint64_t amount;
                unsigned n_classes, n_groups;
                const char *required, *forbidden;
                int result;
                const char *text;
        } cases[] = {
                { "", "VCPU", 2, 1, 1, "HW_A", "HW_B", 0, "resources=VCPU:2&required=HW_A,!HW_B" },
                { "_G", "VGPU", 1, 1, 1, NULL, NULL, 0, "resources_G=VGPU:1" },
                { "", "vcpu", 2, 1, 1, NULL, NULL, -EINVAL, "\"vcpu\" is not a resource class" },
                { "", "VCPU", 0, 1, 1, NULL, NULL, -EINVAL, "VCPU: the amount must be from 1 to " },
                { "", "VCPU", 2, 1, 1, "x", NULL, -EINVAL, "\"x\" is not a trait" },
                { "", "VCPU", 2, 1, 1, NULL, "x", -EINVAL, "\"x\" is not a trait" },
                { "a b", "VCPU", 2, 1, 1, NULL, NULL, -EINVAL, "" },
                { "", "VCPU", 2, 1, 2, NULL, NULL, -EINVAL, "Group \"\" is given twice" },
                { "_G", "VGPU", 1, 0, 2, "HW_A", NULL, -EINVAL, "Group \"_G\" is given twice" },
                { "", "C", 1, CLAIM_CLASSES_MAX + 1, 1, NULL, NULL, -EINVAL,
                  "A group has more than " },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(claim_request_done) ClaimRequest request = { 0 };
                sd_bus_message *m = begin_message();
                char text[ERROR_TEXT_MAX];
                int r;

                for (unsigned n = 0; n < cases[i].n_groups; n++)
                        append_group(m, cases[i].suffix, cases[i].class, cases[i].amount,
                                     cases[i].n_classes, cases[i].required, cases[i].forbidden);
                assert_true(sd_bus_message_close_container(m) >= 0);
                assert_true(sd_bus_message_append(m, "a{sv}", 0) >= 0);
                r = read_message(m, &request, text, sizeof(text));
                if (r != cases[i].result ||
                    strncmp(text, cases[i].text, strlen(cases[i].text)) != 0)
                        fail_msg("case %zu: %d, %s", i, r, text);
        }
}

/* A request above the limits is rejected before all of it is stored. */
static void test_too_many_groups_and_amounts(void **state)
{
        static const struct {
                unsigned n_groups, n_classes;
                const char *words;
        } cases[] = {
                { CLAIM_GROUPS_MAX + 1, 1, "More than " },
                { CLAIM_GROUPS_MAX, CLAIM_CLASSES_MAX, "More than 1024 amounts" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(claim_request_done) ClaimRequest request = { 0 };
                sd_bus_message *m = begin_message();
                char text[ERROR_TEXT_MAX], suffix[16];

                for (unsigned n = 0; n < cases[i].n_groups; n++) {
                        snprintf(suffix, sizeof(suffix), "_%u", n);
                        append_group(m, suffix, "C", 1, cases[i].n_classes, NULL, NULL);
                }
                assert_true(sd_bus_message_close_container(m) >= 0);
                assert_true(sd_bus_message_append(m, "a{sv}", 0) >= 0);
                assert_int_equal(read_message(m, &request, text, sizeof(text)), -EINVAL);
                assert_memory_equal(text, cases[i].words, strlen(cases[i].words));
        }
}

/* Reads a request for 2 VCPU and 64 MiB with one option. */
static int read_option(ClaimRequest *request, const char *name, const char *type, const char *value,
                       char *text, size_t size)
{
        sd_bus_message *m = begin_message();

        assert_true(sd_bus_message_append(m, "(" GROUPS ")", "", 2, "VCPU", UINT64_C(2),
                                          "MEMORY_MB", UINT64_C(64), 0, 0) >= 0);
        assert_true(sd_bus_message_close_container(m) >= 0);
        switch (type[0]) {
        case 'b':
                assert_true(sd_bus_message_append(m, "a{sv}", 1, name, "b", 1) >= 0);
                break;
        case 't':
                assert_true(sd_bus_message_append(m, "a{sv}", 1, name, "t",
                                                  (uint64_t)atoll(value)) >= 0);
                break;
        case 'S': /* a{ss} */
                assert_true(sd_bus_message_append(m, "a{sv}", 1, name, "a{ss}", 1, "", value) >= 0);
                break;
        case 'M': /* a{sas}; type "M_G": for the group _G */
                assert_true(sd_bus_message_append(m, "a{sv}", 1, name, "a{sas}", 1, type + 1, 1,
                                                  value) >= 0);
                break;
        default:
                assert_true(sd_bus_message_append(m, "a{sv}", 1, name, "s", value) >= 0);
        }
        return read_message(m, request, text, size);
}

static void test_options(void **state)
{
        static const struct {
                const char *name, *type, *value;
                int result;
                const char *text; /* words of the error */
        } cases[] = {
                { "project", "s", "p", 0, NULL },
                { "resize-target", "b", "", 0, NULL },
                { "numa-nodes", "t", "2", 0, NULL },
                { "in-tree", "S", UUID, 0, NULL },
                { "in-tree", "S", "x", -EINVAL, "in-tree: \"x\" is not a uuid" },
                { "mappings", "M", UUID, 0, NULL },
                { "mappings", "M", "x", -EINVAL, "mappings: \"x\" is not a uuid" },
                { "mappings", "M_G", UUID, -EINVAL, "mappings: the request has no group \"_G\"" },
                { "color", "s", "red", -EINVAL, "Unknown option \"color\"" },
                { "numa-nodes", "t", "-1", -EINVAL, "" },
                { "cpu-policy", "s", "fast", -EINVAL, "" },
                { "project", "t", "1", -ENXIO, "" }, /* A wrong type is an error of sd-bus. */
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(claim_request_done) ClaimRequest request = { 0 };
                char text[ERROR_TEXT_MAX];
                int r = read_option(&request, cases[i].name, cases[i].type, cases[i].value, text,
                                    sizeof(text));

                if (r != cases[i].result ||
                    (r < 0 && strncmp(text, cases[i].text, strlen(cases[i].text)) != 0))
                        fail_msg("case %zu: %d, %s", i, r, text);
                assert_int_equal(request.project_id != NULL, i == 0);
                assert_int_equal(request.resize_target, i == 1);
                assert_int_equal(request.mappings.n_items,
                                 strcmp(cases[i].value, UUID) == 0 && cases[i].type[0] == 'M');
                if (i == 3)
                        assert_string_equal(request.resources.groups[0].in_tree.text, UUID);
        }
}

TEST_MAIN_WITH(setup, teardown, test_groups, test_too_many_groups_and_amounts, test_options)
