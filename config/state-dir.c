/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "config/state-dir.h"

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

/* Returns 1 if there is a file of that name in the folder, or the folder itself (""); 0 if not,
 * -ENOMEM. */
static int has_file(const char *folder, const char *name)
{
        _cleanup_free_ char *path = text_format("%s/%s", folder, name);

        return path ? access(path, F_OK) == 0 : -ENOMEM;
}

/* Returns 1 if the folder of an older configuration is the only one that can be meant: there is no
 * other one, and Nova has no instances in it. 0 if not, -ENOMEM. */
static int is_only_folder(const Config *config)
{
        int other = has_file(config->state_dir, ""), former = has_file(config->state_path, ""),
            nova = has_file(config->state_path, "instances");

        if (other < 0 || former < 0 || nova < 0)
                return -ENOMEM;
        return !other && former && !nova;
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
        former = has_file(config->state_path, config->claim_db);
        own = has_file(config->state_dir, config->claim_db);
        if (former < 0 || own < 0)
                return error_oom(reterr);
        if (former > 0 && own > 0)
                return error_setf(
                        reterr, EINVAL,
                        "%s:%u: [DEFAULT] state_path: both %s and %s hold a claim database; name the right folder in [agent] state_dir",
                        entry->file, entry->line, config->state_path, config->state_dir);
        if (former == 0)
                former = is_only_folder(config);
        if (former <= 0)
                return former < 0 ? error_oom(reterr) : 0;
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
