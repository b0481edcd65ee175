/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Claims of partitions of a set of devices, on a real database. A set has four GPUs with the pairs
 * 1-2, 3-4 and 1+3, and singles of 1 and 4. Another has two slots of one card. */

#include "claims/claims.h"
#include "claims/fit/device-choice.h"
#include "tests/fixtures/claims.h"
#include "tests/unit/test.h"

#define HOST                                                              \
        "host VCPU=8 MEMORY_MB=4096; host_shapes_hgx<host CUSTOM_GPU=4; " \
        "host_shapes_mig<host CUSTOM_MIG=2"
#define LIST(...) ((char *const *)(const char *const[]){ __VA_ARGS__, NULL })

static const char *const gpus[] = { "0000:01:00.0", "0000:02:00.0", "0000:03:00.0",
                                    "0000:04:00.0" };
static const char *const vfs[] = { "0000:09:00.4", "0000:09:00.5", "0000:09:00.6" };

typedef struct Sets {
        DeviceSet sets[2];
        HostPci pci[7];
        HostDomain domains[1];
        char addresses[4][HOST_ADDRESS_SIZE];
        HostFacts facts;
} Sets;

static void parse(DeviceSet *ret, const char *name, const char *resource_class,
                  char *const *members, char *const *partitions)
{
        Error error = ERROR_NULL;

        if (device_set_parse(ret, name, resource_class, members, partitions, &error) < 0)
                fail_msg("%s", error.text);
}

static void add(Sets *sets, const char *address, const char *provider, const DeviceSet *set)
{
        HostPci *pci = &sets->pci[sets->facts.n_pci++];

        *pci = (HostPci){ .name = address,
                          .address = address,
                          .provider = provider,
                          .cell = HOST_CELL_NONE,
                          .set = set };
        strcpy(pci->resource_class, set->resource_class);
}

/* Opens the database of the host with both sets. */
static void open_host(Fixture *fixture, Sets *sets)
{
        *sets = (Sets){ .facts = { .taken_usec = 1000 * USEC_PER_SEC } };
        parse(&sets->sets[0], "hgx", "CUSTOM_GPU", LIST(gpus[0], gpus[1], gpus[2], gpus[3]),
              LIST("all=1-4", "a=1-2", "b=3-4", "c=1+3", "one=1", "four=4"));
        parse(&sets->sets[1], "mig", "CUSTOM_MIG", LIST("2"),
              LIST("whole=1-2@0000:09:00.4", "x=1@0000:09:00.5", "y=2@0000:09:00.6"));
        for (size_t i = 0; i < ARRAY_SIZE(gpus); i++)
                add(sets, gpus[i], "shapes_hgx", &sets->sets[0]);
        for (size_t i = 0; i < ARRAY_SIZE(vfs); i++)
                add(sets, vfs[i], "shapes_mig", &sets->sets[1]);
        sets->facts.pci = sets->pci;
        sets->facts.sets = sets->sets;
        sets->facts.n_sets = 2;
        sets->facts.domains = sets->domains;
        assert_true(fixture_open(fixture) >= 0);
        fixture_set_host(fixture, HOST);
        claims_set_facts(fixture->claims, &sets->facts);
}

static void sets_done(Sets *sets)
{
        device_set_done(&sets->sets[0]);
        device_set_done(&sets->sets[1]);
}

/* Makes the guest of the facts, with GPUs such as "12". */
static HostDomain *make_guest(Sets *sets, const char *members)
{
        HostDomain *domain = &sets->domains[0];

        *domain = (HostDomain){ .uuid = make_uuid("guest"),
                                .name = "g1",
                                .running = true,
                                .vcpus = 1,
                                .memory_mb = 64,
                                .pci = (const char(*)[HOST_ADDRESS_SIZE])sets->addresses };
        for (; *members; members++)
                strcpy(sets->addresses[domain->n_pci++], gpus[*members - '1']);
        sets->facts.n_domains = 1;
        return domain;
}

/* Claims and compares the devices with the last digits of the buses or functions. */
static int64_t claim(Fixture *fixture, const char *consumer, const char *request,
                     const char *expected)
{
        _cleanup_(claim_freep) Claim *made = NULL;
        char devices[16] = "";

        if (fixture_claim(fixture, consumer, request, &made) != CLAIM_DONE)
                fail_msg("%s: %s", request, fixture->error.text);
        for (size_t i = 0; i < made->n_devices; i++) {
                const char *address = made->devices[i].address;

                devices[i] = address[6] == '9' ? address[11] : address[6];
        }
        if (strcmp(devices, expected) != 0)
                fail_msg("%s: devices %s, not %s", request, devices, expected);
        return made->id;
}

static void refuse(Fixture *fixture, const char *request, const char *words)
{
        assert_int_equal(fixture_claim(fixture, "no", request, NULL), CLAIM_E_NO_CAPACITY);
        if (strcmp(fixture->error.text, words) != 0)
                fail_msg("%s: \"%s\"", request, fixture->error.text);
}

static void test_a_claim_gets_one_partition(void **state)
{
        Fixture *fixture = *state;
        Sets sets;
        int64_t id;

        open_host(fixture, &sets);
        refuse(fixture, "CUSTOM_GPU=3",
               "CUSTOM_GPU: 4 free, but no partition of 3 on host_shapes_hgx");
        id = claim(fixture, "one", "CUSTOM_GPU=1", "4");
        refuse(fixture, "CUSTOM_GPU=4",
               "CUSTOM_GPU: 4 requested, but 3 of 4 are free on host_shapes_hgx");
        claim(fixture, "two", "VCPU=1,CUSTOM_GPU=2", "12");
        refuse(fixture, "CUSTOM_GPU=1",
               "CUSTOM_GPU: 1 free, but no partition of 1 on host_shapes_hgx");
        assert_int_equal(claims_release(fixture->claims, id, "", NULL), 0);
        claim(fixture, "three", "CUSTOM_GPU=2", "34");
        refuse(fixture, "CUSTOM_GPU=1",
               "CUSTOM_GPU: 1 requested, but 0 of 4 are free on host_shapes_hgx");
        assert_store_sane(fixture->path);
        sets_done(&sets);
}

/* Placement adds the amounts of one consumer, so two groups are one partition. */
static void test_all_groups_are_one_partition(void **state)
{
        Fixture *fixture = *state;
        Sets sets;

        open_host(fixture, &sets);
        claim(fixture, "one", "_A:CUSTOM_GPU=2 _B:CUSTOM_GPU=2", "1234");
        refuse(fixture, "_A:CUSTOM_GPU=1 _B:CUSTOM_GPU=1",
               "Group \"_A\": CUSTOM_GPU: 1 requested, but 0 of 4 are free on host_shapes_hgx");
        sets_done(&sets);
}

static void test_groups_without_a_partition_are_refused(void **state)
{
        Fixture *fixture = *state;
        Sets sets;

        open_host(fixture, &sets);
        refuse(fixture, "_A:CUSTOM_GPU=2 _B:CUSTOM_GPU=1",
               "Each part of the request fits alone, but not all of them together");
        sets_done(&sets);
}

static void test_slots(void **state)
{
        Fixture *fixture = *state;
        Sets sets;
        int64_t id;
        _cleanup_(claim_freep) Claim *held = NULL;

        open_host(fixture, &sets);
        id = claim(fixture, "whole", "CUSTOM_MIG=2", "4");
        assert_int_equal(claims_get(fixture->claims, id, &held, NULL), 0);
        assert_int_equal(device_units(&sets.facts, held, 0), 2);
        assert_int_equal(device_count_missing(&sets.facts, "host", held), 0);
        refuse(fixture, "CUSTOM_MIG=1",
               "CUSTOM_MIG: 1 requested, but 0 of 2 are free on host_shapes_mig");
        assert_int_equal(claims_release(fixture->claims, id, "", NULL), 0);
        claim(fixture, "half", "CUSTOM_MIG=1", "5");
        refuse(fixture, "CUSTOM_MIG=2",
               "CUSTOM_MIG: 2 requested, but 1 of 2 are free on host_shapes_mig");
        claim(fixture, "other", "CUSTOM_MIG=1", "6");
        sets_done(&sets);
}

/* A guest with an mdev of a device of slots takes the slots of its partition. */
static void test_a_part_of_a_device_of_slots(void **state)
{
        HostMdev mdev = { make_uuid("mdev"), "vf", "t", vfs[0] };
        Fixture *fixture = *state;
        Sets sets;

        open_host(fixture, &sets);
        make_guest(&sets, "");
        sets.domains[0].mdevs = &mdev.uuid;
        sets.domains[0].n_mdevs = 1;
        sets.facts.mdevs = &mdev;
        sets.facts.n_mdevs = 1;
        refuse(fixture, "CUSTOM_MIG=1",
               "CUSTOM_MIG: 1 requested, but 0 of 2 are free on host_shapes_mig");
        sets_done(&sets);
}

static void test_members_that_are_out(void **state)
{
        Fixture *fixture = *state;
        Sets sets;

        open_host(fixture, &sets);
        sets.pci[0].withheld = true;
        refuse(fixture, "CUSTOM_GPU=4",
               "CUSTOM_GPU: 4 requested, but 3 of 4 are free on host_shapes_hgx");
        claim(fixture, "pair", "CUSTOM_GPU=2", "34");
        /* the host does not list the device of the whole card */
        sets.pci[4].address = "0000:0a:00.0";
        refuse(fixture, "CUSTOM_MIG=2",
               "CUSTOM_MIG: 2 free, but no partition of 2 on host_shapes_mig");
        claim(fixture, "half", "CUSTOM_MIG=1", "5");
        sets_done(&sets);
}

static void test_guests(void **state)
{
        static const struct {
                const char *members, *claimed, *words;
                int expected;
                uint64_t amount;
                char uncounted; /* a member that no provider counts */
        } cases[] = {
                { "12", NULL, "", CLAIM_DONE, .amount = 2 },
                { "12", NULL, "", CLAIM_DONE, .uncounted = '2' },
                { "31", NULL, "", CLAIM_DONE, .amount = 2 },
                { "14", NULL, "its devices of hgx are no partition", .expected = CLAIM_E_CONFLICT },
                { "123", NULL, "its devices of hgx are no partition",
                  .expected = CLAIM_E_CONFLICT },
                { "34", "4",
                  "a member of its partition b of hgx belongs to another claim or is withheld",
                  .expected = CLAIM_E_CONFLICT },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Fixture *fixture = NULL;
                _cleanup_(claim_freep) Claim *made = NULL;
                Error error = ERROR_NULL;
                HostDomain *domain;
                Sets sets;

                assert_int_equal(fixture_setup((void **)&fixture), 0);
                open_host(fixture, &sets);
                if (cases[i].claimed)
                        claim(fixture, "one", "CUSTOM_GPU=1", cases[i].claimed);
                if (cases[i].uncounted)
                        sets.pci[cases[i].uncounted - '1'].provider = "nowhere";
                domain = make_guest(&sets, cases[i].members);
                assert_int_equal(claims_adopt(fixture->claims, domain, &made, &error),
                                 cases[i].expected);
                assert_string_equal(error.text, cases[i].words);
                assert_int_equal(made->n_devices, cases[i].amount);
                assert_int_equal(fixture_used(fixture, "host_shapes_hgx", "CUSTOM_GPU"),
                                 cases[i].amount + (cases[i].claimed != NULL));
                sets_done(&sets);
                fixture_teardown((void **)&fixture);
        }
}

/* The configuration of a set can change under a claim. Without a guest, the claim gets no further
 * partition beside its devices. */
static void test_a_claim_of_a_changed_set(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *held = NULL;
        Sets sets;
        int64_t id;
        bool changed;

        open_host(fixture, &sets);
        id = claim(fixture, "whole", "CUSTOM_MIG=2", "4");
        device_set_done(&sets.sets[1]);
        parse(&sets.sets[1], "mig", "CUSTOM_MIG", LIST("3"),
              LIST("whole=2-3@0000:09:00.5", "x=1@0000:09:00.4"));
        assert_int_equal(claims_check_again(fixture->claims, id, NULL, &changed, &fixture->error),
                         CLAIM_E_NO_CAPACITY);
        assert_string_equal(fixture->error.text, "its devices of mig are no partition of 2");
        assert_false(changed);
        assert_int_equal(claims_get(fixture->claims, id, &held, NULL), 0);
        assert_int_equal(held->n_devices, 1);
        sets_done(&sets);
}

/* A guest without a claim takes its members, whether they are a partition or not. */
static void test_members_of_guests_are_taken(void **state)
{
        Fixture *fixture = *state;
        Sets sets;

        open_host(fixture, &sets);
        make_guest(&sets, "14");
        refuse(fixture, "CUSTOM_GPU=2",
               "CUSTOM_GPU: 2 free, but no partition of 2 on host_shapes_hgx");
        sets_done(&sets);
}

TEST_MAIN_WITH(fixture_setup, fixture_teardown, test_a_claim_gets_one_partition,
               test_all_groups_are_one_partition, test_groups_without_a_partition_are_refused,
               test_slots, test_a_part_of_a_device_of_slots, test_members_that_are_out, test_guests,
               test_a_claim_of_a_changed_set, test_members_of_guests_are_taken)
