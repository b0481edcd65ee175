/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads configuration files in the syntax of oslo.config: their sections, and each option's text
 * with its place. This module knows no option.
 *
 * It rejects a file that is not regular, is larger than 1 MiB, has control characters, is not
 * UTF-8, has more than CONFIG_FILE_MAX_SETTINGS settings, or has another syntax. Errors name file
 * and line, and quote no value, because that can be a secret. */

#include "base/error.h"

#define CONFIG_FILE_MAX_BYTES    (1024 * 1024)
#define CONFIG_FILE_MAX_SETTINGS 5000

typedef struct ConfigEntry {
        const char *file; /* its path, borrowed */
        char *section;
        char *key;
        char *value; /* trimmed, without one pair of quotes around its first line; the lines of a
                        multi-line value are joined by newlines */
        unsigned line;
        bool world_readable; /* the file is */
        bool is_expanded;    /* references in the value were replaced (expand.h) */
} ConfigEntry;

typedef struct ConfigSection {
        const char *file;
        char *name;
        unsigned line; /* of its first header in that file */
} ConfigSection;

/* All files that were read, as one, in the order of reading: what is later wins. */
typedef struct ConfigSettings {
        ConfigSection *sections; /* no two of a name and a file */
        size_t n_sections, n_sections_allocated;
        ConfigEntry *entries; /* of a file by line, also of a name that is there twice */
        size_t n_entries, n_entries_allocated;
        char *auth_section; /* where options that are of_auth stand; NULL: where they belong */
        void (*warning)(const char *text, void *userdata); /* ConfigWarning, or NULL */
        void *userdata;
} ConfigSettings;

/* Adds a file. path is borrowed as long as the settings live. -EINVAL with words, -ENOENT, -EACCES,
 * -EIO …, -ENOMEM; part of it may have been added then. Blocks on the disk. */
int config_file_read(ConfigSettings *settings, const char *path, Error *reterr);

void config_settings_done(ConfigSettings *settings);
