/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/http/error.h"

#include "tests/unit/test.h"

/* A code of curl with the facts about the transfer. */
#define FAILURE(code_, ...)                          \
        {                                            \
                .code = CURLE_##code_, ##__VA_ARGS__ \
        }

static void test_table(void **state)
{
        static const struct {
                HttpFailure failure;
                int result;
                const char *words;
        } cases[] = {
                { FAILURE(COULDNT_RESOLVE_HOST), HTTP_E_UNREACHABLE, "no address" },
                { FAILURE(COULDNT_CONNECT, .os_errno = ECONNREFUSED), HTTP_E_UNREACHABLE,
                  "Connection refused" },
                { FAILURE(COULDNT_CONNECT, .os_errno = ENOENT, .unix_socket = true),
                  HTTP_E_UNREACHABLE, "the socket does not exist" },
                { FAILURE(COULDNT_CONNECT, .os_errno = EACCES, .unix_socket = true),
                  HTTP_E_UNREACHABLE, "has no permission" },
                { FAILURE(COULDNT_CONNECT, .detail = "curl's words"), HTTP_E_UNREACHABLE,
                  "curl's words" },
                { FAILURE(COULDNT_RESOLVE_HOST, .too_many_lookups = true), HTTP_E_UNREACHABLE,
                  "wait for the name servers" },
                { FAILURE(OPERATION_TIMEDOUT), HTTP_E_UNREACHABLE,
                  "No address of ENDPOINT within 2 s" },
                { FAILURE(OPERATION_TIMEDOUT, .resolved = true), HTTP_E_UNREACHABLE,
                  "No connection to ENDPOINT within 2 s" },
                { FAILURE(OPERATION_TIMEDOUT, .reached = true), HTTP_E_UNREACHABLE,
                  "No TLS connection to ENDPOINT within 2 s" },
                { FAILURE(OPERATION_TIMEDOUT, .reached = true, .connected = true),
                  HTTP_E_UNREACHABLE, "No complete answer from ENDPOINT within 30 s" },
                { FAILURE(GOT_NOTHING), HTTP_E_UNREACHABLE, "without an answer" },
                { FAILURE(PARTIAL_FILE), HTTP_E_UNREACHABLE, "cut short" },
                { FAILURE(RECV_ERROR), HTTP_E_UNREACHABLE, "before the answer was complete" },
                { FAILURE(SEND_ERROR), HTTP_E_UNREACHABLE, "while the request was sent" },
                { FAILURE(WEIRD_SERVER_REPLY), HTTP_E_BAD_ANSWER, "does not speak HTTP" },
                /* Texts of OpenSSL and GnuTLS. */
                { FAILURE(PEER_FAILED_VERIFICATION, .detail = "self-signed"), HTTP_E_TLS,
                  "set cafile in [placement] (self-signed)" },
                { FAILURE(PEER_FAILED_VERIFICATION), HTTP_E_TLS, "set cafile" },
                { FAILURE(PEER_FAILED_VERIFICATION,
                          .detail = "SSL certificate problem: certificate has expired"),
                  HTTP_E_TLS, "has expired; renew it on the server" },
                { FAILURE(PEER_FAILED_VERIFICATION,
                          .detail = "server certificate expiration date has passed: expired"),
                  HTTP_E_TLS, "has expired" },
                { FAILURE(PEER_FAILED_VERIFICATION,
                          .detail = "SSL certificate problem: certificate is not yet valid"),
                  HTTP_E_TLS, "compare the clocks" },
                { FAILURE(PEER_FAILED_VERIFICATION,
                          .detail =
                                  "SSL: no alternative certificate subject name matches target host name 'placement'"),
                  HTTP_E_TLS, "is for another name" },
                { FAILURE(PEER_FAILED_VERIFICATION,
                          .detail =
                                  "SSL: certificate subject name (a) does not match target host name"),
                  HTTP_E_TLS, "is for another name" },
                { FAILURE(SSL_CACERT_BADFILE), HTTP_E_TLS, "the service's user cannot read it" },
                { FAILURE(SSL_CERTPROBLEM), HTTP_E_TLS, "certfile" },
                { FAILURE(SSL_CONNECT_ERROR), HTTP_E_TLS, "https" },
                { FAILURE(WRITE_ERROR, .too_large = true), HTTP_E_BAD_ANSWER,
                  "more than 1000 bytes" },
                { FAILURE(FILESIZE_EXCEEDED), HTTP_E_BAD_ANSWER, "more than 1000 bytes" },
                { FAILURE(OUT_OF_MEMORY), -ENOMEM, "memory" },
                /* A code outside of the table also has a message. */
                { FAILURE(FTP_ACCEPT_FAILED), HTTP_E_UNREACHABLE, "failed" },
                { FAILURE(READ_ERROR, .detail = "odd thing"), HTTP_E_UNREACHABLE, "odd thing" },
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
