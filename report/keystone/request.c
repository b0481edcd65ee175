/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/keystone/request.h"

#include <string.h>

#include "base/json.h"
#include "base/secret.h"
#include "base/text.h"

#define ESCAPED_MAX 6 /* "\\u001f" */

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

void keystone_describe_user(const KeystoneConfig *config, ReporterAuth kind, const char **ret_kind,
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

/* {"id": …} when there is an id, else {"name": …}; NULL when neither is set or memory is out. */
static json_t *make_reference(const char *id, const char *name)
{
        if (keystone_is_set(id))
                return json_pack("{ss}", "id", id);
        return keystone_is_set(name) ? json_pack("{ss}", "name", name) : NULL;
}

static json_t *make_domain(const KeystoneConfig *config, const char *id, const char *name)
{
        json_t *domain = make_reference(id, name);

        return domain ? domain
                      : make_reference(config->default_domain_id, config->default_domain_name);
}

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

/* How a character of a text stands in JSON. Returns its length, at most ESCAPED_MAX. */
static size_t escape(char c, char escaped[static ESCAPED_MAX + 1])
{
        if (c == '"' || c == '\\')
                return (size_t)sprintf(escaped, "\\%c", c);
        if ((unsigned char)c < ' ')
                return (size_t)sprintf(escaped, "\\u%04x", (unsigned)c);
        escaped[0] = c;
        return 1;
}

/* Puts the secret where document has "key":"". There is one such place: in a text its quotes would
 * have backslashes before them. */
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

/* Takes identity and scope (NULL: none). */
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
