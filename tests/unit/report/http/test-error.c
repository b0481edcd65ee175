/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/http/error.h"

#include "tests/unit/test.h"

static void test_table(void **state)
{
        static const struct {
                HttpFailure failure;
                int result;
                const char *words;
        } cases[] = {
                { { .code = CURLE_COULDNT_RESOLVE_HOST }, HTTP_E_UNREACHABLE, "no address" },
                { { .code = CURLE_COULDNT_CONNECT, .os_errno = ECONNREFUSED },
                  HTTP_E_UNREACHABLE,
                  "Connection refused" },
                { { .code = CURLE_COULDNT_CONNECT, .os_errno = ENOENT, .unix_socket = true },
                  HTTP_E_UNREACHABLE,
                  "no such socket" },
                { { .code = CURLE_COULDNT_CONNECT, .os_errno = EACCES, .unix_socket = true },
                  HTTP_E_UNREACHABLE,
                  "may not open" },
                { { .code = CURLE_COULDNT_CONNECT, .detail = "curl's words" },
                  HTTP_E_UNREACHABLE,
                  "curl's words" },
                { { .code = CURLE_COULDNT_RESOLVE_HOST, .too_many_lookups = true },
                  HTTP_E_UNREACHABLE,
                  "no further one is asked" },
                { { .code = CURLE_OPERATION_TIMEDOUT },
                  HTTP_E_UNREACHABLE,
                  "No address of ENDPOINT within 2 s" },
                { { .code = CURLE_OPERATION_TIMEDOUT, .resolved = true },
                  HTTP_E_UNREACHABLE,
                  "No connection to ENDPOINT within 2 s" },
                { { .code = CURLE_OPERATION_TIMEDOUT, .reached = true },
                  HTTP_E_UNREACHABLE,
                  "No TLS connection to ENDPOINT within 2 s" },
                { { .code = CURLE_OPERATION_TIMEDOUT, .reached = true, .connected = true },
                  HTTP_E_UNREACHABLE,
                  "No complete answer from ENDPOINT within 30 s" },
                { { .code = CURLE_GOT_NOTHING }, HTTP_E_UNREACHABLE, "without an answer" },
                { { .code = CURLE_PARTIAL_FILE }, HTTP_E_UNREACHABLE, "cut short" },
                { { .code = CURLE_RECV_ERROR }, HTTP_E_UNREACHABLE, "while it answered" },
                { { .code = CURLE_SEND_ERROR }, HTTP_E_UNREACHABLE, "while it was asked" },
                { { .code = CURLE_WEIRD_SERVER_REPLY }, HTTP_E_BAD_ANSWER, "does not speak HTTP" },
                /* as OpenSSL and GnuTLS say it */
                { { .code = CURLE_PEER_FAILED_VERIFICATION, .detail = "self-signed" },
                  HTTP_E_TLS,
                  "set cafile in [placement] (self-signed)" },
                { { .code = CURLE_PEER_FAILED_VERIFICATION }, HTTP_E_TLS, "set cafile" },
                { { .code = CURLE_PEER_FAILED_VERIFICATION,
                    .detail = "SSL certificate problem: certificate has expired" },
                  HTTP_E_TLS,
                  "has expired: it has to be renewed there" },
                { { .code = CURLE_PEER_FAILED_VERIFICATION,
                    .detail = "server certificate expiration date has passed: expired" },
                  HTTP_E_TLS,
                  "has expired" },
                { { .code = CURLE_PEER_FAILED_VERIFICATION,
                    .detail = "SSL certificate problem: certificate is not yet valid" },
                  HTTP_E_TLS,
                  "compare the clocks" },
                { { .code = CURLE_PEER_FAILED_VERIFICATION,
                    .detail =
                            "SSL: no alternative certificate subject name matches target host name 'placement'" },
                  HTTP_E_TLS,
                  "is of another name" },
                { { .code = CURLE_PEER_FAILED_VERIFICATION,
                    .detail = "SSL: certificate subject name (a) does not match target host name" },
                  HTTP_E_TLS,
                  "is of another name" },
                { { .code = CURLE_SSL_CACERT_BADFILE },
                  HTTP_E_TLS,
                  "the service's user may not read it" },
                { { .code = CURLE_SSL_CERTPROBLEM }, HTTP_E_TLS, "certfile" },
                { { .code = CURLE_SSL_CONNECT_ERROR }, HTTP_E_TLS, "https" },
                { { .code = CURLE_WRITE_ERROR, .too_large = true },
                  HTTP_E_BAD_ANSWER,
                  "more than 1000 bytes" },
                { { .code = CURLE_FILESIZE_EXCEEDED }, HTTP_E_BAD_ANSWER, "more than 1000 bytes" },
                { { .code = CURLE_OUT_OF_MEMORY }, -ENOMEM, "memory" },
                /* Whatever is not in the table still has words. */
                { { .code = CURLE_FTP_ACCEPT_FAILED }, HTTP_E_UNREACHABLE, "failed" },
                { { .code = CURLE_READ_ERROR, .detail = "odd thing" },
                  HTTP_E_UNREACHABLE,
                  "odd thing" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                HttpFailure failure = cases[i].failure;
                Error error = ERROR_NULL;
                int r;

                failure.endpoint = "ENDPOINT";
                failure.detail = failure.detail ? failure.detail : "";
                failure.connect_timeout_usec = 2 * USEC_PER_SEC;
                failure.timeout_usec = 30 * USEC_PER_SEC;
                failure.max_body_bytes = 1000;
                r = http_failure_translate(&failure, &error);
                if (r != cases[i].result || !strstr(error.text, cases[i].words))
                        fail_msg("case %zu: %d, \"%s\"", i, r, error.text);
                assert_true(error.code > 0);
        }
}

TEST_MAIN(test_table)
