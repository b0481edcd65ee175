/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* For the tests of computectl's formatters: a stream whose text can be read, and JSON from text. */

#include <jansson.h>

#include "agent/ctl/print/style.h"
#include "tests/test.h"

typedef struct Capture {
        char *text; /* valid after capture_end() */
        size_t size;
        FILE *stream;
} Capture;

static inline Capture *capture_begin(Capture *capture)
{
        *capture = (Capture){ 0 };
        capture->stream = open_memstream(&capture->text, &capture->size);
        assert_non_null(capture->stream);
        return capture;
}

static inline const char *capture_end(Capture *capture)
{
        if (capture->stream)
                assert_int_equal(fclose(capture->stream), 0);
        capture->stream = NULL;
        return capture->text;
}

static inline void capture_done(Capture *capture)
{
        if (capture->stream)
                fclose(capture->stream);
        free(capture->text);
}

static inline json_t *parse_json(const char *text)
{
        json_error_t error;
        json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, &error);

        if (!json)
                fail_msg("%s: %s", error.text, text);
        return json;
}

static inline void json_done(json_t **json)
{
        json_decref(*json);
}

/* What a pipe gets: UTF-8, no colours, lines of any length; the clock stands. */
#define STYLE_NOW_USEC UINT64_C(1700000000000000) /* Tue 2023-11-14 22:13:20 UTC */
#define STYLE_PIPE     ((CtlStyle){ .utf8 = true, .legend = true, .now_usec = STYLE_NOW_USEC })

#define assert_contains(text, part)                                  \
        do {                                                         \
                if (!strstr((text), (part)))                         \
                        fail_msg("no \"%s\" in:\n%s", part, (text)); \
        } while (0)
#define assert_lacks(text, part)                                  \
        do {                                                      \
                if (strstr((text), (part)))                       \
                        fail_msg("\"%s\" in:\n%s", part, (text)); \
        } while (0)
