/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/audit.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/array.h"

const char *audit_type_to_text(AuditType type)
{
        static const char *const names[_AUDIT_TYPE_MAX] = {
                [AUDIT_LEAKED] = "leaked",       [AUDIT_MIGRATION] = "migration",
                [AUDIT_UNTOLD] = "untold",       [AUDIT_AMOUNT] = "amount",
                [AUDIT_PROVIDER] = "provider",   [AUDIT_UNCLAIMED] = "unclaimed",
                [AUDIT_EVACUATED] = "evacuated", [AUDIT_ELSEWHERE] = "elsewhere",
                [AUDIT_WITHDRAWN] = "withdrawn",
        };

        return names[type];
}

const char *audit_remedy_to_text(AuditRemedy remedy)
{
        static const char *const names[_AUDIT_REMEDY_MAX] = {
                [AUDIT_REMEDY_NONE] = "none",
                [AUDIT_REMEDY_RELEASE_SHARE] = "release-share",
                [AUDIT_REMEDY_WRITE_CLAIM] = "write-claim",
                [AUDIT_REMEDY_ADOPT] = "adopt",
                [AUDIT_REMEDY_END_CLAIM] = "end-claim",
        };

        return names[remedy];
}

void audit_done(Audit *audit)
{
        for (size_t i = 0; i < audit->n_items; i++)
                free(audit->items[i].text);
        free(audit->items);
        *audit = (Audit){ 0 };
}

void audit_memory_done(AuditMemory *memory)
{
        free(memory->items);
        *memory = (AuditMemory){ 0 };
}

_printf_(6, 7) static int add(Audit *audit, AuditType type, AuditRemedy remedy,
                              const Uuid *consumer, int64_t claim_id, const char *format, ...)
{
        char *text = NULL;
        va_list ap;
        int r;

        if (array_grow(&audit->items, sizeof(AuditFinding), audit->n_items, &audit->n_allocated) <
            0)
                return -ENOMEM;
        va_start(ap, format);
        r = vasprintf(&text, format, ap);
        va_end(ap);
        if (r < 0)
                return -ENOMEM;
        audit->items[audit->n_items++] = (AuditFinding){
                .type = type,
                .remedy = remedy,
                .consumer = *consumer,
                .claim_id = claim_id,
                .text = text,
        };
        return 0;
}

/* The share of this host */

static const Provider *own_provider(const AuditInput *input, const Uuid *uuid)
{
        const Provider *provider = provider_tree_find(input->tree, uuid);

        return provider && provider_tree_in_subtree(input->tree, provider, &input->root) ? provider
                                                                                         : NULL;
}

bool audit_holds_here(const AuditInput *input, const Consumer *consumer)
{
        for (size_t i = 0; i < consumer->n_allocations; i++)
                if (own_provider(input, &consumer->allocations[i].provider))
                        return true;
        return false;
}

static int write_share(const AuditInput *input, const Consumer *consumer, FILE *file)
{
        const char *separator = "";

        for (size_t i = 0; i < consumer->n_allocations; i++) {
                const Allocation *held = &consumer->allocations[i];
                const Provider *provider = own_provider(input, &held->provider);
                _cleanup_free_ char *amounts = NULL;

                if (!provider)
                        continue;
                amounts = resources_format(&held->resources);
                if (!amounts)
                        return -ENOMEM;
                fprintf(file, "%s%s of %s", separator, amounts, provider->name);
                separator = "; ";
        }
        return 0;
}

/* "VCPU=1 of host1; VGPU=2 of gpu1": all that it holds here. NULL when out of memory. */
static char *format_share(const AuditInput *input, const Consumer *consumer)
{
        char *text = NULL;
        size_t size;
        FILE *file = open_memstream(&text, &size);
        int r = file ? write_share(input, consumer, file) : -ENOMEM;

        if (file && fclose(file) == 0 && r == 0)
                return text;
        free(text);
        return NULL;
}

/* Is it a class that a guest tells by itself? */
static bool is_told(const HostFacts *facts, const char *resource_class)
{
        static const char *const always[] = { "VCPU", "PCPU", "MEMORY_MB" };

        for (size_t i = 0; i < ARRAY_SIZE(always); i++)
                if (strcmp(always[i], resource_class) == 0)
                        return true;
        for (size_t i = 0; i < facts->n_devices; i++)
                if (strcmp(facts->devices[i].resource_class, resource_class) == 0)
                        return true;
        for (size_t i = 0; i < facts->n_pci; i++)
                if (strcmp(facts->pci[i].resource_class, resource_class) == 0)
                        return true;
        return false;
}

static bool is_compared(const AuditInput *input, const Claim *claim, const char *resource_class)
{
        return is_told(input->facts, resource_class) || claim_sum(claim, resource_class) > 0;
}

/* Who is who */

static const Claim *find_claim(const AuditInput *input, const Uuid *consumer, bool *ret_resized)
{
        const Claim *found = NULL;

        *ret_resized = false;
        for (size_t i = 0; i < input->claims->n_claims; i++) {
                const Claim *claim = input->claims->claims[i];

                if (!uuid_equal(&claim->consumer, consumer))
                        continue;
                *ret_resized = *ret_resized || found || claim->resize_target;
                found = claim;
        }
        return found;
}

/* Has a migration the claim of this guest? */
static bool is_moved(const AuditInput *input, const Uuid *guest)
{
        for (size_t i = 0; i < input->claims->n_claims; i++)
                if (uuid_equal(&input->claims->claims[i]->guest, guest))
                        return true;
        return false;
}

/* Is it a migration that is under way, or the guest of one? */
static bool is_moving(const AuditInput *input, const Uuid *consumer)
{
        for (size_t i = 0; i < input->n_aliases; i++)
                if (uuid_equal(&input->aliases[i].consumer, consumer) ||
                    uuid_equal(&input->aliases[i].guest, consumer))
                        return true;
        return false;
}

static bool is_young(const AuditInput *input, uint64_t now_usec, uint64_t since_usec)
{
        return now_usec < since_usec || now_usec - since_usec < input->grace_usec;
}

/* Consumers without claim and guest */

static int order_seen(const void *a, const void *b)
{
        return uuid_order(&((const struct AuditSeen *)a)->consumer,
                          &((const struct AuditSeen *)b)->consumer);
}

/* Who writes a consumer has something in mind with it: it is new again. */
static uint64_t seen_since(const AuditMemory *memory, const Consumer *consumer, uint64_t now)
{
        const struct AuditSeen key = { .consumer = consumer->uuid }, *found = NULL;

        if (memory->n_items > 0)
                found = bsearch(&key, memory->items, memory->n_items, sizeof(key), order_seen);
        return found && found->generation == consumer->generation ? found->since_usec : now;
}

static int look_at_stranger(const AuditInput *input, const Consumer *consumer,
                            const AuditMemory *memory, AuditMemory *next, Audit *ret)
{
        uint64_t since = seen_since(memory, consumer, input->boot_usec);
        bool migration = consumer->type && strcmp(consumer->type, "MIGRATION") == 0;
        _cleanup_free_ char *share = NULL;

        if (is_moving(input, &consumer->uuid)) {
                ret->n_in_flight++;
                return 0;
        }
        if (array_grow(&next->items, sizeof(struct AuditSeen), next->n_items, &next->n_allocated) <
            0)
                return -ENOMEM;
        /* consumers are sorted, so this is, too */
        next->items[next->n_items++] = (struct AuditSeen){ .consumer = consumer->uuid,
                                                           .generation = consumer->generation,
                                                           .since_usec = since };
        if (is_young(input, input->boot_usec, since)) {
                ret->n_in_flight++;
                return 0;
        }
        share = format_share(input, consumer);
        if (!share)
                return -ENOMEM;
        return add(ret, migration ? AUDIT_MIGRATION : AUDIT_LEAKED, AUDIT_REMEDY_RELEASE_SHARE,
                   &consumer->uuid, 0, "%s %s holds %.500s, and has neither claim nor guest",
                   migration ? "migration" : "consumer", consumer->uuid.text, share);
}

/* A claim beside what its consumer holds */

static uint64_t sum_here(const AuditInput *input, const Consumer *consumer,
                         const char *resource_class)
{
        uint64_t sum = 0;

        for (size_t i = 0; i < consumer->n_allocations; i++)
                if (own_provider(input, &consumer->allocations[i].provider))
                        sum += resources_get(&consumer->allocations[i].resources, resource_class);
        return sum;
}

static uint64_t claimed_of(const Claim *claim, const Uuid *provider, const char *resource_class)
{
        for (size_t i = 0; i < claim->n_allocations; i++)
                if (uuid_equal(&claim->allocations[i].provider, provider))
                        return resources_get(&claim->allocations[i].resources, resource_class);
        return 0;
}

/* The first class of a list that the two have in different amounts; NULL when there is none. */
static const char *differing_sum(const AuditInput *input, const Claim *claim,
                                 const Consumer *consumer, const Resources *classes)
{
        for (size_t i = 0; i < classes->n_items; i++) {
                const char *name = classes->items[i].resource_class;

                if (is_compared(input, claim, name) &&
                    claim_sum(claim, name) != sum_here(input, consumer, name))
                        return name;
        }
        return NULL;
}

static const char *find_differing_sum(const AuditInput *input, const Claim *claim,
                                      const Consumer *consumer)
{
        const char *name = NULL;

        for (size_t i = 0; !name && i < claim->n_allocations; i++)
                name = differing_sum(input, claim, consumer, &claim->allocations[i].resources);
        for (size_t i = 0; !name && i < consumer->n_allocations; i++)
                if (own_provider(input, &consumer->allocations[i].provider))
                        name = differing_sum(input, claim, consumer,
                                             &consumer->allocations[i].resources);
        return name;
}

/* The sums are equal: then something is more on some provider of the consumer if anywhere. */
static const char *find_differing_provider(const AuditInput *input, const Claim *claim,
                                           const Consumer *consumer, const Provider **ret)
{
        for (size_t i = 0; i < consumer->n_allocations; i++) {
                const Allocation *held = &consumer->allocations[i];
                const Provider *provider = own_provider(input, &held->provider);

                for (size_t j = 0; provider && j < held->resources.n_items; j++) {
                        const ResourceAmount *item = &held->resources.items[j];

                        if (!is_compared(input, claim, item->resource_class) ||
                            claimed_of(claim, &held->provider, item->resource_class) ==
                                    item->amount)
                                continue;
                        *ret = provider;
                        return item->resource_class;
                }
        }
        return NULL;
}

static int look_at_withdrawn(const AuditInput *input, const Claim *claim, const Consumer *consumer,
                             Audit *ret)
{
        for (size_t i = 0; i < consumer->n_allocations; i++) {
                const Allocation *held = &consumer->allocations[i];
                const Provider *provider = own_provider(input, &held->provider);

                for (size_t j = 0; provider && j < held->resources.n_items; j++) {
                        const char *name = held->resources.items[j].resource_class;
                        const Inventory *inventory = provider_find_inventory(provider, name);

                        if (inventory && inventory_capacity(inventory) > 0)
                                continue;
                        return add(ret, AUDIT_WITHDRAWN, AUDIT_REMEDY_NONE, &consumer->uuid,
                                   claim->id,
                                   "claim %" PRId64 " of %s holds %s of %.60s, which gives nothing "
                                   "any more",
                                   claim->id, consumer->uuid.text, name, provider->name);
                }
        }
        return 0;
}

static int compare(const AuditInput *input, const Claim *claim, const Consumer *consumer,
                   Audit *ret)
{
        const char *name = find_differing_sum(input, claim, consumer);
        const Provider *provider = NULL;

        if (name)
                return add(ret, AUDIT_AMOUNT, AUDIT_REMEDY_WRITE_CLAIM, &claim->consumer, claim->id,
                           "claim %" PRId64 " of %s has %" PRIu64 " %s, Placement %" PRIu64,
                           claim->id, claim->consumer.text, claim_sum(claim, name), name,
                           sum_here(input, consumer, name));
        name = find_differing_provider(input, claim, consumer, &provider);
        if (name)
                return add(ret, AUDIT_PROVIDER, AUDIT_REMEDY_WRITE_CLAIM, &claim->consumer,
                           claim->id,
                           "claim %" PRId64 " of %s has its %s elsewhere than on %.60s, where "
                           "Placement has it",
                           claim->id, claim->consumer.text, name, provider->name);
        return look_at_withdrawn(input, claim, consumer, ret);
}

/* The consumer holds nothing here. */
static int look_at_untold(const AuditInput *input, const Claim *claim, const Consumer *consumer,
                          Audit *ret)
{
        const HostDomain *domain = host_facts_find_domain(input->facts, &claim->consumer);

        if (!consumer && is_young(input, input->now_usec, claim->created_usec)) {
                ret->n_in_flight++;
                return 0;
        }
        if (!consumer)
                return add(ret, AUDIT_UNTOLD, AUDIT_REMEDY_WRITE_CLAIM, &claim->consumer, claim->id,
                           "claim %" PRId64 " of %s has no allocations in Placement", claim->id,
                           claim->consumer.text);
        if (domain && domain->running)
                return add(ret, AUDIT_ELSEWHERE, AUDIT_REMEDY_NONE, &claim->consumer, claim->id,
                           "guest %.60s runs here (claim %" PRId64
                           "), and all its allocations are on other hosts",
                           domain->name, claim->id);
        return add(ret, AUDIT_EVACUATED, AUDIT_REMEDY_END_CLAIM, &claim->consumer, claim->id,
                   "claim %" PRId64 " of %s, which does not run here and has all its allocations "
                   "on other hosts",
                   claim->id, claim->consumer.text);
}

static int look_at_claim(const AuditInput *input, const Claim *claim, Audit *ret)
{
        const Consumer *consumer = allocations_find(input->consumers, &claim->consumer);
        bool resized;

        (void)find_claim(input, &claim->consumer, &resized);
        if (resized || claim->state != CLAIM_STATE_CONFIRMED ||
            claim->standing == CLAIM_STANDING_PENDING || claim->standing == CLAIM_STANDING_OWED ||
            claim->standing == CLAIM_STANDING_SENT || is_moving(input, &claim->consumer)) {
                ret->n_in_flight++;
                return 0;
        }
        return consumer && audit_holds_here(input, consumer)
                       ? compare(input, claim, consumer, ret)
                       : look_at_untold(input, claim, consumer, ret);
}

static int look_at_consumer(const AuditInput *input, const Consumer *consumer,
                            const AuditMemory *memory, AuditMemory *next, Audit *ret)
{
        bool resized;

        if (!audit_holds_here(input, consumer))
                return 0;
        ret->n_consumers++;
        if (find_claim(input, &consumer->uuid, &resized) ||
            host_facts_find_domain(input->facts, &consumer->uuid))
                return 0;
        return look_at_stranger(input, consumer, memory, next, ret);
}

static int look_at_domain(const AuditInput *input, const HostDomain *domain, Audit *ret)
{
        const Consumer *consumer = allocations_find(input->consumers, &domain->uuid);
        bool resized, told = consumer && audit_holds_here(input, consumer);

        if (find_claim(input, &domain->uuid, &resized) || is_moved(input, &domain->uuid) ||
            (input->started_only && !domain->running))
                return 0;
        return add(ret, AUDIT_UNCLAIMED, AUDIT_REMEDY_ADOPT, &domain->uuid, 0,
                   "guest %.60s has no claim%s", domain->name,
                   told ? "" : ", and holds nothing in Placement");
}

static int look_at_all(const AuditInput *input, const AuditMemory *memory, AuditMemory *next,
                       Audit *ret)
{
        for (size_t i = 0; i < input->consumers->n_consumers; i++)
                if (look_at_consumer(input, input->consumers->consumers[i], memory, next, ret) < 0)
                        return -ENOMEM;
        for (size_t i = 0; i < input->claims->n_claims; i++)
                if (look_at_claim(input, input->claims->claims[i], ret) < 0)
                        return -ENOMEM;
        for (size_t i = 0; i < input->facts->n_domains; i++)
                if (look_at_domain(input, &input->facts->domains[i], ret) < 0)
                        return -ENOMEM;
        return 0;
}

int audit_make(const AuditInput *input, AuditMemory *memory, Audit *ret)
{
        AuditMemory next = { 0 };

        if (look_at_all(input, memory, &next, ret) < 0) {
                audit_memory_done(&next);
                audit_done(ret);
                return -ENOMEM;
        }
        audit_memory_done(memory);
        *memory = next;
        return 0;
}

/* What is to be written */

/* Takes this tree's part away; with a claim only what it is compared by. */
static int drop_share(const AuditInput *input, const Claim *claim, Consumer *consumer)
{
        for (size_t i = consumer->n_allocations; i > 0; i--) {
                const Uuid provider = consumer->allocations[i - 1].provider;
                _cleanup_(resources_done) Resources held = RESOURCES_INIT;

                if (!own_provider(input, &provider))
                        continue;
                if (resources_copy(&held, &consumer->allocations[i - 1].resources) < 0)
                        return -ENOMEM;
                for (size_t j = 0; j < held.n_items; j++)
                        if ((!claim || is_compared(input, claim, held.items[j].resource_class)) &&
                            consumer_set(consumer, &provider, held.items[j].resource_class, 0) < 0)
                                return -ENOMEM;
        }
        return 0;
}

static int add_claimed(const Claim *claim, Consumer *consumer)
{
        for (size_t i = 0; i < claim->n_allocations; i++) {
                const Allocation *held = &claim->allocations[i];

                for (size_t j = 0; j < held->resources.n_items; j++)
                        if (consumer_set(consumer, &held->provider,
                                         held->resources.items[j].resource_class,
                                         held->resources.items[j].amount) < 0)
                                return -ENOMEM;
        }
        return 0;
}

int audit_edit(const AuditInput *input, AuditRemedy remedy, const Consumer *consumer,
               const Claim *claim, Consumer **ret)
{
        _cleanup_(consumer_freep) Consumer *edited = NULL;

        if (remedy == AUDIT_REMEDY_WRITE_CLAIM && !claim)
                return 1;
        if (consumer_copy(&edited, consumer) < 0 ||
            drop_share(input, remedy == AUDIT_REMEDY_WRITE_CLAIM ? claim : NULL, edited) < 0 ||
            (remedy == AUDIT_REMEDY_WRITE_CLAIM && add_claimed(claim, edited) < 0))
                return -ENOMEM;
        if (consumer_holds_equal(edited, consumer))
                return 1;
        *ret = TAKE_PTR(edited);
        return 0;
}
