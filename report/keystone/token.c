/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Makes the request for a token, and reads the answer. The request is made as JSON with an empty
 * secret, and the secret is inserted at the end. So only the final text has the secret, and it is
 * in memory for secrets (base/secret.h). From the answer the token, its lifetime, roles and scope
 * are read, and from the catalogue the endpoint of Placement, if it is wanted. Times of Keystone
 * are compared only with each other. Other answers become outcomes with words.
 *
 * Every member of the answer is foreign text. A text of another type counts as empty, but times of
 * another type are an error. If the end is null or missing, no time is read. At most ROLES_MAX
 * roles are kept, and a token must consist of at most KEYSTONE_TOKEN_MAX bytes of printable ASCII,
 * because it becomes a header.
 *
 * Tests: tests/unit/report/keystone/test-token.c */

#include "report/keystone/token.h"

#include <string.h>
#include <time.h>

#include "base/secret.h"
#include "base/text.h"
#include "report/http/endpoint.h"

#define ESCAPED_MAX 6    /* length of "\\u001f" */
#define ROLES_MAX   1000 /* number of roles that are kept; further ones are ignored */

/* The request. */

int keystone_make_base_url(const char *auth_url, char **ret)
{
        size_t n = strlen(auth_url);
        bool versioned;

        while (n > 0 && auth_url[n - 1] == '/')
                n--;
        versioned = n >= 3 && strncmp(auth_url + n - 3, "/v3", 3) == 0;
        *ret = text_format("%.*s%s", (int)n, auth_url, versioned ? "" : "/v3");
        return *ret ? 0 : -ENOMEM;
}

/* Makes {"id": …} from the id, else {"name": …} from the name. NULL if neither is set or when out
 * of memory. */
static json_t *make_reference(const char *id, const char *name)
{
        if (keystone_is_set(id))
                return json_pack("{ss}", "id", id);
        return keystone_is_set(name) ? json_pack("{ss}", "name", name) : NULL;
}

/* Makes a reference to the domain, else to the default domain. */
static json_t *make_domain(const KeystoneConfig *config, const char *id, const char *name)
{
        json_t *domain = make_reference(id, name);

        return domain ? domain
                      : make_reference(config->default_domain_id, config->default_domain_name);
}

/* Makes the reference to the user: an id, or a name within a domain. */
static json_t *make_user(const KeystoneConfig *config)
{
        if (keystone_is_set(config->user_id))
                return make_reference(config->user_id, NULL);
        return json_pack("{ss so}", "name", config->username, "domain",
                         make_domain(config, config->user_domain_id, config->user_domain_name));
}

static json_t *make_password(const KeystoneConfig *config)
{
        json_t *user = make_user(config);

        if (json_object_set_new(user, "password", json_string("")) < 0) {
                json_decref(user);
                return NULL;
        }
        return json_pack("{s[s] s{so}}", "methods", "password", "password", "user", user);
}

static json_t *make_credential(const KeystoneConfig *config)
{
        json_t *credential = make_reference(config->application_credential_id,
                                            config->application_credential_name);

        if (json_object_set_new(credential, "secret", json_string("")) < 0 ||
            (!keystone_is_set(config->application_credential_id) &&
             json_object_set_new(credential, "user", make_user(config)) < 0)) {
                json_decref(credential);
                return NULL;
        }
        return json_pack("{s[s] so}", "methods", "application_credential", "application_credential",
                         credential);
}

static json_t *make_project(const KeystoneConfig *config)
{
        if (keystone_is_set(config->project_id))
                return make_reference(config->project_id, NULL);
        return json_pack(
                "{ss so}", "name", config->project_name, "domain",
                make_domain(config, config->project_domain_id, config->project_domain_name));
}

/* Makes the scope; keystone_config_check() ensures that one is set. */
static json_t *make_scope(const KeystoneConfig *config)
{
        if (keystone_is_set(config->domain_id) || keystone_is_set(config->domain_name))
                return json_pack("{so}", "domain",
                                 make_reference(config->domain_id, config->domain_name));
        if (keystone_is_set(config->system_scope))
                return json_pack("{s{sb}}", "system", "all", 1);
        if (keystone_is_set(config->trust_id))
                return json_pack("{s{ss}}", "OS-TRUST:trust", "id", config->trust_id);
        return json_pack("{so}", "project", make_project(config));
}

/* Writes a character as JSON and returns its length, at most ESCAPED_MAX. */
static size_t escape(char c, char escaped[static ESCAPED_MAX + 1])
{
        if (c == '"' || c == '\\')
                return (size_t)sprintf(escaped, "\\%c", c);
        if ((unsigned char)c < ' ')
                return (size_t)sprintf(escaped, "\\u%04x", (unsigned)c);
        escaped[0] = c;
        return 1;
}

/* Copies the document with the secret inserted at "key":"". There is exactly one such place,
 * because inside a text the quotes would follow backslashes. NULL for a secret that is not UTF-8,
 * or when out of memory. */
static char *put_secret(const char *document, const char *key, const char *secret)
{
        char place[32], *ret, *end;
        const char *rest;
        size_t n;

        for (const char *c = secret; *c; c += n)
                if ((n = text_sequence_length(c)) == 0)
                        return NULL;
        n = (size_t)snprintf(place, sizeof(place), "\"%s\":\"", key);
        rest = strstr(document, place);
        ret = rest ? secret_alloc(strlen(document) + ESCAPED_MAX * (strlen(secret) + 1) + 1) : NULL;
        if (!ret)
                return NULL;
        rest += n;
        end = mempcpy(ret, document, (size_t)(rest - document));
        for (; *secret; secret++)
                end += escape(*secret, end);
        strcpy(end, rest);
        return ret;
}

/* Makes the body from identity and scope (NULL: none), and owns both. */
static char *dump(json_t *identity, json_t *scope)
{
        _cleanup_json_ json_t *body =
                json_pack("{s{so so*}}", "auth", "identity", identity, "scope", scope);

        return body ? json_dumps(body, JSON_COMPACT) : NULL;
}

int keystone_make_token_request(const KeystoneConfig *config, ReporterAuth kind, char **ret)
{
        bool scoped = kind == REPORTER_AUTH_PASSWORD;
        json_t *identity = scoped ? make_password(config) : make_credential(config);
        json_t *scope = scoped ? make_scope(config) : NULL;
        _cleanup_free_ char *text = NULL;
        char *body = NULL;

        if (identity && (scope || !scoped)) {
                text = dump(identity, scope);
        } else {
                json_decref(identity);
                json_decref(scope);
        }
        if (text)
                body = scoped ? put_secret(text, "password", config->password)
                              : put_secret(text, "secret", config->application_credential_secret);
        if (!body)
                return -ENOMEM;
        *ret = body;
        return 0;
}

/* The answer. */

void keystone_token_done(KeystoneToken *token)
{
        token->header = secret_free(token->header);
        free(token->endpoint);
        string_set_done(&token->roles);
        *token = KEYSTONE_TOKEN_INIT;
}

/* Times. */

/* Reads a time such as "2026-11-21T02:33:42.000000Z" as microseconds since the epoch. -EBADMSG. */
static int read_time(const char *text, uint64_t *ret_usec)
{
        static const size_t length = sizeof("2026-11-21T02:33:42") - 1;
        uint64_t usec = 0, unit = USEC_PER_SEC;
        struct tm tm = { 0 };
        const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
        time_t sec;

        if (end != text + length || strspn(text, "0123456789-T:") != length)
                return -EBADMSG;
        if (*end == '.') {
                for (end++; *end >= '0' && *end <= '9'; end++) {
                        unit /= 10;
                        usec += unit * (uint64_t)(*end - '0');
                }
        }
        sec = timegm(&tm);
        if (strcmp(end, "Z") != 0 || sec < 0)
                return -EBADMSG;
        *ret_usec = (uint64_t)sec * USEC_PER_SEC + usec;
        return 0;
}

/* Computes the lifetime from two times of Keystone, so the clock of this host does not matter. A
 * token without an end has UINT64_MAX. */
static int read_lifetime(const json_t *token, KeystoneToken *ret, Error *reterr)
{
        const json_t *expires = json_object_get(token, "expires_at");
        const char *from, *to;
        uint64_t issued, end;

        if (!expires || json_is_null(expires)) {
                ret->lifetime_usec = UINT64_MAX;
                return 0;
        }
        if (json_read_string(token, "issued_at", &from, reterr) < 0 ||
            json_read_string(token, "expires_at", &to, reterr) < 0)
                return -EBADMSG;
        if (read_time(from, &issued) < 0 || read_time(to, &end) < 0)
                return error_setf(reterr, EBADMSG, "issued_at or expires_at is not a time");
        if (end <= issued)
                return error_setf(reterr, EBADMSG, "expires_at is before issued_at");
        ret->issued_usec = issued;
        ret->lifetime_usec = end - issued;
        return 0;
}

/* The catalogue. */

/* Returns a member as text, "" if it is missing or not a string. Borrowed from object. */
static const char *text_of(const json_t *object, const char *key)
{
        const char *text = json_string_value(json_object_get(object, key));

        return text ? text : "";
}

/* Returns the region, which older catalogues have in another member. */
static const char *region_of(const json_t *endpoint)
{
        const char *id = text_of(endpoint, "region_id");

        return id[0] ? id : text_of(endpoint, "region");
}

static bool is_service(const json_t *service, const KeystoneConfig *config)
{
        const char *type =
                keystone_is_set(config->service_type) ? config->service_type : "placement";

        return strcmp(text_of(service, "type"), type) == 0 &&
               (!keystone_is_set(config->service_name) ||
                strcmp(text_of(service, "name"), config->service_name) == 0);
}

/* Compares interfaces; "publicURL" is an old name of "public". */
static bool is_interface(const json_t *endpoint, const char *wanted)
{
        size_t n = strlen(wanted);

        if (n > 3 && strcmp(wanted + n - 3, "URL") == 0)
                n -= 3;
        return strlen(text_of(endpoint, "interface")) == n &&
               strncmp(text_of(endpoint, "interface"), wanted, n) == 0;
}

/* Returns the i-th interface in the order of preference, NULL after the last. */
static const char *preferred_interface(const KeystoneConfig *config, size_t i)
{
        static const char *const defaults[] = { "internal", "public", NULL };

        if (config->valid_interfaces && config->valid_interfaces[0])
                return config->valid_interfaces[i];
        if (keystone_is_set(config->interface))
                return i == 0 ? config->interface : NULL;
        return defaults[i];
}

/* Returns the first address of the service with this interface, in the region if one is configured.
 * NULL: none. */
static const char *find_url(const json_t *catalog, const KeystoneConfig *config,
                            const char *interface)
{
        const json_t *service, *endpoint;
        size_t i, j;

        json_array_foreach((json_t *)catalog, i, service) {
                if (!is_service(service, config))
                        continue;
                json_array_foreach(json_object_get(service, "endpoints"), j, endpoint)
                        if (is_interface(endpoint, interface) && text_of(endpoint, "url")[0] &&
                            (!keystone_is_set(config->region_name) ||
                             strcmp(region_of(endpoint), config->region_name) == 0))
                                return text_of(endpoint, "url");
        }
        return NULL;
}

/* Writes the endpoints of the service in the catalogue as "RegionOne/public, …", for a message. The
 * list is cut at size. */
static void list_endpoints(const json_t *catalog, const KeystoneConfig *config, char *text,
                           size_t size)
{
        const json_t *service, *endpoint;
        size_t i, j, n = 0;

        text[0] = '\0';
        json_array_foreach((json_t *)catalog, i, service) {
                if (!is_service(service, config))
                        continue;
                json_array_foreach(json_object_get(service, "endpoints"), j, endpoint) {
                        if (n + 40 > size)
                                return;
                        n += (size_t)snprintf(text + n, size - n, "%s%.20s/%.10s", n ? ", " : "",
                                              region_of(endpoint), text_of(endpoint, "interface"));
                }
        }
}

/* Checks an address of the catalogue. One with "@" can contain a password and is not quoted. */
static int check_url(const char *url, Error *reterr)
{
        _cleanup_(http_endpoint_done) HttpEndpoint endpoint = HTTP_ENDPOINT_INIT;

        if (http_endpoint_parse(url, &endpoint, NULL) < 0 || endpoint.socket_path)
                return error_setf(
                        reterr, EBADMSG,
                        "Keystone's catalogue has an invalid address of Placement (%.60s). Check \"openstack endpoint list --service placement\"",
                        strchr(url, '@') ? "not shown" : url);
        return 0;
}

/* Finds the address of Placement in the catalogue by type, name and region, with the first
 * preferred interface that has one. The result is borrowed from catalog. -ENOENT or -EBADMSG with
 * words. */
static int find_in_catalog(const json_t *catalog, const KeystoneConfig *config, const char **ret,
                           Error *reterr)
{
        const char *interface, *url = NULL;
        char there[100];

        for (size_t i = 0; !url && (interface = preferred_interface(config, i)); i++)
                url = find_url(catalog, config, interface);
        if (url && check_url(url, reterr) < 0)
                return -EBADMSG;
        if (url) {
                *ret = url;
                return 0;
        }
        list_endpoints(catalog, config, there, sizeof(there));
        if (!there[0])
                return error_setf(
                        reterr, ENOENT,
                        "Keystone's catalogue has no service of type %.40s. Create its endpoint, or set service_type or endpoint_override",
                        keystone_is_set(config->service_type) ? config->service_type : "placement");
        return error_setf(
                reterr, ENOENT,
                "Keystone's catalogue has Placement only as %s. Check region_name and valid_interfaces in [placement]",
                there);
}

/* The token. */

/* Makes the header for Placement from the token, which must be printable ASCII. */
static int read_header(const char *subject, KeystoneToken *ret, Error *reterr)
{
        bool printable = strlen(subject) <= KEYSTONE_TOKEN_MAX;

        for (const char *c = subject; *c && printable; c++)
                printable = *c > ' ' && *c < 0x7f;
        if (!subject[0] || !printable)
                return error_setf(reterr, EBADMSG, "its header X-Subject-Token is %s",
                                  subject[0] ? "no token" : "missing");
        ret->header = secret_join("X-Auth-Token: ", subject);
        return ret->header ? 0 : error_oom(reterr);
}

static int read_roles(const json_t *token, KeystoneToken *ret, Error *reterr)
{
        const json_t *role;
        size_t i;

        json_array_foreach(json_object_get(token, "roles"), i, role) {
                if (i >= ROLES_MAX)
                        break;
                if (text_of(role, "name")[0] &&
                    string_set_add(&ret->roles, text_of(role, "name")) < 0)
                        return error_oom(reterr);
        }
        return 0;
}

/* Notes the scope as words for status messages. */
static void read_scope(const json_t *token, KeystoneToken *ret)
{
        static const char *const kinds[] = { "project", "domain" };

        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
                const json_t *scope = json_object_get(token, kinds[i]);

                if (json_is_object(scope))
                        snprintf(ret->scope, sizeof(ret->scope), "%s %.100s", kinds[i],
                                 text_of(scope, "name"));
        }
        if (json_is_object(json_object_get(token, "system")))
                snprintf(ret->scope, sizeof(ret->scope), "system");
        text_trim_cut(ret->scope);
}

static int read_endpoint(const json_t *token, const KeystoneConfig *config, KeystoneToken *ret,
                         Error *reterr)
{
        const char *url;
        int r = find_in_catalog(json_object_get(token, "catalog"), config, &url, reterr);

        if (r < 0)
                return r;
        ret->endpoint = strdup(url);
        return ret->endpoint ? 0 : error_oom(reterr);
}

/* Reads all parts of the token but the endpoint. */
static int read_token(const json_t *token, const HttpResponse *response, KeystoneToken *ret,
                      Error *reterr)
{
        int r;

        if (!json_is_object(token))
                return error_setf(reterr, EBADMSG, "it has no token");
        r = read_header(response->subject_token, ret, reterr);
        if (r == 0)
                r = read_lifetime(token, ret, reterr);
        if (r == 0)
                r = read_roles(token, ret, reterr);
        if (r == 0)
                read_scope(token, ret);
        return r;
}

static int read_body(const KeystoneConfig *config, bool wants_endpoint,
                     const HttpResponse *response, KeystoneToken *ret, Error *reterr)
{
        _cleanup_json_ json_t *body = NULL;
        const json_t *token;
        int r = json_parse(response->body, response->body_size, &body, reterr);

        token = json_object_get(body, "token");
        if (r == 0)
                r = read_token(token, response, ret, reterr);
        if (r < 0)
                return error_prefixf(reterr, r,
                                     "The answer of auth_url is not a token of Keystone");
        return wants_endpoint ? read_endpoint(token, config, ret, reterr) : 0;
}

/* Rejections. */

/* Describes the user, for example "user nova" or "application credential 4711". Borrows from
 * config. */
static void describe_user(const KeystoneConfig *config, ReporterAuth kind, const char **ret_kind,
                          const char **ret_name)
{
        if (kind == REPORTER_AUTH_V3APPLICATIONCREDENTIAL) {
                *ret_kind = "application credential";
                *ret_name = keystone_is_set(config->application_credential_id)
                                    ? config->application_credential_id
                                    : config->application_credential_name;
        } else {
                *ret_kind = "user";
                *ret_name = keystone_is_set(config->user_id) ? config->user_id : config->username;
        }
}

/* Describes the part of the scope that can be mistyped. */
static const char *describe_scope(const KeystoneConfig *config, char *text, size_t size)
{
        const char *project =
                keystone_is_set(config->project_id) ? config->project_id : config->project_name;
        const char *domain =
                keystone_is_set(config->domain_id) ? config->domain_id : config->domain_name;

        if (keystone_is_set(project))
                snprintf(text, size, "the project %.60s", project);
        else if (keystone_is_set(domain))
                snprintf(text, size, "the domain %.60s", domain);
        else
                snprintf(text, size, "the scope");
        return text;
}

/* Describes the possible causes of a rejection. Keystone sends no reason, because a reason would
 * help an attacker who guesses. */
static int judge_unauthorized(const KeystoneConfig *config, ReporterAuth kind, int status,
                              Error *reterr)
{
        const char *what, *name;
        char scope[80];

        describe_user(config, kind, &what, &name);
        if (kind == REPORTER_AUTH_V3APPLICATIONCREDENTIAL)
                error_setf(
                        reterr, EACCES,
                        "Keystone rejected the %s %.60s (%d). Its secret is wrong, or it is deleted or expired",
                        what, name, status);
        else
                error_setf(
                        reterr, EACCES,
                        "Keystone rejected the %s %.60s (%d). Check its name, domain and password, and its role in %s. The account might be locked or disabled",
                        what, name, status, describe_scope(config, scope, sizeof(scope)));
        return REPORT_E_UNAUTHORIZED;
}

/* Maps a status to an outcome. Only 401 and 403 reject the credential; all others are outages. */
static int judge_refusal(const KeystoneConfig *config, ReporterAuth kind,
                         const HttpResponse *response, Error *reterr)
{
        int status = response->status;

        if (status == 401 || status == 403)
                return judge_unauthorized(config, kind, status, reterr);
        if (status == 404 || (status >= 300 && status < 400))
                error_setf(
                        reterr, EBADMSG,
                        "There is no Keystone at auth_url of [placement] (%d to POST /v3" KEYSTONE_TOKENS_PATH
                        "). Check its path",
                        status);
        else if (status == 408 || status == 429 || status >= 500)
                error_setf(reterr, EAGAIN,
                           "Keystone fails at POST /v3" KEYSTONE_TOKENS_PATH " (%d)", status);
        else
                error_setf(reterr, EREMOTEIO,
                           "Keystone rejects POST /v3" KEYSTONE_TOKENS_PATH " (%d)", status);
        return REPORT_E_UNAVAILABLE;
}

int keystone_read_answer(const KeystoneConfig *config, ReporterAuth kind, bool wants_endpoint,
                         const HttpResponse *response, KeystoneToken *ret, Error *reterr)
{
        _cleanup_(keystone_token_done) KeystoneToken token = KEYSTONE_TOKEN_INIT;
        int r;

        if (response->status != 200 && response->status != 201)
                return judge_refusal(config, kind, response, reterr);
        r = read_body(config, wants_endpoint, response, &token, reterr);
        if (r < 0)
                return r == -ENOMEM ? r : REPORT_E_UNAVAILABLE;
        keystone_token_done(ret);
        *ret = TAKE_STRUCT(token);
        return REPORT_DONE;
}
