/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/sharing.h"

#include "base/text.h"
#include "tests/fakes/session.h"
#include "tests/fixtures/tree.h"

#define AGG_A "aaaaaaaa-0000-4000-8000-000000000001"
#define AGG_B "aaaaaaaa-0000-4000-8000-000000000002"
#define POOL                                                                           \
        "{'uuid':'bbbbbbbb-0000-4000-8000-000000000001','name':'pool','generation':1," \
        "'parent_provider_uuid':null}"
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

        assert_non_null(fixture);
        fake_session_begin(&fixture->event, &fixture->session, 4);
        assert_int_equal(sharing_new(&fixture->sharing, fixture->session), 0);
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

/* Returns how many requests it took. */
static size_t refresh(Fixture *fixture, const char *tree_text, uint64_t now_usec)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_tree(tree_text);
        size_t before = fake_http_get_n_requests();
        int r;

        fixture->n_done = 0;
        r = sharing_refresh(fixture->sharing, tree, now_usec, on_done, fixture);
        assert_true(r == 0 || r == 1);
        fake_http_wait(fixture->event, &fixture->n_done, (unsigned)r);
        return fake_http_get_n_requests() - before;
}

/* "pool, other" */
static const char *known(const Fixture *fixture, char *text, size_t size)
{
        const PlacementProviders *providers = sharing_get(fixture->sharing);

        text[0] = '\0';
        for (size_t i = 0; i < providers->n_items; i++)
                snprintf(text + strlen(text), size - strlen(text), "%s%s", i ? ", " : "",
                         providers->items[i].name);
        return text;
}

static void test_when_it_asks(void **state)
{
        static const struct {
                const char *tree;
                uint64_t now_usec;
                size_t n_requests;
                const char *known;
        } steps[] = {
                { "", 1000 * MINUTE, 0, "" },
                { "host | gpu<host", 1000 * MINUTE, 0, "" },
                { "host | gpu<host @" AGG_A, 1001 * MINUTE, 1, "pool" },
                /* a quiet cycle */
                { "host | gpu<host @" AGG_A, 1002 * MINUTE, 0, "pool" },
                { "host @" AGG_A " | gpu<host", 1005 * MINUTE, 0, "pool" },
                /* somebody may have come to share */
                { "host | gpu<host @" AGG_A, 1006 * MINUTE, 1, "pool" },
                /* other aggregates; what fails leaves what was known, and is tried again */
                { "host @" AGG_B, 1007 * MINUTE, 1, "pool" },
                { "host @" AGG_B, 1008 * MINUTE, 1, "pool" },
                { "host @" AGG_B, 1009 * MINUTE, 1, "" },
                { "host @" AGG_B, 1010 * MINUTE, 0, "" },
                { "host @" AGG_A " | gpu<host", 1011 * MINUTE, 1, "pool" },
                { "host", 1012 * MINUTE, 0, "" },
                /* what is no uuid belongs into no path */
                { "host @x&y", 1013 * MINUTE, 0, "" },
        };
        Fixture *fixture = *state;
        char text[200];

        fake_http_begin(SCRIPT(ANSWER_ONCE(AGG_B, 502, "<html>"),
                               ANSWER_ONCE(AGG_B, 200, LIST("5")), ANSWER(AGG_B, 200, LIST("")),
                               ANSWER("required=MISC_SHARES_VIA_AGGREGATE&member_of=in:" AGG_A, 200,
                                      LIST(POOL))),
                        "host gpu");
        for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
                size_t n = refresh(fixture, steps[i].tree, steps[i].now_usec);

                if (n != steps[i].n_requests ||
                    strcmp(known(fixture, text, sizeof(text)), steps[i].known) != 0)
                        fail_msg("step %zu: %zu requests, %s", i, n, text);
        }
        assert_int_equal(fake_http_count("PUT") + fake_http_count("POST"), 0);
}

/* Facts G4.17: many aggregates go into several requests; nobody comes twice, nor the tree's own. */
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
        fake_http_begin(SCRIPT(ANSWER("member_of", 200, own)), "");
        assert_int_equal(refresh(fixture, tree, MINUTE), 3);
        assert_string_equal(known(fixture, text, sizeof(text)), "pool");
        assert_int_equal(fake_http_get_max_parallel(), 1);
}

static void test_cancel(void **state)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_tree("host @" AGG_A);
        Fixture *fixture = *state;

        fake_http_begin(SCRIPT(ANSWER("member_of", 200, LIST(POOL))), "");
        assert_int_equal(sharing_refresh(fixture->sharing, tree, MINUTE, on_done, fixture), 1);
        sharing_cancel(fixture->sharing);
        sharing_cancel(NULL);
        assert_true(sd_event_run(fixture->event, 0) >= 0);
        assert_int_equal(fixture->n_done, 0);
        assert_int_equal(sharing_get(fixture->sharing)->n_items, 0);
        assert_int_equal(refresh(fixture, "host @" AGG_A, MINUTE), 1);
}

TEST_MAIN_WITH(set_up, tear_down, test_when_it_asks, test_g4_17_many_aggregates, test_cancel)
