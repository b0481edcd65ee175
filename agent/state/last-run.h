/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The reason of this start, by the file "last-run.json" of state_dir. A process writes its version
 * and boot into this file when it starts, and notes its clean end there. Blocks on the disk. */

#include <stdbool.h>

#include "base/error.h"

/* The reasons, which are all that the file is evidence of. */
typedef enum StartReason {
        START_UNKNOWN,      /* the file cannot be used, or an identity exists without it */
        START_FIRST,        /* there is no file, and this start created the host's identity */
        START_CLEAN,        /* the last process ended cleanly, in the same boot and version */
        START_UPGRADE,      /* it ended cleanly and had another version, in any boot */
        START_REBOOT,       /* it ended cleanly before the host booted, in the same version */
        START_CRASH,        /* it did not end cleanly, in the same boot */
        START_CRASH_REBOOT, /* it did not end cleanly before the host booted */
        _START_REASON_MAX,
} StartReason;

/* Reads the file of the last process, and writes that of this one. is_new: the identity of the host
 * was created by this start. *ret is set also after a failure. Returns a negative errno with
 * words. */
int last_run_begin(const char *state_dir, bool is_new, StartReason *ret, Error *reterr);

/* Notes the clean end of this process. Returns a negative errno with words. */
int last_run_end(const char *state_dir, Error *reterr);
