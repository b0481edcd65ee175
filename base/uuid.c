/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/uuid.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <uuid/uuid.h>

int uuid_from_text(const char *text, Uuid *ret)
{
        /* Maps a hexadecimal digit to its lower case, and every other byte to NUL. */
        static const char digits[UCHAR_MAX + 1] = {
                ['0'] = '0', ['1'] = '1', ['2'] = '2', ['3'] = '3', ['4'] = '4', ['5'] = '5',
                ['6'] = '6', ['7'] = '7', ['8'] = '8', ['9'] = '9', ['a'] = 'a', ['b'] = 'b',
                ['c'] = 'c', ['d'] = 'd', ['e'] = 'e', ['f'] = 'f', ['A'] = 'a', ['B'] = 'b',
                ['C'] = 'c', ['D'] = 'd', ['E'] = 'e', ['F'] = 'f',
        };
        Uuid uuid = UUID_NULL;

        if (!text)
                return -EINVAL;
        for (size_t i = 0; i < UUID_TEXT_LENGTH; i++) {
                bool dash = i == 8 || i == 13 || i == 18 || i == 23;

                uuid.text[i] = dash ? '-' : digits[(unsigned char)text[i]];
                if (dash ? text[i] != '-' : uuid.text[i] == '\0')
                        return -EINVAL;
        }
        /* A text with more characters is no uuid. */
        if (text[UUID_TEXT_LENGTH] != '\0')
                return -EINVAL;
        *ret = uuid;
        return 0;
}

Uuid uuid_from_bytes(const unsigned char bytes[static 16])
{
        Uuid uuid;

        uuid_unparse_lower(bytes, uuid.text);
        return uuid;
}

Uuid uuid_make_random(void)
{
        uuid_t bytes;

        uuid_generate_random(bytes);
        return uuid_from_bytes(bytes);
}

/* Uses the nil uuid for a parent that is no uuid, so that a child can always be made. */
Uuid uuid_make_child(const Uuid *parent, const char *name)
{
        uuid_t space, bytes;

        if (uuid_parse(parent->text, space) < 0)
                uuid_clear(space);
        uuid_generate_sha1(bytes, space, name, strlen(name));
        return uuid_from_bytes(bytes);
}
