/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The driver of hosts that libvirt manages. All calls are made on its virt thread; see
 * drivers/libvirt/driver.c for the protocol. */

#include "drivers/poll-thread.h"

extern const DriverOps libvirt_driver_ops;
