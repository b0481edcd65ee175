/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Retains inventories that the host lost while consumers have, or might have, allocations from
 * them. A RetainedItem is created when an answer of Placement first shows that a lost inventory is
 * in use. The item is active as long as the inventory is retained. Afterwards the item stays,
 * because its former reserved amount is needed, while Placement's tree has all of the inventory
 * reserved. It goes earlier if the new tree has a total of at most that amount. Items change only
 * with a known tree, and are stored in a file. A failed write is logged and tried again.
 *
 * Answers about allocations follow a cycle of three lists. The list "wanted" collects providers
 * while a tree is made. retained_ask() copies "wanted" to "asked", and retained_set_holders() moves
 * "asked" to "read". An answer counts only for providers in "read". When a tree is made and a
 * provider is not in "wanted" any more, it leaves "read", because a later loss needs a new answer.
 * retained_forget_answer() empties "read". */

#include "agent/tree/retained.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "agent/state/state-file.h"
#include "base/array.h"
#include "base/json.h"
#include "base/log.h"
#include "base/message-ids.h"
#include "base/text.h"

#define RETAINED_FORMAT "compute-agent-retained/1"

/* An inventory that is or was retained. */
typedef struct RetainedItem {
        Uuid provider;
        char *name; /* name of the provider */
        char *resource_class;
        uint64_t reserved; /* reserved amount before the retention */
        bool active;       /* it is retained now */
        bool seen;         /* the running call of retained_apply() retained it */
} RetainedItem;

struct Retained {
        char *state_file;
        bool read_only;
        RetainedItem *items;
        size_t n_items, n_allocated;
        Uuid *wanted; /* providers whose allocations must be read */
        size_t n_wanted, n_wanted_allocated;
        Uuid *asked; /* providers that Placement is asked about; sorted */
        size_t n_asked;
        Uuid *read; /* providers that holders covers; sorted */
        size_t n_read;
        Allocations *holders; /* the last answer, about the providers in read then; NULL: none */
        bool changed;         /* the file must be written */
};

static void item_done(RetainedItem *item)
{
        free(item->name);
        free(item->resource_class);
}

Retained *retained_free(Retained *retained)
{
        if (!retained)
                return NULL;
        for (size_t i = 0; i < retained->n_items; i++)
                item_done(&retained->items[i]);
        free(retained->items);
        free(retained->wanted);
        free(retained->asked);
        free(retained->read);
        allocations_free(retained->holders);
        free(retained->state_file);
        free(retained);
        return NULL;
}

static RetainedItem *find_item(const Retained *retained, const Uuid *provider,
                               const char *resource_class)
{
        for (size_t i = 0; i < retained->n_items; i++) {
                RetainedItem *item = &retained->items[i];

                if (uuid_equal(&item->provider, provider) &&
                    strcmp(item->resource_class, resource_class) == 0)
                        return item;
        }
        return NULL;
}

static int add_item(Retained *retained, const Uuid *provider, const char *name,
                    const char *resource_class, uint64_t reserved, RetainedItem **ret)
{
        RetainedItem item = { .provider = *provider,
                              .name = strdup(name),
                              .resource_class = strdup(resource_class),
                              .reserved = reserved };

        if (!item.name || !item.resource_class ||
            array_grow(&retained->items, sizeof(RetainedItem), retained->n_items,
                       &retained->n_allocated) < 0) {
                item_done(&item);
                return -ENOMEM;
        }
        retained->items[retained->n_items] = item;
        *ret = &retained->items[retained->n_items++];
        retained->changed = true;
        return 0;
}

/* The file */

static json_t *item_to_json(const RetainedItem *item)
{
        return json_pack("{ss ss ss sI sb}", "provider", item->provider.text, "name", item->name,
                         "class", item->resource_class, "reserved", (json_int_t)item->reserved,
                         "active", (int)item->active);
}

/* Writes the items if they changed, unless read_only. After a failure the next call tries again. */
static void save(Retained *retained)
{
        _cleanup_json_ json_t *array = json_array(), *json = NULL;
        Error error = ERROR_NULL;
        int r = 0;

        if (retained->read_only || !retained->changed)
                return;
        for (size_t i = 0; r == 0 && i < retained->n_items; i++)
                r = json_array_append_new(array, item_to_json(&retained->items[i]));
        json = array && r == 0
                       ? json_pack("{ss sO}", "format", RETAINED_FORMAT, "inventories", array)
                       : NULL;
        r = json ? state_file_write(retained->state_file, json, &error) : error_oom(&error);
        if (r < 0)
                log_warning("Cannot store the list of retained inventories: %s. Retrying.",
                            error.text);
        else
                retained->changed = false;
}

/* Adds the item of a JSON object, or nothing if it is damaged. */
static int read_item(Retained *retained, const json_t *json, Error *reterr)
{
        const char *name, *resource_class;
        RetainedItem *item;
        uint64_t reserved;
        Uuid provider;
        bool active;
        int r;

        if ((r = json_read_uuid(json, "provider", &provider, reterr)) < 0 ||
            (r = json_read_string(json, "name", &name, reterr)) < 0 ||
            (r = json_read_string(json, "class", &resource_class, reterr)) < 0 ||
            (r = json_read_u64(json, "reserved", &reserved, reterr)) < 0 ||
            (r = json_read_bool(json, "active", &active, reterr)) < 0)
                return r;
        if (!resource_class_valid(resource_class) || reserved > INVENTORY_MAX_AMOUNT)
                return error_setf(reterr, EBADMSG, "An inventory is out of range");
        if (find_item(retained, &provider, resource_class))
                return error_setf(reterr, EBADMSG, "%.60s of %.60s is listed twice", resource_class,
                                  name);
        if (add_item(retained, &provider, name, resource_class, reserved, &item) < 0)
                return error_oom(reterr);
        item->active = active;
        return 0;
}

/* A damaged item is logged and left out, because each of the others is complete. */
static int read_items(const json_t *json, void *userdata, Error *reterr)
{
        Retained *retained = userdata;
        json_t *array, *item;
        Error error;
        size_t i;
        int r = json_read_array(json, "inventories", &array, reterr);

        if (r < 0)
                return r;
        json_array_foreach(array, i, item) {
                r = read_item(retained, item, &error);
                if (r == -ENOMEM)
                        return error_oom(reterr);
                if (r < 0)
                        log_warning("Entry %zu of %s is damaged and ignored: %s.", i + 1,
                                    retained->state_file, error.text);
        }
        return 0;
}

int retained_new(Retained **ret, const char *state_dir, bool read_only, Error *reterr)
{
        _cleanup_(retained_freep) Retained *retained = calloc(1, sizeof(Retained));
        Error error = ERROR_NULL;
        int r;

        if (!retained)
                return error_oom(reterr);
        retained->state_file = text_format("%s/retained.json", state_dir);
        if (!retained->state_file)
                return error_oom(reterr);
        retained->read_only = read_only;
        r = state_file_load(retained->state_file, RETAINED_FORMAT, read_only, read_items, retained,
                            &error);
        retained->changed = false;
        if (r < 0 && r != -EBADMSG)
                return error_setf(reterr, r, "%s", error_text(&error, r));
        if (r < 0)
                log_warning("Cannot read the list of retained inventories: %s. Ignoring it.",
                            error_text(&error, r));
        *ret = TAKE_PTR(retained);
        return 0;
}

/* Consumers with allocations */

static int order_uuids(const void *a, const void *b)
{
        return uuid_order(a, b);
}

void retained_set_holders(Retained *retained, Allocations *holders)
{
        allocations_free(retained->holders);
        retained->holders = holders;
        free(retained->read);
        retained->read = TAKE_PTR(retained->asked);
        retained->n_read = retained->n_asked;
        retained->n_asked = 0;
}

void retained_forget_answer(Retained *retained)
{
        retained->n_read = 0;
}

static bool was_read(const Retained *retained, const Uuid *provider)
{
        return retained->n_read > 0 &&
               bsearch(provider, retained->read, retained->n_read, sizeof(Uuid), order_uuids);
}

/* Returns the first consumer with an allocation from the inventory, or NULL. *ret_amount is the sum
 * of all, *ret_n the number of consumers. */
static const Consumer *find_holder(const Retained *retained, const Uuid *provider,
                                   const char *resource_class, uint64_t *ret_amount, size_t *ret_n)
{
        const Consumer *first = NULL;

        *ret_amount = *ret_n = 0;
        for (size_t i = 0; retained->holders && i < retained->holders->n_consumers; i++) {
                const Consumer *consumer = retained->holders->consumers[i];
                uint64_t amount = consumer_get(consumer, provider, resource_class);

                if (amount == 0)
                        continue;
                if (u64_add_overflow(*ret_amount, amount, ret_amount))
                        *ret_amount = UINT64_MAX;
                if ((*ret_n)++ == 0)
                        first = consumer;
        }
        return first;
}

RetainedUse retained_use(const Retained *retained, const Uuid *provider, const char *resource_class,
                         const Uuid *besides)
{
        if (!was_read(retained, provider))
                return RETAINED_USE_UNKNOWN;
        for (size_t i = 0; retained->holders && i < retained->holders->n_consumers; i++) {
                const Consumer *consumer = retained->holders->consumers[i];

                if (!(besides && uuid_equal(&consumer->uuid, besides)) &&
                    consumer_get(consumer, provider, resource_class) > 0)
                        return RETAINED_USE_HELD;
        }
        return RETAINED_USE_NONE;
}

const char *retained_describe_holders(const Retained *retained, const Snapshot *snapshot,
                                      const Uuid *provider, const char *resource_class,
                                      char text[static RETAINED_HOLDERS_MAX])
{
        const SnapshotDomain *guest = NULL;
        const Consumer *first;
        char more[40] = "";
        uint64_t amount;
        size_t n;

        text[0] = '\0';
        first = find_holder(retained, provider, resource_class, &amount, &n);
        if (!first)
                return text;
        if (snapshot)
                guest = snapshot_find_domain(snapshot, &first->uuid);
        if (n > 1)
                snprintf(more, sizeof(more), " and %zu more", n - 1);
        if (guest)
                snprintf(text, RETAINED_HOLDERS_MAX, "%" PRIu64 " used by guest %.40s (%s)%s",
                         amount, guest->name, first->uuid.text, more);
        else
                snprintf(text, RETAINED_HOLDERS_MAX, "%" PRIu64 " used by consumer %s%s", amount,
                         first->uuid.text, more);
        /* The limit of the name can cut a character. */
        text_sanitize(text, '?');
        return text;
}

char *retained_describe(const Retained *retained, const Snapshot *snapshot)
{
        char *text = NULL, holders[RETAINED_HOLDERS_MAX];
        size_t size = 0, n = 0;
        FILE *file = open_memstream(&text, &size);

        if (!file)
                return NULL;
        for (size_t i = 0; i < retained->n_items; i++) {
                const RetainedItem *item = &retained->items[i];

                if (!item->active)
                        continue;
                retained_describe_holders(retained, snapshot, &item->provider, item->resource_class,
                                          holders);
                fprintf(file, "%s%s of %s%s%s%s", n++ > 0 ? ", " : "", item->resource_class,
                        item->name, holders[0] ? " (" : "", holders, holders[0] ? ")" : "");
        }
        if (fclose(file) == 0)
                return text;
        free(text);
        return NULL;
}

/* The tree */

static const Inventory *find_record(const ProviderTree *tree, const Uuid *uuid,
                                    const char *resource_class)
{
        const Provider *provider = tree ? provider_tree_find(tree, uuid) : NULL;

        return provider ? provider_find_inventory(provider, resource_class) : NULL;
}

void retained_clear(Retained *retained, ProviderTree *tree)
{
        retained->n_wanted = 0;
        for (size_t i = 0; i < retained->n_items; i++) {
                const RetainedItem *item = &retained->items[i];
                const Provider *provider = provider_tree_find(tree, &item->provider);
                Inventory *record =
                        provider ? provider_find_inventory(provider, item->resource_class) : NULL;

                /* A reshape can have opened an active one (reshape_image_open()). */
                if (record && (item->active || record->reserved == record->total))
                        record->reserved = MIN(item->reserved, record->total);
        }
}

void retained_close(const Retained *retained, ProviderTree *tree)
{
        for (size_t i = 0; i < retained->n_items; i++) {
                const RetainedItem *item = &retained->items[i];
                Provider *provider = provider_tree_find(tree, &item->provider);
                Inventory *record =
                        provider ? provider_find_inventory(provider, item->resource_class) : NULL;

                if (item->active && record)
                        record->reserved = record->total;
        }
}

static bool is_wanted(const Retained *retained, const Uuid *provider)
{
        for (size_t i = 0; i < retained->n_wanted; i++)
                if (uuid_equal(&retained->wanted[i], provider))
                        return true;
        return false;
}

int retained_want(Retained *retained, const Uuid *provider)
{
        if (is_wanted(retained, provider))
                return 0;
        if (array_grow(&retained->wanted, sizeof(Uuid), retained->n_wanted,
                       &retained->n_wanted_allocated) < 0)
                return -ENOMEM;
        retained->wanted[retained->n_wanted++] = *provider;
        return 0;
}

int retained_ask(Retained *retained, const Uuid **ret, size_t *ret_n, bool *ret_is_answered)
{
        Uuid *asked = calloc(retained->n_wanted + 1, sizeof(Uuid));

        if (!asked)
                return -ENOMEM;
        if (retained->n_wanted > 0)
                memcpy(asked, retained->wanted, retained->n_wanted * sizeof(Uuid));
        qsort(asked, retained->n_wanted, sizeof(Uuid), order_uuids);
        free(retained->asked);
        *ret = retained->asked = asked;
        *ret_n = retained->n_asked = retained->n_wanted;
        *ret_is_answered = true;
        for (size_t i = 0; i < retained->n_wanted; i++)
                *ret_is_answered &= was_read(retained, &retained->wanted[i]);
        return 0;
}

/* Drops answers about providers that are not wanted any more: a later loss needs a new answer. */
static void forget_answers(Retained *retained)
{
        size_t n = 0;

        for (size_t i = 0; i < retained->n_read; i++)
                if (is_wanted(retained, &retained->read[i]))
                        retained->read[n++] = retained->read[i];
        retained->n_read = n;
}

/* Adds a provider of before to tree, without its inventories, and the parents that it needs. Sets
 * *ret to the provider in tree, or to NULL if another provider in tree has the name of one of them.
 * Then the inventory is not retained, and Placement accepts or refuses the removal. */
static int bring_back(const ProviderTree *before, const Provider *provider, ProviderTree *tree,
                      Provider **ret)
{
        const Provider *parent = provider_tree_find(before, &provider->parent);
        Provider *above = NULL;
        int r;

        *ret = provider_tree_find(tree, &provider->uuid);
        if (*ret)
                return 0;
        r = parent ? bring_back(before, parent, tree, &above) : 0;
        if (r < 0 || (parent && !above))
                return r;
        r = provider_tree_add(tree, &provider->uuid, provider->name, above ? &above->uuid : NULL,
                              ret, NULL);
        if (r < 0) {
                *ret = NULL;
                return r == -ENOMEM ? r : 0;
        }
        return string_set_copy(&(*ret)->traits, &provider->traits) < 0 ||
                               string_set_copy(&(*ret)->aggregates, &provider->aggregates) < 0
                       ? -ENOMEM
                       : 0;
}

static void log_begin(const Retained *retained, const RetainedItem *item,
                      const RetainedTrees *trees)
{
        char holders[RETAINED_HOLDERS_MAX];

        log_event(
                LOG_WARNING, MESSAGE_INVENTORY_RETAINED,
                LOG_FIELDS(LOG_FIELD_PROVIDER, item->provider.text),
                "This host has no %s of %s any more, but Placement has %s. All of it is reserved.",
                item->resource_class, item->name,
                retained_describe_holders(retained, trees->snapshot, &item->provider,
                                          item->resource_class, holders));
}

/* Makes the item of a retained inventory active. Creates the item if necessary, and logs each time
 * when a retention begins. */
static int note(Retained *retained, const RetainedTrees *trees, const Provider *provider,
                const InventoryRecord *record)
{
        RetainedItem *item = find_item(retained, &provider->uuid, record->resource_class);

        if (!item && add_item(retained, &provider->uuid, provider->name, record->resource_class,
                              record->inventory.reserved, &item) < 0)
                return -ENOMEM;
        item->seen = true;
        if (item->active)
                return 0;
        item->active = retained->changed = true;
        log_begin(retained, item, trees);
        return 0;
}

/* Puts an inventory back into tree, with all of it reserved. An invalid inventory of Placement
 * cannot be sent, so neither it nor its provider is put back. An unknown use is recorded only for
 * an inventory that was retained before: the answer can still show that it is free. */
static int retain(Retained *retained, const RetainedTrees *trees, const Provider *provider,
                  const InventoryRecord *record, RetainedUse use, ProviderTree *tree)
{
        Inventory capped = record->inventory;
        Provider *after;
        int r;

        capped.reserved = capped.total;
        if (inventory_invalid_field(&capped))
                return 0;
        r = bring_back(trees->before, provider, tree, &after);
        if (r < 0 || !after)
                return r;
        r = provider_set_inventory(after, record->resource_class, &capped);
        if (r < 0)
                return r;
        if (!trees->known || (use == RETAINED_USE_UNKNOWN &&
                              !find_item(retained, &provider->uuid, record->resource_class)))
                return 0;
        return note(retained, trees, provider, record);
}

/* back: the host has the inventory. lost: Placement still has it, and it can be in use, but it
 * could not be put back into the tree (retained_apply()). */
static void log_end(const RetainedItem *item, bool back, bool lost)
{
        const char *const *fields = LOG_FIELDS(LOG_FIELD_PROVIDER, item->provider.text);

        if (back)
                log_event(LOG_NOTICE, MESSAGE_INVENTORY_RELEASED, fields,
                          "This host has %s of %s again; its capacity can be used.",
                          item->resource_class, item->name);
        else if (lost)
                log_event(
                        LOG_WARNING, NULL, fields,
                        "%s of %s is not retained any more. Another provider has its name, or its fields are invalid.",
                        item->resource_class, item->name);
        else
                log_event(
                        LOG_NOTICE, MESSAGE_INVENTORY_RELEASED, fields,
                        "No consumer in Placement has %s of %s any more. The inventory is removed.",
                        item->resource_class, item->name);
}

/* Returns true for an active item, and while Placement can still have the full reservation, so that
 * the former amount is needed. */
static bool is_needed(const RetainedItem *item, const RetainedTrees *trees,
                      const ProviderTree *tree)
{
        const Inventory *there = find_record(trees->base, &item->provider, item->resource_class);
        const Inventory *after = find_record(tree, &item->provider, item->resource_class);

        if (item->active)
                return true;
        return there && there->reserved == there->total &&
               !(after && item->reserved >= after->total);
}

/* Ends the items that this retained_apply() did not retain. In a tree that waits for a reshape
 * (RetainedTrees.old_shape), an item stays active while all of its inventory is reserved. Removes
 * the items that are not needed. */
static void settle(Retained *retained, const RetainedTrees *trees, const ProviderTree *tree)
{
        size_t n = 0;

        for (size_t i = 0; i < retained->n_items; i++) {
                RetainedItem *item = &retained->items[i];
                const Inventory *record = find_record(tree, &item->provider, item->resource_class);
                bool stays = trees->old_shape && record && record->reserved == record->total;

                if (item->active && !item->seen && !stays) {
                        item->active = false;
                        retained->changed = true;
                        log_end(item, record,
                                find_record(trees->before, &item->provider, item->resource_class) &&
                                        retained_use(retained, &item->provider,
                                                     item->resource_class,
                                                     NULL) != RETAINED_USE_NONE);
                }
                item->seen = false;
                if (!is_needed(item, trees, tree)) {
                        item_done(item);
                        retained->changed = true;
                } else {
                        retained->items[n++] = *item;
                }
        }
        retained->n_items = n;
}

/* Retains the inventories of one provider that tree lacks and from which consumers have, or might
 * have, allocations. */
static int apply_to(Retained *retained, const RetainedTrees *trees, const Provider *provider,
                    ProviderTree *tree)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < provider->n_inventories; i++) {
                const InventoryRecord *record = &provider->inventories[i];
                RetainedUse use;

                if (find_record(tree, &provider->uuid, record->resource_class))
                        continue;
                if (retained_want(retained, &provider->uuid) < 0)
                        return -ENOMEM;
                use = retained_use(retained, &provider->uuid, record->resource_class, NULL);
                if (use != RETAINED_USE_NONE)
                        r = retain(retained, trees, provider, record, use, tree);
        }
        return r;
}

int retained_apply(Retained *retained, const RetainedTrees *trees, ProviderTree *tree,
                   Error *reterr)
{
        for (size_t i = 0; i < trees->before->n_providers; i++) {
                const Provider *provider = trees->before->providers[i];

                if (provider_tree_in_subtree(trees->before, provider, trees->root) &&
                    apply_to(retained, trees, provider, tree) < 0)
                        return error_oom(reterr);
        }
        forget_answers(retained);
        if (trees->known) {
                settle(retained, trees, tree);
                save(retained);
        }
        return 0;
}
