/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Checks in a child process, with the rights of the service, which files the service can read or
 * write.
 *
 * The child changes its user and groups, tries each file, and writes a line for each failure: the
 * errno in decimal (0: only a warning), a blank, and the words. The parent reads the lines. The
 * first errno above 0 is its result, and lines with 0 go to the caller's function for warnings. A
 * child that fails without an error line is -EIO. The main structure is Look, the work of the
 * child. Configuration, credentials, certificates, the file of the static driver and files of
 * providers are opened. The state folder, its files and instances_path are checked with access(2).
 * Invariant: the rights of the parent never change. Limit: the child is forked without exec, so the
 * caller must have only one thread. */

#include "config/service-access.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/text.h"
#include "config/search.h"

DEFINE_CLEANUP(DIR *, closedir);

void service_rights_done(ServiceRights *rights)
{
        free(rights->name);
        free(rights->groups);
        *rights = (ServiceRights){ 0 };
}

static int no_user(const char *user, Error *reterr)
{
        return error_setf(
                reterr, ENOENT,
                "The user %s does not exist, so the access rights of the service were not checked",
                user);
}

static int add_group(ServiceRights *rights, gid_t group)
{
        gid_t *grown = reallocarray(rights->groups, rights->n_groups + 1, sizeof(gid_t));

        if (!grown)
                return -ENOMEM;
        rights->groups = grown;
        rights->groups[rights->n_groups++] = group;
        return 0;
}

/* Adds the groups of the user database, the main group first. */
static int add_groups_of_user(ServiceRights *rights, const char *user, gid_t group)
{
        int n = 0;

        (void)getgrouplist(user, group, NULL, &n);
        rights->groups = calloc((size_t)n + 1, sizeof(gid_t));
        if (!rights->groups)
                return -ENOMEM;
        if (getgrouplist(user, group, rights->groups, &n) < 0)
                return -EAGAIN; /* the user got more groups between the two calls */
        rights->n_groups = (size_t)n;
        return 0;
}

int service_rights_find(ServiceRights *ret, const char *user, char *const extra[], Error *reterr)
{
        _cleanup_(service_rights_done) ServiceRights rights = { 0 };
        const struct passwd *found = getpwnam(user);
        int r;

        if (!found)
                return no_user(user, reterr);
        rights.user = found->pw_uid;
        rights.name = strdup(user);
        r = rights.name ? add_groups_of_user(&rights, user, found->pw_gid) : -ENOMEM;
        for (; r >= 0 && extra && *extra; extra++) {
                const struct group *group = getgrnam(*extra);

                if (group)
                        r = add_group(&rights, group->gr_gid);
        }
        if (r < 0)
                return error_setf(reterr, r, "Cannot read the groups of user %s: %s", user,
                                  strerror(-r));
        *ret = TAKE_STRUCT(rights);
        return 0;
}

int service_rights_find_id(ServiceRights *ret, uid_t user, gid_t group, Error *reterr)
{
        const struct passwd *found = getpwuid(user);
        _cleanup_(service_rights_done) ServiceRights rights = { .user = user };
        _cleanup_free_ char *name = found ? strdup(found->pw_name) : NULL;

        if (found)
                return name ? service_rights_find(ret, name, NULL, reterr) : error_oom(reterr);
        rights.name = text_format("%u", user);
        if (!rights.name || add_group(&rights, group) < 0)
                return error_oom(reterr);
        *ret = TAKE_STRUCT(rights);
        return 0;
}

/* In the child. */

/* The work of the child: the check of the configuration files, or, if config is set, the check of
 * the files that it names. */
typedef struct Look {
        const ServiceRights *rights;
        const char *file;     /* the argument of service_access_check_config() */
        const Config *config; /* the argument of service_access_check_rest() */
        FILE *output;
} Look;

/* Writes a line about a file. If the child has only the rights of the caller (n_groups 0), only a
 * missing file is reported, because the service cannot read that either. deed: "read" or "write
 * to". */
static void complain(const Look *look, bool fatal, const char *option, const char *path,
                     const char *deed, int error)
{
        const char *name = look->rights->name;

        if (look->rights->n_groups == 0 && error != ENOENT)
                return;
        fprintf(look->output, "%d %s%s%s: the service%s%s cannot %s it: %s\n", fatal ? error : 0,
                option, option[0] ? ": " : "", path, name ? "'s user " : "", name ? name : "", deed,
                strerror(error));
}

/* Opens a file for reading. O_NONBLOCK prevents waiting for the writer of a FIFO. */
static void try_read(const Look *look, bool fatal, const char *option, const char *path)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

        if (fd < 0)
                complain(look, fatal, option, path, "read", errno);
        else
                close(fd);
}

/* Tries the configuration files. Each failure is an error. */
static void look_at_config(const Look *look)
{
        _cleanup_(strings_freep) char **paths = NULL;
        Error error = ERROR_NULL;
        int r = config_search(NULL, look->file, NULL, NULL, &paths, &error);

        if (r < 0)
                fprintf(look->output, "%d %s (as user %s)\n", -r, error_text(&error, r),
                        look->rights->name);
        for (char **path = paths; r >= 0 && *path; path++)
                try_read(look, true, "", *path);
}

/* Checks that the state folder, its lock and the claim database can be written. Missing ones are no
 * problem, because the first start creates them. */
static void look_at_state(const Look *look)
{
        const char *folder = look->config->state_dir;
        const char *const names[] = { "lock", look->config->claim_db };

        if (access(folder, R_OK | W_OK | X_OK) < 0) {
                if (errno != ENOENT)
                        complain(look, true, "[agent] state_dir", folder, "write to", errno);
                return;
        }
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                _cleanup_free_ char *path = text_format("%s/%s", folder, names[i]);

                if (path && access(path, R_OK | W_OK) < 0 && errno != ENOENT)
                        complain(look, true, "[agent] state_dir", path, "write to", errno);
        }
}

/* Tries to read the files *.yaml in provider_config_location. Failures are warnings, because the
 * service runs without these files. A missing folder is no failure. */
static void look_at_providers(const Look *look)
{
        static const char option[] = "[compute] provider_config_location";
        const char *folder = look->config->provider_config_location;
        _cleanup_(closedirp) DIR *dir = opendir(folder);
        const struct dirent *entry;

        if (!dir && errno != ENOENT)
                complain(look, false, option, folder, "read", errno);
        while (dir && (entry = readdir(dir))) {
                _cleanup_free_ char *path = text_format("%s/%s", folder, entry->d_name);
                const char *end = strrchr(entry->d_name, '.');

                if (path && end && strcmp(end, ".yaml") == 0)
                        try_read(look, false, option, path);
        }
}

/* Tries the files that service_access_check_rest() names. Failures of the state and of the
 * credentials are errors, all others are warnings. A missing instances_path is no failure. */
static void look_at_rest(const Look *look)
{
        const Config *config = look->config;
        const char *instances = config->driver.host.instances_path;
        const struct {
                const char *option, *path;
        } files[] = {
                { "[placement] cafile", config->cafile },
                { "[placement] certfile", config->certfile },
                { "[placement] keyfile", config->keyfile },
                { "[static] path", config->driver.static_path },
        };

        look_at_state(look);
        for (size_t i = 0; i < config->credential_files.n_items; i++)
                try_read(look, true, "The unit has no LoadCredential= for this file",
                         config->credential_files.items[i]);
        for (size_t i = 0; i < ARRAY_SIZE(files); i++)
                if (files[i].path && files[i].path[0])
                        try_read(look, false, files[i].option, files[i].path);
        look_at_providers(look);
        if (instances && access(instances, R_OK | X_OK) < 0 && errno != ENOENT)
                complain(look, false, "[DEFAULT] instances_path", instances, "read", errno);
}

/* Takes the rights of the service for good. Groups are changed first, because that needs root. */
static int become(const ServiceRights *rights)
{
        return setgroups(rights->n_groups, rights->groups) < 0 ||
                               setresgid(rights->groups[0], rights->groups[0], rights->groups[0]) <
                                       0 ||
                               setresuid(rights->user, rights->user, rights->user) < 0
                       ? -errno
                       : 0;
}

/* Runs the check and ends the child. Never returns. */
static void run_child(Look *look, int fd)
{
        int r = look->rights->n_groups > 0 ? become(look->rights) : 0;

        look->output = fdopen(fd, "w");
        if (!look->output)
                _exit(EXIT_FAILURE);
        if (r < 0)
                fprintf(look->output, "%d Cannot switch to the rights of user %s: %s\n", -r,
                        look->rights->name, strerror(-r));
        else if (look->config)
                look_at_rest(look);
        else
                look_at_config(look);
        _exit(fflush(look->output) == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
}

/* In the parent. */

/* Passes the lines of the child on. Returns the first error; warnings go to the callback. */
static int pass_on(FILE *input, ConfigWarning warning, void *userdata, Error *reterr)
{
        _cleanup_free_ char *line = NULL;
        size_t size = 0;
        int ret = 0;

        while (getline(&line, &size, input) > 0) {
                char *words = NULL;
                long code = strtol(line, &words, 10);

                words += strspn(words, " ");
                words[strcspn(words, "\n")] = '\0';
                if (code > 0 && ret == 0)
                        ret = error_setf(reterr, (int)code, "%s", words);
                else if (code == 0 && warning)
                        warning(words, userdata);
        }
        return ret;
}

/* Runs a check in a child. Returns the first error of the check, -EIO if the child failed, or
 * another errno if it cannot be started. */
static int run(Look *look, ConfigWarning warning, void *userdata, Error *reterr)
{
        _cleanup_fclose_ FILE *input = NULL;
        int fds[2], status = 0, r;
        pid_t pid;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return error_setf(reterr, errno, "pipe: %s", strerror(errno));
        fflush(NULL); /* the child would inherit buffered output, and write it too */
        pid = fork();
        if (pid == 0)
                run_child(look, fds[1]);
        close(fds[1]);
        input = fdopen(fds[0], "r");
        if (!input)
                close(fds[0]);
        r = pid < 0 || !input ? error_setf(reterr, ENOMEM, "Cannot start a process to check files")
                              : pass_on(input, warning, userdata, reterr);
        while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        if (r >= 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != EXIT_SUCCESS))
                return error_setf(reterr, EIO, "The process that checks the files failed");
        return r;
}

int service_access_check_config(const ServiceRights *rights, const char *file, Error *reterr)
{
        Look look = { .rights = rights, .file = file };

        return run(&look, NULL, NULL, reterr);
}

int service_access_check_rest(const ServiceRights *rights, const Config *config,
                              ConfigWarning warning, void *userdata, Error *reterr)
{
        Look look = { .rights = rights, .config = config };

        return run(&look, warning, userdata, reterr);
}
