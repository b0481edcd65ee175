/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Counts the vGPUs of one card, and chooses a function for a claim. sum_up() passes over the
 * functions and sums up the state of the whole card (Sums): the framebuffer in use and the types.
 * vgpu_card_count() passes over them again for one type. If a size is unknown, the limit of the
 * type (max_instances) is trusted, and without a limit the result is the lower bound. A vGPU too
 * few is published later, but a vGPU too many fails when its guest starts. The largest number on
 * the empty card (total) is never below the vGPUs that exist or can be created now. The functions
 * must be sorted by address. No function blocks or has state.
 *
 * Tests: tests/unit/base/test-vgpu-card.c */

#include "base/vgpu-card.h"

#include <string.h>

#include "base/array.h"

void vgpu_card_done(VgpuCard *card)
{
        for (size_t i = 0; i < card->n_types; i++) {
                free(card->types[i].id);
                free(card->types[i].resource_class);
        }
        free(card->types);
        free(card->functions);
        *card = (VgpuCard){ 0 };
}

static int copy_type(VgpuCard *ret, const VgpuType *type)
{
        VgpuType *copy = &ret->types[ret->n_types];

        *copy = *type;
        copy->id = strdup(type->id);
        copy->resource_class = type->resource_class ? strdup(type->resource_class) : NULL;
        ret->n_types++;
        return copy->id && (copy->resource_class || !type->resource_class) ? 0 : -ENOMEM;
}

int vgpu_card_copy(const VgpuCard *card, VgpuCard *ret)
{
        *ret = *card;
        ret->types = calloc(card->n_types + 1, sizeof(VgpuType));
        ret->functions = calloc(card->n_functions + 1, sizeof(VgpuFunction));
        ret->n_types = 0;
        ret->n_types_allocated = card->n_types + 1;
        ret->n_functions_allocated = card->n_functions + 1;
        if (!ret->types || !ret->functions) {
                vgpu_card_done(ret);
                return -ENOMEM;
        }
        for (size_t i = 0; i < card->n_types; i++)
                if (copy_type(ret, &card->types[i]) < 0) {
                        vgpu_card_done(ret);
                        return -ENOMEM;
                }
        if (card->n_functions > 0)
                memcpy(ret->functions, card->functions, card->n_functions * sizeof(VgpuFunction));
        return 0;
}

int vgpu_card_find_type(const VgpuCard *card, const char *id)
{
        for (size_t i = 0; i < card->n_types; i++)
                if (strcmp(card->types[i].id, id) == 0)
                        return (int)i;
        return VGPU_TYPE_NONE;
}

int vgpu_card_ensure_type(VgpuCard *card, const char *id, int *ret)
{
        char *copy;

        *ret = vgpu_card_find_type(card, id);
        if (*ret != VGPU_TYPE_NONE || card->n_types >= VGPU_TYPES_MAX)
                return 0;
        copy = strdup(id);
        if (!copy || array_grow(&card->types, sizeof(VgpuType), card->n_types,
                                &card->n_types_allocated) < 0) {
                free(copy);
                return -ENOMEM;
        }
        *ret = (int)card->n_types;
        card->types[card->n_types++] = (VgpuType){ .id = copy, .limit = UINT64_MAX };
        return 0;
}

static int order_function(const void *key, const void *item)
{
        return strcmp(key, ((const VgpuFunction *)item)->address);
}

VgpuFunction *vgpu_card_find(const VgpuCard *card, const char *address)
{
        bool found;
        size_t place = array_find(card->functions, sizeof(VgpuFunction), card->n_functions, address,
                                  order_function, &found);

        return found ? &card->functions[place] : NULL;
}

void vgpu_card_take(VgpuCard *card, const char *address, const char *type)
{
        VgpuFunction *function = vgpu_card_find(card, address);

        if (!function)
                return;
        function->is_taken = true;
        if (type[0])
                function->claimed_type = vgpu_card_find_type(card, type);
}

/* Returns the type that a function has, or will have for its claim. */
static int find_type(const VgpuFunction *function)
{
        return function->type != VGPU_TYPE_NONE ? function->type : function->claimed_type;
}

/* Returns whether the function can become a vGPU of one of the types. */
static bool can_become(const VgpuFunction *function, VgpuTypeSet types)
{
        return function->type == VGPU_TYPE_NONE && !function->is_taken &&
               (function->allowed & function->creatable & types);
}

/* Returns whether the function is idle: a claim can get it with the type that it has. Never true on
 * a prepared card, whose idle functions lose their types. */
static bool is_idle(const VgpuCard *card, const VgpuFunction *function)
{
        return function->type != VGPU_TYPE_NONE && !function->is_taken && !card->is_prepared &&
               (function->allowed & UINT64_C(1) << function->type);
}

/* The state of the whole card. */
typedef struct Sums {
        uint64_t used_mib;  /* framebuffer of all functions with a type, set or only claimed */
        bool used_unknown;  /* the framebuffer of a type in use is unknown */
        bool has_unread;    /* the types of a function are unknown */
        uint64_t n_unset;   /* claimed functions whose type is not set yet */
        VgpuTypeSet unset;  /* the types of these claimed functions */
        VgpuTypeSet set;    /* types that are set in the hardware */
        VgpuTypeSet listed; /* types that the hardware lists for a function without a type, free or
                               taken */
} Sums;

static Sums sum_up(const VgpuCard *card)
{
        Sums sums = { 0 };

        for (size_t i = 0; i < card->n_functions; i++) {
                const VgpuFunction *function = &card->functions[i];
                int type = find_type(function);

                sums.has_unread |= function->is_unread;
                if (function->type == VGPU_TYPE_NONE)
                        sums.listed |= function->creatable;
                if (type == VGPU_TYPE_NONE)
                        continue;
                sums.used_mib += card->types[type].framebuffer_mib;
                sums.used_unknown |= card->types[type].framebuffer_mib == 0;
                if (function->type != VGPU_TYPE_NONE) {
                        sums.set |= UINT64_C(1) << type;
                        continue;
                }
                sums.n_unset++;
                sums.unset |= UINT64_C(1) << type;
        }
        return sums;
}

/* Returns true if the hardware shows two types at the same time. */
static bool is_heterogeneous(const Sums *sums)
{
        VgpuTypeSet set = sums->set;

        return set && ((set & (set - 1)) || (sums->listed & ~set));
}

/* Returns the number of further vGPUs of the type that the remaining framebuffer holds, for a type
 * that the hardware lists. If the types of all claims are set in the hardware, the result is at
 * least 1: the known size can be a lower bound. If a size is unknown, max_instances decides: with
 * it the result is UINT64_MAX, without it this least number: 1, else 0. */
static uint64_t count_room(const VgpuCard *card, const Sums *sums, int type)
{
        const VgpuType *of = &card->types[type];
        uint64_t certain = sums->n_unset == 0;

        if (card->size_mib == 0 || of->framebuffer_mib == 0 || sums->used_unknown)
                return of->limit != UINT64_MAX ? UINT64_MAX : certain;
        if (sums->used_mib >= card->size_mib)
                return certain;
        return MAX(certain, (card->size_mib - sums->used_mib) / of->framebuffer_mib);
}

/* Returns the number of vGPUs of the type that can be made of n_free functions, beside the n_there
 * vGPUs of the type. Returns 0 if the types of a function are unknown. Also returns 0 if a claim
 * needs another type that is not set yet, unless the card is known to be heterogeneous. */
static uint64_t count_creatable(const VgpuCard *card, const Sums *sums, int type, uint64_t n_free,
                                uint64_t n_there)
{
        const VgpuTypeSet this = UINT64_C(1) << type;
        uint64_t limit = card->types[type].limit;
        uint64_t n = MIN(n_free, limit > n_there ? limit - n_there : 0);

        if (sums->has_unread || ((sums->unset & ~this) && !is_heterogeneous(sums)))
                return 0;
        return MIN(n, count_room(card, sums, type));
}

VgpuCount vgpu_card_count(const VgpuCard *card, int type)
{
        const VgpuTypeSet this = UINT64_C(1) << type;
        const Sums sums = sum_up(card);
        uint64_t framebuffer = card->types[type].framebuffer_mib, limit = card->types[type].limit;
        uint64_t n_free = 0;
        VgpuCount count = { 0 };

        for (size_t i = 0; i < card->n_functions; i++) {
                const VgpuFunction *function = &card->functions[i];

                count.total += (function->allowed & this) != 0;
                count.n_used += function->is_taken && find_type(function) == type;
                count.n_idle += is_idle(card, function) && function->type == type;
                n_free += can_become(function, this);
        }
        count.n_creatable = count_creatable(card, &sums, type, n_free, count.n_used + count.n_idle);
        /* Without sizes and a limit, only the vGPUs that the card has or lists are certain. */
        if (card->size_mib > 0 && framebuffer > 0)
                count.total = MIN(count.total, card->size_mib / framebuffer);
        else if (limit == UINT64_MAX)
                count.total = 0;
        count.total = MIN(count.total, limit);
        count.total = MAX(count.total, count.n_used + count.n_idle + count.n_creatable);
        return count;
}

VgpuFunction *vgpu_card_choose(const VgpuCard *card, int type)
{
        const VgpuTypeSet this = UINT64_C(1) << type;
        VgpuFunction *found = NULL;

        for (size_t i = 0; i < card->n_functions; i++) {
                VgpuFunction *function = &card->functions[i];

                if (function->type == type && is_idle(card, function))
                        return function;
                if (!found && can_become(function, this))
                        found = function;
        }
        return found && vgpu_card_count(card, type).n_creatable > 0 ? found : NULL;
}
