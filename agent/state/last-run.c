/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads and writes last-run.json. The file has the version and the boot id of the process that
 * wrote it, and whether this process has ended cleanly. A process writes it twice: at its start as
 * not ended, and at its clean end. So a process that is killed between them leaves a file that says
 * so, unless its first write failed. */

#include "agent/state/last-run.h"

#include <errno.h>
#include <string.h>
#include <systemd/sd-id128.h>

#include "agent/state/state-file.h"
#include "base/json.h"
#include "base/macros.h"
#include "base/text.h"

#define LAST_RUN_FORMAT "compute-agent-last-run/1"

/* Returns the id of this boot; "" if it is unknown. */
static const char *get_boot_id(char text[static SD_ID128_STRING_MAX])
{
        sd_id128_t boot;

        text[0] = '\0';
        return sd_id128_get_boot(&boot) < 0 ? text : sd_id128_to_string(boot, text);
}

static int write_run(const char *path, bool ended, Error *reterr)
{
        char boot_id[SD_ID128_STRING_MAX];
        _cleanup_json_ json_t *file =
                json_pack("{ss ss ss sb}", "format", LAST_RUN_FORMAT, "version", PACKAGE_VERSION,
                          "boot_id", get_boot_id(boot_id), "ended", ended);

        return file ? state_file_write(path, file, reterr) : error_oom(reterr);
}

/* Compares the last run with this one. userdata: the StartReason. */
static int judge_file(const json_t *json, void *userdata, Error *reterr)
{
        char this_boot[SD_ID128_STRING_MAX];
        const char *version, *boot_id;
        StartReason *reason = userdata;
        bool ended, booted;
        int r;

        if ((r = json_read_string(json, "version", &version, reterr)) < 0 ||
            (r = json_read_string(json, "boot_id", &boot_id, reterr)) < 0 ||
            (r = json_read_bool(json, "ended", &ended, reterr)) < 0)
                return r;
        booted = strcmp(boot_id, get_boot_id(this_boot)) != 0;
        if (!ended)
                *reason = booted ? START_CRASH_REBOOT : START_CRASH;
        else if (strcmp(version, PACKAGE_VERSION) != 0)
                *reason = START_UPGRADE;
        else
                *reason = booted ? START_REBOOT : START_CLEAN;
        return 0;
}

int last_run_begin(const char *state_dir, bool is_new, StartReason *ret, Error *reterr)
{
        _cleanup_free_ char *path = text_format("%s/last-run.json", state_dir);
        int r, written;

        *ret = START_UNKNOWN;
        if (!path)
                return error_oom(reterr);
        r = state_file_load(path, LAST_RUN_FORMAT, false, judge_file, ret, reterr);
        if (r == 0 && is_new)
                *ret = START_FIRST;
        written = write_run(path, false, r < 0 ? NULL : reterr);
        return MIN(r, written);
}

int last_run_end(const char *state_dir, Error *reterr)
{
        _cleanup_free_ char *path = text_format("%s/last-run.json", state_dir);

        return path ? write_run(path, true, reterr) : error_oom(reterr);
}
