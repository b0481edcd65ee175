/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The documents of Describe(), which every user can read. The text of a document is made at the
 * first read after a change, or to compare it, and kept for later reads, so frequent reads are
 * cheap. The document "status" is made at each read. The documents "claims", "history" and "events"
 * can be large. They are made in steps, and other calls are served between the steps. After a
 * client has read a document, the signal DocumentChanged is sent once when the document differs at
 * a later notice of a change. For the large documents each change counts as a difference. Main
 * thread only; blocks on the disk of the claim database. */

#include <systemd/sd-bus.h>

#include "agent/bus/bus.h"
#include "agent/bus/gate.h"

typedef enum BusDocument {
        BUS_STATUS,
        BUS_TREE,
        BUS_HOST,
        BUS_CLAIMS,
        BUS_HISTORY,
        BUS_EVENTS,
        BUS_PROBLEMS,
        BUS_PLAN,
        BUS_AUDIT,
        BUS_RESHAPE,
        _BUS_DOCUMENT_MAX,
} BusDocument;

/* The state of one document. */
typedef struct BusDocumentText {
        char *text;   /* the latest text; NULL: not made, or freed */
        bool is_old;  /* its sources have changed since */
        bool is_read; /* a client has this text, or its read failed, and it got no signal since */
        bool is_due;  /* a client had the text at a change: signal it if it differs */
        bool differs; /* the present text differs from the one that the client has */
} BusDocumentText;

/* All documents, and the versions of the sources that they were made from. */
typedef struct BusDocuments {
        const BusConfig *config; /* borrowed; its tracker can be replaced */
        BusGate *gate;           /* borrowed */
        BusDocumentText texts[_BUS_DOCUMENT_MAX];
        const BusJob *makers[_BUS_DOCUMENT_MAX]; /* job that makes the document now, or NULL */
        uint64_t n_changes[_BUS_DOCUMENT_MAX];   /* counter of changes of each document */
        /* Versions of the sources at the last comparison. */
        Snapshot *snapshot;
        uint64_t n_cycles, facts_sum;
        int64_t by_others, by_us; /* HostView */
        int64_t last_event;
        SyncState sync_state;
        /* For "status". */
        PendingWrites pending_writes;
        const char *pending_writes_error;
        bool is_counted; /* pending writes were counted since bus_documents_look() */
} BusDocuments;

/* Frees the texts and releases the snapshot. */
void bus_documents_done(BusDocuments *documents);

/* Returns true if the call is Describe() of a document that is made in steps. Rewinds the
 * message. */
bool bus_documents_is_long(sd_bus_message *call);

/* Notes that a document might have changed: its text is old, and its readers get a signal if it
 * differs. */
void bus_documents_note(BusDocuments *documents, BusDocument document);
/* Compares the state of the tracker with its last state, and notes the documents that might have
 * changed. "status" always counts as changed, and counts the pending writes again. */
void bus_documents_look(BusDocuments *documents);

/* Sends DocumentChanged for each document that is due and differs. Makes at most one document, to
 * compare it. Returns true if the caller must call again soon. */
bool bus_documents_signal(BusDocuments *documents, sd_bus *bus);

/* Handles Describe(). Returns the result of an sd-bus handler. BUS_ERROR_INVALID: there is no
 * document of that name. BUS_ERROR_NOT_READY: it cannot be made yet; the caller still counts as a
 * reader. BUS_ERROR_STORE, or another error of bus_claims_error(): claims cannot be read. */
int bus_documents_describe(BusDocuments *documents, sd_bus_message *call, sd_bus_error *error);
