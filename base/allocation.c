/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Creates, edits, compares and copies consumers and sets of consumers. Both are sorted arrays
 * (base/array.h): a consumer keeps its allocations by provider, a set keeps its consumers by uuid.
 * Lookups are binary searches, and two equal consumers list equal parts in the same order. No
 * function here stores an allocation without a resource class: the last class that is set to 0
 * removes the allocation. Amounts come from Placement and from callers, so a sum can overflow:
 * consumer_add() then fails with -EOVERFLOW, and consumer_sum() saturates. A failed change of one
 * class changes nothing, but a failed change of several keeps its first part. Nothing checks names
 * of classes, or that a provider exists. No function blocks or has state. */

#include "base/allocation.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"

void consumer_clear(Consumer *consumer)
{
        for (size_t i = 0; i < consumer->n_allocations; i++)
                resources_done(&consumer->allocations[i].resources);
        free(consumer->allocations);
        consumer->allocations = NULL;
        consumer->n_allocations = consumer->n_allocated = 0;
}

int consumer_new(Consumer **ret, const Uuid *uuid)
{
        Consumer *consumer = calloc(1, sizeof(Consumer));

        if (!consumer)
                return -ENOMEM;
        consumer->uuid = *uuid;
        consumer->generation = -1;
        *ret = consumer;
        return 0;
}

Consumer *consumer_free(Consumer *consumer)
{
        if (!consumer)
                return NULL;
        consumer_clear(consumer);
        free(consumer->project_id);
        free(consumer->user_id);
        free(consumer->type);
        free(consumer);
        return NULL;
}

int allocations_new(Allocations **ret)
{
        Allocations *allocations = calloc(1, sizeof(Allocations));

        if (!allocations)
                return -ENOMEM;
        *ret = allocations;
        return 0;
}

Allocations *allocations_free(Allocations *allocations)
{
        if (!allocations)
                return NULL;
        for (size_t i = 0; i < allocations->n_consumers; i++)
                consumer_free(allocations->consumers[i]);
        free(allocations->consumers);
        free(allocations);
        return NULL;
}

static int order_consumer(const void *key, const void *item)
{
        return uuid_order(key, &(*(Consumer *const *)item)->uuid);
}

/* Returns the position of the uuid, or the position at which to insert it. */
static size_t find_consumer(const Allocations *allocations, const Uuid *uuid, bool *ret_found)
{
        return array_find(allocations->consumers, sizeof(Consumer *), allocations->n_consumers,
                          uuid, order_consumer, ret_found);
}

/* Inserts the consumer at a position that find_consumer() returned. The set owns it then.
 * -ENOMEM. */
static int insert_consumer(Allocations *allocations, size_t position, Consumer *consumer)
{
        if (array_grow(&allocations->consumers, sizeof(Consumer *), allocations->n_consumers,
                       &allocations->n_allocated) < 0)
                return -ENOMEM;
        array_open(allocations->consumers, sizeof(Consumer *), &allocations->n_consumers, position);
        allocations->consumers[position] = consumer;
        return 0;
}

int allocations_add(Allocations *allocations, Consumer *consumer)
{
        bool found;
        size_t position = find_consumer(allocations, &consumer->uuid, &found);

        return found ? -EEXIST : insert_consumer(allocations, position, consumer);
}

int allocations_ensure(Allocations *allocations, const Uuid *uuid, Consumer **ret)
{
        bool found;
        size_t position = find_consumer(allocations, uuid, &found);
        _cleanup_(consumer_freep) Consumer *consumer = NULL;

        if (found) {
                *ret = allocations->consumers[position];
                return 0;
        }
        if (consumer_new(&consumer, uuid) < 0 ||
            insert_consumer(allocations, position, consumer) < 0)
                return -ENOMEM;
        *ret = TAKE_PTR(consumer);
        return 0;
}

Consumer *allocations_find(const Allocations *allocations, const Uuid *uuid)
{
        bool found;
        size_t position = find_consumer(allocations, uuid, &found);

        return found ? allocations->consumers[position] : NULL;
}

bool allocations_remove(Allocations *allocations, const Uuid *uuid)
{
        bool found;
        size_t position = find_consumer(allocations, uuid, &found);

        if (!found)
                return false;
        consumer_free(allocations->consumers[position]);
        array_close(allocations->consumers, sizeof(Consumer *), &allocations->n_consumers,
                    position);
        return true;
}

/* Compares item by item: both lists are sorted by provider, so equal items have equal positions. */
bool consumer_holds_equal(const Consumer *a, const Consumer *b)
{
        if (a->n_allocations != b->n_allocations)
                return false;
        for (size_t i = 0; i < a->n_allocations; i++)
                if (!uuid_equal(&a->allocations[i].provider, &b->allocations[i].provider) ||
                    !resources_equal(&a->allocations[i].resources, &b->allocations[i].resources))
                        return false;
        return true;
}

static int order_allocation(const void *key, const void *item)
{
        return uuid_order(key, &((const Allocation *)item)->provider);
}

/* Returns the position of the provider's allocation, or the position at which to insert it. */
static size_t find_allocation(const Consumer *consumer, const Uuid *provider, bool *ret_found)
{
        return array_find(consumer->allocations, sizeof(Allocation), consumer->n_allocations,
                          provider, order_allocation, ret_found);
}

Resources *consumer_find(const Consumer *consumer, const Uuid *provider)
{
        bool found;
        size_t position = find_allocation(consumer, provider, &found);

        return found ? &consumer->allocations[position].resources : NULL;
}

bool consumer_is_same_project(const Consumer *a, const Consumer *b)
{
        return strcmp(a->project_id ? a->project_id : "", b->project_id ? b->project_id : "") == 0;
}

uint64_t consumer_get(const Consumer *consumer, const Uuid *provider, const char *resource_class)
{
        const Resources *resources = consumer_find(consumer, provider);

        return resources ? resources_get(resources, resource_class) : 0;
}

/* Removes an allocation whose last class was set to 0. */
static void remove_allocation(Consumer *consumer, size_t position)
{
        resources_done(&consumer->allocations[position].resources);
        array_close(consumer->allocations, sizeof(Allocation), &consumer->n_allocations, position);
}

int consumer_set(Consumer *consumer, const Uuid *provider, const char *resource_class,
                 uint64_t amount)
{
        /* The provider can point into the array that grows or shrinks below. */
        Uuid uuid = *provider;
        bool found;
        size_t position = find_allocation(consumer, &uuid, &found);
        Allocation *allocation;
        int r;

        if (!found && amount == 0)
                return 0;
        if (!found) {
                if (array_grow(&consumer->allocations, sizeof(Allocation), consumer->n_allocations,
                               &consumer->n_allocated) < 0)
                        return -ENOMEM;
                array_open(consumer->allocations, sizeof(Allocation), &consumer->n_allocations,
                           position);
                consumer->allocations[position] = (Allocation){ .provider = uuid };
        }
        allocation = &consumer->allocations[position];
        r = resources_set(&allocation->resources, resource_class, amount);
        if (allocation->resources.n_items == 0)
                remove_allocation(consumer, position);
        return r;
}

int consumer_add(Consumer *consumer, const Uuid *provider, const char *resource_class,
                 uint64_t amount)
{
        uint64_t sum;

        if (amount == 0)
                return 0;
        if (u64_add_overflow(consumer_get(consumer, provider, resource_class), amount, &sum))
                return -EOVERFLOW;
        return consumer_set(consumer, provider, resource_class, sum);
}

/* Calls change for each class of each allocation until it fails. The parts that were changed
 * before stay changed. */
static int each(Consumer *consumer, const Allocation *allocations, size_t n,
                int (*change)(Consumer *consumer, const Uuid *provider, const char *resource_class,
                              uint64_t amount))
{
        int r = 0;

        for (size_t i = 0; r >= 0 && i < n; i++) {
                const Resources *held = &allocations[i].resources;

                for (size_t j = 0; r >= 0 && j < held->n_items; j++)
                        r = change(consumer, &allocations[i].provider,
                                   held->items[j].resource_class, held->items[j].amount);
        }
        return r;
}

int consumer_add_all(Consumer *consumer, const Allocation *allocations, size_t n)
{
        return each(consumer, allocations, n, consumer_add);
}

int consumer_set_all(Consumer *consumer, const Allocation *allocations, size_t n)
{
        return each(consumer, allocations, n, consumer_set);
}

uint64_t consumer_sum(const Consumer *consumer, const char *resource_class)
{
        uint64_t sum = 0;

        /* The sum saturates, so that a comparison with a capacity fails and does not wrap. */
        for (size_t i = 0; i < consumer->n_allocations; i++)
                if (u64_add_overflow(
                            sum, resources_get(&consumer->allocations[i].resources, resource_class),
                            &sum))
                        return UINT64_MAX;
        return sum;
}

/* Copies a text; NULL stays NULL. -ENOMEM. */
static int copy_text(char **ret, const char *text)
{
        *ret = text ? strdup(text) : NULL;
        return text && !*ret ? -ENOMEM : 0;
}

/* Copies everything but the uuid, which the caller set. A failure (-ENOMEM) can leave a part
 * copied. */
static int copy_consumer(Consumer *to, const Consumer *from)
{
        to->generation = from->generation;
        to->modified_sec = from->modified_sec;
        if (copy_text(&to->project_id, from->project_id) < 0 ||
            copy_text(&to->user_id, from->user_id) < 0 || copy_text(&to->type, from->type) < 0)
                return -ENOMEM;
        return consumer_set_all(to, from->allocations, from->n_allocations);
}

/* Copies into a new consumer, which is freed if a part of the copy fails. */
int consumer_copy(Consumer **ret, const Consumer *consumer)
{
        _cleanup_(consumer_freep) Consumer *copy = NULL;
        int r = consumer_new(&copy, &consumer->uuid);

        if (r >= 0)
                r = copy_consumer(copy, consumer);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(copy);
        return 0;
}

/* Inserts the consumers in sorted order, so each one is appended without a move. */
int allocations_copy(Allocations **ret, const Allocations *allocations)
{
        _cleanup_(allocations_freep) Allocations *copy = NULL;
        int r = allocations_new(&copy);

        if (r < 0)
                return r;
        for (size_t i = 0; i < allocations->n_consumers; i++) {
                Consumer *consumer;

                r = allocations_ensure(copy, &allocations->consumers[i]->uuid, &consumer);
                if (r < 0)
                        return r;
                r = copy_consumer(consumer, allocations->consumers[i]);
                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(copy);
        return 0;
}
