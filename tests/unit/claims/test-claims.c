/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <time.h>

#include "base/clock.h"
#include "tests/fixtures/claims.h"
#include "tests/unit/test.h"

#define HOST                                                      \
        "host VCPU=8/0/1/8/1/2 MEMORY_MB=1024 DISK_GB=100 +HW_X;" \
        "gpu_a<host VGPU=4 +NVIDIA; gpu_b<host VGPU=2 +NVIDIA"

static int open_host(void **state)
{
        Fixture *fixture;

        if (fixture_setup(state) < 0)
                return -1;
        fixture = *state;
        fixture_create(fixture, HOST);
        return 0;
}

static void assert_holds(const Claim *claim, const char *expected)
{
        _cleanup_free_ char *text = format_claim(claim);

        assert_string_equal(text, expected);
}

static void test_claim(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *claim = NULL, *again = NULL;
        uint64_t before = clock_usec(CLOCK_REALTIME);

        assert_int_equal(
                fixture_claim(fixture, "vm", "VCPU=2,MEMORY_MB=64:HW_X _G:VGPU=1:NVIDIA", &claim),
                CLAIM_DONE);
        assert_true(claim->id > 0);
        assert_int_equal(claim->state, CLAIM_STATE_CLAIMED);
        assert_string_equal(claim->consumer.text, make_uuid("vm").text);
        assert_string_equal(claim->host, "compute1");
        assert_string_equal(claim->node, "host");
        assert_string_equal(
                claim->request,
                "resources=MEMORY_MB:64,VCPU:2&required=HW_X&resources_G=VGPU:1&required_G=NVIDIA");
        assert_int_equal(strlen(claim->boot_id), 32);
        assert_true(claim->created_usec >= before &&
                    claim->created_usec <= clock_usec(CLOCK_REALTIME));
        assert_int_equal(claim->expires_usec, claim->created_usec + 300 * USEC_PER_SEC);
        assert_int_equal(claim->ended_usec, 0);
        assert_int_equal(claim->n_allocations, 2);
        assert_int_equal(claim_sum(claim, "VCPU"), 2);
        assert_int_equal(claim_sum(claim, "VGPU"), 1);
        assert_int_equal(claim->mappings.n_items, 2);
        assert_string_equal(claim->mappings.items[0].suffix, "");
        assert_string_equal(claim->mappings.items[0].provider.text, make_uuid("host").text);
        assert_string_equal(claim->mappings.items[1].suffix, "_G");
        assert_string_equal(claim->mappings.items[1].provider.text, make_uuid("gpu_a").text);

        /* The claim is on disk, also in the specification's columns. */
        assert_sql(fixture->path,
                   "SELECT host || ' ' || node || ' ' || vcpus || ' ' || memory_mb || ' ' ||"
                   " disk_gb || ' ' || resize_target || ' ' || state FROM claims",
                   "compute1 host 2 64 0 0 claimed");
        assert_sql(fixture->path,
                   "SELECT created_at GLOB '20[0-9][0-9]-[01][0-9]-[0-3][0-9]T"
                   "[0-2][0-9]:[0-5][0-9]:[0-6][0-9].[0-9][0-9][0-9][0-9][0-9][0-9]Z'"
                   " AND abs(strftime('%s', created_at) - created_usec / 1000000) <= 1 FROM claims",
                   "1");
        fixture_close(fixture);
        assert_int_equal(fixture_open(fixture), CLAIMS_OPENED);
        assert_int_equal(claims_get(fixture->claims, claim->id, &again, NULL), 0);
        assert_string_equal(again->request, claim->request);
        assert_int_equal(again->created_usec, claim->created_usec);
        assert_int_equal(fixture_used(fixture, "host", "VCPU"), 2);
        assert_int_equal(fixture_used(fixture, "gpu_a", "VGPU"), 1);
        assert_store_sane(fixture->path);
}

/* The text that identifies the guest is stored, and replaced by a later equal request. The owner
 * stays. */
static void test_process(void **state)
{
        static const char *const processes[] = { "process 1", "", "process 2", "process 2" };
        static const char *const known[] = { "process 1", "process 1", "process 2", "process 2" };
        Fixture *fixture = *state;
        ClaimRequest request = { .consumer = make_uuid("vm"), .project_id = "p", .user_id = "u" };

        make_request(&request.resources, "VCPU=2");
        for (size_t i = 0; i < ARRAY_SIZE(processes); i++) {
                _cleanup_(claim_freep) Claim *claim = NULL, *stored = NULL;

                snprintf(request.process, sizeof(request.process), "%s", processes[i]);
                assert_int_equal(claims_claim(fixture->claims, &request, NULL, &claim, NULL, NULL),
                                 CLAIM_DONE);
                assert_string_equal(claim->process, known[i]);
                fixture_close(fixture);
                assert_int_equal(fixture_open(fixture), CLAIMS_OPENED);
                assert_int_equal(claims_get(fixture->claims, claim->id, &stored, NULL), 0);
                assert_string_equal(stored->process, known[i]);
                assert_string_equal(stored->project_id, "p");
                assert_string_equal(stored->user_id, "u");
        }
        assert_int_equal(fixture_used(fixture, "host", "VCPU"), 2);
        resource_request_done(&request.resources);
        assert_store_sane(fixture->path);
}

static void test_same_consumer(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *first = NULL, *second = NULL;
        ClaimRequest request = { .consumer = make_uuid("vm"), .project_id = "p" };
        _cleanup_(claim_freep) Claim *other = NULL;

        assert_int_equal(fixture_claim(fixture, "vm", "VCPU=2 _G:VGPU=1", &first), CLAIM_DONE);
        assert_int_equal(fixture_claim(fixture, "vm", "_G:VGPU=1 VCPU=2", &second), CLAIM_DONE);
        assert_int_equal(first->id, second->id);
        assert_int_equal(fixture_used(fixture, "host", "VCPU"), 2);

        assert_int_equal(fixture_claim(fixture, "vm", "VCPU=3 _G:VGPU=1", NULL), CLAIM_E_CONFLICT);
        assert_text(fixture->error.text, "has claim 1 for another request");
        assert_int_equal(fixture_claim(fixture, "vm", "VCPU=2,VGPU=1", NULL), CLAIM_E_CONFLICT);
        assert_int_equal(fixture_claim(fixture, "vm", "VCPU=2:HW_X _G:VGPU=1", NULL),
                         CLAIM_E_CONFLICT);
        assert_int_equal(fixture_claim(fixture, "vm", "VCPU=2 _G:VGPU=1 isolate", NULL),
                         CLAIM_E_CONFLICT);
        make_request(&request.resources, "VCPU=2 _G:VGPU=1");
        assert_int_equal(claims_claim(fixture->claims, &request, NULL, &other, NULL, NULL),
                         CLAIM_E_CONFLICT);
        resource_request_done(&request.resources);
        assert_int_equal(fixture_used(fixture, "host", "VCPU"), 2);

        /* A confirmed claim is still the same claim; a released one is not. */
        assert_int_equal(claims_confirm(fixture->claims, first->id, NULL), 0);
        assert_int_equal(fixture_claim(fixture, "vm", "VCPU=2 _G:VGPU=1", &other), CLAIM_DONE);
        assert_int_equal(other->id, first->id);
        assert_int_equal(claims_release(fixture->claims, first->id, "stopped", NULL), 0);
        other = claim_free(other);
        assert_int_equal(fixture_claim(fixture, "vm", "VCPU=1", &other), CLAIM_DONE);
        assert_true(other->id > first->id);
}

static void test_no_fit(void **state)
{
        const ClaimRequest nothing = { .consumer = make_uuid("vm") };
        Fixture *fixture = *state;
        Claim *claim = NULL;

        assert_int_equal(claims_claim(fixture->claims, &nothing, NULL, &claim, NULL, NULL),
                         -EINVAL);
        assert_null(claim);
        assert_int_equal(fixture_claim(fixture, "vm", "VGPU=5", NULL), CLAIM_E_NO_CAPACITY);
        assert_string_equal(fixture->error.text, "VGPU: 5 requested, but 4 of 4 are free on gpu_a");
        assert_int_equal(fixture_claim(fixture, "vm", "CUSTOM_X=1", NULL), CLAIM_E_UNKNOWN_CLASS);
        assert_text(fixture->error.text, "CUSTOM_X");
        assert_sql(fixture->path, "SELECT count(*) FROM claims", "0");
        assert_sql(fixture->path, "SELECT sum(generation) FROM resource_providers", "0");
}

static void test_confirm_and_expire(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *one = NULL, *two = NULL, *three = NULL, *read = NULL;
        uint64_t n = 7, later = clock_usec(CLOCK_REALTIME) + 301 * USEC_PER_SEC;
        Error error = ERROR_NULL;

        assert_int_equal(fixture_claim(fixture, "one", "VCPU=1", &one), CLAIM_DONE);
        assert_int_equal(fixture_claim(fixture, "two", "VCPU=2", &two), CLAIM_DONE);
        assert_int_equal(fixture_claim(fixture, "three", "VCPU=4", &three), CLAIM_DONE);
        assert_int_equal(claims_expire(fixture->claims, clock_usec(CLOCK_REALTIME), &n, NULL), 0);
        assert_int_equal(n, 0);
        assert_int_equal(claims_confirm(fixture->claims, one->id, NULL), 0);
        assert_int_equal(claims_confirm(fixture->claims, one->id, NULL), 0);
        assert_int_equal(claims_extend(fixture->claims, two->id, later + 1, NULL), 0);
        assert_int_equal(claims_extend(fixture->claims, one->id, later, &error), CLAIM_E_CONFLICT);
        assert_string_equal(error.text, "Claim 1 is confirmed");

        assert_int_equal(claims_expire(fixture->claims, later, &n, NULL), 0);
        assert_int_equal(n, 1);
        assert_int_equal(fixture_used(fixture, "host", "VCPU"), 3);
        assert_int_equal(claims_get(fixture->claims, three->id, &read, NULL), 0);
        assert_int_equal(read->state, CLAIM_STATE_RELEASED);
        assert_string_equal(read->end_reason, "expired");
        assert_int_equal(read->ended_usec, later);
        assert_holds(read, "VCPU=4 on host");
        assert_int_equal(claims_confirm(fixture->claims, three->id, &error), CLAIM_E_NOT_FOUND);
        assert_string_equal(error.text, "There is no active claim 3");
        assert_int_equal(claims_extend(fixture->claims, three->id, later, &error),
                         CLAIM_E_NOT_FOUND);
        assert_int_equal(claims_expire(fixture->claims, UINT64_MAX, &n, NULL), 0);
        assert_int_equal(n, 1);
        assert_int_equal(fixture_used(fixture, "host", "VCPU"), 1);
        assert_store_sane(fixture->path);
}

/* An expired claim was not ended yet, and its consumer claims again. */
static void test_expired_claim_asked_again(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *one = NULL, *again = NULL;
        uint64_t n;

        assert_int_equal(fixture_claim(fixture, "one", "VCPU=1", &one), CLAIM_DONE);
        assert_int_equal(claims_extend(fixture->claims, one->id, 1000, NULL), 0);
        assert_int_equal(fixture_claim(fixture, "one", "VCPU=1", &again), CLAIM_DONE);
        assert_int_equal(again->id, one->id);
        assert_true(again->expires_usec > clock_usec(CLOCK_REALTIME) + 290 * USEC_PER_SEC);
        assert_int_equal(claims_expire(fixture->claims, clock_usec(CLOCK_REALTIME), &n, NULL), 0);
        assert_int_equal(n, 0);
}

static void test_release(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *claim = NULL, *ended = NULL, *confirmed = NULL;
        _cleanup_free_ char *text = NULL;
        Error error = ERROR_NULL;
        char reason[400];

        assert_int_equal(fixture_claim(fixture, "vm", "VCPU=2 _A:VGPU=1 _B:VGPU=3", &claim),
                         CLAIM_DONE);
        text = format_claim(claim);
        memset(reason, 'x', sizeof(reason));
        /* "ä" at the cut */
        memcpy(reason + 254, "\xc3\xa4", 2);
        reason[399] = '\0';
        assert_int_equal(claims_release(fixture->claims, claim->id, reason, NULL), 0);
        assert_int_equal(claims_release(fixture->claims, claim->id, "again", &error),
                         CLAIM_E_NOT_FOUND);
        assert_int_equal(claims_release(fixture->claims, -1, "", NULL), CLAIM_E_NOT_FOUND);
        assert_int_equal(claims_get(fixture->claims, claim->id, &ended, NULL), 0);
        assert_int_equal(ended->state, CLAIM_STATE_RELEASED);
        assert_int_equal(strlen(ended->end_reason), 254);
        assert_holds(ended, text);
        assert_int_equal(ended->mappings.n_items, claim->mappings.n_items);
        assert_int_equal(fixture_used(fixture, "host", "VCPU"), 0);
        assert_sql(fixture->path, "SELECT count(*) FROM usages", "0");
        assert_sql(fixture->path, "SELECT count(*) FROM allocations", "0");

        assert_int_equal(fixture_claim(fixture, "vm", "VCPU=2", &confirmed), CLAIM_DONE);
        assert_int_equal(claims_confirm(fixture->claims, confirmed->id, NULL), 0);
        assert_int_equal(claims_abort(fixture->claims, confirmed->id, "", &error),
                         CLAIM_E_CONFLICT);
        assert_int_equal(claims_release(fixture->claims, confirmed->id, NULL, NULL), 0);
        assert_int_equal(claims_abort(fixture->claims, confirmed->id, "", &error),
                         CLAIM_E_NOT_FOUND);
        assert_int_equal(fixture_claim(fixture, "vm2", "VCPU=2", NULL), CLAIM_DONE);
        assert_int_equal(claims_abort(fixture->claims, 3, "changed my mind", &error), 0);
        assert_store_sane(fixture->path);
}

static void test_history_is_bounded(void **state)
{
        Fixture *fixture = *state;
        ClaimList list = { 0 };

        for (int i = 0; i < CLAIM_HISTORY_MAX + 10; i++) {
                assert_int_equal(fixture_claim(fixture, "vm", "VCPU=1", NULL), CLAIM_DONE);
                assert_int_equal(claims_release(fixture->claims, i + 1, "done", NULL), 0);
        }
        assert_int_equal(fixture_claim(fixture, "vm", "VCPU=1", NULL), CLAIM_DONE);
        assert_int_equal(fixture_claim(fixture, "vm2", "VCPU=1", NULL), CLAIM_DONE);
        assert_int_equal(claims_list(fixture->claims, CLAIMS_ALL, NULL, &list, NULL), 0);
        assert_int_equal(list.n_claims, CLAIM_HISTORY_MAX + 2);
        assert_int_equal(list.claims[0]->id, CLAIM_HISTORY_MAX + 11);
        assert_int_equal(list.claims[1]->id, CLAIM_HISTORY_MAX + 12);
        assert_int_equal(list.claims[2]->id, CLAIM_HISTORY_MAX + 10);
        assert_int_equal(list.claims[list.n_claims - 1]->id, 11);
        claim_list_done(&list);
        assert_int_equal(claims_list(fixture->claims, CLAIMS_LIVING, NULL, &list, NULL), 0);
        assert_int_equal(list.n_claims, 2);
        claim_list_done(&list);
        assert_sql(fixture->path, "SELECT count(*) FROM ended_claims", "1000");
}

static void test_resize(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *first = NULL, *target = NULL, *read = NULL, *found = NULL;

        assert_int_equal(fixture_claim(fixture, "vm", "VCPU=2", &first), CLAIM_DONE);
        assert_int_equal(claims_confirm(fixture->claims, first->id, NULL), 0);
        assert_int_equal(fixture_claim_target(fixture, "vm", "VCPU=4", &target), CLAIM_DONE);
        assert_true(target->id != first->id && target->resize_target);
        assert_int_equal(fixture_used(fixture, "host", "VCPU"), 6);
        assert_int_equal(fixture_claim_target(fixture, "vm", "VCPU=5", NULL), CLAIM_E_CONFLICT);

        /* A target that is confirmed beside the first claim stays a target. Without the first claim
         * it becomes the first. */
        assert_int_equal(claims_confirm(fixture->claims, target->id, NULL), 0);
        assert_int_equal(claims_find(fixture->claims, &target->consumer, true, &found, NULL), 0);
        assert_int_equal(claims_release(fixture->claims, first->id, "resized", NULL), 0);
        assert_int_equal(claims_get(fixture->claims, target->id, &read, NULL), 0);
        assert_false(read->resize_target);
        found = claim_free(found);
        assert_int_equal(claims_find(fixture->claims, &target->consumer, true, &found, NULL),
                         CLAIM_E_NOT_FOUND);
        assert_int_equal(claims_find(fixture->claims, &target->consumer, false, &found, NULL), 0);
        assert_int_equal(found->id, target->id);
        assert_int_equal(fixture_claim_target(fixture, "vm", "VCPU=5", NULL), CLAIM_DONE);
        assert_store_sane(fixture->path);
}

/* The first claim ended before the target was confirmed. */
static void test_resize_first_goes_early(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *first = NULL, *target = NULL, *read = NULL;

        assert_int_equal(fixture_claim(fixture, "vm", "VCPU=2", &first), CLAIM_DONE);
        assert_int_equal(fixture_claim_target(fixture, "vm", "VCPU=4", &target), CLAIM_DONE);
        assert_int_equal(claims_release(fixture->claims, first->id, "resized", NULL), 0);
        assert_int_equal(claims_get(fixture->claims, target->id, &read, NULL), 0);
        assert_true(read->resize_target);
        assert_int_equal(claims_confirm(fixture->claims, target->id, NULL), 0);
        read = claim_free(read);
        assert_int_equal(claims_get(fixture->claims, target->id, &read, NULL), 0);
        assert_false(read->resize_target);
}

static void test_providers_written_once(void **state)
{
        Fixture *fixture = *state;
        _cleanup_free_ char *before = NULL;

        before = run_sql(fixture->path, "SELECT epoch FROM provider_epoch");
        fixture_set_host(fixture, HOST);
        assert_sql(fixture->path, "SELECT epoch FROM provider_epoch", before);
        assert_sql(fixture->path, "SELECT sum(generation) FROM resource_providers", "0");
        /* one provider changes */
        fixture_set_host(fixture, "host VCPU=8/0/1/8/1/2 MEMORY_MB=1024 DISK_GB=100 +HW_X;"
                                  "gpu_a<host VGPU=4 +NVIDIA; gpu_b<host VGPU=3 +NVIDIA");
        assert_sql(fixture->path,
                   "SELECT group_concat(name) FROM resource_providers WHERE generation > 0",
                   "gpu_b");
        /* a changed trait is a change, a changed order is none */
        fixture_set_host(fixture, "host VCPU=8/0/1/8/1/2 MEMORY_MB=1024 DISK_GB=100 +HW_X;"
                                  "gpu_b<host VGPU=3 +NVIDIA; gpu_a<host VGPU=4 +NVIDIA +NEW");
        assert_sql(fixture->path,
                   "SELECT group_concat(name || generation, ' ') FROM"
                   " (SELECT * FROM resource_providers WHERE generation > 0 ORDER BY name)",
                   "gpu_a1 gpu_b1");
        /* one provider is removed, and the other one moves below a new one */
        fixture_set_host(fixture, "host VCPU=8; cell<host MEMORY_MB=5; gpu_b<cell VGPU=3 +NVIDIA");
        assert_sql(
                fixture->path,
                "SELECT group_concat(p.name || '<' || ifnull(a.name, ''), ' ')"
                " FROM resource_providers p LEFT JOIN resource_providers a ON a.id = p.parent ORDER BY p.position",
                "host< gpu_b<cell cell<host");
        fixture_close(fixture);
        assert_int_equal(fixture_open(fixture), CLAIMS_OPENED);
        assert_int_equal(fixture_claim(fixture, "vm", "VGPU=3,MEMORY_MB=5", NULL), CLAIM_DONE);
        assert_store_sane(fixture->path);
        /* a sharing provider can host no guest */
        fixture_set_host(fixture, "host VCPU=8 @A; cell<host MEMORY_MB=5; gpu_b<cell VGPU=3;"
                                  "pool DISK_GB=9 +MISC_SHARES_VIA_AGGREGATE @A");
        assert_sql(fixture->path,
                   "SELECT group_concat(name || can_host, ' ') FROM"
                   " (SELECT * FROM resource_providers ORDER BY name)",
                   "cell1 gpu_b1 host1 pool0");
}

static void test_vanished_provider(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *claim = NULL;
        const HostView *view;
        Uuid uuid = make_uuid("gpu_a");
        size_t index;

        assert_int_equal(fixture_claim(fixture, "vm", "VGPU=3", &claim), CLAIM_DONE);
        assert_holds(claim, "VGPU=3 on gpu_a");
        fixture_set_host(fixture, "host VCPU=8; gpu_b<host VGPU=2");
        assert_int_equal(claims_host(fixture->claims, &view, NULL), 0);
        assert_true(host_view_find(view, &uuid, &index));
        assert_true(view->providers[index].withheld);
        assert_non_null(provider_find_inventory(view->tree->providers[index], "VGPU"));
        assert_int_equal(fixture_used(fixture, "gpu_a", "VGPU"), 3);
        assert_int_equal(fixture_claim(fixture, "vm2", "VGPU=1", NULL), CLAIM_DONE);
        assert_int_equal(fixture_used(fixture, "gpu_b", "VGPU"), 1);
        assert_int_equal(fixture_claim(fixture, "vm3", "VGPU=2", NULL), CLAIM_E_NO_CAPACITY);

        /* the provider is back: its claim still counts */
        fixture_set_host(fixture, HOST);
        assert_int_equal(fixture_claim(fixture, "vm3", "VGPU=2", NULL), CLAIM_E_NO_CAPACITY);
        assert_int_equal(fixture_claim(fixture, "vm3", "_A:VGPU=1 _B:VGPU=1 isolate", NULL),
                         CLAIM_DONE);
        /* it is removed once no claim uses it */
        fixture_set_host(fixture, "host VCPU=8");
        for (int id = 1; id <= 3; id++)
                assert_int_equal(claims_release(fixture->claims, id, "", NULL), 0);
        fixture_set_host(fixture, "host VCPU=8");
        assert_sql(fixture->path, "SELECT group_concat(name) FROM resource_providers", "host");
        assert_store_sane(fixture->path);
}

/* The whole host got a new uuid while guests run: their claims move to it. */
static void test_root_replaced(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(provider_tree_freep) ProviderTree *tree = NULL;
        Uuid uuid = make_uuid("another");
        Provider *root;
        Inventory inventory = INVENTORY_DEFAULT(4);

        assert_int_equal(fixture_claim(fixture, "vm", "VGPU=3", NULL), CLAIM_DONE);
        assert_int_equal(fixture_claim(fixture, "vm1", "VCPU=1", NULL), CLAIM_DONE);
        assert_int_equal(provider_tree_new(&tree), 0);
        assert_int_equal(provider_tree_add(tree, &uuid, "host", NULL, &root, NULL), 0);
        assert_int_equal(provider_set_inventory(root, "VCPU", &inventory), 0);
        assert_int_equal(claims_set_providers(fixture->claims, tree, NULL), 0);
        assert_int_equal(claims_set_providers(fixture->claims, tree, NULL), 0);
        assert_sql(
                fixture->path,
                "SELECT group_concat(withheld || substr(name, 1, 5), ' ') FROM (SELECT * FROM resource_providers ORDER BY name)",
                "1gpu_a 0host");
        assert_int_equal(fixture_used(fixture, "another", "VCPU"), 1);
        assert_int_equal(fixture_claim(fixture, "vm2", "VCPU=4", NULL), CLAIM_E_NO_CAPACITY);
        assert_int_equal(fixture_claim(fixture, "vm2", "VCPU=3", NULL), CLAIM_DONE);
        assert_int_equal(fixture_used(fixture, "another", "VCPU"), 4);
}

static void test_invalid_inventory(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(provider_tree_freep) ProviderTree *tree = make_tree(HOST);

        provider_find_inventory(tree->providers[0], "VCPU")->total = 0;
        assert_int_equal(claims_set_providers(fixture->claims, tree, NULL), 0);
        assert_int_equal(fixture_claim(fixture, "vm", "VCPU=1", NULL), CLAIM_E_UNKNOWN_CLASS);
        fixture_close(fixture);
        assert_int_equal(fixture_open(fixture), CLAIMS_OPENED);
}

static void test_changed_expiry_is_of_new_claims(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *before = NULL, *after = NULL, *never = NULL;

        fixture_set_host(fixture, "host VCPU=8");
        assert_int_equal(fixture_claim(fixture, "one", "VCPU=1", &before), CLAIM_DONE);
        claims_set_rules(fixture->claims, &(ClaimsRules){ .expiry_usec = 7 });
        assert_int_equal(fixture_claim(fixture, "two", "VCPU=1", &after), CLAIM_DONE);
        claims_set_rules(fixture->claims, &(ClaimsRules){ 0 });
        assert_int_equal(fixture_claim(fixture, "three", "VCPU=1", &never), CLAIM_DONE);
        assert_int_equal(before->expires_usec - before->created_usec, 300 * USEC_PER_SEC);
        assert_int_equal(after->expires_usec - after->created_usec, 7);
        assert_int_equal(never->expires_usec, 0);
}

/* A host that is taken out of use: existing claims stay, and new ones are rejected. */
static void test_closed(void **state)
{
        Fixture *fixture = *state;
        _cleanup_(claim_freep) Claim *claim = NULL, *again = NULL;

        fixture_set_host(fixture, "host VCPU=8");
        assert_int_equal(fixture_claim(fixture, "one", "VCPU=1", &claim), CLAIM_DONE);
        claims_set_rules(fixture->claims,
                         &(ClaimsRules){ .closed = "the fan", .hint = "a device" });
        assert_int_equal(fixture_claim(fixture, "two", "VCPU=1", NULL), CLAIM_E_NO_CAPACITY);
        assert_string_equal(fixture->error.text, "New claims are rejected: the fan");
        assert_int_equal(fixture_claim(fixture, "one", "VCPU=1", &again), CLAIM_DONE);
        assert_int_equal(again->id, claim->id);
        claims_set_rules(fixture->claims, &(ClaimsRules){ .hint = "a device" });
        assert_int_equal(fixture_claim(fixture, "two", "VCPU=1", NULL), CLAIM_DONE);
        assert_int_equal(fixture_claim(fixture, "three", "VCPU=7", NULL), CLAIM_E_NO_CAPACITY);
        assert_text(fixture->error.text, "(a device)");
        assert_store_sane(fixture->path);
}

/* An explanation has the result of a claim that is written to Placement, or of a local one. */
static void test_an_explanation_follows_the_unread_database(void **state)
{
        Fixture *fixture = *state;
        ResourceRequest request = RESOURCE_REQUEST_INIT;

        fixture_set_host(fixture, "host PCPU=8");
        make_request(&request, "PCPU=2");
        claims_set_rules(fixture->claims,
                         &(ClaimsRules){ .unknown = "unread", .hint = "a device" });
        for (int writes = 0; writes <= 1; writes++) {
                FitVerdicts verdicts = { 0 };
                Error error = ERROR_NULL;

                assert_int_equal(
                        claims_explain(fixture->claims, &request, writes, 0, &verdicts, &error),
                        writes ? CLAIM_DONE : CLAIM_E_NO_CAPACITY);
                if (!writes)
                        assert_string_equal(error.text, "unread (a device)");
                fit_verdicts_done(&verdicts);
        }
        assert_int_equal(fixture_claim(fixture, "one", "PCPU=2", NULL), CLAIM_E_NO_CAPACITY);
        assert_string_equal(fixture->error.text, "unread (a device)");
        resource_request_done(&request);
}

TEST_MAIN_WITH(open_host, fixture_teardown, test_closed,
               test_an_explanation_follows_the_unread_database,
               test_changed_expiry_is_of_new_claims, test_claim, test_process, test_same_consumer,
               test_no_fit, test_confirm_and_expire, test_expired_claim_asked_again, test_release,
               test_history_is_bounded, test_resize, test_resize_first_goes_early,
               test_providers_written_once, test_vanished_provider, test_root_replaced,
               test_invalid_inventory)
