/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The check of a host against a fake reporter, real claims and a driver that makes the tree "own".
 */

#include "agent/cycle/retire.h"
#include "drivers/update.h"
#include "tests/fakes/reporter.h"
#include "tests/fixtures/claims.h"
#include "tests/unit/test.h"

typedef struct Scene {
        ProviderTree *own;
        SnapshotDomain domains[2];
        Snapshot host;
        Fixture *fixture;
        Retirement retirement;
        size_t n_records;
} Scene;

static Scene scene;

int provider_update(const HostConfig *config, const Snapshot *snapshot, const DeviceFacts *known,
                    ProviderTree *tree, const char *nodename, DriverReshape *reshape, Error *reterr)
{
        for (size_t i = 0; i < scene.own->n_providers; i++) {
                const Provider *provider = scene.own->providers[i];

                if (!provider_tree_find(tree, &provider->uuid))
                        assert_int_equal(provider_tree_add(tree, &provider->uuid, provider->name,
                                                           &provider->parent, NULL, NULL),
                                         0);
        }
        return DRIVER_UPDATED;
}

void claim_service_record(ClaimService *service, const EventNote *note)
{
        assert_string_equal(note->kind, EVENT_RETIRED);
        assert_string_equal(note->by->text, "first");
        scene.n_records++;
}

static void begin(const char *remote, const char *own)
{
        static char web[] = "web-1", off[] = "off";

        fake_reporter_begin();
        fake_reporter.mirror = make_tree(remote);
        assert_int_equal(allocations_new(&fake_reporter.consumers), 0);
        scene = (Scene){ .own = make_tree(own), .retirement.kind = RETIRE_DO };
        scene.domains[0] = (SnapshotDomain){ .uuid = make_uuid("web"), .name = web };
        scene.domains[1] = (SnapshotDomain){ .uuid = make_uuid("off"), .name = off };
        scene.host = (Snapshot){ .domains = scene.domains };
        assert_int_equal(fixture_setup((void **)&scene.fixture), 0);
        fixture_create(scene.fixture, remote);
}

/* Checks the host. removes: the expected result, true if the host must be removed now. */
static void check(bool removes)
{
        static const HostConfig config;
        ClaimService claims = { .claims = scene.fixture->claims };
        const TreeMaker maker = {
                .config = &config, .claims = &claims, .root = make_uuid("host"), .nodename = "host"
        };

        assert_int_equal(retirement_check(&scene.retirement, &maker, (Reporter *)&fake_reporter,
                                          &scene.host),
                         removes);
        assert_int_equal(scene.retirement.error.code, 0);
}

static void end(void)
{
        json_decref(scene.retirement.document);
        assert_int_equal(fixture_teardown((void **)&scene.fixture), 0);
        provider_tree_free(scene.own);
        fake_reporter_end();
}

static void assert_list(const char *list, const char *expected)
{
        _cleanup_free_ char *text =
                json_dumps(json_object_get(scene.retirement.document, list), JSON_COMPACT);

        assert_string_equal(text, expected);
}

/* A provider that this host would make is its own, under any uuid. All other providers are
 * foreign. */
static void test_providers(void **state)
{
        begin("host VCPU=8; host_gpu<host VGPU=4; host_nova<host; host_nic<host",
              "host VCPU=8; host_gpu<host VGPU=4; host_nova<host");
        check(false);
        assert_list("foreign", "[\"host_nic\"]");
        assert_list("providers", "[\"host_nova\",\"host_gpu\",\"host\"]");
        end();
}

/* The provider of a device that is gone is recognised by its uuid. */
static void test_leftover(void **state)
{
        const Uuid root = make_uuid("host"), uuid = uuid_make_child(&root, "host_gone");

        begin("host VCPU=8", "host VCPU=8");
        assert_int_equal(
                provider_tree_add(fake_reporter.mirror, &uuid, "host_gone", &root, NULL, NULL), 0);
        check(true);
        assert_list("providers", "[\"host_gone\",\"host\"]");
        end();
        begin("host VCPU=8", "host VCPU=8");
        scene.retirement.kind = RETIRE_SHOW;
        check(false);
        end();
}

static void test_holders(void **state)
{
        Consumer *consumer;
        char expected[600];
        const Uuid web = make_uuid("web"), lost = make_uuid("lost");

        begin("host VCPU=8", "host VCPU=8");
        scene.host.n_domains = 2;
        scene.domains[0].state = DOMAIN_PAUSED;
        assert_int_equal(fixture_claim(scene.fixture, "web", "VCPU=1", NULL), 0);
        assert_int_equal(allocations_ensure(fake_reporter.consumers, &lost, &consumer), 0);
        check(false);
        snprintf(expected, sizeof(expected),
                 "[{\"consumer\":\"%s\",\"guest\":\"web-1\",\"claim\":1,\"placed\":false},"
                 "{\"consumer\":\"%s\",\"guest\":\"\",\"claim\":0,\"placed\":true}]",
                 web.text, lost.text);
        assert_list("holders", expected);
        end();
}

static void test_the_end_of_a_removal(void **state)
{
        _cleanup_(cordon_freep) Cordon *cordon = NULL;
        const Uuid root = make_uuid("host");
        TreeMaker maker = { 0 };

        begin("host VCPU=8", "host VCPU=8");
        assert_int_equal(cordon_new(&cordon, "/", true, NULL), 0);
        maker.cordon = cordon;
        strcpy(scene.retirement.by.text, "first");
        check(true);
        /* Without a cordon, the mark that keeps the host retired cannot be stored. */
        assert_false(retirement_end(&scene.retirement, &maker, 0, &ERROR_NULL));
        assert_int_equal(scene.n_records, 0);
        assert_int_equal(cordon_set(cordon, NULL, &root, "", "sold", "tester", NULL, 1, NULL), 0);
        assert_true(retirement_end(&scene.retirement, &maker, 0, &ERROR_NULL));
        assert_true(cordon_view(cordon).is_retired);
        assert_int_equal(scene.n_records, 1);
        assert_true(json_is_true(json_object_get(scene.retirement.document, "done")));
        end();
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
        json_decref(retirement.document);
}

TEST_MAIN(test_providers, test_leftover, test_holders, test_the_end_of_a_removal,
          test_request_during_a_removal)
