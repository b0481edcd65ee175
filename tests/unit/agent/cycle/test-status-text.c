/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/cycle/status-text.h"
#include "tests/unit/test.h"

static void test_table(void **state)
{
        static const struct {
                SyncState sync;
                const char *sync_error, *hypervisor_error, *claim_error, *debt_trouble;
                ClaimDebts debts;
                const char *expected;
        } cases[] = {
                { SYNC_SYNCED,
                  "",
                  "",
                  "",
                  "",
                  { 0 },
                  "Placement is equal to the host; 3 provider(s), 2 claim(s)" },
                { SYNC_STANDALONE, "", "", "", "", { 0 }, "standalone; 3 provider(s), 2 claim(s)" },
                { SYNC_OFFLINE,
                  "no route",
                  "",
                  "",
                  "",
                  { 0 },
                  "Placement cannot be used; 3 provider(s), 2 claim(s). no route" },
                /* The trouble that is nearest to the guests comes first. */
                { SYNC_OFFLINE,
                  "no route",
                  "no libvirtd",
                  "disk full",
                  "",
                  { 0 },
                  "Placement cannot be used; 3 provider(s), 2 claim(s). no libvirtd" },
                { SYNC_STALE,
                  "refused",
                  "",
                  "disk full",
                  "",
                  { 0 },
                  "Placement is not equal to the host; 3 provider(s), 2 claim(s). disk full" },
                { SYNC_SYNCED,
                  "",
                  "",
                  "",
                  "",
                  { .n_claims = 1, .n_departures = 2, .n_handovers = 3 },
                  "Placement is equal to the host; 3 provider(s), 2 claim(s), 6 not told yet" },
                { SYNC_SYNCED,
                  "",
                  "",
                  "",
                  "403",
                  { .n_claims = 1 },
                  "Placement is equal to the host; 3 provider(s), 2 claim(s), 1 not told yet. "
                  "403" },
                { SYNC_OFFLINE,
                  "no route",
                  "",
                  "",
                  "403",
                  { .n_departures = 1 },
                  "Placement cannot be used; 3 provider(s), 2 claim(s), 1 not told yet. no route" },
                /* Nothing is owed any more: the claim ended otherwise. */
                { SYNC_SYNCED,
                  "",
                  "",
                  "",
                  "403",
                  { 0 },
                  "Placement is equal to the host; 3 provider(s), 2 claim(s)" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                TrackerStatus status = { .sync_state = cases[i].sync };
                Error claim_error = ERROR_NULL;
                char text[512];

                if (cases[i].sync_error[0])
                        error_setf(&status.sync_error, EIO, "%s", cases[i].sync_error);
                if (cases[i].hypervisor_error[0])
                        error_setf(&status.hypervisor_error, EIO, "%s", cases[i].hypervisor_error);
                if (cases[i].claim_error[0])
                        error_setf(&claim_error, EIO, "%s", cases[i].claim_error);
                const StatusFacts facts = { .status = &status,
                                            .claim_error = &claim_error,
                                            .n_providers = 3,
                                            .n_claims = 2,
                                            .debts = cases[i].debts,
                                            .debt_trouble = cases[i].debt_trouble };

                assert_string_equal(status_text(&facts, text, sizeof(text)), cases[i].expected);
        }
}

static void test_a_short_buffer_is_not_overrun(void **state)
{
        TrackerStatus status = { .sync_state = SYNC_SYNCED };
        Error none = ERROR_NULL;
        const StatusFacts facts = { .status = &status, .claim_error = &none, .debt_trouble = "" };
        char text[8];

        assert_int_equal(strlen(status_text(&facts, text, sizeof(text))), 7);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_table),
                cmocka_unit_test(test_a_short_buffer_is_not_overrun),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
