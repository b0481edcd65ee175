/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/shims/fail-alloc.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>

#include "base/macros.h"

static bool armed, delivered;
static unsigned left;

void fail_alloc_at(unsigned n)
{
        armed = true;
        delivered = false;
        left = n;
}

bool fail_alloc_done(void)
{
        armed = false;
        return delivered;
}

static bool fails_now(void)
{
        if (!armed || delivered)
                return false;
        if (left-- > 0)
                return false;
        delivered = true;
        errno = ENOMEM;
        return true;
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
        return fails_now() ? NULL : __real_calloc(n, size);
}

void *__real_reallocarray(void *p, size_t n, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
        return fails_now() ? NULL : __real_reallocarray(p, n, size);
}

char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);
char *__wrap_strdup(const char *text)
{
        return fails_now() ? NULL : __real_strdup(text);
}

char *__real_strndup(const char *text, size_t n);
char *__wrap_strndup(const char *text, size_t n);
char *__wrap_strndup(const char *text, size_t n)
{
        return fails_now() ? NULL : __real_strndup(text, n);
}

/* POSIX allows that the pointer is changed by a failure. */
static int fail_format(char **ret)
{
        *ret = (char *)ret;
        return -1;
}

int __real_vasprintf(char **ret, const char *format, va_list ap) _printf_(2, 0);
int __wrap_vasprintf(char **ret, const char *format, va_list ap) _printf_(2, 0);
int __wrap_vasprintf(char **ret, const char *format, va_list ap)
{
        return fails_now() ? fail_format(ret) : __real_vasprintf(ret, format, ap);
}

/* The name that _FORTIFY_SOURCE uses. */
int __real___vasprintf_chk(char **ret, int flag, const char *format, va_list ap) _printf_(3, 0);
int __wrap___vasprintf_chk(char **ret, int flag, const char *format, va_list ap) _printf_(3, 0);
int __wrap___vasprintf_chk(char **ret, int flag, const char *format, va_list ap)
{
        return fails_now() ? fail_format(ret) : __real___vasprintf_chk(ret, flag, format, ap);
}
