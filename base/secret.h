/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Memory for secrets, and for what carries them: passwords, tokens, requests.
 *
 * It lies in pages of its own that no core dump has (MADV_DONTDUMP), and is wiped when it is freed:
 * what the heap is given back keeps what was in it until somebody else writes there. Any thread may
 * call; nothing blocks but for the moment of a lock. What was allocated here is freed here. */

#include "base/macros.h"

/* NULL: out of memory. secret_alloc_array() gives zeros; a NULL secret is resized from nothing. */
void *secret_alloc(size_t size);
void *secret_alloc_array(size_t n, size_t size);
void *secret_resize(void *secret, size_t size);
char *secret_copy(const char *text);

/* A copy of before and text behind one another. */
char *secret_join(const char *before, const char *text);

/* NULL is allowed; returns NULL. */
void *secret_free(void *secret);

static inline void secret_freep(void *p)
{
        secret_free(*(void **)p);
}
