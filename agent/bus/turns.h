/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The order in which calls are served. Root and the agent's own user come first. All other users
 * are served in turn, and the connections of one user, too: many connections or many calls bring a
 * user no more turns. Calls beyond a few of each user are refused. Plain data without D-Bus. The
 * user of a connection is not known when its first call arrives: until then calls are held, within
 * a bound of their own. Main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define BUS_CALLS_PER_USER 16
#define BUS_CALLS_OF_ALL   128               /* users that are not privileged, together */
#define BUS_CALLS_HELD     1024              /* while it is not known whose they are */
#define BUS_CALLS_SIZE     (8 * 1024 * 1024) /* of all that wait and are not privileged */
#define BUS_SENDERS_MAX    1024

/* Unread answers stay at dbus-daemon, which stops reading from the agent at 127 MiB: then no user
 * gets an answer. The bus is asked how much is unread; between two questions a user gets so many
 * answers, and a large answer counts for all of them. */
#define BUS_ANSWERS_ASK   64 /* it is time to ask */
#define BUS_ANSWERS_MAX   256
#define BUS_UNREAD_MAX    (1024 * 1024)      /* bytes, of a user */
#define BUS_UNREAD_OF_ALL (64 * 1024 * 1024) /* of all that the agent sent */

typedef struct BusCall {
        void *message;
        size_t size;  /* of its arguments */
        bool is_long; /* is served in steps, and only one such at a time */
} BusCall;

typedef struct BusSender {
        char *name; /* unique name of the connection: never given again */
        uid_t uid;
        pid_t pid; /* 0: not known */
        bool is_asked, is_known, is_privileged;
        BusCall *calls; /* the oldest first */
        size_t n_calls, n_allocated;
        uint64_t turn, user_turn; /* the last of this connection, and of its user */
        unsigned n_answers;       /* since the bus was asked what is unread of them */
        uint64_t unread;          /* bytes, as it said */
        bool is_counted;          /* it is being asked, when there were n_counted answers */
        unsigned n_counted;
        uint64_t unread_since_usec; /* calls wait because of it; 0: they do not */
} BusSender;

/* Whether a user reads its answers. */
typedef enum BusReading {
        BUS_READS,
        BUS_READS_PERHAPS, /* the bus is to be asked before the next answer */
        BUS_READS_NOT,
} BusReading;

typedef struct BusTurns {
        BusSender **senders; /* by name */
        size_t n_senders, n_allocated;
        uint64_t turn;
        uint64_t unread; /* bytes, of all that the agent sent */
        bool is_blind;   /* the bus does not answer: everybody is taken to read */
} BusTurns;

/* Frees the senders; calls must have been taken out. */
void bus_turns_done(BusTurns *turns);

/* Finds or makes the sender of that name. When there are too many, one without calls is forgotten,
 * first one that has read everything. Borrowed until the next call of this function. -EBUSY: all
 * have calls that wait; -ENOMEM. */
int bus_turns_sender(BusTurns *turns, const char *name, BusSender **ret);

/* Returns NULL when the sender is not known. */
BusSender *bus_turns_find(const BusTurns *turns, const char *name);

/* Sets the user of the sender. The caller then takes calls over the limit with
 * bus_turns_take_over(). */
void bus_turns_set_user(BusTurns *turns, BusSender *sender, uid_t uid, bool privileged);

/* Takes the newest call that is over the limits out of the sender's. False: there is none. */
bool bus_turns_take_over(const BusTurns *turns, BusSender *sender, BusCall *ret);

/* Returns true if another call of that size is within the limits. */
bool bus_turns_has_room(const BusTurns *turns, const BusSender *sender, size_t size);

int bus_turns_add(BusSender *sender, const BusCall *call); /* -ENOMEM */

bool bus_turns_same_user(const BusSender *sender, const BusSender *other);

/* Returns whether the sender's user reads its answers; while the user is not known, the sender.
 * Privileged users always count as reading. */
BusReading bus_turns_reading(const BusTurns *turns, const BusSender *sender);

/* Counts answers. True: it is time to ask the bus. */
bool bus_turns_answered(const BusTurns *turns, BusSender *sender, unsigned n);

/* Takes the call that is served next. False when there is none. Long calls count only with
 * allow_long, and calls of users with unread answers never. */
bool bus_turns_next(BusTurns *turns, bool allow_long, BusCall *ret);
