/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Checks the Keystone options before the first request, and reports the first wrong option. A
 * password is checked in the order address, user, secret, scope. An application credential is
 * checked in the order address, secret, forbidden scope, id or name with a user. The interface of
 * the endpoint is checked last. A password needs exactly one scope: project, domain, system or
 * trust. An application credential must have none, because it has its own. Only one of interface
 * and valid_interfaces can be set. The domains of user and project can come from the defaults.
 * Messages name options and quote no value, because a value in the wrong option can be a secret.
 * Pure. */

#include "report/keystone/config.h"

#include <string.h>

#include "base/text.h"

static const char *kind_to_text(ReporterAuth kind)
{
        return kind == REPORTER_AUTH_V3APPLICATIONCREDENTIAL ? "v3applicationcredential"
                                                             : "password";
}

static int refuse(const char **ret_option, const char *option, Error *reterr, const char *words)
{
        *ret_option = option;
        return error_setf(reterr, EINVAL, "%s", words);
}

/* Reports a missing option; what names it or its alternatives. */
static int miss(const char **ret_option, ReporterAuth kind, Error *reterr, const char *what)
{
        *ret_option = "auth_type";
        return error_setf(reterr, EINVAL, "%s needs %s, which is not set", kind_to_text(kind),
                          what);
}

static int check_url(const KeystoneConfig *config, ReporterAuth kind, const char **ret_option,
                     Error *reterr)
{
        if (!keystone_is_set(config->auth_url))
                return miss(ret_option, kind, reterr, "auth_url");
        if (strstr(config->auth_url, "/v2.0"))
                return refuse(
                        ret_option, "auth_url", reterr,
                        "Keystone has no API v2.0 any more. Write the address without a version, or with /v3");
        return 0;
}

/* Checks for the id or name of a domain, or of the default domain. */
static bool has_domain(const KeystoneConfig *config, const char *id, const char *name)
{
        return keystone_is_set(id) || keystone_is_set(name) ||
               keystone_is_set(config->default_domain_id) ||
               keystone_is_set(config->default_domain_name);
}

static int check_user(const KeystoneConfig *config, ReporterAuth kind, const char **ret_option,
                      Error *reterr)
{
        if (keystone_is_set(config->user_id))
                return 0;
        if (!keystone_is_set(config->username))
                return miss(ret_option, kind, reterr, "username or user_id");
        if (!has_domain(config, config->user_domain_id, config->user_domain_name))
                return miss(ret_option, kind, reterr,
                            "user_domain_name or user_domain_id beside username");
        return 0;
}

/* One kind of scope: the option to name in a message, and whether it is set. */
typedef struct Scope {
        const char *option;
        bool set;
} Scope;

#define N_SCOPES 4

static void list_scopes(const KeystoneConfig *config, Scope ret[static N_SCOPES])
{
        const Scope scopes[N_SCOPES] = {
                { keystone_is_set(config->project_id) ? "project_id" : "project_name",
                  keystone_is_set(config->project_id) || keystone_is_set(config->project_name) },
                { keystone_is_set(config->domain_id) ? "domain_id" : "domain_name",
                  keystone_is_set(config->domain_id) || keystone_is_set(config->domain_name) },
                { "system_scope", keystone_is_set(config->system_scope) },
                { "trust_id", keystone_is_set(config->trust_id) },
        };

        memcpy(ret, scopes, sizeof(scopes));
}

/* Checks that exactly one scope is set and that it is complete. */
static int check_scope(const KeystoneConfig *config, ReporterAuth kind, const char **ret_option,
                       Error *reterr)
{
        Scope scopes[N_SCOPES];
        const char *found = NULL;

        list_scopes(config, scopes);
        for (size_t i = 0; i < N_SCOPES; i++) {
                if (!scopes[i].set)
                        continue;
                if (found) {
                        *ret_option = scopes[i].option;
                        return error_setf(
                                reterr, EINVAL,
                                "a token has only one scope, but %s is also set. Remove one of them",
                                found);
                }
                found = scopes[i].option;
        }
        if (!found)
                return miss(ret_option, kind, reterr,
                            "a scope (project_name, domain_name or system_scope)");
        if (strcmp(found, "project_name") == 0 &&
            !has_domain(config, config->project_domain_id, config->project_domain_name))
                return miss(ret_option, kind, reterr,
                            "project_domain_name or project_domain_id beside project_name");
        if (strcmp(found, "system_scope") == 0 && strcmp(config->system_scope, "all") != 0)
                return refuse(ret_option, "system_scope", reterr, "the value must be all");
        return 0;
}

/* Checks a secret for UTF-8, which JSON requires. */
static bool is_utf8(const char *text)
{
        while (*text) {
                size_t n = text_sequence_length(text);

                if (n == 0)
                        return false;
                text += n;
        }
        return true;
}

static int check_password(const KeystoneConfig *config, const char **ret_option, Error *reterr)
{
        int r = check_user(config, REPORTER_AUTH_PASSWORD, ret_option, reterr);

        if (r < 0)
                return r;
        if (!keystone_is_set(config->password))
                return miss(
                        ret_option, REPORTER_AUTH_PASSWORD, reterr,
                        "password, or the credential placement-password (LoadCredential= of the unit, read at its start)");
        if (!is_utf8(config->password))
                return refuse(ret_option, "password", reterr, "it is not UTF-8");
        return check_scope(config, REPORTER_AUTH_PASSWORD, ret_option, reterr);
}

/* Checks an application credential. An application credential has a scope of its own, so no option
 * of a scope must be set. A user is needed only if the credential is named and has no id. */
static int check_credential(const KeystoneConfig *config, const char **ret_option, Error *reterr)
{
        const ReporterAuth kind = REPORTER_AUTH_V3APPLICATIONCREDENTIAL;
        Scope scopes[N_SCOPES];

        if (!keystone_is_set(config->application_credential_secret))
                return miss(
                        ret_option, kind, reterr,
                        "application_credential_secret, or the credential placement-application-credential-secret (LoadCredential= of the unit, read at its start)");
        if (!is_utf8(config->application_credential_secret))
                return refuse(ret_option, "application_credential_secret", reterr,
                              "it is not UTF-8");
        list_scopes(config, scopes);
        for (size_t i = 0; i < N_SCOPES; i++)
                if (scopes[i].set)
                        return refuse(
                                ret_option, scopes[i].option, reterr,
                                "an application credential already has a scope. Remove this option");
        if (keystone_is_set(config->application_credential_id))
                return 0;
        if (!keystone_is_set(config->application_credential_name))
                return miss(
                        ret_option, kind, reterr,
                        "application_credential_id, or application_credential_name with a user");
        return check_user(config, kind, ret_option, reterr);
}

int keystone_config_check(const KeystoneConfig *config, ReporterAuth kind, const char **ret_option,
                          Error *reterr)
{
        int r = check_url(config, kind, ret_option, reterr);

        if (r < 0)
                return r;
        r = kind == REPORTER_AUTH_PASSWORD ? check_password(config, ret_option, reterr)
                                           : check_credential(config, ret_option, reterr);
        if (r < 0)
                return r;
        if (keystone_is_set(config->interface) && config->valid_interfaces &&
            config->valid_interfaces[0])
                return refuse(ret_option, "interface", reterr,
                              "valid_interfaces is also set. Remove one of them");
        return 0;
}
