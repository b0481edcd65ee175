/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The decisions about the partitions of a set, as a table of records, claims and steps. The set has
 * the members A, B, C and D, and the partitions all (ABCD), left (AB), right (CD) and one (A). */

#include "prepare/partition-plan.h"

#include <inttypes.h>

#include "base/text.h"
#include "tests/unit/test.h"

#define A "0000:41:00.0"
#define B "0000:42:00.0"
#define C "0000:43:00.0"
#define D "0000:44:00.0"

typedef struct Case {
        const char *name;
        const char *entries;  /* "PARTITION CLAIM STATE"; then "!": a unit failed; "*": also, and it
                                 is retried */
        const char *claims;   /* "ID PARTITION", with "?" after the id: pending */
        const char *open;     /* devices that a process has open */
        const char *unknown;  /* devices that are not known */
        const char *expected; /* step, and "waits" for an entry that waits */
        bool incomplete;
} Case;

static DeviceSet make_set(void)
{
        static char *const members[] = { (char *)A, (char *)B, (char *)C, (char *)D, NULL };
        static char *const partitions[] = { (char *)"all=1-4", (char *)"left=1-2",
                                            (char *)"right=3-4", (char *)"one=1", NULL };
        DeviceSet set;

        assert_int_equal(device_set_parse(&set, "hgx", "CUSTOM_GPU", members, partitions, NULL), 0);
        return set;
}

static const DevicePartition *find(const DeviceSet *set, const char *id)
{
        for (size_t i = 0; i < set->n_partitions; i++)
                if (strcmp(set->partitions[i].id, id) == 0)
                        return &set->partitions[i];
        fail_msg("no partition %s", id);
        return NULL;
}

static void add_entries(const DeviceSet *set, const char *text, PartitionRecord *record)
{
        _cleanup_free_ char *copy = strdup(text);

        for (char *rest = copy, *item; (item = strsep(&rest, ","));) {
                char id[33], state[33];
                long long claim;
                PartitionEntry *entry;

                if (sscanf(item, "%32s %lld %32s", id, &claim, state) != 3)
                        continue;
                entry = partition_record_add(record, "hgx", find(set, id), claim);
                assert_non_null(entry);
                strcpy(entry->error, strpbrk(state, "!*") ? "failed" : "");
                strcpy(entry->retry, strchr(state, '*') ? "1" : "2");
                state[strcspn(state, "!*")] = '\0';
                while (strcmp(partition_state_to_text(entry->state), state) != 0)
                        entry->state = (entry->state + 1) % _PARTITION_STATE_MAX;
        }
}

static void add_claims(const DeviceSet *set, const char *text, PrepareClaims *claims)
{
        _cleanup_free_ char *copy = strdup(text);

        for (char *rest = copy, *item; (item = strsep(&rest, ","));) {
                char id[33], number[33];

                if (sscanf(item, "%32s %32s", number, id) != 2)
                        continue;
                for (char **device = find(set, id)->devices; *device; device++) {
                        PrepareClaim *claim = &claims->items[claims->n_items++];

                        *claim = (PrepareClaim){ .id = strtoll(number, NULL, 10),
                                                 .is_pending = strchr(number, '?') != NULL };
                        snprintf(claim->address, sizeof(claim->address), "%s", *device);
                }
        }
}

/* retry: stamp of prepare-retry now. */
static void check(const Case *c, const char *retry)
{
        static const char *const kinds[] = { "", "adopt", "deactivate", "activate" };
        static const char *const devices[] = { A, B, C, D };
        HostShapes shapes = { .set = make_set() };
        _cleanup_(partition_record_done) PartitionRecord record = { 0 };
        PrepareClaim items[32];
        PrepareClaims claims = { .items = items, .complete = !c->incomplete };
        PrepareFunction functions[4] = { 0 };
        PartitionFacts facts = { .claims = &claims,
                                 .record = &record,
                                 .functions = functions,
                                 .n_functions = 4,
                                 .retry = retry };
        PartitionStep step;
        char text[128];
        size_t n;

        for (size_t i = 0; i < 4; i++) {
                strcpy(functions[i].address, devices[i]);
                functions[i].open = c->open && strstr(c->open, devices[i]) ? PREPARE_OPEN_YES
                                    : c->unknown && strstr(c->unknown, devices[i])
                                            ? PREPARE_OPEN_UNKNOWN
                                            : PREPARE_OPEN_NO;
        }
        add_entries(&shapes.set, c->entries, &record);
        add_claims(&shapes.set, c->claims, &claims);
        step = partition_plan_next(&shapes, &facts);
        n = (size_t)snprintf(text, sizeof(text), "%s", kinds[step.kind]);
        if (step.kind != PARTITION_STEP_NONE)
                n += (size_t)snprintf(text + n, sizeof(text) - n, " %s %" PRIi64,
                                      step.partition->id, step.claim);
        for (size_t i = 0; i < record.n_items; i++)
                if (partition_plan_waits(&shapes, &facts, &record.items[i])[0])
                        n += (size_t)snprintf(text + n, sizeof(text) - n, "%swaits",
                                              n > 0 ? ", " : "");
        if (strcmp(text, c->expected) != 0)
                fail_msg("%s: \"%s\" instead of \"%s\"", c->name, text, c->expected);
        device_set_done(&shapes.set);
}

static void test_steps(void **state)
{
        static const Case cases[] = {
                { "nothing", "", "", NULL, NULL, "", false },
                { "a new claim", "", "5 left", NULL, NULL, "activate left 5", false },
                { "a pending claim", "", "5? left", NULL, NULL, "", false },
                { "an active partition", "left 5 active", "5 left", NULL, NULL, "", false },
                { "an active partition in use", "left 5 active", "5 left", A, NULL, "", false },
                { "a pending claim keeps its partition", "left 5 active", "5? left", NULL, NULL, "",
                  false },
                { "the claim is gone", "left 5 active", "", NULL, NULL, "deactivate left 5",
                  false },
                { "the claim is gone, in use", "left 5 active", "", B, NULL, "waits", false },
                { "the claim is gone, use not known", "left 5 active", "", NULL, B, "waits",
                  false },
                { "claims not known", "left 5 active", "", NULL, NULL, "", true },
                { "the claim has another partition", "left 5 active", "5 right", NULL, NULL,
                  "deactivate left 5", false },
                { "the next claim of the same partition", "left 5 active", "6 left", NULL, NULL,
                  "deactivate left 5", false },
                { "another claim of a partition in use", "left 5 active", "6 left", A, NULL,
                  "adopt left 6, waits", false },
                { "another claim of a partition, use not known", "left 5 active", "6 left", NULL, A,
                  "waits", false },
                { "a claim of a partition in use without an entry", "", "6 left", A, NULL,
                  "adopt left 6", false },
                { "a claim whose use is not known", "", "6 left", NULL, A, "", false },
                { "a common member is active", "one 5 active", "5 one,6 left", NULL, NULL, "",
                  false },
                { "a common member is not deactivated yet", "one 5 active", "6 all", NULL, NULL,
                  "deactivate one 5", false },
                { "a common member cannot be deactivated", "one 5 deactivating!", "6 all", NULL,
                  NULL, "", false },
                { "deactivations come first", "left 5 active", "6 right", NULL, NULL,
                  "deactivate left 5", false },
                { "two claims", "left 5 active", "5 left,6 right", NULL, NULL, "activate right 6",
                  false },
                { "an interrupted activation", "left 5 activating", "5 left", NULL, NULL,
                  "activate left 5", false },
                { "an interrupted activation, the claim is gone", "left 5 activating", "", NULL,
                  NULL, "activate left 5", false },
                { "an interrupted activation in use", "left 5 activating", "5 left", A, NULL,
                  "waits", false },
                { "an interrupted deactivation", "left 5 deactivating", "", NULL, NULL,
                  "deactivate left 5", false },
                { "an interrupted deactivation, claims not known", "left 5 deactivating", "", NULL,
                  NULL, "deactivate left 5", true },
                { "an interrupted deactivation, a new claim", "left 5 deactivating", "6 left", NULL,
                  NULL, "deactivate left 5", false },
                { "a failed activation", "left 5 failed!", "5 left", NULL, NULL, "", false },
                { "a retried activation", "left 5 failed*", "5 left", NULL, NULL, "activate left 5",
                  false },
                { "a failed deactivation", "left 5 deactivating!", "", NULL, NULL, "", false },
                { "a retried deactivation", "left 5 deactivating*", "", NULL, NULL,
                  "deactivate left 5", false },
                { "a late activation", "left 5 activating!", "", NULL, NULL, "", false },
                { "a failed activation, the claim is gone", "left 5 failed!", "", NULL, NULL,
                  "deactivate left 5", false },
                { "a failed activation, claims not known", "left 5 failed!", "", NULL, NULL, "",
                  true },
                { "the failure of one partition", "left 5 failed!", "5 left,6 right", NULL, NULL,
                  "activate right 6", false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                check(&cases[i], "2");
}

/* The file with the stamp goes when the agent stops, and the stamp of an earlier lift stays in the
 * entry. */
static void test_a_missing_stamp_is_not_new(void **state)
{
        static const Case cases[] = {
                { "a failed activation", "left 5 failed*", "5 left", NULL, NULL, "", false },
                { "a failed deactivation", "left 5 deactivating*", "", NULL, NULL, "", false },
                { "a failed activation, the claim is gone", "left 5 failed*", "", NULL, NULL,
                  "deactivate left 5", false },
                { "an interrupted activation", "left 5 activating", "5 left", NULL, NULL,
                  "activate left 5", false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                check(&cases[i], "");
}

/* The devices of a partition that the configuration lost stay blocked. */
static void test_changed_configuration(void **state)
{
        HostShapes shapes = { .set = make_set() };
        _cleanup_(partition_record_done) PartitionRecord record = { 0 };
        PrepareFunction functions[4] = { { .address = A }, { .address = B } };
        PrepareClaim items[8];
        PrepareClaims claims = { .items = items, .complete = true };
        PartitionFacts facts = { .claims = &claims,
                                 .record = &record,
                                 .functions = functions,
                                 .n_functions = 4,
                                 .retry = "2" };

        assert_non_null(partition_record_add(&record, "hgx", find(&shapes.set, "left"), 4));
        strcpy(record.items[0].partition, "gone");
        add_claims(&shapes.set, "5 one", &claims);
        assert_int_equal(partition_plan_next(&shapes, &facts).kind, PARTITION_STEP_NONE);
        assert_string_equal(partition_plan_waits(&shapes, &facts, &record.items[0]),
                            "the configuration has no such partition");
        device_set_done(&shapes.set);
}

TEST_MAIN(test_steps, test_a_missing_stamp_is_not_new, test_changed_configuration)
