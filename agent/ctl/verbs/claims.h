/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The verbs of computectl about claims, for the table in agent/ctl/verbs/verbs.c. */

#include "agent/ctl/verbs/verbs.h"

int ctl_verb_claim(Ctl *ctl, Error *reterr);
int ctl_verb_claims(Ctl *ctl, Error *reterr);
int ctl_verb_confirm(Ctl *ctl, Error *reterr);
int ctl_verb_explain(Ctl *ctl, Error *reterr);
int ctl_verb_history(Ctl *ctl, Error *reterr);
int ctl_verb_move(Ctl *ctl, Error *reterr);
int ctl_verb_release(Ctl *ctl, Error *reterr);
int ctl_verb_show(Ctl *ctl, Error *reterr);
int ctl_verb_who(Ctl *ctl, Error *reterr);

int ctl_check_claim(const CtlOptions *options, Error *reterr);
int ctl_check_explain(const CtlOptions *options, Error *reterr);
int ctl_check_history(const CtlOptions *options, Error *reterr);
int ctl_check_id(const CtlOptions *options, Error *reterr);
int ctl_check_ids(const CtlOptions *options, Error *reterr);
