/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The options of the way to Placement, as the configuration has them and report/ takes them: plain
 * data, so that a reader of the configuration needs nothing of the report client. */

#include "base/macros.h"

/* Everything is borrowed and must outlive the client. */
typedef struct HttpConfig {
        const char *endpoint; /* see report/http/endpoint.h; NULL: http_client_set_endpoint() comes
                               * before the first request */
        const char *service;  /* its name, for words; NULL: Placement */
        uint64_t max_connections; /* 1 … HTTP_MAX_CONNECTIONS_LIMIT */
        uint64_t connect_timeout_usec;
        uint64_t timeout_usec;       /* one request from its start to its last byte */
        uint64_t stall_timeout_usec; /* a body that has begun and stands still; 0: none */
        uint64_t max_body_bytes;     /* of an answer; 0: HTTP_MAX_BODY_BYTES_DEFAULT */
        const char *cafile, *certfile, *keyfile; /* NULL: the system's, none, none */
        bool insecure;                           /* do not verify the server's certificate */
        const char *user_agent;                  /* NULL: none is sent */
} HttpConfig;

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

typedef struct AuthConfig {
        ReporterAuth kind;
        const char *token;              /* admin_token; copied */
        const KeystoneConfig *keystone; /* of the kinds that need it; borrowed */
        bool wants_endpoint;            /* Keystone's catalogue is to say where Placement is */
} AuthConfig;

/* [agent] nova */
typedef enum NovaMode {
        NOVA_NONE,    /* no nova-compute reports this host */
        NOVA_OBSERVE, /* it does, and the agent writes nothing */
        NOVA_BESIDE,  /* it does, and the agent writes what its claims hold */
        NOVA_TOP,     /* it asks the agent (a driver of its own), which writes all */
        _NOVA_MODE_MAX,
} NovaMode;

/* When the usage of the root's DISK_GB is read. */
typedef enum SharingUse {
        SHARING_USE_NEVER,
        SHARING_USE_WITH_POOL, /* while a sharing provider has DISK_GB */
        SHARING_USE_ALWAYS,
} SharingUse;

/* [placement]. Filled by agent/, borrowed, must outlive the reporter. */
typedef struct ReporterConfig {
        HttpConfig http;     /* endpoint NULL: as Keystone's catalogue has it */
        AuthConfig auth;     /* wants_endpoint follows from that */
        NovaMode nova;       /* [agent] nova: what may be written */
        SharingUse disk_use; /* when the usage of the root's DISK_GB is read */
} ReporterConfig;
