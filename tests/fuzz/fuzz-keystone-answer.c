/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/http/endpoint.h"
#include "report/keystone/token.h"
#include "tests/fuzz/fuzz.h"

void fuzz_text(const char *text)
{
        static const KeystoneConfig config = { .username = (char *)"nova" };
        _cleanup_(keystone_token_done) KeystoneToken token = KEYSTONE_TOKEN_INIT;
        _cleanup_(http_endpoint_done) HttpEndpoint endpoint = HTTP_ENDPOINT_INIT;
        const HttpResponse response = {
                .status = 201,
                .body = text,
                .body_size = strlen(text),
                .subject_token = "token",
        };
        Error error = ERROR_NULL;
        int r = keystone_read_answer(&config, REPORTER_AUTH_PASSWORD, true, &response, &token,
                                     &error);

        if (r != REPORT_DONE) {
                assert(r == REPORT_E_UNAVAILABLE && error.text[0] != '\0');
                return;
        }
        assert(token.lifetime_usec > 0);
        assert(http_endpoint_parse(token.endpoint, &endpoint, NULL) == 0 && !endpoint.socket_path);
}
