/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Checks whether the host can be removed from Placement. judge() is pure and makes the result, a
 * JSON document. The function compares the tree of Placement with the tree that this host would
 * make without Placement, and lists the foreign providers. It also lists the consumers of the host:
 * claims, guests that are not shut off, and consumers with allocations in Placement. The host can
 * be removed if both lists are empty. The other functions keep the request and the result of a
 * retirement, and mark the cordon after the removal. If the check, the removal or the mark fails,
 * the host is not retired, and the result is an error. If only the mark fails, Placement has no
 * provider of the host any more, and the cycle publishes the host again. */

#include "agent/cycle/retire.h"

#include <string.h>

#include "base/json.h"
#include "formats/format-names.h"

/* The input of judge(). Everything is borrowed. */
typedef struct RetireFacts {
        const ProviderTree *remote; /* the tree that was just read */
        const ProviderTree *own;    /* made by this host without Placement's tree */
        const Uuid *root;
        const ClaimList *claims;      /* the living claims */
        const Snapshot *snapshot;     /* the guests */
        const Allocations *consumers; /* consumers with allocations of remote; NULL: none */
} RetireFacts;

/* Returns the entry of the consumer, and adds it if there is none. NULL: out of memory. The entry
 * is borrowed from holders. */
static json_t *get_holder(const RetireFacts *facts, json_t *holders, const Uuid *consumer)
{
        const char *guest = "";
        json_t *holder;
        size_t i;

        json_array_foreach(holders, i, holder)
                if (strcmp(json_string_value(json_object_get(holder, "consumer")),
                           consumer->text) == 0)
                        return holder;
        for (i = 0; i < facts->snapshot->n_domains; i++)
                if (uuid_equal(&facts->snapshot->domains[i].uuid, consumer))
                        guest = facts->snapshot->domains[i].name;
        holder = json_pack("{ss ss sI sb}", "consumer", consumer->text, "guest", guest, "claim",
                           (json_int_t)0, "placed", 0);
        return json_array_append_new(holders, holder) < 0 ? NULL : holder;
}

/* Adds an entry for the consumer of each claim, each guest that is not shut off, and each consumer
 * in Placement. A consumer has one entry. An entry has the claim id of the consumer (0: none), and
 * whether Placement has its allocations. */
static int add_holders(const RetireFacts *facts, json_t *holders)
{
        json_t *holder;

        for (size_t i = 0; i < facts->claims->n_claims; i++) {
                const Claim *claim = facts->claims->claims[i];

                holder = get_holder(facts, holders, &claim->consumer);
                if (json_object_set_new(holder, "claim", json_integer(claim->id)) < 0)
                        return -ENOMEM;
        }
        for (size_t i = 0; i < facts->snapshot->n_domains; i++)
                if (facts->snapshot->domains[i].state != DOMAIN_SHUTOFF &&
                    !get_holder(facts, holders, &facts->snapshot->domains[i].uuid))
                        return -ENOMEM;
        for (size_t i = 0; facts->consumers && i < facts->consumers->n_consumers; i++) {
                holder = get_holder(facts, holders, &facts->consumers->consumers[i]->uuid);
                if (json_object_set_new(holder, "placed", json_true()) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Returns true if this agent makes the provider or could have made it. This is the root, a provider
 * whose uuid follows from its name, or one with the name of an own provider. Nova can have created
 * the latter with another uuid. */
static bool is_own(const RetireFacts *facts, const Provider *provider)
{
        Uuid uuid = uuid_make_child(facts->root, provider->name);

        return uuid_equal(&provider->uuid, facts->root) || uuid_equal(&provider->uuid, &uuid) ||
               provider_tree_find_name(facts->own, provider->name);
}

/* Makes the document of RETIRE_FORMAT (formats/format-names.h), with "done": false. Children
 * precede their parents, which is the order of a removal. Returns -ENOMEM. */
static int judge(const RetireFacts *facts, json_t **ret)
{
        json_t *holders = json_array(), *foreign = json_array(), *own = json_array();
        _cleanup_json_ json_t *document =
                json_pack("{ss sb so so so}", "format", RETIRE_FORMAT, "done", 0, "holders",
                          holders, "foreign", foreign, "providers", own);

        if (!document || add_holders(facts, holders) < 0)
                return -ENOMEM;
        for (size_t i = facts->remote->n_providers; i > 0; i--) {
                const Provider *provider = facts->remote->providers[i - 1];

                if (json_array_append_new(is_own(facts, provider) ? own : foreign,
                                          json_string(provider->name)) < 0)
                        return -ENOMEM;
        }
        *ret = TAKE_PTR(document);
        return 0;
}

/* Returns true if the document names a consumer or a foreign provider. */
static bool is_refused(const json_t *document)
{
        return json_array_size(json_object_get(document, "holders")) > 0 ||
               json_array_size(json_object_get(document, "foreign")) > 0;
}

/* Forgets the last result. */
static void forget(Retirement *retirement)
{
        json_decref(retirement->document);
        retirement->document = NULL;
        retirement->error = ERROR_NULL;
}

void retirement_ask(Retirement *retirement, RetireKind kind, const EventAuthor *by)
{
        forget(retirement);
        retirement->asked = kind;
        retirement->asked_by = *by;
}

void retirement_begin(Retirement *retirement)
{
        if (retirement->asked != RETIRE_NONE)
                forget(retirement);
        retirement->kind = retirement->asked;
        retirement->by = retirement->asked_by;
        retirement->asked = RETIRE_NONE;
}

bool retirement_check(Retirement *retirement, const TreeMaker *maker, Reporter *reporter,
                      const Snapshot *snapshot)
{
        _cleanup_(allocations_freep) Allocations *consumers = NULL, *others = NULL;
        _cleanup_(claim_list_done) ClaimList list = { 0 };
        Claims *claims = maker->claims->claims;
        MadeTree made = { 0 }; /* made without Placement's tree */

        forget(retirement);
        reporter_take_gathered(reporter, &consumers, &others);
        if (!claims || claims_list(claims, CLAIMS_LIVING, NULL, &list, NULL) != 0)
                error_setf(&retirement->error, ENODATA, "Cannot read the claims of this host");
        if (retirement->error.code ||
            tree_maker_make_empty(maker, snapshot, NULL, false, &made, &retirement->error) < 0)
                return false;
        if (judge(&(RetireFacts){ .remote = reporter_tree(reporter),
                                  .own = made.tree,
                                  .root = &maker->root,
                                  .claims = &list,
                                  .snapshot = snapshot,
                                  .consumers = consumers },
                  &retirement->document) < 0)
                error_oom(&retirement->error);
        provider_tree_free(made.tree);
        return retirement->kind == RETIRE_DO && !retirement->error.code &&
               !is_refused(retirement->document);
}

bool retirement_end(Retirement *retirement, const TreeMaker *maker, int result, const Error *error)
{
        const EventNote note = { .kind = EVENT_RETIRED, .by = &retirement->by };

        retirement->kind = RETIRE_NONE;
        retirement->error = *error;
        if (result == 0)
                result = cordon_set_retired(maker->cordon, true, &retirement->error);
        if (result != 0) {
                error_prefixf(&retirement->error, result < 0 ? result : -EBUSY,
                              "The host is not retired");
                return false;
        }
        (void)json_object_set_new(retirement->document, "done", json_true());
        claim_service_record(maker->claims, &note);
        return true;
}
