/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Binds a request to the allocations that a scheduler wrote, and checks the fit of the bound
 * request. Allocations on providers that claims of this host cannot use count as another host's. If
 * the request has more of a class of such an allocation than the consumer has here, the
 * allocation's part of the request is removed (take_out()). The rest must be equal to the sum of
 * the allocations here, class by class. Only hugepages of a layout, which the request does not name
 * as a class, are compared later. Claims of this host can have amounts that Placement does not know
 * yet. So each amount is also compared with the capacity that claims left. The first difference or
 * lack ends placed_make() with words, and no bound request is made.
 *
 * Tests: tests/unit/claims/fit/test-placed.c */

#include "claims/fit/placed.h"

#include <inttypes.h>
#include <string.h>

#include "claims/claim/host-facts.h"
#include "claims/fit/problem.h"

/* The part of a consumer's allocations that is on this host. */
typedef struct Share {
        const HostView *view;
        bool *usable;
        const Consumer *holding;
        Resources sum; /* the amounts on this host */
} Share;

static void share_done(Share *share)
{
        free(share->usable);
        resources_done(&share->sum);
}

/* Returns true if claims of this host can use the allocation's provider, and yields its index. */
static bool is_ours(const Share *share, const Allocation *allocation, size_t *ret_index)
{
        return host_view_find(share->view, &allocation->provider, ret_index) &&
               share->usable[*ret_index];
}

/* Adds up the allocations on this host. */
static int add_up(Share *share, const char *node)
{
        share->usable = calloc(share->view->n_providers + 1, sizeof(bool));
        if (!share->usable)
                return -ENOMEM;
        host_view_usable(share->view, node, share->usable);
        for (size_t i = 0; i < share->holding->n_allocations; i++) {
                const Allocation *allocation = &share->holding->allocations[i];
                size_t index;

                for (size_t j = 0;
                     is_ours(share, allocation, &index) && j < allocation->resources.n_items; j++)
                        if (resources_add(&share->sum,
                                          allocation->resources.items[j].resource_class,
                                          allocation->resources.items[j].amount) < 0)
                                return -ENOMEM;
        }
        return 0;
}

/* Returns true if the mappings (NULL: unknown) map the group to the provider. */
static bool is_mapped(const RequestMappings *mappings, const char *suffix, const Uuid *provider)
{
        for (size_t i = 0; mappings && i < mappings->n_items; i++)
                if (strcmp(mappings->items[i].suffix, suffix) == 0 &&
                    uuid_equal(&mappings->items[i].provider, provider))
                        return true;
        return false;
}

/* Removes from the request the amounts that the consumer has on a provider of another host. These
 * are the groups that are mapped there, and each class that the group without a suffix has with the
 * same amount. */
static int take_out(ResourceRequest *request, const Allocation *allocation,
                    const RequestMappings *mappings)
{
        for (size_t i = request->n_groups; i > 0; i--)
                if (request->groups[i - 1].suffix[0] &&
                    is_mapped(mappings, request->groups[i - 1].suffix, &allocation->provider))
                        resource_request_remove(request, i - 1);
        for (size_t i = 0; i < allocation->resources.n_items; i++) {
                const ResourceAmount *amount = &allocation->resources.items[i];
                Resources *plain = request->n_groups > 0 && !request->groups[0].suffix[0]
                                           ? &request->groups[0].resources
                                           : NULL;

                if (plain && resources_get(plain, amount->resource_class) == amount->amount &&
                    resources_set(plain, amount->resource_class, 0) < 0)
                        return -ENOMEM;
        }
        if (request->n_groups > 0 && !request->groups[0].suffix[0] &&
            request->groups[0].resources.n_items == 0)
                resource_request_remove(request, 0);
        return 0;
}

/* Yields true if the request has more of a class of this allocation than the consumer has on this
 * host. Then the other provider can serve a part of the request. Otherwise the allocation is the
 * second copy of a consumer that moves. */
static int lacks_some(const Share *share, const ResourceRequest *request,
                      const Allocation *allocation, bool *ret)
{
        _cleanup_(resources_done) Resources asked = RESOURCES_INIT;
        bool lacks = false;

        if (resource_request_sum(request, &asked) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < allocation->resources.n_items; i++) {
                const char *resource_class = allocation->resources.items[i].resource_class;

                lacks = lacks || resources_get(&asked, resource_class) >
                                         resources_get(&share->sum, resource_class);
        }
        *ret = lacks;
        return 0;
}

/* Removes the parts of the request that other hosts serve. */
static int take_out_others(const Share *share, const RequestMappings *mappings,
                           ResourceRequest *request)
{
        for (size_t i = 0; i < share->holding->n_allocations; i++) {
                const Allocation *allocation = &share->holding->allocations[i];
                bool lacks;
                size_t index;

                if (is_ours(share, allocation, &index))
                        continue;
                if (lacks_some(share, request, allocation, &lacks) < 0 ||
                    (lacks && take_out(request, allocation, mappings) < 0))
                        return -ENOMEM;
        }
        return 0;
}

static int differ(const Share *share, const char *resource_class, uint64_t held, uint64_t asked,
                  Error *reterr)
{
        error_setf(reterr, ESTALE,
                   "Consumer %s has %" PRIu64
                   " of %s allocated here, but the request asks for %" PRIu64,
                   share->holding->uuid.text, held, resource_class, asked);
        return CLAIM_E_OTHER;
}

/* Returns true for a class of hugepages in a request with a layout, which asks for pages by size.
 * placed_check() compares the numbers of pages. */
static bool is_of_layout(const ResourceRequest *request, const char *resource_class)
{
        return request->numa.n_cells > 0 &&
               strncmp(resource_class, HOST_PAGES_PREFIX, strlen(HOST_PAGES_PREFIX)) == 0;
}

/* Compares the request with the allocations here, class by class. Returns CLAIM_E_OTHER with words
 * for the first difference. */
static int compare_sums(const Share *share, const ResourceRequest *request, Error *reterr)
{
        _cleanup_(resources_done) Resources asked = RESOURCES_INIT;

        if (resource_request_sum(request, &asked) < 0)
                return error_oom(reterr);
        for (size_t i = 0; i < asked.n_items; i++) {
                uint64_t held = resources_get(&share->sum, asked.items[i].resource_class);

                if (held != asked.items[i].amount)
                        return differ(share, asked.items[i].resource_class, held,
                                      asked.items[i].amount, reterr);
        }
        for (size_t i = 0; i < share->sum.n_items; i++)
                if (resources_get(&asked, share->sum.items[i].resource_class) == 0 &&
                    !is_of_layout(request, share->sum.items[i].resource_class))
                        return differ(share, share->sum.items[i].resource_class,
                                      share->sum.items[i].amount, 0, reterr);
        return 0;
}

/* Checks that claims left enough capacity for a placed amount. Returns CLAIM_E_NO_CAPACITY with
 * words if not, or if the provider does not have the class. */
static int check_capacity(const Share *share, size_t index, const ResourceAmount *amount,
                          Error *reterr)
{
        const Provider *provider = share->view->tree->providers[index];
        const Inventory *inventory = provider_find_inventory(provider, amount->resource_class);
        uint64_t used = resources_get(&share->view->providers[index].used, amount->resource_class);
        uint64_t capacity = inventory ? inventory_capacity(inventory) : 0;

        if (!inventory)
                error_setf(reterr, ENOSPC, "%s: %s has no inventory of it", amount->resource_class,
                           provider->name);
        else if (used > capacity || amount->amount > capacity - used)
                error_setf(reterr, ENOSPC,
                           "%s: Placement allocated %" PRIu64
                           " of %s to this consumer, but claims of this host have %" PRIu64
                           " of %" PRIu64,
                           amount->resource_class, amount->amount, provider->name, used, capacity);
        else
                return 0;
        return CLAIM_E_NO_CAPACITY;
}

static int check_capacities(const Share *share, Error *reterr)
{
        for (size_t i = 0; i < share->holding->n_allocations; i++) {
                const Allocation *allocation = &share->holding->allocations[i];
                size_t index;

                for (size_t j = 0;
                     is_ours(share, allocation, &index) && j < allocation->resources.n_items; j++) {
                        int r = check_capacity(share, index, &allocation->resources.items[j],
                                               reterr);

                        if (r != 0)
                                return r;
                }
        }
        return 0;
}

void placed_bind_groups(ResourceRequest *request, const RequestMappings *mappings)
{
        for (size_t i = 0; i < mappings->n_items; i++)
                for (size_t j = 0; j < request->n_groups; j++)
                        if (mappings->items[i].suffix[0] &&
                            strcmp(request->groups[j].suffix, mappings->items[i].suffix) == 0)
                                request->groups[j].provider = mappings->items[i].provider;
}

int placed_make(const HostView *view, const char *node, const ResourceRequest *request,
                const Consumer *holding, const RequestMappings *mappings, ResourceRequest *ret,
                Error *reterr)
{
        _cleanup_(share_done) Share share = { .view = view, .holding = holding };
        _cleanup_(resource_request_done) ResourceRequest bound = RESOURCE_REQUEST_INIT;
        int r;

        if (add_up(&share, node) < 0 || resource_request_copy(&bound, request) < 0 ||
            take_out_others(&share, mappings, &bound) < 0)
                return error_oom(reterr);
        if (share.sum.n_items == 0) {
                error_setf(reterr, ESTALE, "Consumer %s has no allocations on this host",
                           holding->uuid.text);
                return CLAIM_E_OTHER;
        }
        if ((r = compare_sums(&share, &bound, reterr)) != 0 ||
            (r = check_capacities(&share, reterr)) != 0)
                return r;
        if (mappings)
                placed_bind_groups(&bound, mappings);
        *ret = TAKE_STRUCT(bound);
        return CLAIM_DONE;
}

/* Returns the provider that the fit chose for a group without a mapping; NULL: the group has no
 * suffix, is bound, or has no resources. */
static const Provider *find_chosen(const HostView *view, const RequestGroup *group, size_t index,
                                   const Fit *fit)
{
        for (size_t i = 0; group->suffix[0] && uuid_empty(&group->provider) && i < fit->n_pieces;
             i++)
                if (fit->pieces[i].group == index)
                        return view->tree->providers[fit->pieces[i].provider];
        return NULL;
}

static bool is_ambiguous(const HostView *view, const ResourceRequest *bound, const Fit *fit)
{
        for (size_t i = 0; i < bound->n_groups; i++)
                for (size_t j = 0; j < i; j++) {
                        const RequestGroup *a = &bound->groups[i], *b = &bound->groups[j];
                        const Provider *of_a = find_chosen(view, a, i, fit),
                                       *of_b = find_chosen(view, b, j, fit);

                        if (of_a && of_b && of_a != of_b &&
                            resources_equal(&a->resources, &b->resources) &&
                            !fit_bad_trait(of_b, a, true, NULL) &&
                            !fit_bad_trait(of_a, b, true, NULL))
                                return true;
                }
        return false;
}

int placed_check(const HostView *view, const ResourceRequest *bound, const Consumer *holding,
                 const Fit *fit, bool *ret_ambiguous, Error *reterr)
{
        _cleanup_(consumer_freep) Consumer *taken = NULL;

        if (ret_ambiguous)
                *ret_ambiguous = is_ambiguous(view, bound, fit);
        if (consumer_new(&taken, &holding->uuid) < 0)
                return error_oom(reterr);
        for (size_t i = 0; i < fit->n_pieces; i++) {
                const FitPiece *piece = &fit->pieces[i];
                const Uuid *provider = &view->tree->providers[piece->provider]->uuid;

                if (consumer_add(taken, provider, piece->resource_class, piece->amount) < 0)
                        return error_oom(reterr);
        }
        for (size_t i = 0; i < taken->n_allocations; i++) {
                const Resources *held = consumer_find(holding, &taken->allocations[i].provider);

                if (held && resources_equal(held, &taken->allocations[i].resources))
                        continue;
                error_setf(
                        reterr, ESTALE,
                        "The allocations of consumer %s on provider %s differ from those of the layout",
                        holding->uuid.text, taken->allocations[i].provider.text);
                return CLAIM_E_OTHER;
        }
        return CLAIM_DONE;
}
