/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/reshape/migration-match.h"

#include "tests/fixtures/host.h"

/* Returns a uuid whose first eight digits are this one. */
static Uuid uuid_of(char digit)
{
        char text[37] = "00000000-0000-0000-0000-000000000000";
        Uuid uuid;

        memset(text, digit, 8);
        assert_int_equal(uuid_from_text(text, &uuid), 0);
        return uuid;
}

/* Parses "1=2x64 9=2x64": consumers, each with its number of CPUs and MiB of memory. */
static Allocations *make_consumers(const char *text)
{
        Allocations *ret;

        assert_int_equal(allocations_new(&ret), 0);
        for (; *text; text += strcspn(text, " "), text += strspn(text, " ")) {
                unsigned long cpus, mib;

                assert_int_equal(sscanf(text + 1, "=%lux%lu", &cpus, &mib), 2);
                fixture_hold(&ret, uuid_of(*text), uuid_of('f'), "VCPU", cpus);
                fixture_hold(&ret, uuid_of(*text), uuid_of('f'), "MEMORY_MB", mib);
        }
        return ret;
}

/* Parses "1=2x64 2=1x32+a": domains, one of them with the mdev a. */
static Snapshot *make_host(const char *text)
{
        char members[1024] = "'domains': [";

        for (; *text; text += strcspn(text, " "), text += strspn(text, " ")) {
                unsigned long cpus, mib;
                char letter = '\0';
                size_t n = strlen(members);

                assert_true(sscanf(text + 1, "=%lux%lu+%c", &cpus, &mib, &letter) >= 2);
                snprintf(members + n, sizeof(members) - n,
                         "%s{'uuid': '%s', 'name': 'g', 'state': 'running', 'vcpus': %lu,"
                         " 'memory_kib': %lu, 'mdevs': [%s%s%s]}",
                         strchr(members, '}') ? ", " : "", uuid_of(*text).text, cpus, mib * 1024,
                         letter ? "'" : "", letter ? uuid_of(letter).text : "", letter ? "'" : "");
        }
        strcat(members, "]");
        return host_new(members);
}

/* Parses "9+a": a claim of consumer 9 with the mdev a. "": no claim. */
static void make_claims(const char *text, ClaimList *ret)
{
        char empty[] = "";
        ClaimDevice device = {
                .suffix = empty, .name = empty, .address = empty, .mdev_type = empty
        };
        Claim *claim;

        *ret = (ClaimList){ 0 };
        if (!*text)
                return;
        assert_int_equal(claim_new(&claim), 0);
        claim->consumer = uuid_of(text[0]);
        device.mdev = uuid_of(text[2]);
        assert_int_equal(claim_add_device(claim, &device), 0);
        assert_int_equal(claim_list_add(ret, claim), 0);
}

static void test_table(void **state)
{
        static const struct {
                const char *about, *consumers, *domains, *claims, *aliases;
        } cases[] = {
                { "a guest is itself", "1=2x64", "1=2x64", "", "" },
                { "the only one of that size", "9=2x64", "1=2x64 2=1x32", "", "9=1 " },
                { "its instance has its own consumer here", "9=2x64 1=2x64", "1=2x64", "", "" },
                { "no guest has that size", "9=2x65", "1=2x64", "", "" },
                { "two domains are", "9=2x64", "1=2x64 2=2x64", "", "" },
                { "two strangers are", "8=2x64 9=2x64", "1=2x64", "", "" },
                { "a guest of that size is no stranger", "2=2x64 9=2x64", "1=2x64 2=2x64", "",
                  "9=1 " },
                { "its claim names a device", "9=2x64", "1=2x64 2=2x64+a", "9+a", "9=2 " },
                { "the claim counts more than the size", "9=2x64", "1=2x64 2=1x32+a", "9+a",
                  "9=2 " },
                { "no guest has the device", "9=2x64", "1=2x64 2=2x64", "9+a", "" },
                { "a claim of another consumer", "9=2x64", "1=2x64 2=2x64+a", "8+a", "" },
                { "several at once, sorted", "9=1x32 8=2x64", "1=2x64 2=1x32", "", "8=1 9=2 " },
                { "nothing at all", "", "", "", "" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(allocations_freep) Allocations *consumers =
                        make_consumers(cases[i].consumers);
                _cleanup_(snapshot_unrefp) Snapshot *snapshot = make_host(cases[i].domains);
                _cleanup_(claim_list_done) ClaimList claims;
                _cleanup_free_ ReshapeAlias *aliases = NULL;
                char text[64] = "";
                size_t n;

                make_claims(cases[i].claims, &claims);
                assert_int_equal(migration_match(consumers, snapshot, &claims, &aliases, &n), 0);
                for (size_t j = 0; j < n; j++)
                        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%c=%c ",
                                 aliases[j].consumer.text[0], aliases[j].guest.text[0]);
                if (strcmp(text, cases[i].aliases) != 0)
                        fail_msg("%s: %s", cases[i].about, text);
        }
}

TEST_MAIN(test_table)
