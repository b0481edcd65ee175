/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One configuration file, read and taken apart by libini_config: which sections it has, and every
 * option's text with its line. It knows no option and no meaning.
 *
 * What is refused, in words with file and line: a file that is not a regular one, larger than 1
 * MiB, with control characters, not UTF-8, with more than CONFIG_FILE_MAX_SETTINGS settings
 * (libini_config takes quadratic time), or not in INI form. No value is ever quoted: it might be a
 * secret. */

#include "base/error.h"

#define CONFIG_FILE_MAX_BYTES    (1024 * 1024)
#define CONFIG_FILE_MAX_SETTINGS 5000

typedef struct ConfigEntry {
        const char *file; /* path of its ConfigFile */
        char *section;
        char *key;
        char *value; /* trimmed, without one pair of quotes around it; lines of a multi-line value
                        are joined by white space */
        unsigned line;
} ConfigEntry;

typedef struct ConfigSection {
        char *name;
        unsigned line; /* of its first header */
} ConfigSection;

typedef struct ConfigFile {
        char *path;
        bool world_readable;
        ConfigSection *sections; /* no two of a name */
        size_t n_sections, n_sections_allocated;
        ConfigEntry *entries; /* by line, also of a name that is there twice */
        size_t n_entries, n_entries_allocated;
} ConfigFile;

/* -EINVAL with words, -ENOENT, -EACCES, -EIO …, -ENOMEM. Blocks on the disk. */
int config_file_read(ConfigFile **ret, const char *path, Error *reterr);
ConfigFile *config_file_free(ConfigFile *file);
DEFINE_CLEANUP(ConfigFile *, config_file_free);
