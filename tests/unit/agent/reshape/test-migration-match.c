/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/reshape/migration-match.h"

#include "base/json.h"
#include "tests/unit/test.h"

/* Uuids are written as one digit. */
static Uuid uuid_of(char digit)
{
        char text[37] = "00000000-0000-0000-0000-000000000000";
        Uuid uuid;

        memset(text, digit, 8);
        assert_int_equal(uuid_from_text(text, &uuid), 0);
        return uuid;
}

/* "1=2x64 9=2x64": consumers with so many CPUs and so much memory. */
static Allocations *make_consumers(const char *text)
{
        Allocations *ret;

        assert_int_equal(allocations_new(&ret), 0);
        for (; *text; text += strcspn(text, " "), text += strspn(text, " ")) {
                Uuid uuid = uuid_of(*text), root = uuid_of('f');
                unsigned long cpus, mib;
                Consumer *consumer;

                assert_int_equal(sscanf(text + 1, "=%lux%lu", &cpus, &mib), 2);
                assert_int_equal(allocations_ensure(ret, &uuid, &consumer), 0);
                assert_int_equal(consumer_set(consumer, &root, "VCPU", cpus), 0);
                assert_int_equal(consumer_set(consumer, &root, "MEMORY_MB", mib), 0);
        }
        return ret;
}

/* "1=2x64 2=1x32+a": domains, one of them with the mdev a. */
static Snapshot *make_host(const char *text)
{
        _cleanup_json_ json_t *host = NULL;
        json_t *domains = json_array();
        Snapshot *ret;

        for (; *text; text += strcspn(text, " "), text += strspn(text, " ")) {
                Uuid uuid = uuid_of(*text), mdev = { "" };
                unsigned long cpus, mib;
                char letter = '\0';
                json_t *mdevs = json_array();

                assert_true(sscanf(text + 1, "=%lux%lu+%c", &cpus, &mib, &letter) >= 2);
                if (letter) {
                        mdev = uuid_of(letter);
                        json_array_append_new(mdevs, json_string(mdev.text));
                }
                json_array_append_new(domains, json_pack("{ss ss ss sI sI so}", "uuid", uuid.text,
                                                         "name", uuid.text, "state", "running",
                                                         "vcpus", (json_int_t)cpus, "memory_kib",
                                                         (json_int_t)mib * 1024, "mdevs", mdevs));
        }
        host = json_pack("{ss ss ss si so}", "format", SNAPSHOT_FORMAT, "nodename", "host",
                         "online_cpus", "0-3", "memory_kib", 1048576, "domains", domains);
        if (snapshot_from_json(host, &ret, NULL) < 0)
                fail_msg("no host");
        return ret;
}

/* "9+a": a claim of consumer 9 with the mdev a; "": none. */
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
        ret->claims = calloc(1, sizeof(Claim *));
        assert_non_null(ret->claims);
        ret->claims[ret->n_claims++] = claim;
}

static void test_table(void **state)
{
        static const struct {
                const char *about, *consumers, *domains, *claims, *aliases;
        } cases[] = {
                { "a guest is itself", "1=2x64", "1=2x64", "", "" },
                { "the only one of that size", "9=2x64", "1=2x64 2=1x32", "", "9=1 " },
                { "its instance has its own consumer here", "9=2x64 1=2x64", "1=2x64", "", "" },
                { "nobody is of that size", "9=2x65", "1=2x64", "", "" },
                { "two domains are", "9=2x64", "1=2x64 2=2x64", "", "" },
                { "two strangers are", "8=2x64 9=2x64", "1=2x64", "", "" },
                { "a guest of that size is no stranger", "2=2x64 9=2x64", "1=2x64 2=2x64", "",
                  "9=1 " },
                { "its claim names a device", "9=2x64", "1=2x64 2=2x64+a", "9+a", "9=2 " },
                { "the claim counts more than the size", "9=2x64", "1=2x64 2=1x32+a", "9+a",
                  "9=2 " },
                { "nobody has the device", "9=2x64", "1=2x64 2=2x64", "9+a", "" },
                { "a claim of somebody else", "9=2x64", "1=2x64 2=2x64+a", "8+a", "" },
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

static void test_without_claims(void **state)
{
        _cleanup_(allocations_freep) Allocations *consumers = make_consumers("9=2x64");
        _cleanup_(snapshot_unrefp) Snapshot *snapshot = make_host("1=2x64");
        _cleanup_free_ ReshapeAlias *aliases = NULL;
        size_t n;

        assert_int_equal(migration_match(consumers, snapshot, NULL, &aliases, &n), 0);
        assert_int_equal(n, 1);
}

TEST_MAIN(test_table, test_without_claims)
