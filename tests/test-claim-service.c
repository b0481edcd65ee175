/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/claim-service.h"

#include "tests/claims-fixture.h"
#include "tests/test.h"

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

/* As the bus does, which tells the number of claims with each change. */
static void on_claim(ClaimEvent event, const Claim *claim, void *userdata)
{
        Watcher *watcher = userdata;

        watcher->n_told++;
        assert_int_equal(claim_service_count(watcher->service), 0);
        /* whoever told goes on with what it has */
        assert_int_equal(count_set_aside(watcher->fixture), 0);
        assert_non_null(claim_service_get(watcher->service));
}

static void test_telling_closes_nothing(void **state)
{
        Fixture *fixture = *state;
        const ClaimsConfig config = {
                .path = fixture->path, .host = "host", .node = "host", .has_devices = true
        };
        const DriverConfig driver = { 0 };
        _cleanup_(claim_freep) Claim *claim = NULL;
        Watcher watcher = { .fixture = fixture };

        assert_true(fixture_open(fixture) >= 0);
        fixture_set_host(fixture, "host VCPU=8");
        assert_int_equal(fixture_claim(fixture, "guest", "VCPU=1", &claim), 0);
        fixture_close(fixture);
        assert_int_equal(claim_service_new(&watcher.service, &config, &driver), 0);
        assert_int_equal(claim_service_count(watcher.service), 1);

        claim_service_watch(watcher.service, on_claim, &watcher);
        free(run_sql(fixture->path, "ALTER TABLE claim_counts RENAME TO gone"));
        claim_service_tell(watcher.service, CLAIM_EVENT_CHANGED, claim);
        assert_int_equal(watcher.n_told, 1);
        /* the next cycle mends it */
        claim_service_tend(watcher.service);
        assert_int_equal(count_set_aside(fixture), 1);
        assert_non_null(claim_service_get(watcher.service));
        claim_service_free(watcher.service);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_telling_closes_nothing, fixture_setup,
                                                fixture_teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
