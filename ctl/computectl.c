/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* computectl: compute-agent from a terminal. This file has the way from the command line to the
 * exit code: usage, help, the run of one verb for one host or for several, and the end of the
 * output.
 *
 * The main structure is Ctl (ctl/verbs/verbs.h): options, page, pager and connection of the run.
 * Exit code 0 means that all output was written. With a pager, errors of the pager and of the
 * writes to it do not count. Code 2 means a wrong command line that is found before the verb runs,
 * or an unknown column of --columns. Code 5 means that the agent could not decide within its limit
 * of work, and 1 any other failure. A verb can return a code of its own. For several hosts, and
 * with --hosts-file also for one host, ctl_hosts_run() runs the verb in one child process for each
 * host. So the form of the output does not depend on the length of the file. If libvirt runs this
 * program under the name of its hook, the arguments become those of the verb "hook".
 *
 * Tests: tests/integration/ctl/test_computectl.py tests/integration/ctl/test_exit_codes.py */

#include <errno.h>
#include <locale.h>
#include <string.h>
#include <sys/wait.h>

#include "ctl/ask/bus.h"
#include "ctl/verbs/common.h"
#include "ctl/verbs/help.h"
#include "ctl/verbs/hook.h"
#include "ctl/verbs/verbs.h"

#define EXIT_USAGE_ERROR 2
#define EXIT_TOO_HARD    5 /* the agent could not decide within its limit of work */

static int fail(const Error *error, int r)
{
        fprintf(stderr, "computectl: %s\n", error_text(error, r));
        return EXIT_FAILURE;
}

/* Prints the error of a verb and returns the exit code. */
static int fail_verb(const Ctl *ctl, Error *error, int r)
{
        ctl_print_error(ctl, error, r);
        return r == -E2BIG ? EXIT_TOO_HARD : EXIT_FAILURE;
}

/* Returns the verb of the command line, or the verb that "help VERB" names. Returns NULL without a
 * verb, or for an unknown one. */
static const CtlVerb *get_verb(const CtlOptions *options)
{
        const char *const *word = (const char *const *)options->arguments;

        if (!word[0])
                return NULL;
        if (strcmp(word[0], "help") == 0 && word[1])
                word++;
        return ctl_verb_named(word[0]);
}

static int fail_usage(const CtlOptions *options, const Error *error, int r)
{
        const CtlVerb *verb = get_verb(options);

        (void)fail(error, r);
        fprintf(stderr, "Try \"computectl %s%s--help\".\n", verb ? verb->name : "",
                verb ? " " : "");
        return EXIT_USAGE_ERROR;
}

/* Prints the help of the verb that the command line names, or of all verbs. */
static int print_asked_help(Ctl *ctl)
{
        const CtlVerb *verb = get_verb(&ctl->options);

        ctl_help_print(verb && verb->run ? verb : NULL, &ctl->page);
        return EXIT_SUCCESS;
}

/* Closes standard output, which ends the input of the pager, and waits for the pager. */
static void close_pager(Ctl *ctl)
{
        fclose(stdout);
        while (waitpid(ctl->pager, NULL, 0) < 0 && errno == EINTR)
                ;
}

/* Ends the output and returns the exit code. Without a pager, returns success only if all output
 * was written. Waits for a pager, whose own errors do not matter. */
static int finish(Ctl *ctl, int exit_code)
{
        if (ctl->pager > 0)
                close_pager(ctl);
        if (ctl->page.failed)
                return fail(NULL, -ENOMEM);
        if (ctl->page.usage.code) {
                (void)fail(&ctl->page.usage, -EINVAL);
                exit_code = EXIT_USAGE_ERROR;
        }
        if (ctl->pager > 0)
                return exit_code;
        if (fflush(stdout) != 0 || ferror(stdout)) {
                fprintf(stderr, "computectl: cannot write the output: %s\n", strerror(errno));
                return EXIT_FAILURE;
        }
        return exit_code;
}

/* Sets $CREDENTIALS_DIRECTORY to the folder with the credentials of the running service, if this
 * user can read it. So config_load() finds the secrets. A variable that is set already stays. */
static void find_credentials(void)
{
        static const char folder[] = "/run/credentials/compute-agent.service";

        if (access(folder, R_OK | X_OK) == 0)
                (void)setenv("CREDENTIALS_DIRECTORY", folder, 0);
}

/* Runs a verb. Passwords are asked for only on this host: polkit and the terminal must be on the
 * same host. */
static int run_verb(const CtlVerb *verb, Ctl *ctl)
{
        bool asks = (verb->flags & CTL_VERB_RIGHTS) && !ctl->options.host;
        pid_t agent = asks ? ctl_authorization_start() : 0;
        Error error = ERROR_NULL;
        int r = verb->run(ctl, &error);

        ctl_authorization_stop(agent);
        return r < 0 ? fail_verb(ctl, &error, r) : r;
}

static int run_in_child(const CtlVerb *verb, Ctl *ctl)
{
        return finish(ctl, run_verb(verb, ctl));
}

/* Parses the options and runs the verb, or prints version or help. Returns the exit code. */
static int run(Ctl *ctl, int argc, char *argv[])
{
        const CtlVerb *verb;
        Error error = ERROR_NULL;
        int r = ctl_options_parse(argc, argv, &ctl->options, &error);

        if (r < 0)
                return fail_usage(&ctl->options, &error, r);
        if (ctl->options.version) {
                puts("compute-agent " PACKAGE_VERSION);
                return EXIT_SUCCESS;
        }
        ctl->page = (CtlPage){ .style = ctl_style_detect(stdout), .output = stdout };
        ctl->page.style.legend = !ctl->options.no_legend;
        ctl->page.columns = ctl->options.columns;
        ctl->page.style.all = ctl->options.all || ctl->options.columns;
        if (ctl->options.help)
                return print_asked_help(ctl);
        r = ctl_verb_find(&ctl->options, &verb, &error);
        if (r < 0)
                return fail_usage(&ctl->options, &error, r);
        if (!verb->run)
                return print_asked_help(ctl);
        find_credentials();
        if (ctl->options.hosts.n <= 1 && !ctl->options.hosts_file)
                return run_verb(verb, ctl);
        r = ctl_hosts_run(ctl, verb, run_in_child, &error);
        return r < 0 ? fail(&error, r) : r;
}

/* Turns a call as libvirt's hook into the verb "hook". libvirt runs the file of a hook, with its
 * own arguments. The "--" keeps these from being parsed as options. */
static int run_as_called(Ctl *ctl, int argc, char *argv[])
{
        char verb[] = "hook", end_of_options[] = "--";
        _cleanup_free_ char **arguments = NULL;

        if (argc < 1 || strcmp(basename(argv[0]), CTL_HOOK_NAME) != 0)
                return run(ctl, argc, argv);
        arguments = calloc((size_t)argc + 3, sizeof(char *));
        if (!arguments)
                return EXIT_FAILURE;
        arguments[0] = argv[0];
        arguments[1] = verb;
        arguments[2] = end_of_options;
        memcpy(arguments + 3, argv + 1, (size_t)(argc - 1) * sizeof(char *));
        return run(ctl, argc + 2, arguments);
}

int main(int argc, char *argv[])
{
        Ctl ctl = { 0 };
        int r;

        /* The locale decides only about characters. The language is always English. */
        setlocale(LC_CTYPE, "");
        r = finish(&ctl, run_as_called(&ctl, argc, argv));
        sd_bus_flush_close_unref(ctl.bus);
        ctl_options_done(&ctl.options);
        return r;
}
