/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Who asks Keystone for a token, for what, and which endpoint of its catalogue is taken: the
 * options of keystoneauth, by their names there. Pure. */

#include "base/error.h"

/* How requests to Placement are authorised. */
typedef enum ReporterAuth {
        REPORTER_AUTH_NONE,
        REPORTER_AUTH_ADMIN_TOKEN, /* X-Auth-Token: token */
        REPORTER_AUTH_PASSWORD,
        REPORTER_AUTH_V3APPLICATIONCREDENTIAL,
        _REPORTER_AUTH_MAX,
        _REPORTER_AUTH_INVALID = -EINVAL,
} ReporterAuth;

/* NULL or "" is: not set. Who fills it owns it. */
typedef struct KeystoneConfig {
        char *auth_url;
        char *username, *user_id, *user_domain_name, *user_domain_id;
        char *password; /* never logged */
        char *project_name, *project_id, *project_domain_name, *project_domain_id;
        char *domain_name, *domain_id;
        char *default_domain_name, *default_domain_id; /* for those that are not set */
        char *system_scope, *trust_id;
        char *application_credential_id, *application_credential_name;
        char *application_credential_secret; /* never logged */
        char *region_name;                   /* not set: any */
        char *service_type;                  /* not set: "placement" */
        char *service_name;                  /* not set: any */
        char *interface;                     /* one, where valid_interfaces is not set */
        char **valid_interfaces;             /* NULL-terminated; the first that is there is taken;
                                              * not set: internal, public */
} KeystoneConfig;

static inline bool keystone_is_set(const char *text)
{
        return text && text[0] != '\0';
}

/* Whether a token can be asked for at all. -EINVAL with words; *ret_option (static) is
 * the option that is wrong, or auth_type when one is missing. No value is quoted. */
int keystone_config_check(const KeystoneConfig *config, ReporterAuth kind, const char **ret_option,
                          Error *reterr);
