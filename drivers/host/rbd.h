/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The capacity of a Ceph cluster, as Nova's driver takes it for DISK_GB with images_type = rbd:
 * total_bytes of "ceph df --format=json". The program "ceph" runs as a child, because the agent is
 * not linked with librados. */

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define RBD_TIMEOUT_USEC UINT64_C(8000000)
#define RBD_OUTPUT_MAX   (1024 * 1024)
#define RBD_WHAT         "[libvirt] images_type = rbd"

/* [libvirt] images_rbd_pool, images_rbd_ceph_conf and rbd_user. Borrowed. */
typedef struct RbdPool {
        const char *pool;
        const char *conf; /* "": the one that ceph finds */
        const char *user; /* "": the one that ceph takes */
} RbdPool;

/* Runs "ceph df" and waits for its end, at most RBD_TIMEOUT_USEC; then it is killed. Blocks for
 * that long, on a thread of its own. Errors begin with RBD_WHAT: -ENOPKG (ceph is not installed),
 * -ETIMEDOUT, -EIO (ceph failed: its own words), those of rbd_parse(), -ENOMEM. */
int rbd_read_capacity(const RbdPool *pool, uint64_t *ret_bytes, Error *reterr);

/* Reads the output of "ceph df --format=json". Pure. -EBADMSG if it is not that, -ENODEV if the
 * cluster has no such pool. */
int rbd_parse(const char *text, size_t n, const char *pool, uint64_t *ret_bytes, Error *reterr);
