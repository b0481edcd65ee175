/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Finds the configuration files and the health rules, by the rules of systemd for drop-ins.
 *
 * The main structure is Search, which collects the main file and the drop-ins. Roots are searched
 * in their order, so the first file of a name wins, and later ones of that name are skipped. A link
 * to /dev/null is recorded as masked, which prevents that a later root adds the name. A folder that
 * is missing, or is no folder, has no drop-ins; the latter is a warning, and so is a drop-in that
 * is a link without a target. A main file that is such a link counts as missing. Other errors end
 * the search. Limit: files are found here and not opened, so a file can disappear before the caller
 * reads it. */

#include "config/search.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/array.h"
#include "base/text.h"

#define MAIN_FILE "compute-agent/compute-agent.conf"

/* The folders below which the configuration is searched. A build for another prefix has its own
 * folders besides the usual ones. A folder that appears twice makes no difference. */
static const char *const usual[] = { SYSCONFDIR, "/etc", "/run", PREFIX_LIB_DIR, "/usr/lib", NULL };

typedef struct DropIn {
        char *path;
        const char *name; /* last component of path, not owned */
        bool masked;      /* is a link to /dev/null: later roots do not add the name */
} DropIn;

typedef struct Search {
        const char *ending; /* end of the names of drop-ins: ".conf" */
        char *main;
        DropIn *items;
        size_t n_items, n_allocated;
        ConfigWarning warning;
        void *userdata;
} Search;

DEFINE_CLEANUP(DIR *, closedir);

static void search_done(Search *search)
{
        for (size_t i = 0; i < search->n_items; i++)
                free(search->items[i].path);
        free(search->items);
        free(search->main);
}

/* Checks whether the file is /dev/null. The device number 1:3 decides, because the path can be a
 * link. */
static bool is_dev_null(const struct stat *st)
{
        return S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3);
}

/* Sets search->main to the path if the file exists. Returns 1 if no later root needs to be searched
 * for a main file: this one exists or is masked. Returns 0 if it does not exist. */
static int try_main(Search *search, const char *path, Error *reterr)
{
        struct stat st;

        if (stat(path, &st) < 0) {
                if (errno == ENOENT || errno == ENOTDIR)
                        return 0;
                return error_setf(reterr, errno, "Cannot read %s: %s", path, strerror(errno));
        }
        if (is_dev_null(&st))
                return 1;
        search->main = strdup(path);
        return search->main ? 1 : error_oom(reterr);
}

static const DropIn *find_drop_in(const Search *search, const char *name)
{
        for (size_t i = 0; i < search->n_items; i++)
                if (strcmp(search->items[i].name, name) == 0)
                        return &search->items[i];
        return NULL;
}

static void warn(const Search *search, const char *path, int error)
{
        Error text = ERROR_NULL;

        if (!search->warning)
                return;
        error_setf(&text, error, "%s: %s, ignoring", path, strerror(error));
        search->warning(text.text, search->userdata);
}

/* Adds a drop-in unless its name was found before. A link without a target is ignored with a
 * warning. */
static int add_drop_in(Search *search, const char *folder, const char *name, Error *reterr)
{
        _cleanup_free_ char *path = NULL;
        struct stat st;
        DropIn *item;

        if (find_drop_in(search, name))
                return 0;
        path = text_format("%s/%s", folder, name);
        if (!path)
                return error_oom(reterr);
        if (stat(path, &st) < 0) {
                if (errno != ENOENT)
                        return error_setf(reterr, errno, "Cannot read %s: %s", path,
                                          strerror(errno));
                warn(search, path, ENOENT);
                return 0;
        }
        if (array_grow(&search->items, sizeof(DropIn), search->n_items, &search->n_allocated) < 0)
                return error_oom(reterr);
        item = &search->items[search->n_items++];
        item->name = path + strlen(folder) + 1;
        item->masked = is_dev_null(&st);
        item->path = TAKE_PTR(path);
        return 0;
}

static bool is_drop_in_name(const Search *search, const char *name)
{
        size_t n = strlen(name), end = strlen(search->ending);

        return name[0] != '.' && n > end && strcmp(name + n - end, search->ending) == 0;
}

/* Adds the drop-ins of a folder. A folder that does not exist has none. */
static int add_folder(Search *search, const char *folder, Error *reterr)
{
        _cleanup_(closedirp) DIR *dir = opendir(folder);
        const struct dirent *entry;
        int r;

        if (!dir && errno == ENOENT)
                return 0;
        if (!dir && errno == ENOTDIR) {
                warn(search, folder, ENOTDIR);
                return 0;
        }
        if (!dir)
                return error_setf(reterr, errno, "Cannot read %s: %s", folder, strerror(errno));
        while (errno = 0, (entry = readdir(dir))) {
                if (!is_drop_in_name(search, entry->d_name))
                        continue;
                r = add_drop_in(search, folder, entry->d_name, reterr);
                if (r < 0)
                        return r;
        }
        if (errno != 0)
                return error_setf(reterr, errno, "Cannot read %s: %s", folder, strerror(errno));
        return 0;
}

static int compare_names(const void *a, const void *b)
{
        return strcmp(((const DropIn *)a)->name, ((const DropIn *)b)->name);
}

/* Passes the paths to the caller: the main file, then the drop-ins by name, without masked ones. */
static int take_paths(Search *search, char ***ret_paths, Error *reterr)
{
        char **paths = calloc(search->n_items + 2, sizeof(char *));
        size_t n = 0;

        if (!paths)
                return error_oom(reterr);
        if (search->n_items > 0)
                qsort(search->items, search->n_items, sizeof(DropIn), compare_names);
        if (search->main)
                paths[n++] = TAKE_PTR(search->main);
        for (size_t i = 0; i < search->n_items; i++)
                if (!search->items[i].masked)
                        paths[n++] = TAKE_PTR(search->items[i].path);
        *ret_paths = paths;
        return 0;
}

/* Finds a named file, which must exist, and its drop-ins. */
static int search_named(Search *search, const char *file, Error *reterr)
{
        _cleanup_free_ char *folder = NULL;
        int r;

        r = try_main(search, file, reterr);
        if (r == 0)
                return error_setf(reterr, ENOENT, "%s does not exist", file);
        if (r < 0)
                return r;
        folder = text_format("%s.d", file);
        if (!folder)
                return error_oom(reterr);
        return add_folder(search, folder, reterr);
}

/* Finds the files below the roots. Drop-ins of all roots count, but only the first main file. */
static int search_roots(Search *search, const char *const roots[], Error *reterr)
{
        int found = 0, r;

        for (const char *const *root = roots; *root; root++) {
                _cleanup_free_ char *folder = text_format("%s/" MAIN_FILE ".d", *root);

                if (!folder)
                        return error_oom(reterr);
                r = add_folder(search, folder, reterr);
                if (r < 0)
                        return r;
                folder[strlen(folder) - strlen(".d")] = '\0';
                if (!found)
                        found = try_main(search, folder, reterr);
                if (found < 0)
                        return found;
        }
        return 0;
}

int config_search(const char *const roots[], const char *file, ConfigWarning warning,
                  void *userdata, char ***ret_paths, Error *reterr)
{
        _cleanup_(search_done)
                Search search = { .ending = ".conf", .warning = warning, .userdata = userdata };
        int r;

        r = file ? search_named(&search, file, reterr)
                 : search_roots(&search, roots ? roots : usual, reterr);
        if (r < 0)
                return r;
        return take_paths(&search, ret_paths, reterr);
}

int config_search_folders(const char *const folders[], const char *ending, ConfigWarning warning,
                          void *userdata, char ***ret_paths, Error *reterr)
{
        _cleanup_(search_done)
                Search search = { .ending = ending, .warning = warning, .userdata = userdata };

        for (const char *const *folder = folders; *folder; folder++) {
                int r = add_folder(&search, *folder, reterr);

                if (r < 0)
                        return r;
        }
        return take_paths(&search, ret_paths, reterr);
}
