/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What happened to claims and to what they are made of, and who wanted it: rows beside the claims,
 * for whoever asks afterwards. Plain data, no policy. */

#include "base/macros.h"
#include "base/uuid.h"

/* The newest are kept, as long as they are not older than that; what is more goes with every
 * EVENTS_LOT-th. */
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

/* Who wants something; where a pointer to one is NULL, it is this program itself. */
typedef struct EventAuthor {
        int64_t uid;                 /* -1: not known */
        char text[EVENT_AUTHOR_MAX]; /* "root (computectl, pid 4711, session-2.scope)" */
} EventAuthor;

/* One that is to be written down. Everything is borrowed. */
typedef struct EventNote {
        const char *kind;
        const EventAuthor *by;
        int64_t claim;        /* 0: of none */
        const Uuid *consumer; /* NULL: of none */
        const char *device;   /* NULL: of none; "": of the host */
        const char *reason;   /* may be NULL */
} EventNote;

/* One that was read. The texts are owned. */
typedef struct Event {
        int64_t id;
        uint64_t usec; /* CLOCK_REALTIME */
        int64_t uid;   /* -1: this program, or not known */
        int64_t claim;
        char *kind;
        char *author;   /* "": this program itself */
        char *consumer; /* a uuid, or "" */
        char *guest;    /* whose the claim was before it was handed to a migration: a uuid, or "" */
        char *allocations; /* JSON: [{"name", "class", "amount"}] */
        char *devices;     /* JSON: [{"device", "address", "mdev"}] */
        char *reason;
} Event;

typedef struct EventList {
        Event *events;
        size_t n_events;
        size_t n_allocated;
} EventList;

/* Appends one of zeros. -ENOMEM. */
int event_list_add(EventList *list, Event **ret);
void event_list_done(EventList *list);
