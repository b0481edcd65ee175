/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Applies the files of [compute] provider_config_location to each tree. All files are read again,
 * so a changed file needs no reload of the configuration. Their entries are merged into the tree,
 * and a changed list of additions is stored. A failed write is logged and repeated, and does not
 * stop the tree. An unread file is not an absent one: while a file or the folder cannot be read or
 * parsed, the tree keeps the earlier additions that base has.
 *
 * Problems are texts in two sets: those of the last tree that was made from Placement's, and those
 * of this one. A problem is logged if neither set has it. So a problem that lasts is logged once.
 * For a tree that was not made from Placement's (known is false), nothing is logged or stored. The
 * tree maker calls provider_config_apply() for each tree; provider-yaml.c reads the entries, and
 * provider-merge.c merges them. */

#include "agent/tree/provider-config.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "agent/state/state-file.h"
#include "agent/tree/provider-merge.h"
#include "base/json.h"
#include "base/log.h"
#include "base/message-ids.h"
#include "base/read-file.h"
#include "base/text.h"

struct ProviderConfig {
        char *location;
        char *state_file;
        char *owner_trait;
        bool read_only;          /* no file is written */
        bool quiet;              /* nothing is logged for this tree */
        bool unsaved;            /* the last write of the additions failed */
        ProviderAdditions added; /* additions to the tree that Placement has, or will have */
        StringSet last, current; /* problems of the last known tree and of this one */
};

ProviderConfig *provider_config_free(ProviderConfig *config)
{
        if (!config)
                return NULL;
        provider_additions_done(&config->added);
        string_set_done(&config->last);
        string_set_done(&config->current);
        free(config->location);
        free(config->state_file);
        free(config->owner_trait);
        free(config);
        return NULL;
}

/* Logs a problem with this ending if it is new, and the tree is known. */
static void note_problem(ProviderConfig *config, const char *text, const char *ending)
{
        if (config->quiet)
                return;
        if (!string_set_contains(&config->last, text) &&
            !string_set_contains(&config->current, text))
                log_event(LOG_WARNING, MESSAGE_PROVIDER_CONFIG, NULL, "%s%s", text, ending);
        (void)string_set_add(&config->current, text);
}

static void on_problem(const char *text, void *userdata)
{
        note_problem(userdata, text, ", ignoring");
}

/* Files */

/* Notes why a file or the folder cannot be read. Returns r. */
static int note_unread(ProviderConfig *config, const char *path, int r)
{
        Error error;

        error_setf(&error, r, "%.150s: %s", path, strerror(-r));
        on_problem(error.text, config);
        return r;
}

/* Reads one file. Returns a negative errno if it cannot be read or parsed. */
static int read_file(ProviderConfig *config, const char *name, ProviderYaml *yaml)
{
        _cleanup_free_ char *path = text_format("%s/%s", config->location, name), *text = NULL;
        size_t n;
        int r = path ? read_file_text(path, PROVIDER_YAML_MAX_BYTES, &text, &n, NULL) : -ENOMEM;

        return r < 0 ? note_unread(config, path ? path : name, r)
                     : provider_yaml_add(yaml, path, text, n, on_problem, config);
}

static int is_yaml(const struct dirent *entry)
{
        const char *end = strrchr(entry->d_name, '.');

        return entry->d_name[0] != '.' && end && strcmp(end, ".yaml") == 0;
}

/* Returns true if the folder does not exist. A folder that the agent cannot look up counts as
 * missing while there are no additions to keep: on many hosts the default folder does not exist,
 * and /etc/nova is closed to the user of the agent. */
static bool is_missing(const ProviderConfig *config)
{
        return access(config->location, F_OK) < 0 &&
               (errno == ENOENT || (errno == EACCES && config->added.n_items == 0));
}

/* Reads all files of the folder in the order of their names, as Nova does. Returns 0, also for a
 * missing folder, or -ENOMEM. Returns another negative errno, after the other files, if the folder
 * or a file cannot be read or parsed. */
static int read_files(ProviderConfig *config, ProviderYaml *yaml)
{
        struct dirent **entries = NULL;
        int result = 0, n = scandir(config->location, &entries, is_yaml, alphasort);

        if (n < 0) {
                result = -errno;
                return is_missing(config) ? 0 : note_unread(config, config->location, result);
        }
        for (int i = 0; i < n; i++) {
                int r = result == -ENOMEM ? 0 : read_file(config, entries[i]->d_name, yaml);

                result = r < 0 ? r : result;
                free(entries[i]);
        }
        free(entries);
        return result;
}

/* State */

static int read_additions(const json_t *json, void *userdata, Error *reterr)
{
        return provider_additions_from_json(json, userdata, reterr);
}

int provider_config_new(ProviderConfig **ret, const char *location, const char *state_dir,
                        const char *owner_trait, bool read_only, Error *reterr)
{
        _cleanup_(provider_config_freep) ProviderConfig *config = calloc(1, sizeof(ProviderConfig));
        Error error = ERROR_NULL;
        int r;

        if (!config)
                return error_oom(reterr);
        config->read_only = read_only;
        config->state_file = text_format("%s/provider-config.json", state_dir);
        config->location = strdup(location);
        config->owner_trait = strdup(owner_trait ? owner_trait : "");
        if (!config->state_file || !config->location || !config->owner_trait)
                return error_oom(reterr);
        r = state_file_load(config->state_file, PROVIDER_ADDITIONS_FORMAT, read_only,
                            read_additions, &config->added, &error);
        if (r < 0 && r != -EBADMSG)
                return error_setf(reterr, r, "%s", error_text(&error, r));
        if (r < 0)
                on_problem(error.text, config);
        *ret = TAKE_PTR(config);
        return 0;
}

/* Returns true if both additions are equal. It returns false if memory is short, which only causes
 * a write. */
static bool is_same(const ProviderAdditions *a, const ProviderAdditions *b)
{
        _cleanup_json_ json_t *x = provider_additions_to_json(a);
        _cleanup_json_ json_t *y = provider_additions_to_json(b);

        return x && y && json_equal(x, y);
}

/* Writes the additions if they changed, or if the last write failed. Does nothing if read_only. */
static int save_state(ProviderConfig *config, const ProviderAdditions *added, Error *reterr)
{
        _cleanup_json_ json_t *json = NULL;
        int r;

        if (config->read_only || (!config->unsaved && is_same(&config->added, added)))
                return 0;
        json = provider_additions_to_json(added);
        r = json ? state_file_write(config->state_file, json, reterr) : error_oom(reterr);
        config->unsaved = r < 0;
        return r;
}

/* Keeps the additions that base has and that were not merged again, and notes that. They can be
 * those of a file that cannot be read. provider_merge() has listed them. */
static int keep(ProviderConfig *config, ProviderTree *tree, const ProviderTree *base)
{
        int r = provider_additions_keep(&config->added, base, tree);
        Error error;

        if (r <= 0)
                return r;
        error_setf(&error, EAGAIN, "%.150s: earlier additions stay until all files can be read",
                   config->location);
        note_problem(config, error.text, "");
        return 0;
}

/* Merges the entries. If known, the new additions are stored before the tree is published. unread:
 * there are files whose entries are unknown. */
static int merge(ProviderConfig *config, ProviderTree *tree, const ProviderTree *base,
                 const ProviderYaml *yaml, bool unread, bool known, Error *reterr)
{
        _cleanup_(provider_additions_done) ProviderAdditions added = PROVIDER_ADDITIONS_INIT;
        Error error;
        int r = provider_merge(tree, base, yaml, config->owner_trait, &config->added, &added,
                               on_problem, config);

        if (r >= 0 && unread)
                r = keep(config, tree, base);
        if (r < 0)
                return error_oom(reterr);
        if (!known)
                return 0;
        /* The next known tree repeats a failed write. If the agent restarts before, additions can
         * stay in Placement for ever. That is better than a tree that is not published while the
         * disk is full. */
        if (save_state(config, &added, &error) < 0)
                on_problem(error.text, config);
        provider_additions_done(&config->added);
        config->added = TAKE_STRUCT(added);
        return 0;
}

int provider_config_apply(ProviderConfig *config, ProviderTree *tree, const ProviderTree *base,
                          bool known, Error *reterr)
{
        ProviderYaml yaml = PROVIDER_YAML_INIT;
        int r;

        config->quiet = !known;
        r = read_files(config, &yaml);
        r = r == -ENOMEM ? error_oom(reterr)
                         : merge(config, tree, base, &yaml, r < 0, known, reterr);
        provider_yaml_done(&yaml);
        if (!known)
                return r;
        string_set_done(&config->last);
        config->last = TAKE_STRUCT(config->current);
        return r;
}
