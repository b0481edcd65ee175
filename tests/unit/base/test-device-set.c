/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Partitions of sets of devices: texts, amounts that fit, and the choice. A member is named by its
 * last hexadecimal digit: "13" are the members 1 and 3. */

#include "base/device-set.h"

#include "tests/unit/test.h"

#define LIST(...) ((char *const *)(const char *const[]){ __VA_ARGS__, NULL })

#define GPUS                                                                                 \
        LIST("0000:01:00.0", "0000:02:00.0", "0000:03:00.0", "0000:04:00.0", "0000:05:00.0", \
             "0000:06:00.0", "0000:07:00.0", "0000:08:00.0")

/* A board of eight GPUs with NVSwitch: one partition of 8, two of 4, four pairs, eight singles. */
#define HGX                                                                                      \
        LIST("0=1-8", "1=1-4", "2=5-8", "3=1+3", "4=2+4", "5=5+7", "6=6+8", "7=1", "8=2", "9=3", \
             "10=4", "11=5", "12=6", "13=7", "14=8")

/* Positions of instances on a card with eight slices of memory: 7g, 4g, 3g, 2g and 1g. */
#define MIG                                                                             \
        LIST("7g=1-8@0000:41:00.4", "4g=1-4@0000:41:00.5", "3g-0=1-4@0000:41:00.6",     \
             "3g-4=5-8@0000:41:00.7", "2g-0=1-2@0000:41:01.0", "2g-2=3-4@0000:41:01.1", \
             "2g-4=5-6@0000:41:01.2", "1g-0=1@0000:41:01.3", "1g-1=2@0000:41:01.4",     \
             "1g-2=3@0000:41:01.5", "1g-3=4@0000:41:01.6", "1g-4=5@0000:41:01.7",       \
             "1g-5=6@0000:41:02.0", "1g-6=7@0000:41:02.1")

static DeviceSet make(char *const *members, char *const *partitions)
{
        DeviceSet set = { 0 };
        Error error = ERROR_NULL;

        if (device_set_parse(&set, "hgx", "CUSTOM_GPU", members, partitions, &error) < 0)
                fail_msg("%s", error.text);
        return set;
}

static uint64_t mask(const char *members)
{
        uint64_t bits = 0;

        for (; *members; members++)
                bits |= UINT64_C(1) << (*members - '1');
        return bits;
}

static void write_amounts(uint64_t amounts, char ret[64])
{
        size_t n = 0;

        ret[0] = '\0';
        for (unsigned i = 1; i <= 8; i++)
                if (device_amounts_have(amounts, i))
                        n += (size_t)snprintf(ret + n, 64 - n, "%u", i);
}

static void test_texts(void **state)
{
        DeviceSet hgx = make(GPUS, HGX), mig = make(LIST("8"), MIG);

        assert_int_equal(hgx.n_members, 8);
        assert_int_equal(hgx.n_partitions, 15);
        assert_int_equal(hgx.partitions[3].members, mask("13"));
        assert_string_equal(hgx.partitions[3].devices[1], "0000:03:00.0");
        assert_null(hgx.partitions[3].devices[2]);
        assert_string_equal(device_set_device(&hgx, 7), "0000:08:00.0");
        assert_null(device_set_device(&hgx, 8));
        assert_int_equal(device_set_members_of(&hgx, "0000:03:00.0"), mask("3"));
        assert_int_equal(device_set_members_of(&hgx, "0000:03:00.1"), 0);
        assert_null(mig.members);
        assert_string_equal(device_set_device(&mig, 13), "0000:41:02.1");
        assert_null(device_set_device(&mig, 14));
        assert_int_equal(device_set_members_of(&mig, "0000:41:00.7"), mask("5678"));
        device_set_done(&hgx);
        device_set_done(&mig);
}

static void test_bad_texts_are_refused(void **state)
{
        static const struct {
                const char *members[4], *partitions[4], *expected;
        } cases[] = {
                { { NULL }, { "a=1" }, "members must list devices or be a number" },
                { { "0" }, { "a=1" }, "members: the number must be 1 to 64" },
                { { "65" }, { "a=1" }, "members: the number must be 1 to 64" },
                { { "640" }, { "a=1" }, "members: the number must be 1 to 64" },
                { { "x:A", "x:a" }, { "a=1" }, "members: x:a is listed twice" },
                { { "x" }, { NULL }, "partitions must list 1 to 256 partitions" },
                { { "x" }, { "a" }, "partitions: a: must be ID=MEMBERS" },
                { { "x" }, { "=1" }, "partitions: =1: must be ID=MEMBERS" },
                { { "x" },
                  { "a/b=1" },
                  "partitions: a/b=1: an id has letters, digits, \"_\", \".\" and \"-\"" },
                { { "x" },
                  { "a=2" },
                  "partitions: a=2: members must be different numbers from 1 to 1 or ranges, "
                  "joined by +" },
                { { "x", "y" },
                  { "a=1+1-2" },
                  "partitions: a=1+1-2: members must be different numbers from 1 to 2 or ranges, "
                  "joined by +" },
                { { "x", "y" },
                  { "a=2-1" },
                  "partitions: a=2-1: members must be different numbers from 1 to 2 or ranges, "
                  "joined by +" },
                { { "x", "y" },
                  { "a=1+" },
                  "partitions: a=1+: members must be different numbers from 1 to 2 or ranges, "
                  "joined by +" },
                { { "x" }, { "a=1@y" }, "partitions: a=1@y: only slots have devices after \"@\"" },
                { { "1" }, { "a=1" }, "partitions: a=1: slots need their devices after \"@\"" },
                { { "1" },
                  { "a=1@x+X" },
                  "partitions: a=1@x+X: after \"@\" must be different addresses, joined by +" },
                { { "1" },
                  { "a=1@x+y" },
                  "partitions: a=1@x+y: a partition has at most one device for each slot" },
                { { "x" }, { "a=1", "a=1" }, "partitions: a=1: another partition has this id" },
                { { "x" }, { "a=1", "b=1" }, "partitions: b=1: partition a has the same members" },
                { { "2" }, { "a=1@x", "b=2@x" }, "partitions: b=2@x: partition a has x already" },
                { { "x", "y" }, { "a=1" }, "member 2 is in no partition" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                DeviceSet set = { 0 };
                Error error = ERROR_NULL;
                int r = device_set_parse(&set, "s", "CUSTOM_S", (char *const *)cases[i].members,
                                         (char *const *)cases[i].partitions, &error);

                if (r != -EINVAL || strcmp(error.text, cases[i].expected) != 0)
                        fail_msg("%d \"%s\", expected \"%s\"", r, error.text, cases[i].expected);
        }
}

/* taken: members. amounts: those that fit. Then for each amount the partition that is chosen. */
static void test_amounts_and_choice(void **state)
{
        DeviceSet hgx = make(GPUS, HGX), mig = make(LIST("8"), MIG);
        static const struct {
                bool is_mig;
                const char *taken, *amounts, *chosen[9];
        } cases[] = {
                { false, "", "1248", { [1] = "7", [2] = "3", [4] = "1", [8] = "0" } },
                /* the half that is broken already gets the next guest */
                { false, "1", "124", { [1] = "9", [2] = "4", [4] = "2" } },
                { false, "6", "124", { [1] = "14", [2] = "5", [4] = "1" } },
                { false, "12", "124", { [1] = "9", [2] = "5", [4] = "2" } },
                { false, "1234", "124", { [1] = "11", [2] = "5", [4] = "2" } },
                { false, "12345678", "", { NULL } },
                /* six are free, but no partition of four */
                { false, "15", "12", { [1] = "9", [2] = "4" } },
                { false, "1256", "1", { [1] = "9" } },
                { true, "", "1248", { [1] = "1g-6", [2] = "2g-4", [4] = "3g-4", [8] = "7g" } },
                { true, "7", "124", { [1] = "1g-4", [2] = "2g-4", [4] = "4g" } },
                { true, "5678", "124", { [1] = "1g-0", [2] = "2g-0", [4] = "4g" } },
                { true, "1357", "1", { [1] = "1g-1" } },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const DeviceSet *set = cases[i].is_mig ? &mig : &hgx;
                const DeviceSetUse use = { .taken = mask(cases[i].taken) };
                char text[64];

                write_amounts(device_set_amounts(set, &use), text);
                if (strcmp(text, cases[i].amounts) != 0)
                        fail_msg("\"%s\": amounts %s, not %s", cases[i].taken, text,
                                 cases[i].amounts);
                for (unsigned amount = 1; amount <= 8; amount++) {
                        const DevicePartition *chosen = device_set_choose(set, &use, amount);
                        const char *expected = cases[i].chosen[amount];

                        if (!chosen != !expected || (chosen && strcmp(chosen->id, expected) != 0))
                                fail_msg("\"%s\", %u: %s, not %s", cases[i].taken, amount,
                                         chosen ? chosen->id : "none", expected ?: "none");
                }
        }
        device_set_done(&hgx);
        device_set_done(&mig);
}

static void test_amounts_of_a_set(void **state)
{
        static const struct {
                const char *partitions[5];
                unsigned smallest, largest, step;
        } cases[] = {
                { { "a=1-8", "b=1-4" }, 4, 8, 4 },
                { { "a=1-6", "b=1-4", "c=7-8" }, 2, 6, 2 },
                { { "a=1-6", "b=4-8", "c=7-8" }, 2, 6, 1 },
                { { "a=1-8" }, 8, 8, 8 },
        };
        unsigned step;

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char *texts[5] = { NULL };
                DeviceSet set;
                uint64_t amounts;

                for (size_t j = 0; cases[i].partitions[j]; j++)
                        texts[j] = (char *)cases[i].partitions[j];
                set = make(GPUS, texts);
                amounts = device_set_amounts(&set, NULL);
                assert_int_equal(device_amounts_smallest(amounts, &step), cases[i].smallest);
                assert_int_equal(step, cases[i].step);
                assert_int_equal(device_amounts_largest(amounts), cases[i].largest);
                device_set_done(&set);
        }
        assert_int_equal(device_amounts_largest(0), 0);
        assert_int_equal(device_amounts_smallest(0, &step), 0);
        assert_int_equal(step, 0);
        assert_true(device_amounts_have(UINT64_MAX, 64));
        assert_false(device_amounts_have(UINT64_MAX, 0));
        assert_false(device_amounts_have(UINT64_MAX, 65));
}

/* A device of slots that is missing excludes its partition alone; one that is in use has slots. */
static void test_devices_that_are_out(void **state)
{
        DeviceSet hgx = make(GPUS, HGX), mig = make(LIST("8"), MIG);
        DeviceSetUse use = { 0 };
        char text[64];

        device_set_exclude(&hgx, &use, "0000:02:00.0");
        device_set_exclude(&hgx, &use, "0000:99:00.0");
        assert_int_equal(use.taken, mask("2"));
        use = (DeviceSetUse){ 0 };
        device_set_exclude(&mig, &use, "0000:41:00.5");
        device_set_take(&mig, &use, "0000:41:01.2");
        assert_int_equal(use.taken, mask("56"));
        write_amounts(device_set_amounts(&mig, &use), text);
        assert_string_equal(text, "124");
        assert_string_equal(device_set_choose(&mig, &use, 4)->id, "3g-0");
        device_set_done(&hgx);
        device_set_done(&mig);
}

static void test_partition_of_devices(void **state)
{
        DeviceSet hgx = make(GPUS, HGX), mig = make(LIST("8"), MIG);
        const char *const pair[] = { "0000:03:00.0", "0000:01:00.0" };
        const char *const none[] = { "0000:01:00.0", "0000:02:00.0" };
        const char *const slot[] = { "0000:41:00.6" };

        assert_string_equal(device_set_find(&hgx, pair, 2)->id, "3");
        assert_string_equal(device_set_find(&hgx, pair, 1)->id, "9");
        assert_null(device_set_find(&hgx, none, 2));
        assert_null(device_set_find(&hgx, none, 0));
        assert_string_equal(device_set_find(&mig, slot, 1)->id, "3g-0");
        assert_null(device_set_find(&mig, none, 1));
        device_set_done(&hgx);
        device_set_done(&mig);
}

/* For each set of taken members and each amount: no other partition of the amount leaves a larger
 * amount than the chosen one. */
static void test_choice_keeps_the_largest_fit(void **state)
{
        DeviceSet sets[] = { make(GPUS, HGX), make(LIST("8"), MIG),
                             make(GPUS, LIST("a=1-3", "b=3-5", "c=5-8", "d=1+8", "e=2+7", "f=4",
                                             "g=6", "h=2-4")) };

        for (size_t s = 0; s < ARRAY_SIZE(sets); s++)
                for (uint64_t taken = 0; taken < 256; taken++)
                        for (unsigned amount = 1; amount <= 8; amount++) {
                                const DeviceSet *set = &sets[s];
                                DeviceSetUse use = { .taken = taken };
                                const DevicePartition *chosen =
                                        device_set_choose(set, &use, amount);
                                uint64_t rest;

                                assert_int_equal(
                                        chosen != NULL,
                                        device_amounts_have(device_set_amounts(set, &use), amount));
                                if (!chosen)
                                        continue;
                                assert_int_equal(chosen->members & taken, 0);
                                use.taken = taken | chosen->members;
                                rest = device_set_amounts(set, &use);
                                for (size_t i = 0; i < set->n_partitions; i++) {
                                        const DevicePartition *other = &set->partitions[i];

                                        if (other->members & taken ||
                                            device_members_count(other->members) != amount)
                                                continue;
                                        use.taken = taken | other->members;
                                        assert_true(device_amounts_largest(rest) >=
                                                    device_amounts_largest(
                                                            device_set_amounts(set, &use)));
                                }
                        }
        for (size_t s = 0; s < ARRAY_SIZE(sets); s++)
                device_set_done(&sets[s]);
}

TEST_MAIN(test_texts, test_bad_texts_are_refused, test_amounts_and_choice, test_amounts_of_a_set,
          test_devices_that_are_out, test_partition_of_devices, test_choice_keeps_the_largest_fit)
