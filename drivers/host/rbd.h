/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The capacity of a Ceph cluster, as Nova's driver takes it for DISK_GB with images_type = rbd:
 * total_bytes of "ceph df --format=json". The program "ceph" runs as a child, because the agent is
 * not linked with librados. */

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define RBD_TIMEOUT_USEC UINT64_C(8000000)
#define RBD_KEEP_USEC    UINT64_C(20000000)
#define RBD_OUTPUT_MAX   (1024 * 1024)
#define RBD_WHAT         "[libvirt] images_type = rbd"

/* A pool, and the latest answer of its cluster. */
typedef struct RbdPool {
        const char *pool; /* [libvirt] images_rbd_pool */
        const char *conf; /* images_rbd_ceph_conf; "": the one that ceph finds */
        const char *user; /* rbd_user; "": the one that ceph takes */

        uint64_t read_usec; /* CLOCK_MONOTONIC, before the program was started; 0: there is no
                               answer */
        uint64_t bytes;
        Error error;
} RbdPool;

/* Returns the latest answer while it is younger than RBD_KEEP_USEC, an error too; else runs "ceph
 * df" again. Polls can follow each other closely (each event of libvirt leads to one), and each run
 * of ceph costs about half a second of CPU.
 *
 * Waits for the end of ceph, at most RBD_TIMEOUT_USEC; then its process group is killed. Call it on
 * a thread of its own. Errors begin with RBD_WHAT: -ENOPKG (ceph is not installed), -ETIMEDOUT (no
 * answer, or no monitor accepted the connection), -EBADMSG, -ENODEV (no such pool), -EIO, -ENOMEM.
 */
int rbd_read(RbdPool *pool, uint64_t now_usec, uint64_t *ret_bytes, Error *reterr);
