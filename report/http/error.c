/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Translates the failure of a transfer into an HttpResult, or into -ENOMEM. The message of an
 * HttpResult has the endpoint, the fact and, where one is known, a question or advice for the
 * operator. HTTP_E_TLS is a rejected certificate, an unusable file of certificates or keys, or a
 * failed handshake. HTTP_E_BAD_ANSWER is an answer that is too large, is not HTTP, or has an
 * encoding that was not requested. CURLE_OUT_OF_MEMORY is -ENOMEM. All other failures, also a
 * time-out and the rare codes of TLS, are HTTP_E_UNREACHABLE. Codes whose message depends on the
 * failure have a function; others are rows of a table, or have curl's text. Pure. */

#include "report/http/error.h"

#include <inttypes.h>
#include <string.h>

static double seconds(uint64_t usec)
{
        return (double)usec / (double)USEC_PER_SEC;
}

/* Names the errno as the cause, or curl's text if there is none. */
static int translate_connect(const HttpFailure *failure, Error *reterr)
{
        const char *why = failure->os_errno ? strerror(failure->os_errno) : failure->detail;
        int code = failure->os_errno ? failure->os_errno : ECONNREFUSED;

        if (failure->unix_socket && failure->os_errno == ENOENT)
                error_setf(reterr, code,
                           "Cannot connect to %s (%s): the socket does not exist. Is %s running?",
                           failure->endpoint, why, failure->service);
        else if (failure->os_errno == EACCES || failure->os_errno == EPERM)
                error_setf(reterr, code, "Cannot connect to %s (%s): this user has no permission",
                           failure->endpoint, why);
        else
                error_setf(reterr, code, "Cannot connect to %s (%s). Is %s running there?",
                           failure->endpoint, why, failure->service);
        return HTTP_E_UNREACHABLE;
}

/* Checks the scheme, because newer versions of curl do not report the progress of a TLS
 * handshake. */
static bool speaks_https(const HttpFailure *failure)
{
        return strncmp(failure->endpoint, "https:", strlen("https:")) == 0;
}

/* Tells four cases apart by the progress of the transfer: the handshake, the look-up of the name,
 * the connection, and the answer. */
static int translate_timeout(const HttpFailure *failure, Error *reterr)
{
        if (failure->reached && !failure->connected)
                error_setf(
                        reterr, ETIMEDOUT,
                        "No TLS connection to %s within %g s, although it accepts connections. Does it speak https?",
                        failure->endpoint, seconds(failure->connect_timeout_usec));
        else if (!failure->connected && !failure->resolved && !failure->unix_socket)
                error_setf(reterr, ETIMEDOUT,
                           "No address of %s within %g s. Do the name servers answer?",
                           failure->endpoint, seconds(failure->connect_timeout_usec));
        else if (!failure->connected)
                error_setf(reterr, ETIMEDOUT,
                           "No connection to %s within %g s. Is the host up and the port open%s?",
                           failure->endpoint, seconds(failure->connect_timeout_usec),
                           speaks_https(failure) ? ", and does it speak https" : "");
        else
                error_setf(reterr, ETIMEDOUT,
                           "No complete answer from %s within %g s. It hangs or is overloaded",
                           failure->endpoint, seconds(failure->timeout_usec));
        return HTTP_E_UNREACHABLE;
}

static int translate_too_large(const HttpFailure *failure, Error *reterr)
{
        error_setf(reterr, EFBIG,
                   "The answer of %s has more than %" PRIu64 " bytes and cannot be from %s",
                   failure->endpoint, failure->max_body_bytes, failure->service);
        return HTTP_E_BAD_ANSWER;
}

static int translate_too_many_lookups(const HttpFailure *failure, Error *reterr)
{
        error_setf(reterr, EAGAIN, "No address of %s: too many requests wait for the name servers",
                   failure->endpoint);
        return HTTP_E_UNREACHABLE;
}

/* Codes with a fixed message: the endpoint stands between before and after. */
static const struct {
        CURLcode code;
        HttpResult result;
        int error;
        const char *before, *after;
} table[] = {
        { CURLE_COULDNT_RESOLVE_HOST, HTTP_E_UNREACHABLE, EHOSTUNREACH, "The host of ",
          " has no address. Check the endpoint of [placement] and the name service" },
        { CURLE_GOT_NOTHING, HTTP_E_UNREACHABLE, ECONNRESET, "",
          " closed the connection without an answer. Is it the right port?" },
        { CURLE_PARTIAL_FILE, HTTP_E_UNREACHABLE, ECONNRESET, "The answer of ", " was cut short" },
        { CURLE_RECV_ERROR, HTTP_E_UNREACHABLE, ECONNRESET, "The connection to ",
          " broke before the answer was complete" },
        { CURLE_SEND_ERROR, HTTP_E_UNREACHABLE, ECONNRESET, "The connection to ",
          " broke while the request was sent" },
        { CURLE_HTTP2, HTTP_E_UNREACHABLE, EPROTO, "The HTTP/2 connection to ", " broke" },
        { CURLE_HTTP2_STREAM, HTTP_E_UNREACHABLE, EPROTO, "The HTTP/2 connection to ", " broke" },
        { CURLE_WEIRD_SERVER_REPLY, HTTP_E_BAD_ANSWER, EPROTO, "", " does not speak HTTP" },
        { CURLE_UNSUPPORTED_PROTOCOL, HTTP_E_BAD_ANSWER, EPROTO, "", " does not speak HTTP" },
        { CURLE_BAD_CONTENT_ENCODING, HTTP_E_BAD_ANSWER, EPROTO, "The answer of ",
          " has an encoding that was not requested" },
        { CURLE_SSL_CACERT_BADFILE, HTTP_E_TLS, EKEYREJECTED, "For ",
          ": cafile in [placement] is not a file of certificates, or the service's user cannot read it" },
        { CURLE_SSL_CERTPROBLEM, HTTP_E_TLS, EKEYREJECTED, "For ",
          ": certfile or keyfile in [placement] cannot be used" },
        { CURLE_SSL_CONNECT_ERROR, HTTP_E_TLS, EPROTO, "No TLS connection to ",
          ". Does it speak https, or does it need certfile?" },
};

/* Returns an advice for a rejected certificate. curl reports the reason only as a text of its TLS
 * library. */
static const char *find_certificate_advice(const char *detail)
{
        static const struct {
                const char *part, *advice;
        } kinds[] = {
                { "expired", "has expired; renew it on the server" },
                { "not yet valid", "is not valid yet; compare the clocks of both hosts" },
                { "not activated", "is not valid yet; compare the clocks of both hosts" },
                { "match", "is for another name; use a name of the certificate in the endpoint" },
                { "revoked", "was revoked; renew it on the server" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
                if (strstr(detail, kinds[i].part))
                        return kinds[i].advice;
        return "has an issuer that this host does not trust; set cafile in [placement]";
}

static int translate_certificate(const HttpFailure *failure, Error *reterr)
{
        bool detailed = failure->detail[0];

        error_setf(reterr, EKEYREJECTED, "The certificate of %s %s%s%s%s", failure->endpoint,
                   find_certificate_advice(failure->detail), detailed ? " (" : "", failure->detail,
                   detailed ? ")" : "");
        return HTTP_E_TLS;
}

int http_failure_translate(const HttpFailure *failure, Error *reterr)
{
        if (failure->too_large || failure->code == CURLE_FILESIZE_EXCEEDED)
                return translate_too_large(failure, reterr);
        if (failure->code == CURLE_COULDNT_CONNECT)
                return translate_connect(failure, reterr);
        if (failure->code == CURLE_OPERATION_TIMEDOUT)
                return translate_timeout(failure, reterr);
        if (failure->code == CURLE_COULDNT_RESOLVE_HOST && failure->too_many_lookups)
                return translate_too_many_lookups(failure, reterr);
        if (failure->code == CURLE_PEER_FAILED_VERIFICATION)
                return translate_certificate(failure, reterr);
        if (failure->code == CURLE_OUT_OF_MEMORY)
                return error_oom(reterr);

        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
                bool detailed = table[i].result == HTTP_E_TLS && failure->detail[0];

                if (table[i].code != failure->code)
                        continue;
                error_setf(reterr, table[i].error, "%s%s%s%s%s%s", table[i].before,
                           failure->endpoint, table[i].after, detailed ? " (" : "",
                           detailed ? failure->detail : "", detailed ? ")" : "");
                return (int)table[i].result;
        }
        error_setf(reterr, EIO, "The request to %s failed: %s", failure->endpoint,
                   failure->detail[0] ? failure->detail : curl_easy_strerror(failure->code));
        return HTTP_E_UNREACHABLE;
}
