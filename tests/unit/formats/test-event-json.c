/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "formats/event-json.h"
#include "tests/unit/test.h"

#define VM "11111111-1111-4111-8111-111111111111"

static void check(const char *consumer, const char *guest, const char *devices,
                  const char *expected)
{
        HostDomain domain = { .name = "web-1" };
        const HostFacts facts = { .domains = &domain, .n_domains = 1 };
        char kind[] = "claimed", author[] = "root \x1b[m", none[] = "", allocations[] = "[{}]";
        Event event = { .id = 3,
                        .usec = 5,
                        .uid = -1,
                        .claim = 7,
                        .kind = kind,
                        .author = author,
                        .consumer = (char *)consumer,
                        .guest = (char *)guest,
                        .allocations = allocations,
                        .devices = (char *)devices,
                        .reason = none };
        _cleanup_free_ char *text = NULL;
        json_t *made;

        assert_int_equal(uuid_from_text(VM, &domain.uuid), 0);
        made = event_to_json(&event, &facts);
        assert_non_null(made);
        text = json_dumps(made, JSON_COMPACT);
        json_decref(made);
        assert_string_equal(text, expected);
}

#define HEAD                                                                        \
        "{\"id\":3,\"usec\":5,\"event\":\"claimed\",\"author\":\"root \\u001B[m\"," \
        "\"uid\":-1,\"claim\":7,"

static void test_names(void **state)
{
        check(VM, "", "[]",
              HEAD "\"consumer\":\"" VM "\",\"guest\":\"web-1\",\"of\":\"\","
                   "\"allocations\":[{}],\"devices\":[],\"reason\":\"\"}");
        /* a migration's is its guest's */
        check("x", VM, "[]",
              HEAD "\"consumer\":\"x\",\"guest\":\"web-1\",\"of\":\"" VM "\","
                   "\"allocations\":[{}],\"devices\":[],\"reason\":\"\"}");
}

/* A database that somebody changed. */
static void test_damaged(void **state)
{
        static const char *const devices[] = { "", "{}", "[", "[\"\xff\"]", "7", "null" };

        for (size_t i = 0; i < ARRAY_SIZE(devices); i++)
                check("", "", devices[i],
                      HEAD "\"consumer\":\"\",\"guest\":\"\",\"of\":\"\","
                           "\"allocations\":[{}],\"devices\":[],\"reason\":\"\"}");
}

TEST_MAIN(test_names, test_damaged)
