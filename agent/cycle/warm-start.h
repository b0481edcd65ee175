/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A warm start: the knowledge about Placement that an agent leaves for the next one when it ends,
 * in "placement.json" of state_dir. The file is written only at a clean end (tracker_save()), and a
 * start of the service with [placement] removes it when it has read it. So an agent that was killed
 * usually leaves none, and its successor reads everything. A file that the start could not read can
 * stay. A file that cannot be removed stays too, and that start does not use it.
 *
 * The report client compares the mirror in the file with Placement before it uses the mirror
 * (reporter_restore()). Main thread; blocks on the disk. */

#include <jansson.h>

#include "base/error.h"
#include "base/uuid.h"

/* Longest stop after which a start needs no audit. Nova evacuates a server only after nova-compute
 * was silent for service_down_time, which is 60 s by default. */
#define WARM_STOP_MAX_USEC (60 * USEC_PER_SEC)
/* Age of the last audit at which a start audits again. */
#define WARM_AUDIT_AGE_USEC (24 * 3600 * USEC_PER_SEC)
/* Limit for the content of the file in bytes. A larger content is not written. */
#define WARM_SIZE_MAX (8 * 1024 * 1024)

#define WARM_BOOT_ID_MAX 33

/* A time in both clocks, and the boot that CLOCK_BOOTTIME counts from. */
typedef struct WarmMoment {
        uint64_t real_usec, boot_usec;
        char boot_id[WARM_BOOT_ID_MAX]; /* "": unknown */
} WarmMoment;

typedef struct WarmStart {
        Uuid root; /* the root provider of the host */
        WarmMoment saved;
        uint64_t full_at_usec; /* CLOCK_REALTIME of the next full read of Placement */
        uint64_t audited_usec; /* CLOCK_REALTIME of the last audit, if it was clean (tracker.c); 0:
                                  it was not */
        uint64_t held_stamp;   /* ClaimComparison.held_stamp of the last process; 0: the allocations
                                  of the host must be read */
        json_t *reporter;      /* for reporter_restore(); owned */

        /* Members that are not in the file; see warm_start_take(). */
        uint64_t full_in_usec; /* time until the next full read of Placement; 0: it is due, or its
                                  time is not credible */
        bool is_audited;       /* this start needs no audit */
} WarmStart;

void warm_start_done(WarmStart *warm);

/* Writes the file. Writes nothing and returns 0 if the content is larger than WARM_SIZE_MAX.
 * Returns a negative errno with words on failure. */
int warm_start_write(const WarmStart *warm, const char *state_dir, Error *reterr);

/* Reads the file and removes it. Returns 1 with the content in *ret, which the caller frees with
 * warm_start_done(). Returns 0 if there is no file, or a negative errno with words; *ret is then
 * unchanged. -ESTALE: the file has another root provider; it is removed too. A damaged file is set
 * aside, which is a failure (state_file_load()).
 *
 * The content is judged at the moment now. full_in_usec is also 0 if the clock was set so that the
 * file cannot be dated: the file is from the future, or the read is more than one and a half days
 * away. is_audited has three conditions: the host did not boot since the end, the stop lasted at
 * most WARM_STOP_MAX_USEC, and the last audit was clean and is younger than WARM_AUDIT_AGE_USEC. It
 * does not depend on full_in_usec. */
int warm_start_take(const char *state_dir, const Uuid *root, const WarmMoment *now, WarmStart *ret,
                    Error *reterr);
