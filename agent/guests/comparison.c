/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/guests/comparison.h"

#include <stdlib.h>

#include "agent/guests/claim-share.h"

static void forget_answers(ClaimComparison *comparison)
{
        free(comparison->answers);
        comparison->answers = NULL;
        comparison->n_answers = 0;
        comparison->holding = allocations_free(comparison->holding);
}

void claim_comparison_done(ClaimComparison *comparison)
{
        forget_answers(comparison);
        reconcile_memory_done(&comparison->memory);
        reconcile_problems_done(&comparison->problems);
        free(comparison->away);
        *comparison = (ClaimComparison){ 0 };
}

void claim_comparison_set_away(ClaimComparison *comparison, Uuid *guests, size_t n_guests)
{
        free(comparison->away);
        comparison->away = guests;
        comparison->n_away = n_guests;
}

bool claim_comparison_is_away(const ClaimComparison *comparison, const Uuid *guest)
{
        for (size_t i = 0; i < comparison->n_away; i++)
                if (uuid_equal(&comparison->away[i], guest))
                        return true;
        return false;
}

void claim_comparison_answer(ClaimComparison *comparison, const ClaimWanted *asked,
                             Allocations *holding, const HostView *view, const char *node)
{
        forget_answers(comparison);
        comparison->holding = holding;
        if (!view || !(comparison->answers = calloc(asked->n_uuids + 1, sizeof(ReconcileAnswer))))
                return;
        for (size_t i = 0; i < asked->n_uuids; i++) {
                const Consumer *found = allocations_find(holding, &asked->uuids[i]);

                comparison->answers[comparison->n_answers++] = (ReconcileAnswer){
                        .consumer = asked->uuids[i],
                        .holding = found,
                        .here = found && claim_share_has(view, node, found),
                };
        }
}

static bool is_urgent(const ClaimComparison *comparison, const GuestPicture *picture)
{
        return comparison->urgent_usec > 0 && picture->facts.taken_usec >= comparison->urgent_usec;
}

ReconcileInput claim_comparison_input(const ClaimComparison *comparison,
                                      const GuestPicture *picture, ReconcileWord word,
                                      uint64_t expiry_usec)
{
        return (ReconcileInput){
                .facts = &picture->facts,
                .expiry_usec = expiry_usec,
                .started_only = comparison->started_only,
                .away = comparison->away,
                .n_away = comparison->n_away,
                .word = word,
                .answers = comparison->answers,
                .n_answers = comparison->n_answers,
                .urgent = is_urgent(comparison, picture),
                .touched = picture->touched,
                .n_touched = picture->n_touched,
                .recorded = guest_picture_is_recorded(picture),
        };
}

void claim_comparison_end(ClaimComparison *comparison, const GuestPicture *picture, bool asked)
{
        forget_answers(comparison);
        if (asked)
                comparison->is_due = true;
        else if (is_urgent(comparison, picture))
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
}
