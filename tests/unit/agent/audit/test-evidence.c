/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests the evidence that the server of a consumer without claim and guest is alive, or that it
 * ended. */

#include "agent/audit/evidence.h"
#include "tests/fixtures/audit.h"

#define HELD  "VCPU=2@host MEMORY_MB=512@host"
#define GRACE (300 * USEC_PER_SEC)
#define NOW   (100000 * USEC_PER_SEC)
#define READ  UINT64_C(5000) /* time of the read by Placement's clock, in seconds */

typedef struct Case {
        const char *about;
        AuditServerState server;
        const char *words;
        const char *kind, *author, *reason; /* newest event of the consumer; kind NULL: none */
        uint64_t ended_sec;                 /* seconds since that event */
        uint64_t written_sec;               /* seconds since the write of the allocation */
        const char *newer;                  /* kind of an event after that; NULL: none */
        const char *folders_unknown;
        const char *migration; /* project of a migration here; NULL: none */
        bool folder, no_clock, no_modified, is_migration;
} Case;

#define EVENT(k, a, r)      .kind = (k), .author = (a), .reason = (r)
#define RELEASED_BY_CALLER  EVENT(EVENT_RELEASED, "root (computectl)", "deleted")
#define AGO(ended, written) .ended_sec = (ended), .written_sec = (written)

static const Case cases[] = {
        { "no record", AUDIT_SERVER_UNKNOWN, "no record", .written_sec = 4000 },
        { "released by a caller", AUDIT_SERVER_ENDED,
          "claim 5 was released at 1970-01-02 03:40:00 UTC by root (computectl) (deleted)",
          RELEASED_BY_CALLER, AGO(400, 4000) },
        { "its guest was gone", AUDIT_SERVER_ENDED, "(orphan: its guest is gone)",
          EVENT(EVENT_RELEASED, "", CLAIM_ORPHAN), AGO(400, 4000) },
        { "not confirmed in time: a slow build", AUDIT_SERVER_UNKNOWN, "no record",
          EVENT(EVENT_EXPIRED, "", CLAIM_EXPIRED), AGO(400, 4000) },
        { "expired, and Placement held nothing then", AUDIT_SERVER_UNKNOWN, "no record",
          EVENT(EVENT_RELEASED, "", CLAIM_EXPIRED), AGO(400, 4000) },
        { "claimed again after a resize", AUDIT_SERVER_UNKNOWN, "no record",
          EVENT(EVENT_RELEASED, "", CLAIM_RESIZED), AGO(400, 4000) },
        { "evacuated: it can come back", AUDIT_SERVER_UNKNOWN, "no record",
          EVENT(EVENT_RELEASED, "", "evacuated"), AGO(400, 4000) },
        { "claimed again since", AUDIT_SERVER_UNKNOWN, "no record", RELEASED_BY_CALLER,
          AGO(400, 4000), EVENT_CLAIMED },
        { "placed again since: unshelved, or built again", AUDIT_SERVER_UNKNOWN,
          "written after its claim ended", RELEASED_BY_CALLER, AGO(4000, 400) },
        { "times of Placement are whole seconds", AUDIT_SERVER_UNKNOWN,
          "written after its claim ended", RELEASED_BY_CALLER, AGO(400, 401) },
        { "written just before the end", AUDIT_SERVER_ENDED, "claim 5", RELEASED_BY_CALLER,
          AGO(400, 402) },
        { "written a moment ago", AUDIT_SERVER_ALIVE, "a moment ago", RELEASED_BY_CALLER,
          AGO(100, 299) },
        { "the folder of the server", AUDIT_SERVER_ALIVE, "has its folder", RELEASED_BY_CALLER,
          AGO(400, 4000), .folder = true },
        { "folders that cannot be read", AUDIT_SERVER_UNKNOWN, "it hangs", RELEASED_BY_CALLER,
          AGO(400, 4000), .folders_unknown = "it hangs" },
        { "a migration of its owner", AUDIT_SERVER_ALIVE, "a migration of its project",
          RELEASED_BY_CALLER, AGO(400, 4000), .migration = "p" },
        { "a migration of another project", AUDIT_SERVER_ENDED, "claim 5", RELEASED_BY_CALLER,
          AGO(400, 4000), .migration = "q" },
        { "a migration is not its own", AUDIT_SERVER_ENDED, "claim 5", RELEASED_BY_CALLER,
          AGO(400, 4000), .migration = "p", .is_migration = true },
        { "Placement's clock is not known", AUDIT_SERVER_UNKNOWN, "does not say when",
          RELEASED_BY_CALLER, AGO(400, 4000), .no_clock = true },
        { "a Placement without last-modified", AUDIT_SERVER_UNKNOWN, "does not say when",
          RELEASED_BY_CALLER, AGO(400, 4000), .no_modified = true },
        { "this host's clock was set back", AUDIT_SERVER_UNKNOWN, "written after",
          RELEASED_BY_CALLER, AGO(UINT64_MAX, 4000) },
};

static void add_event(EventList *history, const char *kind, const Case *row)
{
        uint64_t usec =
                row->ended_sec == UINT64_MAX ? NOW + 1 : NOW - row->ended_sec * USEC_PER_SEC;
        Event *event;

        assert_int_equal(event_list_add(history, &event), 0);
        *event = (Event){ .usec = usec,
                          .claim = 5,
                          .kind = strdup(kind),
                          .author = strdup(row->author),
                          .consumer = strdup(make_guest('g').text),
                          .reason = strdup(row->reason) };
}

static Consumer *make_consumer(Allocations *consumers, const Case *row)
{
        Consumer *consumer =
                audit_consumer(consumers, 'g', row->is_migration ? "MIGRATION" : "INSTANCE", HELD);

        consumer->modified_sec = row->no_modified ? 0 : READ - row->written_sec;
        return consumer;
}

static void add_migration(Allocations *consumers, const char *project)
{
        Consumer *consumer = audit_consumer(consumers, 'm', "MIGRATION", HELD);

        free(consumer->project_id);
        consumer->project_id = strdup(project);
}

static void check(const Case *row, const AuditInput *input, const Consumer *consumer)
{
        char text[AUDIT_EVIDENCE_SIZE] = "";
        AuditEvidence evidence = { .input = input };
        AuditServerState server;

        assert_int_equal(audit_evidence_step(&evidence, SIZE_MAX), 0);
        server = audit_judge_server(&evidence, consumer, text);
        audit_evidence_done(&evidence);
        if (server != row->server || !strstr(text, row->words))
                fail_msg("%s: %d \"%s\"", row->about, server, text);
        if (server == AUDIT_SERVER_UNKNOWN && !strstr(text, "computectl heal 4444"))
                fail_msg("%s: no advice: \"%s\"", row->about, text);
}

static void test_table(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const Case *row = &cases[i];
                const Uuid folder = make_guest('g');
                EventList history = { 0 };
                ClaimList claims = { 0 };
                ProviderTree *tree = make_tree("host VCPU=8 MEMORY_MB=4096");
                Allocations *consumers;
                FactsFixture facts;
                AuditInput input;

                assert_int_equal(allocations_new(&consumers), 0);
                make_facts(&facts);
                facts.facts.folders = &folder;
                facts.facts.n_folders = row->folder;
                facts.facts.folders_unknown = row->folders_unknown;
                if (row->newer)
                        add_event(&history, row->newer, row);
                if (row->kind)
                        add_event(&history, row->kind, row);
                if (row->migration)
                        add_migration(consumers, row->migration);
                input = (AuditInput){ .consumers = consumers,
                                      .tree = tree,
                                      .root = make_uuid("host"),
                                      .claims = &claims,
                                      .history = &history,
                                      .facts = &facts.facts,
                                      .now_usec = NOW,
                                      .placement_sec = row->no_clock ? 0 : READ,
                                      .grace_usec = GRACE };
                check(row, &input, make_consumer(consumers, row));
                event_list_done(&history);
                allocations_free(consumers);
                provider_tree_free(tree);
        }
}

TEST_MAIN(test_table)
