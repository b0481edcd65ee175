/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads and writes the unclean devices (schema.c has the table). A row is marked by the insert of a
 * claim's device, in its transaction. Only rows that a withdrawn claim added are removed here
 * without a result of the cleaning, because no guest had their devices. A row that the device had
 * before that claim stays. So does the row of each other claim that ends. claims_set_unclean() and
 * claims_end_unclean() change no row whose device a living claim has.
 *
 * Tests: tests/unit/claims/test-claims-unclean.c */

#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "claims/store/frame.h"

ROW(unclean, UncleanDevice, "unclean device", COLUMN("id", UncleanDevice, id),
    COLUMN("address", UncleanDevice, address), COLUMN("device", UncleanDevice, name),
    COLUMN("identity", UncleanDevice, identity, .optional = true),
    COLUMN("consumer", UncleanDevice, consumer, .optional = true),
    COLUMN("claim_id", UncleanDevice, claim), COLUMN("since_usec", UncleanDevice, since_usec),
    COLUMN("state", UncleanDevice, state, .max = _UNCLEAN_STATE_MAX - 1,
           .to_text = unclean_state_to_text),
    COLUMN("reason", UncleanDevice, reason));

static int add_unclean(void *context, int64_t key, void *row)
{
        UncleanDevices *list = context;

        if (array_grow(&list->items, sizeof(UncleanDevice), list->n_items, &list->n_allocated) < 0)
                return -ENOMEM;
        list->items[list->n_items++] = *(UncleanDevice *)row;
        return 0;
}

int claims_list_unclean(Claims *claims, UncleanDevices *ret, Error *reterr)
{
        return store_each(claims, STATEMENT_LIST_UNCLEAN, NO_VALUES, add_unclean, ret, reterr);
}

int claims_mark_unclean(Claims *claims, const UncleanDevice *device, Error *reterr)
{
        return store_run_alone(claims, STATEMENT_MARK_UNCLEAN,
                               VALUES(device->address, device->name, device->identity,
                                      device->claim, device->since_usec,
                                      unclean_state_to_text(device->state), device->reason,
                                      device->consumer.text),
                               CLAIM_DONE, reterr);
}

int claims_set_unclean(Claims *claims, int64_t id, UncleanState from, UncleanState to,
                       const char *reason, uint64_t since_usec, Error *reterr)
{
        return store_run_alone(claims, STATEMENT_SET_UNCLEAN,
                               VALUES(id, unclean_state_to_text(from), unclean_state_to_text(to),
                                      reason, since_usec),
                               CLAIM_E_NOT_FOUND, reterr);
}

int claims_end_unclean(Claims *claims, int64_t id, UncleanState state, Error *reterr)
{
        return store_run_alone(claims, STATEMENT_END_UNCLEAN,
                               VALUES(id, unclean_state_to_text(state)), CLAIM_E_NOT_FOUND, reterr);
}
