/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Makes allocations fail on demand. A test that uses it is linked with tests/shims/fail-alloc.c and
 * $(FAIL_ALLOC_WRAPS), which wrap calloc(), reallocarray(), strdup(), strndup() and
 * vasprintf() of the code under test. */

#include <stdbool.h>

/* Makes the n-th allocation from now on fail (0: the next one), and no other. */
void fail_alloc_at(unsigned n);

/* Stops failing. Returns true if the failure was delivered. */
bool fail_alloc_done(void);

/* Runs "does" ("r = f(…)") and the block behind it again and again. Each time, the next allocation
 * of "does" fails. The last time, none fails. "at" counts the failures. */
#define FAIL_ALLOC_EACH(at, does) for (at = 0; fail_alloc_at(at), (does), fail_alloc_done(); at++)
