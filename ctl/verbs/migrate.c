/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* "computectl migrate-inventory": does the inventory work of a start of the service while the
 * service does not run, and ends. It serves upgrades with all services down (specification 4,
 * "Offline Upgrade Script").
 *
 * With a folder for --direct, it starts a Placement of its own: uwsgi with one process on a Unix
 * socket in a private folder, with the configuration of the folder for --direct and without
 * Keystone. This Placement ends with this program, also if that is killed. The private folder then
 * stays.
 *
 * A node is a configuration file, which names the host, the identity of its root provider and its
 * state folder. For each node the program runs one cycle of compute-agentd (--once). A node whose
 * cycle fails does not stop the next ones, but a process that cannot be made, or a socket that its
 * owner cannot get, does. The words are those of the first failure.
 *
 * Tests: tests/integration/reshape/test_reshape.py */

#include "ctl/verbs/verbs.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/folder-owner.h"
#include "config/config.h"
#include "ctl/ask/children.h"
#include "ctl/ask/local-server.h"
#include "ctl/print/status.h"
#include "ctl/verbs/common.h"

#define AGENT            "compute-agentd"
#define SERVER           "uwsgi"
#define SOCKET_NAME      "placement.sock"
#define POLICY_NAME      "policy.yaml"
#define START_LIMIT_USEC (60 * USEC_PER_SEC) /* until the private Placement answers */

/* Exit codes. */
typedef enum Outcome {
        MIGRATE_DONE = 0,      /* also if there was nothing to do */
        MIGRATE_FAILED = 1,    /* a part was not done; the reason is on standard error */
        MIGRATE_RUNNING = 3,   /* an agent of this host is on the bus */
        MIGRATE_PLACEMENT = 4, /* the private Placement did not start or answer */
} Outcome;

/* The Placement of this run. */
typedef struct Private {
        char folder[PATH_MAX];                       /* "": none was made */
        char socket[PATH_MAX + sizeof(SOCKET_NAME)]; /* in the folder */
        char policy[PATH_MAX + sizeof(POLICY_NAME)];
        pid_t pid; /* 0: does not run */
} Private;

static void private_done(Private *private)
{
        if (private->pid > 0) {
                (void)kill(private->pid, SIGKILL);
                while (waitpid(private->pid, NULL, 0) < 0 && errno == EINTR)
                        ;
        }
        if (private->folder[0]) {
                (void)unlink(private->socket);
                (void)unlink(private->policy);
                (void)rmdir(private->folder);
        }
}

/* Starts a program with additions to its environment. The child ends with this program, also if
 * that is killed. */
static pid_t start(const char *const argv[], const char *const environment[][2])
{
        pid_t parent = getpid(), pid = fork();

        if (pid != 0)
                return pid;
        for (size_t i = 0; environment && environment[i][0]; i++)
                if (setenv(environment[i][0], environment[i][1], 1) < 0)
                        _exit(127);
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent) {
                (void)execvp(argv[0], (char *const *)argv);
                fprintf(stderr, "computectl: %s: %s\n", argv[0], strerror(errno));
        }
        _exit(127);
}

/* Waits until the server answers. Returns 0, or MIGRATE_PLACEMENT with words. */
static int wait_for_server(Private *private, Error *reterr)
{
        int r = local_server_wait(private->socket, private->pid, START_LIMIT_USEC);

        if (r == 0)
                return 0;
        if (r == -ECHILD)
        private->pid = 0;
        error_setf(reterr, EIO, "The private Placement %s. See the output of " SERVER,
                   r == -ECHILD         ? "did not start"
                   : r == -ENAMETOOLONG ? "has a socket with a too long path. Set a shorter TMPDIR"
                                        : "has not answered for a minute");
        return MIGRATE_PLACEMENT;
}

/* Writes a policy that allows a reshape. Without tokens no request has the role service, which
 * newer releases of Placement require. */
static int write_policy(const Private *private, Error *reterr)
{
        FILE *file = fopen(private->policy, "wxe");
        bool written = file && fputs("placement:reshaper:reshape: \"role:admin\"\n", file) >= 0;

        if ((file && fclose(file) != 0) || !written)
                return error_setf(reterr, errno, "%s: %s", private->policy, strerror(errno));
        return 0;
}

/* Makes the private folder, with the paths of its socket and policy. */
static int make_folder(Private *ret, Error *reterr)
{
        const char *base = getenv("TMPDIR");

        snprintf(ret->folder, sizeof(ret->folder), "%s/computectl-XXXXXX",
                 base && base[0] == '/' ? base : "/tmp");
        if (!mkdtemp(ret->folder)) {
                ret->folder[0] = '\0';
                return error_setf(reterr, errno, "Cannot create a folder: %s", strerror(errno));
        }
        snprintf(ret->socket, sizeof(ret->socket), "%s/%s", ret->folder, SOCKET_NAME);
        snprintf(ret->policy, sizeof(ret->policy), "%s/%s", ret->folder, POLICY_NAME);
        return write_policy(ret, reterr);
}

/* Starts the server and waits for it. Returns 0, an Outcome or a negative errno with words. */
static int start_server(const char *direct, Private *ret, Error *reterr)
{
        const char *const argv[] = { SERVER,
                                     "--plugin",
                                     "python3",
                                     "--http11-socket",
                                     ret->socket,
                                     "--chmod-socket=600",
                                     "--need-app",
                                     "--die-on-term",
                                     "--disable-logging",
                                     "--module",
                                     "placement.wsgi:init_application()",
                                     NULL };
        const char *const environment[][2] = { { "OS_PLACEMENT_CONFIG_DIR", direct },
                                               { "OS_API__AUTH_STRATEGY", "noauth2" },
                                               { "OS_OSLO_POLICY__POLICY_FILE", ret->policy },
                                               { NULL, NULL } };
        int r = make_folder(ret, reterr);

        if (r < 0)
                return r;
        ret->pid = start(argv, environment);
        if (ret->pid < 0) {
                ret->pid = 0;
                return error_setf(reterr, errno, "Cannot start " SERVER ": %s", strerror(errno));
        }
        return wait_for_server(ret, reterr);
}

/* Makes the owner of the state folder the owner of the socket, because the agent drops the rights
 * of root. Does nothing without a private Placement. The agent reports an unusable configuration,
 * so this function does not. */
static int give_socket_to_owner(const Private *private, const char *file, Error *reterr)
{
        _cleanup_(config_freep) Config *config = NULL;
        uid_t user;

        if (!private->folder[0] || config_load(&config, file, NULL, NULL, NULL) < 0 ||
            folder_owner_find(config->state_dir, &user) <= 0)
                return 0;
        if (chmod(private->folder, 0711) < 0 || chown(private->socket, user, (gid_t)-1) < 0)
                return error_setf(reterr, errno, "%s: %s", private->socket, strerror(errno));
        return 0;
}

/* Runs one cycle of the agent for a node. config NULL: the configuration of the host. A program
 * that cannot be executed counts as a cycle that failed. */
static int run_agent(const char *config, const Private *private, Error *reterr)
{
        char path[PATH_MAX];
        const char *argv[8] = { path, "--once" };
        size_t n = 2;
        int status = 0, r;
        pid_t pid;

        r = give_socket_to_owner(private, config, reterr);
        if (r < 0)
                return r;
        ctl_find_program(path, AGENT, SBINDIR);
        if (config) {
                argv[n++] = "--config";
                argv[n++] = config;
        }
        if (private->socket[0]) {
                argv[n++] = "--direct";
                argv[n++] = private->socket;
        }
        pid = start(argv, NULL);
        if (pid < 0)
                return error_setf(reterr, errno, "Cannot start %s: %s", path, strerror(errno));
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
                return MIGRATE_DONE;
        error_setf(reterr, EIO, "%s%sThe inventory was not migrated completely",
                   config ? config : "", config ? ": " : "");
        return MIGRATE_FAILED;
}

/* Runs the agent for each node, until run_agent() returns a negative errno. Returns that, else the
 * result of the first failure, or 0. */
static int run_all(const char *const *configs, const Private *private, Error *reterr)
{
        int result = run_agent(configs[0], private, reterr);

        for (size_t i = 1; configs[0] && configs[i] && result >= 0; i++) {
                int r = run_agent(configs[i], private, result == 0 ? reterr : NULL);

                if (result == 0 || r < 0)
                        result = r;
        }
        return result;
}

static int migrate(const char *const *configs, const char *direct, Error *reterr)
{
        _cleanup_(private_done) Private private = { .pid = 0 };
        int r;

        if (direct && access(direct, R_OK | X_OK) < 0)
                return error_setf(reterr, errno, "--direct %.200s: %s", direct, strerror(errno));
        r = direct ? start_server(direct, &private, reterr) : 0;
        return r != 0 ? r : run_all(configs, &private, reterr);
}

/* Rejects the call while an agent of this host is on the bus, because two agents would not see each
 * other's claims of this host. */
static int verb_migrate(Ctl *ctl, Error *reterr)
{
        const char *const one[] = { ctl->options.config, NULL };
        const char *const *files = ctl->options.arguments + 1;
        _cleanup_json_ json_t *status = NULL;
        int r = ctl_fetch_status(ctl, &status, reterr);

        if (r < 0)
                return r;
        if (ctl_status_exit(status) != CTL_STATUS_NOT_RUNNING) {
                fputs("The agent of this host is running. Run \"computectl reshape\", or stop the agent first.\n",
                      stderr);
                return MIGRATE_RUNNING;
        }
        r = migrate(files[0] ? files : one, ctl->options.direct, reterr);
        if (r > 0)
                fprintf(stderr, "%s.\n", reterr->text);
        if (r == 0 && !ctl->options.quiet)
                puts(files[0] && files[1] ? "Placement has the inventory of these nodes."
                                          : "Placement has the inventory of this host.");
        return r;
}

static int check_migrate(const CtlOptions *options, Error *reterr)
{
        if (options->config && options->arguments[1])
                return error_setf(reterr, EINVAL, "migrate-inventory: --config or FILE, not both");
        return 0;
}

const CtlVerb ctl_migrate_verbs[] = {
        { "migrate-inventory", "[FILE...]", "Publish and reshape once, without a start",
          CTL_ANY_ARGUMENTS, CTL_VERB_CHANGES | CTL_VERB_HIDDEN, check_migrate, verb_migrate,
          NULL },
        { NULL, NULL, NULL, 0, CTL_LOCAL, NULL, NULL, NULL },
};
