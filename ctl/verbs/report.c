/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* "computectl report": writes one archive with the state of this host, for a person without access
 * to it.
 *
 * Each part is the output of one command, most of them verbs of this program. The command runs in a
 * child process with a time limit of 90 s. A part that fails or hangs leaves its output so far and
 * its errors in the archive. The other parts are complete up to 64 MiB each, and index.json has all
 * exit codes. A command that is not installed fails with the exit code 127. If a child process
 * cannot be made, the folder cannot be written, or tar fails, there is no archive. The commands of
 * the table parts[] print no secret of the agent: "cat-config" hides the values of secrets, and the
 * properties of the unit have no environment. Limit: "cat-config" prints the plain words of
 * comments. tar(1) makes the archive from a temporary folder, and the archive never replaces a
 * file.
 *
 * Tests: tests/integration/ctl/test_lists.py */

#include "ctl/verbs/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/text.h"
#include "ctl/ask/children.h"
#include "ctl/verbs/common.h"

#define PART_TIMEOUT_USEC (90 * USEC_PER_SEC) /* an audit of a full host takes half a minute */
#define AT_ONCE           4                   /* number of parallel commands */
#define WORDS_MAX         9
#define SELF              "/proc/self/exe"

/* A part of the archive: its file and the command that writes it. */
typedef struct Part {
        const char *file;
        const char *words[WORDS_MAX]; /* NULL-terminated */
} Part;

#define CTL(...)                                      \
        {                                             \
                SELF, __VA_ARGS__, "--no-pager", NULL \
        }

static const Part parts[] = {
        { "status.txt", CTL("status", "--all") },
        { "status.json", CTL("status", "--json=pretty") },
        { "doctor.txt", CTL("doctor", "--all") },
        { "tree.txt", CTL("tree", "--all") },
        { "tree.json", CTL("tree", "--json=pretty") },
        { "plan.json", CTL("plan", "--json=pretty") },
        { "host.json", CTL("discover", "--json=pretty") },
        { "claims.txt", CTL("claims", "--history", "--all") },
        { "claims.json", CTL("claims", "--history", "--json=pretty") },
        { "problems.json", CTL("claims", "--problems", "--json=pretty") },
        { "history.json", CTL("history", "--json=pretty") },
        { "audit.json", CTL("audit", "--json=pretty") },
        { "configuration.txt", CTL("cat-config") },
        { "version.txt", CTL("--version") },
        { "journal.txt",
          { "journalctl", "--unit=compute-agent", "--lines=5000", "--output=short-iso",
            "--no-pager", NULL } },
        { "unit.txt",
          { "systemctl", "show", "compute-agent",
            "--property=LoadState,ActiveState,SubState,Result,ExecMainStatus,StatusText,User,NRestarts,ActiveEnterTimestamp,FragmentPath,DropInPaths,MemoryCurrent,CPUUsageNSec,TasksCurrent",
            NULL } },
        { "system.txt", { "uname", "-a", NULL } },
        { "os-release.txt", { "cat", "/etc/os-release", NULL } },
};

/* Replaces the child by the command of a part. Returns only if that fails. */
static int run_part(void *data)
{
        const Part *part = data;

        (void)execvp(part->words[0], (char *const *)(uintptr_t)part->words);
        fprintf(stderr, "%s: %s\n", part->words[0], strerror(errno));
        return 127;
}

/* Writes a text into a new file of a folder. Only this user can read it. */
static int write_text(int folder, const char *name, const char *suffix, const char *text)
{
        _cleanup_free_ char *path = text_format("%s%s", name, suffix);
        _cleanup_close_ int fd =
                path ? openat(folder, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -EBADF;
        FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
        bool failed;

        if (!file)
                return -errno;
        fd = -EBADF; /* the file owns it */
        fputs(text, file);
        failed = ferror(file);
        return fclose(file) < 0 || failed ? -EIO : 0;
}

/* Writes the output of each part, its errors (if any) into a separate file, and an index with the
 * exit codes. */
static int write_parts(const char *folder, const CtlChild *children, json_t *index)
{
        _cleanup_close_ int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        _cleanup_free_ char *text = NULL;
        int r = fd < 0 ? -errno : 0;

        for (size_t i = 0; i < ARRAY_SIZE(parts) && r >= 0; i++) {
                const CtlChild *child = &children[i];

                r = write_text(fd, parts[i].file, "", child->output);
                if (r >= 0 && child->errors[0])
                        r = write_text(fd, parts[i].file, ".errors", child->errors);
                if (r >= 0 &&
                    json_array_append_new(index, json_pack("{ss si sb}", "file", parts[i].file,
                                                           "code", child->code, "timed_out",
                                                           child->timed_out)) < 0)
                        r = -ENOMEM;
        }
        text = r < 0 ? NULL : json_dumps(index, JSON_INDENT(2));
        return r < 0 ? r : text ? write_text(fd, "index.json", "", text) : -ENOMEM;
}

/* Packs the folder "name" of the folder "parent". Never replaces a file, and removes the archive if
 * tar fails. If the program is killed, a part of the archive can stay. */
static int make_archive(const char *parent, const char *name, const char *archive, Error *reterr)
{
        int status = 0, fd = open(archive, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        pid_t pid;

        if (fd < 0)
                return error_setf(reterr, errno, "%s: %s", archive, strerror(errno));
        pid = fork();
        if (pid == 0) {
                if (dup2(fd, STDOUT_FILENO) >= 0)
                        (void)execlp("tar", "tar", "-czf", "-", "-C", parent, name, (char *)NULL);
                fprintf(stderr, "computectl: tar: %s\n", strerror(errno));
                _exit(127);
        }
        close(fd);
        while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
                return 0;
        (void)unlink(archive);
        return error_setf(reterr, EIO, "tar failed to create %s", archive);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
        return remove(path);
}

static void name_report(char ret[static 128])
{
        char host[65] = "", date[32] = "";
        time_t now = time(NULL);
        struct tm tm;

        (void)gethostname(host, sizeof(host) - 1);
        host[strcspn(host, "./")] = '\0';
        if (gmtime_r(&now, &tm))
                (void)strftime(date, sizeof(date), "%Y%m%dT%H%M%SZ", &tm);
        snprintf(ret, 128, "compute-agent-report-%s-%s", host, date);
}

/* Writes the parts into a temporary folder in $TMPDIR or /tmp, packs the folder and removes it. If
 * the program is killed, the folder stays. */
static int pack(const CtlChild *children, const char *name, const char *archive, json_t *index,
                Error *reterr)
{
        const char *base = getenv("TMPDIR");
        _cleanup_free_ char *parent =
                text_format("%s/compute-agent.XXXXXX", base && base[0] ? base : "/tmp");
        _cleanup_free_ char *folder = NULL;
        int r;

        if (!parent)
                return error_oom(reterr);
        if (!mkdtemp(parent))
                return error_setf(reterr, errno, "%s: %s", parent, strerror(errno));
        folder = text_format("%s/%s", parent, name);
        r = !folder ? -ENOMEM : mkdir(folder, 0700) < 0 ? -errno : 0;
        if (r >= 0)
                r = write_parts(folder, children, index);
        if (r < 0)
                (void)error_setf(reterr, r, "%s: %s", parent, strerror(-r));
        else
                r = make_archive(parent, name, archive, reterr);
        (void)nftw(parent, remove_one, 8, FTW_DEPTH | FTW_PHYS);
        return r;
}

/* Prints the name of the archive, the parts whose command could not run, and those whose command
 * reached its time limit. The archive has the output of the latter up to that time. With --json,
 * prints a document with these facts, also with --quiet. With --quiet alone, prints nothing. */
static void print_made(Ctl *ctl, const char *archive, json_t *index)
{
        bool prints = !ctl->options.json && !ctl->options.quiet;
        const json_t *part;
        size_t i;

        json_array_foreach(index, i, part) {
                const char *file = json_string_value(json_object_get(part, "file"));

                if (prints && json_is_true(json_object_get(part, "timed_out")))
                        fprintf(stderr, "Not complete in the report: %s\n", file);
                else if (prints && json_integer_value(json_object_get(part, "code")) == 127)
                        fprintf(stderr, "Not in the report: %s\n", file);
        }
        ctl_print_done(ctl, json_pack("{so sO}", "file", ctl_json_foreign(archive), "parts", index),
                       "Wrote %s. It contains no secrets, but names of guests and projects.\n",
                       archive);
}

static int verb_report(Ctl *ctl, Error *reterr)
{
        CtlChild children[ARRAY_SIZE(parts)] = { 0 };
        _cleanup_json_ json_t *index = json_array();
        _cleanup_free_ char *archive = NULL;
        char name[128];
        int r;

        name_report(name);
        archive = ctl->options.arguments[1] ? strdup(ctl->options.arguments[1])
                                            : text_format("%s.tar.gz", name);
        if (!index || !archive)
                return error_oom(reterr);
        if (access(archive, F_OK) == 0)
                return error_setf(reterr, EEXIST, "%s already exists", archive);
        for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
                children[i].data = (void *)(uintptr_t)&parts[i];
        r = ctl_children_run(children, ARRAY_SIZE(parts), run_part, AT_ONCE, PART_TIMEOUT_USEC,
                             reterr);
        if (r >= 0)
                r = pack(children, name, archive, index, reterr);
        ctl_children_done(children, ARRAY_SIZE(parts));
        if (r >= 0)
                print_made(ctl, archive, index);
        return r;
}

const CtlVerb ctl_report_verbs[] = {
        { "report", "[FILE]", "Write an archive for a bug report", 1, CTL_LOCAL, NULL, verb_report,
          NULL },
        { NULL, NULL, NULL, 0, CTL_LOCAL, NULL, NULL, NULL },
};
