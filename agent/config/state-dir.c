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

int config_choose_state_dir(Config *config, const ConfigSettings *settings, Error *reterr)
{
        const ConfigEntry *entry = config_settings_find(settings, "DEFAULT", "state_path");
        char *folder;
        int r, own;

        if (config_settings_find(settings, "agent", "state_dir"))
                return 0;
        r = follow_unit(config);
        if (r == 0 && entry && strcmp(config->state_path, config->state_dir) != 0)
                r = has_database(config->state_path, config->claim_db);
        if (r <= 0)
                return r < 0 ? error_oom(reterr) : 0;
        own = has_database(config->state_dir, config->claim_db);
        if (own > 0)
                return error_setf(
                        reterr, EINVAL,
                        "%s:%u: [DEFAULT] state_path: both %s and %s hold a claim database; name the right folder in [agent] state_dir",
                        entry->file, entry->line, config->state_path, config->state_dir);
        folder = own < 0 ? NULL : strdup(config->state_path);
        if (!folder)
                return error_oom(reterr);
        free(config->state_dir);
        config->state_dir = folder;
        config_warn(
                settings,
                "%s:%u: [DEFAULT] state_path is Nova's folder now, and %s holds the claim database of this agent: write state_dir = %s into the section [agent]",
                entry->file, entry->line, folder, folder);
        return 0;
}
