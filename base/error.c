/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/text.h"

/* Stores a text. length is the result of vsnprintf(): at ERROR_TEXT_MAX or more the text was
 * cut, and an ellipsis replaces its end. */
static void store_text(Error *error, char *text, int length)
{
        static const char ellipsis[] = "…";

        if (length >= ERROR_TEXT_MAX) {
                text[ERROR_TEXT_MAX - sizeof(ellipsis)] = '\0';
                text_trim_cut(text);
                strcat(text, ellipsis);
        }
        text_sanitize(text, '?');
        memcpy(error->text, text, strlen(text) + 1);
}

int error_setf(Error *reterr, int code, const char *format, ...)
{
        char text[ERROR_TEXT_MAX]; /* the arguments can point into reterr */
        va_list ap;
        int n;

        /* An errno of 0 must not turn a failure into a success. */
        code = code < 0 ? -code : code > 0 ? code : EIO;
        if (!reterr)
                return -code;

        va_start(ap, format);
        n = vsnprintf(text, sizeof(text), format, ap);
        va_end(ap);
        if (n < 0)
                n = snprintf(text, sizeof(text), "%s", strerror(code));
        reterr->code = code;
        store_text(reterr, text, n);
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

        n = snprintf(text, sizeof(text), "%s: %s", prefix, error_text(reterr, r));
        reterr->code = -r;
        store_text(reterr, text, n);
        return r;
}

/* Passes all->text as an argument, which is safe because error_setf() formats before it stores. */
void error_join(Error *all, const Error *more)
{
        if (all && more->code)
                error_setf(all, all->code ? all->code : more->code, "%s%s%s", all->text,
                           all->code ? "; " : "", more->text);
}

int error_oom(Error *reterr)
{
        return error_setf(reterr, ENOMEM, "Out of memory");
}

/* Falls back to strerror(), whose buffer is that of the thread. That limits the life of the
 * result. */
const char *error_text(const Error *error, int r)
{
        return error && error->text[0] ? error->text : strerror(r < 0 ? -r : r);
}
