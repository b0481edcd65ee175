/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The verbs about Placement's consumers of this host. */

#include "agent/ctl/verbs/verbs.h"

int ctl_verb_audit(Ctl *ctl, Error *reterr);
int ctl_verb_heal(Ctl *ctl, Error *reterr);
int ctl_verb_consumers(Ctl *ctl, Error *reterr);
