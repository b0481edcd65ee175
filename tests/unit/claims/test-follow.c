/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Guests that have other amounts than the claims that were made of them. */

#include "claims/follow.h"
#include "tests/fixtures/reconcile.h"

#define CAN_ASK RECONCILE_CAN_READ
#define AWAY    RECONCILE_NO_READS
#define ALONE   RECONCILE_NO_PLACEMENT

typedef struct Row {
        const char *name;
        const char *claim; /* the guest has 2 VCPUs */
        ReconcileAccess access;
        uint64_t placed; /* VCPUs in Placement; 0: not read */
        const char *actions, *problem;
} Row;

/* Makes the allocations of the guest. */
static Consumer *make_holding(uint64_t vcpus)
{
        const Uuid host = make_uuid("host");
        Consumer *holding = look_make_consumer('g', vcpus);

        assert_int_equal(consumer_add(holding, &host, "MEMORY_MB", 512), 0);
        return holding;
}

/* Gives the claim the memory of its guest, and a request with the amounts of the domain. */
static void look_add_memory(Look *look)
{
        const Uuid host = make_uuid("host");

        look_set_text(&look->claims.claims[0]->request, "resources=MEMORY_MB:512,VCPU:2");
        assert_int_equal(claim_add(look->claims.claims[0], &host, "host", "", "MEMORY_MB", 512), 0);
}

static void check(const Row *row)
{
        _cleanup_(look_done) Look look;
        _cleanup_(consumer_freep) Consumer *holding = make_holding(row->placed);
        const ConsumerRead answer = { .consumer = make_guest('g'),
                                      .here = true,
                                      .holding = holding };

        look_begin(&look);
        look.input.access = row->access;
        look.input.answers = &answer;
        look.input.n_answers = row->placed > 0 ? 1 : 0;
        facts_guest(&look.facts, 'g', "");
        look_add_claims(&look, row->claim);
        look_run(&look);
        look_expect(&look, row->name, row->actions, row->problem);
}

/* A resized guest gets a new claim as soon as Placement has the same amounts. */
static void test_resized(void **state)
{
        static const char has_less[] = "guest g has 2 VCPUs, but its claim has 1";
        static const Row rows[] = {
                { "as it was", "g confirmed read type=LIBVIRT vcpus=2", CAN_ASK, 0, "", NULL },
                { "ask first", "g confirmed read type=LIBVIRT vcpus=1", CAN_ASK, 0, "ask 1",
                  has_less },
                { "resized", "g confirmed read type=LIBVIRT vcpus=1", AWAY, 2, "release 1, adopt g",
                  NULL },
                { "edited", "g confirmed read type=LIBVIRT vcpus=1", AWAY, 1, "", has_less },
                { "alone", "g confirmed read type=LIBVIRT vcpus=1", ALONE, 0, "", has_less },
                { "promised", "g confirmed read type=INSTANCE vcpus=1", CAN_ASK, 0, "", has_less },
                { "written", "g confirmed read type=LIBVIRT write_state=written vcpus=1", CAN_ASK,
                  0, "", has_less },
                { "nothing read yet", "g confirmed type=LIBVIRT vcpus=1", AWAY, 2, "complete 1",
                  has_less },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                check(&rows[i]);
}

/* A guest that was resized to a flavor with fewer devices gets a new claim, if Placement has fewer
 * of them too. */
static void test_devices_are_dropped(void **state)
{
        static const char lacks[] = "does not have mdev";
        static const struct {
                const char *name, *guest;
                ReconcileAccess access;
                uint64_t placed; /* VGPUs of host_a; UINT64_MAX: not read */
                const char *actions, *problem;
        } rows[] = {
                { "as it was", "g1", CAN_ASK, UINT64_MAX, "", NULL },
                { "ask first", "g", CAN_ASK, UINT64_MAX, "ask 1", lacks },
                { "Placement is away", "g", AWAY, UINT64_MAX, "", lacks },
                { "dropped", "g", AWAY, 0, "release 1, adopt g", NULL },
                { "removed from the domain alone", "g", AWAY, 1, "", lacks },
                { "removed from Placement alone", "g1", AWAY, 0, "", NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(look_done) Look look;
                _cleanup_(consumer_freep) Consumer *holding = make_holding(2);
                const Uuid gpu = make_uuid("host_a");
                const ConsumerRead answer = { .consumer = make_guest('g'),
                                              .here = true,
                                              .holding = holding };

                look_begin(&look);
                if (rows[i].placed > 0 && rows[i].placed < UINT64_MAX)
                        assert_int_equal(consumer_add(holding, &gpu, "VGPU", rows[i].placed), 0);
                look.input.access = rows[i].access;
                look.input.answers = &answer;
                look.input.n_answers = rows[i].placed < UINT64_MAX;
                facts_guest(&look.facts, 'g', rows[i].guest + 1);
                look_add_claims(&look, "g confirmed read type=LIBVIRT vcpus=2 vgpus=1 mdev=1");
                look_run(&look);
                look_expect(&look, rows[i].name, rows[i].actions, rows[i].problem);
        }
}

/* A claim follows amounts that another writer changed. The guest has 2 VCPUs and 512 MiB. */
static void test_follows(void **state)
{
        static const struct {
                const char *name, *claim;
                ReconcileAccess access;
                uint64_t on_root, placed; /* VCPUs by each of the two reads; 0: not read */
                const char *actions, *problem;
        } rows[] = {
                { "nothing read", "g confirmed read type=LIBVIRT vcpus=2", CAN_ASK, 0, 0, "",
                  NULL },
                { "the same", "g confirmed read type=LIBVIRT vcpus=2", CAN_ASK, 2, 0, "", NULL },
                { "more: ask first", "g confirmed read type=LIBVIRT vcpus=2", CAN_ASK, 4, 0,
                  "ask 1", NULL },
                { "more", "g confirmed read type=LIBVIRT vcpus=2", AWAY, 0, 4, "release 1, adopt g",
                  NULL },
                { "as much as the claim", "g confirmed read type=LIBVIRT vcpus=4", CAN_ASK, 4, 0,
                  "", NULL },
                { "as much, and answered", "g confirmed read type=LIBVIRT vcpus=4", AWAY, 0, 4, "",
                  NULL },
                { "less again", "g confirmed read type=LIBVIRT vcpus=4", AWAY, 0, 3,
                  "release 1, adopt g", NULL },
                { "less than the guest", "g confirmed read type=LIBVIRT vcpus=4", AWAY, 0, 1,
                  "release 1, adopt g", NULL },
                { "less, and the claim has what the guest has",
                  "g confirmed read type=LIBVIRT vcpus=2", AWAY, 0, 1, "", NULL },
                { "of a caller", "g confirmed read type=INSTANCE vcpus=2", CAN_ASK, 4, 0, "",
                  NULL },
                { "of a caller, with more than the guest", "g confirmed read type=INSTANCE vcpus=3",
                  CAN_ASK, 4, 0, "", NULL },
                { "of a caller, without allocations", "g confirmed type=INSTANCE vcpus=3", CAN_ASK,
                  0, 0, "", "guest g has 2 VCPUs, but its claim has 3" },
                { "written by the agent",
                  "g confirmed read type=LIBVIRT write_state=written vcpus=2", CAN_ASK, 4, 0, "",
                  NULL },
                { "without Placement", "g confirmed read type=LIBVIRT vcpus=2", ALONE, 4, 0, "",
                  NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(look_done) Look look;
                _cleanup_(consumer_freep) Consumer *holding = make_holding(rows[i].placed);
                _cleanup_(allocations_freep) Allocations *held = NULL;
                _cleanup_(host_view_freep) HostView *view =
                        look_make_view("host VCPU=4096 PCPU=4096 MEMORY_MB=4096");
                const ConsumerRead answer = { .consumer = make_guest('g'),
                                              .here = true,
                                              .holding = holding };
                Consumer *on_root = make_holding(rows[i].on_root);

                look_begin(&look);
                assert_int_equal(allocations_new(&held), 0);
                assert_int_equal(allocations_add(held, on_root), 0);
                look.input.access = rows[i].access;
                look.input.view = view;
                look.input.held = rows[i].on_root > 0 ? held : NULL;
                look.input.answers = &answer;
                look.input.n_answers = rows[i].placed > 0 ? 1 : 0;
                facts_guest(&look.facts, 'g', "");
                look_add_claims(&look, rows[i].claim);
                look_add_memory(&look);
                look_run(&look);
                look_expect(&look, rows[i].name, rows[i].actions, rows[i].problem);
        }
}

/* The amount in the text of a request is the difference between the held amount and the amount
 * beyond the domain. */
static void test_amounts_of_requests(void **state)
{
        enum { HELD = 1000 };
        static const struct {
                const char *request;
                uint64_t amount; /* HELD: this one or more */
        } rows[] = {
                { "", 0 },
                { "resources=MEMORY_MB:2", 2 },
                { "resources=DISK_GB:64,MEMORY_MB:2,PCPU:3&required=MEMORY_MB:9", 2 },
                { "resources=DISK_GB:64,MEMORY_MB:2", 2 },
                { "resources=DISK_GB:64,PCPU:3", 0 },
                { "resources=MEMORY_MB:2&resources_A=MEMORY_MB:3,VGPU:1&group_policy=isolate", 5 },
                { "resources=CUSTOM_MEMORY_MB:7", 0 },
                { "resources", 0 },
                { "resources=", 0 },
                { "&&resources=,,MEMORY_MB:4&", 4 },
                { "resources=MEMORY_MB:99999999999999999999&resources_B=MEMORY_MB:1", HELD },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(claim_freep) Claim *claim = NULL;
                const Uuid host = make_uuid("host");

                assert_int_equal(claim_new(&claim), 0);
                claim->was_read = true;
                look_set_text(&claim->consumer_type, CLAIM_TYPE_GUEST);
                look_set_text(&claim->request, rows[i].request);
                assert_int_equal(claim_add(claim, &host, "host", "", "MEMORY_MB", HELD), 0);
                if (claim_beyond_domain(claim, "MEMORY_MB") != HELD - rows[i].amount)
                        fail_msg("%s: %llu", rows[i].request,
                                 (unsigned long long)claim_beyond_domain(claim, "MEMORY_MB"));
        }
}

TEST_MAIN(test_resized, test_devices_are_dropped, test_follows, test_amounts_of_requests)
