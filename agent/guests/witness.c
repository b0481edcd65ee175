/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Up to three steps, each with one gathering: allocations of providers; all consumers of the host's
 * tree, where they are wanted; consumers that are asked about and were not among them. A first step
 * that fails is skipped, and the next cycle repeats it. */

#include "agent/guests/witness.h"

#include "base/log.h"
#include "report/gather.h"

struct ClaimWitness {
        ClaimService *service;
        Reporter *reporter;
        uint64_t stamp; /* of the providers whose allocations are read */
        ClaimWanted asked;
        Allocations *read; /* so far; NULL: nothing */
        Gather *gather;
        ClaimWitnessDone done;
        void *userdata;
};

ClaimWitness *claim_witness_free(ClaimWitness *witness)
{
        if (!witness)
                return NULL;
        gather_free(witness->gather);
        allocations_free(witness->read);
        claim_wanted_done(&witness->asked);
        free(witness);
        return NULL;
}

/* Without an answer, claims are compared as if Placement was away. */
static void compare(ClaimWitness *witness, int result, const Error *error)
{
        if (result == 0)
                claim_service_answer(witness->service, &witness->asked, TAKE_PTR(witness->read));
        else
                log_debug("Placement could not be asked about consumers: %s", error->text);
        claim_service_reconcile(witness->service, RECONCILE_AWAY, NULL);
}

static void finish(ClaimWitness *witness, int result, const Error *error)
{
        compare(witness, result, error);
        witness->done(witness->userdata);
}

/* Adds what was read last; takes it. */
static int take(ClaimWitness *witness, Allocations *consumers)
{
        int r = 0;

        if (!witness->read) {
                witness->read = consumers;
                return 0;
        }
        for (size_t i = 0; r == 0 && i < consumers->n_consumers; i++) {
                r = allocations_add(witness->read, consumers->consumers[i]);
                if (r == 0)
                        consumers->consumers[i] = NULL;
        }
        for (size_t i = 0; i < consumers->n_consumers; i++)
                consumer_free(consumers->consumers[i]);
        consumers->n_consumers = 0;
        allocations_free(consumers);
        return r;
}

static void on_gathered(int result, Allocations *consumers, Allocations *others, const Error *error,
                        void *userdata)
{
        ClaimWitness *witness = userdata;

        allocations_free(others);
        if (result == 0)
                result = take(witness, consumers);
        finish(witness, result, error);
}

/* 1: they are being read; 0: nothing is left to be read. */
static int read_asked(ClaimWitness *witness)
{
        _cleanup_free_ Uuid *uuids = calloc(witness->asked.n_uuids + 1, sizeof(Uuid));
        size_t n = 0;
        int r;

        if (!uuids)
                return -ENOMEM;
        for (size_t i = 0; i < witness->asked.n_uuids; i++)
                if (!witness->read || !allocations_find(witness->read, &witness->asked.uuids[i]))
                        uuids[n++] = witness->asked.uuids[i];
        if (n == 0)
                return 0;
        r = gather_consumers_new(&witness->gather, reporter_get_session(witness->reporter), uuids,
                                 n, on_gathered, witness, NULL);
        return r < 0 ? r : 1;
}

static void on_all_gathered(Reporter *reporter, int result, const Error *error, void *userdata)
{
        ClaimWitness *witness = userdata;
        Allocations *others = NULL;

        reporter_take_gathered(reporter, &witness->read, &others);
        allocations_free(others);
        if (result == 0) {
                int r = read_asked(witness);

                if (r > 0)
                        return;
                result = r;
        }
        finish(witness, result, error);
}

/* As read_asked(). A tree that Placement does not have has no consumers; it can have the host under
 * another uuid. */
static int read_all(ClaimWitness *witness)
{
        int r;

        witness->asked.absent = reporter_tree(witness->reporter)->n_providers == 0;
        r = witness->asked.absent
                    ? allocations_new(&witness->read)
                    : reporter_gather(witness->reporter, NULL, NULL, on_all_gathered, witness);
        if (r < 0)
                return r;
        return witness->asked.absent ? read_asked(witness) : 1;
}

/* Compares what needs no answer. Returns 1 if consumers are being read, 0 if nothing is left to do.
 */
static int ask(ClaimWitness *witness)
{
        int r;

        witness->gather = gather_free(witness->gather);
        claim_service_reconcile(witness->service, RECONCILE_CAN_ASK, &witness->asked);
        if (claim_wanted_is_empty(&witness->asked))
                return 0;
        r = witness->asked.all ? read_all(witness) : read_asked(witness);
        if (r == 1)
                return 1;
        compare(witness, r, &ERROR_NULL);
        return 0;
}

static void on_held(int result, Allocations *consumers, Allocations *others, const Error *error,
                    void *userdata)
{
        ClaimWitness *witness = userdata;

        allocations_free(consumers);
        if (result == 0)
                claim_service_set_held(witness->service, witness->stamp, others);
        else
                log_debug("Allocations of the host's providers could not be read: %s", error->text);
        if (ask(witness) == 0)
                witness->done(witness->userdata);
}

/* Has the provider amounts that a domain shows? */
static bool has_amounts(const Provider *provider)
{
        return provider_find_inventory(provider, "VCPU") ||
               provider_find_inventory(provider, "PCPU") ||
               provider_find_inventory(provider, "MEMORY_MB");
}

/* Yields the root and the providers of its CPUs and memory, and how often these were written. */
static size_t list_providers(Reporter *reporter, const Uuid *root, Uuid *ret, uint64_t *ret_stamp)
{
        const ProviderTree *tree = reporter_tree(reporter);
        size_t n = 0;

        for (size_t i = 0; i < tree->n_providers; i++) {
                const Provider *provider = tree->providers[i];
                int64_t generation = reporter_get_generation(reporter, &provider->uuid);

                if (!provider_tree_in_subtree(tree, provider, root) ||
                    (!uuid_equal(&provider->uuid, root) && !has_amounts(provider)))
                        continue;
                ret[n++] = provider->uuid;
                *ret_stamp += (uint64_t)MAX(generation, 0) + 1;
        }
        return n;
}

/* Returns 1 if allocations of providers are being read, 0 if no claim needs them. */
static int look(ClaimWitness *witness, const Uuid *root)
{
        const ProviderTree *tree = reporter_tree(witness->reporter);
        const StringSet no_class = { 0 };
        Uuid *providers = tree ? calloc(tree->n_providers + 1, sizeof(Uuid)) : NULL;
        size_t n =
                providers ? list_providers(witness->reporter, root, providers, &witness->stamp) : 0;
        int r = 0;

        if (n > 0 && claim_service_wants_held(witness->service, witness->stamp))
                r = gather_new(&witness->gather, reporter_get_session(witness->reporter), providers,
                               n, &no_class, on_held, witness, NULL) >= 0;
        free(providers);
        return r;
}

int claim_witness_begin(ClaimWitness **ret, ClaimService *service, Reporter *reporter,
                        const Uuid *root, ClaimWitnessDone done, void *userdata)
{
        _cleanup_(claim_witness_freep) ClaimWitness *witness = calloc(1, sizeof(ClaimWitness));

        if (!witness) {
                claim_service_reconcile(service, RECONCILE_AWAY, NULL);
                return 0;
        }
        *witness = (ClaimWitness){
                .service = service, .reporter = reporter, .done = done, .userdata = userdata
        };
        if (look(witness, root) == 0 && ask(witness) == 0)
                return 0;
        *ret = TAKE_PTR(witness);
        return 1;
}
