/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/cycle/retire.h"
#include "tests/fixtures/claims.h"
#include "tests/unit/test.h"

#define TREE "host VCPU=8; host_gpu<host VGPU=4; host_nova<host; host_nic<host"

typedef struct Scene {
        ProviderTree *remote, *own;
        Uuid root;
        ClaimList claims;
        SnapshotDomain domains[2];
        Snapshot host;
        Allocations *consumers;
        json_t *retirement;
} Scene;

static void begin(Scene *scene, const char *remote, const char *own)
{
        static char web[] = "web-1", off[] = "off";

        *scene = (Scene){ .remote = make_tree(remote), .own = make_tree(own) };
        scene->root = make_uuid("host");
        scene->domains[0] = (SnapshotDomain){ .uuid = make_uuid("web"), .name = web };
        scene->domains[1] = (SnapshotDomain){ .uuid = make_uuid("off"), .name = off };
        scene->host = (Snapshot){ .domains = scene->domains };
        assert_int_equal(allocations_new(&scene->consumers), 0);
}

static void judge(Scene *scene)
{
        const RetireFacts facts = { .remote = scene->remote,
                                    .own = scene->own,
                                    .root = &scene->root,
                                    .claims = &scene->claims,
                                    .snapshot = &scene->host,
                                    .consumers = scene->consumers };

        assert_int_equal(retire_judge(&facts, &scene->retirement), 0);
}

static void end(Scene *scene)
{
        json_decref(scene->retirement);
        allocations_free(scene->consumers);
        claim_list_done(&scene->claims);
        provider_tree_free(scene->own);
        provider_tree_free(scene->remote);
}

static void assert_list(const Scene *scene, const char *list, const char *expected)
{
        _cleanup_free_ char *text =
                json_dumps(json_object_get(scene->retirement, list), JSON_COMPACT);

        assert_string_equal(text, expected);
}

/* What this host would have, by whatever uuid, is its own; what else is there is somebody's. */
static void test_providers(void **state)
{
        Scene scene;

        begin(&scene, TREE, "host VCPU=8; host_gpu<host VGPU=4; host_nova<host");
        judge(&scene);
        assert_list(&scene, "foreign", "[\"host_nic\"]");
        assert_list(&scene, "providers", "[\"host_nova\",\"host_gpu\",\"host\"]");
        assert_true(retire_is_refused(scene.retirement));
        end(&scene);
}

/* A device that is gone left a provider, which its uuid tells from those of others. */
static void test_left_over(void **state)
{
        Provider *gone;
        Uuid uuid;
        Scene scene;

        begin(&scene, "host VCPU=8", "host VCPU=8");
        uuid = uuid_make_child(&scene.root, "host_gone");
        assert_int_equal(
                provider_tree_add(scene.remote, &uuid, "host_gone", &scene.root, &gone, NULL), 0);
        judge(&scene);
        assert_list(&scene, "providers", "[\"host_gone\",\"host\"]");
        assert_false(retire_is_refused(scene.retirement));
        end(&scene);
}

static void test_holders(void **state)
{
        Consumer *consumer;
        Claim *claim;
        Scene scene;
        char expected[600];
        const Uuid web = make_uuid("web"), lost = make_uuid("lost");

        begin(&scene, "host VCPU=8", "host VCPU=8");
        scene.host.n_domains = 2;
        scene.domains[0].state = DOMAIN_PAUSED;
        assert_int_equal(claim_new(&claim), 0);
        claim->id = 7;
        claim->consumer = web;
        assert_int_equal(claim_list_add(&scene.claims, claim), 0);
        assert_int_equal(allocations_ensure(scene.consumers, &lost, &consumer), 0);
        judge(&scene);
        snprintf(expected, sizeof(expected),
                 "[{\"consumer\":\"%s\",\"guest\":\"web-1\",\"claim\":7,\"placed\":false},"
                 "{\"consumer\":\"%s\",\"guest\":\"\",\"claim\":0,\"placed\":true}]",
                 web.text, lost.text);
        assert_list(&scene, "holders", expected);
        assert_true(retire_is_refused(scene.retirement));
        end(&scene);
}

/* The history names the caller of the removal that runs, not of the next one. */
static void test_request_during_a_removal(void **state)
{
        const EventAuthor first = { .text = "first" }, second = { .text = "second" };
        Retirement retirement = { 0 };

        retirement_ask(&retirement, RETIRE_DO, &first);
        assert_int_equal(retirement.kind, RETIRE_NONE);
        retirement_begin(&retirement);
        retirement.document = json_object();
        retirement_ask(&retirement, RETIRE_SHOW, &second);
        assert_int_equal(retirement.kind, RETIRE_DO);
        assert_string_equal(retirement.by.text, "first");
        assert_null(retirement.document);
        assert_false(retirement_end(&retirement, NULL, -ENOMEM, &ERROR_NULL));
        assert_int_equal(retirement.error.code, ENOMEM);
        assert_non_null(strstr(retirement.error.text, "The host is not retired: "));
        retirement_begin(&retirement);
        assert_int_equal(retirement.kind, RETIRE_SHOW);
        assert_string_equal(retirement.by.text, "second");
        assert_int_equal(retirement.error.code, 0);
        retirement_begin(&retirement);
        assert_int_equal(retirement.kind, RETIRE_NONE);
        retirement_done(&retirement);
}

TEST_MAIN(test_providers, test_left_over, test_holders, test_request_during_a_removal)
