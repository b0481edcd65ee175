/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/audit/audit-picture.h"

#include <inttypes.h>
#include <string.h>

#include "claims/fit/guest-share.h"

/* Project and user have 255 bytes at most. */
#define OWNER_SIZE 600

/* The share of this host */

const Provider *audit_own_provider(const AuditInput *input, const Uuid *uuid)
{
        const Provider *provider = provider_tree_find(input->tree, uuid);

        return provider && provider_tree_in_subtree(input->tree, provider, &input->root) ? provider
                                                                                         : NULL;
}

bool audit_holds_here(const AuditInput *input, const Consumer *consumer)
{
        for (size_t i = 0; i < consumer->n_allocations; i++)
                if (audit_own_provider(input, &consumer->allocations[i].provider))
                        return true;
        return false;
}

uint64_t audit_sum_here(const AuditInput *input, const Consumer *consumer,
                        const char *resource_class)
{
        uint64_t sum = 0;

        for (size_t i = 0; i < consumer->n_allocations; i++)
                if (audit_own_provider(input, &consumer->allocations[i].provider))
                        sum += resources_get(&consumer->allocations[i].resources, resource_class);
        return sum;
}

/* Returns true for a class of which a guest shows its amount. */
static bool is_shown(const HostFacts *facts, const char *resource_class)
{
        return guest_share_is_shown(resource_class) || host_facts_has_class(facts, resource_class);
}

bool audit_is_compared(const AuditInput *input, const Claim *claim, const char *resource_class)
{
        return is_shown(input->facts, resource_class) || claim_sum(claim, resource_class) > 0;
}

/* A claim beside what its consumer holds */

static uint64_t claimed_of(const Claim *claim, const Uuid *provider, const char *resource_class)
{
        for (size_t i = 0; i < claim->n_allocations; i++)
                if (uuid_equal(&claim->allocations[i].provider, provider))
                        return resources_get(&claim->allocations[i].resources, resource_class);
        return 0;
}

/* Notes the first class of a list of which the consumer has less, and the first of which it has
 * more. */
static void find_differing_sums(const AuditInput *input, const Claim *claim,
                                const Consumer *consumer, const Resources *classes,
                                const char **lower, const char **larger)
{
        for (size_t i = 0; i < classes->n_items; i++) {
                const char *name = classes->items[i].resource_class;
                uint64_t claimed = claim_sum(claim, name),
                         held = audit_sum_here(input, consumer, name);

                if (!audit_is_compared(input, claim, name))
                        continue;
                if (!*lower && held < claimed)
                        *lower = name;
                if (!*larger && held > claimed)
                        *larger = name;
        }
}

const char *audit_find_differing_sum(const AuditInput *input, const Claim *claim,
                                     const Consumer *consumer, const char **ret_larger)
{
        const char *lower = NULL;

        *ret_larger = NULL;
        for (size_t i = 0; i < claim->n_allocations; i++)
                find_differing_sums(input, claim, consumer, &claim->allocations[i].resources,
                                    &lower, ret_larger);
        for (size_t i = 0; i < consumer->n_allocations; i++)
                if (audit_own_provider(input, &consumer->allocations[i].provider))
                        find_differing_sums(input, claim, consumer,
                                            &consumer->allocations[i].resources, &lower,
                                            ret_larger);
        return lower;
}

/* The sums are equal: then something is more on some provider of the consumer if anywhere. */
const char *audit_find_differing_provider(const AuditInput *input, const Claim *claim,
                                          const Consumer *consumer, const Provider **ret)
{
        for (size_t i = 0; i < consumer->n_allocations; i++) {
                const Allocation *held = &consumer->allocations[i];
                const Provider *provider = audit_own_provider(input, &held->provider);

                for (size_t j = 0; provider && j < held->resources.n_items; j++) {
                        const ResourceAmount *item = &held->resources.items[j];

                        if (!audit_is_compared(input, claim, item->resource_class) ||
                            claimed_of(claim, &held->provider, item->resource_class) ==
                                    item->amount)
                                continue;
                        *ret = provider;
                        return item->resource_class;
                }
        }
        return NULL;
}

/* Finding */

static int order_keys(const void *a, const void *b)
{
        return uuid_order(&((const AuditKey *)a)->uuid, &((const AuditKey *)b)->uuid);
}

/* Claims of one consumer: the older one first. */
static int order_claims(const void *a, const void *b)
{
        const Claim *x = ((const AuditKey *)a)->of, *y = ((const AuditKey *)b)->of;
        int r = order_keys(a, b);

        return r != 0 ? r : x->id < y->id ? -1 : x->id > y->id;
}

static void put_in_order(AuditKeys *keys, int (*order)(const void *a, const void *b))
{
        if (keys->n_items > 1)
                qsort(keys->items, keys->n_items, sizeof(AuditKey), order);
}

static const AuditKey *find(const AuditKeys *keys, const Uuid *uuid)
{
        const AuditKey key = { .uuid = *uuid };

        return keys->n_items > 0
                       ? bsearch(&key, keys->items, keys->n_items, sizeof(key), order_keys)
                       : NULL;
}

const Claim *audit_picture_claim(const AuditPicture *picture, const Uuid *consumer)
{
        const AuditKey *found = find(&picture->claims, consumer);

        if (found && found > picture->claims.items && uuid_equal(&found[-1].uuid, consumer))
                found--;
        return found ? found->of : NULL;
}

const Claim *audit_picture_second_claim(const AuditPicture *picture, const Uuid *consumer)
{
        const AuditKeys *claims = &picture->claims;
        const AuditKey *found = find(claims, consumer), *end = claims->items + claims->n_items;

        if (found && found > claims->items && uuid_equal(&found[-1].uuid, consumer))
                return found->of;
        return found && found + 1 < end && uuid_equal(&found[1].uuid, consumer) ? found[1].of
                                                                                : NULL;
}

const HostDomain *audit_picture_domain(const AuditPicture *picture, const Uuid *uuid)
{
        const AuditKey *found = find(&picture->domains, uuid);

        return found ? found->of : NULL;
}

const HostDomain *audit_picture_guest(const AuditPicture *picture, const Claim *claim)
{
        return audit_picture_domain(picture,
                                    uuid_empty(&claim->guest) ? &claim->consumer : &claim->guest);
}

bool audit_picture_is_handed(const AuditPicture *picture, const Uuid *guest)
{
        return find(&picture->handed, guest);
}

static int add_keys(const AuditInput *input, AuditPicture *picture)
{
        size_t n_claims = input->claims->n_claims, n_domains = input->facts->n_domains;

        picture->claims.items = calloc(n_claims + 1, sizeof(AuditKey));
        picture->handed.items = calloc(n_claims + 1, sizeof(AuditKey));
        picture->domains.items = calloc(n_domains + 1, sizeof(AuditKey));
        if (!picture->claims.items || !picture->handed.items || !picture->domains.items)
                return -ENOMEM;
        for (size_t i = 0; i < n_claims; i++) {
                const Claim *claim = input->claims->claims[i];

                picture->claims.items[picture->claims.n_items++] =
                        (AuditKey){ claim->consumer, claim };
                if (!uuid_empty(&claim->guest))
                        picture->handed.items[picture->handed.n_items++] =
                                (AuditKey){ claim->guest, claim };
        }
        for (size_t i = 0; i < n_domains; i++)
                picture->domains.items[picture->domains.n_items++] =
                        (AuditKey){ input->facts->domains[i].uuid, &input->facts->domains[i] };
        put_in_order(&picture->claims, order_claims);
        put_in_order(&picture->handed, order_keys);
        put_in_order(&picture->domains, order_keys);
        return 0;
}

/* Who may be on its way */

static void write_owner(const Consumer *consumer, char text[static OWNER_SIZE])
{
        snprintf(text, OWNER_SIZE, "%s %s", consumer->project_id ? consumer->project_id : "",
                 consumer->user_id ? consumer->user_id : "");
}

static void write_size(const Consumer *owner, uint64_t cpus, uint64_t memory_mb,
                       char text[static OWNER_SIZE])
{
        size_t n;

        write_owner(owner, text);
        n = strlen(text);
        snprintf(text + n, OWNER_SIZE - n, " %" PRIu64 " %" PRIu64, cpus, memory_mb);
}

static void write_claim_size(const Consumer *owner, const Claim *claim,
                             char text[static OWNER_SIZE])
{
        write_size(owner, claim_sum(claim, "VCPU") + claim_sum(claim, "PCPU"),
                   claim_sum(claim, "MEMORY_MB"), text);
}

static void write_size_here(const AuditPicture *picture, const Consumer *consumer,
                            char text[static OWNER_SIZE])
{
        write_size(consumer,
                   audit_sum_here(picture->input, consumer, "VCPU") +
                           audit_sum_here(picture->input, consumer, "PCPU"),
                   audit_sum_here(picture->input, consumer, "MEMORY_MB"), text);
}

bool audit_picture_is_gone(const AuditPicture *picture, const Consumer *consumer)
{
        return consumer && consumer->n_allocations > 0 &&
               !audit_holds_here(picture->input, consumer);
}

static bool is_different(const AuditPicture *picture, const Claim *claim, const Consumer *consumer)
{
        const Provider *provider;
        const char *larger;

        return audit_find_differing_sum(picture->input, claim, consumer, &larger) || larger ||
               audit_find_differing_provider(picture->input, claim, consumer, &provider);
}

static int add_guest(AuditPicture *picture, const Consumer *consumer, const Claim *claim,
                     const HostDomain *domain)
{
        char text[OWNER_SIZE];

        if (audit_picture_is_gone(picture, consumer)) {
                write_owner(consumer, text);
                return string_set_add(&picture->gone, text);
        }
        if (!consumer || !claim || !is_different(picture, claim, consumer))
                return 0;
        write_claim_size(consumer, claim, text);
        if (string_set_add(&picture->resized, text) < 0)
                return -ENOMEM;
        if (!domain)
                return 0;
        write_size(consumer, domain->vcpus, domain->memory_mb, text);
        return string_set_add(&picture->resized, text);
}

/* A guest that is here in another size by now: its migration may hold what the ended claim had. */
static int add_former_size(AuditPicture *picture, const Claim *ended)
{
        const Consumer *consumer = allocations_find(picture->input->consumers, &ended->consumer);
        const HostDomain *domain = audit_picture_domain(picture, &ended->consumer);
        char size[OWNER_SIZE], former[OWNER_SIZE];
        const Claim *claim = audit_picture_claim(picture, &ended->consumer);

        if (!consumer || (!claim && !domain))
                return 0;
        if (claim)
                write_claim_size(consumer, claim, size);
        else
                write_size(consumer, domain->vcpus, domain->memory_mb, size);
        write_claim_size(consumer, ended, former);
        return strcmp(size, former) != 0 ? string_set_add(&picture->resized, former) : 0;
}

static int add_guests(AuditPicture *picture)
{
        const AuditInput *input = picture->input;

        for (size_t i = 0; i < input->claims->n_claims; i++) {
                const Claim *claim = input->claims->claims[i];

                if (uuid_empty(&claim->guest) &&
                    add_guest(picture, allocations_find(input->consumers, &claim->consumer), claim,
                              audit_picture_domain(picture, &claim->consumer)) < 0)
                        return -ENOMEM;
        }
        for (size_t i = 0; i < input->facts->n_domains; i++) {
                const HostDomain *domain = &input->facts->domains[i];

                if (!audit_picture_claim(picture, &domain->uuid) &&
                    !audit_picture_is_handed(picture, &domain->uuid) &&
                    add_guest(picture, allocations_find(input->consumers, &domain->uuid), NULL,
                              domain) < 0)
                        return -ENOMEM;
        }
        for (size_t i = 0; input->ended && i < input->ended->n_claims; i++)
                if (add_former_size(picture, input->ended->claims[i]) < 0)
                        return -ENOMEM;
        return 0;
}

/* Has it no guest, and says not that it is something else? One that has a guest's claim is that
 * guest's. */
static bool is_loose(const AuditPicture *picture, const Consumer *consumer)
{
        const Claim *claim = audit_picture_claim(picture, &consumer->uuid);
        const char *type = consumer->type ? consumer->type : "unknown";

        return (strcmp(type, "unknown") == 0 || strcmp(type, "MIGRATION") == 0) &&
               !audit_picture_domain(picture, &consumer->uuid) &&
               (!claim || uuid_empty(&claim->guest)) &&
               (audit_sum_here(picture->input, consumer, "VCPU") > 0 ||
                audit_sum_here(picture->input, consumer, "PCPU") > 0 ||
                audit_sum_here(picture->input, consumer, "MEMORY_MB") > 0);
}

static bool is_migration(const Consumer *consumer)
{
        return consumer->type && strcmp(consumer->type, "MIGRATION") == 0;
}

static int add_migrations(AuditPicture *picture)
{
        const Allocations *consumers = picture->input->consumers;
        char text[OWNER_SIZE];

        for (size_t i = 0; i < consumers->n_consumers; i++) {
                const Consumer *consumer = consumers->consumers[i];

                if (!is_migration(consumer) || !audit_holds_here(picture->input, consumer))
                        continue;
                write_owner(consumer, text);
                if (string_set_add(&picture->migrations, text) < 0)
                        return -ENOMEM;
        }
        return 0;
}

bool audit_picture_has_migration(const AuditPicture *picture, const Consumer *consumer)
{
        char text[OWNER_SIZE];

        if (is_migration(consumer))
                return false;
        write_owner(consumer, text);
        return string_set_contains(&picture->migrations, text);
}

static int add_loose(AuditPicture *picture)
{
        const Allocations *consumers = picture->input->consumers;
        char text[OWNER_SIZE];

        for (size_t i = 0; i < consumers->n_consumers; i++) {
                const Consumer *consumer = consumers->consumers[i];

                if (!is_loose(picture, consumer))
                        continue;
                write_owner(consumer, text);
                if (string_set_add(&picture->loose, text) < 0)
                        return -ENOMEM;
                write_size_here(picture, consumer, text);
                if (string_set_add(&picture->loose_sizes, text) < 0)
                        return -ENOMEM;
        }
        return 0;
}

bool audit_picture_may_be_migration(const AuditPicture *picture, const Consumer *consumer)
{
        char text[OWNER_SIZE];

        if (!is_loose(picture, consumer))
                return false;
        write_owner(consumer, text);
        if (string_set_contains(&picture->gone, text))
                return true;
        write_size_here(picture, consumer, text);
        return string_set_contains(&picture->resized, text);
}

bool audit_picture_may_be_moving(const AuditPicture *picture, const Consumer *consumer,
                                 const Claim *size)
{
        const HostDomain *domain;
        char text[OWNER_SIZE];

        if (!size) {
                write_owner(consumer, text);
                return string_set_contains(&picture->loose, text);
        }
        write_claim_size(consumer, size, text);
        if (string_set_contains(&picture->loose_sizes, text))
                return true;
        domain = audit_picture_guest(picture, size);
        if (!domain)
                return false;
        write_size(consumer, domain->vcpus, domain->memory_mb, text);
        return string_set_contains(&picture->loose_sizes, text);
}

int audit_picture_make(const AuditInput *input, AuditPicture *ret)
{
        ret->input = input;
        if (add_keys(input, ret) < 0 || add_guests(ret) < 0 || add_loose(ret) < 0 ||
            add_migrations(ret) < 0)
                return -ENOMEM;
        return 0;
}

void audit_picture_done(AuditPicture *picture)
{
        free(picture->claims.items);
        free(picture->handed.items);
        free(picture->domains.items);
        string_set_done(&picture->gone);
        string_set_done(&picture->resized);
        string_set_done(&picture->loose);
        string_set_done(&picture->loose_sizes);
        string_set_done(&picture->migrations);
        *picture = (AuditPicture){ 0 };
}
