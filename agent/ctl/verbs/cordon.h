/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The verbs that take the host or a device out of use. */

#include "agent/ctl/verbs/verbs.h"

#define CTL_DRAIN_SOMEBODY 3 /* exit code: somebody is there */

int ctl_check_cordon(const CtlOptions *options, Error *reterr);
int ctl_verb_cordon(Ctl *ctl, Error *reterr);
int ctl_verb_uncordon(Ctl *ctl, Error *reterr);
int ctl_verb_drain(Ctl *ctl, Error *reterr);
int ctl_verb_retire(Ctl *ctl, Error *reterr);
int ctl_check_retire(const CtlOptions *options, Error *reterr);
