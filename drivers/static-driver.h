/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The driver of a host that a JSON file describes, for trials, tests and benchmarks. The file
 * has the form that "computectl discover --json" prints. Each poll reads the file again. Changes
 * between polls are not reported. */

#include "drivers/poll-thread.h"

extern const DriverOps static_driver_ops;
