/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Compares the amounts of a consumer with its claim, and makes and uses the evidence about moves
 * and the states of servers. Owners and sizes are kept as texts in sets, so that a look-up for each
 * consumer needs no loop over all guests. The text of an owner is "PROJECT USER", that of a size is
 * "PROJECT USER CPUS MEMORY_MB".
 *
 * Four of the sets form two sides. Guests that can be moving are in "gone" and "resized". Consumers
 * that can be migrations are in "loose" and "loose_sizes". A consumer of one side is looked up in
 * the sets of the other side: audit_may_be_moving() looks up guests, find_server() possible
 * migrations. */

#include "agent/audit/evidence.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "claims/fit/guest-share.h"

/* Size of a key. Project and user have at most 255 characters each. A key with many characters of
 * several bytes is cut, so it can be equal to that of another owner. */
#define OWNER_SIZE 600

/* Placement's times are whole seconds, and both ends of a difference are rounded down. */
#define PLACEMENT_SLACK_USEC (2 * USEC_PER_SEC)

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

static bool is_pool(const AuditInput *input, const Uuid *provider)
{
        for (size_t i = 0; i < input->n_pools; i++)
                if (uuid_equal(&input->pools[i], provider))
                        return true;
        return false;
}

bool audit_names_no_other(const AuditInput *input, const Consumer *consumer)
{
        for (size_t i = 0; i < consumer->n_allocations; i++)
                if (!audit_own_provider(input, &consumer->allocations[i].provider) &&
                    !is_pool(input, &consumer->allocations[i].provider))
                        return false;
        return true;
}

/* Returns true also if the consumer has allocations, and all of them are from sharing providers of
 * this host. */
static bool is_here(const AuditInput *input, const Consumer *consumer)
{
        return audit_holds_here(input, consumer) ||
               (consumer->n_allocations > 0 && audit_names_no_other(input, consumer));
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

GuestSize audit_size_here(const AuditInput *input, const Consumer *consumer)
{
        return (GuestSize){ .cpus = audit_sum_here(input, consumer, "VCPU") +
                                    audit_sum_here(input, consumer, "PCPU"),
                            .memory_mb = audit_sum_here(input, consumer, "MEMORY_MB") };
}

bool audit_explains(const Claim *claim)
{
        return claim && (claim->request[0] || claim->state == CLAIM_STATE_CONFIRMED);
}

/* A class is compared if a guest can show its amount, or if a device of the host counts as the
 * class. Other classes are compared if the claim has some of the class. */
bool audit_is_compared(const AuditInput *input, const Claim *claim, const char *resource_class)
{
        return guest_share_is_shown(resource_class) ||
               host_facts_has_class(input->facts, resource_class) ||
               claim_sum(claim, resource_class) > 0;
}

/* Differences between a claim and its consumer */

/* Returns the claim's amount of a class from a provider. */
static uint64_t claimed_of(const Claim *claim, const Uuid *provider, const char *resource_class)
{
        for (size_t i = 0; i < claim->n_allocations; i++)
                if (uuid_equal(&claim->allocations[i].provider, provider))
                        return resources_get(&claim->allocations[i].resources, resource_class);
        return 0;
}

/* Stores the first class of a list of which the consumer has less, and the first one of which it
 * has more. */
static void compare_sums(const AuditInput *input, const Claim *claim, const Consumer *consumer,
                         const Resources *classes, AuditDifference *ret)
{
        for (size_t i = 0; i < classes->n_items; i++) {
                const char *name = classes->items[i].resource_class;
                uint64_t claimed = claim_sum(claim, name),
                         held = audit_sum_here(input, consumer, name);

                if (!audit_is_compared(input, claim, name))
                        continue;
                if (!ret->lower && held < claimed)
                        ret->lower = name;
                if (!ret->larger && held > claimed)
                        ret->larger = name;
        }
}

/* Stores the first class that the consumer has from another provider. All sums are equal, so a
 * difference shows on some provider of the consumer. */
static void compare_providers(const AuditInput *input, const Claim *claim, const Consumer *consumer,
                              AuditDifference *ret)
{
        for (size_t i = 0; i < consumer->n_allocations && !ret->elsewhere; i++) {
                const Allocation *held = &consumer->allocations[i];
                const Provider *provider = audit_own_provider(input, &held->provider);

                for (size_t j = 0; provider && j < held->resources.n_items; j++) {
                        const ResourceAmount *item = &held->resources.items[j];

                        if (!audit_is_compared(input, claim, item->resource_class) ||
                            claimed_of(claim, &held->provider, item->resource_class) ==
                                    item->amount)
                                continue;
                        ret->elsewhere = item->resource_class;
                        ret->provider = provider;
                        break;
                }
        }
}

bool audit_differs(const AuditInput *input, const Claim *claim, const Consumer *consumer,
                   AuditDifference *ret)
{
        *ret = (AuditDifference){ 0 };
        /* Both lists of classes are compared, because each can lack a class of the other. */
        for (size_t i = 0; i < claim->n_allocations; i++)
                compare_sums(input, claim, consumer, &claim->allocations[i].resources, ret);
        for (size_t i = 0; i < consumer->n_allocations; i++)
                if (audit_own_provider(input, &consumer->allocations[i].provider))
                        compare_sums(input, claim, consumer, &consumer->allocations[i].resources,
                                     ret);
        if (!ret->lower && !ret->larger)
                compare_providers(input, claim, consumer, ret);
        return ret->lower || ret->larger || ret->elsewhere;
}

/* Guests that can be moving, and consumers that can be their migrations */

/* Writes the key: "PROJECT USER", and " CPUS MEMORY_MB" if there is a size. */
static void write_key(const Consumer *owner, const GuestSize *size, char text[static OWNER_SIZE])
{
        size_t n = (size_t)snprintf(text, OWNER_SIZE, "%s %s",
                                    owner->project_id ? owner->project_id : "",
                                    owner->user_id ? owner->user_id : "");

        if (size && n < OWNER_SIZE)
                snprintf(text + n, OWNER_SIZE - n, " %" PRIu64 " %" PRIu64, size->cpus,
                         size->memory_mb);
}

static int add_key(StringSet *keys, const Consumer *owner, const GuestSize *size)
{
        char text[OWNER_SIZE];

        write_key(owner, size, text);
        return string_set_add(keys, text);
}

static bool has_key(const StringSet *keys, const Consumer *owner, const GuestSize *size)
{
        char text[OWNER_SIZE];

        write_key(owner, size, text);
        return string_set_contains(keys, text);
}

static GuestSize size_of_domain(const HostDomain *domain)
{
        return (GuestSize){ .cpus = domain->vcpus, .memory_mb = domain->memory_mb };
}

static const Consumer *find_consumer(const AuditEvidence *evidence, const Uuid *uuid)
{
        return allocations_find(evidence->input->consumers, uuid);
}

/* Adds a guest that is elsewhere to "gone". Adds a guest whose claim differs from its consumer to
 * "resized", with the sizes of claim and domain. */
static int add_guest(AuditEvidence *evidence, const Uuid *uuid, const Claim *claim,
                     const HostDomain *domain)
{
        const Consumer *consumer = find_consumer(evidence, uuid);
        AuditDifference difference;
        GuestSize size;

        if (guest_index_place(&evidence->index, uuid) == CONSUMER_ELSEWHERE)
                return add_key(&evidence->gone, consumer, NULL);
        if (!consumer || !claim || !audit_differs(evidence->input, claim, consumer, &difference))
                return 0;
        size = guest_size_of_claim(claim);
        if (add_key(&evidence->resized, consumer, &size) < 0)
                return -ENOMEM;
        if (!domain)
                return 0;
        size = size_of_domain(domain);
        return add_key(&evidence->resized, consumer, &size);
}

/* Adds the size of an ended claim to "resized" if its guest is here in another size now, because
 * its migration can have the old size. */
static int add_former_size(AuditEvidence *evidence, const Claim *ended)
{
        const Consumer *consumer = find_consumer(evidence, &ended->consumer);
        const HostDomain *domain = guest_index_domain(&evidence->index, &ended->consumer);
        const Claim *claim = guest_index_claim(&evidence->index, &ended->consumer, 0);
        GuestSize former = guest_size_of_claim(ended), size;

        if (!consumer || (!claim && !domain))
                return 0;
        size = claim ? guest_size_of_claim(claim) : size_of_domain(domain);
        if (size.cpus == former.cpus && size.memory_mb == former.memory_mb)
                return 0;
        return add_key(&evidence->resized, consumer, &former);
}

/* Adds the guest of a claim. A claim that a migration took over is skipped. */
static int add_claim(AuditEvidence *evidence, const Claim *claim)
{
        return uuid_empty(&claim->guest)
                       ? add_guest(evidence, &claim->consumer, claim,
                                   guest_index_domain(&evidence->index, &claim->consumer))
                       : 0;
}

/* Adds a guest that has no claim. */
static int add_domain(AuditEvidence *evidence, const HostDomain *domain)
{
        return guest_index_has_claim(&evidence->index, &domain->uuid, NULL)
                       ? 0
                       : add_guest(evidence, &domain->uuid, NULL, domain);
}

/* Returns true for a consumer that can be a migration and has CPUs or memory here. A migration that
 * took over the claim of a guest is known to belong to that guest, and does not count. */
static bool is_loose(const AuditEvidence *evidence, const Consumer *consumer, GuestSize size)
{
        const Claim *claim = guest_index_claim(&evidence->index, &consumer->uuid, 0);

        return guest_index_can_be_migration(&evidence->index, consumer) &&
               (!claim || uuid_empty(&claim->guest)) && (size.cpus > 0 || size.memory_mb > 0);
}

static bool is_migration(const Consumer *consumer)
{
        return consumer->type && strcmp(consumer->type, "MIGRATION") == 0;
}

/* Adds a consumer of this host that has the type MIGRATION in Placement to "migrations". Adds a
 * consumer for which is_loose() is true to "loose" and "loose_sizes". */
static int add_migration(AuditEvidence *evidence, const ConsumerRead *read)
{
        const Consumer *consumer = read->holding;
        GuestSize size = audit_size_here(evidence->input, consumer);

        if (is_migration(consumer) && read->here &&
            add_key(&evidence->migrations, consumer, NULL) < 0)
                return -ENOMEM;
        if (!is_loose(evidence, consumer, size))
                return 0;
        return add_key(&evidence->loose, consumer, NULL) < 0 ||
                               add_key(&evidence->loose_sizes, consumer, &size) < 0
                       ? -ENOMEM
                       : 0;
}

bool audit_may_be_moving(const AuditEvidence *evidence, const Consumer *consumer, const Claim *size)
{
        const HostDomain *domain;
        GuestSize wanted;

        if (!size)
                return has_key(&evidence->loose, consumer, NULL);
        wanted = guest_size_of_claim(size);
        if (has_key(&evidence->loose_sizes, consumer, &wanted))
                return true;
        domain = guest_index_guest(&evidence->index, size);
        if (!domain)
                return false;
        wanted = size_of_domain(domain);
        return has_key(&evidence->loose_sizes, consumer, &wanted);
}

/* Makes the index of claims and guests (claims/guest-index.h), before the first thing is added. Its
 * consumers are stored later (add_consumer()). */
static int begin(AuditEvidence *evidence)
{
        const AuditInput *input = evidence->input;
        size_t n_consumers = input->consumers->n_consumers;

        evidence->consumers = calloc(n_consumers + 1, sizeof(ConsumerRead));
        if (!evidence->consumers)
                return -ENOMEM;
        evidence->index = (GuestIndex){ .claims = input->claims,
                                        .facts = input->facts,
                                        .consumers = evidence->consumers,
                                        .n_consumers = n_consumers };
        return guest_index_make(&evidence->index);
}

/* Stores a consumer among those of the index, so that guest_index_place() finds its place. */
static int add_consumer(AuditEvidence *evidence, size_t i)
{
        const Consumer *consumer = evidence->input->consumers->consumers[i];

        evidence->consumers[i] = (ConsumerRead){ .consumer = consumer->uuid,
                                                 .holding = consumer,
                                                 .here = is_here(evidence->input, consumer) };
        return 0;
}

/* Adds the i-th thing of all: the consumers come first, because add_guest() needs them. */
static int add_thing(AuditEvidence *evidence, size_t i)
{
        const AuditInput *input = evidence->input;
        size_t n_consumers = input->consumers->n_consumers, n_claims = input->claims->n_claims,
               n_domains = input->facts->n_domains;

        if (i < n_consumers)
                return add_consumer(evidence, i);
        if ((i -= n_consumers) < n_consumers)
                return add_migration(evidence, &evidence->consumers[i]);
        if ((i -= n_consumers) < n_claims)
                return add_claim(evidence, input->claims->claims[i]);
        if ((i -= n_claims) < n_domains)
                return add_domain(evidence, &input->facts->domains[i]);
        return add_former_size(evidence, input->ended->claims[i - n_domains]);
}

int audit_evidence_step(AuditEvidence *evidence, size_t n)
{
        const AuditInput *input = evidence->input;
        size_t n_things = 2 * input->consumers->n_consumers + input->claims->n_claims +
                          input->facts->n_domains + (input->ended ? input->ended->n_claims : 0);

        if (!evidence->consumers && begin(evidence) < 0)
                return -ENOMEM;
        for (; n > 0 && evidence->n_added < n_things; n--)
                if (add_thing(evidence, evidence->n_added++) < 0)
                        return -ENOMEM;
        return evidence->n_added < n_things;
}

void audit_evidence_done(AuditEvidence *evidence)
{
        guest_index_done(&evidence->index);
        free(evidence->consumers);
        string_set_done(&evidence->gone);
        string_set_done(&evidence->resized);
        string_set_done(&evidence->loose);
        string_set_done(&evidence->loose_sizes);
        string_set_done(&evidence->migrations);
        *evidence = (AuditEvidence){ 0 };
}

/* The state of a consumer's server */

/* Writes the time since the consumer was written to ret, by Placement's clock. Returns false if it
 * is not known. */
static bool get_written_usec(const AuditInput *input, const Consumer *consumer, uint64_t *ret)
{
        if (consumer->modified_sec == 0 || input->placement_sec == 0)
                return false;
        *ret = input->placement_sec > consumer->modified_sec
                       ? (input->placement_sec - consumer->modified_sec) * USEC_PER_SEC
                       : 0;
        return true;
}

/* Returns the reason why the server is alive; NULL: not known. */
static const char *find_server(const AuditEvidence *evidence, const Consumer *consumer)
{
        const AuditInput *input = evidence->input;
        GuestSize size = audit_size_here(input, consumer);
        uint64_t written_usec;

        if (host_facts_has_folder(input->facts, &consumer->uuid))
                return "Nova has its folder in [DEFAULT] instances_path";
        if (is_loose(evidence, consumer, size) && (has_key(&evidence->gone, consumer, NULL) ||
                                                   has_key(&evidence->resized, consumer, &size)))
                return "it can be the migration of a guest of this host";
        if (!is_migration(consumer) && has_key(&evidence->migrations, consumer, NULL))
                return "a migration of its project and user has allocations here";
        if (get_written_usec(input, consumer, &written_usec) && written_usec < input->grace_usec)
                return "its allocations were written a moment ago";
        return NULL;
}

/* Returns the newest event of the consumer, or NULL. The history is sorted, newest first. */
static const Event *find_newest(const EventList *history, const Uuid *consumer)
{
        for (size_t i = 0; history && i < history->n_events; i++)
                if (strcmp(history->events[i].consumer, consumer->text) == 0)
                        return &history->events[i];
        return NULL;
}

/* Returns true if the event shows the end of a server: the end of a claim for a caller (the
 * author), or because its guest was gone. Other ends do not, for example after an expiry or a
 * resize. */
static bool is_end(const Event *event)
{
        return strcmp(event->kind, EVENT_RELEASED) == 0 &&
               (event->author[0] || strcmp(event->reason, CLAIM_ORPHAN) == 0);
}

static void write_end(const Event *event, char text[static AUDIT_EVIDENCE_SIZE])
{
        time_t seconds = (time_t)(event->usec / USEC_PER_SEC);
        char when[32] = "";
        struct tm utc;

        if (gmtime_r(&seconds, &utc))
                (void)strftime(when, sizeof(when), " at %Y-%m-%d %H:%M:%S UTC", &utc);
        snprintf(text, AUDIT_EVIDENCE_SIZE,
                 "claim %" PRId64
                 " was released%s%s%s (%s), and its allocations were written before that",
                 event->claim, when, event->author[0] ? " by " : "", event->author, event->reason);
        text_trim_cut(text);
}

/* Returns the reason why there is no evidence of an end; NULL: there is evidence. */
static const char *find_doubt(const AuditInput *input, const Consumer *consumer,
                              const Event *newest)
{
        uint64_t written_usec;

        if (input->facts->folders_unknown)
                return input->facts->folders_unknown;
        if (!newest || !is_end(newest))
                return "this host has no record that its server was deleted or moved away";
        if (!get_written_usec(input, consumer, &written_usec))
                return "Placement does not say when its allocations were written";
        if (newest->usec > input->now_usec ||
            written_usec < input->now_usec - newest->usec + PLACEMENT_SLACK_USEC)
                return "its allocations were written after its claim ended here";
        return NULL;
}

AuditServerState audit_judge_server(const AuditEvidence *evidence, const Consumer *consumer,
                                    char text[static AUDIT_EVIDENCE_SIZE])
{
        const AuditInput *input = evidence->input;
        const Event *newest = find_newest(input->history, &consumer->uuid);
        const char *server = find_server(evidence, consumer), *doubt;

        if (server) {
                snprintf(text, AUDIT_EVIDENCE_SIZE, "%s", server);
                return AUDIT_SERVER_ALIVE;
        }
        doubt = find_doubt(input, consumer, newest);
        if (!doubt) {
                write_end(newest, text);
                return AUDIT_SERVER_ENDED;
        }
        snprintf(text, AUDIT_EVIDENCE_SIZE,
                 "left unchanged: %s. If its server is deleted, run \"computectl heal %s\"", doubt,
                 consumer->uuid.text);
        return AUDIT_SERVER_UNKNOWN;
}
