/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The question before a verb that changes Placement for running guests or for the whole host:
 * retire, heal and reshape. Only a person at a terminal is asked (decision operation/consent). */

#include "base/error.h"
#include "ctl/verbs/options.h"

/* Checks whether a verb must ask: standard input is a terminal, and neither --yes nor --dry-run is
 * given. */
bool ctl_consent_is_needed(const CtlOptions *options, bool on_terminal);

/* Checks whether an answer is "y" or "yes", in letters of either case. Everything else, also an
 * empty line and NULL (the end of the input), means no. */
bool ctl_consent_is_given(const char *answer);

/* Writes "question [y/N] " to the controlling terminal, or to standard error if there is none, and
 * waits for a line of standard input. Returns 0 if the answer is yes. -ECANCELED with words if it
 * is not. */
int ctl_consent_ask(const char *question, Error *reterr);
