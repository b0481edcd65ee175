/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads configuration files in the syntax of oslo.config: their sections, and the text of each
 * option with its place. This module knows no option.
 *
 * It rejects a file that is not regular, is larger than 1 MiB or has another syntax. ASCII control
 * characters (but tabs and carriage returns), names of sections and options that are not ASCII,
 * text that is not UTF-8, and more than CONFIG_FILE_MAX_SETTINGS options and headers are errors
 * too. Errors about the content name file and line. No error quotes a value, because it can be a
 * secret. */

#include "base/error.h"

#define CONFIG_FILE_MAX_BYTES    (1024 * 1024)
#define CONFIG_FILE_MAX_SETTINGS 5000

typedef struct ConfigEntry {
        const char *file; /* path; borrowed */
        char *section;    /* as in the header; "DEFAULT" also for "[default]" */
        char *key;
        char *value; /* trimmed; a pair of quotes around the first line is removed; further lines
                        are joined by newlines */
        unsigned line;
        bool world_readable; /* all users can read the file */
        bool is_expanded;    /* references in the value were replaced (settings.h) */
} ConfigEntry;

typedef struct ConfigSection {
        const char *file;
        char *name;
        unsigned line; /* line of its first header in the file */
} ConfigSection;

/* All files as one, in the order of reading: a later entry wins. */
typedef struct ConfigSettings {
        ConfigSection *sections; /* one for each file and name; upper and lower case are equal */
        size_t n_sections, n_sections_allocated;
        ConfigEntry *entries; /* by line within a file; a name can appear more than once */
        size_t n_entries, n_entries_allocated;
        char *auth_section; /* section of options with of_auth; NULL: their own section */
        void (*warning)(const char *text, void *userdata); /* ConfigWarning, or NULL */
        void *userdata;
} ConfigSettings;

/* Adds a file. path is borrowed as long as the settings exist. Returns -EINVAL with words, -ENOENT,
 * -EACCES, another errno of reading, or -ENOMEM. After an error, a part of the file can have been
 * added. Blocks on the disk. */
int config_file_read(ConfigSettings *settings, const char *path, Error *reterr);

/* Returns the length of the part of a line before its first '=' or ':', which is the name of an
 * option with white space around it. n: length of the line, which is returned if there is none. */
size_t config_file_find_name(const char *line, size_t n);

/* Frees everything and wipes the values. */
void config_settings_done(ConfigSettings *settings);
