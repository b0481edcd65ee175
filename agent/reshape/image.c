/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Converts the image of a reshape to JSON and back, and computes its undo. All functions are pure.
 *
 * An undo compares three states of each provider and consumer: before and after the reshape, and
 * the current one. It changes only inventories, parents and allocations that the reshape changed. A
 * provider that the reshape created is removed unless it still has children, and one that it
 * removed is created again, with its traits and without its aggregates. The inventories that the
 * reshape changed, and the allocations of the consumers that it moved, must equal those after the
 * reshape. A difference means that another writer has changed them since, so the undo fails with
 * -EBUSY and sends nothing. There are five exceptions. An inventory or provider that the reshape
 * created is removed even if its values differ now; only a use by a consumer that the reshape did
 * not move is -EBUSY. A provider that the reshape removed and that exists again gets its old
 * inventories and traits. A provider that was moved again since keeps its parent. A changed
 * inventory that has its old total again keeps its values: reshape_image_open() changed it, and the
 * next tree changed it back. An inventory that was there before and after the reshape, without
 * moved allocations, keeps its values, too: the driver changes some of them at any time, such as
 * the size of a pool. */

#include "agent/reshape/image.h"

#include <string.h>

#include "base/json.h"
#include "formats/format-names.h"
#include "formats/tree-json.h"
#include "report/placement/request.h"

static void shape_done(ReshapeShape *shape)
{
        provider_tree_free(shape->tree);
        allocations_free(shape->consumers);
        *shape = (ReshapeShape){ 0 };
}

void reshape_image_done(ReshapeImage *image)
{
        shape_done(&image->before);
        shape_done(&image->after);
        *image = (ReshapeImage){ 0 };
}

/* JSON */

static json_t *shape_to_json(const ReshapeShape *shape, const Uuid *root, const char *node)
{
        _cleanup_json_ json_t *tree = tree_to_json(shape->tree, NULL, root, node, "");

        if (!tree || json_object_set_new(tree, "consumers",
                                         placement_consumers_to_json(shape->consumers, true)) < 0)
                return NULL;
        return TAKE_PTR(tree);
}

static json_t *problems_to_json(const DriverReshape *verdict)
{
        _cleanup_json_ json_t *array = json_array();

        for (size_t i = 0; array && verdict && i < verdict->n_problems; i++) {
                const ReshapeProblem *problem = &verdict->problems[i];

                if (json_array_append_new(array, json_pack("{ss ss ss}", "consumer",
                                                           problem->consumer.text, "resource_class",
                                                           problem->resource_class, "reason",
                                                           problem->reason)) < 0)
                        return NULL;
        }
        return TAKE_PTR(array);
}

json_t *reshape_image_to_json(const ReshapeImage *image, const Uuid *root, const char *node,
                              const DriverReshape *verdict)
{
        _cleanup_json_ json_t *document =
                json_pack("{ss sI ss}", "format", RESHAPE_FORMAT, "taken_usec",
                          (json_int_t)image->taken_usec, "node", node);

        if (!document ||
            json_object_set_new(document, "before", shape_to_json(&image->before, root, node)) <
                    0 ||
            json_object_set_new(document, "after", shape_to_json(&image->after, root, node)) < 0 ||
            json_object_set_new(document, "problems", problems_to_json(verdict)) < 0)
                return NULL;
        return TAKE_PTR(document);
}

/* Reads the inventories of a provider. Computed members are ignored. */
static int read_inventories(const json_t *item, Provider *provider, Error *reterr)
{
        json_t *object, *record;
        const char *name;
        int r = json_read_object(item, "inventories", &object, reterr);

        if (r < 0)
                return r;
        json_object_foreach(object, name, record) {
                Inventory inventory;

                r = inventory_from_json(record, &inventory, reterr);
                if (r < 0)
                        return r;
                r = provider_set_inventory(provider, name, &inventory);
                if (r < 0)
                        return error_setf(reterr, r == -ENOMEM ? r : -EBADMSG,
                                          "\"%.60s\" is not a resource class", name);
        }
        return 0;
}

static int read_names(const json_t *item, const char *key, StringSet *ret, Error *reterr)
{
        json_t *array;
        int r = json_read_array(item, key, &array, reterr);

        return r < 0 ? r : string_set_from_json(array, ret, reterr);
}

/* Adds a provider to the tree. Its parent must be there already. */
static int read_provider(const json_t *item, ProviderTree *tree, Error *reterr)
{
        bool is_root = json_is_null(json_object_get(item, "parent"));
        Provider *provider;
        const char *name;
        Uuid uuid, parent;
        int r;

        if ((r = json_read_uuid(item, "uuid", &uuid, reterr)) < 0 ||
            (r = json_read_string(item, "name", &name, reterr)) < 0 ||
            (!is_root && (r = json_read_uuid(item, "parent", &parent, reterr)) < 0))
                return r;
        r = provider_tree_add(tree, &uuid, name, is_root ? NULL : &parent, &provider, reterr);
        if (r < 0)
                return r == -ENOMEM ? r : -EBADMSG;
        if ((r = read_inventories(item, provider, reterr)) < 0 ||
            (r = read_names(item, "traits", &provider->traits, reterr)) < 0)
                return r;
        return read_names(item, "aggregates", &provider->aggregates, reterr);
}

/* Reads the providers of a shape; the caller owns the tree. Returns -EBADMSG with words, or
 * -ENOMEM. */
static int read_tree(const json_t *object, ProviderTree **ret, Error *reterr)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = NULL;
        json_t *array, *item;
        size_t i;
        int r = json_read_array(object, "providers", &array, reterr);

        if (r < 0)
                return r;
        if (provider_tree_new(&tree) < 0)
                return error_oom(reterr);
        json_array_foreach(array, i, item) {
                r = read_provider(item, tree, reterr);
                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(tree);
        return 0;
}

static int shape_from_json(const json_t *document, const char *key, ReshapeShape *ret,
                           Error *reterr)
{
        json_t *object, *consumers, *item;
        const char *name;
        int r = json_read_object(document, key, &object, reterr);

        if (r >= 0)
                r = read_tree(object, &ret->tree, reterr);
        if (r >= 0)
                r = json_read_object(object, "consumers", &consumers, reterr);
        if (r < 0)
                return r;
        if (allocations_new(&ret->consumers) < 0)
                return error_oom(reterr);
        json_object_foreach(consumers, name, item) {
                Uuid uuid;

                if (uuid_from_text(name, &uuid) < 0)
                        return error_setf(reterr, EBADMSG, "\"%.60s\" is not a uuid", name);
                r = placement_read_consumer(item, &uuid, ret->consumers, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

int reshape_image_from_json(const json_t *object, ReshapeImage *ret, Error *reterr)
{
        _cleanup_(reshape_image_done) ReshapeImage image = { 0 };
        int r;

        if ((r = json_read_u64(object, "taken_usec", &image.taken_usec, reterr)) < 0 ||
            (r = shape_from_json(object, "before", &image.before, reterr)) < 0 ||
            (r = shape_from_json(object, "after", &image.after, reterr)) < 0)
                return r;
        *ret = TAKE_STRUCT(image);
        return 0;
}

/* Undo */

/* Returns true if the reshape changed the inventories of the provider, or removed it. */
static bool is_changed(const ReshapeImage *image, const Provider *before)
{
        const Provider *after = provider_tree_find(image->after.tree, &before->uuid);

        return !after || !provider_inventories_equal(before, after);
}

static bool records_equal(const Inventory *a, const Inventory *b)
{
        return a && b ? inventory_equal(a, b) : a == b;
}

/* Returns true if the reshape changed the amount of the inventory that a consumer has. */
static bool has_moved(const ReshapeImage *image, const Uuid *provider, const char *resource_class)
{
        for (size_t i = 0; i < image->after.consumers->n_consumers; i++) {
                const Consumer *after = image->after.consumers->consumers[i];
                const Consumer *before = allocations_find(image->before.consumers, &after->uuid);

                if (before && consumer_get(before, provider, resource_class) !=
                                      consumer_get(after, provider, resource_class))
                        return true;
        }
        return false;
}

/* Restores one inventory of a provider if the reshape changed it. after NULL: the reshape removed
 * the provider, and the old inventory is set without a comparison. An inventory that the reshape
 * created is removed without a comparison. */
static int restore_record(const ReshapeImage *image, const Provider *before, const Provider *after,
                          Provider *current, const char *resource_class, Error *reterr)
{
        const Inventory *old = provider_find_inventory(before, resource_class);
        const Inventory *moved = after ? provider_find_inventory(after, resource_class) : NULL;
        const Inventory *now = provider_find_inventory(current, resource_class);

        if (records_equal(old, moved))
                return 0;
        if (!old) {
                provider_remove_inventory(current, resource_class);
                return 0;
        }
        if (moved && !records_equal(now, moved) &&
            ((now && now->total == old->total) || !has_moved(image, &before->uuid, resource_class)))
                return 0;
        if (after && !records_equal(now, moved))
                return error_setf(reterr, EBUSY, "Provider %s changed since the reshape",
                                  before->name);
        return provider_set_inventory(current, resource_class, old) < 0 ? error_oom(reterr) : 0;
}

static int restore_records(const ReshapeImage *image, const Provider *before, const Provider *after,
                           Provider *current, Error *reterr)
{
        int r = 0;

        for (size_t i = 0; r >= 0 && i < before->n_inventories; i++)
                r = restore_record(image, before, after, current,
                                   before->inventories[i].resource_class, reterr);
        for (size_t i = 0; r >= 0 && after && i < after->n_inventories; i++)
                r = restore_record(image, before, after, current,
                                   after->inventories[i].resource_class, reterr);
        return r;
}

/* Restores a provider that the reshape changed or removed. A removed one is created again, with its
 * old traits. */
static int restore_provider(const ReshapeImage *image, const Provider *before, ProviderTree *tree,
                            Error *reterr)
{
        const Provider *after = provider_tree_find(image->after.tree, &before->uuid);
        Provider *current = provider_tree_find(tree, &before->uuid);
        int r = 0;

        if (after && !current)
                return error_setf(reterr, EBUSY, "Provider %s changed since the reshape",
                                  before->name);
        if (!current)
                r = provider_tree_add(tree, &before->uuid, before->name,
                                      uuid_empty(&before->parent) ? NULL : &before->parent,
                                      &current, reterr);
        if (r >= 0)
                r = restore_records(image, before, after, current, reterr);
        if (r < 0)
                return r;
        if (!after && string_set_copy(&current->traits, &before->traits) < 0)
                return error_oom(reterr);
        return 0;
}

/* Moves a provider back below its old parent if the reshape moved it and it was not moved since. So
 * a parent that the reshape created loses this child, and restore_tree() can remove it after its
 * last one. */
static int restore_parent(const ReshapeImage *image, const Provider *before, ProviderTree *tree)
{
        const Provider *after = provider_tree_find(image->after.tree, &before->uuid);
        Provider *current = provider_tree_find(tree, &before->uuid);

        if (!after || !current || uuid_equal(&after->parent, &before->parent) ||
            !uuid_equal(&current->parent, &after->parent))
                return 0;
        return provider_tree_move(tree, current, &before->parent);
}

/* Restores the providers that the reshape changed, and then removes those that it created. A
 * created provider that still has children stays. */
static int restore_tree(const ReshapeImage *image, ProviderTree *tree, Error *reterr)
{
        for (size_t i = 0; i < image->before.tree->n_providers; i++) {
                const Provider *before = image->before.tree->providers[i];
                int r = is_changed(image, before) ? restore_provider(image, before, tree, reterr)
                                                  : 0;

                if (r >= 0 && (r = restore_parent(image, before, tree)) < 0)
                        r = error_setf(reterr, r,
                                       "Provider %s cannot be moved back below its parent: %s",
                                       before->name, strerror(-r));
                if (r < 0)
                        return r;
        }
        /* The order is backwards, because children must be removed before their parents. */
        for (size_t i = image->after.tree->n_providers; i > 0; i--) {
                const Uuid *uuid = &image->after.tree->providers[i - 1]->uuid;

                if (!provider_tree_find(image->before.tree, uuid) &&
                    !provider_tree_has_children(tree, uuid))
                        provider_tree_remove(tree, uuid);
        }
        return 0;
}

/* Restores the allocations of a consumer that the reshape moved. Returns -EBUSY if they changed
 * since the reshape. */
static int restore_consumer(const ReshapeImage *image, const Consumer *after, Consumer *current,
                            Error *reterr)
{
        const Consumer *before = allocations_find(image->before.consumers, &after->uuid);

        if (!consumer_holds_equal(after, current))
                return error_setf(reterr, EBUSY, "Consumer %s changed since the reshape",
                                  after->uuid.text);
        if (!before)
                return 0;
        consumer_clear(current);
        return consumer_set_all(current, before->allocations, before->n_allocations) < 0
                       ? error_oom(reterr)
                       : 0;
}

/* Checks a consumer that the reshape did not move. Returns -EBUSY if it has an allocation from an
 * inventory that the undo removes. current is the tree before the undo, tree the one after it. */
static int check_unowned(const ProviderTree *current, const ProviderTree *tree,
                         const Consumer *consumer, Error *reterr)
{
        for (size_t i = 0; i < consumer->n_allocations; i++) {
                const Allocation *held = &consumer->allocations[i];
                const Provider *here = provider_tree_find(current, &held->provider);
                const Provider *after = provider_tree_find(tree, &held->provider);

                for (size_t j = 0; here && j < held->resources.n_items; j++) {
                        const char *name = held->resources.items[j].resource_class;

                        if (!after || !provider_find_inventory(after, name))
                                return error_setf(
                                        reterr, EBUSY,
                                        "Consumer %s came after the reshape and has %.60s of %s. Move it away first",
                                        consumer->uuid.text, name, here->name);
                }
        }
        return 0;
}

int reshape_image_undo(const ReshapeImage *image, const ProviderTree *current,
                       const Allocations *consumers, ReshapeShape *ret, Error *reterr)
{
        _cleanup_(provider_tree_freep) ProviderTree *tree = NULL;
        _cleanup_(allocations_freep) Allocations *moved = NULL;
        int r;

        if (provider_tree_copy(&tree, current) < 0 || allocations_copy(&moved, consumers) < 0)
                return error_oom(reterr);
        r = restore_tree(image, tree, reterr);
        if (r < 0)
                return r;
        for (size_t i = 0; i < moved->n_consumers; i++) {
                Consumer *consumer = moved->consumers[i];
                const Consumer *after = allocations_find(image->after.consumers, &consumer->uuid);

                r = after ? restore_consumer(image, after, consumer, reterr)
                          : check_unowned(current, tree, consumer, reterr);
                if (r < 0)
                        return r;
        }
        *ret = (ReshapeShape){ .tree = TAKE_PTR(tree), .consumers = TAKE_PTR(moved) };
        return 0;
}

bool reshape_image_is_reached(const ReshapeImage *image, const ProviderTree *tree)
{
        const ProviderTree *before = image->before.tree, *after = image->after.tree;
        size_t n_reached = 0;

        for (size_t i = 0; i < after->n_providers; i++) {
                const Provider *wanted = after->providers[i];
                const Provider *current = provider_tree_find(tree, &wanted->uuid);
                const Provider *old = provider_tree_find(before, &wanted->uuid);

                if (old && provider_inventories_equal(old, wanted))
                        continue;
                if (!current || !provider_inventories_equal(current, wanted))
                        return false;
                n_reached++;
        }
        for (size_t i = 0; i < before->n_providers; i++) {
                const Provider *old = before->providers[i];
                const Provider *current = provider_tree_find(tree, &old->uuid);

                if (provider_tree_find(after, &old->uuid) || old->n_inventories == 0)
                        continue;
                if (current && current->n_inventories > 0)
                        return false;
                n_reached++;
        }
        return n_reached > 0;
}

/* Opening for the request */

/* Returns the smallest total with enough capacity for the used amount, or INVENTORY_MAX_AMOUNT. */
static uint64_t find_total(const Inventory *record, uint64_t used)
{
        uint64_t low = 1, high = INVENTORY_MAX_AMOUNT;
        Inventory trial = *record;

        while (low < high) {
                trial.total = low + (high - low) / 2;
                if (inventory_capacity(&trial) < used)
                        low = trial.total + 1;
                else
                        high = trial.total;
        }
        return low;
}

/* Changes the limits of a record, so that an allocation of this amount is valid. used is the amount
 * of all consumers. */
static void open_record(Inventory *record, uint64_t amount, uint64_t used)
{
        record->max_unit = MAX(record->max_unit, amount);
        record->min_unit = MIN(record->min_unit, amount);
        if (amount % record->step_size != 0)
                record->step_size = 1;
        record->total = find_total(record, used);
}

/* Opens the records of one provider that do not fit its allocation. uncordoned: the same provider
 * with the reserved amounts from before its cordon. The cordon would take any other reserved amount
 * for one of another writer, and store it as the amount to restore at its end. */
static void open_provider(Provider *provider, const Provider *uncordoned, const Allocation *held,
                          const Consumer *usage)
{
        for (size_t i = 0; i < held->resources.n_items; i++) {
                const ResourceAmount *item = &held->resources.items[i];
                uint64_t used = consumer_get(usage, &held->provider, item->resource_class);
                Inventory *record = provider_find_inventory(provider, item->resource_class);

                if (!record ||
                    inventory_fit(record, used - item->amount, item->amount) == INVENTORY_FITS)
                        continue;
                record->reserved =
                        provider_find_inventory(uncordoned, item->resource_class)->reserved;
                open_record(record, item->amount, used);
        }
}

/* Adds the amounts of all consumers to the sum. NULL: none. */
static int add_all(Consumer *sum, const Allocations *consumers)
{
        int r = 0;

        for (size_t i = 0; r >= 0 && consumers && i < consumers->n_consumers; i++)
                r = consumer_add_all(sum, consumers->consumers[i]->allocations,
                                     consumers->consumers[i]->n_allocations);
        return r;
}

/* Opens the providers from which the consumer has allocations, in the tree of the host only. */
static void open_consumer(ProviderTree *tree, const ProviderTree *uncordoned,
                          const Consumer *consumer, const Consumer *usage, const Uuid *root)
{
        for (size_t i = 0; i < consumer->n_allocations; i++) {
                const Allocation *held = &consumer->allocations[i];
                Provider *provider = provider_tree_find(tree, &held->provider);

                if (provider && provider_tree_in_subtree(tree, provider, root))
                        open_provider(provider, provider_tree_find(uncordoned, &held->provider),
                                      held, usage);
        }
}

int reshape_image_open(ReshapeImage *image, const Allocations *others, Cordon *cordon,
                       const Uuid *root)
{
        _cleanup_(provider_tree_freep) ProviderTree *uncordoned = NULL;
        const Allocations *consumers = image->after.consumers;
        Consumer usage = { 0 };
        int r = provider_tree_copy(&uncordoned, image->after.tree);

        if (r >= 0 && cordon)
                cordon_clear(cordon, uncordoned, root, false);
        if (r >= 0)
                r = add_all(&usage, consumers);
        if (r >= 0)
                r = add_all(&usage, others);
        for (size_t i = 0; r >= 0 && i < consumers->n_consumers; i++) {
                const Consumer *after = consumers->consumers[i];
                const Consumer *before = allocations_find(image->before.consumers, &after->uuid);

                if (!before || !consumer_holds_equal(before, after))
                        open_consumer(image->after.tree, uncordoned, after, &usage, root);
        }
        consumer_clear(&usage);
        return MIN(r, 0);
}
