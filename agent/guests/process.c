/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Identifies a guest without a hypervisor, and checks whether it is alive. A process is identified
 * by its number, its start time and the boot; a unit by its control group. Both are read from the
 * kernel's files at each call. A guest has ended only if the kernel proves it. After an error that
 * proves nothing it counts as alive, because a claim that ends too early loses its devices. A
 * process whose boot could not be identified counts as alive for ever. */

#include "agent/guests/process.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-id128.h>
#include <unistd.h>

#define UNIT           "unit "
#define PROCESS_FORMAT "process %" PRIu64 ", started at %" PRIu64 " of boot "
/* PROCESS_FORMAT and the boot, for sscanf(). */
#define PROCESS_SCAN "process %" SCNu64 ", started at %" SCNu64 " of boot %32s"
/* 16 fields between the state and the number of threads in /proc/PID/stat. */
#define FIELDS_BETWEEN " %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s"

/* Reads the start time of a process, in clock ticks since the boot. Returns a negative errno if it
 * does not run or cannot be read. proc_pid_stat(5): state, num_threads and starttime come after a
 * name that can have any characters. The state is that of the main thread. A main thread that has
 * ended stays as a zombie while other threads run, and counts in num_threads. They have the devices
 * of the guest until they end. */
static int read_process(uint64_t pid, uint64_t *ret_ticks)
{
        _cleanup_fclose_ FILE *file = NULL;
        char path[64], line[4096];
        const char *name_end;
        uint64_t n_threads;
        char state;

        snprintf(path, sizeof(path), "/proc/%" PRIu64 "/stat", pid);
        file = fopen(path, "re");
        if (!file)
                return -errno;
        errno = EIO;
        if (!fgets(line, sizeof(line), file))
                return -errno; /* ESRCH: the process ended just now */
        name_end = strrchr(line, ')');
        if (!name_end || sscanf(name_end + 1, " %c" FIELDS_BETWEEN " %" SCNu64 " %*s %" SCNu64,
                                &state, &n_threads, ret_ticks) != 3)
                return -EBADMSG;
        return (state == 'Z' && n_threads <= 1) || state == 'X' ? -ESRCH : 0;
}

static void get_boot(char ret[static SD_ID128_STRING_MAX])
{
        sd_id128_t boot;

        ret[0] = '\0';
        if (sd_id128_get_boot(&boot) >= 0)
                sd_id128_to_string(boot, ret);
}

/* Returns true if a process has this number, even if /proc hides it. */
static bool is_there(uint64_t pid)
{
        return kill((pid_t)pid, 0) == 0 || errno == EPERM;
}

int process_identify(uint64_t pid, char *ret, Error *reterr)
{
        char boot[SD_ID128_STRING_MAX];
        uint64_t ticks;
        int r = pid > 0 && pid <= INT32_MAX ? read_process(pid, &ticks) : -ESRCH;

        if (r == -ENOENT && is_there(pid))
                return error_setf(
                        reterr, ESRCH,
                        "Process %" PRIu64
                        " is hidden from the service by ProtectProc= of its unit or hidepid= of /proc",
                        pid);
        if (r == -ENOENT || r == -ESRCH)
                return error_setf(reterr, ESRCH, "Process %" PRIu64 " does not run", pid);
        if (r < 0)
                return error_setf(reterr, ESRCH, "Cannot read process %" PRIu64 ": %s", pid,
                                  strerror(-r));
        get_boot(boot);
        snprintf(ret, CLAIM_PROCESS_SIZE, PROCESS_FORMAT "%s", pid, ticks, boot);
        return 0;
}

/* Returns the folder of cgroup v2, alone or beside v1, or NULL. */
static const char *find_groups(void)
{
        static const char *const roots[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
        char path[64];

        for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
                snprintf(path, sizeof(path), "%s/cgroup.controllers", roots[i]);
                if (access(path, F_OK) == 0)
                        return roots[i];
        }
        return NULL;
}

/* Returns 1 if the control group or one below it has a process, 0 if not, or a negative errno.
 * -ENOENT, -ENODEV: there is no such group. -EOPNOTSUPP: this host has no cgroup v2. */
static int read_group(const char *group)
{
        _cleanup_fclose_ FILE *file = NULL;
        const char *root = find_groups();
        char line[64 + CLAIM_PROCESS_SIZE];

        if (!root)
                return -EOPNOTSUPP;
        snprintf(line, sizeof(line), "%s%.*s/cgroup.events", root, CLAIM_PROCESS_SIZE, group);
        file = fopen(line, "re");
        if (!file)
                return -errno;
        errno = 0;
        while (fgets(line, sizeof(line), file))
                if (strncmp(line, "populated ", strlen("populated ")) == 0)
                        return line[strlen("populated ")] != '0';
        return errno ? -errno : -EBADMSG;
}

int process_identify_unit(const char *group, char *ret, Error *reterr)
{
        int r;

        if (group[0] != '/' || strstr(group, "/..") ||
            strlen(UNIT) + strlen(group) >= CLAIM_PROCESS_SIZE)
                return error_setf(reterr, EINVAL, "\"%.60s\" is not the control group of a unit",
                                  group);
        r = read_group(group);
        if (r == -EOPNOTSUPP)
                return error_setf(
                        reterr, ESRCH,
                        "This host has no cgroup v2, so the state of a unit is unknown. Name the guest's process with --pid-file");
        if (r < 0 && r != -ENOENT && r != -ENODEV)
                return error_setf(reterr, ESRCH, "Cannot read unit %.200s: %s", group,
                                  strerror(-r));
        if (r <= 0)
                return error_setf(reterr, ESRCH, "No process of unit %.200s runs", group);
        snprintf(ret, CLAIM_PROCESS_SIZE, UNIT "%s", group);
        return 0;
}

/* Returns false if the process ended: another boot, another start time, no process, or a zombie
 * without other threads. A text that cannot be parsed counts as alive. */
static bool pid_is_alive(const char *process)
{
        char boot[SD_ID128_STRING_MAX], boot_now[SD_ID128_STRING_MAX];
        uint64_t pid, ticks, ticks_now;
        int r;

        if (sscanf(process, PROCESS_SCAN, &pid, &ticks, boot) != 3)
                return true;
        get_boot(boot_now);
        if (strcmp(boot, boot_now) != 0)
                return boot_now[0] == '\0';
        r = read_process(pid, &ticks_now);
        if (r == 0)
                return ticks_now == ticks;
        return r != -ESRCH && (r != -ENOENT || is_there(pid));
}

bool process_is_alive(const char *process)
{
        int r;

        if (strncmp(process, UNIT, strlen(UNIT)) != 0)
                return pid_is_alive(process);
        r = read_group(process + strlen(UNIT));
        return r != 0 && r != -ENOENT && r != -ENODEV;
}
