/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "claims/claims.h"

#include <inttypes.h>

#include "tests/fixtures/claims.h"
#include "tests/unit/test.h"

#define HOST                                                                          \
        "host VCPU=8 MEMORY_MB=1024 VGPU=4; cell_0<host PCPU=4 VCPU=4 MEMORY_MB=512;" \
        "cell_1<host PCPU=4 VCPU=4 MEMORY_MB=512; gpu_a<host VGPU=4 CUSTOM_SLICE=4;"  \
        "gpu_b<host VGPU=4"

static const char *name_of(const Uuid *provider)
{
        static const char *const names[] = { "host", "cell_0", "cell_1", "gpu_a", "gpu_b" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                Uuid uuid = make_uuid(names[i]);

                if (uuid_equal(&uuid, provider))
                        return names[i];
        }
        return "?";
}

static void format_moves(const StoreShift *moves, size_t n_moves, char *text, size_t size)
{
        size_t n = 0;

        text[0] = '\0';
        for (size_t i = 0; i < n_moves; i++)
                n += (size_t)snprintf(text + n, size - n, "%s%" PRIu64 " %s %s>%s %s",
                                      i > 0 ? ", " : "", moves[i].amount, name_of(&moves[i].from),
                                      moves[i].from_class, name_of(&moves[i].to),
                                      moves[i].to_class);
}

static void test_moves_between_two_trees(void **state)
{
        static const struct {
                const char *before, *after, *moves;
        } cases[] = {
                { "host VCPU=2", "host VCPU=2", "" },
                { "host VCPU=2,MEMORY_MB=64", "cell_0 VCPU=2,MEMORY_MB=64",
                  "64 host MEMORY_MB>cell_0 MEMORY_MB, 2 host VCPU>cell_0 VCPU" },
                { "host VCPU=3", "cell_0 VCPU=2; cell_1 VCPU=1",
                  "2 host VCPU>cell_0 VCPU, 1 host VCPU>cell_1 VCPU" },
                { "cell_0 VCPU=2; cell_1 VCPU=1", "host VCPU=3",
                  "2 cell_0 VCPU>host VCPU, 1 cell_1 VCPU>host VCPU" },
                { "host VCPU=2", "host PCPU=2", "2 host VCPU>host PCPU" },
                /* within a class first, in any order */
                { "host VCPU=3", "cell_0 PCPU=2; cell_1 VCPU=1",
                  "1 host VCPU>cell_1 VCPU, 2 host VCPU>cell_0 PCPU" },
                { "gpu_a VGPU=1; host VCPU=1", "gpu_a CUSTOM_SLICE=1; host VCPU=1",
                  "1 gpu_a VGPU>gpu_a CUSTOM_SLICE" },
                /* amounts that only appeared or disappeared are no move */
                { "host VGPU=1", "gpu_a VGPU=2", "1 host VGPU>gpu_a VGPU" },
                { "host VGPU=2", "gpu_a VGPU=1", "1 host VGPU>gpu_a VGPU" },
                { "host VGPU=2", "", "" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(consumer_freep) Consumer *before = make_holding("vm", cases[i].before),
                                                   *after = make_holding("vm", cases[i].after);
                StoreShift *moves = NULL;
                size_t n_moves = 0, n_allocated = 0;
                char text[512];
                bool ok;

                assert_int_equal(
                        claims_make_shifts(1, before, after, &moves, &n_moves, &n_allocated), 0);
                format_moves(moves, n_moves, text, sizeof(text));
                /* providers are in the order of their uuids */
                ok = strlen(text) == strlen(cases[i].moves);
                for (size_t j = 0; ok && j < n_moves; j++) {
                        char one[128];

                        format_moves(&moves[j], 1, one, sizeof(one));
                        ok = strstr(cases[i].moves, one) != NULL;
                }
                if (!ok)
                        fail_msg("%s to %s: %s", cases[i].before, cases[i].after, text);
                free(moves);
        }
}

/* Makes a claim on a host that has everything on its root. */
static int set_up(void **state)
{
        if (fixture_setup(state) < 0)
                return -1;
        fixture_create(*state, "host VCPU=8 VGPU=4");
        return 0;
}

static void move(Fixture *fixture, int64_t claim, const char *before, const char *after)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_tree(HOST);
        _cleanup_(consumer_freep) Consumer *from = make_holding("vm", before),
                                           *to = make_holding("vm", after);
        StoreShift *moves = NULL;
        size_t n_moves = 0, n_allocated = 0;

        assert_int_equal(claims_make_shifts(claim, from, to, &moves, &n_moves, &n_allocated), 0);
        assert_int_equal(claims_shift(fixture->claims, tree, moves, n_moves, NULL), 0);
        free(moves);
        assert_store_sane(fixture->path);
}

static void test_allocations_follow_a_move(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *claim = NULL, *other = NULL;

        assert_int_equal(fixture_claim(fixture, "vm", "VGPU=3,VCPU=2", &claim), CLAIM_DONE);
        assert_int_equal(fixture_claim(fixture, "vm2", "VGPU=1", &other), CLAIM_DONE);
        move(fixture, claim->id, "host VGPU=3", "gpu_a VGPU=2; gpu_b VGPU=1");
        assert_int_equal(fixture_used(fixture, "host", "VGPU"), 1);
        assert_int_equal(fixture_used(fixture, "gpu_a", "VGPU"), 2);
        assert_int_equal(fixture_used(fixture, "gpu_b", "VGPU"), 1);
        /* more than the claim has left there */
        move(fixture, claim->id, "gpu_a VGPU=4", "gpu_b VGPU=4");
        assert_int_equal(fixture_used(fixture, "gpu_b", "VGPU"), 3);
        /* a claim that has ended has nothing that can be moved */
        assert_int_equal(claims_release(fixture->claims, claim->id, "", NULL), 0);
        move(fixture, claim->id, "gpu_b VGPU=3", "host VGPU=3");
        assert_int_equal(fixture_used(fixture, "gpu_b", "VGPU"), 0);
        assert_int_equal(fixture_used(fixture, "host", "VGPU"), 1);
}

/* Nothing is written, so the claim keeps its amount. */
static void test_a_move_to_an_unknown_provider_fails(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *claim = NULL;
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_tree(HOST);
        StoreShift move = { .from = make_uuid("host"),
                            .from_class = "VGPU",
                            .to = make_uuid("other"),
                            .to_class = "VGPU",
                            .amount = 1 };
        Error error = ERROR_NULL;

        assert_int_equal(fixture_claim(fixture, "vm", "VGPU=3", &claim), CLAIM_DONE);
        move.claim = claim->id;
        assert_int_equal(claims_shift(fixture->claims, tree, &move, 1, &error), -EINVAL);
        assert_text(error.text, "The host has no provider");
        assert_int_equal(fixture_used(fixture, "host", "VGPU"), 3);
        assert_store_sane(fixture->path);
}

/* Rows of devices name their provider: one on each GPU, and one of another group. */
static void test_devices_go_along(void **state)
{
        static const struct {
                const char *before, *after, *providers;
        } steps[] = {
                { "host VGPU=2", "gpu_a VGPU=1; gpu_b VGPU=1", "gpu_a gpu_b host" },
                { "gpu_a VGPU=1; gpu_b VGPU=1", "host VGPU=2", "host host host" },
                /* a move of CPUs does not move the devices */
                { "host VCPU=2", "cell_0 VCPU=2", "host host host" },
                { "host VGPU=1", "gpu_b VGPU=1", "host gpu_b host" },
                { "gpu_b VGPU=1", "gpu_a CUSTOM_SLICE=1", "host gpu_a host" },
        };
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *claim = NULL;
        Uuid host = make_uuid("host");
        char insert[512];

        assert_int_equal(fixture_claim(fixture, "vm", "VGPU=2,VCPU=2", &claim), CLAIM_DONE);
        snprintf(insert, sizeof(insert),
                 "INSERT INTO claim_devices (claim_id, provider_uuid, request_group, device,"
                 " address, mdev_type, mdev_uuid) VALUES (%1$" PRId64 ", '%2$s', '', 'gpu_a', '',"
                 " 't', '1'), (%1$" PRId64 ", '%2$s', '', 'gpu_b', '', 't', '2'),"
                 " (%1$" PRId64 ", '%2$s', '_X', 'gpu_b', '', 't', '3')",
                 claim->id, host.text);
        free(run_sql(fixture->path, insert));
        for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
                move(fixture, claim->id, steps[i].before, steps[i].after);
                assert_sql(
                        fixture->path,
                        "SELECT group_concat(p.name, ' ') FROM (SELECT * FROM claim_devices"
                        " ORDER BY mdev_uuid) d JOIN resource_providers p ON p.uuid = d.provider_uuid",
                        steps[i].providers);
        }
}

TEST_MAIN_WITH(set_up, fixture_teardown, test_moves_between_two_trees,
               test_allocations_follow_a_move, test_a_move_to_an_unknown_provider_fails,
               test_devices_go_along)
