/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A replacement for report/http/http.c, linked before the library, that answers from a script.
 *
 * A request is logged as "PUT /resource_providers/host/traits", with the names of
 * tests/fixtures/tree.h in place of their uuids. The answer is the first one of the script whose
 * text is a part of that line and that is not used up. Without such an answer it is a 200 with
 * generations one above those of the request. Each turn of the loop gives one answer, to the oldest
 * request. */

#include "report/http/http.h"

typedef struct FakeAnswer {
        const char *match;
        unsigned times; /* 0: always */
        int result;     /* HTTP_E_…: no answer */
        int status;     /* 0: 200 */
        const char *body;
        uint64_t retry_after_sec;
        uint64_t modified_sec;
        const char *subject_token; /* NULL: "" */
        bool never;                /* there is never an answer */
} FakeAnswer;

/* Answers of a script: for any number of requests, or for one. body has ' for ", as in
 * tests/fixtures/json.h; NULL: none in the script. */
#define ANSWER(match_, status_, body_)                                  \
        {                                                               \
                .match = (match_), .status = (status_), .body = (body_) \
        }
#define ANSWER_ONCE(match_, status_, body_)                                         \
        {                                                                           \
                .match = (match_), .times = 1, .status = (status_), .body = (body_) \
        }
#define NO_ANSWER(match_, result_)                     \
        {                                              \
                .match = (match_), .result = (result_) \
        }

/* An error body of Placement with this code. */
#define FAULT_BODY(code) "{'errors':[{'detail':'the detail','code':'placement." code "'}]}"

#define FAULT(match, status, code)      ANSWER(match, status, FAULT_BODY(code))
#define FAULT_ONCE(match, status, code) ANSWER_ONCE(match, status, FAULT_BODY(code))

/* Answers of Keystone: that token, n times, with Placement at that address in its catalogue. */
#define TOKEN(url)                                                                          \
        "{'token':{'issued_at':'2026-11-21T02:00:00Z','expires_at':'2026-11-21T03:00:00Z'," \
        "'catalog':[{'type':'placement','endpoints':[{'interface':'internal','url':'" url   \
        "'}]}]}}"
#define GIVES(n, token, url)                                                                 \
        {                                                                                    \
                .match = "POST /auth/tokens", .times = n, .status = 201, .body = TOKEN(url), \
                .subject_token = token                                                       \
        }

/* A script of these answers in this order; NULL is an empty script. */
#define SCRIPT(...) ((const FakeAnswer[]){ __VA_ARGS__, { .match = NULL } })

/* Resets everything and sets a script. Its texts are borrowed; names are separated by blanks. */
void fake_http_begin(const FakeAnswer *script, const char *names);

/* Appends answers to the script. */
void fake_http_more(const FakeAnswer *script);

/* Limits the requests of a client that are under way at a time. The others can be taken back; then
 * they are not logged, but their answers are used up. 0, the default, means no limit. */
void fake_http_set_lanes(size_t n);

/* Returns the requests since the last clearing, joined by "; ". */
const char *fake_http_log(void);
void fake_http_clear_log(void);

size_t fake_http_get_n_requests(void);
size_t fake_http_get_max_parallel(void); /* largest number under way at a time */

/* Returns the body of the last request whose line contains text, or NULL. */
const char *fake_http_find_body(const char *text);

/* Returns the endpoint of the last request, as set by http_client_new() or
 * http_client_set_endpoint(); "": none. */
const char *fake_http_get_endpoint(void);

/* Returns the header lines of the last request, each with a line break at its end. */
const char *fake_http_get_headers(void);

/* Returns the number of requests whose line contains text. */
size_t fake_http_count(const char *text);

/* Runs the loop until *n_calls, which the callbacks count, is n, and checks that it is not
 * larger. */
void fake_http_wait(sd_event *event, const unsigned *n_calls, unsigned n);
