/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "claims/claim/claim.h"
#include "tests/fixtures/claims.h"
#include "tests/unit/test.h"

static void test_add(void **state)
{
        _cleanup_(claim_freep) Claim *claim = NULL;
        Uuid a = make_uuid("a"), b = make_uuid("b");
        const Uuid *low = uuid_order(&a, &b) < 0 ? &a : &b;

        assert_int_equal(claim_new(&claim), 0);
        assert_string_equal(claim->end_reason, "");
        assert_int_equal(claim_add(claim, &a, "a", "_Z", "VGPU", 2), 0);
        assert_int_equal(claim_add(claim, &b, "b", "", "VCPU", 1), 0);
        assert_int_equal(claim_add(claim, &a, "a", "", "VGPU", 3), 0);
        assert_int_equal(claim_add(claim, &a, "a", "", "VCPU", 4), 0);
        assert_int_equal(claim->n_allocations, 2);
        assert_true(uuid_equal(&claim->allocations[0].provider, low));
        assert_string_equal(claim->provider_names[0], low == &a ? "a" : "b");
        assert_int_equal(claim_sum(claim, "VGPU"), 5);
        assert_int_equal(claim_sum(claim, "VCPU"), 5);
        assert_int_equal(claim_sum(claim, "DISK_GB"), 0);
        assert_int_equal(claim->mappings.n_items, 3);
        assert_string_equal(claim->mappings.items[0].suffix, "");
        assert_true(uuid_equal(&claim->mappings.items[0].provider, low));
        assert_string_equal(claim->mappings.items[2].suffix, "_Z");
        assert_true(uuid_equal(&claim->mappings.items[2].provider, &a));
        assert_int_equal(claim_add(claim, &a, "a", "", "VGPU", UINT64_MAX), -EOVERFLOW);
        assert_int_equal(claim_sum(claim, "VGPU"), 5);
}

static void test_list(void **state)
{
        ClaimList list = { 0 };

        for (int i = 0; i < 20; i++) {
                Claim *claim;

                assert_int_equal(claim_new(&claim), 0);
                claim->id = i;
                assert_int_equal(claim_list_add(&list, claim), 0);
        }
        assert_int_equal(list.n_claims, 20);
        assert_int_equal(list.claims[19]->id, 19);
        claim_list_done(&list);
        assert_null(list.claims);
        claim_list_done(&list);
        assert_null(claim_free(NULL));
}

static void test_states_as_text(void **state)
{
        assert_string_equal(claim_state_to_text(CLAIM_STATE_CONFIRMED), "confirmed");
        assert_string_equal(claim_state_to_text(_CLAIM_STATE_MAX), "unknown");
        assert_string_equal(claim_state_to_text(_CLAIM_STATE_INVALID), "unknown");
}

TEST_MAIN(test_add, test_list, test_states_as_text)
