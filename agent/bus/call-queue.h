/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The order in which calls are served. Calls of root and of the agent's own user come first. Other
 * users are served in turn, and so are the connections of one user. So a user gains no turns by
 * more connections or more calls. The queue computes whether a call is over the limits; the caller
 * (agent/bus/gate.h) refuses it.
 *
 * The user of a connection is not known when its first call arrives. Until the user is known, the
 * calls of the connection are not served. These calls have limits of their own. A call of at most
 * BUS_CALL_FIRST_SIZE has no limit while no other call of its connection waits, because its user
 * can be root. Calls of an unprivileged user are not served either while it does not read its
 * answers, or while the bus must be asked about that. Plain data without D-Bus. Main thread
 * only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Limits of the waiting calls of unprivileged senders, and of the connections. BUS_CALLS_SIZE
 * counts twice: for all users that are known, and for all senders whose user is unknown. */
#define BUS_CALLS_PER_USER  16
#define BUS_CALLS_OF_ALL    128               /* all users that are known, together */
#define BUS_CALLS_HELD      1024              /* all senders whose user is unknown, together */
#define BUS_CALLS_SIZE      (8 * 1024 * 1024) /* bytes */
#define BUS_CALL_FIRST_SIZE (64 * 1024)       /* bytes; most XML of domains is smaller */
#define BUS_SENDERS_MAX     1024              /* connections whose state is kept */

/* Limits of unread answers. dbus-daemon keeps them, and at 127 MiB it stops reading from the agent:
 * then no user gets an answer. So the agent asks the bus how much is unread: with a late refusal or
 * an answer of sd-bus that comes after BUS_ANSWERS_ASK answers, and while calls or refusals wait
 * because of unread answers. Until the bus has answered, at most BUS_ANSWERS_MAX calls of an
 * unprivileged user are served or refused, and one with a large answer counts as that many. A
 * failed question counts as an answer of 0 bytes. A user with more than BUS_UNREAD_MAX unread bytes
 * counts as not reading. With more than BUS_UNREAD_OF_ALL, all unprivileged users do. */
#define BUS_ANSWERS_ASK   64 /* answers to one user after which the agent asks the bus */
#define BUS_ANSWERS_MAX   256
#define BUS_UNREAD_MAX    (1024 * 1024)      /* bytes, one user */
#define BUS_UNREAD_OF_ALL (64 * 1024 * 1024) /* bytes, all users and subscribers */

/* A waiting call. message is owned by the queue of the sender. */
typedef struct BusCall {
        void *message;
        size_t size;  /* bytes of its arguments */
        bool is_long; /* its answer is made in steps; while one is made, no other one of an
                         unprivileged user begins */
} BusCall;

/* A connection, with its waiting calls and its unread answers. */
typedef struct BusSender {
        char *name; /* unique name of the connection, which the bus never reuses */
        uid_t uid;
        pid_t pid; /* 0: unknown */
        /* In this order: the question for the user is open; uid is valid; the user is root or the
         * agent's own. */
        bool is_asked, is_known, is_privileged;
        BusCall *calls; /* waiting calls, the oldest first */
        size_t n_calls, n_allocated;
        uint64_t turn, user_turn; /* number of the last turn of this connection, and of its user */
        unsigned n_answers;       /* answers, by weight, that are not yet counted in unread */
        uint64_t unread;          /* bytes that were unread at the last answer of the bus */
        bool is_counted;          /* a question is open; it was sent after n_counted answers */
        unsigned n_counted;
        uint64_t unread_since_usec; /* CLOCK_MONOTONIC since calls wait because the user is
                                       BUS_READS_NOT; 0: they do not */
} BusSender;

/* The evidence whether a user reads its answers. */
typedef enum BusReading {
        BUS_READS,         /* serve its calls */
        BUS_READS_PERHAPS, /* ask the bus before the next answer */
        BUS_READS_NOT,     /* too many bytes are unread: serve no call of the user */
} BusReading;

/* All connections. turn is a counter that orders the turns. */
typedef struct BusCallQueue {
        BusSender **senders; /* sorted by name */
        size_t n_senders, n_allocated;
        uint64_t turn;
        uint64_t unread;       /* bytes unread, of everything that the agent sent */
        bool no_unread_counts; /* the bus does not report unread bytes: all users count as reading
                                */
} BusCallQueue;

/* Frees the senders. Their calls must have been taken out. */
void bus_call_queue_done(BusCallQueue *queue);

/* Finds or adds the sender of that name. At BUS_SENDERS_MAX, removes one without calls, preferably
 * one that has read everything. *ret is borrowed until the next call of this function, which can
 * free a sender without calls. Returns -EBUSY if all BUS_SENDERS_MAX senders have waiting calls, or
 * -ENOMEM. */
int bus_call_queue_sender(BusCallQueue *queue, const char *name, BusSender **ret);

/* Returns the sender of that name, or NULL. */
BusSender *bus_call_queue_find(const BusCallQueue *queue, const char *name);

/* Sets the user of the sender. For a user that is not privileged, stricter limits apply then, so
 * the caller must take the excess with bus_call_queue_take_over(). */
void bus_call_queue_set_user(BusCallQueue *queue, BusSender *sender, uid_t uid, bool privileged);

/* Takes the newest call of a sender that is over the limits. Returns false if it is within the
 * limits or has no call. */
bool bus_call_queue_take_over(const BusCallQueue *queue, BusSender *sender, BusCall *ret);

/* Returns true if another call of that size is within the limits. Privileged senders have no
 * limits. */
bool bus_call_queue_has_capacity(const BusCallQueue *queue, const BusSender *sender, size_t size);

int bus_call_queue_add(BusSender *sender, const BusCall *call); /* -ENOMEM; *call is copied */

/* Returns true if both are the same connection, or connections of the same known user. */
bool bus_call_queue_same_user(const BusSender *sender, const BusSender *other);

/* Returns whether the sender's user reads its answers. While the user is unknown, this connection
 * alone counts. Privileged users always count as reading, and with no_unread_counts all users
 * do. */
BusReading bus_call_queue_reading(const BusCallQueue *queue, const BusSender *sender);

/* Counts n answers. Counts nothing and returns false if the user is privileged, or with
 * no_unread_counts. Otherwise returns true if at least BUS_ANSWERS_ASK answers to the user are in
 * no report of the bus yet. Then it is time to ask the bus; before a call is served, the caller
 * need not do it. */
bool bus_call_queue_answered(const BusCallQueue *queue, BusSender *sender, unsigned n);

/* Takes the call that is served next out of the queue, and counts it as a turn. Returns false if no
 * call can be served. Calls of senders whose user is unknown or not BUS_READS are never served.
 * Without allow_long, no long call of an unprivileged user is served, and the later calls of its
 * connection wait behind it. The caller owns the message of *ret. */
bool bus_call_queue_next(BusCallQueue *queue, bool allow_long, BusCall *ret);
