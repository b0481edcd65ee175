/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/cycle/partitions.h"

#include "base/json.h"
#include "tests/fixtures/scratch-folder.h"
#include "tests/unit/test.h"

#define A "0000:41:00.0"
#define B "0000:42:00.0"
#define C "0000:43:00.0"

static DeviceSet make_set(const char *member, const char *text)
{
        _cleanup_(strings_freep) char **members = NULL, **partitions = NULL;
        char *lists[2][5] = { { NULL }, { NULL } };
        DeviceSet set;

        for (size_t i = 0; i < 2; i++) {
                char *copy = strdup(i == 0 ? member : text), *rest = copy, *item;

                for (size_t n = 0; n < 4 && (item = strsep(&rest, ",")); n++)
                        lists[i][n] = item;
                assert_int_equal(strings_copy(lists[i], i == 0 ? &members : &partitions), 0);
                free(copy);
        }
        assert_int_equal(device_set_parse(&set, "hgx", "CUSTOM_GPU", members, partitions, NULL), 0);
        return set;
}

static DeviceSet make_cards(void)
{
        return make_set(A "," B "," C, "all=1-3,left=1-2,one=1,last=3");
}

static PartitionEntry *add(PartitionRecord *record, const DeviceSet *set, size_t partition,
                           int64_t claim, PartitionState state, const char *error)
{
        PartitionEntry *entry =
                partition_record_add(record, "hgx", &set->partitions[partition], claim);

        assert_non_null(entry);
        entry->state = state;
        strcpy(entry->error, error);
        return entry;
}

static void write_record(const char *folder, const PartitionRecord *record)
{
        _cleanup_json_ json_t *json = partition_record_to_json(record);
        _cleanup_free_ char *text = json_dumps(json, 0);

        scratch_write(folder, "partitions.json", text);
}

static void test_starts_of_guests(void **state)
{
        static const struct {
                const char *name;
                size_t partition; /* partition of the entry; that of the claim 5 is 1 */
                int64_t claim;
                PartitionState state;
                const char *error;
                int expected;
        } cases[] = {
                { "active", 1, 5, PARTITION_ACTIVE, "", 0 },
                { "active for another claim", 1, 4, PARTITION_ACTIVE, "", -EBUSY },
                { "another partition", 3, 5, PARTITION_ACTIVE, "", -EBUSY },
                { "activating", 1, 5, PARTITION_ACTIVATING, "", -EBUSY },
                { "late", 1, 5, PARTITION_ACTIVATING, "on@left did not end", -EIO },
                { "failed", 1, 5, PARTITION_FAILED, "on@left failed", -EIO },
                { "a common member is deactivated", 2, 4, PARTITION_DEACTIVATING, "", -EBUSY },
                { "a common member cannot be deactivated", 0, 4, PARTITION_DEACTIVATING,
                  "off@all failed", -EIO },
                { "another member cannot be deactivated", 3, 4, PARTITION_DEACTIVATING,
                  "off@last failed", -EBUSY },
        };
        _cleanup_(scratch_folder_removep) char *folder = scratch_folder_make();
        _cleanup_free_ char *path = scratch_path(folder, "prepared.json");
        DeviceSet set = make_cards();
        HostShapes shapes = { .set = set, .activate = (char *)"on@.service" };
        const HostConfig config = { .shapes = &shapes, .n_shapes = 1 };
        const ClaimService service = { .settings.driver = &config, .wanted.record_path = path };
        ClaimDevice devices[4] = { 0 };
        Claim claim = { .id = 5, .devices = devices };

        for (char **d = set.partitions[1].devices; *d; d++)
                devices[claim.n_devices++].address = *d;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(partition_record_done) PartitionRecord record = { 0 };
                Error error = ERROR_NULL;
                int r;

                add(&record, &set, cases[i].partition, cases[i].claim, cases[i].state,
                    cases[i].error);
                write_record(folder, &record);
                r = partitions_check_claim(&service, &claim, &error);
                if (r != cases[i].expected)
                        fail_msg("%s: %d", cases[i].name, r);
                if (r == -EIO && !strstr(error.text, cases[i].error))
                        fail_msg("%s: %s", cases[i].name, error.text);
        }
        device_set_done(&set);
}

/* Checks the devices that are left, with the claim 5 of a partition of the set. */
static void check_left(const DeviceSet *set, const PartitionRecord *record, size_t partition,
                       const char *expected)
{
        _cleanup_(string_set_done) StringSet left = STRING_SET_INIT;
        ClaimDevice devices[4] = { 0 };
        Claim claim = { .id = 5, .devices = devices };
        Claim *list[] = { &claim };
        const ClaimList claims = { .claims = list, .n_claims = 1 };
        HostShapes shapes[] = { { .set = *set, .activate = (char *)"on@.service" } };
        const HostConfig config = { .shapes = shapes, .n_shapes = ARRAY_SIZE(shapes) };
        char text[128] = "";

        for (char **d = set->partitions[partition].devices; *d; d++)
                devices[claim.n_devices++].address = *d;
        assert_int_equal(partition_list_left(&config, record, &claims, &left), 0);
        for (size_t i = 0; i < left.n_items; i++) {
                strcat(text, left.items[i]);
                strcat(text, " ");
        }
        assert_string_equal(text, expected);
}

static void test_devices_without_a_claim(void **state)
{
        _cleanup_(partition_record_done) PartitionRecord record = { 0 };
        DeviceSet set = make_cards();

        check_left(&set, &record, 1, "");
        add(&record, &set, 1, 5, PARTITION_ACTIVE, "");
        check_left(&set, &record, 1, "");
        check_left(&set, &record, 2, A " " B " "); /* the claim has another partition */
        add(&record, &set, 3, 4, PARTITION_DEACTIVATING, "off@last failed");
        check_left(&set, &record, 1, C " ");
        strcpy(record.items[0].partition, "gone");
        check_left(&set, &record, 1, A " " B " " C " ");
        device_set_done(&set);
}

/* An active partition of one set is not without a claim because another set does not have it. A set
 * that has lost its units has no claim for them. */
static void test_devices_of_two_sets(void **state)
{
        _cleanup_(partition_record_done) PartitionRecord record = { 0 };
        DeviceSet first = make_cards(), other = make_cards();
        ClaimDevice device = { .address = (char *)A };
        Claim claim = { .id = 5, .devices = &device, .n_devices = 1 };
        Claim *list[] = { &claim };
        const ClaimList claims = { .claims = list, .n_claims = 1 };
        HostShapes shapes[] = { { .set = first, .activate = (char *)"on@.service" },
                                { .set = other, .activate = (char *)"on@.service" } };
        const HostConfig config = { .shapes = shapes, .n_shapes = ARRAY_SIZE(shapes) };
        _cleanup_(string_set_done) StringSet left = STRING_SET_INIT;

        free(shapes[1].set.name);
        shapes[1].set.name = strdup("other");
        add(&record, &first, 2, 5, PARTITION_ACTIVE, "");
        assert_int_equal(partition_list_left(&config, &record, &claims, &left), 0);
        assert_int_equal(left.n_items, 0);
        shapes[0].activate = NULL;
        assert_int_equal(partition_list_left(&config, &record, &claims, &left), 0);
        assert_int_equal(left.n_items, 1);
        device_set_done(&shapes[0].set);
        device_set_done(&shapes[1].set);
}

/* A slot can be in several partitions, each with a device of its own. */
static void test_slots_without_a_claim(void **state)
{
        _cleanup_(partition_record_done) PartitionRecord record = { 0 };
        DeviceSet set = make_set("2", "both=1-2@" A ",first=1@" B ",second=2@" C);

        add(&record, &set, 1, 4, PARTITION_ACTIVE, "");
        check_left(&set, &record, 2, A " " B " ");
        device_set_done(&set);
}

TEST_MAIN(test_starts_of_guests, test_devices_without_a_claim, test_devices_of_two_sets,
          test_slots_without_a_claim)
