/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The driver of a host that is written down in a JSON file (the one that "computectl discover
 * --json" prints): for trials, tests and scale. The file is read anew at each poll. It sees no
 * changes between polls. */

#include "drivers/poll-thread.h"

extern const DriverOps static_driver_ops;
