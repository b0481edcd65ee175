/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Includes cmocka with the headers that it needs, for every unit test. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/macros.h"

/* names: "test_a, test_b", as many as there are functions. */
static inline int test_run(const CMUnitTestFunction *functions, size_t n_functions,
                           const char *names, CMFixtureFunction setup, CMFixtureFunction teardown)
{
        struct CMUnitTest *tests = calloc(n_functions, sizeof(struct CMUnitTest));
        char *copy = strdup(names), *save = NULL;
        int r = EXIT_FAILURE;

        for (size_t i = 0; tests && copy && i < n_functions; i++)
                tests[i] = (struct CMUnitTest){ .name = strtok_r(i == 0 ? copy : NULL, ", ", &save),
                                                .test_func = functions[i],
                                                .setup_func = setup,
                                                .teardown_func = teardown };
        if (tests && copy)
                r = _cmocka_run_group_tests("tests", tests, n_functions, NULL, NULL);
        free(tests);
        free(copy);
        return r;
}

/* The main() of a test: runs these functions in this order, each between setup and teardown (NULL:
 * none), all of them after a statement. */
#define TEST_MAIN_AFTER(statement, setup, teardown, ...)                                          \
        int main(void)                                                                            \
        {                                                                                         \
                static const CMUnitTestFunction functions[] = { __VA_ARGS__ };                    \
                                                                                                  \
                statement;                                                                        \
                return test_run(functions, ARRAY_SIZE(functions), #__VA_ARGS__, setup, teardown); \
        }
#define TEST_MAIN_WITH(setup, teardown, ...) TEST_MAIN_AFTER((void)0, setup, teardown, __VA_ARGS__)
#define TEST_MAIN(...)                       TEST_MAIN_WITH(NULL, NULL, __VA_ARGS__)
