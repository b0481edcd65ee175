/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Formats texts, cleans and measures UTF-8, and handles arrays of strings. Foreign text is handled
 * as bytes, so the functions accept any input. The function text_sanitize() replaces control
 * characters and all bytes outside of well-formed sequences (RFC 3629). The function
 * text_trim_cut() removes only an incomplete sequence at the end. The cleaning in text_sanitize()
 * works in place and byte for byte. It needs no memory, so it can clean error texts when memory is
 * short. Any thread; no state. */

#include "base/text.h"

#include <errno.h>
#include <string.h>

char *text_vformat(const char *format, va_list ap)
{
        char *text;

        return vasprintf(&text, format, ap) < 0 ? NULL : text;
}

char *text_format(const char *format, ...)
{
        char *text;
        va_list ap;

        va_start(ap, format);
        text = text_vformat(format, ap);
        va_end(ap);
        return text;
}

/* Frees the text after a failed write, because open_memstream() can set it even then. */
char *text_close(FILE *stream, char *const *text)
{
        bool failed = ferror(stream) != 0;

        failed = fclose(stream) != 0 || failed;
        if (failed)
                free(*text);
        return failed ? NULL : *text;
}

static bool is_continuation(unsigned char c)
{
        return (c & 0xc0) == 0x80;
}

/* Returns the length in bytes of a sequence with this first byte; 0: no sequence begins with it. */
static size_t length_from_lead(unsigned char lead)
{
        if (lead < 0x80)
                return 1;
        if (lead < 0xc2) /* a continuation, or the first byte of an overlong form */
                return 0;
        if (lead < 0xe0)
                return 2;
        if (lead < 0xf0)
                return 3;
        return lead < 0xf5 ? 4 : 0;
}

/* Checks the second byte, which reveals the wrong sequences that length_from_lead() accepts:
 * overlong forms, surrogates, and code points above U+10FFFF. */
static bool second_byte_valid(unsigned char lead, unsigned char second)
{
        switch (lead) {
        case 0xe0:
                return second >= 0xa0;
        case 0xed:
                return second < 0xa0;
        case 0xf0:
                return second >= 0x90;
        case 0xf4:
                return second < 0x90;
        default:
                return true;
        }
}

size_t text_sequence_length(const char *text)
{
        const unsigned char *c = (const unsigned char *)text;
        size_t n = length_from_lead(c[0]);

        for (size_t i = 1; i < n; i++)
                if (!is_continuation(c[i])) /* the final NUL is no continuation */
                        return 0;
        if (n > 1 && !second_byte_valid(c[0], c[1]))
                return 0;
        return n;
}

/* Checks for C0, DEL, or C1 in its two bytes. */
static bool is_control(const unsigned char *text)
{
        return text[0] < 0x20 || text[0] == 0x7f || (text[0] == 0xc2 && text[1] < 0xa0);
}

void text_sanitize(char *text, char replacement)
{
        unsigned char *c = (unsigned char *)text;

        while (*c) {
                size_t n = text_sequence_length((const char *)c);

                if (n > 0 && !is_control(c)) {
                        c += n;
                        continue;
                }
                for (n = MAX(n, 1); n > 0; n--)
                        *c++ = (unsigned char)replacement;
        }
}

/* Goes back over at most three continuations to a first byte. Cuts the text there if the sequence
 * needs more bytes than the text has. */
void text_trim_cut(char *text)
{
        size_t n = strlen(text), lead = n;

        while (lead > 0 && n - lead < 3 && is_continuation((unsigned char)text[lead - 1]))
                lead--;
        if (lead > 0 && length_from_lead((unsigned char)text[lead - 1]) > n - lead + 1)
                text[lead - 1] = '\0';
}

int text_order(const void *a, const void *b)
{
        return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Counts the bytes that are no continuation: each begins a character. */
size_t text_count_characters(const char *text)
{
        size_t n = 0;

        for (; *text; text++)
                if (!is_continuation((unsigned char)*text))
                        n++;
        return n;
}

char *text_free_secret(char *secret)
{
        if (secret)
                explicit_bzero(secret, strlen(secret));
        free(secret);
        return NULL;
}

char **strings_free(char **strings)
{
        for (char **s = strings; s && *s; s++)
                free(*s);
        free(strings);
        return NULL;
}

/* Keeps NULL behind the last copy, so that a partial copy can be freed like a full one. */
int strings_copy(char *const strings[], char ***ret)
{
        _cleanup_(strings_freep) char **copy = NULL;
        size_t n = 0;

        while (strings && strings[n])
                n++;
        copy = calloc(n + 1, sizeof(char *));
        if (!copy)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                if (!(copy[i] = strdup(strings[i])))
                        return -ENOMEM;
        *ret = TAKE_PTR(copy);
        return 0;
}
