/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/guests/trouble.h"

#include <errno.h>

#include "claims/claims.h"
#include "tests/unit/test.h"

/* What each result of a claim database says of it that is open. */
static void test_results(void **state)
{
        static const struct {
                int result;
                bool lost, trouble;
        } cases[] = {
                { 0, false, false },       { CLAIM_E_BUSY, false, false },
                { -EINVAL, false, false }, { -ENOMEM, false, false },
                { -ESTALE, true, false },  { -EUCLEAN, true, false },
                { -ENOSPC, false, true },  { -EROFS, false, true },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                DatabaseTrouble trouble = { 0 };

                database_trouble_note(&trouble, "path", cases[i].result, &ERROR_NULL);
                if (database_is_lost(cases[i].result) != cases[i].lost ||
                    trouble.is_of_write != cases[i].trouble ||
                    (trouble.error.code != 0) != cases[i].trouble)
                        fail_msg("case %zu: \"%s\"", i, trouble.error.text);
        }
}

/* One that cannot be opened is no matter of a write; what ends it leaves nothing. */
static void test_begins_and_ends(void **state)
{
        DatabaseTrouble trouble = { 0 };
        Error words = ERROR_NULL;

        error_setf(&words, EACCES, "no way in");
        database_trouble_note(&trouble, "path", -ENOSPC, &ERROR_NULL);
        database_trouble_set(&trouble, "path", -EACCES, &words);
        assert_string_equal(trouble.error.text, "no way in");
        assert_false(trouble.is_of_write);
        database_trouble_set(&trouble, "path", CLAIM_E_BUSY, &words);
        assert_int_equal(trouble.error.code, EBUSY);
        database_trouble_set(&trouble, "path", 0, NULL);
        assert_int_equal(trouble.error.code, 0);
        assert_false(trouble.is_logged);
}

TEST_MAIN(test_results, test_begins_and_ends)
