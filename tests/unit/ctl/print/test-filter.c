/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/print/filter.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "tests/fixtures/ctl-capture.h"

#define VM      "11111111-2222-4333-8444-555555555555"
#define NOW_SEC 1700000000 /* 2023-11-14 22:13:20 UTC */

static void test_times(void **state)
{
        static const struct {
                const char *text;
                uint64_t sec; /* 0: refused */
        } cases[] = {
                { "-90s", NOW_SEC - 90 },
                { "-5min", NOW_SEC - 300 },
                { "2h ago", NOW_SEC - 7200 },
                { "1d ago", NOW_SEC - 86400 },
                { "-2w", NOW_SEC - 14 * 86400 },
                { "-99999999w", 0 }, /* before 1970: everything passes */
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
                uint64_t usec = 0;
                int r = ctl_filter_parse_time(cases[i].text, NOW_SEC * USEC_PER_SEC, &usec, &error);

                if (r != (cases[i].sec == UINT64_MAX ? -EINVAL : 0) ||
                    (r == 0 && usec / USEC_PER_SEC != cases[i].sec))
                        fail_msg("%s: %d, %" PRIu64, cases[i].text, r, usec);
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
                { "cordoned", true, 0 },
                { "cordoned", false, -EINVAL },
                { "released", false, 0 },
                { "released", true, 0 },
                { "", false, -EINVAL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const CtlFilter filter = { .state = cases[i].state };
                Error error = ERROR_NULL;

                assert_int_equal(ctl_filter_check_state(&filter, cases[i].events, &error),
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
                                ctl_filter_events(&cases[i].filter, document);
                        } else {
                                ctl_filter_claims(&cases[i].filter, document);
                        }
                        if (json_array_size(json_object_get(
                                    document, events ? "events" : "claims")) != cases[i].n)
                                fail_msg("case %zu, events %d", i, events);
                }
}

static void test_strange_documents(void **state)
{
        static const char *const texts[] = { "{}", "{'claims': 7, 'events': {}}",
                                             "{'claims': [7, null], 'events': [[], 'x']}" };
        const CtlFilter filter = { .guest = "web", .device = "x", .state = "claimed" };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                _cleanup_json_ json_t *document = parse_quoted(texts[i]);

                ctl_filter_claims(&filter, document);
                ctl_filter_events(&filter, document);
                assert_int_equal(json_array_size(json_object_get(document, "claims")), 0);
        }
}

TEST_MAIN(test_times, test_states, test_items, test_strange_documents)
