/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The driver of hosts with libvirt. Only its virt thread calls the hypervisor; see
 * drivers/libvirt/driver.c. */

#include "drivers/poll-thread.h"

extern const DriverOps libvirt_driver_ops;
