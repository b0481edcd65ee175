/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "report/http/fields.h"

#include <string.h>

#include "tests/unit/test.h"

static void add(HttpFields *fields, const char *line)
{
        assert_int_equal(http_fields_add(fields, line, strlen(line)), 0);
}

static void test_fields(void **state)
{
        HttpFields fields = { 0 };

        add(&fields, "HTTP/1.1 201 Created\r\n");
        assert_string_equal(http_fields_get(&fields, HTTP_FIELD_LOCATION), "");
        add(&fields, "Content-Type: \t application/json; charset=UTF-8 \r\n");
        add(&fields, "LOCATION:/resource_providers/1\r\n");
        add(&fields, "x-openstack-request-id: req-1\r\n");
        add(&fields, "X-Subject-Token: secret\r\n");
        add(&fields, "Last-Modified: Sun, 22 Nov 2026 07:00:00 GMT");
        assert_string_equal(http_fields_get(&fields, HTTP_FIELD_CONTENT_TYPE),
                            "application/json; charset=UTF-8");
        assert_string_equal(http_fields_get(&fields, HTTP_FIELD_LOCATION), "/resource_providers/1");
        assert_string_equal(http_fields_get(&fields, HTTP_FIELD_REQUEST_ID), "req-1");
        assert_string_equal(http_fields_get(&fields, HTTP_FIELD_SUBJECT_TOKEN), "secret");
        assert_string_equal(http_fields_get(&fields, HTTP_FIELD_LAST_MODIFIED),
                            "Sun, 22 Nov 2026 07:00:00 GMT");
        http_fields_done(&fields);
}

static void test_first_counts(void **state)
{
        HttpFields fields = { 0 };

        add(&fields, "HTTP/1.1 200 OK\r\n");
        add(&fields, "Location: \r\n");
        add(&fields, "Location: /second\r\n");
        assert_string_equal(http_fields_get(&fields, HTTP_FIELD_LOCATION), "");
        http_fields_done(&fields);
}

/* An interim answer, or a proxy's, is followed by another status line. */
static void test_last_answer_counts(void **state)
{
        HttpFields fields = { 0 };

        add(&fields, "HTTP/1.1 100 Continue\r\n");
        add(&fields, "Location: /interim\r\n");
        add(&fields, "\r\n");
        add(&fields, "HTTP/2 200\r\n");
        add(&fields, "Content-Type: text/plain\r\n");
        assert_string_equal(http_fields_get(&fields, HTTP_FIELD_LOCATION), "");
        assert_string_equal(http_fields_get(&fields, HTTP_FIELD_CONTENT_TYPE), "text/plain");
        http_fields_done(&fields);
}

static void test_trailers_are_none(void **state)
{
        HttpFields fields = { 0 };

        add(&fields, "HTTP/1.1 200 OK\r\n");
        add(&fields, "\r\n");
        add(&fields, "Location: /trailer\r\n");
        assert_string_equal(http_fields_get(&fields, HTTP_FIELD_LOCATION), "");
        http_fields_done(&fields);
}

static void test_odd_lines(void **state)
{
        static const char *const lines[] = { "Location", " Location: /folded\r\n", ": /nameless",
                                             "Locations: /other", "Location : /blank" };
        HttpFields fields = { 0 };

        for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
                add(&fields, lines[i]);
        assert_string_equal(http_fields_get(&fields, HTTP_FIELD_LOCATION), "");
        assert_int_equal(http_fields_add(&fields, "location: /a/bc", 12), 0);
        assert_string_equal(http_fields_get(&fields, HTTP_FIELD_LOCATION), "/a");
        http_fields_done(&fields);
}

TEST_MAIN(test_fields, test_first_counts, test_last_answer_counts, test_trailers_are_none,
          test_odd_lines)
