/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Who may not do something by himself may be asked for a password, on the terminal, as systemctl
 * does it: polkit finds pkttyagent(1), which runs as long as this is open. */

#include <systemd/sd-bus.h>

#include <sys/types.h>

#include "base/macros.h"

/* Whether somebody could be asked: not root, and a terminal on standard input. */
bool ctl_authorization_may_ask(void);

/* Calls on that bus wait while somebody is asked, and for longer than a call does else. */
void ctl_authorization_allow(sd_bus *bus);

/* Starts pkttyagent and waits until polkit knows it. Returns its process, or 0: it is not
 * installed, or nobody can be asked. Then polkit answers as it does without. */
pid_t ctl_authorization_start(void);

/* Ends it. 0 is allowed. */
void ctl_authorization_stop(pid_t pid);
