/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Parts that all verbs of computectl need: the connection to the agent of this host or of --host,
 * printing according to the options, the pager and questions. */

#include "ctl/ask/unit.h"
#include "ctl/verbs/verbs.h"
#include "formats/format-names.h"
#include "formats/interface.h"

/* Opens the bus that the options name, unless it is open. One connection serves a run until
 * ctl_open_pager() closes it. CTL_NOT_RUNNING: there is no bus. */
int ctl_connect(Ctl *ctl, Error *reterr);

/* Reads the unit of the agent from systemd, on the host of --host if given. Returns a negative
 * errno of the connection or of ctl_unit_read(). */
int ctl_read_unit(Ctl *ctl, CtlUnit *ret);

/* Connects and reads a document; see ctl_bus_describe(). */
int ctl_fetch(Ctl *ctl, const char *document, const char *format, json_t **ret, Error *reterr);

/* Connects and calls a method without arguments; see ctl_bus_call(). */
int ctl_call(Ctl *ctl, const char *method, uint64_t timeout_usec, char **ret, Error *reterr);

/* Connects, calls a method without arguments, and parses its text as a document of that format. */
int ctl_call_document(Ctl *ctl, const char *method, uint64_t timeout_usec, const char *format,
                      json_t **ret, Error *reterr);

/* Makes the status document. An agent that does not run has one too, with the reason. */
int ctl_fetch_status(Ctl *ctl, json_t **ret, Error *reterr);

/* Prints a document as JSON, or with that formatter. */
void ctl_print_document(Ctl *ctl, const json_t *document,
                        void (*print)(const json_t *document, CtlPage *page));

/* Prints the result of a verb: as JSON, or in words unless --quiet is given. The lines of the words
 * are escaped. Takes ownership of document; NULL: memory ran out, which fails the run with JSON. */
void ctl_print_done(Ctl *ctl, json_t *document, const char *format, ...) _printf_(3, 4);

/* Checks whether a verb with large effects must ask first: standard input is a terminal, and
 * neither --yes nor --dry-run is given. */
bool ctl_must_ask(const Ctl *ctl);

/* Shows the changes, unless the output is JSON or quiet, and asks. document: NULL if there is
 * nothing to show. Returns 0 if the answer is yes, else -ECANCELED with words, also at the end of
 * the input. Blocks until the person answers. */
int ctl_ask(Ctl *ctl, const json_t *document, void (*print)(const json_t *document, CtlPage *page),
            const char *question, Error *reterr);

/* Prints the error of a verb on standard error, and adds the host's name to it if one was given. An
 * operator who asks ten hosts in a loop needs the name of the one that failed. */
void ctl_print_error(const Ctl *ctl, Error *error, int r);

/* Prints on standard error that a spelling of an earlier release is still accepted, unless --quiet
 * is given. */
void ctl_note_old_spelling(const Ctl *ctl, const char *old, const char *now);

/* Redirects the output to the pager, if one is wanted. The caller must have fetched everything, so
 * that errors stay readable. Closes the bus, even if no pager starts. */
void ctl_open_pager(Ctl *ctl);
