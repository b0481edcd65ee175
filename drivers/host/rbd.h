/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads the capacity of a Ceph cluster, which is DISK_GB with images_type = rbd. As in Nova's
 * driver it is total_bytes of "ceph df --format=json". The program "ceph" runs as a child,
 * because the agent is not linked with librados. */

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Time that one run of ceph can take. */
#define RBD_TIMEOUT_USEC UINT64_C(8000000)
/* Time for which an answer is used again. */
#define RBD_KEEP_USEC UINT64_C(20000000)
/* Largest output of ceph, in bytes. */
#define RBD_OUTPUT_MAX (1024 * 1024)
/* Start of each error text. */
#define RBD_WHAT "[libvirt] images_type = rbd"

/* A pool, and the latest answer of its cluster. The texts are borrowed. */
typedef struct RbdPool {
        const char *pool; /* [libvirt] images_rbd_pool */
        const char *conf; /* images_rbd_ceph_conf; "": ceph's default */
        const char *user; /* rbd_user; "": ceph's default */

        /* CLOCK_MONOTONIC before the program started. 0: no answer yet. */
        uint64_t read_usec;
        /* answer: size of the cluster, or the error */
        uint64_t bytes;
        Error error;
} RbdPool;

/* Returns the latest answer, also an error, while it is younger than RBD_KEEP_USEC; otherwise
 * runs "ceph df" again. The answer is kept because each event of libvirt starts a poll, and each
 * run of ceph uses about half a second of CPU time.
 *
 * Blocks until ceph ends. After RBD_TIMEOUT_USEC it kills the process group, and then waits without
 * a limit for the end of the child. Do not call it on the main thread. After an error *ret_bytes is
 * untouched. Error texts, except that of -ENOMEM, begin with RBD_WHAT: -ENOPKG (ceph is not
 * installed), -ETIMEDOUT (no answer, or no monitor accepted the connection), -EBADMSG, -ENODEV (no
 * such pool), -EIO (ceph failed or could not be run, or its output is longer than RBD_OUTPUT_MAX),
 * -ENOMEM. */
int rbd_read(RbdPool *pool, uint64_t now_usec, uint64_t *ret_bytes, Error *reterr);
