/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Knows libvirt's error codes, for all other files. Each function except libvirt_leave_out() uses
 * the last error of the calling thread. */

#include <libvirt/libvirt.h>

#include "drivers/host/snapshot.h"

/* Translates the error into an errno and a text: the failed action (what), libvirt's message,
 * and advice if there is any. Returns the negative errno. */
int libvirt_error(Error *reterr, const char *what);

/* Returns whether the domain or device does not exist any more, which is normal between a
 * listing and a read. */
bool libvirt_error_is_gone(void);

/* Returns whether the call failed without a reason from libvirt. This happens when a device
 * leaves /sys while libvirt reads it. */
bool libvirt_error_is_unexplained(void);

/* Handles the failure of a part of a poll: r and its text. Returns 0 and adds a problem to the
 * snapshot, or returns r with the text in reterr if the poll must end. That is the case when the
 * connection broke or memory is short. Returns -ENOMEM if the problem cannot be added. Call it
 * after libvirt's last error was used, because it replaces that error. */
int libvirt_leave_out(virConnectPtr connection, Snapshot *snapshot, int r, const Error *error,
                      Error *reterr);

/* Returns whether the hypervisor, or this version of libvirt, lacks the function. */
bool libvirt_error_is_unsupported(void);
