/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The interface org.freedesktop.LogControl1, with which "systemctl service-log-level compute-agent
 * debug" works. The level is the one of base/log.h, until the next reload of the configuration. */

#include "agent/bus/dispatch.h"

#define BUS_LOG_PATH "/org/freedesktop/LogControl1"

/* Adds the object to the bus, for as long as the bus lives. */
int bus_log_add(BusDispatch *dispatch, sd_bus *bus);
