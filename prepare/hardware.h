/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads the listed cards from sysfs, and the processes that have a function open from /proc.
 * Changes nothing. A read blocks as long as the drivers of the cards do. */

#include "base/error.h"
#include "prepare/plan.h"

#define PREPARE_NUMVFS "sriov_numvfs"             /* the number of functions of a card */
#define PREPARE_TYPE   "nvidia/current_vgpu_type" /* the type of a function; 0: none */

/* The roots of the files, which tests replace, and the patience of a run. */
typedef struct PreparePaths {
        const char *sys, *proc, *run; /* "/sys", "/proc", "/run" */
        uint64_t patience_usec;       /* longest wait for cards without a driver */
} PreparePaths;

/* Reads the cards of all sections [device_prepare NAME], but not the open handles. A number, or a
 * folder vfio-dev, that cannot be read is noted as "unreadable" in its card or function; a missing
 * number of SR-IOV is 0; a link that cannot be read counts as missing. ret must be zeroed. Returns
 * -ENOMEM with words on failure; ret must be freed then too. */
int prepare_read_host(const PreparePaths *paths, const HostConfig *config, PrepareHost *ret,
                      Error *reterr);

/* Reads a function that has only its address: type, driver, IOMMU group and VFIO device. A type, or
 * a folder vfio-dev, that cannot be read is an error of the function ("unreadable"). If the read of
 * the type fails with -ENOENT or -ENODEV, the driver has no types, which is no error. Returns
 * -ENOMEM. */
int prepare_read_function(const PreparePaths *paths, PrepareFunction *function);

/* Reads a device for the rules of the configuration: its ids and the address of its physical
 * function. ret must be zeroed. An id that cannot be read is 0. Returns -ENOENT if the device does
 * not exist or an address is malformed, or -ENOMEM. */
int prepare_read_device(const PreparePaths *paths, const char *address, SnapshotDevice *ret);

/* Sets "open" of each function. A descriptor counts by the number of its device, not by its name.
 * If a named one cannot be checked, its functions are PREPARE_OPEN_UNKNOWN. If the descriptors of a
 * process, /proc itself or the mediated or vDPA devices cannot be read, a function that is not seen
 * in use is PREPARE_OPEN_UNKNOWN. So is an unreadable function that is not seen in use. Returns
 * -ENOMEM with words on failure. */
int prepare_read_open(const PreparePaths *paths, PrepareHost *host, Error *reterr);

/* Reads a file of a device that begins with a decimal number up to UINT32_MAX, and then ends or has
 * white space. Returns -EBADMSG for another content, or another negative errno: -ENOENT for
 * PREPARE_NUMVFS of a card without SR-IOV, and for PREPARE_TYPE of a function whose driver has no
 * types. */
int prepare_read_number(const PreparePaths *paths, const char *address, const char *name,
                        uint64_t *ret);
