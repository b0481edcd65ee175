/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/ctl/verbs/config.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "agent/config/file.h"
#include "agent/config/table.h"
#include "base/folder-owner.h"
#include "base/text.h"

#define HIDDEN "(not shown)"

/* Where a reader of lines is. */
typedef struct Place {
        char section[128];
        bool in_secret; /* lines that go on with the value are not shown either */
} Place;

static void enter_section(Place *place, const char *line)
{
        size_t n = strcspn(line + 1, "]\n");

        snprintf(place->section, sizeof(place->section), "%.*s", (int)n, line + 1);
}

static bool is_secret_anywhere(const char *key)
{
        for (const ConfigOption *o = config_options; o->key; o++)
                if (o->secret && strcasecmp(o->key, key) == 0)
                        return true;
        return false;
}

/* Whether the value of a key may be shown: what the agent does not know may be a secret of others,
 * pasted with the rest. */
static bool may_show(const Place *place, const char *key, bool comment)
{
        const ConfigOption *option;

        if (comment || strncasecmp(place->section, "mdev_", strlen("mdev_")) == 0)
                return !is_secret_anywhere(key);
        option = config_find_option(config_options, place->section, key);
        return option && !option->secret;
}

/* A line that sets something, or would without the "#" before it; n_key is the length of its key.
 */
static bool print_setting(Place *place, const char *line, size_t n_key, FILE *output)
{
        const char *start = line + strspn(line, "#; \t");
        char key[128];

        snprintf(key, sizeof(key), "%.*s", (int)n_key, start);
        if (may_show(place, key, strchr("#;", line[0])))
                return false;
        fprintf(output, "%.*s = " HIDDEN "\n", (int)(start + n_key - line), line);
        return true;
}

/* The length of the key when the line has the form of a setting, else 0. */
static size_t find_key(const char *line)
{
        const char *start = line + strspn(line, "#; \t");
        size_t n = strcspn(start, "=: \t\n");
        const char *rest = start + n + strspn(start + n, " \t");

        return rest[0] == '=' || rest[0] == ':' ? n : 0;
}

static void print_line(Place *place, const char *line, FILE *output)
{
        bool goes_on = isspace((unsigned char)line[0]);
        size_t n_key = find_key(line);

        /* Empty lines do not end a value that goes on. */
        if (place->in_secret && goes_on)
                return;
        place->in_secret = false;
        if (line[0] == '[')
                enter_section(place, line);
        else if (n_key > 0 && print_setting(place, line, n_key, output)) {
                place->in_secret = true;
                return;
        }
        fputs(line, output);
        if (line[0] && line[strlen(line) - 1] != '\n')
                fputc('\n', output);
}

static int cat_file(const char *path, FILE *output, Error *reterr)
{
        _cleanup_fclose_ FILE *file = fopen(path, "re");
        _cleanup_free_ char *line = NULL;
        Place place = { 0 };
        size_t size = 0;

        if (!file)
                return error_setf(reterr, errno, "%s: cannot be read: %s", path, strerror(errno));
        fprintf(output, "# %s\n", path);
        while (getline(&line, &size, file) >= 0)
                print_line(&place, line, output);
        if (ferror(file))
                return error_setf(reterr, EIO, "%s: cannot be read", path);
        return 0;
}

int ctl_config_cat(const char *config, FILE *output, Error *reterr)
{
        _cleanup_(strings_freep) char **paths = NULL;
        int r = config_find_files(config, NULL, NULL, &paths, reterr);

        if (r < 0)
                return r;
        if (!paths[0])
                fputs("# There is no configuration file: the defaults apply.\n", output);
        for (char **path = paths; *path; path++) {
                if (path != paths)
                        fputc('\n', output);
                r = cat_file(*path, output, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

static void on_warning(const char *text, void *userdata)
{
        fprintf(userdata, "Warning: %s\n", text);
}

/* The start would say so, but only then. */
static void check_state_dir(const char *path, FILE *output)
{
        static const char own[] = LOCALSTATEDIR "/lib/compute-agent";
        size_t n = strlen(own);

        if (strncmp(path, own, n) != 0 || (path[n] != '\0' && path[n] != '/'))
                fprintf(output,
                        "Warning: [agent] state_dir is %s, and the unit lets the service write below %s alone, unless a drop-in (\"systemctl edit compute-agent\") has ReadWritePaths= for it\n",
                        path, own);
}

/* The service gets them from systemd, when it starts and if its unit says so; what a file got since
 * is not there. */
static void note_new_credentials(FILE *output)
{
        static const char *const names[] = { "placement-token", "placement-password",
                                             "placement-application-credential-secret" };
        const char *folder = getenv("CREDENTIALS_DIRECTORY"); /* of the service, when it runs */

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                char path[256], given[512];
                struct stat file, copy;

                snprintf(path, sizeof(path), SYSCONFDIR "/compute-agent/%s", names[i]);
                snprintf(given, sizeof(given), "%s/%s", folder ? folder : "", names[i]);
                if (stat(path, &file) < 0 ||
                    (folder && stat(given, &copy) == 0 && copy.st_mtime >= file.st_mtime))
                        continue;
                fprintf(output,
                        "Note: the service does not have this %s yet: it gets it at its next start, if its unit has LoadCredential=%s:%s (\"systemctl edit compute-agent\")\n",
                        path, names[i], path);
        }
}

/* With the rights that this process has: changed, those of the service. Without them only what is
 * missing is known. */
static void look_at_files(const Config *config, bool changed, FILE *output)
{
        const struct {
                const char *option, *path;
        } files[] = {
                { "[placement] cafile", config->cafile },
                { "[placement] certfile", config->certfile },
                { "[placement] keyfile", config->keyfile },
                { "[static] path", config->driver.static_file.path },
        };

        for (size_t i = 0; i < ARRAY_SIZE(files); i++)
                if (files[i].path && access(files[i].path, R_OK) < 0 &&
                    (changed || errno == ENOENT))
                        fprintf(output, "Warning: %s: %s: the service cannot read it (%s)\n",
                                files[i].option, files[i].path, strerror(errno));
}

/* Root may read everything, so a child that became the service looks. */
static void check_files(const Config *config, FILE *output)
{
        Error error = ERROR_NULL;
        pid_t pid;
        int r;

        fflush(output);
        pid = fork();
        if (pid < 0)
                fprintf(output,
                        "Warning: whether the service can read its files was not checked: %s\n",
                        strerror(errno));
        if (pid > 0)
                (void)waitpid(pid, NULL, 0);
        if (pid != 0)
                return;
        r = folder_owner_become(config->state_dir, &error);
        if (r < 0)
                fprintf(output,
                        "Warning: whether the service can read its files was not checked: %s\n",
                        error.text);
        else
                look_at_files(config, r > 0, output);
        fflush(output);
        _exit(0);
}

int ctl_config_check(const char *config, FILE *output, size_t *ret_n_files, Error *reterr)
{
        _cleanup_(config_freep) Config *loaded = NULL;
        size_t n = 0;
        int r = config_load(&loaded, config, on_warning, output, reterr);

        /* Credentials are systemd's, and given to the service alone. */
        if (r < 0 && strstr(reterr->text, "credential placement-") &&
            !getenv("CREDENTIALS_DIRECTORY"))
                return error_prefixf(reterr, r, "Credentials of the service were not checked");
        if (r < 0)
                return r;
        check_state_dir(loaded->state_dir, output);
        check_files(loaded, output);
        note_new_credentials(output);
        while (loaded->files[n])
                n++;
        if (ret_n_files)
                *ret_n_files = n;
        return 0;
}
