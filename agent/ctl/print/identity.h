/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The document of agent/helper/identity-work.h for people: who this host is for Placement. Pure. */

#include "agent/ctl/print/style.h"
#include "base/json.h"

/* What "computectl identity show", "adopt" and "rename" print. -ENOMEM. */
int ctl_identity_print(const json_t *document, const char *word, const CtlStyle *style,
                       FILE *output);

/* The sentence, and what to do. -ENOMEM. */
int ctl_identity_print_check(const json_t *document, const CtlStyle *style, FILE *output);

/* EXIT_SUCCESS when the order was carried out, or (check) all is well. */
int ctl_identity_exit(const json_t *document, const char *word);
