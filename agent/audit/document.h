/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Makes the document of an audit in steps, because it describes each consumer of the host. Pure. */

#include "agent/audit/audit.h"

typedef struct AuditDocument AuditDocument;

/* Begins the document. Everything is borrowed and must not change until audit_document_free().
 * Returns -ENOMEM on failure. */
int audit_document_new(AuditDocument **ret, const AuditInput *input, const Audit *audit);
AuditDocument *audit_document_free(AuditDocument *document);
DEFINE_CLEANUP(AuditDocument *, audit_document_free);

/* Describes at most n findings or consumers. Returns 1 if a part is left, or -ENOMEM. Returns 0 if
 * the document is complete, with its text in the form AUDIT_FORMAT (formats/format-names.h) in
 * *ret. The caller frees it; NULL: memory is short. No step follows. */
int audit_document_step(AuditDocument *document, size_t n, char **ret);
