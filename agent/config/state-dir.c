/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "agent/config/state-dir.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

/* Replaces the built-in folder by the first one of $STATE_DIRECTORY. */
static int follow_unit(Config *config)
{
        const char *folders = getenv("STATE_DIRECTORY");
        char *folder;

        if (!folders || folders[0] != '/')
                return 0;
        folder = strndup(folders, strcspn(folders, ":"));
        if (!folder)
                return -ENOMEM;
        free(config->state_dir);
        config->state_dir = folder;
        return 0;
}

/* Returns 1 if the claim database is in the folder, 0 if not, -ENOMEM. */
static int has_database(const char *folder, const char *claim_db)
{
        _cleanup_free_ char *path = text_format("%s/%s", folder, claim_db);

        return path ? access(path, F_OK) == 0 : -ENOMEM;
}

/* Returns true if a folder of that name is in the folder; name "": if the folder is there. */
static bool has_folder(const char *folder, const char *name)
{
        _cleanup_free_ char *path = text_format("%s/%s", folder, name);

        return path && access(path, F_OK) == 0;
}

/* Returns true if the folder of an older configuration is the only one that can be meant: there is
 * no other one, and Nova has no instances in it. */
static bool is_only_folder(const Config *config)
{
        return !has_folder(config->state_dir, "") && has_folder(config->state_path, "") &&
               !has_folder(config->state_path, "instances");
}

int config_choose_state_dir(Config *config, const ConfigSettings *settings, Error *reterr)
{
        const ConfigEntry *entry = config_settings_find(settings, "DEFAULT", "state_path");
        int r, own, former;
        char *folder;

        if (config_settings_find(settings, "agent", "state_dir"))
                return 0;
        r = follow_unit(config);
        if (r < 0)
                return error_oom(reterr);
        if (!entry || strcmp(config->state_path, config->state_dir) == 0)
                return 0;
        former = has_database(config->state_path, config->claim_db);
        own = has_database(config->state_dir, config->claim_db);
        if (former < 0 || own < 0)
                return error_oom(reterr);
        if (former > 0 && own > 0)
                return error_setf(
                        reterr, EINVAL,
                        "%s:%u: [DEFAULT] state_path: both %s and %s hold a claim database; name the right folder in [agent] state_dir",
                        entry->file, entry->line, config->state_path, config->state_dir);
        if (former == 0 && !is_only_folder(config))
                return 0;
        folder = strdup(config->state_path);
        if (!folder)
                return error_oom(reterr);
        free(config->state_dir);
        config->state_dir = folder;
        config_warn(
                settings,
                "%s:%u: [DEFAULT] state_path is Nova's folder now, and %s is the folder of this agent: write state_dir = %s into the section [agent]",
                entry->file, entry->line, folder, folder);
        return 0;
}
