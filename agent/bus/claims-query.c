/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The methods that read claims, and how a claim is written into a message. */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "agent/bus/claims-internal.h"
#include "agent/bus/claims.h"
#include "agent/formats/documents.h"
#include "agent/formats/interface.h"
#include "base/json.h"

int bus_append_allocations(sd_bus_message *m, const Claim *claim)
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

/* false for an mdev, which has no driver to be taken from; true for a device that is not seen. */
static bool is_managed(const ClaimService *service, const ClaimDevice *device)
{
        const HostFacts *facts = claim_service_facts(service);
        const HostPci *pci = facts ? host_facts_find_pci(facts, device->address) : NULL;

        return uuid_empty(&device->mdev) && (!pci || pci->managed);
}

int bus_append_devices(sd_bus_message *m, const ClaimService *service, const Claim *claim)
{
        int r = sd_bus_message_open_container(m, 'a', BUS_DEVICE);

        for (size_t i = 0; r >= 0 && i < claim->n_devices; i++) {
                const ClaimDevice *device = &claim->devices[i];

                r = sd_bus_message_append(m, BUS_DEVICE, device->provider.text, device->suffix,
                                          device->name, device->address, device->mdev_type,
                                          device->mdev.text,
                                          uuid_empty(&device->mdev) ||
                                                  claim_service_mdev_exists(service, &device->mdev),
                                          is_managed(service, device));
        }
        return r < 0 ? r : sd_bus_message_close_container(m);
}

int bus_append_holdings(sd_bus_message *m, const ClaimService *service, const Claim *claim)
{
        int r = bus_append_allocations(m, claim);

        return r < 0 ? r : bus_append_devices(m, service, claim);
}

int bus_append_cells(sd_bus_message *m, const Layout *layout)
{
        int r = sd_bus_message_open_container(m, 'a', BUS_CELL);

        for (size_t i = 0; r >= 0 && i < layout->n_cells; i++) {
                const LayoutCell *cell = &layout->cells[i];
                _cleanup_free_ char *vcpus = cpu_set_format(&cell->vcpus);

                if (!vcpus)
                        return -ENOMEM;
                r = sd_bus_message_append(m, BUS_CELL, cell->cell, cell->host_cell, cell->memory_mb,
                                          cell->page_kib, vcpus);
        }
        return r < 0 ? r : sd_bus_message_close_container(m);
}

int bus_append_cpus(sd_bus_message *m, const Layout *layout)
{
        int r = sd_bus_message_open_container(m, 'a', BUS_CPU);

        for (size_t i = 0; r >= 0 && i < layout->n_cpus; i++) {
                const LayoutCpu *cpu = &layout->cpus[i];
                _cleanup_free_ char *cpus = cpu_set_format(&cpu->cpus);

                if (!cpus)
                        return -ENOMEM;
                r = sd_bus_message_append(m, BUS_CPU, cpu->vcpu, (int)cpu->dedicated, cpus);
        }
        return r < 0 ? r : sd_bus_message_close_container(m);
}

int bus_append_layout(sd_bus_message *m, const Layout *layout)
{
        int r = bus_append_cells(m, layout);

        return r < 0 ? r : bus_append_cpus(m, layout);
}

int bus_append_mappings(sd_bus_message *m, const Claim *claim)
{
        int r = sd_bus_message_open_container(m, 'a', "{sas}");

        for (size_t i = 0, next; r >= 0 && i < claim->mappings.n_items; i = next) {
                const char *suffix = claim->mappings.items[i].suffix;

                if ((r = sd_bus_message_open_container(m, 'e', "sas")) < 0 ||
                    (r = sd_bus_message_append(m, "s", suffix)) < 0 ||
                    (r = sd_bus_message_open_container(m, 'a', "s")) < 0)
                        return r;
                for (next = i; next < claim->mappings.n_items &&
                               strcmp(claim->mappings.items[next].suffix, suffix) == 0;
                     next++)
                        if ((r = sd_bus_message_append(
                                     m, "s", claim->mappings.items[next].provider.text)) < 0)
                                return r;
                if ((r = sd_bus_message_close_container(m)) < 0)
                        return r;
                r = sd_bus_message_close_container(m);
        }
        return r < 0 ? r : sd_bus_message_close_container(m);
}

int bus_append_claim(sd_bus_message *m, const ClaimService *service, const Claim *claim)
{
        int r = sd_bus_message_open_container(m, 'r', BUS_CLAIM_FIELDS);

        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "xssbssttts", claim->id, claim->consumer.text,
                                  claim_state_to_text(claim->state), (int)claim->resize_target,
                                  claim->project_id, claim->user_id, claim->created_usec,
                                  claim->expires_usec, claim->ended_usec, claim->end_reason);
        if (r < 0)
                return r;
        r = bus_append_holdings(m, service, claim);
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "ss", claim->boot_id, claim->consumer_type);
        if (r >= 0)
                r = bus_append_layout(m, &claim->layout);
        if (r >= 0)
                r = bus_append_mappings(m, claim);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_claims(sd_bus_message *reply, const ClaimService *service, const ClaimList *list)
{
        int r = 0;

        for (size_t i = 0; r >= 0 && i < list->n_claims; i++)
                r = bus_append_claim(reply, service, list->claims[i]);
        return r;
}

static int reply_claims(sd_bus_message *call, const ClaimService *service, const ClaimList *list)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        int r = sd_bus_message_new_method_return(call, &reply);

        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', BUS_CLAIM);
        if (r >= 0)
                r = append_claims(reply, service, list);
        if (r >= 0)
                r = sd_bus_message_close_container(reply);
        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

/* Listing very many, some at a time: what changes meanwhile is seen as it is when it is reached. */

typedef struct Place {
        bool is_given, cpu;
        unsigned number;
} Place;

typedef struct Listing {
        BusJob job;
        ClaimService *service;
        sd_bus_message *reply;
        Place place; /* only claims that are there */
        bool history;
        int64_t after;
        ClaimList ended;
        size_t n_ended; /* written */
} Listing;

static void listing_free(BusJob *job)
{
        Listing *listing = (Listing *)job;

        claim_list_done(&listing->ended);
        sd_bus_message_unref(listing->reply);
        free(listing);
}

static bool is_there(const Place *place, const Claim *claim)
{
        return !place->is_given || (place->cpu ? layout_has_cpu(&claim->layout, place->number)
                                               : layout_in_cell(&claim->layout, place->number));
}

/* The next lot of those that live. Above 0: there was one. */
static int append_living(Listing *listing, Claims *claims, Error *reterr)
{
        _cleanup_(claim_list_done) ClaimList list = { 0 };
        int r = claims_list_some(claims, listing->after, &list, reterr);

        for (size_t i = 0; r == 0 && i < list.n_claims; i++) {
                listing->after = list.claims[i]->id;
                if (is_there(&listing->place, list.claims[i]) &&
                    bus_append_claim(listing->reply, listing->service, list.claims[i]) < 0)
                        return -ENOMEM;
        }
        return r != 0 ? r : list.n_claims > 0;
}

static int append_ended(Listing *listing)
{
        size_t end = MIN(listing->n_ended + CLAIMS_LOT, listing->ended.n_claims);
        int r = 0;

        for (; r >= 0 && listing->n_ended < end; listing->n_ended++)
                r = bus_append_claim(listing->reply, listing->service,
                                     listing->ended.claims[listing->n_ended]);
        return r;
}

static int list_some(BusJob *job, sd_bus_error *error)
{
        Listing *listing = (Listing *)job;
        Error words = ERROR_NULL;
        Claims *claims;
        int r = bus_claims_open(listing->service, &claims, error);

        if (r < 0)
                return r;
        if (listing->n_ended < listing->ended.n_claims)
                return append_ended(listing) < 0 ? -ENOMEM : 1;
        if (listing->after >= 0) {
                r = append_living(listing, claims, &words);
                if (r == 1)
                        return 1;
                listing->after = -1;
        }
        if (r == 0 && listing->history) {
                listing->history = false;
                r = claims_list_ended(claims, &listing->ended, &words);
                if (r == 0)
                        return 1;
        }
        if (r != 0)
                return bus_claims_error(listing->service, error, r, &words);
        r = sd_bus_message_close_container(listing->reply);
        if (r >= 0)
                r = sd_bus_send(NULL, listing->reply, NULL);
        return MIN(r, 0);
}

static int begin_listing(sd_bus_message *call, BusGate *gate, ClaimService *service,
                         const Place *place, bool history)
{
        Listing *listing = calloc(1, sizeof(Listing));
        int r;

        if (!listing)
                return -ENOMEM;
        listing->job = (BusJob){ list_some, listing_free, sd_bus_message_ref(call), NULL };
        listing->service = service;
        listing->place = *place;
        listing->history = history;
        r = sd_bus_message_new_method_return(call, &listing->reply);
        if (r >= 0)
                r = sd_bus_message_open_container(listing->reply, 'a', BUS_CLAIM);
        if (r < 0) {
                sd_bus_message_unref(call);
                listing_free(&listing->job);
                return r;
        }
        bus_gate_begin(gate, &listing->job);
        return 1;
}

int bus_list_claims(sd_bus_message *call, BusGate *gate, ClaimService *service, sd_bus_error *error)
{
        const Place everywhere = { 0 };
        Claims *claims;
        int r, history;

        r = bus_claims_begin(call, service, &claims, error, "b", &history);
        return r < 0 ? r : begin_listing(call, gate, service, &everywhere, history);
}

int bus_get_claim(sd_bus_message *call, ClaimService *service, sd_bus_error *error)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        _cleanup_(claim_freep) Claim *claim = NULL;
        Error words = ERROR_NULL;
        Claims *claims;
        int64_t id;
        int r;

        r = bus_claims_begin(call, service, &claims, error, "x", &id);
        if (r < 0)
                return r;
        r = claims_get(claims, id, &claim, &words);
        if (r != 0)
                return bus_claims_error(service, error, r, &words);
        r = sd_bus_message_new_method_return(call, &reply);
        if (r < 0)
                return r;
        r = bus_append_claim(reply, service, claim);
        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

/* A consumer's first claim and its resize target. */
static int find_of_consumer(Claims *claims, const Uuid *consumer, ClaimList *list, Error *reterr)
{
        for (int target = 0; target < 2; target++) {
                _cleanup_(claim_freep) Claim *claim = NULL;
                int r = claims_find(claims, consumer, target, &claim, reterr);

                if (r == CLAIM_E_NOT_FOUND)
                        continue;
                if (r != 0)
                        return r;
                if (claim_list_add(list, claim) < 0)
                        return error_oom(reterr);
                claim = NULL;
        }
        return 0;
}

/* "cpu:5", "cell:1". False when it is something else. */
static bool parse_place(const char *what, Place *ret)
{
        const char *colon = strchr(what, ':');
        bool cpu = strncmp(what, "cpu:", 4) == 0;

        if ((!cpu && strncmp(what, "cell:", 5) != 0) || !colon[1] || strlen(colon + 1) > 9 ||
            strspn(colon + 1, "0123456789") != strlen(colon + 1))
                return false;
        *ret = (Place){ .is_given = true,
                        .cpu = cpu,
                        .number = (unsigned)strtoul(colon + 1, NULL, 10) };
        return true;
}

static int find_claims(Claims *claims, const char *what, ClaimList *list, Error *reterr)
{
        Uuid uuid;
        int r;

        /* A uuid may be a guest's or an mdev's. */
        if (uuid_from_text(what, &uuid) < 0)
                return claims_list_device(claims, what, list, reterr);
        r = claims_list_device(claims, uuid.text, list, reterr);
        return r != 0 || list->n_claims > 0 ? r : find_of_consumer(claims, &uuid, list, reterr);
}

int bus_find_claims(sd_bus_message *call, BusGate *gate, ClaimService *service, sd_bus_error *error)
{
        _cleanup_(claim_list_done) ClaimList list = { 0 };
        Error words = ERROR_NULL;
        const char *what;
        Claims *claims;
        Place place;
        int r;

        r = bus_claims_begin(call, service, &claims, error, "s", &what);
        if (r < 0)
                return r;
        if (parse_place(what, &place))
                return begin_listing(call, gate, service, &place, false);
        r = find_claims(claims, what, &list, &words);
        if (r != 0)
                return bus_claims_error(service, error, r, &words);
        return reply_claims(call, service, &list);
}

static int append_problems(sd_bus_message *m, const ReconcileProblems *problems)
{
        int r = 0;

        for (size_t i = 0; r >= 0 && i < problems->n_items; i++)
                r = sd_bus_message_append(m, BUS_PROBLEM, problems->items[i].consumer.text,
                                          problems->items[i].claim_id, problems->items[i].text);
        return r;
}

int bus_list_problems(sd_bus_message *call, ClaimService *service, sd_bus_error *error)
{
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        int r = sd_bus_message_new_method_return(call, &reply);

        if (r < 0)
                return r;
        r = sd_bus_message_open_container(reply, 'a', BUS_PROBLEM);
        if (r >= 0)
                r = append_problems(reply, claim_service_problems(service));
        if (r >= 0)
                r = append_problems(reply, claim_service_findings(service));
        if (r < 0)
                return r;
        r = sd_bus_message_close_container(reply);
        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static json_t *verdict_to_json(const FitVerdict *verdict)
{
        return json_pack("{ss ss ss ss ss sI sI sI ss}", "group", verdict->suffix, "provider",
                         verdict->provider.text, "name", verdict->provider_name, "class",
                         verdict->resource_class, "term", verdict->term, "asked",
                         (json_int_t)verdict->asked, "free",
                         (json_int_t)MIN(verdict->free_amount, (uint64_t)INT64_MAX), "missing",
                         (json_int_t)verdict->missing, "text", verdict->text);
}

static json_t *verdicts_to_json(const FitVerdicts *verdicts, bool fits, const char *summary)
{
        _cleanup_json_ json_t *array = json_array();

        for (size_t i = 0; array && i < verdicts->n_items; i++)
                if (json_array_append_new(array, verdict_to_json(&verdicts->items[i])) < 0)
                        return NULL;
        return array ? json_pack("{ss sb ss sO sI}", "format", EXPLAIN_FORMAT, "fits", (int)fits,
                                 "summary", summary, "providers", array, "omitted",
                                 (json_int_t)verdicts->n_omitted)
                     : NULL;
}

int bus_explain_known(sd_bus_message *call, ClaimService *service, const ResourceRequest *request,
                      sd_bus_error *error)
{
        _cleanup_(fit_verdicts_done) FitVerdicts verdicts = { 0 };
        _cleanup_json_ json_t *document = NULL;
        _cleanup_free_ char *text = NULL;
        Error words = ERROR_NULL;
        Claims *claims;
        int r;

        r = bus_claims_open(service, &claims, error);
        if (r < 0)
                return r;
        r = claims_explain(claims, request, EXPLAIN_PATIENCE_USEC, &verdicts, &words);
        if (r < 0 || r == CLAIM_E_BUSY || r == CLAIM_E_TOO_HARD)
                return bus_claims_error(service, error, r, &words);
        document = verdicts_to_json(&verdicts, r == 0, r == 0 ? "" : words.text);
        text = document ? json_dumps(document, JSON_COMPACT) : NULL;
        return text ? sd_bus_reply_method_return(call, "s", text) : -ENOMEM;
}
