/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests the outcome of each finding, with a claim database and a Placement in memory. */

#include "agent/audit/healer.h"

#define PLACING_OWN_NOTIFY
#include "tests/fixtures/placing.h"
#include "tests/fixtures/trace.h"

/* Replaces the functions of agent/guests/database.c and report/reporter.c that the healer calls. */
void claim_service_record(ClaimService *service, const EventNote *event)
{
        assert_string_equal(event->kind, EVENT_HEALED);
        note('r');
}

void claim_service_notify(ClaimService *service, ClaimEvent event, const Claim *claim)
{
        assert_int_equal(event, CLAIM_EVENT_REMOVED);
        note('e');
}

void claim_service_look_again(ClaimService *service)
{
        note('a');
}

Session *reporter_get_session(Reporter *reporter)
{
        return NULL;
}

static void on_healed(void *userdata)
{
        note('d');
}

static void on_read(int result, ConsumersAnswer *answer, const Error *error, void *userdata)
{
        assert_int_equal(result, REPORT_DONE);
        if (answer->consumer->n_allocations == 0)
                return;
        assert_int_equal(allocations_add(userdata, answer->consumer), 0);
        answer->consumer = NULL;
}

static void run(Agent *agent)
{
        while (sd_event_run(agent->event, 0) > 0)
                ;
}

/* Returns the consumers that an audit read. */
static Allocations *read_all(Agent *agent, const Uuid *consumer)
{
        Allocations *consumers;
        ConsumersCall *call;

        assert_int_equal(allocations_new(&consumers), 0);
        assert_true(consumers_read(&call, NULL, consumer, on_read, consumers, NULL) >= 0);
        run(agent);
        return consumers;
}

typedef struct Case {
        const char *about;
        const char *placed, *claimed; /* at the time of the audit; claimed NULL: no claim */
        AuditRemedy remedy;
        bool is_of_placement; /* the claim was made of these allocations */
        bool only_ends;
        const char *refused;
        bool only_other;       /* the operator named the other consumer */
        bool locked;           /* a claim is made for the consumer */
        bool runs;             /* its guest runs here since the audit */
        bool guests_unknown;   /* the driver does not know the guests */
        const char *meanwhile; /* allocations that another client writes; NULL: none */
        FakeTrouble trouble;
        bool lasts;
        AuditRemedy behind; /* remedy of a finding of another consumer, which comes next */
        unsigned outcomes[2];
        const char *trace, *left;
} Case;

/* Makes the claim of the finding. */
static int64_t claim(Agent *agent, const char *name, const char *claimed, AuditRemedy remedy)
{
        _cleanup_(claim_freep) Claim *made = NULL;

        if (!claimed)
                return 0;
        assert_int_equal(fixture_claim(agent->fixture, name, claimed, &made), 0);
        return remedy == AUDIT_REMEDY_RELEASE_SHARE ? 0 : made->id;
}

/* Makes a claim of the allocations of a consumer. */
static int64_t claim_placed(Agent *agent, const Consumer *consumer)
{
        const ClaimPlacing placing = { .holding = consumer };
        _cleanup_(claim_freep) Claim *made = NULL;

        assert_int_equal(claims_claim_placed(agent->service.claims, &placing, &made, NULL), 0);
        return made->id;
}

static void heal(Agent *agent, const Case *row, AuditFinding findings[static 2])
{
        const Uuid i = make_uuid("i"), j = make_uuid("j"), host = make_uuid("host");
        Audit audit = { .items = findings, .n_items = 2 };
        HostDevice device = { .resource_class = "VGPU" };
        HostDomain domain = { .uuid = i, .name = (char *)"i", .running = true };
        const HostFacts facts = { .devices = &device, .n_devices = 1 };
        const HostFacts now = { .domains = &domain, .n_domains = row->runs };
        Snapshot snapshot = { .guests_unknown = row->guests_unknown };
        const Uuid pool = make_uuid("store");
        const AuditInput input = {
                .tree = agent->all, .root = host, .pools = &pool, .n_pools = 1, .facts = &facts
        };
        HealerOrder order = { .claims = &agent->service,
                              .input = &input,
                              .audit = &audit,
                              .everything = !row->only_ends,
                              .only = row->only_other ? &j : NULL,
                              .refused = row->refused };
        Healer *healer;

        findings[0] = (AuditFinding){ .remedy = row->remedy,
                                      .consumer = i,
                                      .claim_id = claim(agent, "i", row->claimed, row->remedy),
                                      .text = (char *)row->about,
                                      .evidence = (char *)"none" };
        findings[1] = (AuditFinding){ .remedy = row->behind,
                                      .consumer = j,
                                      .claim_id = claim(agent, "j", row->behind ? "VCPU=1" : NULL,
                                                        row->behind),
                                      .text = (char *)row->about,
                                      .evidence = (char *)"none" };
        fake_placement_put(&i, row->placed);
        order.consumers = read_all(agent, &i);
        if (row->is_of_placement)
                findings[0].claim_id = claim_placed(agent, allocations_find(order.consumers, &i));
        if (row->meanwhile)
                fake_placement_put(&i, row->meanwhile);
        fake_placement_trouble(row->trouble, 0, row->lasts);
        agent->n_healed = row->locked;
        agent->service.facts = row->runs ? &now : NULL;
        agent->service.comparison.snapshot = &snapshot;
        assert_int_equal(healer_begin(&healer, &order, on_healed, NULL), 0);
        run(agent);
        healer_free(healer);
        allocations_free(order.consumers);
        agent->service.facts = NULL;
        agent->service.comparison.snapshot = NULL;
}

#define HELD     "host VCPU=2,other VCPU=1"
#define POOL     "store DISK_GB=100 IPV4_ADDRESS=9 +MISC_SHARES_VIA_AGGREGATE @A"
#define HERE     "host VCPU=8 DISK_GB=10 @A; gpu<host VGPU=2; nic<host VGPU=2; "
#define ANYWHERE HERE "other VCPU=8; " POOL

static void run_cases(Fixture *fixture, const Case *cases, size_t n_cases)
{
        for (size_t n = 0; n < n_cases; n++) {
                const Uuid i = make_uuid("i");
                AuditFinding findings[2];
                char left[256];
                Agent agent;

                trace[0] = '\0';
                agent_begin_on(&agent, fixture, CLAIM_MODE_AUTO, HERE POOL, ANYWHERE);
                heal(&agent, &cases[n], findings);
                fake_placement_format(&i, left);
                if (findings[0].outcome != cases[n].outcomes[0] ||
                    findings[1].outcome != cases[n].outcomes[1] ||
                    strcmp(trace, cases[n].trace) != 0 || strcmp(left, cases[n].left) != 0)
                        fail_msg("%s: %d %d \"%s\" \"%s\" (%s)", cases[n].about,
                                 findings[0].outcome, findings[1].outcome, trace, left,
                                 findings[0].error.text);
                agent_end(&agent);
        }
}

static void test_ends_of_claims(void **state)
{
        static const Case cases[] = {
                { "nothing is written at a start", HELD, .remedy = AUDIT_REMEDY_RELEASE_SHARE,
                  .only_ends = true, .trace = "d", .left = HELD },
                { "but claims end", HELD, "VCPU=2", .remedy = AUDIT_REMEDY_END_CLAIM,
                  .only_ends = true, .outcomes = { AUDIT_HEALED }, .trace = "ed", .left = HELD },
                { "it ended", HELD, .remedy = AUDIT_REMEDY_END_CLAIM, .trace = "d", .left = HELD },
                { "the claim stays if its guest is here again", HELD, "VCPU=2",
                  .remedy = AUDIT_REMEDY_END_CLAIM, .runs = true, .outcomes = { AUDIT_FAILED },
                  .trace = "d", .left = HELD },
                { "and if its guest can be no domain", HELD, "VCPU=2",
                  .remedy = AUDIT_REMEDY_END_CLAIM, .guests_unknown = true,
                  .outcomes = { AUDIT_FAILED }, .trace = "d", .left = HELD },
                { "and while another claim is made", HELD, "VCPU=2",
                  .remedy = AUDIT_REMEDY_END_CLAIM, .locked = true, .outcomes = { AUDIT_FAILED },
                  .trace = "d", .left = HELD },
        };

        run_cases(*state, cases, ARRAY_SIZE(cases));
}

static void test_table(void **state)
{
        static const Case cases[] = {
                { "the share goes", HELD, .remedy = AUDIT_REMEDY_RELEASE_SHARE,
                  .outcomes = { AUDIT_HEALED }, .trace = "rd", .left = "other VCPU=1" },
                { "G2.7, G2.8: nothing of others",
                  "host VCPU=2,gpu VGPU=1,other VCPU=1,store DISK_GB=5",
                  .remedy = AUDIT_REMEDY_RELEASE_SHARE, .outcomes = { AUDIT_HEALED }, .trace = "rd",
                  .left = "other VCPU=1,store DISK_GB=5" },
                { "the pool of a consumer that names no other host", "host VCPU=2,store DISK_GB=5",
                  .remedy = AUDIT_REMEDY_RELEASE_SHARE, .outcomes = { AUDIT_HEALED }, .trace = "rd",
                  .left = "" },
                { "a claim that was made of the share keeps nothing", HELD,
                  .remedy = AUDIT_REMEDY_RELEASE_SHARE, .is_of_placement = true,
                  .outcomes = { AUDIT_HEALED }, .trace = "rd", .left = "other VCPU=1" },
                { "nothing here any more", "store DISK_GB=5", .remedy = AUDIT_REMEDY_RELEASE_SHARE,
                  .trace = "d", .left = "store DISK_GB=5" },
                { "what the claim holds, and the disk",
                  "host VCPU=1,host DISK_GB=5,store DISK_GB=2", "VCPU=2",
                  .remedy = AUDIT_REMEDY_WRITE_CLAIM, .outcomes = { AUDIT_HEALED }, .trace = "rd",
                  .left = "host DISK_GB=5,host VCPU=2,store DISK_GB=2" },
                { "issue 31: a larger amount is not lowered", "host VCPU=3,store DISK_GB=2",
                  "VCPU=2", .remedy = AUDIT_REMEDY_WRITE_CLAIM, .outcomes = { AUDIT_FAILED },
                  .trace = "d", .left = "host VCPU=3,store DISK_GB=2" },
                { "issue 31: nor one of a device", "host VCPU=1,gpu VGPU=1", "VCPU=2",
                  .remedy = AUDIT_REMEDY_WRITE_CLAIM, .outcomes = { AUDIT_FAILED }, .trace = "d",
                  .left = "host VCPU=1,gpu VGPU=1" },
                { "the amount of a pool stays", "host VCPU=1,store IPV4_ADDRESS=4",
                  "VCPU=2,IPV4_ADDRESS=2", .remedy = AUDIT_REMEDY_WRITE_CLAIM,
                  .outcomes = { AUDIT_HEALED }, .trace = "rd",
                  .left = "host VCPU=2,store IPV4_ADDRESS=4" },
                { "nothing is left: the whole claim is written", "", "VCPU=2,IPV4_ADDRESS=2",
                  .remedy = AUDIT_REMEDY_WRITE_CLAIM, .outcomes = { AUDIT_HEALED }, .trace = "rd",
                  .left = "host VCPU=2,store IPV4_ADDRESS=2" },
                { "on the other GPU", "host VCPU=2,nic VGPU=1", "VCPU=2,VGPU=1",
                  .remedy = AUDIT_REMEDY_WRITE_CLAIM, .outcomes = { AUDIT_HEALED }, .trace = "rd",
                  .left = "host VCPU=2,gpu VGPU=1" },
                { "it is so already", HELD, "VCPU=2", .remedy = AUDIT_REMEDY_WRITE_CLAIM,
                  .trace = "d", .left = HELD },
                { "the claim ended", HELD, .remedy = AUDIT_REMEDY_WRITE_CLAIM, .trace = "d",
                  .left = HELD },
                { "what is claimed is written", HELD, "VCPU=3", .remedy = AUDIT_REMEDY_WRITE_CLAIM,
                  .outcomes = { AUDIT_HEALED }, .trace = "rd", .left = "host VCPU=3,other VCPU=1" },
                { "adopted soon", HELD, .remedy = AUDIT_REMEDY_ADOPT, .outcomes = { AUDIT_HEALED },
                  .trace = "ad", .left = HELD },
                { "the operator named another consumer", HELD, .remedy = AUDIT_REMEDY_RELEASE_SHARE,
                  .only_other = true, .behind = AUDIT_REMEDY_END_CLAIM,
                  .outcomes = { AUDIT_FOUND, AUDIT_HEALED }, .trace = "ed", .left = HELD },
                { "no write is permitted", HELD, .remedy = AUDIT_REMEDY_RELEASE_SHARE,
                  .refused = "nova", .outcomes = { AUDIT_FAILED }, .trace = "d", .left = HELD },
                { "no write is permitted, but the end of a claim is", HELD,
                  .remedy = AUDIT_REMEDY_RELEASE_SHARE, .refused = "nova",
                  .behind = AUDIT_REMEDY_END_CLAIM, .outcomes = { AUDIT_FAILED, AUDIT_HEALED },
                  .trace = "ed", .left = HELD },
                { "claimed since", HELD, "VCPU=2", .remedy = AUDIT_REMEDY_RELEASE_SHARE,
                  .trace = "d", .left = HELD },
                { "being claimed", HELD, .remedy = AUDIT_REMEDY_RELEASE_SHARE, .locked = true,
                  .outcomes = { AUDIT_FAILED }, .trace = "d", .left = HELD },
                { "a conflict that was none", HELD, .remedy = AUDIT_REMEDY_RELEASE_SHARE,
                  .trouble = FAKE_TROUBLE_RACE, .outcomes = { AUDIT_HEALED }, .trace = "rd",
                  .left = "other VCPU=1" },
                { "again and again", HELD, .remedy = AUDIT_REMEDY_RELEASE_SHARE,
                  .trouble = FAKE_TROUBLE_RACE, .lasts = true, .outcomes = { AUDIT_FAILED },
                  .trace = "d", .left = HELD },
                { "sent twice", HELD, .remedy = AUDIT_REMEDY_RELEASE_SHARE,
                  .trouble = FAKE_TROUBLE_TWICE, .outcomes = { AUDIT_HEALED }, .trace = "rd",
                  .left = "other VCPU=1" },
                { "another client wrote", HELD, .remedy = AUDIT_REMEDY_RELEASE_SHARE,
                  .meanwhile = "host VCPU=4", .outcomes = { AUDIT_FAILED }, .trace = "d",
                  .left = "host VCPU=4" },
                { "another client repaired it", HELD, .remedy = AUDIT_REMEDY_RELEASE_SHARE,
                  .meanwhile = "other VCPU=4", .outcomes = { AUDIT_HEALED }, .trace = "rd",
                  .left = "other VCPU=4" },
                { "Placement is away, and is not asked again", HELD,
                  .remedy = AUDIT_REMEDY_RELEASE_SHARE, .trouble = FAKE_TROUBLE_LOST,
                  .behind = AUDIT_REMEDY_WRITE_CLAIM, .outcomes = { AUDIT_FAILED, AUDIT_FAILED },
                  .trace = "d", .left = HELD },
                { "which keeps no claim from its end", HELD, .remedy = AUDIT_REMEDY_RELEASE_SHARE,
                  .trouble = FAKE_TROUBLE_LOST, .behind = AUDIT_REMEDY_END_CLAIM,
                  .outcomes = { AUDIT_FAILED, AUDIT_HEALED }, .trace = "ed", .left = HELD },
                { "nor is what has no remedy a failure", HELD, .trouble = FAKE_TROUBLE_LOST,
                  .remedy = AUDIT_REMEDY_RELEASE_SHARE, .outcomes = { AUDIT_FAILED }, .trace = "d",
                  .left = HELD },
        };

        run_cases(*state, cases, ARRAY_SIZE(cases));
}

TEST_MAIN_AFTER(use_vfs_without_sync(), fixture_setup, fixture_teardown, test_table,
                test_ends_of_claims)
