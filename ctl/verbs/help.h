/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The help of computectl, from the tables of verbs and options. */

#include "ctl/verbs/verbs.h"

/* Prints the usage of a verb, and its options. verb NULL: prints all verbs by their purpose, and
 * the options of every verb. */
void ctl_help_print(const CtlVerb *verb, CtlPage *page);
