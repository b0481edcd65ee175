/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the verbs of computectl share: reaching the agent of this host or of --host, and printing
 * as the options ask. */

#include "ctl/ask/unit.h"
#include "ctl/verbs/verbs.h"
#include "drivers/host/snapshot.h"
#include "formats/format-names.h"
#include "formats/interface.h"

/* For a verb that can do nothing without the agent: nobody there is a failure like others. */
int ctl_need_answer(int r);

/* Opens the bus that the options name, unless it is open; ctl_need_answer() is applied. One
 * connection serves a whole run, and is closed before a pager starts. */
int ctl_connect(Ctl *ctl, Error *reterr);

/* Reads the unit of the agent from systemd. Negative errno: there is no bus or no systemd on it. */
int ctl_read_unit(Ctl *ctl, CtlUnit *ret);

/* ctl_bus_describe(). CTL_BUS_E_NOT_RUNNING as it came. */
int ctl_fetch(Ctl *ctl, const char *document, const char *format, json_t **ret, Error *reterr);

/* The same of an agent that has to be there: ctl_need_answer() is applied. */
int ctl_need(Ctl *ctl, const char *document, const char *format, json_t **ret, Error *reterr);

/* ctl_bus_get_text(), of an agent that has to be there. */
int ctl_need_text(Ctl *ctl, const char *method, uint64_t timeout_usec, char **ret, Error *reterr);

/* The same; the text is a document of that format. */
int ctl_need_result(Ctl *ctl, const char *method, uint64_t timeout_usec, const char *format,
                    json_t **ret, Error *reterr);

/* Makes a status document, also of an agent that does not run. */
int ctl_fetch_status(Ctl *ctl, json_t **ret, Error *reterr);

/* The host as the service sees it, or as a poll does when it does not run. *ret stays NULL when
 * neither works; reterr has the words. */
void ctl_fetch_snapshot(Ctl *ctl, Snapshot **ret, Error *reterr);

/* The cloud of clouds.yaml that --os-cloud or $OS_CLOUD names; NULL: none. */
const char *ctl_get_cloud(Ctl *ctl);

bool ctl_wants_json(Ctl *ctl);
void ctl_print_json(Ctl *ctl, const json_t *document);

/* As JSON, or as that formatter has it. */
typedef void (*CtlPrint)(const json_t *document, CtlPage *page);
void ctl_print_document(Ctl *ctl, const json_t *document, CtlPrint print);

/* What a verb did: as JSON (taken; NULL: memory ran out), or in words, unless it is to be quiet. */
void ctl_print_done(Ctl *ctl, json_t *document, const char *format, ...) _printf_(3, 4);

/* Checks whether a verb that changes much must ask first (ctl_consent_is_needed()). */
bool ctl_must_ask(const Ctl *ctl);

/* Shows what would be done, unless the output is JSON or quiet, and asks. document: NULL if there
 * is nothing to show. Returns 0 if the answer is yes, else -ECANCELED with words. Blocks until the
 * person answers. */
int ctl_ask(Ctl *ctl, const json_t *document, CtlPrint print, const char *question, Error *reterr);

/* Notes on standard error that a spelling of an earlier release is still accepted. */
void ctl_note_old_spelling(const Ctl *ctl, const char *old, const char *now);

/* From here on the output goes to the pager, if there is to be one. */
void ctl_open_pager(Ctl *ctl);
