/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The pager, as systemctl has it: long output on a terminal goes through $SYSTEMD_PAGER, $PAGER,
 * less or more. */

#include <sys/types.h>

#include "base/macros.h"

/* From here on, standard output goes to the pager, whose process is returned; 0 when it cannot be
 * had: the output is as good without. Call when everything was fetched, so that errors stay
 * readable. */
pid_t ctl_pager_open(void);

/* Ends the output and waits until the reader has quit. */
void ctl_pager_close(pid_t pager);
