/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What is known of one document: the text that was made last, and whether those who read it are to
 * hear of another one. Pure.
 *
 * Whoever reads a document gets one signal with the first change after that, and none until
 * somebody reads it again: so a client reads, waits, and reads when signalled; and what nobody
 * reads costs nothing. Who heard that there is none yet has read it, too. */

#include <stdbool.h>

typedef struct BusDocumentText {
        char *text;   /* as it was made last; NULL: not made, or given up */
        bool is_old;  /* something changed since */
        bool is_read; /* somebody has it, and got no signal since */
        bool is_due;  /* somebody had it when something changed: to be signalled, if it differs */
        bool differs; /* it does, from what that one has */
} BusDocumentText;

void bus_document_done(BusDocumentText *document);

/* Something changed that may change it. */
void bus_document_note(BusDocumentText *document);

/* It is another one for certain: the text is given up. */
void bus_document_give_up(BusDocumentText *document);

/* Has it to be made before it is read? */
bool bus_document_is_missing(const BusDocumentText *document);

/* Has it to be made before bus_document_signal()? */
bool bus_document_is_asked(const BusDocumentText *document);

/* It was made; takes text. NULL: it cannot be. */
void bus_document_set(BusDocumentText *document, char *text);

/* Its text is given to somebody; without one, that there is none. */
void bus_document_read(BusDocumentText *document);

/* Is there a signal to be sent? Once. */
bool bus_document_signal(BusDocumentText *document);
