/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/guests/comparison.h"

#include "tests/fixtures/claims.h"
#include "tests/fixtures/host.h"

#define GUEST "11111111-1111-4111-8111-111111111111"

typedef struct Watcher {
        const Fixture *fixture;
        ClaimService *service;
        size_t n_told;
} Watcher;

static size_t count_set_aside(const Fixture *fixture)
{
        const char *name = strrchr(fixture->path, '/') + 1;
        char prefix[64];

        snprintf(prefix, sizeof(prefix), "%s.corrupt-", name);
        return fixture_count_files(fixture, prefix, NULL);
}

/* Counts the claims at each change, as the bus does. */
static void on_claim(ClaimEvent event, const Claim *claim, void *userdata)
{
        Watcher *watcher = userdata;

        watcher->n_told++;
        assert_int_equal(claim_service_count(watcher->service), 0);
        /* The caller of the watcher still uses its data. */
        assert_int_equal(count_set_aside(watcher->fixture), 0);
        assert_non_null(watcher->service->claims);
}

static const HostConfig driver;

static ClaimService *open_service(const Fixture *fixture)
{
        const ClaimSettings settings = { .driver = &driver };
        ClaimService *service;

        assert_int_equal(claim_service_new(&service, fixture->path, "host", &settings), 0);
        return service;
}

static void test_notify_does_not_close_the_database(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *claim = NULL;
        Watcher watcher = { .fixture = fixture };

        assert_true(fixture_open(fixture) >= 0);
        fixture_set_host(fixture, "host VCPU=8");
        assert_int_equal(fixture_claim(fixture, "guest", "VCPU=1", &claim), 0);
        fixture_close(fixture);
        watcher.service = open_service(fixture);
        assert_int_equal(claim_service_count(watcher.service), 1);

        claim_service_watch(watcher.service, on_claim, &watcher);
        free(run_sql(fixture->path, "ALTER TABLE claim_counts RENAME TO gone"));
        claim_service_notify(watcher.service, CLAIM_EVENT_CHANGED, claim);
        assert_int_equal(watcher.n_told, 1);
        /* A file of an unknown format is not damaged: it stays, and no claim can be made. */
        claim_service_tend(watcher.service);
        assert_int_equal(count_set_aside(fixture), 0);
        assert_null(watcher.service->claims);
        claim_service_free(watcher.service);
}

/* Checks the error of the service after each result of an open database. */
static void test_results(void **state)
{
        static const struct {
                int result;
                bool lost, trouble;
        } cases[] = {
                { 0, false, false },       { -EBUSY, false, false }, { -EINVAL, false, false },
                { -ENOMEM, false, false }, { -ESTALE, true, false }, { -EUCLEAN, true, false },
                { -ENOSPC, false, true },  { -EROFS, false, true },
        };
        Fixture *fixture = *state;

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                ClaimService *service = open_service(fixture);
                uint64_t built_usec = service->built_usec;

                assert_int_equal(unlink(fixture->path), 0);
                claim_service_note(service, cases[i].result, &ERROR_NULL);
                if ((service->built_usec != built_usec) != cases[i].lost ||
                    (service->error.code != 0) != cases[i].trouble)
                        fail_msg("case %zu: \"%s\"", i, service->error.text);
                /* Each cycle tries a write. The first one finds that the file is gone, the second
                 * one creates it. */
                claim_service_tend(service);
                claim_service_tend(service);
                assert_int_equal(service->error.code, 0);
                claim_service_free(service);
        }
}

static void test_database_folder_is_missing(void **state)
{
        const Fixture fixture = { .path = (char *)"/nonexistent/claims" };
        ClaimService *service = open_service(&fixture);

        assert_null(service->claims);
        assert_int_equal(service->error.code, ENOENT);
        claim_service_tend(service);
        assert_int_equal(service->error.code, ENOENT);
        claim_service_free(service);
}

static Snapshot *poll_guest(const char *state)
{
        _cleanup_free_ char *domain = text_format("\"domains\": [{\"uuid\": \"" GUEST
                                                  "\", \"name\": \"g\", \"state\": \"%s\"}]",
                                                  state);

        return host_new(state ? domain : "");
}

/* Checks whether the consumer has a guest that would get a claim. The agent must keep the
 * allocations of such a guest. */
static void test_has_guest(void **state)
{
        static const struct {
                const char *state; /* NULL: there is no guest */
                bool started_only, away, stops, has;
        } cases[] = {
                { NULL, false, false, false, false },     { "running", false, false, false, true },
                { "shutoff", false, false, false, true }, { "shutoff", true, false, false, false },
                { "shutoff", false, true, false, false }, { "running", true, true, false, true },
                { "running", true, false, true, false },
        };
        Uuid guest = UUID_NULL;

        assert_int_equal(uuid_from_text(GUEST, &guest), 0);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(snapshot_unrefp) Snapshot *snapshot = poll_guest(cases[i].state);
                ClaimService *service = open_service(*state);
                const ClaimSettings settings = { .driver = &driver,
                                                 .started_only = cases[i].started_only };
                Uuid *away = calloc(1, sizeof(Uuid));

                away[0] = guest;
                claim_service_set_snapshot(service, snapshot, NULL);
                claim_service_set(service, &settings);
                claim_service_set_away(service, away, cases[i].away);
                if (cases[i].stops)
                        claim_service_note_stopped(service, &guest);
                if (claim_service_has_guest(service, &guest) != cases[i].has)
                        fail_msg("case %zu", i);
                claim_service_free(service);
        }
}

/* A guest that another host had can come back while it is off. A poll that shows it running, or
 * not at all, ends the knowledge of an audit. */
static void test_a_guest_that_was_away_comes_back(void **state)
{
        static const struct {
                const char
                        *between; /* state of the guest in another poll; NULL: it is not defined */
                bool unknown;     /* the other poll does not know the guests */
                bool has;
        } cases[] = { { "shutoff", .has = false },
                      { NULL, .has = true },
                      { NULL, .unknown = true },
                      { "running", .has = true } };
        Uuid guest = UUID_NULL;

        assert_int_equal(uuid_from_text(GUEST, &guest), 0);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(snapshot_unrefp) Snapshot *first = poll_guest("shutoff"),
                                                    *between = poll_guest(cases[i].between),
                                                    *last = poll_guest("shutoff");
                ClaimService *service = open_service(*state);
                Uuid *away = calloc(1, sizeof(Uuid));

                away[0] = guest;
                claim_service_set_snapshot(service, first, NULL);
                claim_service_set_away(service, away, 1);
                assert_false(claim_service_has_guest(service, &guest));
                between->guests_unknown = cases[i].unknown;
                claim_service_set_snapshot(service, between, NULL);
                claim_service_set_snapshot(service, last, NULL);
                if (claim_service_has_guest(service, &guest) != cases[i].has)
                        fail_msg("case %zu", i);
                claim_service_free(service);
        }
}

/* An open database keeps its file. Otherwise a new one would be created beside the removed one. */
static void test_changed_expiry_keeps_the_database_open(void **state)
{
        const Fixture *fixture = *state;
        const ClaimSettings settings = { .driver = &driver, .expiry_usec = 77 };
        ClaimService *service = open_service(fixture);

        assert_int_equal(unlink(fixture->path), 0);
        claim_service_set(service, &settings);
        assert_non_null(service->claims);
        assert_int_not_equal(access(fixture->path, F_OK), 0);
        claim_service_free(service);
}

static void test_consumer_is_locked_once(void **state)
{
        const Uuid a = make_uuid("a"), b = make_uuid("b");
        ClaimService *service = open_service(*state);

        assert_true(claim_service_lock_consumer(service, &a));
        assert_true(claim_service_lock_consumer(service, &b));
        assert_false(claim_service_lock_consumer(service, &a));
        claim_service_unlock_consumer(service, &a);
        assert_false(claim_service_lock_consumer(service, &b));
        assert_true(claim_service_lock_consumer(service, &a));
        claim_service_free(service);
}

TEST_MAIN_WITH(fixture_setup, fixture_teardown, test_notify_does_not_close_the_database,
               test_results, test_database_folder_is_missing, test_has_guest,
               test_a_guest_that_was_away_comes_back, test_changed_expiry_keeps_the_database_open,
               test_consumer_is_locked_once)
