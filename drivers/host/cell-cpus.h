/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The NUMA cells of CPUs that are offline.
 *
 * Linux takes an offline CPU out of its node's cpulist, and removes its topology. libvirt lists the
 * CPUs that were online when libvirtd first read them. The links cpuN below nodeM in sysfs stay, so
 * they tell the cell. The siblings and the socket of such a CPU are unknown: it is a core of its
 * own, of no socket. */

#include "drivers/host/snapshot.h"

/* Adds to the cells the present CPUs that no cell lists, as the links below
 * SYS/devices/system/node have them. A cell is left as it is if its node lacks a link to one of
 * its own CPUs: the hypervisor is on another machine, or numbers its cells in another way.
 * Reads sysfs; call it before the snapshot is sealed, and after present_cpus is set. -ENOMEM. */
int cell_cpus_complete(const char *sys, Snapshot *snapshot);
