/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The parts that all verbs of computectl need: reaching the agent of this host or of --host, and
 * printing as the options ask. */

#include "ctl/ask/unit.h"
#include "ctl/verbs/verbs.h"
#include "formats/format-names.h"
#include "formats/interface.h"

/* Opens the bus that the options name, unless it is open. One connection serves a whole run, and is
 * closed before a pager starts. CTL_NOT_RUNNING: there is no bus. */
int ctl_connect(Ctl *ctl, Error *reterr);

/* Reads the unit of the agent from systemd. Negative errno: there is no bus or no systemd on it. */
int ctl_read_unit(Ctl *ctl, CtlUnit *ret);

/* Connects and reads a document, as ctl_bus_describe(). */
int ctl_fetch(Ctl *ctl, const char *document, const char *format, json_t **ret, Error *reterr);

/* Connects and calls a method without arguments, as ctl_bus_call(). */
int ctl_call(Ctl *ctl, const char *method, uint64_t timeout_usec, char **ret, Error *reterr);

/* The same; the text is a document of that format. */
int ctl_call_document(Ctl *ctl, const char *method, uint64_t timeout_usec, const char *format,
                      json_t **ret, Error *reterr);

/* Makes a status document, also of an agent that does not run. */
int ctl_fetch_status(Ctl *ctl, json_t **ret, Error *reterr);

bool ctl_wants_json(Ctl *ctl);
void ctl_print_json(Ctl *ctl, const json_t *document);

/* As JSON, or as that formatter has it. */
typedef void (*CtlPrint)(const json_t *document, CtlPage *page);
void ctl_print_document(Ctl *ctl, const json_t *document, CtlPrint print);

/* Prints the result of a verb: as JSON (taken; NULL: memory ran out), or in words unless --quiet is
 * given. */
void ctl_print_done(Ctl *ctl, json_t *document, const char *format, ...) _printf_(3, 4);

/* Checks whether a verb that changes much must ask first: standard input is a terminal, and neither
 * --yes nor --dry-run is given. */
bool ctl_must_ask(const Ctl *ctl);

/* Shows what would be done, unless the output is JSON or quiet, and asks. document: NULL if there
 * is nothing to show. Returns 0 if the answer is yes, else -ECANCELED with words. Blocks until the
 * person answers. */
int ctl_ask(Ctl *ctl, const json_t *document, CtlPrint print, const char *question, Error *reterr);

/* Notes on standard error that a spelling of an earlier release is still accepted. */
void ctl_note_old_spelling(const Ctl *ctl, const char *old, const char *now);

/* Sends the output to the pager from here on, if there is to be one. Call when everything was
 * fetched, so that errors stay readable. */
void ctl_open_pager(Ctl *ctl);

/* Ends the output and waits until the reader has quit. */
void ctl_close_pager(Ctl *ctl);
