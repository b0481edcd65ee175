/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/claim-service.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/message-ids.h"

struct ClaimService {
        char *path, *host, *node;
        uint64_t expiry_usec;
        Claims *claims;
        ProviderTree *remembered; /* as the database had it when it was opened, or NULL */
        ProviderTree *tree;       /* NULL before the first one */
        bool tree_stored;         /* claims has it */
        Error error;
        bool error_logged;
};

int claim_service_new(ClaimService **ret, const ClaimsConfig *config)
{
        _cleanup_(claim_service_freep) ClaimService *service = calloc(1, sizeof(ClaimService));

        if (!service)
                return -ENOMEM;
        service->path = strdup(config->path);
        service->host = strdup(config->host);
        service->node = strdup(config->node);
        service->expiry_usec = config->expiry_usec;
        if (!service->path || !service->host || !service->node)
                return -ENOMEM;
        claim_service_tend(service);
        *ret = TAKE_PTR(service);
        return 0;
}

ClaimService *claim_service_free(ClaimService *service)
{
        if (!service)
                return NULL;
        claims_free(service->claims);
        provider_tree_free(service->remembered);
        provider_tree_free(service->tree);
        free(service->path);
        free(service->host);
        free(service->node);
        free(service);
        return NULL;
}

/* One line when the trouble begins, one when it ends. */
static void set_error(ClaimService *service, int r, const Error *error)
{
        if (r == 0) {
                if (service->error_logged)
                        log_notice("The claim database %s can be used again.", service->path);
                service->error_logged = false;
                service->error = ERROR_NULL;
                return;
        }
        error_setf(&service->error, r < 0 ? r : EBUSY, "%s", error_text(error, r < 0 ? r : -EBUSY));
        if (!service->error_logged)
                log_event(LOG_ERR, MESSAGE_CLAIM_STORE_LOST, NULL,
                          "Claims cannot be taken: %s. Everything else goes on; trying again with "
                          "every cycle.",
                          service->error.text);
        service->error_logged = true;
}

static void log_opened(const ClaimService *service, int opened, const Error *error)
{
        switch (opened) {
        case CLAIMS_CREATED:
                log_info("Made the claim database %s.", service->path);
                break;
        case CLAIMS_UPGRADED:
                log_notice("Upgraded the claim database %s; the old file is kept beside it.",
                           service->path);
                break;
        case CLAIMS_SET_ASIDE:
                log_event(LOG_ERR, MESSAGE_CLAIM_DB_SET_ASIDE, NULL, "%s", error->text);
                break;
        default:
                break;
        }
}

static void remember_tree(ClaimService *service)
{
        Error error = ERROR_NULL;
        ProviderTree *tree;
        int r = claims_get_providers(service->claims, &tree, &error);

        if (r != 0) {
                log_debug("The host before this start is not known: %s", error_text(&error, r));
                return;
        }
        provider_tree_free(service->remembered);
        service->remembered = tree;
}

static void open_store(ClaimService *service)
{
        const ClaimsConfig config = {
                .path = service->path,
                .host = service->host,
                .node = service->node,
                .expiry_usec = service->expiry_usec,
        };
        Error error = ERROR_NULL;
        int r = claims_open(&service->claims, &config, &error);

        if (r >= 0)
                log_opened(service, r, &error);
        set_error(service, MIN(r, 0), &error);
        service->tree_stored = false;
        if (r >= 0)
                remember_tree(service);
}

static void store_tree(ClaimService *service)
{
        Error error = ERROR_NULL;
        int r = claims_set_providers(service->claims, service->tree, &error);

        service->tree_stored = r == 0;
        set_error(service, r, &error);
}

static void expire(ClaimService *service)
{
        struct timespec now;
        Error error = ERROR_NULL;
        uint64_t n = 0;
        int r;

        clock_gettime(CLOCK_REALTIME, &now);
        r = claims_expire(service->claims,
                          (uint64_t)now.tv_sec * USEC_PER_SEC + now.tv_nsec / NSEC_PER_USEC, &n,
                          &error);
        if (r != 0)
                log_debug("Claims could not be checked for expiry: %s", error_text(&error, r));
        if (n > 0)
                log_notice("Released %" PRIu64 " claim(s) that were not confirmed in time.", n);
}

void claim_service_tend(ClaimService *service)
{
        if (!service->claims)
                open_store(service);
        if (!service->claims)
                return;
        if (service->tree && !service->tree_stored)
                store_tree(service);
        expire(service);
}

void claim_service_set_expiry(ClaimService *service, uint64_t expiry_usec)
{
        if (service->expiry_usec == expiry_usec)
                return;
        service->expiry_usec = expiry_usec;
        service->claims = claims_free(service->claims);
        claim_service_tend(service);
}

void claim_service_set_tree(ClaimService *service, const ProviderTree *tree)
{
        ProviderTree *copy;

        if (service->tree_stored && provider_tree_equal(service->tree, tree))
                return;
        if (provider_tree_copy(&copy, tree) < 0) {
                log_warning(
                        "Out of memory: claims go on with the host as it was before, ignoring.");
                return;
        }
        provider_tree_free(service->tree);
        service->tree = copy;
        service->tree_stored = false;
        if (service->claims)
                store_tree(service);
}

void claim_service_set_node(ClaimService *service, const char *node)
{
        char *copy = strdup(node);

        if (!copy || (service->claims && claims_set_node(service->claims, node) < 0)) {
                free(copy);
                log_warning("Out of memory: new claims are of node %s, ignoring.", service->node);
                return;
        }
        free(service->node);
        service->node = copy;
}

const ProviderTree *claim_service_get_remembered_tree(ClaimService *service)
{
        return service->remembered;
}

Claims *claim_service_get(ClaimService *service)
{
        return service->claims;
}

const Error *claim_service_error(const ClaimService *service)
{
        return &service->error;
}

size_t claim_service_count(ClaimService *service)
{
        _cleanup_(claim_list_done) ClaimList list = { 0 };

        if (!service->claims || claims_list(service->claims, false, &list, NULL) != 0)
                return 0;
        return list.n_claims;
}
