/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/print/filter.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "tests/fixtures/ctl-capture.h"
#include "tests/fixtures/ctl-events.h"

#define NOW_SEC 1700000000 /* 2023-11-14 22:13:20 UTC */

static void test_times(void **state)
{
        static const struct {
                const char *text;
                uint64_t sec; /* start; UINT64_MAX: rejected */
        } cases[] = {
                { "-90s", NOW_SEC - 90 },
                { "-5min", NOW_SEC - 300 },
                { "2h ago", NOW_SEC - 7200 },
                { "1d ago", NOW_SEC - 86400 },
                { "-2w", NOW_SEC - 14 * 86400 },
                { "-99999999w", 0 }, /* before 1970: all items match */
                { "today", 1699920000 },
                { "yesterday", 1699833600 },
                { "2023-11-14", 1699920000 },
                { "2023-11-14 10:30", 1699957800 },
                { "2023-11-14 10:30:05", 1699957805 },
                { "2h", UINT64_MAX },
                { "-2h ago", UINT64_MAX },
                { "-2x", UINT64_MAX },
                { "-", UINT64_MAX },
                { "", UINT64_MAX },
                { "2023-11-14x", UINT64_MAX },
                { "1960-01-01", UINT64_MAX },
                { "-9999999999h", UINT64_MAX },
        };

        setenv("TZ", "UTC", 1);
        tzset();
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Error error = ERROR_NULL;
                CtlFilter filter = { 0 };
                int r = ctl_filter_complete(&filter, cases[i].text, false, NOW_SEC * USEC_PER_SEC,
                                            &error);

                if (r != (cases[i].sec == UINT64_MAX ? -EINVAL : 0) ||
                    (r == 0 && filter.since_usec / USEC_PER_SEC != cases[i].sec))
                        fail_msg("%s: %d, %" PRIu64, cases[i].text, r, filter.since_usec);
        }
}

static void test_states(void **state)
{
        static const struct {
                const char *state;
                bool events;
                int r;
        } cases[] = {
                { NULL, false, 0 },
                { "confirmed", false, 0 },
                { "confirmed", true, -EINVAL },
                { "pending", false, 0 },
                { "pending", true, -EINVAL },
                { "cordoned", true, 0 },
                { "cordoned", false, -EINVAL },
                { "released", false, 0 },
                { "released", true, 0 },
                { "", false, -EINVAL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                CtlFilter filter = { .state = cases[i].state };
                Error error = ERROR_NULL;

                assert_int_equal(ctl_filter_complete(&filter, NULL, cases[i].events, 0, &error),
                                 cases[i].r);
                if (cases[i].r < 0)
                        assert_non_null(strstr(error.text, "claimed, "));
        }
}

#define ITEM(number, kind, more)                                                           \
        "{'id': " number ", 'state': '" kind "', 'event': '" kind "', 'consumer': '" VM    \
        "', 'guest': 'web', 'created_usec': 5, 'usec': 5, 'devices': [{'device': 'pci_1'," \
        " 'address': '0000:41:00.0', 'mdev': ''}], 'allocations': [{'name': 'host1_pci',"  \
        " 'provider': '21111111-2222-4333-8444-555555555555'}]" more "}"

static void test_items(void **state)
{
        static const struct {
                CtlFilter filter;
                size_t n;
        } cases[] = {
                { { 0 }, 2 },
                { { .guest = "web" }, 2 },
                { { .guest = "WEB" }, 0 },
                { { .guest = VM }, 2 },
                { { .guest = "other" }, 0 },
                { { .device = "0000:41:00.0" }, 2 },
                { { .device = "host1_pci" }, 2 },
                { { .device = "pci_2" }, 0 },
                { { .device = "" }, 0 },
                { { .state = "released" }, 1 },
                { { .state = "released", .guest = "other" }, 0 },
                { { .since_usec = 5 }, 2 },
                { { .since_usec = 6 }, 1 },
                { { .since_usec = 9 }, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                for (int events = 0; events < 2; events++) {
                        _cleanup_json_ json_t *document =
                                parse_quoted("{'claims': [" ITEM("1", "confirmed", "") ", " ITEM(
                                        "2", "released", ", 'ended_usec': 8") "]}");

                        if (events) {
                                json_t *items = json_incref(json_object_get(document, "claims"));

                                assert_int_equal(json_object_del(document, "claims"), 0);
                                json_object_set_new(json_array_get(items, 1), "usec",
                                                    json_integer(8));
                                json_object_set_new(document, "events", items);
                        }
                        ctl_filter_apply(&cases[i].filter, document);
                        if (json_array_size(json_object_get(
                                    document, events ? "events" : "claims")) != cases[i].n)
                                fail_msg("case %zu, events %d", i, events);
                }
}

/* A claim of a guest that libvirt does not have has no name. */
static void test_an_empty_name_selects_nothing(void **state)
{
        _cleanup_json_ json_t *document = parse_quoted("{'claims': [{'id': 1, 'consumer': 'c'}]}");

        ctl_filter_apply(&(CtlFilter){ .guest = "" }, document);
        assert_int_equal(json_array_size(json_object_get(document, "claims")), 0);
}

static void test_strange_documents(void **state)
{
        static const char *const texts[] = { "{}", "{'claims': 7, 'events': {}}",
                                             "{'claims': [7, null], 'events': [[], 'x']}" };
        const CtlFilter filter = { .guest = "web", .device = "x", .state = "claimed" };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                _cleanup_json_ json_t *document = parse_quoted(texts[i]);

                ctl_filter_apply(&filter, document);
                assert_int_equal(json_array_size(json_object_get(document, "claims")), 0);
        }
}

/* Asserts the ids of the claims that are left. */
static void assert_found(const char *what, const char *ids)
{
        _cleanup_(json_done) json_t *document = parse_quoted(
                "{'claims': [{'id': 1, 'consumer': 'aaaaaaaa-2222-4333-8444-555555555555', 'devices': [{"
                "'device': 'pci_1', 'address': '0000:41:00.0', 'mdev': 'bbbbbbbb-2222-4333-8444-555555555555'"
                "}], 'cells': [{'cell': 0, 'host_cell': 1}], 'cpus': [{'vcpu': 0, 'cpus': '4-6'}],"
                " 'held': '4-6,20'},"
                "{'id': 2, 'consumer': 'aaaaaaaa-2222-4333-8444-555555555555', 'resize_target': true,"
                " 'devices': [], 'cells': [], 'cpus': [], 'held': ''},"
                "{'id': 3, 'consumer': 'c', 'guest': 'web-1', 'devices': [{'device': 'pci_1',"
                " 'address': '0000:41:00.0', 'mdev': ''}], 'allocations': [{'name': 'host_pci_1',"
                " 'provider': 'cccccccc-2222-4333-8444-555555555555'}]},"
                "{'id': 4, 'devices': [{'device': 'pci_vf', 'address': '0000:c1:01.0', 'mdev': ''}]},"
                "{'id': 5, 'devices': [{'device': 'mdev_of_vf', 'address': '0000:c1:01.0', 'mdev': 'm'}]},"
                "{'id': 6, 'devices': [{'device': 'gone', 'address': '0000:c1:01.7', 'mdev': ''}],"
                " 'allocations': [{'name': 'host_pci_0000_c1_00_0', 'provider': 'p'}]},"
                "{'id': 7, 'devices': [], 'allocations': [{'name': 'host_0000:C1:00.0'}]},"
                " {'id': 8, 'consumer': 'dddddddd-2222-4333-8444-555555555555',"
                " 'of': 'eeeeeeee-2222-4333-8444-555555555555'}]}");
        _cleanup_json_ json_t *host = parse_quoted(
                "{'devices': [{'name': 'pci_1', 'address': '0000:41:00.0'},"
                " {'name': 'pci_0000_c1_00_0', 'address': '0000:c1:00.0', 'physical_function': ''},"
                " {'name': 'pci_vf', 'address': '0000:c1:01.0', 'physical_function': '0000:c1:00.0'},"
                " {'name': 'mtty', 'address': ''}, {'name': 'other', 'address': ''}]}");
        char found[16] = "";
        const json_t *claim;
        size_t i;

        assert_int_equal(ctl_claims_find(document, host, NULL, what), 0);
        json_array_foreach(json_object_get(document, "claims"), i, claim)
                snprintf(found + strlen(found), sizeof(found) - strlen(found), "%d",
                         (int)json_integer_value(json_object_get(claim, "id")));
        if (strcmp(found, ids) != 0)
                fail_msg("%s: \"%s\"", what, found);
}

static void test_words_of_claims(void **state)
{
        static const char *const cases[][2] = {
                { "aaaaaaaa-2222-4333-8444-555555555555", "12" },
                { "AAAAAAAA-2222-4333-8444-555555555555", "12" },
                { "bbbbbbbb-2222-4333-8444-555555555555", "1" },
                { "web-1", "3" },
                { "DDDDDDDD-2222-4333-8444-555555555555", "8" },
                { "EEEEEEEE-2222-4333-8444-555555555555", "8" }, /* a migration has its claim */
                { "pci_1", "13" },
                { "host_pci_1", "13" },
                { "CCCCCCCC-2222-4333-8444-555555555555", "3" },
                { "0000:41:00.0", "13" },
                { "cell:1", "1" },
                { "cell:0", "" },
                { "cpu:5", "1" },
                { "cpu:20", "1" },
                { "cpu:7", "" },
                { "cpu:", "" },
                { "cpu:5x", "" },
                { "pci_2", "" },
                /* a card: its functions, also those that the host does not list any more */
                { "0000:c1:00.0", "4567" },
                { "0000:C1:00.0", "4567" },
                { "pci_0000_c1_00_0", "4567" },
                { "pci_vf", "45" },
                { "0000:c1:01.0", "45" },
                { "0000:c1:01.7", "6" },
                { "mtty", "" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                assert_found(cases[i][0], cases[i][1]);
}

static void test_words_of_events(void **state)
{
        static const struct {
                const char *what;
                size_t n;
        } cases[] = {
                { "7", 1 },
                { "0", 0 },
                { "web-1", 1 },
                { VM, 2 },
                { "11111111-2222-4333-8444-55555555555A", 0 },
                { FROM, 1 },
                { "31111111-2222-4333-8444-555555555555", 1 },
                { "pci_0000_41_00_0", 1 },
                { MDEV, 1 },
                { "gpu", 2 },
                { "card", 1 },
                { "smoke", 0 },
                { "", 0 },
        };

        _cleanup_json_ json_t *host = parse_quoted(
                "{'devices': [{'name': 'card', 'address': '0000:c1:00.0'}, {'name':"
                " 'pci_0000_41_00_0', 'address': '', 'physical_function': '0000:c1:00.0'}]}");

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(json_done) json_t *document = parse_quoted(
                        "{'events': [" CLAIMED "," MOVED "," CORDONED ",{}," STRANGE "]}");
                size_t n;

                assert_int_equal(ctl_events_find(document, host, cases[i].what), 0);
                n = json_array_size(json_object_get(document, "events"));
                if (n != cases[i].n)
                        fail_msg("%s: %zu", cases[i].what, n);
        }
}

#define HOST                                                                                       \
        "{'cells': [{'id': 1, 'cpus': [{'id': 4}]}], 'devices': [{'name': 'pci_1',"                \
        " 'address': '0000:41:00.0'}, {'name': 'card', 'address': '0000:c1:00.0'},"                \
        " {'name': 'vf', 'address': '0000:c1:01.0', 'physical_function': '0000:c1:00.0'},"         \
        " {'name': 'pci_5', 'address': '0000:05:00.0'}],"                                          \
        " 'domains': [{'uuid': 'g5', 'name': 'web-5', 'pci_addresses': ['0000:05:00.0']},"         \
        " {'uuid': 'g4', 'name': 'web-4', 'state': 'shutoff', 'pci_addresses': ['0000:c1:01.0']}," \
        " {'uuid': 'g1', 'name': 'web-1',"                                                         \
        " 'pci_addresses': ['0000:41:00.0']}, {'uuid': 'g2', 'name': 'web-2', 'config_mdevs':"     \
        " ['" MDEV "']}, {'uuid': 'g3', 'name': 'web-3', 'mdevs': ['" MDEV "']}]}"

#define SET "dddddddd-2222-4333-8444-555555555555"
#define TREE                                                                                      \
        "{'providers': [{'name': 'host', 'uuid': 'u1'}, {'name': 'host_PCI_1', 'uuid':"           \
        " 'cccccccc-2222-4333-8444-555555555555'}, {'name': 'host_card', 'uuid': 'u3'}, {'name':" \
        " 'set', 'uuid': '" SET "', 'devices': ['0000:77:00.0', '0000:41:00.0']}]}"

/* Asserts the names of the guests in the document, with "+" for the next start. */
static void assert_guests(const json_t *document, const char *expected)
{
        const json_t *guest;
        char guests[64] = "";
        size_t i;

        json_array_foreach(json_object_get(document, "guests"), i, guest)
                snprintf(guests + strlen(guests), sizeof(guests) - strlen(guests), "%s%s%s",
                         i > 0 ? " " : "", ctl_json_text(guest, "name"),
                         json_is_true(json_object_get(guest, "next_start")) ? "+" : "");
        assert_string_equal(guests, expected);
}

static void test_words_of_a_host(void **state)
{
        static const struct {
                const char *what;
                bool found;
                const char *guests; /* "web-1"; "web-2+": for its next start */
        } cases[] = {
                { "cpu:4", true, "" },      { "cpu:5", false, "" },
                { "cell:1", true, "" },     { "cell:0", false, "" },
                { "PCI_1", true, "web-1" }, { "0000:41:00.0", true, "web-1" },
                { "web-1", true, "" },      { "web-9", false, "" },
                { MDEV, true, "web-2+" },   { VM, true, "" },
                { "card", true, "web-4+" }, { "0000:C1:00.0", true, "web-4+" },
                { "vf", true, "web-4+" },   { "pci_5", true, "" },
                { "set", false, "web-1" },  { SET, true, "web-1" },
        };
        _cleanup_json_ json_t *host = parse_quoted(HOST), *tree = parse_quoted(TREE);

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_json_ json_t *claims = parse_quoted(
                        "{'claims': [{'consumer': 'g3',"
                        " 'devices': [{'device': 'd', 'address': '', 'mdev': '" MDEV "'}]},"
                        " {'consumer': 'migration', 'of': 'g5', 'devices': [{'device': 'pci_5'}]}]}");

                assert_int_equal(ctl_host_has(host, cases[i].what), cases[i].found);
                assert_int_equal(ctl_claims_find(claims, host, tree, cases[i].what), 0);
                assert_guests(claims, cases[i].guests);
        }
}

/* "drain": the claims and guests of a device, by each of its names, or of a provider. */
static void test_devices_and_their_guests(void **state)
{
        static const struct {
                const char *what;
                int r;
                const char *guests;
        } cases[] = {
                { "0000:41:00.0", 0, "web-1" },
                { "host_PCI_1", 0, "web-1" },
                { "cccccccc-2222-4333-8444-555555555555", 0, "web-1" },
                { "0000:c1:00.0", 0, "web-4+ web-2+ web-3" },
                { "host_card", 0, "web-4+ web-2+ web-3" },
                { "vf", 0, "web-4+ web-2+ web-3" },
                { "set", 0, "web-1" },
                { SET, 0, "web-1" },
                { "xhost_card", -ENODEV, NULL },
                { "web-1", -ENODEV, NULL },
                { "", -ENODEV, NULL },
        };
        _cleanup_json_ json_t *host = parse_quoted(HOST), *tree = parse_quoted(TREE);

        json_object_set_new(host, "mdevs",
                            parse_quoted("[{'uuid': '" MDEV "', 'parent': 'vf', 'type': 't'}]"));
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_json_ json_t *claims = parse_quoted("{'claims': []}");
                Error error = ERROR_NULL;

                assert_int_equal(ctl_claims_keep(claims, host, tree, cases[i].what, &error),
                                 cases[i].r);
                if (cases[i].guests)
                        assert_guests(claims, cases[i].guests);
        }
}

/* "drain": guests without any claim, for the host (NULL), a device, or a provider. */
static void test_guests_without_a_claim(void **state)
{
        static const struct {
                const char *what, *guests;
        } cases[] = {
                { NULL, "paused unread" },           { "host", "paused unread" },
                { "host_NUMA0", "paused unread" },   { "gpu", "unread off-unread" },
                { "host_gpu", "unread off-unread" }, { "host_shapes_s", "unread off-unread" },
        };
        _cleanup_json_ json_t *
                host = parse_quoted(
                       "{'devices': [{'name': 'gpu', 'address': '0000:41:00.0'}], 'domains': ["
                       "{'uuid': 'g1', 'name': 'claimed', 'state': 'running'},"
                       "{'uuid': 'g2', 'name': 'migrating', 'state': 'running', 'unread': true},"
                       "{'uuid': 'g3', 'name': 'paused', 'state': 'paused', 'unread': false},"
                       "{'uuid': 'g4', 'name': 'off', 'state': 'shutoff', 'unread': false},"
                       "{'uuid': 'g5', 'name': 'unread', 'state': 'running', 'unread': true},"
                       "{'uuid': 'g6', 'name': 'off-unread', 'state': 'shutoff', 'unread': true}]}"),
               *tree = parse_quoted("{'providers': [{'name': 'host'}, {'name': 'host_NUMA0'},"
                                    "{'name': 'host_gpu'}, {'name': 'host_shapes_s', 'devices': "
                                    "['0000:77:00.0']}]}");

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_json_ json_t *claims = parse_quoted(
                        "{'claims': [{'consumer': 'g1'}, {'consumer': 'migration', 'of': 'g2'}]}");

                if (cases[i].what)
                        assert_int_equal(ctl_claims_keep(claims, host, tree, cases[i].what, NULL),
                                         0);
                else
                        assert_int_equal(ctl_claims_add_guests(claims, host), 0);
                assert_guests(claims, cases[i].guests);
                assert_null(json_object_get(json_array_get(json_object_get(claims, "guests"), 0),
                                            "next_start"));
        }
}

TEST_MAIN(test_times, test_states, test_items, test_an_empty_name_selects_nothing,
          test_strange_documents, test_words_of_claims, test_words_of_events, test_words_of_a_host,
          test_devices_and_their_guests, test_guests_without_a_claim)
