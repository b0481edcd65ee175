/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Executes the steps of a plan: writes to sysfs, or runs a unit. Each write is one
 * of these, below SYS/bus/pci:
 *
 *   devices/CARD/sriov_numvfs                  the number of functions
 *   devices/FUNCTION/driver_override           the name of a driver
 *   devices/FUNCTION/driver/unbind             the address
 *   drivers_probe                              the address
 *   devices/FUNCTION/nvidia/current_vgpu_type  a type, or 0
 *
 * A write that fails ends its step. A crash or a failure between two writes leaves a state from
 * which the next plan continues: no functions, no driver, no type, or the old driver with another
 * driver_override. The result of the writes is read back. New functions that do not appear, or do
 * not get the files of their types, within SETTLE_USEC are no error: the next plan finds what is
 * there. Limit: another process can open the function between the check for open handles and the
 * write. The driver then refuses the change, and the write fails, or the driver waits until the
 * process closes the function.
 *
 * Tests: tests/unit/prepare/test-run.c */

#include "prepare/act.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "prepare/unit.h"

/* Longest time for new functions to appear and to get the files of their types. */
#define SETTLE_USEC (10 * USEC_PER_SEC)
#define POLL_USEC   UINT64_C(50000)

/* Writes a text and a newline with one call, which sysfs takes as one value. */
static int write_file(const char *path, const char *text)
{
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);
        _cleanup_free_ char *line = text_format("%s\n", text);
        ssize_t written;

        if (fd < 0)
                return -errno;
        if (!line)
                return -ENOMEM;
        written = write(fd, line, strlen(line));
        if (written < 0)
                return -errno;
        return (size_t)written == strlen(line) ? 0 : -EIO;
}

/* Writes a text to a file of a device, or with address "" of the bus. */
static int write_attribute(const PreparePaths *paths, const char *address, const char *name,
                           const char *text, Error *reterr)
{
        _cleanup_free_ char *path =
                address[0] ? text_format("%s/bus/pci/devices/%s/%s", paths->sys, address, name)
                           : text_format("%s/bus/pci/%s", paths->sys, name);
        int r;

        if (!path)
                return error_oom(reterr);
        r = write_file(path, text);
        return r < 0 ? error_setf(reterr, r, "Cannot write \"%s\" to %s: %s", text, path,
                                  strerror(-r))
                     : 0;
}

static int write_number(const PreparePaths *paths, const char *address, const char *name,
                        uint64_t value, Error *reterr)
{
        char text[32];

        snprintf(text, sizeof(text), "%" PRIu64, value);
        return write_attribute(paths, address, name, text, reterr);
}

/* Returns true if all new functions of the card exist and, if vGPU types are configured, have the
 * file of the type. Also returns true if memory is short, because then waiting is useless.
 * Functions that cannot be read have no type file. */
static bool is_settled(const PreparePaths *paths, const PrepareCard *card)
{
        HostPrepare options = *card->options;
        char *addresses[] = { (char *)card->address, NULL };
        const HostConfig config = { .prepares = &options, .n_prepares = 1 };
        _cleanup_(prepare_host_done) PrepareHost host = { 0 };

        options.device_addresses = addresses;
        if (prepare_read_host(paths, &config, &host, NULL) < 0)
                return true;
        if (host.cards[0].n_functions < options.virtual_functions)
                return false;
        for (size_t i = 0; options.vgpu_types && i < host.cards[0].n_functions; i++)
                if (!host.cards[0].functions[i].has_type)
                        return false;
        return true;
}

static void settle(const PreparePaths *paths, const PrepareCard *card)
{
        uint64_t until = clock_usec(CLOCK_MONOTONIC) + SETTLE_USEC;

        while (!is_settled(paths, card) && clock_usec(CLOCK_MONOTONIC) < until)
                usleep(POLL_USEC);
}

static int write_functions(const PreparePaths *paths, const PrepareCard *card, uint64_t wanted,
                           Error *reterr)
{
        uint64_t number = 0;
        int r = write_number(paths, card->address, PREPARE_NUMVFS, wanted, reterr);

        if (r < 0)
                return r;
        r = prepare_read_number(paths, card->address, PREPARE_NUMVFS, &number);
        if (r < 0 || number != wanted)
                return error_setf(reterr, r < 0 ? r : EIO,
                                  PREPARE_NUMVFS " is %" PRIu64 " after %" PRIu64 " was written",
                                  number, wanted);
        if (wanted > 0)
                settle(paths, card);
        return 1;
}

/* Runs the unit of the card. Waits for its end, without a time limit. */
static int run_unit(const PrepareCard *card, Error *reterr)
{
        _cleanup_free_ char *unit = NULL;
        PrepareUnitEnd end;
        pid_t pid;
        int r = prepare_unit_start(card->options->unit, card->address, &unit, &pid, reterr);

        if (r < 0)
                return r;
        while ((end = prepare_unit_look(unit, &pid, UINT64_MAX)) == PREPARE_UNIT_RUNNING)
                usleep(POLL_USEC);
        return end == PREPARE_UNIT_DONE
                       ? 1
                       : error_setf(reterr, EIO, "%s failed. Run \"systemctl status %s\"", unit,
                                    unit);
}

static int bind_driver(const PreparePaths *paths, const PrepareCard *card,
                       const PrepareFunction *function, Error *reterr)
{
        const char *wanted = card->options->driver_override;
        PrepareFunction now = { 0 };
        int r = write_attribute(paths, function->address, "driver_override", wanted, reterr);

        if (r == 0 && function->driver[0])
                r = write_attribute(paths, function->address, "driver/unbind", function->address,
                                    reterr);
        if (r == 0)
                r = write_attribute(paths, "", "drivers_probe", function->address, reterr);
        if (r < 0)
                return r;
        strcpy(now.address, function->address);
        r = prepare_read_function(paths, &now);
        if (r < 0)
                return error_oom(reterr);
        if (strcmp(now.driver, wanted) != 0)
                return error_setf(reterr, EIO, "The driver is %s after a bind to %s. Is %s loaded?",
                                  now.driver[0] ? now.driver : "not bound", wanted, wanted);
        return 1;
}

/* Changes the type of a function from "from" to "to"; 0 means no type. Returns 1 if it was changed,
 * or 0 without a write if the current type is not "from". */
static int change_type(const PreparePaths *paths, const PrepareFunction *function, uint64_t from,
                       uint64_t to, Error *reterr)
{
        uint64_t type = 0;
        int r = prepare_read_number(paths, function->address, PREPARE_TYPE, &type);

        if (r < 0)
                return error_setf(reterr, r, "Cannot read " PREPARE_TYPE ": %s", strerror(-r));
        if (type != from)
                return 0;
        r = write_number(paths, function->address, PREPARE_TYPE, to, NULL);
        if (r == -EINVAL && to != 0)
                return error_setf(reterr, r, "The card cannot create nvidia-%" PRIu64 " now", to);
        if (r < 0)
                return error_setf(reterr, r,
                                  "Cannot change nvidia-%" PRIu64 " to nvidia-%" PRIu64 ": %s",
                                  from, to, strerror(-r));
        r = prepare_read_number(paths, function->address, PREPARE_TYPE, &type);
        if (r < 0 || type != to)
                return error_setf(reterr, r < 0 ? r : EIO,
                                  "The type is nvidia-%" PRIu64 " after nvidia-%" PRIu64
                                  " was written",
                                  type, to);
        return 1;
}

/* Checks that the function, or each function of the card, was not in use at the last read. */
static bool is_free(const PrepareCard *card, size_t function)
{
        for (size_t i = 0; i < card->n_functions; i++)
                if ((function == PREPARE_OF_CARD || function == i) &&
                    card->functions[i].open != PREPARE_OPEN_NO)
                        return false;
        return true;
}

int prepare_act(const PreparePaths *paths, PrepareHost *host, const PrepareStep *step,
                Error *reterr)
{
        const PrepareCard *card = &host->cards[step->card];
        const PrepareFunction *function =
                step->function == PREPARE_OF_CARD ? NULL : &card->functions[step->function];
        int r;

        if (step->kind == PREPARE_UNIT)
                return run_unit(card, reterr);
        r = prepare_read_open(paths, host, reterr);
        if (r < 0 || !is_free(card, step->function))
                return r;
        switch (step->kind) {
        case PREPARE_FUNCTIONS:
                return write_functions(paths, card, step->value, reterr);
        case PREPARE_DRIVER:
                return bind_driver(paths, card, function, reterr);
        case PREPARE_CLEAR:
                return change_type(paths, function, step->value, 0, reterr);
        case PREPARE_SET:
                return change_type(paths, function, 0, step->value, reterr);
        default:
                return 0;
        }
}
