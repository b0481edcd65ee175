/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Who may call what: root and the daemon's own user everything; all others what polkit allows them.
 *
 * polkit is asked over D-Bus and without waiting: the caller may be asked for a password meanwhile.
 * Where there is no polkit, nobody else is allowed anything. Main thread only. */

#include <systemd/sd-bus.h>

/* Actions of systemd/org.computeagent.policy. */
#define POLKIT_ACTION_CLAIM   "org.computeagent.claim"
#define POLKIT_ACTION_MANAGE  "org.computeagent.manage"
#define POLKIT_ACTION_RESHAPE "org.computeagent.reshape"

/* To be returned by the handler of a method: calls handler with the call, at once or when polkit
 * has allowed it, or answers with AccessDenied. userdata is borrowed until the bus is closed. */
int polkit_guard(sd_bus_message *call, const char *action, sd_bus_message_handler_t handler,
                 void *userdata, sd_bus_error *error);
