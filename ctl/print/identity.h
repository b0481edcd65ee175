/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The document of agent/helper/main.c for people: who this host is for Placement. Pure. */

#include "base/json.h"
#include "ctl/print/page.h"

/* What "computectl identity show", "adopt" and "rename" print. */
void ctl_identity_print(const json_t *document, const char *word, CtlPage *page);

/* The sentence, and what to do. */
void ctl_identity_print_check(const json_t *document, CtlPage *page);

/* EXIT_SUCCESS when the order was carried out, or (check) all is well. */
int ctl_identity_exit(const json_t *document, const char *word);
