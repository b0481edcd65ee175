/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests that claims of a real database follow a reshape. The driver moves VGPU from the root to
 * gpu1. */

#include "agent/reshape/claim-move.h"

#include "base/log.h"
#include "drivers/update.h"
#include "tests/fixtures/claims.h"

#define BEFORE "host VCPU=8 VGPU=4"
#define AFTER  "host VCPU=8; gpu1<host VGPU=4; gpu2<host VGPU=4"

static Fixture *fixture;
static size_t n_updates;
static int checked;

int provider_update(const HostConfig *config, const Snapshot *snapshot, const DeviceFacts *known,
                    ProviderTree *tree, const char *nodename, DriverReshape *reshape, Error *reterr)
{
        const Uuid host = make_uuid("host"), gpu = make_uuid("gpu1");

        n_updates++;
        for (size_t i = 0; i < reshape->consumers->n_consumers; i++) {
                Consumer *consumer = reshape->consumers->consumers[i];
                uint64_t amount = consumer_get(consumer, &host, "VGPU"),
                         cpus = consumer_get(consumer, &host, "VCPU");

                if (amount == 0)
                        continue;
                consumer_clear(consumer);
                assert_int_equal(consumer_add(consumer, &gpu, "VGPU", amount), 0);
                if (cpus > 0)
                        assert_int_equal(consumer_add(consumer, &host, "VCPU", cpus), 0);
        }
        return DRIVER_UPDATED;
}

void claim_service_check(ClaimService *service, int r)
{
        checked = r;
}

/* Sets the allocations of the consumer "web" in Placement before and after the reshape. NULL: the
 * reshape did not move the consumer. */
static void set_image(ReshapeImage *image, const char *before, const char *after)
{
        const char *const texts[] = { before, after };
        ReshapeShape *shapes[] = { &image->before, &image->after };

        for (size_t i = 0; before && i < ARRAY_SIZE(texts); i++) {
                Consumer *holding = make_holding("web", texts[i]), *consumer;

                assert_int_equal(allocations_new(&shapes[i]->consumers), 0);
                assert_int_equal(
                        allocations_ensure(shapes[i]->consumers, &holding->uuid, &consumer), 0);
                assert_int_equal(
                        consumer_set_all(consumer, holding->allocations, holding->n_allocations),
                        0);
                consumer_free(holding);
        }
}

static char *describe_web(void)
{
        _cleanup_(claim_freep) Claim *claim = NULL;
        const Uuid web = make_uuid("web");

        assert_int_equal(claims_find(fixture->claims, &web, false, &claim, NULL), 0);
        return format_claim(claim);
}

static void test_claims_follow(void **state)
{
        static const struct {
                const char *about, *request, *tree, *before, *after, *expected;
                size_t n_updates;
        } rows[] = {
                { "nothing moved", "VCPU=2", AFTER, NULL, NULL, "VCPU=2 on host", 0 },
                { "the same shape", "VGPU=1", BEFORE, NULL, NULL, "VGPU=1 on host", 0 },
                { "by the rules of the driver", "VGPU=1", AFTER, NULL, NULL, "VGPU=1 on gpu1", 1 },
                { "as its consumer in Placement", "VGPU=1", AFTER, "host VGPU=1", "gpu2 VGPU=1",
                  "VGPU=1 on gpu2", 1 },
                { "its consumer held something else", "VGPU=1", AFTER, "host VGPU=2", "gpu2 VGPU=2",
                  "VGPU=1 on gpu1", 1 },
        };
        static const HostConfig config;
        const TreeMaker maker = { .config = &config,
                                  .root = make_uuid("host"),
                                  .nodename = "host" };

        log_set_level(LOG_EMERG);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(provider_tree_freep) ProviderTree *tree = make_tree(rows[i].tree);
                _cleanup_(reshape_image_done) ReshapeImage image = { 0 };
                _cleanup_free_ char *text = NULL;
                void *own = NULL;
                const Snapshot host = { 0 };

                assert_int_equal(fixture_setup(&own), 0);
                fixture = own;
                fixture_create(fixture, BEFORE);
                assert_int_equal(fixture_claim(fixture, "web", rows[i].request, NULL), 0);
                set_image(&image, rows[i].before, rows[i].after);
                n_updates = 0;
                checked = -1;
                claim_move_follow(&(ClaimService){ .claims = fixture->claims }, &maker, &host, tree,
                                  &image, true);
                assert_int_equal(checked, 0);
                text = describe_web();
                if (strcmp(text, rows[i].expected) != 0 || n_updates != rows[i].n_updates)
                        fail_msg("%s: %s, %zu", rows[i].about, text, n_updates);
                assert_store_sane(fixture->path);
                assert_int_equal(fixture_teardown(&own), 0);
        }
}

/* The tree has the shape of an earlier reshape, and the configuration needs another one. Only
 * claims whose consumers were moved follow. A claim never loses an amount to a provider that is not
 * there.
 */
static void test_a_claim_stays_until_the_tree_has_its_provider(void **state)
{
        static const struct {
                const char *about, *tree, *after; /* after: NULL: Placement moved no consumer */
                bool is_final;
                const char *expected;
                size_t n_updates;
        } rows[] = {
                { "the rules lead to another tree", "host VCPU=8; other<host VGPU=4", NULL, true,
                  "VCPU=2 on host, VGPU=1 on host", 1 },
                { "the rules lead to another class", "host VCPU=8; gpu1<host CUSTOM_SLICE=4", NULL,
                  true, "VCPU=2 on host, VGPU=1 on host", 1 },
                { "another reshape is needed", AFTER, NULL, false, "VCPU=2 on host, VGPU=1 on host",
                  0 },
                { "as its consumer in Placement", AFTER, "host VCPU=2; gpu2 VGPU=1", false,
                  "VGPU=1 on gpu2, VCPU=2 on host", 0 },
                { "its consumer moved to a provider that is gone", "host VCPU=8; gpu1<host VGPU=4",
                  "host VCPU=2; gpu2 VGPU=1", false, "VCPU=2 on host, VGPU=1 on host", 0 },
        };
        static const HostConfig config;
        const TreeMaker maker = { .config = &config,
                                  .root = make_uuid("host"),
                                  .nodename = "host" };

        log_set_level(LOG_EMERG);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(provider_tree_freep) ProviderTree *tree = make_tree(rows[i].tree);
                _cleanup_(reshape_image_done) ReshapeImage image = { 0 };
                _cleanup_free_ char *text = NULL;
                void *own = NULL;
                const Snapshot host = { 0 };

                assert_int_equal(fixture_setup(&own), 0);
                fixture = own;
                fixture_create(fixture, BEFORE);
                assert_int_equal(fixture_claim(fixture, "web", "VCPU=2,VGPU=1", NULL), 0);
                set_image(&image, rows[i].after ? "host VCPU=2; host VGPU=1" : NULL, rows[i].after);
                n_updates = 0;
                assert_true(claim_move_follow(&(ClaimService){ .claims = fixture->claims }, &maker,
                                              &host, tree, &image, rows[i].is_final));
                text = describe_web();
                if (strcmp(text, rows[i].expected) != 0 || n_updates != rows[i].n_updates)
                        fail_msg("%s: %s, %zu", rows[i].about, text, n_updates);
                assert_store_sane(fixture->path);
                assert_int_equal(fixture_teardown(&own), 0);
        }
}

/* The claim follows an undo, although the database has the old shape already, so that the driver
 * would move the claim again. */
static void test_a_claim_follows_an_undo(void **state)
{
        static const HostConfig config;
        const TreeMaker maker = { .config = &config,
                                  .root = make_uuid("host"),
                                  .nodename = "host" };
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_tree(BEFORE);
        _cleanup_(reshape_image_done) ReshapeImage image = { 0 };
        _cleanup_free_ char *text = NULL;
        void *own = NULL;
        const Snapshot host = { 0 };

        log_set_level(LOG_EMERG);
        assert_int_equal(fixture_setup(&own), 0);
        fixture = own;
        fixture_create(fixture, "host VCPU=8; gpu1<host VGPU=4");
        assert_int_equal(fixture_claim(fixture, "web", "VGPU=1", NULL), 0);
        fixture_set_host(fixture, BEFORE);
        set_image(&image, "gpu1 VGPU=1", "host VGPU=1");
        n_updates = 0;
        assert_true(claim_move_follow(&(ClaimService){ .claims = fixture->claims }, &maker, &host,
                                      tree, &image, true));
        assert_int_equal(n_updates, 1);
        text = describe_web();
        assert_string_equal(text, "VGPU=1 on host");
        assert_store_sane(fixture->path);
        assert_int_equal(fixture_teardown(&own), 0);
}

/* The database forgets what it knows about Placement's allocations only if a reshape wrote them, or
 * if a claim moves. Claims of a provider that is gone from the host do not move. */
static void test_only_a_move_forgets_the_allocations_in_placement(void **state)
{
        static const struct {
                const char *about, *host, *request, *tree;
                bool reshaped, was_read;
                size_t n_updates;
        } rows[] = {
                { "a claim moves", BEFORE, "VGPU=1", AFTER, false, false, 1 },
                { "a reshape of consumers", BEFORE, "VCPU=1", BEFORE, true, false, 0 },
                { "nothing moves", BEFORE, "VCPU=1", AFTER, false, true, 0 },
                { "a pool is gone", "host VCPU=8 @a; pool DISK_GB=9 +MISC_SHARES_VIA_AGGREGATE @a",
                  "DISK_GB=1", "host VCPU=8", false, true, 0 },
                { "a device is gone", "host VCPU=8; card<host CUSTOM_CARD=1", "CUSTOM_CARD=1",
                  "host VCPU=8", false, true, 1 },
        };
        static const HostConfig config;
        const TreeMaker maker = { .config = &config,
                                  .root = make_uuid("host"),
                                  .nodename = "host" };
        const ClaimPlacing placing = {
                .write_state = CLAIM_WRITE_WRITTEN,
                .reported = { .generation = 1, .elsewhere = make_uuid("other"), .until_sec = 1 }
        };
        const Uuid web = make_uuid("web");

        log_set_level(LOG_EMERG);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                _cleanup_(provider_tree_freep) ProviderTree *tree = make_tree(rows[i].tree);
                _cleanup_(reshape_image_done) ReshapeImage image = { 0 };
                _cleanup_(claim_freep) Claim *claim = NULL;
                void *own = NULL;
                const Snapshot host = { 0 };

                assert_int_equal(fixture_setup(&own), 0);
                fixture = own;
                fixture_create(fixture, rows[i].host);
                assert_int_equal(
                        fixture_claim_placed(fixture, "web", rows[i].request, &placing, NULL), 0);
                set_image(&image, rows[i].reshaped ? "host VCPU=1" : NULL, "host VCPU=1");
                n_updates = 0;
                assert_true(claim_move_follow(&(ClaimService){ .claims = fixture->claims }, &maker,
                                              &host, tree, &image, true));
                assert_int_equal(claims_find(fixture->claims, &web, false, &claim, NULL), 0);
                if (claim->was_read != rows[i].was_read || n_updates != rows[i].n_updates)
                        fail_msg("%s: %d, %zu", rows[i].about, claim->was_read, n_updates);
                assert_store_sane(fixture->path);
                assert_int_equal(fixture_teardown(&own), 0);
        }
}

TEST_MAIN(test_claims_follow, test_a_claim_stays_until_the_tree_has_its_provider,
          test_a_claim_follows_an_undo, test_only_a_move_forgets_the_allocations_in_placement)
