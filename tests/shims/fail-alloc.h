/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Makes allocations fail on demand. A test that uses it is linked with tests/shims/fail-alloc.c and
 * $(FAIL_ALLOC_WRAPS), which wrap calloc(), reallocarray(), strdup(), strndup() and
 * vasprintf() of the code under test. */

#include <stdbool.h>

/* The n-th allocation from now on fails (0: the next one), and only that one. */
void fail_alloc_at(unsigned n);

/* Stops failing. True when the failure was delivered. */
bool fail_alloc_done(void);

/* Does it ("r = f(…)") again and again, each time with the next one of its allocations failing, and
 * each time the block behind; ends with the time that all went well. at counts the failures. */
#define FAIL_ALLOC_EACH(at, does) for (at = 0; fail_alloc_at(at), (does), fail_alloc_done(); at++)
