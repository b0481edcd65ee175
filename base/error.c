/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

/* Texts quote foreign input: a control character in it must not reach a terminal or a log line. */
static void replace_control_characters(char *text)
{
        for (unsigned char *c = (unsigned char *)text; *c; c++)
                if (*c < 0x20 || *c == 0x7f)
                        *c = '?';
}

/* A cut inside a UTF-8 sequence would make the text invalid for D-Bus and the journal. */
static void trim_partial_utf8(char *text)
{
        size_t n = strlen(text), lead = n, expected;
        unsigned char c;

        while (lead > 0 && n - lead < 3 && ((unsigned char)text[lead - 1] & 0xc0) == 0x80)
                lead--;
        if (lead == 0)
                return;
        c = (unsigned char)text[lead - 1];
        expected = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
        if (expected > n - lead + 1)
                text[lead - 1] = '\0';
}

static void finish_text(char *text, int length)
{
        if (length >= ERROR_TEXT_MAX)
                trim_partial_utf8(text);
        replace_control_characters(text);
}

int error_setf(Error *reterr, int code, const char *format, ...)
{
        va_list ap;
        int n;

        code = code < 0 ? -code : code;
        if (!reterr)
                return -code;

        reterr->code = code;
        va_start(ap, format);
        n = vsnprintf(reterr->text, sizeof(reterr->text), format, ap);
        va_end(ap);
        if (n < 0)
                snprintf(reterr->text, sizeof(reterr->text), "%s", strerror(code));
        finish_text(reterr->text, n);
        return -code;
}

int error_prefixf(Error *reterr, int r, const char *format, ...)
{
        char prefix[ERROR_TEXT_MAX], text[ERROR_TEXT_MAX];
        va_list ap;
        int n;

        if (!reterr)
                return r;

        va_start(ap, format);
        n = vsnprintf(prefix, sizeof(prefix), format, ap);
        va_end(ap);
        if (n < 0)
                prefix[0] = '\0';

        snprintf(text, sizeof(text), "%s", error_text(reterr, r));
        reterr->code = -r;
        n = snprintf(reterr->text, sizeof(reterr->text), "%s: %s", prefix, text);
        finish_text(reterr->text, n);
        return r;
}

int error_oom(Error *reterr)
{
        return error_setf(reterr, ENOMEM, "Out of memory");
}

const char *error_text(const Error *error, int r)
{
        return error && error->text[0] ? error->text : strerror(r < 0 ? -r : r);
}
