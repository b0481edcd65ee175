/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A consumer is in one hand at a time: of a claim that was read and not promised yet, or of a
 * healer that takes away what nobody here was promised. Pure. */

#include "base/uuid.h"

typedef struct ConsumerHands {
        Uuid *uuids;
        size_t n_uuids, n_allocated;
} ConsumerHands;

void consumer_hands_done(ConsumerHands *hands);

/* False when another has it, or without memory; who got it lets it go. */
bool consumer_hands_take(ConsumerHands *hands, const Uuid *consumer);
void consumer_hands_let_go(ConsumerHands *hands, const Uuid *consumer);
