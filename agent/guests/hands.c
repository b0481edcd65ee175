/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/guests/hands.h"

#include <assert.h>
#include <stdlib.h>

#include "base/array.h"

void consumer_hands_done(ConsumerHands *hands)
{
        free(hands->uuids);
        *hands = (ConsumerHands){ 0 };
}

static size_t find(const ConsumerHands *hands, const Uuid *consumer)
{
        size_t i = 0;

        while (i < hands->n_uuids && !uuid_equal(&hands->uuids[i], consumer))
                i++;
        return i;
}

bool consumer_hands_take(ConsumerHands *hands, const Uuid *consumer)
{
        if (find(hands, consumer) < hands->n_uuids ||
            array_grow(&hands->uuids, sizeof(Uuid), hands->n_uuids, &hands->n_allocated) < 0)
                return false;
        hands->uuids[hands->n_uuids++] = *consumer;
        return true;
}

void consumer_hands_let_go(ConsumerHands *hands, const Uuid *consumer)
{
        size_t i = find(hands, consumer);

        assert(i < hands->n_uuids);
        hands->uuids[i] = hands->uuids[--hands->n_uuids];
}
