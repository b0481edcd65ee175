/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/placement/outcome.h"

#include "tests/unit/test.h"

static void test_texts(void **state)
{
        for (int i = 0; i < _REPORT_OUTCOME_MAX; i++) {
                assert_non_null(report_outcome_to_text(i));
                for (int j = 0; j < i; j++)
                        assert_string_not_equal(report_outcome_to_text(i),
                                                report_outcome_to_text(j));
        }
        assert_string_equal(report_outcome_to_text(REPORT_DONE), "done");
        assert_string_equal(report_outcome_to_text(REPORT_E_IN_USE), "in-use");
        assert_string_equal(report_outcome_to_text(-ENOMEM), "failed");
        assert_string_equal(report_outcome_to_text(_REPORT_OUTCOME_MAX), "unknown");
}

static void test_worse_outcome(void **state)
{
        static const struct {
                int a, b, worse;
        } cases[] = {
                { REPORT_DONE, REPORT_DONE, REPORT_DONE },
                { REPORT_DONE, REPORT_E_IN_USE, REPORT_E_IN_USE },
                { REPORT_E_REFUSED, REPORT_E_IN_USE, REPORT_E_REFUSED },
                /* An outcome that needs another attempt is worse than one that does not. */
                { REPORT_E_REFUSED, REPORT_E_CONFLICT, REPORT_E_CONFLICT },
                { REPORT_E_CONFLICT, REPORT_E_DUPLICATE_NAME, REPORT_E_CONFLICT },
                { REPORT_E_CONFLICT, REPORT_E_UNREACHABLE, REPORT_E_UNREACHABLE },
                { REPORT_E_UNREACHABLE, -ENOMEM, -ENOMEM },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                assert_int_equal(report_outcome_worse(cases[i].a, cases[i].b), cases[i].worse);
                assert_int_equal(report_outcome_worse(cases[i].b, cases[i].a), cases[i].worse);
        }
}

static void test_fatal(void **state)
{
        static const int fatal[] = { REPORT_E_UNREACHABLE,
                                     REPORT_E_UNAVAILABLE,
                                     REPORT_E_UNAUTHORIZED,
                                     REPORT_E_FORBIDDEN,
                                     REPORT_E_UNREADABLE,
                                     REPORT_E_TOO_OLD,
                                     -ENOMEM };
        static const int not_fatal[] = { REPORT_DONE, REPORT_E_CONFLICT, REPORT_E_IN_USE,
                                         REPORT_E_DUPLICATE_NAME, REPORT_E_REFUSED };

        for (size_t i = 0; i < ARRAY_SIZE(fatal); i++)
                assert_true(report_outcome_is_fatal(fatal[i]));
        for (size_t i = 0; i < ARRAY_SIZE(not_fatal); i++)
                assert_false(report_outcome_is_fatal(not_fatal[i]));
}

static void test_write(void **state)
{
        static const struct {
                int result, status;
                ReportWritten written;
        } cases[] = {
                { REPORT_DONE, 204, REPORT_WRITTEN },
                { REPORT_E_CONFLICT, 409, REPORT_WRITTEN_RACED },
                { REPORT_E_REFUSED, 409, REPORT_WRITTEN_NO_CAPACITY },
                { REPORT_E_REFUSED, 400, REPORT_WRITTEN_REFUSED },
                { REPORT_E_UNAUTHORIZED, 401, REPORT_WRITTEN_REFUSED },
                { REPORT_E_UNAVAILABLE, 408, REPORT_WRITTEN_UNKNOWN },
                { REPORT_E_UNAVAILABLE, 500, REPORT_WRITTEN_UNKNOWN },
                { REPORT_E_UNAVAILABLE, 503, REPORT_WRITTEN_UNKNOWN },
                { REPORT_E_UNREACHABLE, 0, REPORT_WRITTEN_UNKNOWN },
                /* An answer that could not be read. */
                { REPORT_E_UNAVAILABLE, 200, REPORT_WRITTEN_UNKNOWN },
                { -ENOMEM, 204, REPORT_WRITTEN_UNKNOWN },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                if (report_outcome_of_write(cases[i].result, cases[i].status) != cases[i].written)
                        fail_msg("case %zu", i);
}

static void test_outcomes_of_an_outage(void **state)
{
        static const struct {
                int result;
                bool away;
        } cases[] = {
                { REPORT_DONE, false },         { REPORT_E_UNREACHABLE, true },
                { REPORT_E_UNAVAILABLE, true }, { REPORT_E_UNAUTHORIZED, true },
                { REPORT_E_UNREADABLE, true },  { REPORT_E_FORBIDDEN, false },
                { REPORT_E_REFUSED, false },    { REPORT_E_CONFLICT, false },
                { REPORT_E_TOO_OLD, false },    { -ENOMEM, false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                if (report_outcome_is_away(cases[i].result) != cases[i].away)
                        fail_msg("case %zu", i);
}

TEST_MAIN(test_texts, test_worse_outcome, test_fatal, test_write, test_outcomes_of_an_outage)
