/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/sharing.h"

#include "base/text.h"
#include "tests/fakes/session.h"
#include "tests/fixtures/tree.h"

#define AGG_A "aaaaaaaa-0000-4000-8000-000000000001"
#define AGG_B "aaaaaaaa-0000-4000-8000-000000000002"
#define POOL_AT(generation)                                                                      \
        "{'uuid':'bbbbbbbb-0000-4000-8000-000000000001','name':'pool','generation':" #generation \
        ",'parent_provider_uuid':null}"
#define POOL      POOL_AT(1)
#define POOL_PATH "/resource_providers/bbbbbbbb-0000-4000-8000-000000000001/"
#define PARTS(inventories)                                                                           \
        ANSWER(POOL_PATH "inventories", 200,                                                         \
               "{'resource_provider_generation':1,'inventories':{" inventories "}}"),                \
                ANSWER(POOL_PATH "traits", 200,                                                      \
                       "{'resource_provider_generation':1,'traits':['MISC_SHARES_VIA_AGGREGATE']}"), \
                ANSWER(POOL_PATH "aggregates", 200,                                                  \
                       "{'resource_provider_generation':1,'aggregates':['" AGG_A "']}")
#define DISK \
        "'DISK_GB':{'total':9,'reserved':0,'min_unit':1,'max_unit':9,'step_size':1,'allocation_ratio':1.0}"
#define LIST(items) "{'resource_providers':[" items "]}"
#define MINUTE      (60 * USEC_PER_SEC)

typedef struct Fixture {
        sd_event *event;
        Session *session;
        Sharing *sharing;
        unsigned n_done;
} Fixture;

static int set_up(void **state)
{
        Fixture *fixture = calloc(1, sizeof(Fixture));
        Uuid root = make_uuid("host");

        assert_non_null(fixture);
        fake_session_begin(&fixture->event, &fixture->session, 4);
        assert_int_equal(
                sharing_new(&fixture->sharing, fixture->session, &root, SHARING_USE_WITH_POOL), 0);
        *state = fixture;
        return 0;
}

static int tear_down(void **state)
{
        Fixture *fixture = *state;

        sharing_free(fixture->sharing);
        fake_session_end(fixture->event, fixture->session);
        free(fixture);
        return 0;
}

static void on_done(void *userdata)
{
        ((Fixture *)userdata)->n_done++;
}

/* Runs a refresh and returns the number of its requests. */
static size_t refresh_for(Fixture *fixture, const char *tree_text, bool waited, uint64_t now_usec)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_tree(tree_text);
        size_t before = fake_http_get_n_requests();
        int r;

        fixture->n_done = 0;
        r = sharing_refresh(fixture->sharing, tree, waited, now_usec, on_done, fixture);
        assert_true(r == 0 || r == 1);
        fake_http_wait(fixture->event, &fixture->n_done, (unsigned)r);
        return fake_http_get_n_requests() - before;
}

static size_t refresh(Fixture *fixture, const char *tree_text, uint64_t now_usec)
{
        return refresh_for(fixture, tree_text, false, now_usec);
}

/* Writes the names of the known sharing providers, for example "pool, other". */
static const char *known(const Fixture *fixture, char *text, size_t size)
{
        const ProviderTree *pools = sharing_get(fixture->sharing);

        text[0] = '\0';
        for (size_t i = 0; pools && i < pools->n_providers; i++)
                snprintf(text + strlen(text), size - strlen(text), "%s%s", i ? ", " : "",
                         pools->providers[i]->name);
        return text;
}

static void test_times_of_reads(void **state)
{
        static const struct {
                const char *tree;
                uint64_t now_usec;
                size_t n_requests;
                const char *known;
        } steps[] = {
                { "", 1000 * MINUTE, 0, "" },
                { "host | gpu<host", 1000 * MINUTE, 0, "" },
                { "host | gpu<host @" AGG_A, 1001 * MINUTE, 4, "pool" },
                /* A quiet cycle checks that the provider still exists. */
                { "host | gpu<host @" AGG_A, 1002 * MINUTE, 1, "pool" },
                { "host @" AGG_A " | gpu<host", 1006 * MINUTE, 1, "pool" },
                /* Other aggregates. A failure leaves the old result, and the next refresh reads
                 * again. */
                { "host @" AGG_B, 1007 * MINUTE, 1, "pool" },
                { "host @" AGG_B, 1008 * MINUTE, 1, "pool" },
                { "host @" AGG_B, 1009 * MINUTE, 1, "" },
                /* Without a sharing provider nothing is read until the list is old. */
                { "host @" AGG_B, 1010 * MINUTE, 0, "" },
                { "host @" AGG_B, 1014 * MINUTE, 1, "" },
                { "host @" AGG_A " | gpu<host", 1015 * MINUTE, 4, "pool" },
                { "host", 1016 * MINUTE, 0, "" },
                /* An aggregate that is no uuid is not put into a path. */
                { "host @x&y", 1017 * MINUTE, 0, "" },
        };
        Fixture *fixture = *state;
        char text[200];

        fake_http_begin(SCRIPT(ANSWER_ONCE(AGG_B, 502, "<html>"),
                               ANSWER_ONCE(AGG_B, 200, LIST("5")), ANSWER(AGG_B, 200, LIST("")),
                               ANSWER("required=MISC_SHARES_VIA_AGGREGATE&member_of=in:" AGG_A, 200,
                                      LIST(POOL)),
                               PARTS("")),
                        "host gpu");
        for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
                size_t n = refresh(fixture, steps[i].tree, steps[i].now_usec);

                if (n != steps[i].n_requests ||
                    strcmp(known(fixture, text, sizeof(text)), steps[i].known) != 0)
                        fail_msg("step %zu: %zu requests, %s", i, n, text);
        }
        assert_int_equal(fake_http_count("PUT") + fake_http_count("POST"), 0);
}

/* Facts G4.17: many aggregates need several requests. No provider occurs twice, and the tree's own
 * are skipped. */
static void test_g4_17_many_aggregates(void **state)
{
        _cleanup_free_ char *tree = NULL, *own = NULL;
        Fixture *fixture = *state;
        Uuid host = make_uuid("host");
        char text[200];
        FILE *stream;
        size_t size;

        stream = open_memstream(&tree, &size);
        fputs("host", stream);
        for (unsigned i = 0; i < 250; i++)
                fprintf(stream, " @aaaaaaaa-0000-4000-8000-%012u", i);
        assert_int_equal(fclose(stream), 0);
        own = text_format(LIST(POOL ",{'uuid':'%s','name':'host','generation':1,"
                                    "'parent_provider_uuid':null}"),
                          host.text);
        fake_http_begin(SCRIPT(ANSWER("member_of", 200, own), PARTS("")), "");
        assert_int_equal(refresh(fixture, tree, MINUTE), 6);
        assert_string_equal(known(fixture, text, sizeof(text)), "pool");
}

static void test_cancel(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_tree("host @" AGG_A);
        Fixture *fixture = *state;

        fake_http_begin(SCRIPT(ANSWER("member_of", 200, LIST(POOL)), PARTS("")), "");
        assert_int_equal(sharing_refresh(fixture->sharing, tree, false, MINUTE, on_done, fixture),
                         1);
        sharing_cancel(fixture->sharing);
        sharing_cancel(NULL);
        assert_true(sd_event_run(fixture->event, 0) >= 0);
        assert_int_equal(fixture->n_done, 0);
        assert_null(sharing_get(fixture->sharing));
        assert_int_equal(refresh(fixture, "host @" AGG_A, MINUTE), 4);
}

/* A generation changes with each allocation of the provider, so it alone is no reason to read
 * again. */
static void test_generation_alone_causes_no_read(void **state)
{
        static const struct {
                const char *list;
                bool waited, forget;
                uint64_t now_usec;
                size_t n_requests;
        } steps[] = {
                { LIST(POOL), false, false, 1 * MINUTE, 4 },
                { LIST(POOL_AT(2)), false, false, 2 * MINUTE, 1 },
                { LIST(POOL_AT(2)), true, false, 3 * MINUTE, 4 },
                { LIST(POOL_AT(2)), true, false, 4 * MINUTE, 1 },
                { LIST(POOL_AT(2)), false, false, 9 * MINUTE, 1 },
                { LIST(POOL_AT(3)), false, false, 10 * MINUTE, 4 },
                { LIST(POOL_AT(3)), false, true, 11 * MINUTE, 4 },
                { LIST(POOL_AT(3)), false, false, 12 * MINUTE, 1 },
        };
        Fixture *fixture = *state;

        for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
                size_t n;

                fake_http_begin(SCRIPT(ANSWER("member_of", 200, steps[i].list), PARTS(DISK)),
                                "host");
                if (steps[i].forget)
                        sharing_forget(fixture->sharing);
                n = refresh_for(fixture, "host @" AGG_A, steps[i].waited, steps[i].now_usec);
                if (n != steps[i].n_requests)
                        fail_msg("step %zu: %zu requests", i, n);
        }
        assert_non_null(
                provider_find_inventory(sharing_get(fixture->sharing)->providers[0], "DISK_GB"));
        assert_int_equal(sharing_get(fixture->sharing)->providers[0]->aggregates.n_items, 1);
        assert_int_equal(sharing_get(fixture->sharing)->providers[0]->traits.n_items, 1);
}

static void test_a_part_that_cannot_be_read_leaves_what_was_known(void **state)
{
        Fixture *fixture = *state;
        char text[200];

        fake_http_begin(SCRIPT(ANSWER("member_of", 200, LIST(POOL)), PARTS(DISK)), "host");
        assert_int_equal(refresh(fixture, "host @" AGG_A, MINUTE), 4);
        sharing_forget(fixture->sharing);
        fake_http_begin(SCRIPT(ANSWER("member_of", 200, LIST(POOL)),
                               ANSWER_ONCE(POOL_PATH "inventories", 200, "{'inventories':5}"),
                               PARTS("")),
                        "host");
        (void)refresh(fixture, "host @" AGG_A, 2 * MINUTE);
        assert_string_equal(known(fixture, text, sizeof(text)), "pool");
        assert_non_null(
                provider_find_inventory(sharing_get(fixture->sharing)->providers[0], "DISK_GB"));
        /* The next refresh reads again. */
        assert_int_equal(refresh(fixture, "host @" AGG_A, 3 * MINUTE), 4);
        assert_null(
                provider_find_inventory(sharing_get(fixture->sharing)->providers[0], "DISK_GB"));
}

/* A failure before the first result leaves the sharing providers unknown, and a later one does not.
 */
static void test_a_first_failure_leaves_them_unknown(void **state)
{
        static const struct {
                const char *tree;
                int list, part; /* the status of these answers */
                bool known;
        } steps[] = {
                { "host @" AGG_A, 503, 200, false },
                { "host @" AGG_A, 200, 503, false },
                { "host @" AGG_A, 200, 200, true },
                { "host @" AGG_B, 503, 200, true },
        };
        Fixture *fixture = *state;
        Uuid root = make_uuid("host");

        for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
                fake_http_begin(
                        SCRIPT(ANSWER("member_of", steps[i].list, LIST(POOL)),
                               ANSWER(POOL_PATH "inventories", steps[i].part,
                                      "{'resource_provider_generation':1,'inventories':{}}"),
                               PARTS("")),
                        "host");
                (void)refresh(fixture, steps[i].tree, (i + 1) * MINUTE);
                if (sharing_is_known(fixture->sharing) != steps[i].known)
                        fail_msg("step %zu", i);
        }
        assert_non_null(sharing_get(fixture->sharing));
        /* A tree without aggregates has none. */
        sharing_free(fixture->sharing);
        assert_int_equal(
                sharing_new(&fixture->sharing, fixture->session, &root, SHARING_USE_WITH_POOL), 0);
        assert_false(sharing_is_known(fixture->sharing));
        assert_int_equal(refresh(fixture, "host", MINUTE), 0);
        assert_true(sharing_is_known(fixture->sharing));
}

static void test_reads_of_local_disk_usage(void **state)
{
        static const struct {
                const char *tree, *inventories, *usages;
                SharingUse use;
                bool known;
                uint64_t amount;
        } cases[] = {
                { "host DISK_GB=9 @" AGG_A, DISK, "{'usages':{'DISK_GB':3}}", SHARING_USE_WITH_POOL,
                  true, 3 },
                { "host DISK_GB=9 @" AGG_A, DISK, "{'usages':{'VCPU':3}}", SHARING_USE_WITH_POOL,
                  true, 0 },
                { "host DISK_GB=9 @" AGG_A, DISK, "{'usages':{'DISK_GB':-3}}",
                  SHARING_USE_WITH_POOL, false, 0 },
                { "host DISK_GB=9 @" AGG_A, DISK, "[]", SHARING_USE_WITH_POOL, false, 0 },
                { "host DISK_GB=9 @" AGG_A, "", "{'usages':{'DISK_GB':3}}", SHARING_USE_WITH_POOL,
                  false, 0 },
                { "host VCPU=9 @" AGG_A, DISK, "{'usages':{'DISK_GB':3}}", SHARING_USE_WITH_POOL,
                  false, 0 },
                { "host DISK_GB=9 @" AGG_A, DISK, "{'usages':{'DISK_GB':3}}", SHARING_USE_NEVER,
                  false, 0 },
                { "host DISK_GB=9", "", "{'usages':{'DISK_GB':3}}", SHARING_USE_ALWAYS, true, 3 },
                { "host DISK_GB=9", "", "{'usages':{'DISK_GB':3}}", SHARING_USE_WITH_POOL, false,
                  0 },
        };
        Fixture *fixture = *state;
        Uuid root = make_uuid("host");

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                uint64_t amount = 0;
                bool is_known;

                sharing_free(fixture->sharing);
                assert_int_equal(
                        sharing_new(&fixture->sharing, fixture->session, &root, cases[i].use), 0);
                fake_http_begin(
                        SCRIPT(ANSWER("member_of", 200, LIST(POOL)),
                               ANSWER("/usages", 200, cases[i].usages),
                               ANSWER(POOL_PATH "inventories", 200,
                                      cases[i].inventories[0]
                                              ? "{'resource_provider_generation':1,'inventories':{" DISK
                                                "}}"
                                              : "{'resource_provider_generation':1,'inventories':{}}"),
                               PARTS("")),
                        "host");
                (void)refresh(fixture, cases[i].tree, MINUTE);
                is_known = sharing_get_disk_use(fixture->sharing, &amount);
                if (is_known != cases[i].known || amount != cases[i].amount)
                        fail_msg("case %zu: %d, %llu", i, is_known, (unsigned long long)amount);
        }
        /* The amount is valid for one refresh only. */
        fake_http_begin(SCRIPT(ANSWER("/usages", 500, "{}")), "host");
        (void)refresh(fixture, "host DISK_GB=9", MINUTE);
        assert_false(sharing_get_disk_use(fixture->sharing, &(uint64_t){ 0 }));
}

TEST_MAIN_WITH(set_up, tear_down, test_times_of_reads, test_g4_17_many_aggregates, test_cancel,
               test_generation_alone_causes_no_read,
               test_a_part_that_cannot_be_read_leaves_what_was_known,
               test_a_first_failure_leaves_them_unknown, test_reads_of_local_disk_usage)
