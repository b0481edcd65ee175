/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A pattern is looked through once before PCRE2 compiles it: what Python does not know is refused,
 * and "{,n}", which PCRE2 takes as it stands, is written as "{0,n}". */

#include "drivers/host/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <ctype.h>
#include <errno.h>
#include <pcre2.h>
#include <string.h>

#define MATCH_LIMIT    100000 /* steps of a match */
#define DEPTH_LIMIT    1000
#define HEAP_LIMIT_KIB 1024

struct Regex {
        pcre2_code *code;
        pcre2_match_context *context;
};

Regex *regex_free(Regex *regex)
{
        if (!regex)
                return NULL;
        pcre2_code_free(regex->code);
        pcre2_match_context_free(regex->context);
        free(regex);
        return NULL;
}

/* Looking through */

/* Letters that stand for something behind a backslash in both; Python refuses all others. */
static bool is_known_escape(char c)
{
        return !isalpha((unsigned char)c) || strchr("AbBdDsSwWZafnrtvx", c);
}

/* What may follow "(?". Flags for all of the pattern stand at its start. */
static bool is_known_group(const char *c, bool first)
{
        size_t n = strspn(c, "imsx-");

        if (strchr(":=!>#(", *c) && *c)
                return true;
        if (c[0] == '<')
                return c[1] == '=' || c[1] == '!';
        if (c[0] == 'P')
                return c[1] == '<' || c[1] == '=';
        return n > 0 && (c[n] == ':' || (first && c[n] == ')' && !memchr(c, '-', n)));
}

typedef struct Reader {
        const char *pattern, *c;
        char *output;
        bool in_class;
} Reader;

static int refuse(const Reader *reader, Error *reterr)
{
        return error_setf(reterr, EINVAL,
                          "Python does not know \"%.10s\", or takes it for something else",
                          reader->c);
}

/* One thing of the pattern: moves c behind it. */
static int read_one(Reader *reader, Error *reterr)
{
        const char *c = reader->c;
        size_t n = 1;

        if (c[0] == '\\') {
                if (!c[1] || !is_known_escape(c[1]))
                        return refuse(reader, reterr);
                n = 2;
        } else if (reader->in_class) {
                if (c[0] == '[' && c[1] && strchr(":.=", c[1]))
                        return refuse(reader, reterr);
                reader->in_class = c[0] != ']';
        } else if (c[0] == '[') {
                reader->in_class = true;
                n += c[1] == '^';
                n += c[n] == ']';
        } else if (c[0] == '(' &&
                   (c[1] == '*' || (c[1] == '?' && !is_known_group(c + 2, c == reader->pattern)))) {
                return refuse(reader, reterr);
        } else if (c[0] == '{' && c[1] == ',') {
                size_t digits = strspn(c + 2, "0123456789");

                if (c[2 + digits] == '}') {
                        reader->output = stpcpy(reader->output, "{0");
                        reader->c++;
                        return 0;
                }
        }
        memcpy(reader->output, c, n);
        reader->output += n;
        reader->c += n;
        return 0;
}

static int translate(const char *pattern, char ret[static 2 * REGEX_LENGTH_MAX + 1], Error *reterr)
{
        Reader reader = { .pattern = pattern, .c = pattern, .output = ret };

        if (strlen(pattern) > REGEX_LENGTH_MAX)
                return error_setf(reterr, EINVAL, "longer than %d bytes", REGEX_LENGTH_MAX);
        while (*reader.c) {
                int r = read_one(&reader, reterr);

                if (r < 0)
                        return r;
        }
        *reader.output = '\0';
        return 0;
}

int regex_new(Regex **ret, const char *pattern, Error *reterr)
{
        _cleanup_(regex_freep) Regex *regex = calloc(1, sizeof(Regex));
        char text[2 * REGEX_LENGTH_MAX + 1];
        PCRE2_UCHAR words[120] = "";
        PCRE2_SIZE place;
        int code, r;

        if (!regex)
                return error_oom(reterr);
        r = translate(pattern, text, reterr);
        if (r < 0)
                return r;
        regex->code = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED,
                                    PCRE2_ANCHORED | PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C, &code,
                                    &place, NULL);
        if (!regex->code) {
                (void)pcre2_get_error_message(code, words, sizeof(words));
                return error_setf(reterr, EINVAL, "%s", (const char *)words);
        }
        regex->context = pcre2_match_context_create(NULL);
        if (!regex->context)
                return error_oom(reterr);
        pcre2_set_match_limit(regex->context, MATCH_LIMIT);
        pcre2_set_depth_limit(regex->context, DEPTH_LIMIT);
        pcre2_set_heap_limit(regex->context, HEAP_LIMIT_KIB);
        *ret = TAKE_PTR(regex);
        return 0;
}

bool regex_matches(const Regex *regex, const char *text)
{
        pcre2_match_data *data = pcre2_match_data_create(1, NULL);
        int r;

        if (!data)
                return false;
        r = pcre2_match(regex->code, (PCRE2_SPTR)text, strlen(text), 0, 0, data, regex->context);
        pcre2_match_data_free(data);
        return r >= 0;
}
