/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Cleanup attributes, transfer of ownership, and small arithmetic for every folder. No policy. */

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MIN(a, b) ((a) < (b) ? (a) : (b))

#define USEC_PER_MSEC UINT64_C(1000)
#define USEC_PER_SEC  UINT64_C(1000000)
#define NSEC_PER_USEC UINT64_C(1000)

#define _cleanup_(f)       __attribute__((__cleanup__(f)))
#define _printf_(fmt, arg) __attribute__((__format__(__printf__, fmt, arg)))
#define _unused_           __attribute__((__unused__))

/* Yields the value of a pointer and sets it to NULL, so that its cleanup does nothing. */
#define TAKE_PTR(p)                 \
        ({                          \
                typeof(p) _p = (p); \
                (p) = NULL;         \
                _p;                 \
        })

/* Yields a struct and sets it to zeros, which is its initial value. */
#define TAKE_STRUCT(s)                  \
        ({                              \
                typeof(s) _s = (s);     \
                (s) = (typeof(s)){ 0 }; \
                _s;                     \
        })

/* Yields a file descriptor and sets it to -EBADF. */
#define TAKE_FD(fd)            \
        ({                     \
                int _f = (fd); \
                (fd) = -EBADF; \
                _f;            \
        })

/* Defines funcp(T **) for _cleanup_() from a destructor "T *func(T *)" or "void func(T *)". */
#define DEFINE_CLEANUP(type, func)          \
        static inline void func##p(type *p) \
        {                                   \
                if (*p)                     \
                        func(*p);           \
        }                                   \
        struct func##_cleanup_needs_a_semicolon

static inline void freep(void *p)
{
        free(*(void **)p);
}

static inline void closep(int *fd)
{
        if (*fd >= 0)
                close(*fd);
}

DEFINE_CLEANUP(FILE *, fclose);

#define _cleanup_free_   _cleanup_(freep)
#define _cleanup_close_  _cleanup_(closep)
#define _cleanup_fclose_ _cleanup_(fclosep)

/* Returns true if a + b, or a * b, does not fit in a uint64_t. */
static inline bool u64_add_overflow(uint64_t a, uint64_t b, uint64_t *ret)
{
        return __builtin_add_overflow(a, b, ret);
}

static inline bool u64_mul_overflow(uint64_t a, uint64_t b, uint64_t *ret)
{
        return __builtin_mul_overflow(a, b, ret);
}
