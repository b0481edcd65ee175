/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/tree/cordon.h"
#include "base/log.h"
#include "tests/fixtures/claims.h"
#include "tests/fixtures/scratch-folder.h"
#include "tests/unit/test.h"

#define HOST                                                                                \
        "host VCPU=8; host_pci_0000_41_00_0<host VGPU=4/1; host_0000:C1:00.0<host CARD=1; " \
        "other VCPU=2"
#define GPU "host_pci_0000_41_00_0"

typedef struct Scene {
        char *folder;
        Cordon *cordon;
        ProviderTree *mirror; /* what Placement has */
        Uuid root;
} Scene;

static void start(Scene *scene)
{
        cordon_free(scene->cordon);
        assert_int_equal(cordon_new(&scene->cordon, scene->folder, false), 0);
}

static void begin(Scene *scene)
{
        *scene = (Scene){ .folder = scratch_folder_make(), .root = make_uuid("host") };
        scene->mirror = make_tree(HOST);
        start(scene);
}

static void end(Scene *scene)
{
        cordon_free(scene->cordon);
        provider_tree_free(scene->mirror);
        scratch_folder_remove(scene->folder);
}

static int set(Scene *scene, const char *device, Error *reterr)
{
        return cordon_set(scene->cordon, scene->mirror, &scene->root, device, "broken fan", "ann",
                          1000 * USEC_PER_SEC, reterr);
}

static Inventory *vgpus(const Scene *scene)
{
        Provider *provider = provider_tree_find_name(scene->mirror, "host_pci_0000_41_00_0");

        return &provider->inventories[0].inventory;
}

/* A cycle: what is published becomes what Placement has. withheld: the device ledger does so. */
static void publish_withheld(Scene *scene, bool withheld)
{
        cordon_clear(scene->cordon, scene->mirror, &scene->root, true);
        if (withheld)
                vgpus(scene)->reserved = vgpus(scene)->total;
        assert_int_equal(cordon_apply(scene->cordon, scene->mirror, &scene->root, true, NULL), 0);
}

static void publish(Scene *scene)
{
        publish_withheld(scene, false);
}

static Provider *host_of(const Scene *scene)
{
        return provider_tree_find_name(scene->mirror, "host");
}

static uint64_t reserved(const Scene *scene, const char *provider, const char *resource_class)
{
        return provider_find_inventory(provider_tree_find_name(scene->mirror, provider),
                                       resource_class)
                ->reserved;
}

static bool is_disabled(const Scene *scene)
{
        return string_set_contains(&host_of(scene)->traits, CORDON_TRAIT);
}

static bool covers(const Scene *scene, const char *provider)
{
        const Uuid uuid = make_uuid(provider);

        return cordon_covers(scene->cordon, scene->mirror, &scene->root, &uuid);
}

static void test_host(void **state)
{
        Error error = ERROR_NULL;
        Scene scene;

        begin(&scene);
        assert_null(cordon_host_words(scene.cordon));
        assert_int_equal(cordon_lift(scene.cordon, scene.mirror, &scene.root, "", &error), -ENOENT);
        assert_string_equal(error.text, "The host is not cordoned");
        assert_int_equal(set(&scene, "", NULL), 0);
        assert_string_equal(cordon_host_words(scene.cordon),
                            "the host is cordoned by ann since 1970-01-01 00:16 UTC: broken fan");
        assert_true(covers(&scene, "host") && !covers(&scene, GPU) && !covers(&scene, "other"));
        publish(&scene);
        assert_true(is_disabled(&scene));
        /* A17, A9.4: whoever takes it away does not end it, and a restart does not */
        string_set_remove(&host_of(&scene)->traits, CORDON_TRAIT);
        start(&scene);
        assert_non_null(cordon_host_words(scene.cordon));
        publish(&scene);
        assert_true(is_disabled(&scene));
        assert_int_equal(cordon_lift(scene.cordon, scene.mirror, &scene.root, "", NULL), 0);
        assert_null(cordon_host_words(scene.cordon));
        assert_false(covers(&scene, "host"));
        /* not lost when the agent is restarted before Placement was told */
        start(&scene);
        publish(&scene);
        assert_false(is_disabled(&scene));
        publish(&scene);
        /* an operator's own from now on */
        assert_int_equal(string_set_add(&host_of(&scene)->traits, CORDON_TRAIT), 1);
        publish(&scene);
        assert_true(is_disabled(&scene));
        end(&scene);
}

static void test_a_trait_of_somebody_else_stays(void **state)
{
        Scene scene;

        begin(&scene);
        assert_int_equal(string_set_add(&host_of(&scene)->traits, CORDON_TRAIT), 1);
        assert_int_equal(set(&scene, "", NULL), 0);
        publish(&scene);
        assert_int_equal(cordon_lift(scene.cordon, scene.mirror, &scene.root, "", NULL), 0);
        publish(&scene);
        publish(&scene);
        assert_true(is_disabled(&scene));
        end(&scene);
}

static void test_devices(void **state)
{
        static const char *const names[] = { GPU, "pci_0000_41_00_0", "0000:41:00.0" };
        const Uuid card = make_uuid("host_0000:C1:00.0");
        Error error = ERROR_NULL;
        Scene scene;

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                begin(&scene);
                assert_int_equal(set(&scene, names[i], NULL), 0);
                assert_int_equal(cordon_count_devices(scene.cordon), 1);
                assert_true(covers(&scene, GPU) && !covers(&scene, "host"));
                publish(&scene);
                assert_int_equal(reserved(&scene, GPU, "VGPU"), 4);
                assert_int_equal(reserved(&scene, "host", "VCPU"), 0);
                start(&scene);
                publish(&scene);
                assert_int_equal(
                        cordon_lift(scene.cordon, scene.mirror, &scene.root, names[i], NULL), 0);
                publish(&scene);
                /* what was reserved before */
                assert_int_equal(reserved(&scene, GPU, "VGPU"), 1);
                publish(&scene);
                assert_int_equal(cordon_count_devices(scene.cordon), 0);
                end(&scene);
        }
        /* cordoned by one name, again by another: one cordon, which any name lifts */
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                begin(&scene);
                assert_int_equal(set(&scene, names[i], NULL), 0);
                assert_int_equal(set(&scene, names[(i + 1) % ARRAY_SIZE(names)], NULL), 0);
                assert_int_equal(cordon_count_devices(scene.cordon), 1);
                assert_int_equal(cordon_lift(scene.cordon, scene.mirror, &scene.root,
                                             names[(i + 2) % ARRAY_SIZE(names)], NULL),
                                 0);
                assert_int_equal(cordon_count_devices(scene.cordon), 0);
                end(&scene);
        }
        begin(&scene);
        assert_int_equal(set(&scene, "0000:c1:00.0", NULL), 0);
        publish(&scene);
        assert_int_equal(reserved(&scene, "host_0000:C1:00.0", "CARD"), 1);
        assert_non_null(strstr(cordon_device_words(scene.cordon), "0000:c1:00.0 cordoned by ann"));
        assert_int_equal(set(&scene, "0000:ff:00.0", &error), -ENODEV);
        assert_non_null(strstr(error.text, "computectl tree"));
        assert_int_equal(set(&scene, "other", NULL), -ENODEV);
        /* it went away and comes back */
        assert_true(provider_tree_remove(scene.mirror, &card));
        publish(&scene);
        assert_int_equal(cordon_count_devices(scene.cordon), 1);
        end(&scene);
}

/* What a missing device has reserved is not the cordon's to give back. */
static void test_a_device_that_is_withheld(void **state)
{
        Scene scene;

        begin(&scene);
        assert_int_equal(set(&scene, GPU, NULL), 0);
        publish(&scene);
        publish_withheld(&scene, true);
        assert_int_equal(cordon_lift(scene.cordon, scene.mirror, &scene.root, GPU, NULL), 0);
        for (int i = 0; i < 3; i++) {
                publish_withheld(&scene, true);
                assert_int_equal(vgpus(&scene)->reserved, 4);
        }
        /* the ledger gives it back */
        vgpus(&scene)->reserved = 1;
        publish(&scene);
        assert_int_equal(vgpus(&scene)->reserved, 1);
        end(&scene);
}

/* The driver sees, edits and keeps what is reserved but for the cordon. */
static void test_what_others_reserve_meanwhile(void **state)
{
        Scene scene;

        begin(&scene);
        assert_int_equal(set(&scene, GPU, NULL), 0);
        publish(&scene);
        cordon_clear(scene.cordon, scene.mirror, &scene.root, true);
        assert_int_equal(vgpus(&scene)->reserved, 1);
        vgpus(&scene)->reserved = 2;
        assert_int_equal(cordon_apply(scene.cordon, scene.mirror, &scene.root, true, NULL), 0);
        assert_int_equal(vgpus(&scene)->reserved, 4);
        start(&scene);
        assert_int_equal(cordon_lift(scene.cordon, scene.mirror, &scene.root, GPU, NULL), 0);
        publish(&scene);
        assert_int_equal(vgpus(&scene)->reserved, 2);
        /* nothing is left of it: all that is reserved now is somebody else's */
        publish(&scene);
        vgpus(&scene)->reserved = 4;
        publish(&scene);
        assert_int_equal(vgpus(&scene)->reserved, 4);
        end(&scene);
}

/* Before Placement was read nothing is remembered of what stood there. */
static void test_a_first_picture(void **state)
{
        Scene scene;

        begin(&scene);
        assert_int_equal(set(&scene, "", NULL), 0);
        assert_int_equal(cordon_apply(scene.cordon, scene.mirror, &scene.root, false, NULL), 0);
        assert_true(is_disabled(&scene));
        string_set_remove(&host_of(&scene)->traits, CORDON_TRAIT);
        publish(&scene);
        assert_int_equal(cordon_lift(scene.cordon, scene.mirror, &scene.root, "", NULL), 0);
        publish(&scene);
        assert_false(is_disabled(&scene));
        end(&scene);
}

static void test_bad_files(void **state)
{
        static const char *const texts[] = {
                "",
                "[]",
                "{\"format\": \"compute-agent-cordon/1\"}",
                "{\"format\": \"compute-agent-cordon/1\", \"cordons\": [{\"device\": 1}]}",
                "{\"format\": \"compute-agent-cordon/2\", \"cordons\": []}",
        };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                Scene scene;

                begin(&scene);
                scratch_write(scene.folder, "cordon.json", texts[i]);
                start(&scene);
                assert_null(cordon_host_words(scene.cordon));
                assert_int_equal(set(&scene, "", NULL), 0);
                end(&scene);
        }
}

static void test_a_disk_that_cannot_be_written(void **state)
{
        Error error = ERROR_NULL;
        Scene scene;

        begin(&scene);
        cordon_free(scene.cordon);
        assert_int_equal(cordon_new(&scene.cordon, "/nonexistent", false), 0);
        assert_true(set(&scene, "", &error) < 0);
        assert_true(error.text[0] != '\0');
        assert_null(cordon_host_words(scene.cordon));
        publish(&scene);
        assert_false(is_disabled(&scene));
        end(&scene);
}

static void test_retired(void **state)
{
        Error error = ERROR_NULL;
        Scene scene;

        begin(&scene);
        assert_int_equal(cordon_set_retired(scene.cordon, true, &error), -ENOENT);
        assert_int_equal(set(&scene, "", NULL), 0);
        assert_int_equal(cordon_set_retired(scene.cordon, true, NULL), 0);
        start(&scene);
        assert_true(cordon_is_retired(scene.cordon));
        assert_non_null(strstr(cordon_host_words(scene.cordon), "cordoned and retired by ann"));
        assert_int_equal(cordon_lift(scene.cordon, scene.mirror, &scene.root, "", &error), -EINVAL);
        assert_int_equal(cordon_set_retired(scene.cordon, false, NULL), 0);
        start(&scene);
        assert_false(cordon_is_retired(scene.cordon));
        assert_int_equal(cordon_lift(scene.cordon, scene.mirror, &scene.root, "", NULL), 0);
        assert_int_equal(cordon_set_retired(scene.cordon, true, NULL), -ENOENT);
        end(&scene);
}

TEST_MAIN_AFTER(log_set_level(LOG_EMERG), NULL, NULL, test_retired, test_host,
                test_a_trait_of_somebody_else_stays, test_devices, test_a_device_that_is_withheld,
                test_what_others_reserve_meanwhile, test_a_first_picture, test_bad_files,
                test_a_disk_that_cannot_be_written)
