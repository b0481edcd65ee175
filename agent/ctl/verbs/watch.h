/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* "computectl watch": shows the agent until it is told to end. Asks only when the agent signals a
 * change, and every few seconds while it does not answer. On a terminal a page that is drawn anew,
 * else a line (with --json a status document) for each change. */

#include "agent/ctl/verbs/verbs.h"

int ctl_verb_watch(Ctl *ctl, Error *reterr);
