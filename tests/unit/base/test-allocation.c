/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/allocation.h"

#include "tests/shims/fail-alloc.h"
#include "tests/unit/test.h"

static Uuid uuid_of(unsigned n)
{
        char text[UUID_TEXT_LENGTH + 1];
        Uuid uuid = UUID_NULL;

        snprintf(text, sizeof(text), "%08x-0000-4000-8000-000000000000", n);
        assert_int_equal(uuid_from_text(text, &uuid), 0);
        return uuid;
}

static Consumer *ensure(Allocations *allocations, unsigned n)
{
        Consumer *consumer = NULL;
        Uuid uuid = uuid_of(n);

        assert_int_equal(allocations_ensure(allocations, &uuid, &consumer), 0);
        return consumer;
}

static void set(Consumer *consumer, unsigned provider, const char *resource_class, uint64_t amount)
{
        Uuid uuid = uuid_of(provider);

        assert_int_equal(consumer_set(consumer, &uuid, resource_class, amount), 0);
}

static uint64_t get(const Consumer *consumer, unsigned provider, const char *resource_class)
{
        Uuid uuid = uuid_of(provider);

        return consumer_get(consumer, &uuid, resource_class);
}

static void test_consumers(void **state)
{
        static const unsigned order[] = { 5, 9, 1, 7, 3, 8, 2, 6, 4, 10, 12, 11 };
        _cleanup_(allocations_freep) Allocations *allocations = NULL;
        Uuid unknown = uuid_of(99);

        assert_int_equal(allocations_new(&allocations), 0);
        for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
                Consumer *consumer = ensure(allocations, order[i]);
                Uuid uuid = uuid_of(order[i]);

                assert_int_equal(consumer->generation, -1);
                assert_int_equal(consumer->n_allocations, 0);
                assert_null(consumer->type);
                assert_ptr_equal(ensure(allocations, order[i]), consumer);
                assert_ptr_equal(allocations_find(allocations, &uuid), consumer);
        }
        assert_int_equal(allocations->n_consumers, ARRAY_SIZE(order));
        for (unsigned i = 0; i < ARRAY_SIZE(order); i++) {
                Uuid uuid = uuid_of(i + 1);

                assert_true(uuid_equal(&allocations->consumers[i]->uuid, &uuid));
        }
        assert_null(allocations_find(allocations, &unknown));
        assert_null(allocations_free(NULL));
}

static void test_set_and_add(void **state)
{
        _cleanup_(allocations_freep) Allocations *allocations = NULL;
        Uuid two = uuid_of(2), one = uuid_of(1);
        Consumer *consumer;

        assert_int_equal(allocations_new(&allocations), 0);
        consumer = ensure(allocations, 1);
        set(consumer, 2, "VCPU", 4);
        set(consumer, 1, "VGPU", 1);
        set(consumer, 2, "MEMORY_MB", 512);
        assert_int_equal(consumer->n_allocations, 2);
        assert_true(uuid_equal(&consumer->allocations[0].provider, &one));
        assert_int_equal(get(consumer, 2, "VCPU"), 4);

        set(consumer, 2, "VCPU", 3);
        assert_int_equal(get(consumer, 2, "VCPU"), 3);
        assert_int_equal(consumer_add(consumer, &two, "VCPU", 2), 0);
        assert_int_equal(get(consumer, 2, "VCPU"), 5);
        assert_int_equal(consumer_add(consumer, &two, "VCPU", UINT64_MAX), -EOVERFLOW);
        assert_int_equal(get(consumer, 2, "VCPU"), 5);

        /* An amount of 0 adds no allocation, and the last class of an allocation removes it. */
        assert_int_equal(consumer_add(consumer, &two, "DISK_GB", 0), 0);
        set(consumer, 3, "DISK_GB", 0);
        assert_int_equal(consumer->n_allocations, 2);
        assert_int_equal(consumer_find(consumer, &two)->n_items, 2);
        set(consumer, 1, "VGPU", 0);
        assert_null(consumer_find(consumer, &one));
        assert_int_equal(consumer->n_allocations, 1);
        /* The uuid can point into the record that is removed. */
        assert_int_equal(consumer_set(consumer, &consumer->allocations[0].provider, "VCPU", 0), 0);
        assert_int_equal(consumer_set(consumer, &consumer->allocations[0].provider, "MEMORY_MB", 0),
                         0);
        assert_int_equal(consumer->n_allocations, 0);
}

static void test_sum(void **state)
{
        _cleanup_(allocations_freep) Allocations *allocations = NULL;
        Consumer *consumer;

        assert_int_equal(allocations_new(&allocations), 0);
        consumer = ensure(allocations, 1);
        assert_int_equal(consumer_sum(consumer, "VCPU"), 0);
        for (unsigned provider = 20; provider > 0; provider--)
                set(consumer, provider, "VCPU", provider);
        set(consumer, 3, "VGPU", 7);
        assert_int_equal(consumer->n_allocations, 20);
        assert_int_equal(consumer_sum(consumer, "VCPU"), 210);
        assert_int_equal(consumer_sum(consumer, "VGPU"), 7);
        set(consumer, 1, "VCPU", UINT64_MAX);
        assert_int_equal(consumer_sum(consumer, "VCPU"), UINT64_MAX);
}

static Allocations *make_allocations(void)
{
        Allocations *allocations = NULL;
        Consumer *consumer;

        assert_int_equal(allocations_new(&allocations), 0);
        consumer = ensure(allocations, 2);
        consumer->generation = 7;
        consumer->project_id = strdup("project");
        consumer->user_id = strdup("user");
        consumer->type = strdup("INSTANCE");
        set(consumer, 1, "VCPU", 4);
        set(consumer, 1, "MEMORY_MB", 512);
        set(consumer, 8, "VGPU", 1);
        ensure(allocations, 1); /* a consumer without allocations, the form of a deletion */
        return allocations;
}

static void assert_is_copy(const Allocations *copy, const Allocations *original)
{
        const Consumer *consumer;

        assert_int_equal(copy->n_consumers, 2);
        assert_int_equal(copy->consumers[0]->generation, -1);
        assert_int_equal(copy->consumers[0]->n_allocations, 0);
        assert_null(copy->consumers[0]->project_id);
        consumer = copy->consumers[1];
        assert_ptr_not_equal(consumer, original->consumers[1]);
        assert_int_equal(consumer->generation, 7);
        assert_string_equal(consumer->project_id, "project");
        assert_string_equal(consumer->user_id, "user");
        assert_string_equal(consumer->type, "INSTANCE");
        assert_int_equal(consumer->n_allocations, 2);
        for (size_t i = 0; i < 2; i++)
                assert_true(resources_equal(&consumer->allocations[i].resources,
                                            &original->consumers[1]->allocations[i].resources));
}

static void test_copy(void **state)
{
        _cleanup_(allocations_freep) Allocations *original = make_allocations(), *copy = NULL;

        assert_int_equal(allocations_copy(&copy, original), 0);
        assert_is_copy(copy, original);
        set(copy->consumers[1], 1, "VCPU", 9);
        assert_int_equal(get(original->consumers[1], 1, "VCPU"), 4);
}

static void test_single_consumer(void **state)
{
        static const Uuid uuid = { "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa" };
        _cleanup_(allocations_freep) Allocations *allocations = NULL;
        _cleanup_(consumer_freep) Consumer *consumer = NULL, *copy = NULL;

        assert_int_equal(allocations_new(&allocations), 0);
        assert_int_equal(consumer_new(&consumer, &uuid), 0);
        assert_int_equal(consumer->generation, -1);
        assert_int_equal(consumer_set(consumer, &uuid, "VCPU", 2), 0);
        assert_int_equal(consumer_copy(&copy, consumer), 0);
        assert_true(consumer_holds_equal(copy, consumer));
        assert_int_equal(allocations_add(allocations, consumer), 0);
        assert_ptr_equal(allocations_find(allocations, &uuid), consumer);
        consumer = NULL;
        assert_int_equal(allocations_add(allocations, copy), -EEXIST);
}

static void test_copy_without_memory(void **state)
{
        _cleanup_(allocations_freep) Allocations *original = make_allocations(), *copy = NULL;
        unsigned at;
        int r;

        FAIL_ALLOC_EACH(at, r = allocations_copy(&copy, original)) {
                assert_int_equal(r, -ENOMEM);
                assert_null(copy);
        }
        assert_true(at > 10);
        assert_is_copy(copy, original);
}

static void test_set_without_memory(void **state)
{
        _cleanup_(allocations_freep) Allocations *allocations = make_allocations();
        Consumer *consumer = allocations->consumers[1];
        Uuid known = uuid_of(1), new = uuid_of(4), unknown = uuid_of(30);
        Consumer *ensured = NULL;
        unsigned at;
        int r;

        fail_alloc_at(0);
        assert_int_equal(consumer_set(consumer, &known, "DISK_GB", 1), -ENOMEM);
        assert_true(fail_alloc_done());
        assert_int_equal(resources_get(consumer_find(consumer, &known), "DISK_GB"), 0);
        assert_int_equal(consumer_find(consumer, &known)->n_items, 2);

        /* No failure leaves an allocation without a class. */
        FAIL_ALLOC_EACH(at, r = consumer_add(consumer, &new, "VGPU", 1)) {
                assert_int_equal(r, -ENOMEM);
                assert_null(consumer_find(consumer, &new));
                assert_int_equal(consumer->n_allocations, 2);
        }
        assert_int_equal(get(consumer, 4, "VGPU"), 1);

        FAIL_ALLOC_EACH(at, r = allocations_ensure(allocations, &unknown, &ensured)) {
                assert_int_equal(r, -ENOMEM);
                assert_null(ensured);
                assert_int_equal(allocations->n_consumers, 2);
        }
        assert_int_equal(allocations->n_consumers, 3);
}

TEST_MAIN(test_consumers, test_set_and_add, test_sum, test_copy, test_single_consumer,
          test_copy_without_memory, test_set_without_memory)
