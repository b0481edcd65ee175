/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/uuid.h"

#include <errno.h>
#include <string.h>
#include <uuid/uuid.h>

int uuid_from_text(const char *text, Uuid *ret)
{
        uuid_t bytes;
        Uuid uuid;

        /* uuid_parse() reads no further than 36 characters on some versions: check the length here.
         */
        if (!text || strnlen(text, UUID_TEXT_LENGTH + 1) != UUID_TEXT_LENGTH ||
            uuid_parse(text, bytes) < 0)
                return -EINVAL;
        uuid_unparse_lower(bytes, uuid.text);
        *ret = uuid;
        return 0;
}

Uuid uuid_make_random(void)
{
        uuid_t bytes;
        Uuid uuid;

        uuid_generate_random(bytes);
        uuid_unparse_lower(bytes, uuid.text);
        return uuid;
}

Uuid uuid_make_child(const Uuid *parent, const char *name)
{
        uuid_t space, bytes;
        Uuid uuid;

        if (uuid_parse(parent->text, space) < 0)
                uuid_clear(space);
        uuid_generate_sha1(bytes, space, name, strlen(name));
        uuid_unparse_lower(bytes, uuid.text);
        return uuid;
}

bool uuid_empty(const Uuid *uuid)
{
        return uuid->text[0] == '\0';
}

bool uuid_equal(const Uuid *a, const Uuid *b)
{
        return strcmp(a->text, b->text) == 0;
}

int uuid_order(const Uuid *a, const Uuid *b)
{
        return strcmp(a->text, b->text);
}
