/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What healing writes. */

#include "agent/audit/audit-picture.h"

/* Takes this tree's part away; with a claim only what it is compared by. */
static int drop_share(const AuditInput *input, const Claim *claim, Consumer *consumer)
{
        for (size_t i = consumer->n_allocations; i > 0; i--) {
                const Uuid provider = consumer->allocations[i - 1].provider;
                _cleanup_(resources_done) Resources held = RESOURCES_INIT;

                if (!audit_own_provider(input, &provider))
                        continue;
                if (resources_copy(&held, &consumer->allocations[i - 1].resources) < 0)
                        return -ENOMEM;
                for (size_t j = 0; j < held.n_items; j++)
                        if ((!claim ||
                             audit_is_compared(input, claim, held.items[j].resource_class)) &&
                            consumer_set(consumer, &provider, held.items[j].resource_class, 0) < 0)
                                return -ENOMEM;
        }
        return 0;
}

int audit_edit(const AuditInput *input, AuditRemedy remedy, const Consumer *consumer,
               const Claim *claim, Consumer **ret)
{
        _cleanup_(consumer_freep) Consumer *edited = NULL;

        if (remedy == AUDIT_REMEDY_WRITE_CLAIM && !claim)
                return 1;
        if (consumer_copy(&edited, consumer) < 0 ||
            drop_share(input, remedy == AUDIT_REMEDY_WRITE_CLAIM ? claim : NULL, edited) < 0 ||
            (remedy == AUDIT_REMEDY_WRITE_CLAIM &&
             consumer_set_all(edited, claim->allocations, claim->n_allocations) < 0))
                return -ENOMEM;
        if (consumer_holds_equal(edited, consumer))
                return 1;
        *ret = TAKE_PTR(edited);
        return 0;
}
