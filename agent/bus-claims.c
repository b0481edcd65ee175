/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/bus-claims.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "agent/bus-claims-internal.h"
#include "agent/bus-interface.h"
#include "base/log.h"

#define GROUPS_MAX 256

/* The bus error of a result of claims.h, with its words. */
int bus_claims_error(ClaimService *service, sd_bus_error *error, int r, const Error *words)
{
        static const char *const names[] = {
                [CLAIM_E_NO_CAPACITY] = BUS_ERROR_NO_CAPACITY,
                [CLAIM_E_UNKNOWN_CLASS] = BUS_ERROR_UNKNOWN_CLASS,
                [CLAIM_E_CONFLICT] = BUS_ERROR_CONFLICT,
                [CLAIM_E_NOT_FOUND] = BUS_ERROR_NOT_FOUND,
                [CLAIM_E_BUSY] = BUS_ERROR_BUSY,
        };

        claim_service_check(service, r);
        if (r > 0 && r < (int)ARRAY_SIZE(names))
                return sd_bus_error_setf(error, names[r], "%s", error_text(words, -EBUSY));
        return sd_bus_error_setf(error, r == -EINVAL ? BUS_ERROR_INVALID : BUS_ERROR_STORE, "%s",
                                 error_text(words, r));
}

int bus_claims_open(ClaimService *service, Claims **ret, sd_bus_error *error)
{
        *ret = claim_service_get(service);
        if (*ret)
                return 0;
        return sd_bus_error_setf(error, BUS_ERROR_STORE, "Claims cannot be used: %s",
                                 claim_service_error(service)->text);
}

/* Reading a request. A malformed message is -EINVAL with words; what sd-bus itself says goes
 * through. */

static int read_amounts(sd_bus_message *m, Resources *resources, Error *reterr)
{
        const char *resource_class;
        uint64_t amount;
        int r = sd_bus_message_enter_container(m, 'a', "{st}");

        if (r < 0)
                return r;
        while ((r = sd_bus_message_read(m, "{st}", &resource_class, &amount)) > 0) {
                if (!resource_class_valid(resource_class))
                        return error_setf(reterr, EINVAL, "\"%.60s\" is not a resource class",
                                          resource_class);
                if (amount == 0 || amount > INVENTORY_MAX_AMOUNT)
                        return error_setf(reterr, EINVAL,
                                          "%.60s: the amount must be from 1 to %" PRIu64,
                                          resource_class, INVENTORY_MAX_AMOUNT);
                if (resources_get(resources, resource_class) != 0)
                        return error_setf(reterr, EINVAL, "%.60s is given twice", resource_class);
                if (resources_set(resources, resource_class, amount) < 0)
                        return error_oom(reterr);
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_traits(sd_bus_message *m, StringSet *set, Error *reterr)
{
        const char *trait;
        int r = sd_bus_message_enter_container(m, 'a', "s");

        if (r < 0)
                return r;
        while ((r = sd_bus_message_read(m, "s", &trait)) > 0) {
                if (!resource_class_valid(trait))
                        return error_setf(reterr, EINVAL, "\"%.60s\" is not a trait", trait);
                if (string_set_add(set, trait) < 0)
                        return error_oom(reterr);
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_group(sd_bus_message *m, ResourceRequest *request, Error *reterr)
{
        RequestGroup *group;
        const char *suffix;
        int r = sd_bus_message_read(m, "s", &suffix);

        if (r < 0)
                return r;
        r = resource_request_group(request, suffix, &group, reterr);
        if (r < 0)
                return r;
        if (group->resources.n_items > 0)
                return error_setf(reterr, EINVAL, "Group \"%.70s\" is given twice", suffix);
        r = read_amounts(m, &group->resources, reterr);
        if (r < 0)
                return r;
        r = read_traits(m, &group->required, reterr);
        if (r < 0)
                return r;
        return read_traits(m, &group->forbidden, reterr);
}

static int read_groups(sd_bus_message *m, ResourceRequest *request, Error *reterr)
{
        int r = sd_bus_message_enter_container(m, 'a', "(sa{st}asas)");

        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(m, 'r', "sa{st}asas")) > 0) {
                if (request->n_groups >= GROUPS_MAX)
                        return error_setf(reterr, EINVAL, "More than %d groups", GROUPS_MAX);
                r = read_group(m, request, reterr);
                if (r < 0)
                        return r;
                r = sd_bus_message_exit_container(m);
                if (r < 0)
                        return r;
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_bool_variant(sd_bus_message *m, bool *ret)
{
        int value, r = sd_bus_message_read(m, "v", "b", &value);

        if (r >= 0)
                *ret = value;
        return r;
}

static int read_option(sd_bus_message *m, const char *name, ClaimRequest *request, Error *reterr)
{
        if (strcmp(name, "project") == 0)
                return sd_bus_message_read(m, "v", "s", &request->project_id);
        if (strcmp(name, "user") == 0)
                return sd_bus_message_read(m, "v", "s", &request->user_id);
        if (strcmp(name, "resize-target") == 0)
                return read_bool_variant(m, &request->resize_target);
        if (strcmp(name, "isolate") == 0)
                return read_bool_variant(m, &request->resources.isolate);
        return error_setf(reterr, EINVAL, "Unknown option \"%.60s\"", name);
}

static int read_options(sd_bus_message *m, ClaimRequest *request, Error *reterr)
{
        int r = sd_bus_message_enter_container(m, 'a', "{sv}");

        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                const char *name;

                r = sd_bus_message_read(m, "s", &name);
                if (r < 0)
                        return r;
                r = read_option(m, name, request, reterr);
                if (r < 0)
                        return r;
                r = sd_bus_message_exit_container(m);
                if (r < 0)
                        return r;
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

int bus_read_resources(sd_bus_message *m, ClaimRequest *request, Error *reterr)
{
        int r = read_groups(m, &request->resources, reterr);

        return r < 0 ? r : read_options(m, request, reterr);
}

static int read_request(sd_bus_message *m, ClaimRequest *request, Error *reterr)
{
        const char *consumer;
        int r = sd_bus_message_read(m, "s", &consumer);

        if (r < 0)
                return r;
        if (uuid_from_text(consumer, &request->consumer) < 0)
                return error_setf(reterr, EINVAL, "The consumer is not a uuid: \"%.40s\"",
                                  consumer);
        return bus_read_resources(m, request, reterr);
}

static int reply_claim(sd_bus_message *call, const ClaimService *service, const Claim *claim)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        int r = sd_bus_message_new_method_return(call, &reply);

        if (r < 0)
                return r;
        r = sd_bus_message_append(reply, "x", claim->id);
        if (r < 0)
                return r;
        r = bus_append_holdings(reply, service, claim);
        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static void log_claim(const Claim *claim)
{
        char id[24];

        snprintf(id, sizeof(id), "%" PRId64, claim->id);
        log_event(LOG_INFO, NULL,
                  LOG_FIELDS(LOG_FIELD_CLAIM, id, LOG_FIELD_CONSUMER, claim->consumer.text),
                  "Claim %" PRId64 ": promised to %s.", claim->id, claim->consumer.text);
}

static uint64_t now_usec(void)
{
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        return (uint64_t)now.tv_sec * USEC_PER_SEC + (uint64_t)now.tv_nsec / NSEC_PER_USEC;
}

static void claim_request_done(ClaimRequest *request)
{
        resource_request_done(&request->resources);
}

int bus_claim(sd_bus_message *call, ClaimService *service, sd_bus_error *error)
{
        _cleanup_(claim_request_done) ClaimRequest request = { 0 };
        _cleanup_(claim_freep) Claim *claim = NULL;
        Error words = ERROR_NULL;
        uint64_t begin = now_usec();
        Claims *claims;
        int r;

        r = read_request(call, &request, &words);
        if (r < 0)
                return bus_claims_error(service, error, r == -ENOMEM ? r : -EINVAL, &words);
        r = bus_claims_open(service, &claims, error);
        if (r < 0)
                return r;
        r = claims_claim(claims, &request, &claim, &words);
        if (r != 0)
                return bus_claims_error(service, error, r, &words);
        if (claim->created_usec >= begin) {
                log_claim(claim);
                claim_service_tell(service, CLAIM_EVENT_ADDED, claim);
        }
        return reply_claim(call, service, claim);
}

/* What became of the claim, for those who watch. */
static void tell(ClaimService *service, Claims *claims, ClaimEvent event, int64_t id)
{
        _cleanup_(claim_freep) Claim *claim = NULL;

        if (claims_get(claims, id, &claim, NULL) == 0)
                claim_service_tell(service, event, claim);
}

int bus_confirm(sd_bus_message *call, ClaimService *service, sd_bus_error *error)
{
        Error words = ERROR_NULL;
        Claims *claims;
        int64_t id;
        int r;

        r = sd_bus_message_read(call, "x", &id);
        if (r < 0)
                return r;
        r = bus_claims_open(service, &claims, error);
        if (r < 0)
                return r;
        r = claims_confirm(claims, id, &words);
        if (r != 0)
                return bus_claims_error(service, error, r, &words);
        tell(service, claims, CLAIM_EVENT_CHANGED, id);
        return sd_bus_reply_method_return(call, NULL);
}

int bus_extend(sd_bus_message *call, ClaimService *service, sd_bus_error *error)
{
        Error words = ERROR_NULL;
        uint64_t expires_usec;
        Claims *claims;
        int64_t id;
        int r;

        r = sd_bus_message_read(call, "xt", &id, &expires_usec);
        if (r < 0)
                return r;
        r = bus_claims_open(service, &claims, error);
        if (r < 0)
                return r;
        r = claims_extend(claims, id, expires_usec, &words);
        if (r != 0)
                return bus_claims_error(service, error, r, &words);
        tell(service, claims, CLAIM_EVENT_CHANGED, id);
        return sd_bus_reply_method_return(call, NULL);
}

static int end_claim(sd_bus_message *call, ClaimService *service, bool abort, sd_bus_error *error)
{
        Error words = ERROR_NULL;
        const char *reason;
        Claims *claims;
        int64_t id;
        int r;

        r = sd_bus_message_read(call, "xs", &id, &reason);
        if (r < 0)
                return r;
        r = bus_claims_open(service, &claims, error);
        if (r < 0)
                return r;
        r = abort ? claims_abort(claims, id, reason, &words)
                  : claims_release(claims, id, reason, &words);
        if (r != 0)
                return bus_claims_error(service, error, r, &words);
        log_info("Claim %" PRId64 ": %s.", id, abort ? "aborted" : "released");
        tell(service, claims, CLAIM_EVENT_REMOVED, id);
        return sd_bus_reply_method_return(call, NULL);
}

int bus_release(sd_bus_message *call, ClaimService *service, sd_bus_error *error)
{
        return end_claim(call, service, false, error);
}

int bus_abort(sd_bus_message *call, ClaimService *service, sd_bus_error *error)
{
        return end_claim(call, service, true, error);
}
