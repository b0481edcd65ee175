/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/guests/claim-share.h"

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
                const char *left; /* NULL: nothing was there to be removed */
        } cases[] = {
                { "", NULL, false, NULL },
                { "host VCPU=2", NULL, true, "" },
                { "gpu VGPU=1", NULL, true, "" },
                { "other VCPU=2", NULL, false, NULL },
                { "host VCPU=2; gpu VGPU=1; other VCPU=2", NULL, true, "other VCPU=2" },
                /* A sharing provider's part goes with the claim that wrote it, and with no other.
                 */
                { "host VCPU=2; shared DISK_GB=5", NULL, true, "shared DISK_GB=5" },
                { "host VCPU=2; shared DISK_GB=5", "shared DISK_GB=5", true, "" },
                /* Disk space alone names no other host. */
                { "shared DISK_GB=5", NULL, true, NULL },
                { "shared DISK_GB=5", "shared DISK_GB=5", true, "" },
                { "shared DISK_GB=5; other VCPU=2", NULL, false, NULL },
                { "shared DISK_GB=5; unknown VCPU=2", NULL, false, NULL },
                /* A provider that the host lost since. */
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
        const char *before; /* as read or, once reported, as written */
        int64_t before_generation;
        bool written;
        const char *claim; /* NULL: not known any more */
        const char *now;
        int64_t generation;
        bool ours;
        bool unsure;
        uint64_t before_sec, now_sec; /* when Placement says that the consumer was written; 0: it
                                         does not */
} OursCase;

static void assert_ours(const OursCase *one)
{
        _cleanup_(consumer_freep) Consumer *before = make_holding("consumer", one->before),
                                           *now = make_holding("consumer", one->now);
        _cleanup_(claim_freep) Claim *claim = one->claim ? make_claim(one->claim) : NULL;
        /* The host's own tree alone, as the claims know it. */
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

/* What was left of a claim, or what somebody put there since. */
static void test_ours(void **state)
{
        static const OursCase cases[] = {
                { "written, and nobody wrote since", "", -1, true, "host VCPU=2", "host VCPU=2", 1,
                  true, false, 0, 0 },
                { "beside another host's share", "other VCPU=2", 4, true, "host VCPU=2",
                  "host VCPU=2; other VCPU=2", 5, true, false, 0, 0 },
                { "read, and nobody wrote since", "host VCPU=2", 3, false, "host VCPU=2",
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
                { "what is shared is nobody's elsewhere", "", -1, true, "host VCPU=2",
                  "host VCPU=2; shared DISK_GB=5", 2, false, false, 0, 0 },
                { "the claim is not known any more", "", -1, true, NULL, "host VCPU=2", 1, true,
                  false, 0, 0 },
                { "the same, written since", "", -1, true, NULL, "host VCPU=2", 2, false, false, 0,
                  0 },
                /* A consumer that was deleted and made anew counts from the start. */
                { "made anew, written as often", "other VCPU=2", 2, true, "host VCPU=2",
                  "host VCPU=2; far VCPU=2", 1, false, false, 0, 0 },
                { "made anew with what it was before ours", "other VCPU=2", 4, true, "host VCPU=2",
                  "host VCPU=2", 4, false, false, 0, 0 },
                { "not known whether it was written", "other VCPU=2", 4, true, "host VCPU=2",
                  "host VCPU=2", 4, true, true, 0, 0 },
                { "written at once", "", -1, true, "host VCPU=2", "host VCPU=2", 1, true, false,
                  1000, 1000 },
                { "written as late as it can be", "", -1, true, "host VCPU=2", "host VCPU=2", 1,
                  true, false, 1000, 1000 + CLAIM_WRITE_LATE_SEC },
                { "made anew behind that", "", -1, true, "host VCPU=2", "host VCPU=2", 1, false,
                  false, 1000, 1001 + CLAIM_WRITE_LATE_SEC },
                { "the same, and the claim is not known any more", "", -1, true, NULL,
                  "host VCPU=2", 1, false, false, 1000, 9000 },
                { "evacuated much later", "", -1, true, "host VCPU=2", "host VCPU=2; far VCPU=2", 2,
                  true, false, 1000, 9000 },
                { "who held something tells no time of now", "other VCPU=2", 4, true, "host VCPU=2",
                  "host VCPU=2; other VCPU=2", 5, true, false, 1000, 9000 },
                { "as it was read", "host VCPU=2", 3, false, "host VCPU=2", "host VCPU=2", 3, true,
                  false, 1000, 1000 },
                { "made anew after it was read", "host VCPU=2", 3, false, "host VCPU=2",
                  "host VCPU=2", 3, false, false, 1000, 1001 },
                { "made anew where the clock is behind", "host VCPU=2", 3, false, "host VCPU=2",
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

TEST_MAIN(test_shares, test_is, test_ours)
