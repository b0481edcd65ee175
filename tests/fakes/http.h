/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A stand-in for report/http/http.c, linked before the library: it answers from a script.
 *
 * A request is written down as "PUT /resource_providers/host/traits", with the names of
 * tests/fixtures/tree.h in place of their uuids. The first answer of the script whose text is
 * contained in that line, and that has not been used up, is given; without one, a 200 whose
 * generations are one above that of the request. One answer is given with each turn of the loop,
 * oldest request first.
 *
 * The question whether we may reshape (a POST /reshaper of nothing) is not written down. It is
 * matched as "MAY RESHAPE", and answered with 403 where the script says nothing. */

#include "report/http/http.h"

typedef struct FakeAnswer {
        const char *match;
        unsigned times; /* 0: always */
        int result;     /* HTTP_E_… : no answer */
        int status;     /* 0: 200 */
        const char *body;
        uint64_t retry_after_sec;
        const char *subject_token; /* NULL: "" */
        bool never;                /* it hangs */
} FakeAnswer;

/* Answers of a script: as often as they are asked for, or once. body: with ' for ", as in
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

/* What Placement says with this status and code. */
#define FAULT_BODY(code) "{'errors':[{'detail':'the detail','code':'placement." code "'}]}"

#define FAULT(match, status, code)      ANSWER(match, status, FAULT_BODY(code))
#define FAULT_ONCE(match, status, code) ANSWER_ONCE(match, status, FAULT_BODY(code))

/* Keystone gives that token, so many times, and says that Placement is there. */
#define TOKEN(url)                                                                          \
        "{'token':{'issued_at':'2026-11-21T02:00:00Z','expires_at':'2026-11-21T03:00:00Z'," \
        "'catalog':[{'type':'placement','endpoints':[{'interface':'internal','url':'" url   \
        "'}]}]}}"
#define GIVES(n, token, url)                                                                 \
        {                                                                                    \
                .match = "POST /auth/tokens", .times = n, .status = 201, .body = TOKEN(url), \
                .subject_token = token                                                       \
        }

/* So many answers, in this order; NULL is a script of none. */
#define SCRIPT(...) ((const FakeAnswer[]){ __VA_ARGS__, { .match = NULL } })

/* Forgets everything. The texts of the script are borrowed; names are separated by blanks. */
void fake_http_begin(const FakeAnswer *script, const char *names);

/* Puts answers behind those of the script. */
void fake_http_more(const FakeAnswer *script);

/* So many requests of a client are under way at a time; the others can be taken back, and are not
 * written down then, though their answers are used up. 0 (as after a beginning): all are. */
void fake_http_set_lanes(size_t n);

/* What was asked for since: lines joined by "; ". */
const char *fake_http_log(void);
void fake_http_clear_log(void);

size_t fake_http_get_n_requests(void);
size_t fake_http_get_max_parallel(void); /* as many were under way at a time */

/* The body of the last request whose line contains text; NULL when there is none. */
const char *fake_http_find_body(const char *text);

/* Where the last request went, as http_client_new() or _set_endpoint() had it; "" for nowhere. */
const char *fake_http_get_endpoint(void);

/* The header lines of the last request, each with a line break behind it. */
const char *fake_http_get_headers(void);

/* How often a request whose line contains text was sent. */
size_t fake_http_count(const char *text);

/* Runs the loop until so many callbacks have counted themselves, and no more. */
void fake_http_wait(sd_event *event, const unsigned *n_calls, unsigned n);
