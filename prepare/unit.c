/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Starts the units that prepare cards, clean devices or switch partitions, and reads lines of their
 * last messages from the journal, by running systemctl, busctl and journalctl as child processes.
 * prepare_unit_start() rejects a unit whose successful start does not prove that it ran. It asks
 * before the start, because systemd forgets a unit that has succeeded. It does not wait for the
 * unit. Each read of an output ends at a time limit (COMMAND_USEC), which kills the command, and
 * the output is cut at OUTPUT_MAX. The exit code of a command whose output is read is ignored, so a
 * missing line proves nothing.
 *
 * Tests: tests/unit/prepare/test-clean.c tests/boot/test_clean.py */

#include "prepare/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"

#define COMMAND_USEC (10 * USEC_PER_SEC)
#define OUTPUT_MAX   ((size_t)64 << 10)
#define LINE_MAX     200

/* Reads from a pipe until its end, so that its writer can end. Drops what follows OUTPUT_MAX bytes.
 * Returns -ETIMEDOUT after COMMAND_USEC, -ENOMEM, or the error of read(). */
static int read_output(int fd, char **ret)
{
        uint64_t until = clock_usec(CLOCK_MONOTONIC) + COMMAND_USEC;
        _cleanup_free_ char *text = calloc(1, OUTPUT_MAX + 1);
        char dropped[4096];
        size_t n = 0;

        while (text) {
                bool keep = n < OUTPUT_MAX;
                struct pollfd descriptor = { .fd = fd, .events = POLLIN };
                uint64_t now = clock_usec(CLOCK_MONOTONIC);
                ssize_t length;

                if (now >= until ||
                    poll(&descriptor, 1, (int)((until - now) / USEC_PER_MSEC) + 1) == 0)
                        return -ETIMEDOUT;
                length = read(fd, keep ? text + n : dropped,
                              keep ? OUTPUT_MAX - n : sizeof(dropped));
                if (length < 0 && errno != EINTR && errno != EAGAIN)
                        return -errno;
                if (length == 0)
                        break;
                n += keep ? (size_t)MAX(length, 0) : 0;
        }
        *ret = TAKE_PTR(text);
        return *ret ? 0 : -ENOMEM;
}

static int start(char *const argv[], int output, pid_t *ret)
{
        pid_t pid = fork();

        if (pid < 0)
                return -errno;
        if (pid == 0) {
                if (output >= 0)
                        (void)dup2(output, STDOUT_FILENO);
                execvp(argv[0], argv);
                _exit(127);
        }
        *ret = pid;
        return 0;
}

/* Runs a command, waits for its end, and yields its standard output, owned by the caller. Kills it
 * if the read fails. The exit code is ignored. */
static int run(char *const argv[], char **ret)
{
        _cleanup_close_ int reader = -EBADF;
        int ends[2], r;
        pid_t pid;

        if (pipe2(ends, O_CLOEXEC) < 0)
                return -errno;
        reader = ends[0];
        /* A signal can end poll() without data, and read() must not block then. */
        (void)fcntl(reader, F_SETFL, O_NONBLOCK);
        r = start(argv, ends[1], &pid);
        close(ends[1]);
        if (r < 0)
                return r;
        r = read_output(reader, ret);
        if (r < 0)
                (void)kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                continue;
        return r;
}

/* Checks whether a text has this line. */
static bool has_line(const char *text, const char *line)
{
        size_t n = strlen(line);

        for (const char *place = text; (place = strstr(place, line)); place++)
                if ((place == text || place[-1] == '\n') && (!place[n] || place[n] == '\n'))
                        return true;
        return false;
}

/* Checks whether a line of a text begins with prefix. */
static bool has_prefix(const char *text, const char *prefix)
{
        for (const char *place = text; (place = strstr(place, prefix)); place++)
                if (place == text || place[-1] == '\n')
                        return true;
        return false;
}

/* Makes the path of a unit on D-Bus. systemd takes each byte as "_" and two hexadecimal digits. */
static char *make_object_path(const char *unit)
{
        _cleanup_free_ char *escaped = calloc(strlen(unit) + 1, 3);

        for (size_t i = 0; escaped && unit[i]; i++)
                sprintf(escaped + 3 * i, "_%02x", (unsigned char)unit[i]);
        return escaped ? text_format("/org/freedesktop/systemd1/unit/%s", escaped) : NULL;
}

static int refuse_condition(const char *unit, Error *reterr)
{
        return error_setf(reterr, EINVAL, "%s has a condition, so its success would prove nothing",
                          unit);
}

/* Rejects a unit with a condition, or whose conditions systemd does not tell. If a condition does
 * not hold, systemctl succeeds although the unit did not run. systemctl does not show this
 * property. */
static int check_conditions(const char *unit, Error *reterr)
{
        _cleanup_free_ char *path = make_object_path(unit), *text = NULL;
        char *argv[] = { (char *)"busctl",
                         (char *)"get-property",
                         (char *)"org.freedesktop.systemd1",
                         path,
                         (char *)"org.freedesktop.systemd1.Unit",
                         (char *)"Conditions",
                         NULL };
        int r = path ? run(argv, &text) : -ENOMEM;

        if (r < 0)
                return error_setf(reterr, r, "Cannot run busctl: %s", strerror(-r));
        if (has_line(text, "a(sbbsi) 0"))
                return 0;
        if (has_prefix(text, "a(sbbsi) "))
                return refuse_condition(unit, reterr);
        return error_setf(reterr, EINVAL, "Cannot read the conditions of %s with busctl", unit);
}

/* Rejects a unit whose successful start does not prove that it ran. */
static int check_unit(const char *unit, Error *reterr)
{
        char *argv[] = { (char *)"systemctl", (char *)"show",
                         (char *)"--property=LoadState,Type,RemainAfterExit,ExecCondition",
                         (char *)unit, NULL };
        _cleanup_free_ char *text = NULL;
        int r = run(argv, &text);

        if (r < 0)
                return error_setf(reterr, r, "Cannot run systemctl: %s", strerror(-r));
        if (!has_line(text, "LoadState=loaded"))
                return error_setf(reterr, EINVAL, "systemd has no unit %s", unit);
        if (!has_line(text, "Type=oneshot") || !has_line(text, "RemainAfterExit=no"))
                return error_setf(reterr, EINVAL,
                                  "%s must have Type=oneshot, and not RemainAfterExit=yes", unit);
        if (has_prefix(text, "ExecCondition="))
                return refuse_condition(unit, reterr);
        return check_conditions(unit, reterr);
}

/* Returns the name of the unit; NULL: memory ran out. */
static char *make_name(const char *template, const char *instance)
{
        const char *at = strchr(template, '@');

        return text_format("%.*s@%s.service", (int)(at - template), template, instance);
}

typedef enum UnitState {
        UNIT_ENDED,
        UNIT_RETRIES, /* it failed, and systemd starts it again after RestartSec= */
        UNIT_RUNS,    /* "activating", as a oneshot service is while it runs, or not known */
        UNIT_STOPS,   /* "deactivating": its processes were told to end, or ExecStopPost= runs */
} UnitState;

/* Asks systemd for the state of a unit. One that failed and waits for its Restart= is "activating",
 * too. */
static UnitState find_state(const char *unit)
{
        char *argv[] = { (char *)"systemctl", (char *)"show",
                         (char *)"--property=ActiveState,SubState", (char *)unit, NULL };
        _cleanup_free_ char *text = NULL;

        if (run(argv, &text) < 0 || !has_prefix(text, "ActiveState="))
                return UNIT_RUNS;
        if (has_line(text, "ActiveState=deactivating"))
                return UNIT_STOPS;
        if (!has_line(text, "ActiveState=activating"))
                return UNIT_ENDED;
        return has_prefix(text, "SubState=auto-restart") /* or auto-restart-queued */ ? UNIT_RETRIES
                                                                                      : UNIT_RUNS;
}

bool prepare_unit_runs(const char *template, const char *instance)
{
        _cleanup_free_ char *unit = make_name(template, instance);

        return !unit || find_state(unit) != UNIT_ENDED;
}

/* Returns true if the system is about to stop. Units then fail because they are stopped. False if
 * systemctl gives no answer. */
static bool system_stops(void)
{
        char *argv[] = { (char *)"systemctl", (char *)"is-system-running", NULL };
        _cleanup_free_ char *text = NULL;

        return run(argv, &text) == 0 && has_line(text, "stopping");
}

static int start_systemctl(const char *unit, pid_t *ret)
{
        char *argv[] = { (char *)"systemctl", (char *)"--no-ask-password", (char *)"start",
                         (char *)unit, NULL };

        return start(argv, -1, ret);
}

/* Makes a process that fails after a second, in place of a systemctl: a start of a unit that stops
 * would start it again. */
static int start_pause(pid_t *ret)
{
        char *argv[] = { (char *)"timeout", (char *)"1", (char *)"sleep", (char *)"60", NULL };

        return start(argv, -1, ret);
}

PrepareUnitEnd prepare_unit_look(const char *unit, pid_t *pid, uint64_t until_usec)
{
        bool late = clock_usec(CLOCK_MONOTONIC) >= until_usec;
        UnitState state;
        int status = 0;

        if (waitpid(*pid, &status, WNOHANG) != *pid) {
                if (!late)
                        return PREPARE_UNIT_RUNNING;
                (void)kill(*pid, SIGKILL);
                (void)waitpid(*pid, NULL, 0);
                *pid = 0;
                return PREPARE_UNIT_LATE;
        }
        *pid = 0;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
                return PREPARE_UNIT_DONE;
        if (system_stops())
                return PREPARE_UNIT_STOPPED;
        state = find_state(unit);
        if (state == UNIT_ENDED || state == UNIT_RETRIES)
                return PREPARE_UNIT_FAILED;
        if (late || (state == UNIT_STOPS ? start_pause(pid) : start_systemctl(unit, pid)) < 0)
                return PREPARE_UNIT_LATE;
        return PREPARE_UNIT_RUNNING;
}

int prepare_unit_start(const char *template, const char *instance, char **ret_unit, pid_t *ret,
                       Error *reterr)
{
        char *unit = make_name(template, instance);
        int r;

        *ret_unit = unit;
        if (!unit)
                return error_oom(reterr);
        r = check_unit(unit, reterr);
        if (r < 0)
                return r;
        r = start_systemctl(unit, ret);
        return r < 0 ? error_setf(reterr, r, "Cannot start systemctl: %s", strerror(-r)) : 0;
}

json_t *prepare_unit_lines(const char *unit)
{
        _cleanup_free_ char *number = text_format("--lines=%d", PREPARE_UNIT_LINES);
        char *argv[] = { (char *)"journalctl",   (char *)"--unit",     (char *)unit,      number,
                         (char *)"--output=cat", (char *)"--no-pager", (char *)"--quiet", NULL };
        _cleanup_json_ json_t *lines = json_array();
        _cleanup_free_ char *text = NULL;
        char *rest;

        if (!lines || !number)
                return NULL;
        if (run(argv, &text) < 0)
                return TAKE_PTR(lines);
        rest = text;
        /* A message can have several lines, and the last ones usually name the error. */
        for (char *line; (line = strsep(&rest, "\n"));) {
                if (!line[0])
                        continue;
                if (strlen(line) > LINE_MAX)
                        line[LINE_MAX] = '\0';
                text_sanitize(line, '?');
                if (json_array_append_new(lines, json_string(line)) < 0)
                        return NULL;
                if (json_array_size(lines) > PREPARE_UNIT_LINES)
                        (void)json_array_remove(lines, 0);
        }
        return TAKE_PTR(lines);
}
