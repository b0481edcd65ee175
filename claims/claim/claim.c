/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Makes, fills and frees claims, lists of claims and lists of events, which are plain data. Also
 * has the texts of states, and sums of a claim's amounts. A claim owns all that it points to. Its
 * texts are not NULL after claim_new(), and its allocations are sorted by provider. An addition
 * that fails (-ENOMEM, or -EOVERFLOW of an amount) leaves the counts of the arrays correct, so that
 * claim_free() is safe. A list owns an item only after it was added.
 *
 * Tests: tests/unit/claims/claim/test-claim.c tests/unit/claims/test-claims-events.c */

#include "claims/claim/claim.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"

static const char *const state_texts[_CLAIM_STATE_MAX] = {
        [CLAIM_STATE_PENDING] = "pending",
        [CLAIM_STATE_CLAIMED] = "claimed",
        [CLAIM_STATE_CONFIRMED] = "confirmed",
        [CLAIM_STATE_RELEASED] = "released",
};

const char *claim_state_to_text(ClaimState state)
{
        return state >= 0 && state < _CLAIM_STATE_MAX ? state_texts[state] : "unknown";
}

/* The database stores these texts. It stores only "claimed" and "confirmed" of the states above. A
 * change of a stored text needs a new version of the schema. */
static const char *const write_state_texts[_CLAIM_WRITE_MAX] = {
        [CLAIM_WRITE_NONE] = "",           [CLAIM_WRITE_UNANSWERED] = "pending",
        [CLAIM_WRITE_WRITTEN] = "written", [CLAIM_WRITE_UNSENT] = "owed",
        [CLAIM_WRITE_SENT] = "sent",
};

const char *claim_write_state_to_text(ClaimWriteState write_state)
{
        return write_state >= 0 && write_state < _CLAIM_WRITE_MAX ? write_state_texts[write_state]
                                                                  : "unknown";
}

/* The texts of a claim, by offset: each is owned, and not NULL after claim_new(). */
static const size_t texts[] = {
        offsetof(Claim, host),    offsetof(Claim, node),          offsetof(Claim, project_id),
        offsetof(Claim, user_id), offsetof(Claim, consumer_type), offsetof(Claim, request),
        offsetof(Claim, process), offsetof(Claim, boot_id),       offsetof(Claim, end_reason),
};

/* Returns the address of a text in the claim. */
static char **text_of(Claim *claim, size_t number)
{
        return (char **)((char *)claim + texts[number]);
}

int claim_new(Claim **ret)
{
        _cleanup_(claim_freep) Claim *claim = calloc(1, sizeof(Claim));

        if (!claim)
                return -ENOMEM;
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                if (!(*text_of(claim, i) = strdup("")))
                        return -ENOMEM;
        *ret = TAKE_PTR(claim);
        return 0;
}

/* Frees the texts, which a claim owns although their type is const. */
static void device_done(ClaimDevice *device)
{
        free((char *)device->suffix);
        free((char *)device->name);
        free((char *)device->address);
        free((char *)device->mdev_type);
        free((char *)device->identity);
        *device = (ClaimDevice){ 0 };
}

/* Frees also a claim that was filled only in part: what is missing is NULL or 0. */
Claim *claim_free(Claim *claim)
{
        if (!claim)
                return NULL;
        for (size_t i = 0; i < claim->n_allocations; i++) {
                resources_done(&claim->allocations[i].resources);
                free(claim->provider_names[i]);
        }
        for (size_t i = 0; i < claim->n_devices; i++)
                device_done(&claim->devices[i]);
        layout_done(&claim->layout);
        free(claim->devices);
        free(claim->allocations);
        free(claim->provider_names);
        request_mappings_done(&claim->mappings);
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                free(*text_of(claim, i));
        free(claim);
        return NULL;
}

/* Inserts a provider without resources at the position, in both arrays. */
static int insert_allocation(Claim *claim, size_t position, const Uuid *provider, const char *name)
{
        size_t n = claim->n_allocations;
        Allocation *allocations;
        char **names, *copy;

        allocations = reallocarray(claim->allocations, n + 1, sizeof(Allocation));
        if (!allocations)
                return -ENOMEM;
        claim->allocations = allocations;
        names = reallocarray(claim->provider_names, n + 1, sizeof(char *));
        if (!names)
                return -ENOMEM;
        claim->provider_names = names;
        copy = strdup(name);
        if (!copy)
                return -ENOMEM;
        memmove(allocations + position + 1, allocations + position,
                (n - position) * sizeof(Allocation));
        memmove(names + position + 1, names + position, (n - position) * sizeof(char *));
        allocations[position] = (Allocation){ .provider = *provider };
        names[position] = copy;
        claim->n_allocations++;
        return 0;
}

/* Keeps the allocations sorted by provider: finds the position of the provider, or inserts the
 * provider there. */
int claim_add(Claim *claim, const Uuid *provider, const char *provider_name, const char *suffix,
              const char *resource_class, uint64_t amount)
{
        size_t position = 0;
        int order = 1, r;

        for (; position < claim->n_allocations; position++) {
                order = uuid_order(&claim->allocations[position].provider, provider);
                if (order >= 0)
                        break;
        }
        if (order != 0) {
                r = insert_allocation(claim, position, provider, provider_name);
                if (r < 0)
                        return r;
        }
        r = resources_add(&claim->allocations[position].resources, resource_class, amount);
        if (r < 0)
                return r;
        return request_mappings_add(&claim->mappings, suffix, provider);
}

/* Counts the copy only after all of its texts were allocated, so a failure leaves the claim
 * unchanged. */
int claim_add_device(Claim *claim, const ClaimDevice *device)
{
        ClaimDevice copy = { .provider = device->provider, .mdev = device->mdev };

        if (array_grow(&claim->devices, sizeof(ClaimDevice), claim->n_devices,
                       &claim->n_devices_allocated) < 0)
                return -ENOMEM;
        copy.suffix = strdup(device->suffix);
        copy.name = strdup(device->name);
        copy.address = strdup(device->address);
        copy.mdev_type = strdup(device->mdev_type);
        copy.identity = strdup(device->identity ? device->identity : "");
        if (!copy.suffix || !copy.name || !copy.address || !copy.mdev_type || !copy.identity) {
                device_done(&copy);
                return -ENOMEM;
        }
        claim->devices[claim->n_devices++] = copy;
        return 0;
}

/* Skips mediated devices, which can have the address of their card. */
bool claim_has_pci(const Claim *claim, const char *address)
{
        for (size_t i = 0; i < claim->n_devices; i++)
                if (uuid_empty(&claim->devices[i].mdev) &&
                    strcmp(claim->devices[i].address, address) == 0)
                        return true;
        return false;
}

bool claim_has_mdev(const Claim *claim, const Uuid *mdev)
{
        for (size_t i = 0; i < claim->n_devices; i++)
                if (uuid_equal(&claim->devices[i].mdev, mdev))
                        return true;
        return false;
}

bool claim_is_of_guest_alone(const Claim *claim, bool with_placement)
{
        return strcmp(claim->consumer_type, CLAIM_TYPE_GUEST) == 0 &&
               (claim->write_state != CLAIM_WRITE_NONE || (!claim->was_read && !with_placement));
}

uint64_t claim_sum(const Claim *claim, const char *resource_class)
{
        uint64_t sum = 0;

        for (size_t i = 0; i < claim->n_allocations; i++)
                if (u64_add_overflow(
                            sum, resources_get(&claim->allocations[i].resources, resource_class),
                            &sum))
                        return UINT64_MAX;
        return sum;
}

/* Compares providers alone, and not the class of a device: a device determines the provider of each
 * class that the claim has from its provider. */
bool claim_binds(const Claim *claim, const char *resource_class)
{
        for (size_t i = 0; i < claim->n_allocations; i++)
                for (size_t j = 0; j < claim->n_devices; j++)
                        if (uuid_equal(&claim->devices[j].provider,
                                       &claim->allocations[i].provider) &&
                            resources_get(&claim->allocations[i].resources, resource_class) > 0)
                                return true;
        return claim->layout.n_cells > 0 && claim_sum(claim, resource_class) > 0;
}

const char *claim_cut_text(const char *text, char cut[static CLAIM_TEXT_MAX + 1])
{
        snprintf(cut, CLAIM_TEXT_MAX + 1, "%s", text ? text : "");
        text_trim_cut(cut);
        return cut;
}

void claim_move_done(ClaimMove *move)
{
        free(move->to_type);
        *move = (ClaimMove){ 0 };
}

int claim_list_add(ClaimList *list, Claim *claim)
{
        if (array_grow(&list->claims, sizeof(Claim *), list->n_claims, &list->n_allocated) < 0)
                return -ENOMEM;
        list->claims[list->n_claims++] = claim;
        return 0;
}

void claim_list_done(ClaimList *list)
{
        for (size_t i = 0; i < list->n_claims; i++)
                claim_free(list->claims[i]);
        free(list->claims);
        *list = (ClaimList){ 0 };
}

int event_list_add(EventList *list, Event **ret)
{
        if (array_grow(&list->events, sizeof(Event), list->n_events, &list->n_allocated) < 0)
                return -ENOMEM;
        *ret = &list->events[list->n_events++];
        **ret = (Event){ 0 };
        return 0;
}

static void event_done(Event *event)
{
        free(event->kind);
        free(event->author);
        free(event->consumer);
        free(event->guest);
        free(event->allocations);
        free(event->devices);
        free(event->reason);
}

void event_list_done(EventList *list)
{
        for (size_t i = 0; i < list->n_events; i++)
                event_done(&list->events[i]);
        free(list->events);
        *list = (EventList){ 0 };
}
