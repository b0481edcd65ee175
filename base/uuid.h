/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A UUID as a value: its canonical text in lower case. Placement, libvirt, SQLite and D-Bus use the
 * text too, so nothing is converted. The zero value means "no uuid". */

#include <string.h>

#include "base/macros.h"

#define UUID_TEXT_LENGTH 36

typedef struct Uuid {
        char text[UUID_TEXT_LENGTH + 1];
} Uuid;

#define UUID_NULL ((Uuid){ "" })

/* Parses a uuid with dashes (8-4-4-4-12) in any case, and nothing before or behind it. -EINVAL,
 * also for NULL, leaves *ret unchanged. */
int uuid_from_text(const char *text, Uuid *ret);

/* Makes a uuid from its sixteen bytes, in the order of the text. */
Uuid uuid_from_bytes(const unsigned char bytes[static 16]);

/* Makes a random uuid (version 4). */
Uuid uuid_make_random(void);

/* Makes a uuid of version 5 (RFC 9562, 5.5): the same parent and name give the same uuid on every
 * host and at any time. */
Uuid uuid_make_child(const Uuid *parent, const char *name);

static inline bool uuid_empty(const Uuid *uuid)
{
        return uuid->text[0] == '\0';
}

static inline int uuid_order(const Uuid *a, const Uuid *b)
{
        return strcmp(a->text, b->text);
}

static inline bool uuid_equal(const Uuid *a, const Uuid *b)
{
        return uuid_order(a, b) == 0;
}
