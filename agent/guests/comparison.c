/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/guests/comparison.h"

#include <errno.h>
#include <stdlib.h>

#include "agent/guests/claim-share.h"
#include "agent/guests/facts.h"
#include "base/array.h"

static void forget_polls(ClaimComparison *comparison)
{
        claim_facts_done(&comparison->facts);
        snapshot_unref(comparison->snapshot);
        snapshot_unref(comparison->guests);
}

static void forget_answers(ClaimComparison *comparison)
{
        comparison->held = allocations_free(comparison->held);
        free(comparison->answers);
        comparison->answers = NULL;
        comparison->n_answers = 0;
        comparison->complete = comparison->absent = false;
        comparison->holding = allocations_free(comparison->holding);
}

void claim_comparison_done(ClaimComparison *comparison)
{
        forget_polls(comparison);
        forget_answers(comparison);
        reconcile_memory_done(&comparison->memory);
        reconcile_problems_done(&comparison->problems);
        free(comparison->touched);
        free(comparison->away);
        *comparison = (ClaimComparison){ 0 };
}

static void forget_touched(ClaimComparison *comparison)
{
        size_t n = 0;

        for (size_t i = 0; i < comparison->n_touched; i++)
                if (comparison->touched[i].when_usec >= comparison->facts.taken_usec)
                        comparison->touched[n++] = comparison->touched[i];
        comparison->n_touched = n;
}

int claim_comparison_set_polls(ClaimComparison *comparison, const HostConfig *driver,
                               const Snapshot *snapshot, const Snapshot *guests)
{
        HostFacts facts = { 0 };

        if (claim_facts_make(driver, snapshot, guests, &facts) < 0)
                return -ENOMEM;
        snapshot_ref(snapshot);
        snapshot_ref(guests);
        forget_polls(comparison);
        comparison->snapshot = (Snapshot *)snapshot;
        comparison->guests = (Snapshot *)guests;
        comparison->facts = facts;
        forget_touched(comparison);
        return 0;
}

void claim_comparison_touch(ClaimComparison *comparison, int64_t claim, uint64_t usec)
{
        /* Without memory a poll may be believed that is a moment too old: as it is without this. */
        if (array_grow(&comparison->touched, sizeof(ReconcileTouched), comparison->n_touched,
                       &comparison->n_touched_allocated) < 0)
                return;
        comparison->touched[comparison->n_touched++] =
                (ReconcileTouched){ .claim_id = claim, .when_usec = usec };
}

static void add_answer(ClaimComparison *comparison, const Uuid *consumer, const Consumer *holding,
                       bool here)
{
        comparison->answers[comparison->n_answers++] =
                (PictureConsumer){ .consumer = *consumer, .holding = holding, .here = here };
}

static int order_answers(const void *a, const void *b)
{
        return uuid_order(&((const PictureConsumer *)a)->consumer,
                          &((const PictureConsumer *)b)->consumer);
}

void claim_comparison_answer(ClaimComparison *comparison, const ClaimWanted *asked,
                             Allocations *holding, const HostView *view, const char *node)
{
        size_t n = asked->n_uuids + holding->n_consumers;

        forget_answers(comparison);
        comparison->holding = holding;
        if (!view || !(comparison->answers = calloc(n + 1, sizeof(PictureConsumer))))
                return;
        for (size_t i = 0; i < holding->n_consumers; i++)
                add_answer(comparison, &holding->consumers[i]->uuid, holding->consumers[i],
                           claim_share_has(view, node, holding->consumers[i]));
        for (size_t i = 0; i < asked->n_uuids; i++)
                if (!allocations_find(holding, &asked->uuids[i]))
                        add_answer(comparison, &asked->uuids[i], NULL, false);
        if (comparison->n_answers > 1)
                qsort(comparison->answers, comparison->n_answers, sizeof(PictureConsumer),
                      order_answers);
        comparison->complete = asked->all;
        comparison->absent = asked->absent;
}

static bool is_urgent(const ClaimComparison *comparison)
{
        return comparison->urgent_usec > 0 &&
               comparison->facts.taken_usec >= comparison->urgent_usec;
}

void claim_comparison_set_held(ClaimComparison *comparison, uint64_t stamp, Allocations *held)
{
        allocations_free(comparison->held);
        comparison->held = held;
        comparison->held_stamp = stamp;
}

ReconcileInput claim_comparison_input(const ClaimComparison *comparison, ReconcileWord word)
{
        return (ReconcileInput){
                .facts = &comparison->facts,
                .away = comparison->away,
                .n_away = comparison->n_away,
                .word = word,
                .answers = comparison->answers,
                .n_answers = comparison->n_answers,
                .complete = comparison->complete,
                .held = comparison->held,
                .urgent = is_urgent(comparison),
                .touched = comparison->touched,
                .n_touched = comparison->n_touched,
                .recorded = comparison->snapshot->guests_unknown,
        };
}

void claim_comparison_end(ClaimComparison *comparison, bool asked)
{
        forget_answers(comparison);
        if (asked)
                comparison->is_due = true;
        else if (is_urgent(comparison))
                comparison->urgent_usec = 0;
}

void claim_comparison_follow_clock(ClaimComparison *comparison, const ClockJump *jump)
{
        for (size_t i = 0; i < comparison->memory.n_items; i++) {
                ReconcileMissing *missing = &comparison->memory.items[i];

                missing->since_usec = clock_jump_move(jump, missing->since_usec);
                if (missing->asked_usec > 0)
                        missing->asked_usec = clock_jump_move(jump, missing->asked_usec);
        }
        for (size_t i = 0; i < comparison->n_touched; i++)
                comparison->touched[i].when_usec =
                        clock_jump_move(jump, comparison->touched[i].when_usec);
}
