/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "drivers/reshape/moves.h"

#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "base/text.h"
#include "drivers/reshape/keep.h"

/* One consumer's part of a class on one provider. */
typedef struct Move {
        Consumer *consumer;
        const Provider *from;
        const SnapshotDomain *guest;
        ReshapeRule rule;
        uint64_t amount;
        Consumer parts; /* where it went */
        bool done;
} Move;

typedef struct Moves {
        const ReshapeHost *host;
        DriverReshape *reshape;
        ProviderTree *tree;
        Consumer usage; /* by provider, of all consumers together */
        const char *resource_class;
        Move *moves; /* of this class */
        size_t n_moves, n_moves_allocated;
} Moves;

static void drop_moves(Moves *moves)
{
        for (size_t i = 0; i < moves->n_moves; i++)
                consumer_clear(&moves->moves[i].parts);
        moves->n_moves = 0;
}

static void moves_done(Moves *moves)
{
        drop_moves(moves);
        free(moves->moves);
        consumer_clear(&moves->usage);
}

/* Sums */

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

static int sum_up(Moves *moves, const Allocations *allocations)
{
        for (size_t i = 0; allocations && i < allocations->n_consumers; i++)
                if (add_all(&moves->usage, allocations->consumers[i]) < 0)
                        return -ENOMEM;
        return 0;
}

/* One class */

static bool is_pinned(const SnapshotDomain *guest)
{
        return guest &&
               (guest->n_pins > 0 || guest->n_cells > 0 || cpu_set_count(&guest->cpus) > 0 ||
                cpu_set_count(&guest->memory_cells) > 0);
}

/* Those that belong somewhere come first, then the large ones. */
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

/* NULL for one that cannot be read, too: what it has is as it was placed. */
static const SnapshotDomain *find_guest(const Moves *moves, const Uuid *uuid)
{
        const SnapshotDomain *guest = snapshot_find_domain(moves->host->snapshot, uuid);

        return guest && !guest->unread ? guest : NULL;
}

static int add_move(Moves *moves, Consumer *consumer, const Provider *from, ReshapeRule rule)
{
        const Uuid *guest = driver_reshape_guest(moves->reshape, &consumer->uuid);
        Move move = {
                .consumer = consumer,
                .from = from,
                .guest = find_guest(moves, guest),
                .rule = rule,
                .amount = consumer_get(consumer, &from->uuid, moves->resource_class),
        };
        const ReshapeItem item = {
                .from = from,
                .guest = move.guest,
                .resource_class = moves->resource_class,
        };

        if (move.amount == 0 || !reshape_rule_concerns(moves->host, &item))
                return 0;
        if (array_grow(&moves->moves, sizeof(Move), moves->n_moves, &moves->n_moves_allocated) < 0)
                return -ENOMEM;
        moves->moves[moves->n_moves++] = move;
        return 0;
}

static int collect_moves(Moves *moves)
{
        const ProviderTree *before = moves->host->before;

        drop_moves(moves);
        for (size_t i = 0; i < before->n_providers; i++) {
                const Provider *from = before->providers[i];
                ReshapeRule rule = reshape_rule_find(moves->host, from, moves->resource_class);

                if (!provider_find_inventory(from, moves->resource_class) ||
                    rule == RESHAPE_RULE_NONE)
                        continue;
                for (size_t j = 0; j < moves->reshape->consumers->n_consumers; j++)
                        if (add_move(moves, moves->reshape->consumers->consumers[j], from, rule) <
                            0)
                                return -ENOMEM;
        }
        if (moves->n_moves > 0)
                qsort(moves->moves, moves->n_moves, sizeof(Move), compare_moves);
        return 0;
}

static int take_away(Moves *moves, Move *move)
{
        if (subtract(&moves->usage, &move->from->uuid, moves->resource_class, move->amount) < 0)
                return -ENOMEM;
        /* not all that is there: some of it may have come from another provider just now */
        return subtract(move->consumer, &move->from->uuid, moves->resource_class, move->amount);
}

static int put_back(Moves *moves, Move *move)
{
        if (subtract_all(&moves->usage, &move->parts) < 0 ||
            subtract_all(move->consumer, &move->parts) < 0 ||
            consumer_add(&moves->usage, &move->from->uuid, moves->resource_class, move->amount) <
                    0 ||
            consumer_add(move->consumer, &move->from->uuid, moves->resource_class, move->amount) <
                    0)
                return -ENOMEM;
        move->done = false;
        return 0;
}

/* 0, or a positive number when the consumer cannot be placed. */
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
        r = reshape_rule_place(moves->host, move->rule, &item, &move->parts, &reason);
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

/* 0, or a positive number when the class stays. */
static int move_class(Moves *moves)
{
        bool stays = false;

        if (collect_moves(moves) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < moves->n_moves; i++) {
                int r = make_move(moves, &moves->moves[i]);

                if (r < 0)
                        return r;
                stays |= r > 0;
        }
        for (size_t i = 0; stays && i < moves->n_moves; i++)
                if (moves->moves[i].done && put_back(moves, &moves->moves[i]) < 0)
                        return -ENOMEM;
        log_debug("%s of %zu consumer%s: %s", moves->resource_class, moves->n_moves,
                  text_plural(moves->n_moves), stays ? "stays" : "moved");
        return stays;
}

/* All classes */

static int collect_classes(const ReshapeHost *host, StringSet *ret)
{
        for (size_t i = 0; i < host->before->n_providers; i++) {
                const Provider *from = host->before->providers[i];

                if (!provider_tree_in_subtree(host->before, from, &host->root->uuid))
                        continue;
                for (size_t j = 0; j < from->n_inventories; j++) {
                        const char *name = from->inventories[j].resource_class;

                        if (reshape_rule_find(host, from, name) != RESHAPE_RULE_NONE &&
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

/* May all of these stay where they are? */
static bool reshape_needed(const StringSet *classes, const DriverReshape *reshape)
{
        if (reshape && reshape->consumers)
                return false;
        for (size_t i = 0; i < classes->n_items; i++)
                if (!is_kept(reshape, classes->items[i]))
                        return true;
        return false;
}

static int move_or_keep(Moves *moves, Error *reterr)
{
        DriverReshape *reshape = moves->reshape;
        int r = 1;

        if (!is_kept(reshape, moves->resource_class))
                r = move_class(moves);
        if (r <= 0)
                return r < 0 ? error_oom(reterr) : 0;
        if (string_set_add(&reshape->kept, moves->resource_class) < 0)
                return error_oom(reterr);
        r = reshape_keep_class(moves->host, moves->tree, moves->resource_class, reterr);
        return r < 0 ? r : 1;
}

/* Memory first, which is scarce: CPUs go where it is. A positive number when some class stays. */
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

static void name_first_problem(const DriverReshape *reshape, Error *reterr)
{
        const ReshapeProblem *first = reshape->problems;

        if (reshape->n_problems == 0)
                error_setf(reterr, EBUSY, "%.60s stays where it is: it could not be moved",
                           reshape->kept.items[0]);
        else if (reshape->n_problems == 1)
                error_setf(reterr, EBUSY, "%.60s stays where it is: consumer %s: %s",
                           first->resource_class, first->consumer.text, first->reason);
        else
                error_setf(reterr, EBUSY, "%.60s stays where it is: consumer %s: %s (and %zu more)",
                           first->resource_class, first->consumer.text, first->reason,
                           reshape->n_problems - 1);
}

int reshape_moves_make(const ReshapeHost *host, ProviderTree *tree, DriverReshape *reshape,
                       Error *reterr)
{
        _cleanup_(string_set_done) StringSet classes = STRING_SET_INIT;
        _cleanup_(moves_done) Moves moves = { .host = host, .reshape = reshape, .tree = tree };
        int r;

        if (reshape_rename_classes(host, tree) < 0 || collect_classes(host, &classes) < 0)
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
                reshape_drop_empty(host, tree);
        if (reshape->consumers && reshape_keep_used(host, tree, &moves.usage, reterr) < 0)
                return -ENOMEM;
        if (reshape->consumers)
                reshape_relax_limits(host, tree, reshape->consumers, &moves.usage);
        if (r > 0)
                name_first_problem(reshape, reterr);
        return r > 0 ? DRIVER_UPDATED_IN_PART : DRIVER_UPDATED;
}
