/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The pager, as systemctl has it: long output on a terminal goes through $SYSTEMD_PAGER, $PAGER,
 * less or more. */

#include <sys/types.h>

#include "base/macros.h"

typedef struct CtlPager {
        pid_t pid; /* 0: none runs */
} CtlPager;

/* From here on, standard output goes to the pager. Does nothing when it cannot be had: the output
 * is as good without. Call when everything was fetched, so that errors stay readable. */
void ctl_pager_open(CtlPager *pager);

/* Ends the output and waits until the reader has quit. True when there was a pager. */
bool ctl_pager_close(CtlPager *pager);
