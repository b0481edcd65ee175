/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Events of claims and of the host, with their authors: rows beside the claims, kept for later
 * questions. Plain data, no policy. */

#include "base/macros.h"
#include "base/uuid.h"

/* Limits of the table: the newest EVENTS_MAX are kept, none older than EVENTS_AGE_USEC. Each
 * EVENTS_LOT-th new event deletes older rows. EVENTS_LOT is also the largest number of events that
 * one read yields. */
#define EVENTS_MAX      2000
#define EVENTS_AGE_USEC (UINT64_C(90) * 24 * 3600 * USEC_PER_SEC)
#define EVENTS_LOT      64

#define EVENT_CLAIMED    "claimed"
#define EVENT_ADOPTED    "adopted"
#define EVENT_RELEASED   "released"
#define EVENT_EXPIRED    "expired"
#define EVENT_MOVED      "moved"
#define EVENT_RESHAPED   "reshaped"
#define EVENT_HEALED     "healed"
#define EVENT_CORDONED   "cordoned"
#define EVENT_UNCORDONED "uncordoned"
#define EVENT_RETIRED    "retired"
#define EVENT_UNRETIRED  "unretired"

#define EVENT_AUTHOR_MAX 192

/* The author of a request. A NULL pointer to one means this program. */
typedef struct EventAuthor {
        int64_t uid;                 /* -1: unknown */
        char text[EVENT_AUTHOR_MAX]; /* "root (computectl, pid 4711, session-2.scope)" */
} EventAuthor;

/* An event that will be written. Everything is borrowed. */
typedef struct EventNote {
        const char *kind;
        const EventAuthor *by;
        int64_t claim;        /* 0: none */
        const Uuid *consumer; /* NULL: none */
        const char *device;   /* NULL: none; "": the host */
        const char *reason;   /* can be NULL */
} EventNote;

/* An event that was read. The texts are owned. */
typedef struct Event {
        int64_t id;
        uint64_t usec; /* CLOCK_REALTIME */
        int64_t uid;   /* -1: this program, or unknown */
        int64_t claim;
        char *kind;
        char *author;      /* "": this program */
        char *consumer;    /* a uuid, or "" */
        char *guest;       /* owner of the claim before a migration took it over: a uuid, or "" */
        char *allocations; /* JSON: [{"name", "class", "amount"}] */
        char *devices;     /* JSON: [{"device", "address", "mdev"}] */
        char *reason;
} Event;

typedef struct EventList {
        Event *events;
        size_t n_events;
        size_t n_allocated;
} EventList;

/* Appends a zeroed event, borrowed until the next call. Returns -ENOMEM on failure. */
int event_list_add(EventList *list, Event **ret);
void event_list_done(EventList *list);
