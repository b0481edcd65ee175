/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The program compute-agentd: prepares the process, and then runs the daemon (agent/daemon.h).
 * First it disables core dumps, unless their limit is above 0, and limits malloc to one arena. Then
 * it parses the command line. If root runs --once or --dry-run without --config, it checks that the
 * service can read the configuration. It only warns if the user of the service is not found. It
 * loads the configuration, which has secrets, and applies --direct. Finally, if it runs as root, it
 * continues as the owner of the state directory, unless root owns it or it does not exist. Exit
 * codes before the daemon runs: 0 after --help and --version, 2 for wrong usage, and 1 for other
 * failures. If the configuration is not readable for the service, or cannot be loaded, the code is
 * 78 (EX_CONFIG).
 *
 * Tests: tests/integration/agent/test_agent.py tests/integration/agent/test_root_at_hand.py */

#include <errno.h>
#include <getopt.h>
#include <malloc.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "agent/daemon.h"
#include "base/folder-owner.h"
#include "base/log.h"
#include "base/message-ids.h"
#include "base/secret.h"
#include "base/text.h"
#include "config/config.h"
#include "config/service-access.h"

#define EXIT_USAGE_ERROR  2
#define EXIT_CONFIG_ERROR 78 /* sysexits(3): the unit does not restart on it */

/* Texts are borrowed from argv. */
typedef struct Options {
        const char *config_file;
        const char *direct;
        DaemonMode mode;
} Options;

static void print_help(void)
{
        puts("compute-agentd [OPTIONS…]\n"
             "\n"
             "Tracks the resources of this hypervisor and publishes them to OpenStack Placement.\n"
             "\n"
             "  -c, --config FILE  Read FILE and FILE.d/*.conf instead of /etc/compute-agent/compute-agent.conf\n"
             "      --once         Run one cycle and exit, with 0 only if everything was published\n"
             "      --dry-run      Run one cycle and print the requests to Placement instead of sending them\n"
             "      --direct SOCKET\n"
             "                     With --once or --dry-run, use Placement on this Unix socket, without Keystone\n"
             "      --version      Show the version\n"
             "  -h, --help         Show this help\n"
             "\n"
             "Manage the service with systemctl (compute-agent.service), and query it with computectl.");
}

/* Parses the command line. Returns 1: continue; 0: everything is done; below 0: wrong usage. */
static int parse_options(int argc, char *argv[], Options *options)
{
        enum { ARG_VERSION = 0x100, ARG_ONCE, ARG_DRY_RUN, ARG_DIRECT };
        static const struct option long_options[] = {
                { "config", required_argument, NULL, 'c' },
                { "once", no_argument, NULL, ARG_ONCE },
                { "dry-run", no_argument, NULL, ARG_DRY_RUN },
                { "direct", required_argument, NULL, ARG_DIRECT },
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
                case ARG_ONCE:
                        if (options->mode == DAEMON_SERVE)
                                options->mode = DAEMON_ONCE;
                        break;
                case ARG_DRY_RUN:
                        options->mode = DAEMON_DRY_RUN;
                        break;
                case ARG_DIRECT:
                        options->direct = optarg;
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
        if (optind < argc) {
                fprintf(stderr, "compute-agentd: unexpected argument \"%s\"\n", argv[optind]);
                return -EINVAL;
        }
        if (options->direct && options->mode == DAEMON_SERVE) {
                fputs("compute-agentd: --direct needs --once or --dry-run\n", stderr);
                return -EINVAL;
        }
        return 1;
}

static void on_config_warning(const char *text, void *userdata)
{
        log_warning("%s", text);
}

/* Replaces endpoint, token and auth_type of [placement] by those of a Placement behind a Unix
 * socket that accepts the token "admin", and sets has_placement. The other options stay. A reload
 * would not repeat this, so a service cannot have it. Returns -ENOMEM on failure; then nothing is
 * changed. */
static int use_direct(Config *config, const char *socket)
{
        char *endpoint = text_format("unix://%s", socket), *token = secret_copy("admin");

        if (!endpoint || !token) {
                free(endpoint);
                secret_free(token);
                return -ENOMEM;
        }
        free(config->placement_endpoint);
        secret_free(config->placement_token);
        config->placement_endpoint = endpoint;
        config->placement_token = token;
        config->has_placement = true;
        config->reporter.auth.kind = REPORTER_AUTH_ADMIN_TOKEN;
        config_lend_strings(config);
        return 0;
}

/* Continues as the owner of the state directory, if the program runs as root
 * (folder_owner_become()). The secrets were read before with the configuration. */
static int leave_root(const Config *config, Error *reterr)
{
        int r = folder_owner_become(config->state_dir, reterr);

        if (r > 0)
                log_info("Continuing as user %u, the owner of %s.", geteuid(), config->state_dir);
        return r;
}

/* Checks that the service can read its configuration, if root runs --once or --dry-run. A file that
 * --config names does not belong to the service and is not checked. If the user of the service
 * cannot be found, only warns. */
static int check_access(const Options *options, Error *reterr)
{
        _cleanup_(service_rights_done) ServiceRights rights = { 0 };
        Error error = ERROR_NULL;

        if (options->mode == DAEMON_SERVE || options->config_file || geteuid() != 0)
                return 0;
        if (service_rights_find(&rights, SERVICE_USER, NULL, &error) < 0) {
                log_warning("%s.", error.text);
                return 0;
        }
        return service_access_check_config(&rights, NULL, reterr);
}

/* Checks the access to the configuration, loads it, and logs its warnings. */
static int load(Config **ret, const Options *options, Error *reterr)
{
        int r = check_access(options, reterr);

        return r < 0 ? r : config_load(ret, options->config_file, on_config_warning, NULL, reterr);
}

/* Disables core dumps, unless the operator raised their limit above 0. Dumps contain secrets,
 * because the libraries for TLS, HTTP/2, JSON and configuration files do not erase their buffers.
 * PR_SET_DUMPABLE also prevents a dump to a program, to which a limit of 0 does not apply. */
static void avoid_cores(void)
{
        struct rlimit limit;

        if (getrlimit(RLIMIT_CORE, &limit) < 0 || limit.rlim_cur == 0)
                (void)prctl(PR_SET_DUMPABLE, 0);
}

int main(int argc, char *argv[])
{
        _cleanup_(config_freep) Config *config = NULL;
        Options options = { 0 };
        Error error = ERROR_NULL;
        int r;

        avoid_cores();
        /* One arena: otherwise each thread keeps the memory of its largest poll. */
        mallopt(M_ARENA_MAX, 1);
        r = parse_options(argc, argv, &options);
        if (r < 0) {
                fputs("Try \"compute-agentd --help\".\n", stderr);
                return EXIT_USAGE_ERROR;
        }
        if (r == 0)
                return EXIT_SUCCESS;
        r = load(&config, &options, &error);
        if (r < 0) {
                log_event(LOG_ERR, MESSAGE_CONFIG_INVALID, NULL, "%s", error_text(&error, r));
                daemon_notify_failed(error_text(&error, r));
                return EXIT_CONFIG_ERROR;
        }
        if (options.direct && use_direct(config, options.direct) < 0) {
                log_error("Out of memory.");
                return EXIT_FAILURE;
        }
        log_set_level(config->log_level);
        if (config->n_ignored > 0)
                log_debug("Ignored %zu options of Nova that this agent does not use.",
                          config->n_ignored);
        r = leave_root(config, &error);
        if (r < 0) {
                log_error("%s", error_text(&error, r));
                daemon_notify_failed(error_text(&error, r));
                return EXIT_FAILURE;
        }
        return daemon_run(TAKE_PTR(config), options.config_file, options.mode);
}
