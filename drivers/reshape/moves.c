/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Moves allocations with their inventories, class by class, by comparing the tree before and after
 * the update.
 *
 * A class can leave a provider, or turn into another one there. For each such class
 * reshape_moves_make() collects a Move for each consumer that has some of it. The file rules.c
 * decides where the amount goes. If one consumer cannot be placed, all moves of the class are
 * undone, and the class keeps the inventories of the old tree (keep_class()). So do the classes
 * into which it would have turned, and earlier moves of these are undone, too. Moves.usage is the
 * sum of all consumers, which limits the amount that a provider can take. If a class stays, new
 * providers without inventories are then removed. At the end, a class whose record is gone on a
 * provider that still has usage of it gets the old record back (keep_used()). Without consumers
 * (reshape->consumers is NULL) nothing moves: either every class that would move is in
 * reshape->kept, or the result is DRIVER_RESHAPE_NEEDED. After an error the tree and the
 * allocations are undefined.
 *
 * A move keeps the amount of a consumer, except that the mdevs of the guest count for mediated
 * devices (facts C5.1). CPUs can become dedicated or shared, and a rule can change the class.
 * Generations are not known here.
 *
 * Tests: tests/unit/drivers/reshape/test-moves.c */

#include "drivers/reshape/moves.h"

#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "base/text.h"

/* The begin of each reason why a class stays. */
#define CANNOT_MOVE "%.60s cannot be moved"

/* Inventories that stay, in a tree that is already edited */

/* Gives the record of a renamed class to its new name, unless the provider has a record with that
 * name. Removes the record of the old name from the new tree. -ENOMEM. */
static int rename_classes(const TreeUpdate *update)
{
        for (size_t i = 0; i < update->before->n_providers; i++) {
                const Provider *before = update->before->providers[i];
                Provider *after = provider_tree_find(update->tree, &before->uuid);

                if (!after || !provider_tree_in_subtree(update->tree, after, &update->root->uuid))
                        continue;
                for (size_t j = 0; j < before->n_inventories; j++) {
                        const InventoryRecord *record = &before->inventories[j];
                        const char *name = reshape_new_name(update->config, record->resource_class);

                        if (!name)
                                continue;
                        if (!provider_find_inventory(after, name) &&
                            provider_set_inventory(after, name, &record->inventory) < 0)
                                return -ENOMEM;
                        provider_remove_inventory(after, record->resource_class);
                }
        }
        return 0;
}

/* Adds a provider of the old tree again, and the providers above it, without inventories.
 * Returns the existing one if it was not removed. */
static int bring_back(const TreeUpdate *update, const Provider *before, Provider **ret,
                      Error *reterr)
{
        const Provider *parent = provider_tree_find(update->before, &before->parent);
        Provider *after = provider_tree_find(update->tree, &before->uuid), *unused;
        int r;

        if (after) {
                *ret = after;
                return 0;
        }
        r = parent ? bring_back(update, parent, &unused, reterr) : 0;
        if (r < 0)
                return r;
        r = provider_tree_add(update->tree, &before->uuid, before->name,
                              uuid_empty(&before->parent) ? NULL : &before->parent, &after, reterr);
        if (r < 0)
                return r;
        if (string_set_copy(&after->traits, &before->traits) < 0 ||
            string_set_copy(&after->aggregates, &before->aggregates) < 0)
                return error_oom(reterr);
        *ret = after;
        return 0;
}

/* Gives the class of one provider its old record. */
static int keep_record(const TreeUpdate *update, const Provider *before, const char *resource_class,
                       Error *reterr)
{
        const Inventory *record = provider_find_inventory(before, resource_class);
        Provider *after;
        int r = bring_back(update, before, &after, reterr);

        if (r < 0)
                return r;
        return provider_set_inventory(after, resource_class, record) < 0 ? error_oom(reterr) : 0;
}

/* Gives the class the inventories of the old tree on all providers of the host, and removes it from
 * those that did not have it. */
static int restore_class(const TreeUpdate *update, const char *resource_class, Error *reterr)
{
        const Uuid root = update->root->uuid;

        for (size_t i = 0; i < update->tree->n_providers; i++) {
                const Provider *before =
                        provider_tree_find(update->before, &update->tree->providers[i]->uuid);

                if (provider_tree_in_subtree(update->tree, update->tree->providers[i], &root) &&
                    (!before || !provider_find_inventory(before, resource_class)))
                        provider_remove_inventory(update->tree->providers[i], resource_class);
        }
        for (size_t i = 0; i < update->before->n_providers; i++) {
                const Provider *before = update->before->providers[i];
                int r = 0;

                if (provider_find_inventory(before, resource_class) &&
                    provider_tree_in_subtree(update->before, before, &root))
                        r = keep_record(update, before, resource_class, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Collects the class and all classes into which it would have turned. */
static int find_linked(const TreeUpdate *update, const char *resource_class, StringSet *ret)
{
        if (string_set_add(ret, resource_class) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < update->before->n_providers; i++) {
                const Provider *from = update->before->providers[i];

                if (provider_find_inventory(from, resource_class) &&
                    provider_tree_in_subtree(update->before, from, &update->root->uuid) &&
                    reshape_rule_list_classes(update, from, resource_class, ret) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* Gives a class its old record where usage still has some of it and the new tree has no record.
 * Placement rejects the whole reshape if a class in use loses its inventory. */
static int keep_used(const TreeUpdate *update, const Consumer *usage, Error *reterr)
{
        for (size_t i = 0; i < usage->n_allocations; i++) {
                const Allocation *used = &usage->allocations[i];
                const Provider *before = provider_tree_find(update->before, &used->provider);

                if (!before ||
                    !provider_tree_in_subtree(update->before, before, &update->root->uuid))
                        continue;
                for (size_t j = 0; j < used->resources.n_items; j++) {
                        const char *name = used->resources.items[j].resource_class;
                        const Provider *after = provider_tree_find(update->tree, &before->uuid);
                        int r = 0;

                        if ((!after || !provider_find_inventory(after, name)) &&
                            provider_find_inventory(before, name))
                                r = keep_record(update, before, name, reterr);
                        if (r < 0)
                                return r;
                }
        }
        return 0;
}

/* Removes new providers without inventories and children. */
static void drop_empty(const TreeUpdate *update)
{
        /* backwards, because children are behind their parents */
        for (size_t i = update->tree->n_providers; i > 0; i--) {
                const Provider *provider = update->tree->providers[i - 1];

                if (provider->n_inventories == 0 && provider != update->root &&
                    !provider_tree_find(update->before, &provider->uuid) &&
                    !provider_tree_has_children(update->tree, &provider->uuid))
                        provider_tree_remove(update->tree, &provider->uuid);
        }
}

/* The amount of one class that one consumer has on one provider. */
typedef struct Move {
        Consumer *consumer;
        const Provider *from;
        const SnapshotDomain *guest;
        ReshapeRule rule;
        const char *resource_class;
        uint64_t amount;
        Consumer parts; /* places and amounts after the move */
        /* made, and not undone */
        bool done;
} Move;

/* The state of reshape_moves_make(). The classes are moved one after another. */
typedef struct Moves {
        const TreeUpdate *update;
        DriverReshape *reshape;
        Consumer usage; /* sums of all consumers, by provider */
        const char *resource_class;
        Move *moves; /* moves of all classes up to the current one */
        size_t n_moves, n_moves_allocated;
        size_t first; /* index of the first move of the current class */
} Moves;

static void moves_done(Moves *moves)
{
        for (size_t i = 0; i < moves->n_moves; i++)
                consumer_clear(&moves->moves[i].parts);
        free(moves->moves);
        consumer_clear(&moves->usage);
}

/* Subtracts up to the amount that is there. */
static int subtract(Consumer *from, const Uuid *provider, const char *resource_class,
                    uint64_t amount)
{
        uint64_t before = consumer_get(from, provider, resource_class);

        return consumer_set(from, provider, resource_class, before - MIN(before, amount));
}

static int add_all(Consumer *consumer, const Consumer *held)
{
        return consumer_add_all(consumer, held->allocations, held->n_allocations);
}

static int subtract_all(Consumer *consumer, const Consumer *held)
{
        for (size_t i = 0; i < held->n_allocations; i++) {
                const Resources *resources = &held->allocations[i].resources;

                for (size_t j = 0; j < resources->n_items; j++)
                        if (subtract(consumer, &held->allocations[i].provider,
                                     resources->items[j].resource_class,
                                     resources->items[j].amount) < 0)
                                return -ENOMEM;
        }
        return 0;
}

/* Adds the amounts of all consumers to the usage. NULL: none. */
static int sum_up(Moves *moves, const Allocations *allocations)
{
        for (size_t i = 0; allocations && i < allocations->n_consumers; i++)
                if (add_all(&moves->usage, allocations->consumers[i]) < 0)
                        return -ENOMEM;
        return 0;
}

/* Moves of one class */

/* Returns true if the definition of the guest names host CPUs or host cells, or gives the guest
 * NUMA cells of its own. */
static bool is_pinned(const SnapshotDomain *guest)
{
        return guest &&
               (guest->n_pins > 0 || guest->n_cells > 0 || cpu_set_count(&guest->cpus) > 0 ||
                cpu_set_count(&guest->memory_cells) > 0);
}

/* Sorts guests with fixed places first, because others can use the rest. Large amounts come
 * before small ones, which fit more easily. The uuids make the order, and so the result, the
 * same each time. */
static int compare_moves(const void *a, const void *b)
{
        const Move *one = a, *other = b;
        int order = (int)is_pinned(other->guest) - (int)is_pinned(one->guest);

        if (order == 0)
                order = (one->amount < other->amount) - (one->amount > other->amount);
        if (order == 0)
                order = uuid_order(&one->consumer->uuid, &other->consumer->uuid);
        return order != 0 ? order : uuid_order(&one->from->uuid, &other->from->uuid);
}

/* Adds a move for the amount that the consumer has there, if the rule applies to it. */
static int add_move(Moves *moves, Consumer *consumer, const Provider *from, ReshapeRule rule)
{
        const Uuid *guest = driver_reshape_guest(moves->reshape, &consumer->uuid);
        Move move = {
                .consumer = consumer,
                .from = from,
                .guest = snapshot_find_domain(moves->update->snapshot, guest),
                .rule = rule,
                .resource_class = moves->resource_class,
                .amount = consumer_get(consumer, &from->uuid, moves->resource_class),
        };
        const ReshapeItem item = {
                .from = from,
                .guest = move.guest,
                .resource_class = moves->resource_class,
        };

        if (move.amount == 0 || !reshape_rule_concerns(moves->update, &item))
                return 0;
        if (array_grow(&moves->moves, sizeof(Move), moves->n_moves, &moves->n_moves_allocated) < 0)
                return -ENOMEM;
        moves->moves[moves->n_moves++] = move;
        return 0;
}

/* Collects the moves of the current class, in the order in which they are made. */
static int collect_moves(Moves *moves)
{
        const ProviderTree *before = moves->update->before;

        moves->first = moves->n_moves;
        for (size_t i = 0; i < before->n_providers; i++) {
                const Provider *from = before->providers[i];
                ReshapeRule rule = reshape_rule_find(moves->update, from, moves->resource_class);

                if (!provider_find_inventory(from, moves->resource_class) ||
                    rule == RESHAPE_RULE_NONE)
                        continue;
                for (size_t j = 0; j < moves->reshape->consumers->n_consumers; j++)
                        if (add_move(moves, moves->reshape->consumers->consumers[j], from, rule) <
                            0)
                                return -ENOMEM;
        }
        if (moves->n_moves > moves->first)
                qsort(moves->moves + moves->first, moves->n_moves - moves->first, sizeof(Move),
                      compare_moves);
        return 0;
}

/* Subtracts the amount from the usage and the consumer, so that it does not take capacity at its
 * new place. */
static int take_away(Moves *moves, Move *move)
{
        if (subtract(&moves->usage, &move->from->uuid, moves->resource_class, move->amount) < 0)
                return -ENOMEM;
        /* Only the amount of the move: another move might have added some of it. */
        return subtract(move->consumer, &move->from->uuid, moves->resource_class, move->amount);
}

/* Undoes a move. */
static int put_back(Moves *moves, Move *move)
{
        if (subtract_all(&moves->usage, &move->parts) < 0 ||
            subtract_all(move->consumer, &move->parts) < 0 ||
            consumer_add(&moves->usage, &move->from->uuid, move->resource_class, move->amount) <
                    0 ||
            consumer_add(move->consumer, &move->from->uuid, move->resource_class, move->amount) < 0)
                return -ENOMEM;
        move->done = false;
        return 0;
}

/* Makes a move. Returns 0, or a positive number and adds a problem if the consumer cannot be
 * placed. */
static int make_move(Moves *moves, Move *move)
{
        const ReshapeItem item = {
                .consumer = move->consumer,
                .guest = move->guest,
                .usage = &moves->usage,
                .from = move->from,
                .resource_class = moves->resource_class,
                .amount = move->amount,
        };
        Error reason = ERROR_NULL;
        int r;

        if (take_away(moves, move) < 0)
                return -ENOMEM;
        r = reshape_rule_place(moves->update, move->rule, &item, &move->parts, &reason);
        if (r == -ENOMEM)
                return r;
        if (r < 0) {
                consumer_clear(&move->parts);
                if (put_back(moves, move) < 0 ||
                    driver_reshape_add_problem(moves->reshape, &move->consumer->uuid,
                                               moves->resource_class, reason.text) < 0)
                        return -ENOMEM;
                return 1;
        }
        move->done = true;
        if (add_all(&moves->usage, &move->parts) < 0 || add_all(move->consumer, &move->parts) < 0)
                return -ENOMEM;
        return 0;
}

/* Moves the current class. Returns 0, or a positive number if a consumer cannot be placed. It tries
 * all consumers in any case, so that all problems are known. */
static int move_class(Moves *moves)
{
        bool stays = false;

        if (collect_moves(moves) < 0)
                return -ENOMEM;
        for (size_t i = moves->first; i < moves->n_moves; i++) {
                int r = make_move(moves, &moves->moves[i]);

                if (r < 0)
                        return r;
                stays |= r > 0;
        }
        log_debug("%s of %zu consumer%s: %s", moves->resource_class, moves->n_moves - moves->first,
                  text_plural(moves->n_moves - moves->first), stays ? "stays" : "moved");
        return stays;
}

/* Returns true if the move was made, and is of one of these classes or into one. */
static bool concerns(const Move *move, const StringSet *classes)
{
        if (move->done && string_set_contains(classes, move->resource_class))
                return true;
        for (size_t i = 0; move->done && i < move->parts.n_allocations; i++) {
                const Resources *resources = &move->parts.allocations[i].resources;

                for (size_t j = 0; j < resources->n_items; j++)
                        if (string_set_contains(classes, resources->items[j].resource_class))
                                return true;
        }
        return false;
}

/* Undoes the moves of the class and of all classes that are linked with it. All of them stay, and
 * get the inventories of update->before. Removed providers are added again for this. -ENOMEM, or
 * another error of provider_tree_add(). */
static int keep_class(Moves *moves, const char *resource_class, Error *reterr)
{
        _cleanup_(string_set_done) StringSet linked = STRING_SET_INIT;
        int r = string_set_add(&moves->reshape->kept, resource_class);

        if (r < 0 || find_linked(moves->update, resource_class, &linked) < 0)
                return error_oom(reterr);
        for (size_t i = 0; i < moves->n_moves; i++) {
                Move *move = &moves->moves[i];
                size_t n_linked = linked.n_items;

                if (!concerns(move, &linked))
                        continue;
                if (put_back(moves, move) < 0 ||
                    string_set_add(&moves->reshape->kept, move->resource_class) < 0 ||
                    find_linked(moves->update, move->resource_class, &linked) < 0)
                        return error_oom(reterr);
                if (linked.n_items > n_linked)
                        i = SIZE_MAX; /* look at all of them again */
        }
        for (size_t i = 0; i < linked.n_items; i++) {
                r = restore_class(moves->update, linked.items[i], reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Collects the classes that leave a provider or turn into another class there, so far as a rule
 * moves their amounts. */
static int collect_classes(const TreeUpdate *update, StringSet *ret)
{
        for (size_t i = 0; i < update->before->n_providers; i++) {
                const Provider *from = update->before->providers[i];

                if (!provider_tree_in_subtree(update->before, from, &update->root->uuid))
                        continue;
                for (size_t j = 0; j < from->n_inventories; j++) {
                        const char *name = from->inventories[j].resource_class;

                        if (reshape_rule_find(update, from, name) != RESHAPE_RULE_NONE &&
                            string_set_add(ret, name) < 0)
                                return -ENOMEM;
                }
        }
        return 0;
}

static bool is_kept(const DriverReshape *reshape, const char *resource_class)
{
        return reshape && string_set_contains(&reshape->kept, resource_class);
}

/* Returns whether the caller must call again with consumers: a class that is not kept would
 * move. */
static bool reshape_needed(const StringSet *classes, const DriverReshape *reshape)
{
        if (reshape && reshape->consumers)
                return false;
        for (size_t i = 0; i < classes->n_items; i++)
                if (!is_kept(reshape, classes->items[i]))
                        return true;
        return false;
}

/* Moves or keeps the current class. Returns 0, or a positive number if it stays. */
static int move_or_keep(Moves *moves, Error *reterr)
{
        DriverReshape *reshape = moves->reshape;
        int r = 1;

        if (!is_kept(reshape, moves->resource_class))
                r = move_class(moves);
        if (r <= 0)
                return r < 0 ? error_oom(reterr) : 0;
        r = keep_class(moves, moves->resource_class, reterr);
        return r < 0 ? r : 1;
}

/* Moves all classes. Memory comes first because it is scarce; then the CPUs follow it
 * (rank_of()). Returns 0, or a positive number if a class stays. */
static int move_classes(Moves *moves, const StringSet *classes, Error *reterr)
{
        static const char *const first[] = { "MEMORY_MB", "PCPU", "VCPU" };
        _cleanup_(string_set_done) StringSet done = STRING_SET_INIT;
        bool stays = false;

        for (size_t i = 0; i < ARRAY_SIZE(first) + classes->n_items; i++) {
                const char *name =
                        i < ARRAY_SIZE(first) ? first[i] : classes->items[i - ARRAY_SIZE(first)];
                int r;

                if (!string_set_contains(classes, name) || string_set_contains(&done, name))
                        continue;
                if (string_set_add(&done, name) < 0)
                        return error_oom(reterr);
                moves->resource_class = name;
                r = move_or_keep(moves, reterr);
                if (r < 0)
                        return r;
                stays |= r > 0;
        }
        return stays;
}

/* Returns whether the reason is about one of the classes. */
static bool is_about(const Error *blocked, const StringSet *classes)
{
        for (size_t i = 0; i < classes->n_items; i++) {
                Error start;

                error_setf(&start, EBUSY, CANNOT_MOVE, classes->items[i]);
                if (strncmp(blocked->text, start.text, strlen(start.text)) == 0)
                        return true;
        }
        return false;
}

/* Stores why classes stay in reshape->blocked. classes: those that should move. The reason is the
 * first problem. Without a problem, the reason of an earlier call stays if it is about one of
 * classes. If it is not, the reason names the first class of reshape->kept that is also in classes:
 * one that an earlier call kept need not be. */
static void name_first_problem(DriverReshape *reshape, const StringSet *classes)
{
        Error *blocked = &reshape->blocked;
        size_t i = 0;
        const ReshapeProblem *first = reshape->problems;

        while (i + 1 < reshape->kept.n_items &&
               !string_set_contains(classes, reshape->kept.items[i]))
                i++;
        if (reshape->n_problems == 0 && !is_about(blocked, classes))
                error_setf(blocked, EBUSY, CANNOT_MOVE, reshape->kept.items[i]);
        else if (reshape->n_problems == 1)
                error_setf(blocked, EBUSY, CANNOT_MOVE ": consumer %s: %s", first->resource_class,
                           first->consumer.text, first->reason);
        else if (reshape->n_problems > 1)
                error_setf(blocked, EBUSY, CANNOT_MOVE ": consumer %s: %s (and %zu more)",
                           first->resource_class, first->consumer.text, first->reason,
                           reshape->n_problems - 1);
}

int reshape_moves_make(const TreeUpdate *update, DriverReshape *reshape, Error *reterr)
{
        _cleanup_(string_set_done) StringSet classes = STRING_SET_INIT;
        _cleanup_(moves_done) Moves moves = { .update = update, .reshape = reshape };
        int r;

        if (rename_classes(update) < 0 || collect_classes(update, &classes) < 0)
                return error_oom(reterr);
        if (reshape_needed(&classes, reshape)) {
                if (reshape && string_set_copy(&reshape->classes, &classes) < 0)
                        return error_oom(reterr);
                return DRIVER_RESHAPE_NEEDED;
        }
        if (!reshape)
                return DRIVER_UPDATED;
        if (sum_up(&moves, reshape->consumers) < 0 || sum_up(&moves, reshape->others) < 0)
                return error_oom(reterr);
        r = move_classes(&moves, &classes, reterr);
        if (r < 0)
                return r;
        if (r > 0)
                drop_empty(update);
        if (reshape->consumers) {
                int kept = keep_used(update, &moves.usage, reterr);

                if (kept < 0)
                        return kept;
        }
        if (r > 0)
                name_first_problem(reshape, &classes);
        if (r > 0 && reterr)
                *reterr = reshape->blocked;
        return r > 0 ? DRIVER_UPDATED_IN_PART : DRIVER_UPDATED;
}
