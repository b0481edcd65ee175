/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* "computectl identity": who this host is for Placement. Works with the service stopped; adopt
 * needs it so. */

#include "agent/ctl/verbs/verbs.h"

int ctl_check_identity(const CtlOptions *options, Error *reterr);
int ctl_verb_identity(Ctl *ctl, Error *reterr);
