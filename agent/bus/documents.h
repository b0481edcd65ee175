/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The documents of Describe(), which every user can read. Each is made when it is first read after
 * a change, and copied from then on, so frequent reads cost only the copies. Those of claims, which
 * can be very many, are made in steps, with other calls in between. Main thread only. */

#include "agent/bus/gate.h"
#include "agent/bus/status.h"

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

/* What is known of one document. */
typedef struct BusDocumentText {
        char *text;   /* as it was made last; NULL: not made, or given up */
        bool is_old;  /* something changed since */
        bool is_read; /* a client has it, and got no signal since */
        bool is_due;  /* a client had it when something changed: to be signalled, if it differs */
        bool differs; /* it does, from the text of that client */
} BusDocumentText;

typedef struct BusDocuments {
        BusFacts *facts; /* borrowed: its tracker may be another one later */
        BusGate *gate;   /* borrowed */
        BusDocumentText texts[_BUS_DOCUMENT_MAX];
        const BusJob *makers[_BUS_DOCUMENT_MAX]; /* who makes a long one now */
        uint64_t n_changes[_BUS_DOCUMENT_MAX];   /* of a long one */
        /* that they were made of, or may have been */
        Snapshot *snapshot;
        uint64_t n_cycles, facts_sum;
        int64_t by_others, by_us; /* HostView */
        int64_t last_event;
        SyncState sync_state;
} BusDocuments;

void bus_documents_done(BusDocuments *documents);

/* True for Describe() of a document that is made in steps: the gate asks. */
bool bus_documents_is_long(sd_bus_message *call);

/* Notes that a document can have changed. bus_documents_look() finds out which of those of the
 * tracker have. */
void bus_documents_note(BusDocuments *documents, BusDocument document);
void bus_documents_look(BusDocuments *documents);

/* Sends DocumentChanged where it is due, and makes at most one document for it. True: more is left
 * to do, soon. */
bool bus_documents_signal(BusDocuments *documents, sd_bus *bus);

/* Handles Describe(). */
int bus_documents_describe(BusDocuments *documents, sd_bus_message *call, sd_bus_error *error);
