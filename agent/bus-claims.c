/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/bus-claims.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "agent/bus-interface.h"
#include "base/log.h"

#define GROUPS_MAX 256

/* The bus error of a result of claims.h, with its words. */
static int set_error(sd_bus_error *error, int r, const Error *words)
{
        static const char *const names[] = {
                [CLAIM_E_NO_CAPACITY] = BUS_ERROR_NO_CAPACITY,
                [CLAIM_E_UNKNOWN_CLASS] = BUS_ERROR_UNKNOWN_CLASS,
                [CLAIM_E_CONFLICT] = BUS_ERROR_CONFLICT,
                [CLAIM_E_NOT_FOUND] = BUS_ERROR_NOT_FOUND,
                [CLAIM_E_BUSY] = BUS_ERROR_BUSY,
        };

        if (r > 0 && r < (int)ARRAY_SIZE(names))
                return sd_bus_error_setf(error, names[r], "%s", error_text(words, -EBUSY));
        return sd_bus_error_setf(error, r == -EINVAL ? BUS_ERROR_INVALID : BUS_ERROR_STORE, "%s",
                                 error_text(words, r));
}

static int open_claims(ClaimService *service, Claims **ret, sd_bus_error *error)
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

static int read_request(sd_bus_message *m, ClaimRequest *request, Error *reterr)
{
        const char *consumer;
        int r = sd_bus_message_read(m, "s", &consumer);

        if (r < 0)
                return r;
        if (uuid_from_text(consumer, &request->consumer) < 0)
                return error_setf(reterr, EINVAL, "The consumer is not a uuid: \"%.40s\"",
                                  consumer);
        r = read_groups(m, &request->resources, reterr);
        if (r < 0)
                return r;
        return read_options(m, request, reterr);
}

/* Writing a claim. */

static int append_allocations(sd_bus_message *m, const Claim *claim)
{
        int r = sd_bus_message_open_container(m, 'a', BUS_ALLOCATION);

        for (size_t i = 0; r >= 0 && i < claim->n_allocations; i++) {
                const Resources *resources = &claim->allocations[i].resources;

                r = sd_bus_message_open_container(m, 'r', "ssa{st}");
                if (r < 0)
                        return r;
                r = sd_bus_message_append(m, "ss", claim->allocations[i].provider.text,
                                          claim->provider_names[i]);
                if (r < 0)
                        return r;
                r = sd_bus_message_open_container(m, 'a', "{st}");
                for (size_t j = 0; r >= 0 && j < resources->n_items; j++)
                        r = sd_bus_message_append(m, "{st}", resources->items[j].resource_class,
                                                  resources->items[j].amount);
                if (r < 0)
                        return r;
                r = sd_bus_message_close_container(m);
                if (r < 0)
                        return r;
                r = sd_bus_message_close_container(m);
        }
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_claim(sd_bus_message *m, const Claim *claim)
{
        int r = sd_bus_message_open_container(m, 'r', "xssbsstttsa" BUS_ALLOCATION);

        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "xssbssttts", claim->id, claim->consumer.text,
                                  claim_state_to_text(claim->state), (int)claim->resize_target,
                                  claim->project_id, claim->user_id, claim->created_usec,
                                  claim->expires_usec, claim->ended_usec, claim->end_reason);
        if (r < 0)
                return r;
        r = append_allocations(m, claim);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int reply_claim(sd_bus_message *call, const Claim *claim)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        int r = sd_bus_message_new_method_return(call, &reply);

        if (r < 0)
                return r;
        r = sd_bus_message_append(reply, "x", claim->id);
        if (r < 0)
                return r;
        r = append_allocations(reply, claim);
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

static void claim_request_done(ClaimRequest *request)
{
        resource_request_done(&request->resources);
}

int bus_claim(sd_bus_message *call, ClaimService *service, sd_bus_error *error)
{
        _cleanup_(claim_request_done) ClaimRequest request = { 0 };
        _cleanup_(claim_freep) Claim *claim = NULL;
        Error words = ERROR_NULL;
        Claims *claims;
        int r;

        r = read_request(call, &request, &words);
        if (r < 0)
                return set_error(error, r == -ENOMEM ? r : -EINVAL, &words);
        r = open_claims(service, &claims, error);
        if (r < 0)
                return r;
        r = claims_claim(claims, &request, &claim, &words);
        if (r != 0)
                return set_error(error, r, &words);
        log_claim(claim);
        return reply_claim(call, claim);
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
        r = open_claims(service, &claims, error);
        if (r < 0)
                return r;
        r = claims_confirm(claims, id, &words);
        if (r != 0)
                return set_error(error, r, &words);
        return sd_bus_reply_method_return(call, NULL);
}

int bus_release(sd_bus_message *call, ClaimService *service, sd_bus_error *error)
{
        Error words = ERROR_NULL;
        const char *reason;
        Claims *claims;
        int64_t id;
        int r;

        r = sd_bus_message_read(call, "xs", &id, &reason);
        if (r < 0)
                return r;
        r = open_claims(service, &claims, error);
        if (r < 0)
                return r;
        r = claims_release(claims, id, reason, &words);
        if (r != 0)
                return set_error(error, r, &words);
        log_info("Claim %" PRId64 ": released.", id);
        return sd_bus_reply_method_return(call, NULL);
}

int bus_list_claims(sd_bus_message *call, ClaimService *service, sd_bus_error *error)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        _cleanup_(claim_list_done) ClaimList list = { 0 };
        Error words = ERROR_NULL;
        Claims *claims;
        int r, history;

        r = sd_bus_message_read(call, "b", &history);
        if (r < 0)
                return r;
        r = open_claims(service, &claims, error);
        if (r < 0)
                return r;
        r = claims_list(claims, history, &list, &words);
        if (r != 0)
                return set_error(error, r, &words);
        r = sd_bus_message_new_method_return(call, &reply);
        if (r < 0)
                return r;
        r = sd_bus_message_open_container(reply, 'a', BUS_CLAIM);
        for (size_t i = 0; r >= 0 && i < list.n_claims; i++)
                r = append_claim(reply, list.claims[i]);
        if (r < 0)
                return r;
        r = sd_bus_message_close_container(reply);
        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}
