/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/reshape/image.h"

#include "base/json.h"
#include "tests/fixtures/tree.h"
#include "tests/unit/test.h"

#define FLAT   "host VCPU=8 VGPU=2 | port<host CUSTOM_NET=5"
#define NESTED "host VCPU=8 | port<host CUSTOM_NET=5 | gpu<host VGPU=2 +CUSTOM_A"

/* Parses "guest host VCPU=2 VGPU=1; other gpu VGPU=1": each item is a consumer, a provider and its
 * allocations there. A consumer can have several items. */
static Allocations *make_consumers(const char *text)
{
        _cleanup_free_ char *copy = strdup(text);
        char *rest = copy, *item;
        Allocations *ret;

        assert_non_null(copy);
        assert_int_equal(allocations_new(&ret), 0);
        while ((item = strtok_r(rest, ";", &rest))) {
                char *words = item, *name = strtok_r(words, " ", &words);
                Uuid provider = make_uuid(strtok_r(words, " ", &words));

                for (char *word; (word = strtok_r(words, " ", &words));) {
                        char class[20];
                        unsigned amount;
                        Consumer *consumer;

                        assert_int_equal(sscanf(word, "%19[^=]=%u", class, &amount), 2);
                        consumer = fixture_hold(&ret, make_uuid(name), provider, class, amount);
                        free(consumer->project_id);
                        free(consumer->user_id);
                        consumer->project_id = strdup("p");
                        consumer->user_id = strdup("u");
                        consumer->generation = 1;
                }
        }
        return ret;
}

/* Makes the image of a reshape that moved VGPU of a guest from the host to its GPU. */
static void make_image(ReshapeImage *ret)
{
        *ret = (ReshapeImage){
                .taken_usec = 5,
                .before = { make_tree(FLAT), make_consumers("guest host VCPU=2 VGPU=1") },
                .after = { make_tree(NESTED),
                           make_consumers("guest host VCPU=2; guest gpu VGPU=1") },
        };
}

static bool trees_equal(const ProviderTree *a, const ProviderTree *b)
{
        if (a->n_providers != b->n_providers)
                return false;
        for (size_t i = 0; i < a->n_providers; i++) {
                const Provider *there = provider_tree_find(b, &a->providers[i]->uuid);

                if (!there || !provider_inventories_equal(a->providers[i], there))
                        return false;
        }
        return true;
}

static bool allocations_equal(const Allocations *a, const Allocations *b)
{
        if (a->n_consumers != b->n_consumers)
                return false;
        for (size_t i = 0; i < a->n_consumers; i++) {
                const Consumer *there = allocations_find(b, &a->consumers[i]->uuid);

                if (!there || !consumer_holds_equal(a->consumers[i], there))
                        return false;
        }
        return true;
}

static void test_there_and_back_in_json(void **state)
{
        _cleanup_(reshape_image_done) ReshapeImage image, again = { 0 };
        _cleanup_(driver_reshape_done) DriverReshape verdict = { 0 };
        _cleanup_json_ json_t *document = NULL;
        Uuid root = make_uuid("host"), guest = make_uuid("guest");
        const json_t *problem;

        make_image(&image);
        assert_int_equal(driver_reshape_add_problem(&verdict, &guest, "VGPU", "it is stuck"), 0);
        document = reshape_image_to_json(&image, &root, "host", &verdict);
        assert_non_null(document);
        problem = json_array_get(json_object_get(document, "problems"), 0);
        assert_string_equal(json_string_value(json_object_get(problem, "consumer")), guest.text);
        assert_string_equal(json_string_value(json_object_get(problem, "reason")), "it is stuck");

        assert_int_equal(reshape_image_from_json(document, &again, NULL), 0);
        assert_int_equal(again.taken_usec, 5);
        assert_true(trees_equal(again.before.tree, image.before.tree));
        assert_true(trees_equal(again.after.tree, image.after.tree));
        assert_true(allocations_equal(again.before.consumers, image.before.consumers));
        assert_true(allocations_equal(again.after.consumers, image.after.consumers));
}

static void test_malformed_image(void **state)
{
        static const struct {
                const char *key, *member, *value;
        } cases[] = {
                { "taken_usec", NULL, "\"x\"" },
                { "before", NULL, NULL },
                { "after", NULL, "5" },
                { "after", "providers", "5" },
                { "before", "consumers", NULL },
                { "before", "consumers", "{\"x\": {\"allocations\": {}}}" },
                { "after", "consumers",
                  "{\"11111111-1111-1111-1111-111111111111\": {\"allocations\": 5}}" },
        };
        Uuid root = make_uuid("host");

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(reshape_image_done) ReshapeImage image, again = { 0 };
                _cleanup_json_ json_t *document = NULL;
                Error error = ERROR_NULL;
                json_t *object;

                make_image(&image);
                document = reshape_image_to_json(&image, &root, "host", NULL);
                object = cases[i].member ? json_object_get(document, cases[i].key) : document;
                if (cases[i].value)
                        json_object_set_new(object,
                                            cases[i].member ? cases[i].member : cases[i].key,
                                            json_loads(cases[i].value, JSON_DECODE_ANY, NULL));
                else
                        json_object_del(object, cases[i].member ? cases[i].member : cases[i].key);
                if (reshape_image_from_json(document, &again, &error) != -EBADMSG)
                        fail_msg("case %zu: %s", i, error.text);
                assert_null(again.before.tree);
        }
}

static void test_undo(void **state)
{
        static const struct {
                const char *about, *current, *consumers;
                const char *tree, *after; /* NULL: the undo fails with these words */
        } cases[] = {
                { "as the reshape left it", NESTED, "guest host VCPU=2; guest gpu VGPU=1", FLAT,
                  "guest host VCPU=2 VGPU=1" },
                { "what else there is stays", NESTED " | disk<host DISK_GB=9",
                  "guest host VCPU=2; guest gpu VGPU=1; other port CUSTOM_NET=1",
                  FLAT " | disk<host DISK_GB=9",
                  "guest host VCPU=2 VGPU=1; other port CUSTOM_NET=1" },
                { "the guest is gone", NESTED, "", FLAT, "" },
                { "another holds CPUs", NESTED, "other host VCPU=1", FLAT, "other host VCPU=1" },
                { "the guest was resized", NESTED, "guest host VCPU=3; guest gpu VGPU=1", NULL,
                  "changed since" },
                { "an inventory is another that was not moved", "host VCPU=9 | gpu<host VGPU=2", "",
                  "host VCPU=9 VGPU=2", "" },
                { "what came new has other limits by now", "host VCPU=8 | gpu<host VGPU=3",
                  "guest host VCPU=2; guest gpu VGPU=1", "host VCPU=8 VGPU=2",
                  "guest host VCPU=2 VGPU=1" },
                { "what was moved is there again", "host VCPU=8 VGPU=1 | gpu<host VGPU=2", "", NULL,
                  "Provider host changed since" },
                { "the host is another", "other VCPU=8", "", NULL, "Provider host changed since" },
                { "a stranger came to the GPU", NESTED, "other gpu VGPU=1", NULL,
                  "came after the reshape and has VGPU of gpu" },
                { "a child stands below the GPU", NESTED " | part<gpu CUSTOM_X=1", "",
                  FLAT " | gpu<host VGPU=2 | part<gpu CUSTOM_X=1", "" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(reshape_image_done) ReshapeImage image;
                _cleanup_(provider_tree_freep) ProviderTree *current = make_tree(cases[i].current);
                _cleanup_(allocations_freep) Allocations *consumers =
                        make_consumers(cases[i].consumers);
                ReshapeShape shape = { 0 };
                Error error = ERROR_NULL;
                int r;

                make_image(&image);
                r = reshape_image_undo(&image, current, consumers, &shape, &error);
                if (cases[i].tree) {
                        _cleanup_(provider_tree_freep) ProviderTree *tree =
                                make_tree(cases[i].tree);
                        _cleanup_(allocations_freep) Allocations *after =
                                make_consumers(cases[i].after);

                        if (r != 0)
                                fail_msg("%s: %s", cases[i].about, error.text);
                        if (!trees_equal(shape.tree, tree) ||
                            !allocations_equal(shape.consumers, after))
                                fail_msg("%s", cases[i].about);
                } else if (r != -EBUSY || !strstr(error.text, cases[i].after)) {
                        fail_msg("%s: %d, %s", cases[i].about, r, error.text);
                }
                provider_tree_free(shape.tree);
                allocations_free(shape.consumers);
        }
}

/* A device that the reshape moved below a new cell returns to the root, so that the cell can be
 * removed with its inventories. */
static void test_undo_of_a_move(void **state)
{
        _cleanup_(reshape_image_done) ReshapeImage image = {
                .before = { make_tree("host VCPU=8 | port<host CUSTOM_NET=5"), make_consumers("") },
                .after = { make_tree("host | cell<host VCPU=8 | port<cell CUSTOM_NET=5"),
                           make_consumers("") },
        };
        _cleanup_(provider_tree_freep) ProviderTree *current = NULL;
        _cleanup_(allocations_freep) Allocations *consumers = make_consumers("");
        ReshapeShape shape = { 0 };

        assert_int_equal(provider_tree_copy(&current, image.after.tree), 0);
        assert_int_equal(reshape_image_undo(&image, current, consumers, &shape, NULL), 0);
        assert_true(trees_equal(shape.tree, image.before.tree));
        provider_tree_free(shape.tree);
        allocations_free(shape.consumers);
}

/* The driver changes amounts that do not move, in the reshape and after it. Only an inventory whose
 * allocations the reshape moved must be as it left it. */
static void test_undo_after_an_inventory_changed_twice(void **state)
{
        static const struct {
                const char *now, *expected; /* NULL: EBUSY */
        } cases[] = {
                { "host DISK_GB=400 | a<host VGPU=1 | b<host VGPU=3",
                  "host DISK_GB=500 | a<host VGPU=2 | b<host VGPU=2" },
                { "host DISK_GB=300 | a<host VGPU=1 | b<host VGPU=3",
                  "host DISK_GB=300 | a<host VGPU=2 | b<host VGPU=2" },
                { "host DISK_GB=400 | a<host VGPU=9 | b<host VGPU=3", NULL },
                { "host | a<host VGPU=1 | b<host VGPU=3", "host | a<host VGPU=2 | b<host VGPU=2" },
                { "host DISK_GB=400 | a<host | b<host VGPU=3", NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(reshape_image_done) ReshapeImage image = {
                        .before = { make_tree("host DISK_GB=500 | a<host VGPU=2 | b<host VGPU=2"),
                                    make_consumers("guest host DISK_GB=9; guest a VGPU=1") },
                        .after = { make_tree("host DISK_GB=400 | a<host VGPU=1 | b<host VGPU=3"),
                                   make_consumers("guest host DISK_GB=9; guest b VGPU=1") },
                };
                _cleanup_(provider_tree_freep) ProviderTree *now = make_tree(cases[i].now);
                _cleanup_(allocations_freep) Allocations *consumers =
                        make_consumers("guest host DISK_GB=9; guest b VGPU=1");
                ReshapeShape shape = { 0 };

                assert_int_equal(reshape_image_undo(&image, now, consumers, &shape, NULL),
                                 cases[i].expected ? 0 : -EBUSY);
                if (cases[i].expected) {
                        _cleanup_(provider_tree_freep) ProviderTree *expected =
                                make_tree(cases[i].expected);

                        if (!trees_equal(shape.tree, expected))
                                fail_msg("%s", cases[i].now);
                }
                provider_tree_free(shape.tree);
                allocations_free(shape.consumers);
        }
}

/* The reshape opened an inventory of the port, and the next tree closed it again. */
static void test_undo_after_an_inventory_was_open(void **state)
{
        static const struct {
                const char *now, *expected;
        } cases[] = {
                { "host VCPU=8 | port<host CUSTOM_NET=5/5 | gpu<host VGPU=2",
                  "host VCPU=8 VGPU=2 | port<host CUSTOM_NET=5/5" },
                { "host VCPU=8 | port<host CUSTOM_NET=5 | gpu<host VGPU=2",
                  "host VCPU=8 VGPU=2 | port<host CUSTOM_NET=5" },
                { "host VCPU=8 | port<host CUSTOM_NET=1 | gpu<host VGPU=2",
                  "host VCPU=8 VGPU=2 | port<host CUSTOM_NET=5/5" },
                { "host VCPU=8 | port<host CUSTOM_NET=4 | gpu<host VGPU=2",
                  "host VCPU=8 VGPU=2 | port<host CUSTOM_NET=4" },
                { "host VCPU=8 | port<host | gpu<host VGPU=2", "host VCPU=8 VGPU=2 | port<host" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(reshape_image_done) ReshapeImage image = {
                        .before = { make_tree("host VCPU=8 VGPU=2 | port<host CUSTOM_NET=5/5"),
                                    make_consumers("") },
                        .after = { make_tree("host VCPU=8 | port<host CUSTOM_NET=1 | "
                                             "gpu<host VGPU=2"),
                                   make_consumers("") },
                };
                _cleanup_(provider_tree_freep) ProviderTree *now = make_tree(cases[i].now),
                                                            *expected =
                                                                    make_tree(cases[i].expected);
                _cleanup_(allocations_freep) Allocations *consumers = make_consumers("");
                ReshapeShape shape = { 0 };

                assert_int_equal(reshape_image_undo(&image, now, consumers, &shape, NULL), 0);
                if (!trees_equal(shape.tree, expected))
                        fail_msg("%s", cases[i].now);
                provider_tree_free(shape.tree);
                allocations_free(shape.consumers);
        }
}

static void test_open(void **state)
{
        static const struct {
                const char *about, *tree, *before, *after, *others, *expected;
        } cases[] = {
                { "it fits", "host VCPU=8", "", "a host VCPU=5", "", "host VCPU=8" },
                { "the total is too small", "host VCPU=4", "", "a host VCPU=5", "", "host VCPU=5" },
                { "a part is reserved", "host VCPU=4/2", "", "a host VCPU=5", "", "host VCPU=7/2" },
                { "all is reserved", "host VCPU=4/4", "", "a host VCPU=1", "", "host VCPU=5/4" },
                { "more than all is reserved", "host VCPU=4/1000000", "", "a host VCPU=5", "",
                  "host VCPU=1000005/1000000" },
                { "a large ratio", "host VCPU=4/4/1/9/1/2", "", "a host VCPU=9", "",
                  "host VCPU=9/4/1/9/1/2" },
                { "a small ratio", "host VCPU=4/0/1/9/1/0.5", "", "a host VCPU=5", "",
                  "host VCPU=10/0/1/9/1/0.5" },
                { "no total is enough", "host VCPU=4/0/1/9/1/0", "", "a host VCPU=5", "",
                  "host VCPU=2147483647/0/1/9/1/0" },
                { "the units", "host VCPU=8/0/6/4/4", "", "a host VCPU=5", "",
                  "host VCPU=5/0/5/5/1" },
                { "several consumers", "host VCPU=9/9", "", "a host VCPU=2; b host VCPU=3",
                  "c host VCPU=1", "host VCPU=15/9" },
                { "one that does not change", "host VCPU=4/4", "a host VCPU=1", "a host VCPU=1", "",
                  "host VCPU=4/4" },
                { "another tree, and a provider of another host", "host | pool VCPU=4/4", "",
                  "a pool VCPU=1; a else VCPU=1", "", "host | pool VCPU=4/4" },
                { "a class without inventory", "host VCPU=4", "", "a host DISK_GB=1", "",
                  "host VCPU=4" },
        };
        const Uuid root = make_uuid("host");

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(reshape_image_done) ReshapeImage image = {
                        .before = { NULL, make_consumers(cases[i].before) },
                        .after = { make_tree(cases[i].tree), make_consumers(cases[i].after) },
                };
                _cleanup_(provider_tree_freep) ProviderTree *expected =
                        make_tree(cases[i].expected);
                _cleanup_(allocations_freep) Allocations *others = make_consumers(cases[i].others);

                assert_int_equal(reshape_image_open(&image, others, NULL, &root), 0);
                if (!trees_equal(image.after.tree, expected))
                        fail_msg("%s", cases[i].about);
        }
}

TEST_MAIN(test_there_and_back_in_json, test_malformed_image, test_undo, test_undo_of_a_move,
          test_undo_after_an_inventory_changed_twice, test_undo_after_an_inventory_was_open,
          test_open)
