/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads and writes last-run.json. The file has the version and the boot id of the process that
 * wrote it, and whether this process has ended cleanly. A process writes it twice: at its start as
 * not ended, and at its clean end. So a process that is killed between them leaves a file that says
 * so, unless its first write failed. The comparison with the present version and boot is pure. */

#include "agent/state/last-run.h"

#include <errno.h>
#include <string.h>
#include <systemd/sd-id128.h>

#include "agent/state/state-file.h"
#include "base/json.h"
#include "base/macros.h"
#include "base/text.h"

#define LAST_RUN_FORMAT "compute-agent-last-run/1"

const char *start_reason_to_text(StartReason reason)
{
        static const char *const texts[_START_REASON_MAX] = {
                [START_UNKNOWN] = "unknown",
                [START_FIRST] = "first",
                [START_CLEAN] = "clean",
                [START_UPGRADE] = "upgrade",
                [START_REBOOT] = "reboot",
                [START_CRASH] = "crash",
                [START_CRASH_REBOOT] = "crash-reboot",
        };

        return texts[reason];
}

StartReason last_run_judge(const LastRun *last, bool is_new, const char *version,
                           const char *boot_id)
{
        bool booted;

        if (!last)
                return is_new ? START_FIRST : START_UNKNOWN;
        booted = strcmp(last->boot_id, boot_id) != 0;
        if (!last->ended)
                return booted ? START_CRASH_REBOOT : START_CRASH;
        if (strcmp(last->version, version) != 0)
                return START_UPGRADE;
        return booted ? START_REBOOT : START_CLEAN;
}

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

/* The last run as it was read, and what is compared with it. */
typedef struct Judgement {
        bool is_new;
        StartReason reason;
} Judgement;

static int judge_file(const json_t *json, void *userdata, Error *reterr)
{
        char boot_id[SD_ID128_STRING_MAX];
        Judgement *judgement = userdata;
        LastRun last;
        int r;

        if ((r = json_read_string(json, "version", &last.version, reterr)) < 0 ||
            (r = json_read_string(json, "boot_id", &last.boot_id, reterr)) < 0 ||
            (r = json_read_bool(json, "ended", &last.ended, reterr)) < 0)
                return r;
        judgement->reason =
                last_run_judge(&last, judgement->is_new, PACKAGE_VERSION, get_boot_id(boot_id));
        return 0;
}

int last_run_begin(const char *state_dir, bool is_new, StartReason *ret, Error *reterr)
{
        _cleanup_free_ char *path = text_format("%s/last-run.json", state_dir);
        Judgement judgement = { .is_new = is_new };
        int r, written;

        *ret = START_UNKNOWN;
        if (!path)
                return error_oom(reterr);
        r = state_file_load(path, LAST_RUN_FORMAT, false, judge_file, &judgement, reterr);
        *ret = r == 0 ? last_run_judge(NULL, is_new, "", "") : judgement.reason;
        written = write_run(path, false, r < 0 ? NULL : reterr);
        return MIN(r, written);
}

int last_run_end(const char *state_dir, Error *reterr)
{
        _cleanup_free_ char *path = text_format("%s/last-run.json", state_dir);

        return path ? write_run(path, true, reterr) : error_oom(reterr);
}
