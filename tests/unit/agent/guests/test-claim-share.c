/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/guests/claim-share.h"

#include "tests/fixtures/audit.h"
#include "tests/fixtures/claims.h"
#include "tests/unit/test.h"

#define OWN  "host VCPU=8; gpu<host VGPU=4; shared DISK_GB=9 +MISC_SHARES_VIA_AGGREGATE"
#define HOST OWN "; other VCPU=8"

static Claim *make_claim(const char *text)
{
        _cleanup_(consumer_freep) Consumer *of = make_holding("consumer", text);
        Claim *claim;

        assert_int_equal(claim_new(&claim), 0);
        for (size_t i = 0; i < of->n_allocations; i++) {
                const Resources *resources = &of->allocations[i].resources;

                for (size_t j = 0; j < resources->n_items; j++)
                        assert_int_equal(claim_add(claim, &of->allocations[i].provider, "x", "",
                                                   resources->items[j].resource_class,
                                                   resources->items[j].amount),
                                         0);
        }
        return claim;
}

static void test_is(void **state)
{
        static const struct {
                const char *claim, *held;
                bool is;
        } cases[] = {
                { "host VCPU=2", "host VCPU=2", true },
                { "host VCPU=2", "host VCPU=2; other VCPU=7", true },
                { "host VCPU=2; gpu VGPU=1", "gpu VGPU=1; host VCPU=2", true },
                { "host VCPU=2", "host VCPU=3", false },
                { "host VCPU=2", "host VCPU=2; host MEMORY_MB=9", false },
                { "host VCPU=2; gpu VGPU=1", "host VCPU=2", false },
                { "host VCPU=2", "", false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(consumer_freep) Consumer *held = make_holding("consumer", cases[i].held);
                _cleanup_(claim_freep) Claim *claim = make_claim(cases[i].claim);

                if (claim_share_is(claim, held) != cases[i].is)
                        fail_msg("case %zu", i);
        }
}

static void test_shares(void **state)
{
        static const struct {
                const char *held, *claim; /* NULL: no claim */
                bool has;
                const char *left; /* NULL: there was nothing to remove */
        } cases[] = {
                { "", NULL, false, NULL },
                { "host VCPU=2", NULL, true, "" },
                { "gpu VGPU=1", NULL, true, "" },
                { "other VCPU=2", NULL, false, NULL },
                { "host VCPU=2; gpu VGPU=1; other VCPU=2", NULL, true, "other VCPU=2" },
                /* An allocation from a sharing provider is removed only with the claim that wrote
                 * it. */
                { "host VCPU=2; shared DISK_GB=5", NULL, true, "shared DISK_GB=5" },
                { "host VCPU=2; shared DISK_GB=5", "shared DISK_GB=5", true, "" },
                /* Disk space alone names no other host. */
                { "shared DISK_GB=5", NULL, true, NULL },
                { "shared DISK_GB=5", "shared DISK_GB=5", true, "" },
                { "shared DISK_GB=5; other VCPU=2", NULL, false, NULL },
                { "shared DISK_GB=5; unknown VCPU=2", NULL, false, NULL },
                /* The host lost this provider. */
                { "gone VGPU=1; other VCPU=1", "gone VGPU=1", false, "other VCPU=1" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(consumer_freep) Consumer *consumer =
                        make_holding("consumer", cases[i].held);
                _cleanup_(host_view_freep) HostView *view = make_view(HOST);
                _cleanup_(claim_freep) Claim *claim = NULL;

                if (cases[i].claim)
                        claim = make_claim(cases[i].claim);
                if (claim_share_has(view, "host", consumer) != cases[i].has)
                        fail_msg("case %zu: has", i);
                if (claim_share_remove(view, "host", claim, consumer) != (cases[i].left != NULL))
                        fail_msg("case %zu: removed", i);
                if (cases[i].left) {
                        _cleanup_(consumer_freep) Consumer *left =
                                make_holding("consumer", cases[i].left);

                        if (!consumer_holds_equal(consumer, left))
                                fail_msg("case %zu: %zu left", i, consumer->n_allocations);
                }
        }
}

typedef struct OursCase {
        const char *name;
        const char *before; /* allocations as read or, once reported, as written */
        int64_t before_generation;
        bool written;
        const char *claim; /* NULL: not known any more */
        const char *now;
        int64_t generation;
        bool ours;
        bool unsure;
        uint64_t before_sec, now_sec; /* time of the consumer's last write in Placement; 0:
                                         Placement does not send it */
} OursCase;

static void assert_ours(const OursCase *one)
{
        _cleanup_(consumer_freep) Consumer *before = make_holding("consumer", one->before),
                                           *now = make_holding("consumer", one->now);
        _cleanup_(claim_freep) Claim *claim = one->claim ? make_claim(one->claim) : NULL;
        /* The claims know the host's own tree alone. */
        _cleanup_(host_view_freep) HostView *view = make_view(OWN);
        const ClaimRemoval unknown = { 0 };
        ClaimRemoval left = { .unsure = one->unsure };

        before->generation = one->before_generation;
        before->modified_sec = one->before_sec;
        now->generation = one->generation;
        now->modified_sec = one->now_sec;
        left.reported = claim_share_reported(view, before, one->written);
        if (claim_share_is_ours(view, "host", &left, claim, now) != one->ours)
                fail_msg("%s", one->name);
        assert_true(claim_share_is_ours(view, "host", &unknown, claim, now));
}

/* Distinguishes a leftover of a claim from an allocation that another client wrote since. */
static void test_leftover_is_distinguished_from_new_allocation(void **state)
{
        static const OursCase cases[] = {
                { "written, and not changed since", "", -1, true, "host VCPU=2", "host VCPU=2", 1,
                  true, false, 0, 0 },
                { "beside another host's share", "other VCPU=2", 4, true, "host VCPU=2",
                  "host VCPU=2; other VCPU=2", 5, true, false, 0, 0 },
                { "read, and not changed since", "host VCPU=2", 3, false, "host VCPU=2",
                  "host VCPU=2", 3, true, false, 0, 0 },
                { "read, and written since", "host VCPU=2", 3, false, "host VCPU=2", "host VCPU=2",
                  4, false, false, 0, 0 },
                { "placed here again", "", -1, true, "host VCPU=2", "host VCPU=2", 2, false, false,
                  0, 0 },
                { "placed here again, larger", "", -1, true, "host VCPU=2", "host VCPU=4", 2, false,
                  false, 0, 0 },
                { "deleted, and placed here smaller", "", -1, true, "host VCPU=2", "host VCPU=1", 1,
                  false, false, 0, 0 },
                { "deleted, and placed on another GPU", "", -1, true, "host VCPU=2; gpu VGPU=1",
                  "host VCPU=2", 1, false, false, 0, 0 },
                { "evacuated", "", -1, true, "host VCPU=2", "host VCPU=2; far VCPU=2", 2, true,
                  false, 0, 0 },
                { "the host it came from is done", "other VCPU=2", 4, true, "host VCPU=2",
                  "host VCPU=2", 6, true, false, 0, 0 },
                { "evacuated, and placed here again", "", -1, true, "host VCPU=2",
                  "host VCPU=4; far VCPU=2", 3, false, false, 0, 0 },
                { "evacuated, and a GPU placed here", "", -1, true, "host VCPU=2",
                  "host VCPU=2; gpu VGPU=1; far VCPU=2", 3, false, false, 0, 0 },
                { "healed, with a disk that is not claimed", "host VCPU=2; host DISK_GB=5", 3, true,
                  "host VCPU=2", "host VCPU=2; host DISK_GB=5", 4, true, false, 0, 0 },
                { "an allocation of a sharing provider is not elsewhere", "", -1, true,
                  "host VCPU=2", "host VCPU=2; shared DISK_GB=5", 2, false, false, 0, 0 },
                { "the claim is not known any more", "", -1, true, NULL, "host VCPU=2", 1, true,
                  false, 0, 0 },
                { "the same, written since", "", -1, true, NULL, "host VCPU=2", 2, false, false, 0,
                  0 },
                /* A consumer that was deleted and created again counts from the start. */
                { "created again, written as often", "other VCPU=2", 2, true, "host VCPU=2",
                  "host VCPU=2; far VCPU=2", 1, false, false, 0, 0 },
                { "created again with its earlier allocations", "other VCPU=2", 4, true,
                  "host VCPU=2", "host VCPU=2", 4, false, false, 0, 0 },
                { "not known whether it was written", "other VCPU=2", 4, true, "host VCPU=2",
                  "host VCPU=2", 4, true, true, 0, 0 },
                { "written at once", "", -1, true, "host VCPU=2", "host VCPU=2", 1, true, false,
                  1000, 1000 },
                { "written as late as it can be", "", -1, true, "host VCPU=2", "host VCPU=2", 1,
                  true, false, 1000, 1000 + CLAIM_WRITE_LATE_SEC },
                { "created again after that", "", -1, true, "host VCPU=2", "host VCPU=2", 1, false,
                  false, 1000, 1001 + CLAIM_WRITE_LATE_SEC },
                { "the same, and the claim is not known any more", "", -1, true, NULL,
                  "host VCPU=2", 1, false, false, 1000, 9000 },
                { "evacuated much later", "", -1, true, "host VCPU=2", "host VCPU=2; far VCPU=2", 2,
                  true, false, 1000, 9000 },
                { "who held something tells no time of now", "other VCPU=2", 4, true, "host VCPU=2",
                  "host VCPU=2; other VCPU=2", 5, true, false, 1000, 9000 },
                { "as it was read", "host VCPU=2", 3, false, "host VCPU=2", "host VCPU=2", 3, true,
                  false, 1000, 1000 },
                { "created again after it was read", "host VCPU=2", 3, false, "host VCPU=2",
                  "host VCPU=2", 3, false, false, 1000, 1001 },
                { "created again where the clock is behind", "host VCPU=2", 3, false, "host VCPU=2",
                  "host VCPU=2", 3, false, false, 1000, 999 },
                { "as it was read, and claimed of another GPU", "host VCPU=2", 1, false,
                  "host VCPU=2; gpu VGPU=1", "host VCPU=2", 1, true, false, 1000, 1000 },
                { "the same, and no time told", "host VCPU=2", 1, false, "host VCPU=2; gpu VGPU=1",
                  "host VCPU=2", 1, false, false, 1000, 0 },
                { "written with less at the last moment", "", -1, true, "host VCPU=2; gpu VGPU=1",
                  "host VCPU=2", 1, false, false, 1000, 1000 + CLAIM_WRITE_LATE_SEC },
                { "no time told now", "", -1, true, "host VCPU=2", "host VCPU=2", 1, true, false,
                  1000, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                assert_ours(&cases[i]);
}

/* A claim of a guest, Placement's allocations of it, and the allocations that the claim must
 * have. */
#define CELLS                                                                         \
        "host DISK_GB=10 CUSTOM_LICENCE=4; cell0<host VCPU=8 PCPU=8 MEMORY_MB=4096; " \
        "cell1<host VCPU=8 MEMORY_MB=4096; host_a<host VGPU=3; host_b<host VGPU=2"

static void test_completes_a_claim(void **state)
{
        static const struct {
                const char *name;
                const char *claimed;
                const char *held;     /* allocations in Placement; "!": the agent wrote them */
                const char *device;   /* provider of a device that the guest has */
                bool cell;            /* the guest shows its cell */
                const char *expected; /* NULL: the claim does not change */
        } rows[] = {
                { "the same", "VCPU=2@cell0", "VCPU=2@cell0", NULL, false, NULL },
                { "Placement's cell, which the guest does not bind", "VCPU=2@cell0", "VCPU=2@cell1",
                  NULL, false, "VCPU=2@cell1" },
                { "in parts", "VCPU=3@cell0", "VCPU=2@cell1 VCPU=1@cell0", NULL, false,
                  "VCPU=1@cell0 VCPU=2@cell1" },
                { "the guest's cell, which it binds", "VCPU=2@cell0", "VCPU=2@cell1", NULL, true,
                  NULL },
                { "issue 31: another writer's larger amount", "VCPU=2@cell0", "VCPU=3@cell1", NULL,
                  false, "VCPU=3@cell1" },
                { "a larger amount that an ended claim left", "VCPU=2@cell0", "!VCPU=3@cell1", NULL,
                  false, NULL },
                { "a smaller amount", "VCPU=2@cell0", "VCPU=1@cell1", NULL, false, NULL },
                { "a larger amount of a guest that is bound", "VCPU=2@cell0", "VCPU=3@cell0", NULL,
                  true, "VCPU=3@cell0" },
                { "the same, in another cell", "VCPU=2@cell0", "VCPU=3@cell1", NULL, true,
                  "VCPU=2@cell0 VCPU=1@cell1" },
                { "issue 31: isolated emulator threads", "PCPU=2@cell0 MEMORY_MB=512@cell0",
                  "PCPU=3@cell0 MEMORY_MB=512@cell0", NULL, true,
                  "MEMORY_MB=512@cell0 PCPU=3@cell0" },
                { "CPUs of another class, before a reshape", "PCPU=2@cell0", "VCPU=4@cell0", NULL,
                  true, NULL },
                { "more than a claim can count", "VCPU=2@cell0", "VCPU=1@cell0 VCPU=3@host_a", NULL,
                  false, NULL },
                { "the guest's GPU", "VGPU=1@host_a", "VGPU=1@host_b", "host_a", false, NULL },
                { "a provider that is not here", "VCPU=2@cell0", "VCPU=2@elsewhere", NULL, false,
                  NULL },
                { "a provider that has no such class", "VCPU=2@cell0", "VCPU=2@host_a", NULL, false,
                  NULL },
                { "what no guest tells", "VCPU=2@cell0",
                  "VCPU=2@cell0 DISK_GB=5@host CUSTOM_LICENCE=1@host", NULL, false,
                  "CUSTOM_LICENCE=1@host DISK_GB=5@host VCPU=2@cell0" },
                { "but no device that it has not", "VCPU=2@cell0", "VCPU=2@cell0 VGPU=1@host_a",
                  NULL, false, NULL },
                { "a class of which the guest has nothing", "VCPU=2@cell0",
                  "VCPU=2@cell0 PCPU=1@cell0", NULL, false, "PCPU=1@cell0 VCPU=2@cell0" },
                { "nothing of another root", "VCPU=2@cell0", "VCPU=2@cell0 DISK_GB=5@store", NULL,
                  false, NULL },
                { "nothing of a sharing provider", "VCPU=2@cell0", "VCPU=2@cell0 DISK_GB=5@pool",
                  NULL, false, NULL },
                { "the part of this host beside that", "VCPU=2@cell0",
                  "VCPU=2@cell0 DISK_GB=5@pool DISK_GB=1@host", NULL, false,
                  "DISK_GB=1@host VCPU=2@cell0" },
        };
        _cleanup_(provider_tree_freep) ProviderTree *tree =
                make_tree(CELLS "; store DISK_GB=9; pool DISK_GB=9 +MISC_SHARES_VIA_AGGREGATE");
        const Uuid root = make_uuid("host");

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(allocations_freep) Allocations *consumers = NULL;
                _cleanup_(claim_freep) Claim *claim = audit_claim('g', rows[i].claimed);
                _cleanup_(consumer_freep) Consumer *share = NULL;
                bool is_ours = rows[i].held[0] == '!';
                char text[256] = "";
                int r;

                assert_int_equal(allocations_new(&consumers), 0);
                if (rows[i].device) {
                        const ClaimDevice device = { .provider = make_uuid(rows[i].device),
                                                     .suffix = (char *)"",
                                                     .name = (char *)"a",
                                                     .address = (char *)"",
                                                     .mdev_type = (char *)"t",
                                                     .mdev = make_mdev('1') };

                        assert_int_equal(claim_add_device(claim, &device), 0);
                }
                if (rows[i].cell) {
                        assert_int_equal(layout_reserve(&claim->layout, 1, 0), 0);
                        claim->layout.n_cells++;
                }
                r = claim_build_share(
                        claim, audit_consumer(consumers, 'g', "INSTANCE", rows[i].held + is_ours),
                        tree, &root, is_ours, &share);
                if (share)
                        audit_format(share, tree, text);
                if (r != (rows[i].expected ? 0 : 1) ||
                    (rows[i].expected && strcmp(text, rows[i].expected) != 0))
                        fail_msg("%s: %d %s", rows[i].name, r, text);
        }
}

TEST_MAIN(test_shares, test_is, test_leftover_is_distinguished_from_new_allocation,
          test_completes_a_claim)
