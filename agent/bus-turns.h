/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Whose call is served next. Root and the agent's own user come first. All other users are served
 * in turn, and of one user's connections the one that waited longest: many connections, or many
 * calls, bring nobody more than one turn. Beyond a few calls of a user more are refused.
 *
 * Plain data; knows no D-Bus. Who a connection belongs to is not known when its first call comes:
 * until then calls are held, within a bound of their own. Main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define BUS_CALLS_PER_USER 16
#define BUS_CALLS_OF_ALL   128               /* users that are not privileged, together */
#define BUS_CALLS_HELD     1024              /* while it is not known whose they are */
#define BUS_CALLS_SIZE     (8 * 1024 * 1024) /* of all that wait and are not privileged */
#define BUS_SENDERS_MAX    1024

typedef struct BusCall {
        void *message;
        size_t size;  /* of its arguments */
        bool is_long; /* is served in steps, and only one such at a time */
} BusCall;

typedef struct BusSender {
        char *name; /* unique name of the connection: never given again */
        uid_t uid;
        bool is_asked, is_known, is_privileged;
        BusCall *calls; /* the oldest first */
        size_t n_calls, n_allocated;
        uint64_t turn, user_turn; /* the last of this connection, and of its user */
} BusSender;

typedef struct BusTurns {
        BusSender **senders; /* by name */
        size_t n_senders, n_allocated;
        uint64_t turn;
} BusTurns;

/* Frees the senders; calls must have been taken out. */
void bus_turns_done(BusTurns *turns);

/* The sender of that name, made when it is new; one without calls is forgotten when there are too
 * many. Borrowed until the next call of this function. -EBUSY: too many that wait, -ENOMEM. */
int bus_turns_sender(BusTurns *turns, const char *name, BusSender **ret);

/* NULL when it is not known. */
BusSender *bus_turns_find(const BusTurns *turns, const char *name);

/* Whose it is. Calls over the limit are to be taken with bus_turns_take_over() then. */
void bus_turns_set_user(BusTurns *turns, BusSender *sender, uid_t uid, bool privileged);

/* Takes the newest call that is over the limits out of the sender's. False: there is none. */
bool bus_turns_take_over(const BusTurns *turns, BusSender *sender, BusCall *ret);

/* May a call of that size of the sender wait, too? */
bool bus_turns_has_room(const BusTurns *turns, const BusSender *sender, size_t size);

int bus_turns_add(BusSender *sender, const BusCall *call); /* -ENOMEM */

/* Takes the call out that is served next. False when there is none; calls that are long do not
 * count unless they are allowed. */
bool bus_turns_next(BusTurns *turns, bool allow_long, BusCall *ret);

/* Takes any call out, to give up all. */
bool bus_turns_take_any(BusTurns *turns, BusCall *ret);
