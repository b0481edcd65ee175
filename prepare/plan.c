/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Decides which steps make the listed cards as the configuration and the living claims want them.
 *
 * A card is decided before its functions: while its unit must run or its functions must be made, it
 * gets no other step, because its functions change. Each function gets at most one step. The caller
 * executes the steps of the first kind alone, reads everything again, and plans again. So one plan
 * clears a function with a wrong type, and the next plan sets the new type. A number of functions
 * that cannot be changed is refused, and the existing functions still get their steps. Types are
 * set and cleared only in sections with vgpu_types. A crash between two steps needs no repair: the
 * next run finds the host as it is.
 *
 * Limits: the framebuffer and the mode of a card are not known here. A type that the card cannot
 * create now is found when it is written. */

#include "prepare/plan.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"

void prepare_host_done(PrepareHost *host)
{
        for (size_t i = 0; i < host->n_cards; i++)
                free(host->cards[i].functions);
        free(host->cards);
        *host = (PrepareHost){ 0 };
}

void prepare_claims_done(PrepareClaims *claims)
{
        free(claims->items);
        free(claims->dirty);
        *claims = (PrepareClaims){ 0 };
}

const PrepareClaim *prepare_find_claim(const PrepareClaims *claims, const char *address)
{
        for (size_t i = 0; i < claims->n_items; i++)
                if (strcmp(claims->items[i].address, address) == 0)
                        return &claims->items[i];
        return NULL;
}

/* The arguments of the functions below, and the card and function of the next step. */
typedef struct Planner {
        const PrepareHost *host;
        const PrepareClaims *claims;
        PreparePlan *plan;
        size_t card, function;
} Planner;

static _printf_(5, 6) int add(Planner *p, PrepareKind kind, uint64_t value,
                              const PrepareClaim *claim, const char *format, ...)
{
        PrepareStep *step;
        va_list ap;

        if (array_grow(&p->plan->steps, sizeof(PrepareStep), p->plan->n_steps,
                       &p->plan->n_allocated) < 0)
                return -ENOMEM;
        step = &p->plan->steps[p->plan->n_steps++];
        *step = (PrepareStep){ .kind = kind,
                               .card = p->card,
                               .function = p->function,
                               .value = value,
                               .claim = claim ? claim->id : 0 };
        va_start(ap, format);
        vsnprintf(step->reason, sizeof(step->reason), format, ap);
        va_end(ap);
        text_sanitize(step->reason, '?'); /* a limit can cut a character of a name */
        return 0;
}

static const char *describe_open(PrepareOpen open)
{
        return open == PREPARE_OPEN_YES      ? "a process has it open"
               : open == PREPARE_OPEN_PARENT ? "it has mediated, vDPA or network devices"
                                             : "it is not known whether a process has it open";
}

/* Writes why the functions of the card cannot be replaced. Returns false if they can. */
static bool find_user(const Planner *p, const PrepareCard *card, char text[PREPARE_REASON_SIZE])
{
        for (size_t i = 0; i < card->n_functions; i++) {
                const PrepareFunction *function = &card->functions[i];
                const PrepareClaim *claim = prepare_find_claim(p->claims, function->address);

                if (claim)
                        snprintf(text, PREPARE_REASON_SIZE, "claim %" PRIi64 " has %s", claim->id,
                                 function->address);
                else if (function->open != PREPARE_OPEN_NO)
                        snprintf(text, PREPARE_REASON_SIZE, "%s: %s", function->address,
                                 describe_open(function->open));
                else if (function->type)
                        snprintf(text, PREPARE_REASON_SIZE, "%s is a vGPU of nvidia-%" PRIu64,
                                 function->address, function->type);
                else
                        continue;
                return true;
        }
        if (p->claims->complete)
                return false;
        snprintf(text, PREPARE_REASON_SIZE, "the claims of this host are not known");
        return true;
}

/* Decides about the number of functions. The kernel takes another number only after 0. The next
 * plan finds a card without functions. Its unit, if it has one that did not run in this pass, runs
 * before the new ones are made. */
static int plan_number(Planner *p, const PrepareCard *card)
{
        uint64_t wanted = card->options->virtual_functions;
        char user[PREPARE_REASON_SIZE];

        if (wanted > card->max_virtual)
                return add(p, PREPARE_REFUSE, wanted, NULL,
                           "%" PRIu64 " functions are wanted, but the card supports %" PRIu64,
                           wanted, card->max_virtual);
        if (card->n_virtual == 0)
                return add(p, PREPARE_FUNCTIONS, wanted, NULL, "the card has no functions");
        if (find_user(p, card, user))
                return add(p, PREPARE_REFUSE, wanted, NULL,
                           "%" PRIu64 " functions are wanted instead of %" PRIu64 ", but %s",
                           wanted, card->n_virtual, user);
        return add(p, PREPARE_FUNCTIONS, 0, NULL,
                   "%" PRIu64 " functions are wanted instead of %" PRIu64 ", which are all free",
                   wanted, card->n_virtual);
}

/* Decides about the driver of a function that is no vGPU. A function that is in use, or perhaps in
 * use, keeps its driver: libvirt binds another one for a guest with managed='yes'. It gets no step
 * then. It gets a refusal if its claim needs a type, because its guest would get no vGPU, or if it
 * has devices above it and no claim. */
static int plan_driver(Planner *p, const PrepareFunction *function, const PrepareClaim *claim,
                       bool needs_type)
{
        if (function->open != PREPARE_OPEN_NO && needs_type)
                return add(p, PREPARE_REFUSE, claim->type, claim,
                           "claim %" PRIi64 " needs nvidia-%" PRIu64
                           ", but its driver is %.64s, and %s",
                           claim->id, claim->type,
                           function->driver[0] ? function->driver : "not bound",
                           describe_open(function->open));
        if (function->open == PREPARE_OPEN_PARENT && !claim)
                return add(p, PREPARE_REFUSE, 0, NULL, "its driver is %.64s, and %s",
                           function->driver, describe_open(function->open));
        if (function->open != PREPARE_OPEN_NO)
                return 0;
        return add(p, PREPARE_DRIVER, 0, claim, "its driver is %.64s",
                   function->driver[0] ? function->driver : "not bound");
}

/* Decides about a vGPU that has another type than its claim needs, or that has no claim. If the
 * function is in use or the claims are incomplete, the step is refused with a claim, and waits
 * without one. */
static int plan_clear(Planner *p, const PrepareFunction *function, const PrepareClaim *claim)
{
        char reason[PREPARE_REASON_SIZE];

        if (claim)
                snprintf(reason, sizeof(reason),
                         "it is a vGPU of nvidia-%" PRIu64 ", but claim %" PRIi64
                         " needs nvidia-%" PRIu64,
                         function->type, claim->id, claim->type);
        else if (function->recorded)
                snprintf(reason, sizeof(reason), "claim %" PRIi64 " has ended", function->recorded);
        else
                snprintf(reason, sizeof(reason), "it has no claim");
        if (function->open != PREPARE_OPEN_NO)
                return add(p, claim ? PREPARE_REFUSE : PREPARE_WAIT, function->type, claim,
                           "%s, and %s", reason, describe_open(function->open));
        if (!p->claims->complete)
                return add(p, claim ? PREPARE_REFUSE : PREPARE_WAIT, function->type, claim,
                           "%s, and the claims of this host are not completely known", reason);
        return add(p, PREPARE_CLEAR, function->type, claim, "%s", reason);
}

/* Decides about the type of a function that is no vGPU, and that a claim needs as one. */
static int plan_set(Planner *p, const PrepareFunction *function, const PrepareClaim *claim)
{
        if (!function->has_type)
                return add(p, PREPARE_REFUSE, claim->type, claim,
                           "claim %" PRIi64 " needs nvidia-%" PRIu64
                           ", but its driver has no nvidia/current_vgpu_type",
                           claim->id, claim->type);
        if (function->open != PREPARE_OPEN_NO)
                return add(p, PREPARE_REFUSE, claim->type, claim,
                           "claim %" PRIi64 " needs nvidia-%" PRIu64 ", but %s", claim->id,
                           claim->type, describe_open(function->open));
        return add(p, PREPARE_SET, claim->type, claim, "claim %" PRIi64 " needs it", claim->id);
}

static int plan_function(Planner *p, const PrepareCard *card)
{
        const PrepareFunction *function = &card->functions[p->function];
        const PrepareClaim *claim = prepare_find_claim(p->claims, function->address);
        bool typed = function->type != 0, of_type = claim && claim->type != 0;
        bool needs_type = card->options->vgpu_types && of_type && !claim->is_pending;

        if (function->failed[0])
                return 0;
        if (function->unreadable[0])
                return add(p, PREPARE_REFUSE, 0, claim, "%s", function->unreadable);
        if (typed && claim && (!of_type || function->type == claim->type))
                return 0; /* as its claim needs it */
        if (typed)
                return card->options->vgpu_types ? plan_clear(p, function, claim) : 0;
        if (card->options->driver_override &&
            strcmp(card->options->driver_override, function->driver) != 0)
                return plan_driver(p, function, claim, needs_type);
        if (needs_type)
                return plan_set(p, function, claim);
        return 0;
}

/* Parses "0000:c1:00.4". Returns false for another text. */
static bool parse_address(const char *address, unsigned *ret_domain, unsigned *ret_routing_id)
{
        unsigned bus, slot, function;

        if (strlen(address) != PCI_ADDRESS_SIZE - 1 ||
            sscanf(address, "%4x:%2x:%2x.%1x", ret_domain, &bus, &slot, &function) != 4)
                return false;
        *ret_routing_id = bus << 8 | (slot & 0x1f) << 3 | (function & 7);
        return true;
}

/* Returns true if the address can be that of a virtual function of the card, which need not exist.
 * Without the stride these are all other addresses of the card's bus. */
static bool can_have_address(const PrepareCard *card, const char *address)
{
        unsigned domain, own_domain, id, own_id;
        uint64_t distance;

        if (!parse_address(address, &domain, &id) ||
            !parse_address(card->address, &own_domain, &own_id) || domain != own_domain)
                return false;
        if (card->stride == 0)
                return id >> 8 == own_id >> 8 && id != own_id;
        if (id < own_id + card->offset)
                return false;
        distance = id - own_id - card->offset;
        return distance % card->stride == 0 && distance / card->stride < card->max_virtual;
}

static bool has_function(const PrepareCard *card, const char *address)
{
        for (size_t i = 0; i < card->n_functions; i++)
                if (strcmp(card->functions[i].address, address) == 0)
                        return true;
        return false;
}

/* Refuses claims of a type on functions that the card can have, but does not. Pending claims are
 * ignored. */
static int plan_missing(Planner *p, const PrepareCard *card)
{
        int r = 0;

        for (size_t i = 0; i < p->claims->n_items && r == 0; i++) {
                const PrepareClaim *claim = &p->claims->items[i];

                if (claim->type && !claim->is_pending && can_have_address(card, claim->address) &&
                    !has_function(card, claim->address))
                        r = add(p, PREPARE_REFUSE, claim->type, claim,
                                "claim %" PRIi64 " needs nvidia-%" PRIu64
                                " on %s, which does not exist",
                                claim->id, claim->type, claim->address);
        }
        return r;
}

static int plan_card(Planner *p)
{
        const PrepareCard *card = &p->host->cards[p->card];
        uint64_t wanted = card->options->virtual_functions;
        int r = 0;

        p->function = PREPARE_OF_CARD;
        if (card->failed[0])
                return 0;
        if (card->unreadable[0])
                return add(p, PREPARE_REFUSE, 0, NULL, "%s", card->unreadable);
        if (!card->exists)
                return add(p, PREPARE_REFUSE, 0, NULL, "the card does not exist");
        if (card->n_virtual == 0 && !card->has_driver && (wanted > 0 || card->options->unit))
                return add(p, PREPARE_REFUSE, 0, NULL, "no driver is bound to the card");
        if (card->n_virtual == 0 && card->options->unit && !card->unit_done)
                return add(p, PREPARE_UNIT, 0, NULL, "the card has no functions");
        if (card->n_virtual == 0 && card->options->unit && wanted == 0)
                return add(p, PREPARE_REFUSE, 0, NULL,
                           "its unit made no functions, and "
                           "virtual_functions is 0");
        if (wanted > 0 && wanted != card->n_virtual) {
                r = plan_number(p, card);
                if (r < 0 || p->plan->steps[p->plan->n_steps - 1].kind == PREPARE_FUNCTIONS)
                        return r;
        }
        if (card->options->vgpu_types)
                r = plan_missing(p, card);
        for (p->function = 0; p->function < card->n_functions && r == 0; p->function++)
                r = plan_function(p, card);
        return r;
}

static const PrepareClaim *claim_of(const Planner *p, const PrepareStep *step)
{
        const PrepareCard *card = &p->host->cards[step->card];

        return step->kind == PREPARE_SET
                       ? prepare_find_claim(p->claims, card->functions[step->function].address)
                       : NULL;
}

/* Returns true if step a must follow step b. */
static bool is_later(const Planner *p, const PrepareStep *a, const PrepareStep *b)
{
        const PrepareClaim *of_a = claim_of(p, a), *of_b = claim_of(p, b);

        if (a->kind != b->kind)
                return a->kind > b->kind;
        if (!of_a || !of_b)
                return false;
        if (of_a->is_confirmed != of_b->is_confirmed)
                return of_b->is_confirmed;
        return of_a->id > of_b->id;
}

/* Sorts by insertion, which keeps the order of equal steps. */
static void sort_steps(const Planner *p)
{
        PrepareStep *steps = p->plan->steps;

        for (size_t i = 1; i < p->plan->n_steps; i++) {
                PrepareStep step = steps[i];
                size_t j = i;

                for (; j > 0 && is_later(p, &steps[j - 1], &step); j--)
                        steps[j] = steps[j - 1];
                steps[j] = step;
        }
}

int prepare_plan(const PrepareHost *host, const PrepareClaims *claims, PreparePlan *ret)
{
        Planner planner = { .host = host, .claims = claims, .plan = ret };

        for (planner.card = 0; planner.card < host->n_cards; planner.card++)
                if (plan_card(&planner) < 0)
                        return -ENOMEM;
        sort_steps(&planner);
        return 0;
}
