/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tests: tests/unit/ctl/ask/test-helper.c */

#include "ctl/ask/helper.h"

#include <string.h>

#include "ctl/ask/children.h"
#include "ctl/print/json.h"
#include "drivers/host/snapshot.h"
#include "formats/format-names.h"

#define PROGRAM   "computectl-helper" /* agent/helper/main.c */
#define WORDS_MAX 4

static const struct {
        const char *name, *failure, *format;
} orders[] = {
        { "discover", "The host could not be polled", SNAPSHOT_FORMAT },
        { "verify", "The host could not be polled", FINDINGS_FORMAT },
        { "connect", "Could not check the connection to Placement", CONNECT_FORMAT },
        { "identity", "Could not determine who this host is", IDENTITY_FORMAT },
};

void ctl_find_program(char path[static PATH_MAX], const char *name, const char *folder)
{
        char self[PATH_MAX];
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self));
        const char *slash = n > 0 ? memrchr(self, '/', (size_t)n) : NULL;

        if (slash &&
            snprintf(path, PATH_MAX, "%.*s/%s", (int)(slash - self), self, name) < PATH_MAX &&
            access(path, X_OK) == 0)
                return;
        snprintf(path, PATH_MAX, "%s/%s", folder, name);
}

typedef struct HelperWork {
        const char *path;
        const char *const *arguments; /* NULL-terminated, the program's name first */
} HelperWork;

/* Runs in the child. */
static int run_helper(void *data)
{
        const HelperWork *work = data;

        (void)execv(work->path, (char *const *)(uintptr_t)work->arguments);
        return 127;
}

int ctl_helper_ask(const char *order, const char *const words[], const char *config, json_t **ret,
                   Error *reterr)
{
        const char *arguments[WORDS_MAX + 4] = { PROGRAM, order };
        char path[PATH_MAX];
        HelperWork work = { path, arguments };
        CtlChild child = { .data = &work };
        size_t n = 2, i = 0;
        int r;

        while (i + 1 < ARRAY_SIZE(orders) && strcmp(orders[i].name, order) != 0)
                i++;
        for (; words && *words; words++)
                arguments[n++] = *words;
        arguments[n] = config;
        ctl_find_program(path, PROGRAM, LIBEXECDIR);
        if (access(path, X_OK) < 0)
                return error_setf(reterr, errno, "%s: %s; is the package installed whole?", path,
                                  strerror(errno));
        r = ctl_children_run(&child, 1, run_helper, 1, 0, reterr);
        if (r >= 0) {
                fputs(child.errors, stderr);
                r = child.code != 0
                            ? error_setf(reterr, EIO, "%s", orders[i].failure)
                            : ctl_json_read_document(child.output, orders[i].format, ret, reterr);
        }
        ctl_children_done(&child, 1);
        return r;
}
