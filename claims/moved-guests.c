/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "claims/moved-guests.h"

/* Can the consumer be the migration of this guest, whose allocations are on other hosts? The guest
 * shows what it had here, and its claim counts that. */
static bool is_move_of(const ReconcileInput *input, const Consumer *consumer,
                       const HostDomain *domain)
{
        const ReconcileAnswer *answer = reconcile_find_answer(input, &domain->uuid);

        return answer && answer->holding && !answer->here && !domain->unread &&
               consumer_is_same_project(answer->holding, consumer) &&
               consumer_sum(consumer, "VCPU") + consumer_sum(consumer, "PCPU") == domain->vcpus &&
               consumer_sum(consumer, "MEMORY_MB") == domain->memory_mb;
}

void moved_guests_mark(const ReconcileInput *input, bool *counted)
{
        for (size_t i = 0; !input->recorded && i < input->facts->n_domains; i++)
                for (size_t j = 0; j < input->n_answers; j++) {
                        if (counted[j] || !input->answers[j].here ||
                            !is_move_of(input, input->answers[j].holding,
                                        &input->facts->domains[i]))
                                continue;
                        counted[j] = true;
                        break;
                }
}
