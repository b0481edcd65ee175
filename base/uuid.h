/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A UUID as a value: its canonical lower-case text. Placement, libvirt, SQLite and D-Bus all speak
 * the text, so nothing is converted on the way. The zero value is "no uuid". */

#include <string.h>

#include "base/macros.h"

#define UUID_TEXT_LENGTH 36

typedef struct Uuid {
        char text[UUID_TEXT_LENGTH + 1];
} Uuid;

#define UUID_NULL ((Uuid){ "" })

/* Parses any case, with dashes (8-4-4-4-12). -EINVAL, *ret untouched, when it is something else. */
int uuid_from_text(const char *text, Uuid *ret);

/* Of its sixteen bytes, the first of the text first. */
Uuid uuid_from_bytes(const unsigned char bytes[static 16]);

/* A random one (version 4). */
Uuid uuid_make_random(void);

/* Version 5: the same parent and name give the same uuid on every host and at every time (RFC
 * 9562, 5.5). */
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
