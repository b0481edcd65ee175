/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Many inventories in one reshape without consumers. */

#include "tests/fixtures/executor.h"

#define BATCH_MIRROR  "host VCPU=1 | a | b | c"
#define BATCH_DESIRED "host VCPU=2 +HW_A | a VGPU=1 | b VGPU=1 | c VGPU=1"

/* Many inventories in one request; what each generation is after it, is known. */
static void test_batch(void **state)
{
        _cleanup_(run_done) Run run = { 0 };

        fake_http_begin(SCRIPT(ANSWER("/reshaper", 204, NULL)), NAMES);
        run_begin_with(&run, BATCH_MIRROR, BATCH_DESIRED, NULL, 1, true);
        run_end(&run);
        assert_int_equal(run.result, REPORT_DONE);
        assert_string_equal(fake_http_log(), "POST /reshaper; PUT /resource_providers/host/traits");
        assert_non_null(strstr(fake_http_find_body("/reshaper"), "\"allocations\":{}"));
        assert_int_equal(generation_of(run.mirror, "a"), 12);
        assert_non_null(provider_find_inventory(provider_of(run.mirror, "c"), "VGPU"));
        assert_false(run.manners.batch_failed);
        assert_int_equal(run.manners.reshaper, RESHAPER_ALLOWED);
}

/* Whatever becomes of it, the caller hears of it and plans again, with one or without. */
static void test_batch_meets_trouble(void **state)
{
        static const struct {
                FakeAnswer answer;
                int outcome;
                bool known; /* Placement still has what the mirror has */
                ReshaperAccess access;
                bool raced; /* it is a batch again */
        } cases[] = {
                { ANSWER("/reshaper", 403, ""), REPORT_E_CONFLICT, true, RESHAPER_FORBIDDEN,
                  false },
                { FAULT("/reshaper", 409, "inventory.inuse"), REPORT_E_CONFLICT, true,
                  RESHAPER_ALLOWED, false },
                { FAULT("/reshaper", 400, "undefined_code"), REPORT_E_CONFLICT, true,
                  RESHAPER_ALLOWED, false },
                { FAULT("/reshaper", 409, "concurrent_update"), REPORT_E_CONFLICT, false,
                  RESHAPER_ALLOWED, true },
                { NO_ANSWER("/reshaper", HTTP_E_UNREACHABLE), REPORT_E_UNREACHABLE, false,
                  RESHAPER_ALLOWED, false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(run_done) Run run = { .manners.reshaper = RESHAPER_ALLOWED };

                fake_http_begin(SCRIPT(cases[i].answer), NAMES);
                run_begin_with(&run, BATCH_MIRROR, BATCH_DESIRED, NULL, 2, true);
                run_end(&run);
                if (run.result != cases[i].outcome || run.manners.reshaper != cases[i].access ||
                    mirror_has_stale(run.mirror) == cases[i].known ||
                    run.manners.batch_failed == cases[i].raced)
                        fail_msg("case %zu: %d, %s", i, run.result, run.error.text);
                /* the list tells what moved */
                assert_int_equal(generation_of(run.mirror, "a"), 10);
        }
}

/* A provider that cannot be made holds the batch back, and that is said. */
static void test_batch_behind_a_failed_creation(void **state)
{
        _cleanup_(run_done) Run run = { 0 };

        fake_http_begin(SCRIPT(FAULT("POST /resource_providers", 400, "bad")), NAMES);
        run_begin_with(&run, "host VCPU=1 | a | b", "host VCPU=2 | a VGPU=1 | b VGPU=1 | c VGPU=1",
                       NULL, 2, true);
        run_end(&run);
        assert_int_equal(run.result, REPORT_E_REFUSED);
        assert_int_equal(fake_http_count("/reshaper"), 0);
        assert_true(run.manners.batch_failed);
}

TEST_MAIN(test_batch, test_batch_meets_trouble, test_batch_behind_a_failed_creation)
