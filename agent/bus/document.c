/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/bus/document.h"

#include <stdlib.h>
#include <string.h>

void bus_document_done(BusDocumentText *document)
{
        free(document->text);
        *document = (BusDocumentText){ 0 };
}

void bus_document_note(BusDocumentText *document)
{
        document->is_old = true;
        document->is_due = document->is_due || document->is_read;
        document->is_read = false;
}

void bus_document_give_up(BusDocumentText *document)
{
        bus_document_note(document);
        bus_document_set(document, NULL);
        document->differs = document->is_due;
}

bool bus_document_is_missing(const BusDocumentText *document)
{
        return document->is_old || !document->text;
}

bool bus_document_is_asked(const BusDocumentText *document)
{
        return document->is_due && document->is_old && !document->differs;
}

void bus_document_set(BusDocumentText *document, char *text)
{
        bool same =
                text && document->text ? strcmp(text, document->text) == 0 : text == document->text;

        if (document->is_due && !same)
                document->differs = true;
        free(document->text);
        document->text = text;
        document->is_old = false;
}

void bus_document_read(BusDocumentText *document)
{
        document->is_read = true;
}

bool bus_document_signal(BusDocumentText *document)
{
        bool due = document->is_due && document->differs;

        /* Who was to be signalled has the right one all the same. */
        if (document->is_due && !due)
                document->is_read = true;
        document->is_due = document->differs = false;
        return due;
}
