/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What everybody may read as one text: made when it is first read after a change, and copied from
 * then on. So how often it is read costs no more than the copies.
 *
 * Main thread only. */

#include <systemd/sd-bus.h>

#include "agent/bus/bus.h"

typedef enum BusDocument {
        BUS_DOCUMENT_TREE,
        BUS_DOCUMENT_PLAN,
        BUS_DOCUMENT_HOST,
        _BUS_DOCUMENT_MAX,
} BusDocument;

typedef struct BusDocuments {
        const BusConfig *config; /* borrowed: its tracker may be another one later */
        char *texts[_BUS_DOCUMENT_MAX];
        Snapshot *snapshot; /* that they were made of */
        uint64_t n_cycles;
} BusDocuments;

void bus_documents_done(BusDocuments *documents);

/* Tracker, claims or cordons changed. */
void bus_documents_forget(BusDocuments *documents);

/* Answers with it. */
int bus_documents_reply(BusDocuments *documents, BusDocument document, sd_bus_message *call,
                        sd_bus_error *error);
