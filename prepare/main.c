/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The program compute-agent-prepare makes the cards of [device_prepare NAME] ready for guests, and
 * then the partitions of [device_shapes NAME] that living claims want. It runs as root before
 * libvirtd and the agent start, after changes of claims, and when a card gets its driver. It and
 * the units that it starts are the only parts of this project that write to /sys. The agent can
 * only request another look, or another try of units that failed, each by a stamp. The steps follow
 * from the configuration, the claim database, the hardware and the record of this program. With
 * --clean it cleans devices instead. With --dry-run it only prints the next steps; --clean excludes
 * --dry-run.
 *
 * Exit codes: 0 if everything is as wanted or waits for a later run, 1 if a card, partition or
 * device is not, and for errors without a code of their own, 2 for wrong usage. With --dry-run, 0
 * also if something is not as wanted. 75 if the run gave up before its end (PREPARE_UNTOUCHED), for
 * example because the claims cannot be read or another run does not end. 78 if the configuration is
 * invalid, or if the file of --config does not exist.
 *
 * Tests: tests/integration/agent/test_prepare.py tests/boot/test_prepare.py */

#include <errno.h>
#include <getopt.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "base/log.h"
#include "config/value.h"
#include "prepare/clean.h"
#include "prepare/run.h"

#define EXIT_USAGE_ERROR  2
#define EXIT_UNTOUCHED    75 /* sysexits(3) */
#define EXIT_CONFIG_ERROR 78

#define DRIVER_WAIT_USEC (30 * USEC_PER_SEC) /* unless --wait is given */
#define WAIT_MAX_SEC     3600

typedef struct Options {
        const char *config_file;
        PreparePaths paths;
        bool dry_run, clean;
} Options;

static void print_help(void)
{
        puts("compute-agent-prepare [OPTIONS…]\n"
             "\n"
             "Makes virtual functions, drivers and vGPU types of the cards in [device_prepare NAME].\n"
             "\n"
             "  -c, --config FILE  Read FILE and FILE.d/*.conf instead of /etc/compute-agent/compute-agent.conf\n"
             "      --clean        Clean devices after their guests ([device_clean NAME]) instead\n"
             "      --dry-run      Print the next steps and change nothing\n"
             "      --sys DIR      Use DIR instead of /sys\n"
             "      --proc DIR     Use DIR instead of /proc\n"
             "      --run DIR      Use DIR instead of /run\n"
             "      --wait SEC     Wait up to SEC seconds for cards without a driver (default: 30)\n"
             "      --version      Show the version\n"
             "  -h, --help         Show this help\n"
             "\n"
             "The services compute-agent-prepare.service and compute-agent-clean.service run it.");
}

static int parse_seconds(const char *text, uint64_t *ret_usec)
{
        int64_t seconds;

        if (config_value_i64(text, &seconds) < 0 || seconds < 0 || seconds > WAIT_MAX_SEC)
                return -EINVAL;
        *ret_usec = (uint64_t)seconds * USEC_PER_SEC;
        return 0;
}

/* Parses the command line. Returns 1: continue; 0: everything is done; below 0: wrong usage. */
static int parse_options(int argc, char *argv[], Options *options)
{
        enum { ARG_VERSION = 0x100, ARG_DRY_RUN, ARG_CLEAN, ARG_SYS, ARG_PROC, ARG_RUN, ARG_WAIT };
        static const struct option long_options[] = {
                { "config", required_argument, NULL, 'c' },
                { "dry-run", no_argument, NULL, ARG_DRY_RUN },
                { "clean", no_argument, NULL, ARG_CLEAN },
                { "sys", required_argument, NULL, ARG_SYS },
                { "proc", required_argument, NULL, ARG_PROC },
                { "run", required_argument, NULL, ARG_RUN },
                { "wait", required_argument, NULL, ARG_WAIT },
                { "version", no_argument, NULL, ARG_VERSION },
                { "help", no_argument, NULL, 'h' },
                { 0 },
        };
        int c;

        while ((c = getopt_long(argc, argv, "c:h", long_options, NULL)) >= 0)
                switch (c) {
                case 'c':
                        options->config_file = optarg;
                        break;
                case ARG_DRY_RUN:
                        options->dry_run = true;
                        break;
                case ARG_CLEAN:
                        options->clean = true;
                        break;
                case ARG_SYS:
                        options->paths.sys = optarg;
                        break;
                case ARG_PROC:
                        options->paths.proc = optarg;
                        break;
                case ARG_RUN:
                        options->paths.run = optarg;
                        break;
                case ARG_WAIT:
                        if (parse_seconds(optarg, &options->paths.patience_usec) < 0) {
                                fprintf(stderr,
                                        "compute-agent-prepare: --wait: 0 to %d, not "
                                        "\"%s\"\n",
                                        WAIT_MAX_SEC, optarg);
                                return -EINVAL;
                        }
                        break;
                case ARG_VERSION:
                        puts("compute-agent " PACKAGE_VERSION);
                        return 0;
                case 'h':
                        print_help();
                        return 0;
                default:
                        return -EINVAL;
                }
        if (options->clean && options->dry_run) {
                fputs("compute-agent-prepare: --clean has no --dry-run\n", stderr);
                return -EINVAL;
        }
        if (optind < argc) {
                fprintf(stderr, "compute-agent-prepare: unexpected argument \"%s\"\n",
                        argv[optind]);
                return -EINVAL;
        }
        return 1;
}

/* Returns the exit code. */
static int run(const Options *options)
{
        _cleanup_(config_freep) Config *config = NULL;
        Error error = ERROR_NULL;
        int r = config_load_offline(&config, options->config_file, &error);

        if (r < 0) {
                log_error("The configuration cannot be used: %s", error_text(&error, r));
                return r == -EINVAL || r == -ENOENT ? EXIT_CONFIG_ERROR : EXIT_FAILURE;
        }
        log_set_level(config->log_level);
        r = options->clean ? prepare_clean_run(options->config_file, &options->paths, &error)
                           : prepare_run(config, &options->paths, options->dry_run, &error);
        if (r < 0) {
                log_error("compute-agent-prepare failed: %s", error_text(&error, r));
                return EXIT_FAILURE;
        }
        return r == PREPARE_DONE     ? EXIT_SUCCESS
               : r == PREPARE_FAILED ? EXIT_FAILURE
                                     : EXIT_UNTOUCHED;
}

int main(int argc, char *argv[])
{
        Options options = { .paths = { .sys = "/sys",
                                       .proc = "/proc",
                                       .run = "/run",
                                       .patience_usec = DRIVER_WAIT_USEC } };
        int r = parse_options(argc, argv, &options);

        if (r <= 0)
                return r < 0 ? EXIT_USAGE_ERROR : EXIT_SUCCESS;
        (void)prctl(PR_SET_DUMPABLE, 0);
        umask(0022);
        return run(&options);
}
