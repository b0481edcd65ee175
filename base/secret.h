/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Allocates memory for secrets and for data that contains them: passwords, tokens, requests.
 *
 * This memory is in pages for secrets only, which core dumps omit unless MADV_DONTDUMP fails, and
 * is wiped when it is freed. Memory of the heap would be in core dumps, and would keep the secret
 * until another allocation overwrites it. Only a build with the address, memory or thread sanitizer
 * uses the heap, and wipes too. Any thread can call. The functions block only for a short lock, and
 * allocation can map pages. Memory from here must be freed by secret_free(). */

#include "base/macros.h"

/* Return memory, or NULL when out of memory or for a size that is too large. New memory is zeroed.
 * secret_resize() keeps the content; it wipes and frees the old memory if it moves, and allocates
 * if secret is NULL. If it returns NULL, the old memory stays valid. It never shrinks a block, and
 * does not zero bytes behind a size that was reduced before. secret_copy() copies a text with its
 * NUL. */
void *secret_alloc(size_t size);
void *secret_alloc_array(size_t n, size_t size);
void *secret_resize(void *secret, size_t size);
char *secret_copy(const char *text);

/* Returns a new text: before, followed by text. */
char *secret_join(const char *before, const char *text);

/* Wipes and frees. NULL is allowed. Returns NULL. */
void *secret_free(void *secret);

static inline void secret_freep(void *p)
{
        secret_free(*(void **)p);
}
