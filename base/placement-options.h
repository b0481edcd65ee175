/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The options of the connection to Placement, as the configuration stores them and report/ reads
 * them. Plain data, so that code that reads the configuration needs no part of the report
 * client. */

#include "base/macros.h"

/* Options of one HTTP client. All strings are borrowed and must outlive the client. */
typedef struct HttpConfig {
        const char *endpoint; /* see report/http/endpoint.h; NULL: http_client_set_endpoint() sets
                               * it before the first request */
        const char *service;  /* name of the service for messages; NULL: Placement */
        uint64_t max_connections; /* 1 … HTTP_MAX_CONNECTIONS_LIMIT */
        uint64_t connect_timeout_usec;
        uint64_t timeout_usec;       /* limit of one request, from its start to its last byte */
        uint64_t stall_timeout_usec; /* longest pause within a body; 0: no limit */
        uint64_t max_body_bytes;     /* limit of an answer; 0: HTTP_MAX_BODY_BYTES_DEFAULT */
        const char *cafile, *certfile, *keyfile; /* NULL: the system's CAs, no certificate, no
                                                  * key */
        bool insecure;                           /* do not verify the server's certificate */
        const char *user_agent;                  /* NULL: no such header */
} HttpConfig;

/* Kinds of authorisation of requests to Placement. */
typedef enum ReporterAuth {
        REPORTER_AUTH_NONE,
        REPORTER_AUTH_ADMIN_TOKEN, /* X-Auth-Token: token */
        REPORTER_AUTH_PASSWORD,
        REPORTER_AUTH_V3APPLICATIONCREDENTIAL,
        _REPORTER_AUTH_MAX,
        _REPORTER_AUTH_INVALID = -EINVAL,
} ReporterAuth;

/* Options of Keystone, all owned by the code that fills them. NULL and "" mean: not set. */
typedef struct KeystoneConfig {
        char *auth_url;
        char *username, *user_id, *user_domain_name, *user_domain_id;
        char *password; /* never logged */
        char *project_name, *project_id, *project_domain_name, *project_domain_id;
        char *domain_name, *domain_id;
        char *default_domain_name, *default_domain_id; /* used where user, project or domain names
                                                        * none */
        char *system_scope, *trust_id;
        char *application_credential_id, *application_credential_name;
        char *application_credential_secret; /* never logged */
        char *region_name;                   /* NULL or "": any region */
        char *service_type;                  /* NULL or "": "placement" */
        char *service_name;                  /* NULL or "": any name */
        char *interface;                     /* one interface, used if valid_interfaces is not
                                              * set */
        char **valid_interfaces;             /* NULL-terminated, in order of preference: the first
                                              * in the catalogue is used; not set: internal,
                                              * public */
} KeystoneConfig;

typedef struct AuthConfig {
        ReporterAuth kind;
        const char *token;              /* admin_token; copied */
        const KeystoneConfig *keystone; /* for the kinds that use Keystone; borrowed */
        bool wants_endpoint;            /* read Placement's endpoint from Keystone's catalogue */
} AuthConfig;

/* The relation between nova-compute and the agent, [agent] nova. */
typedef enum NovaMode {
        NOVA_NONE,    /* no nova-compute reports this host */
        NOVA_OBSERVE, /* nova-compute reports the host, and the agent writes nothing */
        NOVA_BESIDE,  /* nova-compute reports the host, and the agent writes the allocations of its
                       * claims */
        NOVA_TOP,     /* nova-compute has a driver that asks the agent, and the agent writes
                       * everything */
        _NOVA_MODE_MAX,
} NovaMode;

/* When to read the usage of the root's DISK_GB. */
typedef enum SharingUse {
        SHARING_USE_NEVER,
        SHARING_USE_WITH_POOL, /* if a sharing provider has DISK_GB */
        SHARING_USE_ALWAYS,
} SharingUse;

/* Options of [placement]. agent/ fills and owns them, and they must outlive the reporter. */
typedef struct ReporterConfig {
        HttpConfig http;     /* endpoint NULL: from Keystone's catalogue */
        AuthConfig auth;     /* wants_endpoint is true if http.endpoint is NULL */
        NovaMode nova;       /* decides what the agent can write */
        SharingUse disk_use; /* when to read the usage of the root's DISK_GB */
} ReporterConfig;
