/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Finds, creates and replaces the file compute_id. A Found collects the first file and its uuid
 * while the folders are searched; each further copy that is found must agree. The rules of the
 * search and of the content follow Nova's, so that Nova and the agent read the same uuid. A file
 * that Nova accepts and this reader does not (parse_uuid()) is an error.
 *
 * A file is written under another name and synced. A new file is then linked to its own name; the
 * replacement of an old one is renamed. So no reader finds half of it. If two processes create the
 * file at the same moment, the file system refuses one of them. In identity_load(), that one takes
 * the uuid of the other. identity_replace() fails then; it creates a new file if there is none to
 * replace. */

#include "agent/state/identity.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "agent/state/state-file.h"
#include "base/read-file.h"

#define FILE_NAME      "compute_id"
#define MAX_BYTES_READ 40 /* Nova also reads this number; the rest is ignored */

/* Reads a uuid with or without dashes. Limit: Nova also accepts the other forms of Python's
 * uuid.UUID(), for example with braces, which are not in use. */
static int parse_uuid(const char *text, Uuid *ret)
{
        static const size_t dashes[] = { 8, 13, 18, 23 };
        char dashed[UUID_TEXT_LENGTH + 1];
        size_t n = 0;

        if (strlen(text) != 32)
                return uuid_from_text(text, ret);
        for (size_t i = 0; n < UUID_TEXT_LENGTH; n++) {
                bool dash = false;

                for (size_t j = 0; j < ARRAY_SIZE(dashes); j++)
                        dash = dash || dashes[j] == n;
                dashed[n] = dash ? '-' : text[i++];
        }
        dashed[n] = '\0';
        return uuid_from_text(dashed, ret);
}

/* Reads a uuid between white space. A NUL character in the text is an error. Modifies text. */
static int parse_content(char *text, size_t n, Uuid *ret)
{
        while (n > 0 && isspace((unsigned char)text[n - 1]))
                n--;
        text[n] = '\0';
        while (isspace((unsigned char)*text)) {
                text++;
                n--;
        }
        return strlen(text) == n ? parse_uuid(text, ret) : -EINVAL;
}

/* Reads a file. Returns 1 if it exists and has a uuid, 0 if it does not exist, or a negative errno
 * with words. */
static int read_file(const char *path, Uuid *ret, Error *reterr)
{
        char text[MAX_BYTES_READ + 1];
        size_t n;
        int r = read_file_start(path, text, MAX_BYTES_READ, &n, NULL);

        if (r == -ENOENT || r == -ENOTDIR)
                return 0;
        if (r < 0)
                return error_setf(reterr, r, "Cannot read %s: %s%s", path,
                                  r == -EINVAL ? "not a regular file" : strerror(-r),
                                  r == -EACCES ? ". Make it readable for the user compute-agent"
                                               : "");
        if (parse_content(text, n, ret) < 0)
                return error_setf(
                        reterr, EINVAL,
                        "%s contains no uuid. Write the uuid of this host's root provider into it, or remove it if the host was never published",
                        path);
        return 1;
}

/* The result of a search: the first file and its uuid. */
typedef struct Found {
        bool found;
        Uuid uuid;
        char path[PATH_MAX];
} Found;

/* Reads the file of one folder, if it exists, and keeps the first uuid in found. n_folder is the
 * length of the folder's name. Fails if the file has another uuid than an earlier file. */
static int look(Found *found, const char *folder, size_t n_folder, Error *reterr)
{
        char path[PATH_MAX];
        Uuid uuid;
        int r;

        if (snprintf(path, sizeof(path), "%.*s/" FILE_NAME, (int)n_folder, folder) >=
            (int)sizeof(path))
                return error_setf(reterr, ENAMETOOLONG, "%.*s: the path is too long", 200, folder);
        r = read_file(path, &uuid, reterr);
        if (r <= 0)
                return r;
        if (found->found && !uuid_equal(&found->uuid, &uuid))
                return error_setf(
                        reterr, EINVAL,
                        "%s and %s differ. Remove the one without the uuid of this host's root provider",
                        found->path, path);
        if (!found->found) {
                memcpy(found->path, path, sizeof(path));
                found->uuid = uuid;
                found->found = true;
        }
        return 0;
}

/* Searches the folders of the configuration files, then the state folder of the agent. Nova's state
 * folder counts only if none of these has the file. */
static int search_folders(Found *found, const Config *config, Error *reterr)
{
        char *const *file = config->files;
        int r;

        for (; file && *file; file++) {
                const char *slash = strrchr(*file, '/');

                if (!slash)
                        r = look(found, ".", 1, reterr);
                else
                        r = look(found, *file, (size_t)(slash - *file), reterr);
                if (r < 0)
                        return r;
        }
        r = look(found, config->state_dir, strlen(config->state_dir), reterr);
        if (r == 0 && !found->found && config->state_path)
                r = look(found, config->state_path, strlen(config->state_path), reterr);
        return r;
}

/* Writes the file to the state folder. replace: it takes the place of an old file in one step.
 * Otherwise an existing file gives -EEXIST, without words: another process created it. All users
 * can read the file, as they can read Nova's. */
static int create(const char *state_dir, const Uuid *uuid, bool replace, Error *reterr)
{
        char path[PATH_MAX], line[UUID_TEXT_LENGTH + 2];
        int r = -ENAMETOOLONG;

        snprintf(line, sizeof(line), "%s\n", uuid->text);
        if (snprintf(path, sizeof(path), "%s/" FILE_NAME, state_dir) < (int)sizeof(path))
                r = state_file_put(path, uuid->text, line, 0644, replace);
        switch (r) {
        case 0:
        case -EEXIST:
                return r;
        case -ENOENT:
        case -ENOTDIR:
                return error_setf(reterr, r,
                                  "There is no folder %s. Create it, or set [agent] state_dir",
                                  state_dir);
        case -ENOSPC:
        case -EDQUOT:
                return error_setf(reterr, r,
                                  "%s/" FILE_NAME " cannot be created: %s. Free some space",
                                  state_dir, strerror(-r));
        default:
                return error_setf(
                        reterr, r,
                        "%s/" FILE_NAME
                        " cannot be created: %s. Make the folder writable, or put the file with the uuid of this host's root provider beside the configuration file",
                        state_dir, strerror(-r));
        }
}

int identity_load(const Config *config, Uuid *ret, bool *ret_created, Error *reterr)
{
        const char *state_dir = config->state_dir;
        Found found = {};
        Uuid uuid;
        int r = search_folders(&found, config, reterr);

        if (r < 0)
                return r;
        if (!found.found) {
                uuid = uuid_make_random();
                r = create(state_dir, &uuid, false, reterr);
                if (r == -EEXIST) {
                        r = look(&found, state_dir, strlen(state_dir), reterr);
                        if (r == 0 && !found.found)
                                r = error_setf(reterr, EAGAIN,
                                               "%s/" FILE_NAME
                                               " was created and removed by another process",
                                               state_dir);
                }
                if (r < 0)
                        return r;
        }
        *ret = found.found ? found.uuid : uuid;
        if (ret_created)
                *ret_created = !found.found;
        return 0;
}

int identity_find(const Config *config, Uuid *ret, char **ret_path, Error *reterr)
{
        Found found = {};
        int r = search_folders(&found, config, reterr);

        if (r < 0 || !found.found)
                return r;
        *ret_path = strdup(found.path);
        if (!*ret_path)
                return error_oom(reterr);
        *ret = found.uuid;
        return 1;
}

int identity_replace(const Config *config, const Uuid *uuid, bool dry_run, Error *reterr)
{
        const char *state_dir = config->state_dir;
        char own[PATH_MAX];
        Found found = {};
        int r = search_folders(&found, config, reterr);

        if (r < 0)
                return r;
        if (snprintf(own, sizeof(own), "%s/" FILE_NAME, state_dir) >= (int)sizeof(own))
                return error_setf(reterr, ENAMETOOLONG, "%.200s: the path is too long", state_dir);
        if (found.found && strcmp(found.path, own) != 0)
                return error_setf(
                        reterr, EEXIST,
                        "%s belongs to the operator or to Nova, so the agent does not write it. Write %s into it, or remove it",
                        found.path, uuid->text);
        if (dry_run)
                return 0;
        r = create(state_dir, uuid, found.found, reterr);
        return r == -EEXIST ? error_setf(reterr, r,
                                         "%s/" FILE_NAME " was just created by another process",
                                         state_dir)
                            : r;
}
