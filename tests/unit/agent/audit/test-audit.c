/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/audit/audit.h"
#include "tests/fixtures/audit.h"

/* The host, its GPUs a and b, a provider without capacity, and a sharing provider. */
#define HOST                                                                              \
        "host VCPU=8 MEMORY_MB=4096 DISK_GB=10; host_a<host VGPU=3; host_b<host VGPU=2; " \
        "gone<host VGPU=2/2; store DISK_GB=100"
#define GRACE (300 * USEC_PER_SEC)
#define NOW   (1000 * USEC_PER_SEC)

typedef struct GuestIndex {
        Allocations *consumers;
        ProviderTree *tree;
        ClaimList claims, ended;
        EventList history;
        FactsFixture facts;
        AuditMemory memory;
        Audit audit;
        AuditInput input;
} GuestIndex;

static void begin(GuestIndex *index)
{
        static Uuid pool;

        pool = make_uuid("store");
        *index = (GuestIndex){ 0 };
        assert_int_equal(allocations_new(&index->consumers), 0);
        index->tree = make_tree(HOST);
        make_facts(&index->facts);
        index->input = (AuditInput){ .consumers = index->consumers,
                                     .tree = index->tree,
                                     .root = make_uuid("host"),
                                     .pools = &pool,
                                     .n_pools = 1,
                                     .claims = &index->claims,
                                     .ended = &index->ended,
                                     .history = &index->history,
                                     .facts = &index->facts.facts,
                                     .now_usec = NOW,
                                     .boot_usec = NOW,
                                     .grace_usec = GRACE };
}

static void end(GuestIndex *index)
{
        allocations_free(index->consumers);
        provider_tree_free(index->tree);
        claim_list_done(&index->claims);
        claim_list_done(&index->ended);
        event_list_done(&index->history);
        free(index->memory.items);
        audit_done(&index->audit);
}

static Claim *add_claim(GuestIndex *index, char letter, const char *held)
{
        Claim *claim = audit_claim(letter, held);

        assert_int_equal(claim_list_add(&index->claims, claim), 0);
        return claim;
}

/* Adds an ended claim of the consumer. It ended 100 s ago, and the consumer's allocations are 1000
 * s old. */
static void add_end(GuestIndex *index, char letter)
{
        const Uuid uuid = make_guest(letter);
        Consumer *consumer = allocations_find(index->consumers, &uuid);
        Event *event;

        index->input.placement_sec = 5000;
        consumer->modified_sec = 4000;
        assert_int_equal(event_list_add(&index->history, &event), 0);
        *event = (Event){ .usec = NOW - 100 * USEC_PER_SEC,
                          .claim = 5,
                          .kind = strdup(EVENT_RELEASED),
                          .author = strdup("root (computectl)"),
                          .consumer = strdup(uuid.text),
                          .reason = strdup("deleted") };
}

static void look(GuestIndex *index)
{
        AuditRun *run;
        int r;

        audit_done(&index->audit);
        assert_int_equal(audit_run_new(&run, &index->input, &index->memory), 0);
        do
                r = audit_run_step(run, 1, &index->audit);
        while (r > 0);
        assert_int_equal(r, 0);
        audit_run_free(run);
}

static void look_later(GuestIndex *index)
{
        index->input.boot_usec += GRACE;
        look(index);
}

/* Compares the findings with expected, as in "leaked release-share, …". */
static void assert_findings(const GuestIndex *index, const char *about, const char *expected)
{
        const Audit *audit = &index->audit;
        char text[256] = "";
        size_t n = 0;

        for (size_t i = 0; i < audit->n_items; i++)
                n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s %s", i > 0 ? ", " : "",
                                      audit_type_names[audit->items[i].type],
                                      audit_remedy_names[audit->items[i].remedy]);
        if (strcmp(text, expected) != 0)
                fail_msg("%s: %s", about, text);
}

/* Audits twice, so that nothing is young in the second audit. */
static void look_twice(GuestIndex *index, const char *about, const char *expected)
{
        look(index);
        look_later(index);
        assert_findings(index, about, expected);
}

static void add_device(Claim *claim, const char *provider)
{
        char text[] = "", name[] = "b", type[] = "t";
        const ClaimDevice device = { .provider = make_uuid(provider),
                                     .suffix = text,
                                     .name = name,
                                     .address = text,
                                     .mdev_type = type,
                                     .mdev = make_mdev('4') };

        assert_int_equal(claim_add_device(claim, &device), 0);
}

#define GUEST     "VCPU=2@host MEMORY_MB=512@host"
#define ELSEWHERE "VCPU=2@elsewhere MEMORY_MB=512@elsewhere"
#define MDEV_1    "33333333-2222-4333-8444-555555555531" /* uuid of make_mdev('1') */

static const struct {
        const char *name;
        const char *held;    /* allocations in Placement; NULL: none */
        const char *claimed; /* NULL: no claim */
        bool guest, running;
        const char *findings;
        const char *words;  /* part of the first finding's text */
        const char *mdevs;  /* mdevs of the guest; NULL: none */
        const char *device; /* provider of a device of the claim, with mdev 4 */
        ClaimWriteState write_state;
        size_t n_in_flight;
        bool ended;          /* a caller released its claim */
        const char *process; /* process of the claim; NULL: none */
        bool guests_unknown; /* the driver does not know the guests */
} cases[] = {
        { "nothing", NULL, NULL, false, false, .findings = "" },
        { "all is well", GUEST, GUEST, true, true, .findings = "" },
        { "F8 1679750: it has neither guest nor claim", GUEST, NULL, false, false,
          .findings = "leaked release-share", .words = "MEMORY_MB=512,VCPU=2 of host",
          .ended = true },
        { "no evidence that its server is deleted", GUEST, NULL, false, false,
          .findings = "leaked none", .words = "no record that its server was deleted" },
        { "custom classes of children, which Nova's audit passes over", "VGPU=1@host_a", NULL,
          false, false, .findings = "leaked release-share", .words = "VGPU=1 of host_a",
          .ended = true },
        { "all of it is told, and nothing else", GUEST " VGPU=1@host_a DISK_GB=5@store", NULL,
          false, false, .findings = "leaked release-share", .words = "VGPU=1 of host_a; ",
          .ended = true },
        { "with the sharing provider", GUEST " DISK_GB=5@store", NULL, false, false,
          .findings = "leaked release-share", .words = "DISK_GB=5 of ", .ended = true },
        { "the other part", GUEST " VGPU=1@host_a", NULL, false, false,
          .findings = "leaked release-share", .words = "VCPU=2 of host), but neither",
          .ended = true },
        { "G2.8: of a sharing provider alone", "DISK_GB=5@store", NULL, false, false,
          .findings = "" },
        { "G2.7: of another host alone", "VCPU=1@elsewhere", NULL, false, false, .findings = "" },
        { "a claim that Placement does not know", NULL, GUEST, false, false,
          .findings = "unallocated none", .words = "neither a guest here nor" },
        { "14.4: deleted by others, and it runs", NULL, GUEST, true, true,
          .findings = "unallocated none",
          .words = "runs here (claim 103), but has no allocations in Placement" },
        { "14.4: deleted by others, shut off", NULL, GUEST, true, false,
          .findings = "unallocated none",
          .words = "is defined here (claim 103), but has no allocations" },
        { "a smaller amount", "VCPU=1@host MEMORY_MB=512@host", GUEST, true, true,
          .findings = "amount write-claim", .words = "has 2 VCPU, Placement 1" },
        { "issue 31: another writer's larger amount", "VCPU=3@host MEMORY_MB=512@host", GUEST, true,
          true, .findings = "larger none", .words = "Placement has 3 VCPU for" },
        { "issue 31: isolated emulator threads", "PCPU=3@host MEMORY_MB=512@host",
          "PCPU=2@host MEMORY_MB=512@host", true, true, .findings = "larger none",
          .words = "Another writer set the larger amount, and the agent keeps it" },
        { "one amount is larger, another smaller", "VCPU=3@host MEMORY_MB=256@host", GUEST, true,
          true, .findings = "amount none", .words = "another writer set the larger VCPU" },
        { "CPUs of another class", "PCPU=2@host MEMORY_MB=512@host", GUEST, true, true,
          .findings = "amount none", .words = "another writer set the larger PCPU" },
        { "a larger amount of a guest that is not here", "VCPU=3@host MEMORY_MB=512@host", GUEST,
          false, false, .findings = "amount none", .words = "its guest is not on this host" },
        { "a device that the guest has not", GUEST " VGPU=1@host_a", GUEST, true, true,
          .findings = "larger none", .words = "Placement has 1 VGPU" },
        { "a disk, which no guest tells", GUEST " DISK_GB=5@host", GUEST, true, true,
          .findings = "" },
        { "a disk that is claimed", GUEST " DISK_GB=5@host", GUEST " DISK_GB=6@host", true, true,
          .findings = "amount write-claim", .words = "has 6 DISK_GB, Placement 5" },
        { "a disk that others share", GUEST " DISK_GB=5@store", GUEST, true, true, .findings = "" },
        { "another provider, and nothing binds the guest", GUEST " VGPU=1@host_a",
          GUEST " VGPU=1@host_b", true, true, .findings = "provider none",
          .words =
                  "does not have its VGPU on host_a, where Placement allocates it; its guest is bound to neither" },
        { "a claim with less CPUs than its guest", "VCPU=3@host MEMORY_MB=512@host",
          "VCPU=1@host MEMORY_MB=512@host", true, true, .findings = "amount none",
          .words = "Placement 3; guest g has 2 VCPUs, but its claim has 1" },
        { "a claim with more than its guest", GUEST, "VCPU=4@host MEMORY_MB=512@host", true, true,
          .findings = "amount none",
          .words = "Placement 2; guest g has 2 VCPUs, but its claim has 4" },
        { "a claim of CPUs that the host does not count", GUEST, "MEMORY_MB=512@host", true, true,
          .findings = "amount none", .words = "its guest is larger than its claim" },
        { "an amount, and the guest is not here", "VCPU=3@host", GUEST, false, false,
          .findings = "amount none", .words = "its guest is not on this host" },
        { "a GPU that gives nothing any more", GUEST " VGPU=1@gone", GUEST " VGPU=1@gone", true,
          true, .findings = "withdrawn none", .words = "VGPU of gone" },
        { "no claim", GUEST, NULL, true, true, .findings = "unclaimed adopt",
          .words = "has no claim" },
        { "neither", NULL, NULL, true, true, .findings = "unclaimed adopt",
          .words = "no allocations" },
        { "A14: evacuated, the domain is left", "VCPU=2@elsewhere", GUEST, true, false,
          .findings = "evacuated end-claim", .words = "on other hosts" },
        { "A14: evacuated, no domain", "VCPU=2@elsewhere", GUEST, false, false,
          .findings = "evacuated end-claim", .words = "on other hosts" },
        { "it runs here and is elsewhere", "VCPU=2@elsewhere", GUEST, true, true,
          .findings = "elsewhere none", .words = "runs here" },
        { "its guest is a process that runs here", "VCPU=2@elsewhere", GUEST, false, false,
          .findings = "elsewhere none", .words = "runs here (lives)", .process = "lives" },
        { "its guest was a process", "VCPU=2@elsewhere", GUEST, false, false,
          .findings = "evacuated end-claim", .process = "ended", .guests_unknown = true },
        { "its guest is not known", "VCPU=2@elsewhere", GUEST, false, false,
          .findings = "evacuated none", .words = "If the guest is not here",
          .guests_unknown = true },
        { "a claim of a sharing provider alone", "DISK_GB=5@store", "", true, false,
          .findings = "" },
        { "all that is left is of a sharing provider", "DISK_GB=5@store", GUEST, true, false,
          .findings = "amount none", .words = "all its allocations are from sharing providers" },
        { "the same, without a domain", "DISK_GB=5@store", GUEST, false, false,
          .findings = "amount none", .words = "its guest is not on this host" },
        { "the same, without a claim", "DISK_GB=5@store", NULL, true, false,
          .findings = "unclaimed adopt" },
        { "A14: evacuated, with disk of a sharing provider", "VCPU=2@elsewhere DISK_GB=5@store",
          GUEST, true, false, .findings = "evacuated end-claim" },
        { "A14: evacuated, and its claim ended", "VCPU=2@elsewhere", NULL, true, false,
          .findings = "evacuated none", .words = "is defined here and does not run" },
        { "it is elsewhere, and runs here without a claim", "VCPU=2@elsewhere", NULL, true, true,
          .findings = "unclaimed adopt", .words = "has no claim" },
        { "14.1: a guest with an mdev whose GPU has no provider yet", GUEST " VGPU=1@host", GUEST,
          true, true, .findings = "amount none", .words = MDEV_1, .mdevs = "1" },
        { "a device that the claim names is where it is", GUEST " VGPU=1@host_a",
          GUEST " VGPU=1@host_b", true, true, .findings = "provider write-claim", .mdevs = "4",
          .device = "host_b" },
        { "we wrote it, and it is gone from there", NULL, GUEST, true, true,
          .findings = "missing write-claim", .write_state = CLAIM_WRITE_WRITTEN },
        { "the same, and its guest is not here", NULL, GUEST, false, false,
          .findings = "missing none", .write_state = CLAIM_WRITE_WRITTEN },
        { "it is being written", NULL, GUEST, true, true, .findings = "",
          .write_state = CLAIM_WRITE_UNANSWERED, .n_in_flight = 1 },
        { "it is still to be written", NULL, GUEST, true, true, .findings = "",
          .write_state = CLAIM_WRITE_UNSENT, .n_in_flight = 1 },
        { "and may be there", NULL, GUEST, true, true, .findings = "",
          .write_state = CLAIM_WRITE_SENT, .n_in_flight = 1 },
};

static bool lives(const char *process)
{
        return strcmp(process, "lives") == 0;
}

static void test_table(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(end) GuestIndex index;

                begin(&index);
                if (cases[i].held)
                        audit_consumer(index.consumers, 'g', "INSTANCE", cases[i].held);
                if (cases[i].ended)
                        add_end(&index, 'g');
                if (cases[i].claimed)
                        add_claim(&index, 'g', cases[i].claimed)->write_state =
                                cases[i].write_state;
                if (cases[i].process) {
                        free(index.claims.claims[0]->process);
                        assert_non_null(index.claims.claims[0]->process = strdup(cases[i].process));
                }
                index.input.guests_unknown = cases[i].guests_unknown;
                index.input.is_alive = lives;
                if (cases[i].device)
                        add_device(index.claims.claims[0], cases[i].device);
                if (cases[i].guest)
                        facts_guest(&index.facts, 'g', cases[i].mdevs ? cases[i].mdevs : "")
                                ->running = cases[i].running;
                look_twice(&index, cases[i].name, cases[i].findings);
                if (index.audit.n_in_flight != cases[i].n_in_flight)
                        fail_msg("%s: %zu in flight", cases[i].name, index.audit.n_in_flight);
                if (cases[i].words && !strstr(index.audit.items[0].text, cases[i].words))
                        fail_msg("%s: %s", cases[i].name, index.audit.items[0].text);
        }
}

/* A device that is cleaned after its guest has no capacity while the guest has it. */
static void test_device_that_is_cleaned(void **state)
{
        for (int must_be_cleaned = 0; must_be_cleaned <= 1; must_be_cleaned++) {
                char none[] = "", name[] = "d", address[] = "0000:41:00.0";
                HostPci pci = { .name = name,
                                .address = address,
                                .provider = address,
                                .resource_class = "VGPU",
                                .must_be_cleaned = must_be_cleaned };
                const ClaimDevice device = { .provider = make_uuid("gone"),
                                             .suffix = none,
                                             .name = name,
                                             .address = address,
                                             .mdev_type = none };
                _cleanup_(end) GuestIndex index;

                begin(&index);
                index.facts.facts.pci = &pci;
                index.facts.facts.n_pci = 1;
                audit_consumer(index.consumers, 'g', "INSTANCE", GUEST " VGPU=1@gone");
                assert_int_equal(
                        claim_add_device(add_claim(&index, 'g', GUEST " VGPU=1@gone"), &device), 0);
                facts_guest(&index.facts, 'g', "")->running = true;
                look_twice(&index, "cleaned", must_be_cleaned ? "" : "withdrawn none");
        }
}

/* Consumers and claims can be on their way for the grace time. */
static void test_in_flight(void **state)
{
        Consumer *consumer;
        GuestIndex index;
        Claim *claim;

        begin(&index);
        consumer = audit_consumer(index.consumers, 'x', "INSTANCE", GUEST);
        look(&index);
        assert_int_equal(index.audit.n_items, 0);
        assert_int_equal(index.audit.n_in_flight, 1);
        assert_int_equal(index.audit.n_consumers, 1);
        index.input.boot_usec += GRACE - 1;
        look(&index);
        assert_int_equal(index.audit.n_items, 0);
        index.input.boot_usec++;
        look(&index);
        assert_int_equal(index.audit.n_items, 1);
        /* A scheduler writes the consumer. */
        consumer->generation++;
        look(&index);
        assert_int_equal(index.audit.n_items, 0);
        assert_int_equal(index.audit.n_in_flight, 1);
        index.input.boot_usec += GRACE;
        look(&index);
        assert_int_equal(index.audit.n_items, 1);
        /* The consumer got a claim and lost it, so it is new again. */
        claim = add_claim(&index, 'x', GUEST);
        look(&index);
        assert_int_equal(index.audit.n_items, 0);
        claim_list_done(&index.claims);
        look(&index);
        assert_int_equal(index.audit.n_in_flight, 1);
        end(&index);

        /* Claims that are not confirmed, just made, or being resized (F8 1790204). */
        begin(&index);
        claim = add_claim(&index, 'g', GUEST);
        claim->state = CLAIM_STATE_CLAIMED;
        claim = add_claim(&index, 'y', GUEST);
        claim->created_usec = NOW - GRACE + 1;
        (void)add_claim(&index, 'r', GUEST);
        claim = add_claim(&index, 'r', GUEST);
        claim->resize_target = true;
        claim->created_usec = NOW - GRACE + 1;
        look(&index);
        assert_int_equal(index.audit.n_items, 0);
        assert_int_equal(index.audit.n_in_flight, 4);
        end(&index);
}

/* One guest has two claims after a resize on this host. */
static void test_resized(void **state)
{
        static const struct {
                const char *name;
                const char *m;  /* allocations of a consumer without a guest; NULL: there is none */
                bool confirmed; /* state of the second claim */
                const char *findings;
        } rows[] = {
                { "no migration is left", NULL, true, "resized none" },
                { "its migration holds the first claim", GUEST, true, "" },
                { "its migration holds the second claim", "VCPU=4@host MEMORY_MB=512@host", true,
                  "" },
                { "the second claim is not confirmed", NULL, false, "" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(end) GuestIndex index;
                Claim *second;

                begin(&index);
                audit_consumer(index.consumers, 'g', "unknown", GUEST);
                (void)add_claim(&index, 'g', GUEST);
                second = add_claim(&index, 'g', "VCPU=4@host MEMORY_MB=512@host");
                second->id++;
                second->resize_target = true;
                second->state = rows[i].confirmed ? CLAIM_STATE_CONFIRMED : CLAIM_STATE_CLAIMED;
                facts_guest(&index.facts, 'g', "");
                if (rows[i].m)
                        audit_consumer(index.consumers, 'm', "unknown", rows[i].m);
                look(&index);
                assert_findings(&index, rows[i].name, "");
                look_later(&index);
                assert_findings(&index, rows[i].name, rows[i].findings);
        }
}

/* F8 1825537, 1879878, 1953359: while a guest is moved, its migration has its allocations here. */
static void test_migrations(void **state)
{
        GuestIndex index;

        /* The agent itself passed the claim to the migration. The guest still runs here and has
         * one. */
        begin(&index);
        audit_consumer(index.consumers, 'm', "MIGRATION", GUEST);
        add_claim(&index, 'm', GUEST)->guest = make_guest('g');
        facts_guest(&index.facts, 'g', "")->running = true;
        look(&index);
        index.input.boot_usec += GRACE;
        look(&index);
        assert_int_equal(index.audit.n_items, 0);
        end(&index);

        begin(&index);
        audit_consumer(index.consumers, 'm', "unknown", GUEST);
        audit_consumer(index.consumers, 'g', "unknown", "VCPU=2@elsewhere");
        add_claim(&index, 'g', GUEST);
        facts_guest(&index.facts, 'g', "")->running = false;
        look_later(&index);
        assert_int_equal(index.audit.n_items, 0);
        assert_int_equal(index.audit.n_in_flight, 2);
        /* F8 1848343: the guest was deleted, and its migration remains. */
        allocations_remove(index.consumers, &index.claims.claims[0]->consumer);
        index.facts.facts.n_domains = 0;
        claim_list_done(&index.claims);
        look_later(&index);
        assert_int_equal(index.audit.n_items, 1);
        assert_int_equal(index.audit.items[0].type, AUDIT_LEAKED);
        assert_string_equal(index.audit.items[0].consumer.text, make_guest('m').text);
        end(&index);
}

/* 14.2: m is a consumer without guest; g and h are guests. Checks whether m can be the migration of
 * a guest that is elsewhere or was resized here. */
static void test_consumers_that_can_be_migrations(void **state)
{
        static const struct {
                const char *name;
                const char *m, *type,
                        *project;  /* allocations of m, its consumer type and its project */
                const char *g, *h; /* allocations of the guests; NULL: they do not exist */
                const char *findings;
                unsigned in_flight;
        } rows[] = {
                { "one of two guests has it", GUEST, "unknown", "p", ELSEWHERE, ELSEWHERE, "", 3 },
                { "Placement says that it is one", GUEST, "MIGRATION", "p", ELSEWHERE, NULL, "",
                  2 },
                { "of another size: flavors say other things than domains",
                  "PCPU=3@host MEMORY_MB=512@host", "unknown", "p", ELSEWHERE, NULL, "", 2 },
                { "of another project", GUEST, "unknown", "q", ELSEWHERE, NULL,
                  "leaked release-share, evacuated end-claim", 0 },
                { "it says that it is none", GUEST, "INSTANCE", "p", ELSEWHERE, NULL,
                  "leaked release-share, evacuated end-claim", 0 },
                { "a device alone is no guest", "VGPU=1@host_a", "unknown", "p", ELSEWHERE, NULL,
                  "leaked release-share, evacuated end-claim", 0 },
                { "no guest is elsewhere", GUEST, "unknown", "p", GUEST, NULL,
                  "leaked release-share", 0 },
                { "F8 1790204: resized on this host", GUEST, "unknown", "p",
                  "VCPU=4@host MEMORY_MB=512@host", NULL, "", 2 },
                { "resized on this host, and m has another size", "VCPU=1@host MEMORY_MB=512@host",
                  "unknown", "p", "VCPU=4@host MEMORY_MB=512@host", NULL,
                  "leaked release-share, larger none", 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(end) GuestIndex index;
                Consumer *m;

                begin(&index);
                if (rows[i].h) {
                        audit_consumer(index.consumers, 'h', "unknown", rows[i].h);
                        add_claim(&index, 'h', GUEST);
                        facts_guest(&index.facts, 'h', "")->running = false;
                }
                audit_consumer(index.consumers, 'g', "unknown", rows[i].g);
                add_claim(&index, 'g', GUEST);
                facts_guest(&index.facts, 'g', "")->running = false;
                m = audit_consumer(index.consumers, 'm', rows[i].type, rows[i].m);
                free(m->project_id);
                m->project_id = strdup(rows[i].project);
                add_end(&index, 'm');
                look_twice(&index, rows[i].name, rows[i].findings);
                if (index.audit.n_in_flight != rows[i].in_flight)
                        fail_msg("%s: %zu", rows[i].name, index.audit.n_in_flight);
        }
}

/* F8 1790204: the guest runs in its new size with a new claim. Its migration has the old size until
 * the resize is confirmed or reverted. */
static void test_new_claim_of_unconfirmed_resize(void **state)
{
        static const struct {
                const char *ended; /* NULL: none */
                char of;
                bool claimed;
                const char *findings;
        } rows[] = {
                { "VCPU=1@host MEMORY_MB=256@host", 'g', true, "" },
                { "VCPU=1@host MEMORY_MB=256@host", 'g', false, "unclaimed adopt" },
                { "VCPU=1@host MEMORY_MB=128@host", 'g', true, "leaked release-share" },
                { GUEST, 'g', true, "leaked release-share" },
                /* The guest is not here any more. */
                { "VCPU=1@host MEMORY_MB=256@host", 'h', true, "leaked release-share" },
                { NULL, 'g', true, "leaked release-share" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(end) GuestIndex index;

                begin(&index);
                audit_consumer(index.consumers, 'g', "unknown", GUEST);
                if (rows[i].claimed)
                        add_claim(&index, 'g', GUEST);
                facts_guest(&index.facts, 'g', "");
                audit_consumer(index.consumers, 'm', "unknown", "VCPU=1@host MEMORY_MB=256@host");
                add_end(&index, 'm');
                if (rows[i].ended)
                        assert_int_equal(claim_list_add(&index.ended,
                                                        audit_claim(rows[i].of, rows[i].ended)),
                                         0);
                look_twice(&index, rows[i].ended ? rows[i].ended : "nothing ended",
                           rows[i].findings);
        }
}

/* The text of a finding has the reason that prevents its remedy. */
static void test_hindrances(void **state)
{
        static const char *const waits[] = { NULL, "left unchanged until then" };
        static const char *const findings[] = {
                "leaked release-share, amount write-claim, evacuated end-claim, unclaimed adopt",
                "leaked none, amount none, evacuated none, unclaimed adopt",
        };

        for (size_t i = 0; i < ARRAY_SIZE(waits); i++) {
                _cleanup_(end) GuestIndex index;

                begin(&index);
                index.input.waits = waits[i];
                audit_consumer(index.consumers, 'a', "unknown", "VCPU=1@host MEMORY_MB=512@host");
                add_claim(&index, 'a', GUEST);
                facts_guest(&index.facts, 'a', "");
                audit_consumer(index.consumers, 'e', "INSTANCE", "VCPU=2@elsewhere");
                add_claim(&index, 'e', GUEST);
                audit_consumer(index.consumers, 'x', "INSTANCE", GUEST);
                add_end(&index, 'x');
                facts_guest(&index.facts, 'n', "");
                look_twice(&index, __func__, findings[i]);
                for (size_t j = 0; waits[i] && j + 1 < index.audit.n_items; j++)
                        assert_non_null(strstr(index.audit.items[j].text, waits[i]));
        }
}

/* The amounts of a claim that follows another writer are not written back if that lowers one. */
static void test_a_claim_that_follows(void **state)
{
        static const struct {
                const char *placed, *findings, *words;
        } rows[] = {
                { GUEST, "amount none", "follows Placement in the next cycle" },
                { "VCPU=1@host MEMORY_MB=512@host", "amount write-claim", "Placement 1" },
                { "VCPU=3@host MEMORY_MB=512@host", "", NULL },
                { "VCPU=4@host MEMORY_MB=512@host", "larger none", "has 4 VCPU" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(end) GuestIndex index;
                size_t n_problems = 0;
                Claim *claim;

                begin(&index);
                audit_consumer(index.consumers, 'g', "INSTANCE", rows[i].placed);
                claim = add_claim(&index, 'g', "VCPU=3@host MEMORY_MB=512@host");
                claim->was_read = true;
                free(claim->consumer_type);
                claim->consumer_type = strdup(CLAIM_TYPE_GUEST);
                facts_guest(&index.facts, 'g', "");
                look_twice(&index, rows[i].placed, rows[i].findings);
                if (rows[i].words && !strstr(index.audit.items[0].text, rows[i].words))
                        fail_msg("%s: %s", rows[i].placed, index.audit.items[0].text);
                for (size_t j = 0; j < index.audit.n_items; j++)
                        n_problems += audit_type_is_problem(index.audit.items[j].type);
                assert_int_equal(n_problems, strncmp(rows[i].findings, "amount", 6) == 0);
        }
}

/* A client that wrote a consumer a moment ago is about to use it. */
static void test_a_consumer_that_was_just_written(void **state)
{
        Consumer *consumer;
        _cleanup_(end) GuestIndex index;

        begin(&index);
        consumer =
                audit_consumer(index.consumers, 'g', "unknown", "VCPU=1@host MEMORY_MB=512@host");
        add_claim(&index, 'g', GUEST);
        facts_guest(&index.facts, 'g', "");
        look(&index);
        assert_findings(&index, __func__, "amount none");
        assert_non_null(strstr(index.audit.items[0].text, "a moment ago"));
        look_later(&index);
        assert_findings(&index, __func__, "amount write-claim");
        consumer->generation++;
        look(&index);
        assert_findings(&index, __func__, "amount none");
}

/* A consumer without evidence keeps its allocations until the operator names it. */
static void test_a_named_consumer_is_released(void **state)
{
        const Uuid named = make_guest('x'), other = make_guest('y');
        const struct {
                const Uuid *named;
                bool claimed;
                const char *waits;
                const char *findings;
        } rows[] = {
                { NULL, false, NULL, "leaked none" },
                { &other, false, NULL, "leaked none" },
                { &named, false, NULL, "leaked release-share" },
                { &named, false, "left unchanged until then", "leaked none" },
                { &named, true, NULL, "" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                const Uuid folder = named;
                _cleanup_(end) GuestIndex index;

                begin(&index);
                audit_consumer(index.consumers, 'x', "INSTANCE", GUEST);
                if (rows[i].claimed)
                        add_claim(&index, 'x', GUEST);
                look(&index);
                index.input.waits = rows[i].waits;
                index.input.named = rows[i].named;
                index.input.named_by = "root (computectl)";
                look_later(&index);
                assert_findings(&index, rows[i].findings, rows[i].findings);
                if (strcmp(rows[i].findings, "leaked release-share") == 0)
                        assert_string_equal(index.audit.items[0].evidence,
                                            "root (computectl) asked to heal it");
                /* A failed deletion can leave a folder, so the operator's word counts more. */
                index.facts.facts.folders = &folder;
                index.facts.facts.n_folders = 1;
                look_later(&index);
                assert_findings(&index, "with a folder",
                                rows[i].named == &named ? rows[i].findings : "");
        }
}

TEST_MAIN(test_table, test_device_that_is_cleaned, test_in_flight, test_resized, test_migrations,
          test_consumers_that_can_be_migrations, test_new_claim_of_unconfirmed_resize,
          test_hindrances, test_a_claim_that_follows, test_a_consumer_that_was_just_written,
          test_a_named_consumer_is_released)
