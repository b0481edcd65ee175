/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/bus/documents.h"
#include "agent/bus/methods.h"
#include "agent/cycle/partitions.h"
#include "formats/interface.h"
#include "tests/fakes/bus.h"
#include "tests/fixtures/claims.h"
#include "tests/fixtures/host-facts.h"

/* Fakes of the parts of the daemon that the documents read, linked before the library. The document
 * "audit" has one letter as its content. The document "claims" is read from a real database. */

static char audit_text; /* content of "audit"; '0': there is no document */
static unsigned n_made; /* how often "audit" was made */
static ClaimService claims;
static TrackerStatus status;

const AuditorState *auditor_get_state(const Auditor *auditor)
{
        static char text[sizeof("[\"a\"]")];
        static AuditorState audit;

        n_made++;
        snprintf(text, sizeof(text), "[\"%c\"]", audit_text);
        audit.document = audit_text == '0' ? NULL : text;
        return &audit;
}

const ReshapeState *reshape_control_get_state(const ReshapeControl *control)
{
        static const ReshapeState reshape;

        return &reshape;
}

TrackerView tracker_view(const Tracker *tracker)
{
        return (TrackerView){ .status = &status };
}

int tracker_plan(Tracker *tracker, Plan **ret, Error *reterr)
{
        return error_setf(reterr, ENODATA, "the reason");
}

void cycle_facts_look(const Tracker *tracker, const PendingWrites *pending_writes,
                      const char *pending_writes_error, CycleFacts *ret)
{
        static const ReporterStatistics statistics;
        static const Overwrites overwrites;
        static const Error no_error;

        *ret = (CycleFacts){ .status = &status,
                             .statistics = &statistics,
                             .overwrites = &overwrites,
                             .claim_error = &no_error };
}

const char *claim_queue_count_pending_writes(const ClaimQueue *queue, PendingWrites *ret)
{
        return "";
}

int partitions_describe(const ClaimService *service, json_t *array)
{
        return -ENOMEM;
}

void claim_service_check(ClaimService *service, int result)
{
}

int bus_claims_open(ClaimService *service, Claims **ret, sd_bus_error *error)
{
        *ret = service->claims;
        return *ret ? 0 : sd_bus_error_set(error, BUS_ERROR_STORE, "the reason");
}

int bus_claims_error(ClaimService *service, sd_bus_error *error, int r, const Error *words)
{
        return sd_bus_error_set(error, BUS_ERROR_STORE, words->text);
}

static FakeBus fake;
static const BusConfig config = { .claims = &claims };
static BusDocuments documents;

static int serve(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
        return bus_documents_describe(&documents, call, error);
}

static void begin(void)
{
        fake_bus_begin(&fake);
        documents = (BusDocuments){ .config = &config };
        assert_true(bus_gate_new(&documents.gate, fake.event, serve, bus_documents_is_long, NULL) >=
                    0);
        assert_true(bus_gate_attach(documents.gate, fake.bus) >= 0);
}

static void end(void)
{
        bus_gate_free(documents.gate);
        bus_documents_done(&documents);
        fake_bus_end(&fake);
}

static const FakeAnswer *describe(const char *name)
{
        sd_bus_message *m = fake_bus_new_call(&fake, ":a.1", BUS_PATH, BUS_INTERFACE, "Describe");

        assert_true(sd_bus_message_append(m, "s", name) >= 0);
        fake_bus_send(&fake, m);
        fake.n_answers = 0;
        fake_bus_run(&fake, 1, USEC_PER_SEC);
        assert_int_equal(fake.n_answers, 1);
        return &fake.answers[0];
}

/* Does the work of the signal timer. Returns true if a signal was sent. */
static bool is_signalled(void)
{
        fake.n_signals = 0;
        while (bus_documents_signal(&documents, fake.bus))
                ;
        for (int i = 0; i < 5; i++)
                (void)sd_event_run(fake.event, 0);
        return fake.n_signals > 0;
}

/* Runs one step of the test below, and writes its result. */
static void take(const char *step, char *ret)
{
        const FakeAnswer *answer;
        bool signalled;

        audit_text = step[1];
        n_made = 0;
        switch (step[0]) {
        case 'n':
                bus_documents_note(&documents, BUS_AUDIT);
                break;
        case 'r':
                answer = describe(BUS_DOCUMENT_AUDIT);
                sprintf(ret, "%c", answer->error[0] ? '0' : answer->text[2]);
                break;
        default:
                signalled = is_signalled();
                sprintf(ret, "%s%c", n_made > 0 ? "m" : "", signalled ? '+' : '-');
        }
}

/* Steps: "n" notes a change. "ra" is a read by a client, and the content is "a" if the document is
 * made. "sa" is the signal timer, with the same meaning of "a". Results: the content of each read;
 * "m" if the timer made the document; "+" if the timer sent a signal, else "-". */
static void test_signal_follows_a_read(void **state)
{
        static const struct {
                const char *about, *steps, *expected;
        } cases[] = {
                { "no client reads", "n s0 ra", "-a" },
                { "signalled once for each reading", "ra sa n n sb sb n sc rc n sd", "a-m+--cm+" },
                { "the same again is no change, the next one is", "ra n sa n sb", "am-m+" },
                { "the first reader has the old text", "ra n rb s0 n sc", "ab+m+" },
                { "there and back: the second reader is wrong", "rc n rd n sc", "cd+" },
                { "it cannot be made any more", "ra n s0 rb", "am+b" },
                { "who got none is signalled the first one", "r0 n s0 n sa", "0m-m+" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char step[3], got[32] = "";
                int n;

                begin();
                for (const char *p = cases[i].steps; sscanf(p, "%2s%n", step, &n) == 1; p += n)
                        take(step, got + strlen(got));
                if (strcmp(got, cases[i].expected) != 0)
                        fail_msg("%s: %s", cases[i].about, got);
                end();
        }
}

/* A document that is made in steps is not made for a signal. The next read after a change makes it
 * again. */
static void test_long_documents_are_given_up(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *claim = NULL;
        const ClaimPlacing local = { .write_state = CLAIM_WRITE_NONE };
        ClaimRequest request = { .consumer = make_uuid("i") };

        fixture_open(fixture);
        fixture_set_host(fixture, "host VCPU=8");
        claims.claims = fixture->claims;
        begin();
        assert_string_equal(describe(BUS_DOCUMENT_CLAIMS)->text,
                            "{\"format\":\"compute-agent-claims/1\",\"claims\":[]}");
        assert_non_null(documents.texts[BUS_CLAIMS].text);
        assert_false(is_signalled());
        make_request(&request.resources, "VCPU=2");
        assert_int_equal(claims_claim(claims.claims, &request, &local, &claim, NULL, NULL), 0);
        bus_documents_note(&documents, BUS_CLAIMS);
        assert_null(documents.texts[BUS_CLAIMS].text);
        assert_true(is_signalled());
        assert_false(is_signalled());
        (void)describe(BUS_DOCUMENT_CLAIMS);
        assert_non_null(strstr(documents.texts[BUS_CLAIMS].text, claim->consumer.text));
        (void)describe(BUS_DOCUMENT_EVENTS);
        assert_non_null(strstr(documents.texts[BUS_EVENTS].text, claim->consumer.text));
        assert_string_equal(describe(BUS_DOCUMENT_HISTORY)->text,
                            "{\"format\":\"compute-agent-claims/1\",\"claims\":[]}");
        end();
        resource_request_done(&request.resources);
        fixture_close(fixture);
        claims.claims = NULL;
}

/* The documents with claims and events have names of guests, which come from the facts. */
static void test_new_facts_change_the_long_documents(void **state)
{
        static const BusDocument of_facts[] = { BUS_CLAIMS, BUS_HISTORY, BUS_EVENTS };
        static const char *const names[] = { BUS_DOCUMENT_CLAIMS, BUS_DOCUMENT_HISTORY,
                                             BUS_DOCUMENT_EVENTS };
        Fixture *fixture = *state;
        FactsFixture guests;

        fixture_create(fixture, "host VCPU=8");
        make_facts(&guests);
        claims.claims = fixture->claims;
        claims.facts = &guests.facts;
        begin();
        status.n_cycles++;
        for (size_t i = 0; i < ARRAY_SIZE(of_facts); i++)
                (void)describe(names[i]);
        facts_guest(&guests, 'g', "");
        status.n_cycles++;
        bus_documents_look(&documents);
        for (size_t i = 0; i < ARRAY_SIZE(of_facts); i++)
                assert_null(documents.texts[of_facts[i]].text);
        end();
        claims.facts = NULL;
        claims.claims = NULL;
        fixture_close(fixture);
}

static void test_unreadable_parts(void **state)
{
        static const struct {
                const char *name, *error;
        } cases[] = {
                { "x", BUS_ERROR_INVALID },
                { BUS_DOCUMENT_TREE, BUS_ERROR_NOT_READY },
                { BUS_DOCUMENT_HOST, BUS_ERROR_NOT_READY },
                { BUS_DOCUMENT_PLAN, BUS_ERROR_NOT_READY },
                { BUS_DOCUMENT_RESHAPE, BUS_ERROR_NOT_READY },
                { BUS_DOCUMENT_STATUS, SD_BUS_ERROR_NO_MEMORY },
                { BUS_DOCUMENT_CLAIMS, BUS_ERROR_STORE },
                { BUS_DOCUMENT_PROBLEMS, "" },
        };

        begin();
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                assert_string_equal(describe(cases[i].name)->error, cases[i].error);
        end();
}

TEST_MAIN_WITH(fixture_setup, fixture_teardown, test_signal_follows_a_read,
               test_long_documents_are_given_up, test_new_facts_change_the_long_documents,
               test_unreadable_parts)
