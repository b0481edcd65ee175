/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/json-plain.h"

#include <stdlib.h>
#include <string.h>

#include "base/macros.h"

#define DEPTH_MAX  16
#define DIGITS_MAX 18 /* of a number that fits json_int_t for sure */

typedef struct Reader {
        const char *at, *end;
        unsigned depth;
} Reader;

static json_t *read_value(Reader *reader);

/* The next character that is no blank; '\0' at the end. */
static char peek(Reader *reader)
{
        while (reader->at < reader->end && strchr(" \n\r\t", *reader->at) && *reader->at != '\0')
                reader->at++;
        return reader->at < reader->end ? *reader->at : '\0';
}

static bool take(Reader *reader, char wanted)
{
        if (peek(reader) != wanted)
                return false;
        reader->at++;
        return true;
}

/* The text between two quotes, borrowed. */
static const char *read_text(Reader *reader, size_t *ret_n)
{
        const char *begin;

        if (!take(reader, '"'))
                return NULL;
        begin = reader->at;
        for (; reader->at < reader->end && *reader->at != '"'; reader->at++)
                if (*reader->at < ' ' || *reader->at > '~' || *reader->at == '\\')
                        return NULL;
        if (reader->at == reader->end)
                return NULL;
        *ret_n = (size_t)(reader->at++ - begin);
        return begin;
}

static json_t *read_string(Reader *reader)
{
        size_t n;
        const char *text = read_text(reader, &n);

        return text ? json_stringn_nocheck(text, n) : NULL;
}

static size_t skip_digits(Reader *reader)
{
        const char *begin = reader->at;

        while (reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9')
                reader->at++;
        return (size_t)(reader->at - begin);
}

static json_t *read_number(Reader *reader)
{
        const char *begin = reader->at;
        size_t n = skip_digits(reader), n_fraction = 0;
        char text[2 * DIGITS_MAX + 2], *end;
        bool whole = reader->at == reader->end || *reader->at != '.';
        json_t *json;

        if (!whole) {
                reader->at++;
                n_fraction = skip_digits(reader);
        }
        if (n == 0 || n > DIGITS_MAX || (n > 1 && *begin == '0') || n_fraction > DIGITS_MAX ||
            (!whole && n_fraction == 0))
                return NULL;
        snprintf(text, sizeof(text), "%.*s", (int)(reader->at - begin), begin);
        json = whole ? json_integer(strtoll(text, &end, 10)) : json_real(strtod(text, &end));
        if (*end == '\0')
                return json;
        json_decref(json);
        return NULL;
}

static json_t *read_word(Reader *reader, const char *word, json_t *json)
{
        size_t n = strlen(word);

        if ((size_t)(reader->end - reader->at) < n || memcmp(reader->at, word, n) != 0)
                return NULL;
        reader->at += n;
        return json;
}

/* False when the name is there already, too. Takes value over. */
static bool add_member(json_t *object, const char *name, size_t n, json_t *value)
{
        size_t n_before = json_object_size(object);

        return json_object_setn_new_nocheck(object, name, n, value) == 0 &&
               json_object_size(object) > n_before;
}

static bool read_members(Reader *reader, json_t *object)
{
        if (take(reader, '}'))
                return true;
        do {
                size_t n;
                const char *name = read_text(reader, &n);

                if (!name || !take(reader, ':') || !add_member(object, name, n, read_value(reader)))
                        return false;
        } while (take(reader, ','));
        return take(reader, '}');
}

static bool read_items(Reader *reader, json_t *array)
{
        if (take(reader, ']'))
                return true;
        do {
                if (json_array_append_new(array, read_value(reader)) < 0)
                        return false;
        } while (take(reader, ','));
        return take(reader, ']');
}

static json_t *read_container(Reader *reader)
{
        bool is_object = *reader->at++ == '{';
        json_t *json = is_object ? json_object() : json_array();
        bool well = json && reader->depth < DEPTH_MAX;

        reader->depth++;
        if (well)
                well = is_object ? read_members(reader, json) : read_items(reader, json);
        reader->depth--;
        if (well)
                return json;
        json_decref(json);
        return NULL;
}

static json_t *read_value(Reader *reader)
{
        switch (peek(reader)) {
        case '{':
        case '[':
                return read_container(reader);
        case '"':
                return read_string(reader);
        case 't':
                return read_word(reader, "true", json_true());
        case 'f':
                return read_word(reader, "false", json_false());
        case 'n':
                return read_word(reader, "null", json_null());
        default:
                return read_number(reader);
        }
}

json_t *json_parse_plain(const char *text, size_t n)
{
        Reader reader = { .at = text, .end = text + n };
        char first = peek(&reader);
        json_t *json = first == '{' || first == '[' ? read_container(&reader) : NULL;

        if (json && peek(&reader) == '\0' && reader.at == reader.end)
                return json;
        json_decref(json);
        return NULL;
}
