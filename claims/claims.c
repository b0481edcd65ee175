/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Makes claims of requests, and of allocations that Placement already has, and explains requests.
 * Each attempt at a new claim reads the host, decides, and writes with the generations that it
 * read. The first attempt reads without a lock, since there is usually one writer. After a lost
 * race, the next attempts take the write lock first, so with SQLite no other writer can win again.
 * Each read of the view of the host (claims->view) clears the limits of devices in it, which belong
 * to one request. All attempts of a claim share one effort of the fit, and there are at most
 * CLAIM_ATTEMPTS_MAX; then the result is -EBUSY. For a request, the claim that its consumer has is
 * found first, so rules never reject a repeated request. Then follow the rules, the read, the fit,
 * the choice of devices and the write. A refusal or failure writes no claim. Claims of allocations
 * without a request (Placed) skip the search, rules and fit. They are made even without their
 * devices, except for a server that starts. An explanation checks the rules after the fit, and
 * neither chooses devices nor writes. The file also has the settings of a Claims: rules, facts,
 * node and author. */

#include "claims/claims.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "claims/claims-internal.h"
#include "claims/fit/device-choice.h"
#include "claims/fit/numa.h"
#include "claims/fit/placed.h"

/* Bounds the result by INT64_MAX, the largest integer of SQLite. */
uint64_t claims_expiry_from(const Claims *claims, uint64_t now)
{
        uint64_t expires;

        if (claims->rules.expiry_usec == 0)
                return 0;
        if (u64_add_overflow(now, claims->rules.expiry_usec, &expires) || expires > INT64_MAX)
                return INT64_MAX;
        return expires;
}

void claims_set_rules(Claims *claims, const ClaimsRules *rules)
{
        claims->rules = *rules;
}

/* Rejects every new claim of a request while the rules name a reason (closed). */
static int check_closed(const Claims *claims, Error *reterr)
{
        if (!claims->rules.closed)
                return 0;
        error_setf(reterr, EBUSY, "New claims are rejected: %s", claims->rules.closed);
        return CLAIM_E_NO_CAPACITY;
}

/* While the rules name a reason (unknown), rejects requests of resources that an unknown consumer
 * can have, and that only one guest can use: dedicated CPUs and devices. Before the first facts it
 * is not known which classes are those of devices, so it rejects only dedicated CPUs. */
static int check_unknown(const Claims *claims, const ResourceRequest *request, Error *reterr)
{
        _cleanup_(resources_done) Resources asked = RESOURCES_INIT;

        if (!claims->rules.unknown)
                return 0;
        if (resource_request_sum(request, &asked) < 0)
                return error_oom(reterr);
        if (resources_get(&asked, "PCPU") == 0 &&
            !(claims->facts && devices_are_asked(claims->facts, request)))
                return 0;
        error_setf(reterr, EBUSY, "%s", claims->rules.unknown);
        return CLAIM_E_NO_CAPACITY;
}

/* Adds the operator's hint to the words of CLAIM_E_NO_CAPACITY, unless the rules reject every
 * claim. Returns r. */
static int add_hint(const Claims *claims, int r, Error *reterr)
{
        const Error words = reterr ? *reterr : ERROR_NULL;

        if (r == CLAIM_E_NO_CAPACITY && claims->rules.hint && !claims->rules.closed)
                error_setf(reterr, words.code, "%s (%s)", words.text, claims->rules.hint);
        return r;
}

int claims_set_node(Claims *claims, const char *node)
{
        char *copy = strdup(node);

        if (!copy)
                return -ENOMEM;
        free(claims->node);
        claims->node = copy;
        return 0;
}

/* Returns true if no text is given, or if it is the stored one. */
static bool text_matches(const char *given, const char *held)
{
        return !given || given[0] == '\0' || strcmp(given, held) == 0;
}

/* Stores the new identity of a guest that was started again. Returns CLAIM_E_RACE if the claim has
 * ended. */
static int set_process(Claims *claims, const char *process, Claim *held, Error *reterr)
{
        char *copy = strdup(process);
        int r;

        if (!copy)
                return error_oom(reterr);
        free(held->process);
        held->process = copy;
        r = store_set_process(claims, held->id, process, reterr);
        return r == CLAIM_E_NOT_FOUND ? CLAIM_E_RACE : r;
}

/* Compares a request with the request of a claim. If the claim was made from allocations alone,
 * only the amounts are known and compared. Returns -ENOMEM on failure. */
static int is_same(const ClaimRequest *request, const char *text, const Claim *held, bool *ret)
{
        _cleanup_(resources_done) Resources asked = RESOURCES_INIT, has = RESOURCES_INIT;

        *ret = strcmp(held->request, text) == 0;
        if (held->request[0])
                return 0;
        if (resource_request_sum(&request->resources, &asked) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < held->n_allocations; i++)
                for (size_t j = 0; j < held->allocations[i].resources.n_items; j++) {
                        const ResourceAmount *item = &held->allocations[i].resources.items[j];

                        if (resources_add(&has, item->resource_class, item->amount) < 0)
                                return -ENOMEM;
                }
        *ret = resources_equal(&asked, &has);
        return 0;
}

/* Answers a request of a consumer that has a claim. Returns CLAIM_DONE if the claim is for the same
 * request, CLAIM_E_CONFLICT if not, and CLAIM_E_RACE if the claim has ended or was confirmed since
 * it was read. For the same request it stores a new identity of the guest, and renews the time of
 * an unconfirmed claim that should have expired. */
static int answer_with(Claims *claims, const ClaimRequest *request, const char *text, Claim *held,
                       Error *reterr)
{
        uint64_t now = clock_usec(CLOCK_REALTIME);
        bool same = false;
        int r = is_same(request, text, held, &same);

        if (r < 0)
                return error_oom(reterr);
        if (!same || !text_matches(request->project_id, held->project_id) ||
            !text_matches(request->user_id, held->user_id)) {
                error_setf(reterr, EEXIST,
                           "Consumer %s has claim %" PRIi64
                           " for another request. Release it first",
                           held->consumer.text, held->id);
                return CLAIM_E_CONFLICT;
        }
        r = request->process[0] && strcmp(request->process, held->process) != 0
                    ? set_process(claims, request->process, held, reterr)
                    : CLAIM_DONE;
        if (r != CLAIM_DONE || held->state == CLAIM_STATE_CONFIRMED || held->expires_usec == 0 ||
            held->expires_usec > now)
                return r;
        held->expires_usec = claims_expiry_from(claims, now);
        r = claims_extend(claims, held->id, held->expires_usec, reterr);
        return r > 0 ? CLAIM_E_RACE : r;
}

/* A request of claims_claim(), with the data that its attempts share. */
typedef struct Order {
        const ClaimRequest *request;
        const char *text;
        const ClaimPlacing *placing;
        FitEffort effort; /* used up by all attempts together */
        bool ambiguous;   /* result of the last attempt */
} Order;

/* Fits a request to the providers of the allocations that its consumer already has. bound: the
 * request with these providers, which the pieces of the fit refer to. order->ambiguous: groups
 * could be exchanged. */
static int fit_placed(Claims *claims, Order *order, const ResourceRequest *bound, Fit *ret,
                      Error *reterr)
{
        const Consumer *holding = order->placing->holding;
        int r = fit_request_numa(claims->view, claims->facts, claims->node, bound, holding,
                                 &order->effort, ret, reterr);

        if (r != 0)
                return r;
        return placed_check(claims->view, bound, holding, ret, &order->ambiguous, reterr);
}

/* Raises the usage of a provider until at most left of each class is free. left NULL: nothing is
 * free. */
static int bound_provider(HostView *view, size_t index, const Resources *left)
{
        const Provider *provider = view->tree->providers[index];
        Resources *used = &view->providers[index].used;

        for (size_t i = 0; i < provider->n_inventories; i++) {
                const InventoryRecord *record = &provider->inventories[i];
                uint64_t capacity = inventory_capacity(&record->inventory);
                uint64_t more = left ? resources_get(left, record->resource_class) : 0;
                uint64_t taken = capacity - MIN(more, capacity);

                if (taken > resources_get(used, record->resource_class) &&
                    resources_set(used, record->resource_class, taken) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Copies the usage of each provider. The first loop clears all pointers, so that bound_view() can
 * release bound after a failure. */
static int copy_usage(HostView *bound, const HostView *view)
{
        for (size_t i = 0; i < view->n_providers; i++) {
                bound->providers[i] = view->providers[i];
                bound->providers[i].used = RESOURCES_INIT;
        }
        for (size_t i = 0; i < view->n_providers; i++)
                if (resources_copy(&bound->providers[i].used, &view->providers[i].used) < 0)
                        return -ENOMEM;
        return 0;
}

/* Bounds the root of node and the providers below it by capacity. With others_full, all other
 * providers have no free capacity. Changes nothing without a root. */
static int bound_all(HostView *view, const char *node, const Consumer *capacity, bool others_full)
{
        size_t root;

        if (!host_view_root(view, node, &root))
                return 0;
        for (size_t i = 0; i < view->n_providers; i++) {
                const Provider *provider = view->tree->providers[i];
                bool own = provider_tree_in_subtree(view->tree, provider,
                                                    &view->tree->providers[root]->uuid);

                if ((own || others_full) &&
                    bound_provider(view, i, own ? consumer_find(capacity, &provider->uuid) : NULL) <
                            0)
                        return -ENOMEM;
        }
        return 0;
}

static void unbind_view(HostView *bound)
{
        for (size_t i = 0; bound->providers && i < bound->n_providers; i++)
                resources_done(&bound->providers[i].used);
        free(bound->providers);
        bound->providers = NULL;
}

/* Makes a view in which each provider of node's own tree has at most the amounts of capacity left.
 * With others_full, all other providers, such as sharing ones, have no capacity left. The result
 * borrows all but the usage. The caller releases it with unbind_view(). Returns -ENOMEM on
 * failure. */
static int bound_view(HostView *ret, const HostView *view, const char *node,
                      const Consumer *capacity, bool others_full)
{
        HostView bound = *view;

        bound.providers = calloc(view->n_providers + 1, sizeof(HostProvider));
        if (!bound.providers)
                return -ENOMEM;
        if (copy_usage(&bound, view) < 0 || bound_all(&bound, node, capacity, others_full) < 0) {
                unbind_view(&bound);
                return -ENOMEM;
        }
        *ret = bound;
        return 0;
}

/* Fits a request without allocations. The caller can still name providers for its groups
 * (mappings), and Placement can bound the free capacity. */
static int fit_freely(Claims *claims, Order *order, ResourceRequest *bound, Fit *ret, Error *reterr)
{
        const ClaimRequest *request = order->request;
        const ClaimPlacing *placing = order->placing;
        const ResourceRequest *resources = &request->resources;
        _cleanup_(unbind_view) HostView left = { 0 };

        if (placing->capacity && bound_view(&left, claims->view, claims->node, placing->capacity,
                                            placing->others_full) < 0)
                return error_oom(reterr);
        if (request->mappings.n_items > 0) {
                if (resource_request_copy(bound, resources) < 0)
                        return error_oom(reterr);
                placed_bind_groups(bound, &request->mappings);
                resources = bound;
        }
        return fit_request_numa(placing->capacity ? &left : claims->view, claims->facts,
                                claims->node, resources, NULL, &order->effort, ret, reterr);
}

/* Chooses the providers: those of the allocations, if there are any, else by a free fit. */
static int choose(Claims *claims, Order *order, ResourceRequest *bound, Fit *ret, Error *reterr)
{
        const ResourceRequest *request = &order->request->resources;
        int r;

        if (!order->placing->holding)
                return fit_freely(claims, order, bound, ret, reterr);
        r = placed_make(claims->view, claims->node, request, order->placing->holding,
                        order->placing->mappings, bound, reterr);
        return r != 0 ? r : fit_placed(claims, order, bound, ret, reterr);
}

/* Makes one attempt at a claim for a consumer without one. Checks the rules, reads the host, fits,
 * chooses devices, and writes. Takes any positive result of the write as a sign that the read data
 * are outdated, and returns CLAIM_E_RACE. */
static int claim_new_one(Claims *claims, Order *order, Claim **ret, Error *reterr)
{
        _cleanup_(device_list_done) DeviceList devices = { 0 };
        _cleanup_(taken_done) Taken taken = { 0 };
        _cleanup_(resource_request_done) ResourceRequest bound = RESOURCE_REQUEST_INIT;
        _cleanup_(fit_done) Fit fit = FIT_NULL;
        ClaimRequest request = *order->request;
        uint64_t now = clock_usec(CLOCK_REALTIME);
        StoreClaim claim = {
                .request = &request,
                .request_text = order->text,
                .created_usec = now,
                .expires_usec = claims_expiry_from(claims, now),
                .write_state = order->placing->write_state,
                .reported = order->placing->reported,
                .layout = &fit.layout,
        };
        int r = check_closed(claims, reterr);

        if (r == 0 && !order->placing->holding &&
            order->placing->write_state != CLAIM_WRITE_UNANSWERED)
                r = check_unknown(claims, &request.resources, reterr);
        if (r == 0)
                r = store_load_view(claims, reterr);
        if (r == 0)
                r = claims_count_devices(claims, &request.resources, &taken, reterr);
        if (r == 0)
                r = choose(claims, order, &bound, &fit, reterr);
        if (r != 0)
                return r;
        if (order->placing->holding)
                request.resources = bound;
        r = claims_choose_devices(claims, &request.resources, &fit, &taken, &devices, reterr);
        if (r != 0)
                return r;
        claim.devices = devices.devices;
        claim.n_devices = devices.n_devices;
        r = store_insert(claims, &claim, &fit, ret, reterr);
        return r > 0 ? CLAIM_E_RACE : r;
}

/* Makes the claim, or answers with the existing one. Returns CLAIM_E_RACE if the caller must
 * retry. */
static int claim_once(Claims *claims, Order *order, Claim **ret, Error *reterr)
{
        const ClaimRequest *request = order->request;
        _cleanup_(claim_freep) Claim *held = NULL;
        int r = claims_find(claims, &request->consumer, request->resize_target, &held, reterr);

        order->ambiguous = false;
        if (r == CLAIM_E_NOT_FOUND)
                return claim_new_one(claims, order, ret, reterr);
        if (r != 0)
                return r;
        r = answer_with(claims, request, order->text, held, reterr);
        if (r == CLAIM_DONE)
                *ret = TAKE_PTR(held);
        return r;
}

int claims_claim(Claims *claims, const ClaimRequest *request, const ClaimPlacing *placing,
                 Claim **ret_claim, bool *ret_ambiguous, Error *reterr)
{
        static const ClaimPlacing free_choice = { .write_state = CLAIM_WRITE_NONE };
        _cleanup_free_ char *text = NULL;
        Order order = { .request = request,
                        .placing = placing ? placing : &free_choice,
                        .effort = fit_effort_begin(CLAIM_PATIENCE_USEC) };
        ClaimAttempts attempts = { .claims = claims };
        int r = claim_request_check(request, reterr);

        if (r < 0)
                return r;
        order.text = text = resource_request_format(&request->resources);
        if (!text)
                return error_oom(reterr);
        while (claims_attempt(&attempts, reterr))
                attempts.result = claim_once(claims, &order, ret_claim, reterr);
        if (attempts.result == CLAIM_DONE && ret_ambiguous)
                *ret_ambiguous = order.ambiguous;
        return add_hint(claims, attempts.result, reterr);
}

/* Claims of consumers that have allocations, but are unknown to this host: the claim database was
 * lost, or their server starts. The scheduler chose the providers, so nothing is fitted. The
 * devices of a provider are chosen as for any other claim. */
typedef struct Placed {
        ResourceRequest request; /* the sum of all amounts, in one group */
        Fit fit;
        DeviceList devices;
        Taken taken;
} Placed;

static void placed_done(Placed *placed)
{
        resource_request_done(&placed->request);
        fit_done(&placed->fit);
        device_list_done(&placed->devices);
        taken_done(&placed->taken);
}

/* Adds the consumer's amounts on providers that claims of this host can use. Returns -ENOMEM on
 * failure. */
static int collect_placed(Claims *claims, const Consumer *consumer, Placed *placed)
{
        _cleanup_free_ bool *usable = calloc(claims->view->n_providers + 1, sizeof(bool));
        RequestGroup *group;
        size_t provider;

        if (!usable || resource_request_group(&placed->request, "", &group, NULL) < 0)
                return -ENOMEM;
        host_view_usable(claims->view, claims->node, usable);
        for (size_t i = 0; i < consumer->n_allocations; i++) {
                const Allocation *held = &consumer->allocations[i];

                if (!host_view_find(claims->view, &held->provider, &provider) || !usable[provider])
                        continue;
                for (size_t j = 0; j < held->resources.n_items; j++) {
                        const ResourceAmount *item = &held->resources.items[j];

                        if (resources_add(&group->resources, item->resource_class, item->amount) <
                                    0 ||
                            fit_add(&placed->fit, provider, item->resource_class, item->amount) < 0)
                                return -ENOMEM;
                }
        }
        return 0;
}

/* Returns "" for the text that Placement uses for a missing project or user. */
static const char *known_id(const char *id)
{
        return id && strcmp(id, CONSUMER_UNKNOWN_ID) != 0 ? id : "";
}

/* Writes the claim. The original request is unknown. The request of a guest's claim has the
 * amounts, as if it were made of the domain. For other claims it is "". */
static int write_placed(Claims *claims, const ClaimPlacing *placing, const Placed *placed,
                        bool of_guest, Claim **ret, Error *reterr)
{
        _cleanup_free_ char *text =
                of_guest ? resource_request_format(&placed->request) : strdup("");
        const Consumer *consumer = placing->holding;
        const char *type = consumer->type ? consumer->type : "";
        const ClaimRequest request = { .consumer = consumer->uuid,
                                       .project_id = known_id(consumer->project_id),
                                       .user_id = known_id(consumer->user_id),
                                       .consumer_type = of_guest ? CLAIM_TYPE_GUEST
                                                        : strcmp(type, "unknown") == 0 ? ""
                                                                                       : type,
                                       .resources = placed->request,
                                       .by = claims->author };
        uint64_t now = clock_usec(CLOCK_REALTIME);
        const StoreClaim claim = {
                .request = &request,
                .request_text = text,
                .created_usec = now,
                .expires_usec = claims_expiry_from(claims, now),
                .write_state = placing->write_state,
                .reported = placing->reported,
                .devices = placed->devices.devices,
                .n_devices = placed->devices.n_devices,
                .reason = of_guest ? "its server starts, and Placement has its allocations"
                                   : "Placement has its allocations, and the claim database is new",
        };

        return text ? store_insert(claims, &claim, &placed->fit, ret, reterr) : error_oom(reterr);
}

/* Chooses the devices of the amounts. classes: only those of these classes; NULL: all. */
static int choose_placed(Claims *claims, const StringSet *classes, Placed *placed, Error *reterr)
{
        _cleanup_(fit_done) Fit asked = FIT_NULL;

        if (!classes)
                return claims_choose_devices(claims, &placed->request, &placed->fit, &placed->taken,
                                             &placed->devices, reterr);
        for (size_t i = 0; i < placed->fit.n_pieces; i++) {
                const FitPiece *piece = &placed->fit.pieces[i];

                if (string_set_contains(classes, piece->resource_class) &&
                    fit_add(&asked, piece->provider, piece->resource_class, piece->amount) < 0)
                        return error_oom(reterr);
        }
        return claims_choose_devices(claims, &placed->request, &asked, &placed->taken,
                                     &placed->devices, reterr);
}

/* Makes one attempt. classes: the claim belongs to a server that starts, and is made only with all
 * devices of these classes; NULL: it is made whether its devices are free or not. in_turn: the
 * write lock is taken, so a conflict is final. Returns CLAIM_E_RACE if the caller must retry. */
static int claim_placed_once(Claims *claims, const ClaimPlacing *placing, const StringSet *classes,
                             bool in_turn, Claim **ret, Error *reterr)
{
        _cleanup_(placed_done) Placed placed = { .fit = FIT_NULL };
        int outcome, r = store_load_view(claims, reterr);

        if (r < 0)
                return r;
        if (collect_placed(claims, placing->holding, &placed) < 0)
                return error_oom(reterr);
        if (placed.fit.n_pieces == 0) {
                error_setf(reterr, ESTALE, "Consumer %s has no allocations on this host",
                           placing->holding->uuid.text);
                return CLAIM_E_OTHER;
        }
        r = claims_count_devices(claims, &placed.request, &placed.taken, reterr);
        if (r < 0)
                return r;
        outcome = choose_placed(claims, classes, &placed, reterr);
        if (outcome < 0 || (outcome > 0 && classes))
                return outcome;
        r = write_placed(claims, placing, &placed, classes, ret, reterr);
        if (r == CLAIM_E_CONFLICT && in_turn)
                error_setf(reterr, EEXIST, "Consumer %s has a claim", placing->holding->uuid.text);
        else if (r > 0)
                r = CLAIM_E_RACE;
        return r != 0 ? r : outcome;
}

int claims_claim_placed(Claims *claims, const ClaimPlacing *placing, Claim **ret_claim,
                        Error *reterr)
{
        ClaimAttempts attempts = { .claims = claims };

        while (claims_attempt(&attempts, reterr))
                attempts.result =
                        claim_placed_once(claims, placing, NULL, attempts.n > 1, ret_claim, reterr);
        return attempts.result;
}

int claims_claim_starting(Claims *claims, const ClaimPlacing *placing, const StringSet *classes,
                          Claim **ret_claim, Error *reterr)
{
        ClaimAttempts attempts = { .claims = claims };

        while (claims_attempt(&attempts, reterr))
                attempts.result = claim_placed_once(claims, placing, classes, attempts.n > 1,
                                                    ret_claim, reterr);
        return attempts.result;
}

int claims_explain(Claims *claims, const ResourceRequest *request, bool writes,
                   uint64_t patience_usec, FitVerdicts *ret, Error *reterr)
{
        const ClaimRequest checked = { .consumer = uuid_make_random(), .resources = *request };
        _cleanup_(taken_done) Taken taken = { 0 };
        FitEffort effort = fit_effort_begin(patience_usec);
        int r = claim_request_check(&checked, reterr);

        if (r < 0)
                return r;
        r = store_load_view(claims, reterr);
        if (r == 0)
                r = claims_count_devices(claims, request, &taken, reterr);
        if (r < 0)
                return r;
        r = fit_explain_numa(claims->view, claims->facts, claims->node, request, &effort, ret,
                             reterr);
        if (r != CLAIM_DONE)
                return add_hint(claims, r, reterr);
        r = check_closed(claims, reterr);
        if (r == CLAIM_DONE && !writes)
                r = check_unknown(claims, request, reterr);
        return add_hint(claims, r, reterr);
}

void claims_set_author(Claims *claims, const EventAuthor *author)
{
        claims->author = author;
}

const char *claims_boot_id(const Claims *claims)
{
        return claims->boot_id;
}

const char *claims_node(const Claims *claims)
{
        return claims->node;
}

void claims_set_facts(Claims *claims, const HostFacts *facts)
{
        claims->facts = facts;
}

int claims_host(Claims *claims, const HostView **ret, Error *reterr)
{
        int r = store_load_view(claims, reterr);

        if (r < 0)
                return r;
        *ret = claims->view;
        return 0;
}
