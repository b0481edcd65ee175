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

/* What is answered and not read lies with dbus-daemon, which reads nothing more of who has sent too
 * much of that (127 MiB), so that nobody is answered any more. It is the bus that is asked how much
 * is unread; between two questions a user gets so many answers, of which a large one is worth all.
 */
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

/* Whether a user reads what it is answered. */
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

/* The sender of that name, made when it is new; one without calls is forgotten when there are too
 * many, one that has read everything before others. Borrowed until the next call of this function.
 * -EBUSY: too many that wait, -ENOMEM. */
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

bool bus_turns_same_user(const BusSender *sender, const BusSender *other);

/* Of the sender's user, who is not known yet: of the sender. Who is privileged is not asked. */
BusReading bus_turns_reading(const BusTurns *turns, const BusSender *sender);

/* Notes answers for it. True: it is time to ask the bus. */
bool bus_turns_answered(const BusTurns *turns, BusSender *sender, unsigned n);

/* Takes the call out that is served next. False when there is none; calls that are long do not
 * count unless they are allowed, and those of users that may not have read their answers never. */
bool bus_turns_next(BusTurns *turns, bool allow_long, BusCall *ret);
