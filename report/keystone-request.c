/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/keystone-request.h"

#include <string.h>

#include "base/json.h"

int keystone_make_base_url(const char *auth_url, char **ret)
{
        size_t n = strlen(auth_url);
        bool versioned;

        while (n > 0 && auth_url[n - 1] == '/')
                n--;
        versioned = n >= 3 && strncmp(auth_url + n - 3, "/v3", 3) == 0;
        return asprintf(ret, "%.*s%s", (int)n, auth_url, versioned ? "" : "/v3") < 0 ? -ENOMEM : 0;
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

        if (json_object_set_new(user, "password", json_string(config->password)) < 0) {
                json_decref(user);
                return NULL;
        }
        return json_pack("{s[s] s{so}}", "methods", "password", "password", "user", user);
}

static json_t *make_credential(const KeystoneConfig *config)
{
        json_t *credential = make_reference(config->application_credential_id,
                                            config->application_credential_name);

        if (json_object_set_new(credential, "secret",
                                json_string(config->application_credential_secret)) < 0 ||
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

static void wipe_member(json_t *object, const char *key)
{
        const char *text = json_string_value(json_object_get(object, key));

        /* jansson's own copy, which is about to be freed */
        if (text)
                explicit_bzero((char *)(uintptr_t)text, strlen(text));
}

/* Takes identity and scope (NULL: none). */
static char *dump_and_wipe(json_t *identity, json_t *scope)
{
        _cleanup_json_ json_t *body =
                json_pack("{s{so so*}}", "auth", "identity", identity, "scope", scope);
        json_t *parts = json_object_get(json_object_get(body, "auth"), "identity");
        char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;

        wipe_member(json_object_get(json_object_get(parts, "password"), "user"), "password");
        wipe_member(json_object_get(parts, "application_credential"), "secret");
        return text;
}

int keystone_make_token_request(const KeystoneConfig *config, ReporterAuth kind, char **ret)
{
        bool scoped = kind == REPORTER_AUTH_PASSWORD;
        json_t *identity = scoped ? make_password(config) : make_credential(config);
        json_t *scope = scoped ? make_scope(config) : NULL;
        char *text = NULL;

        if (identity && (scope || !scoped)) {
                text = dump_and_wipe(identity, scope);
        } else {
                json_decref(identity);
                json_decref(scope);
        }
        if (!text)
                return -ENOMEM;
        *ret = text;
        return 0;
}
