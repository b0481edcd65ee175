/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The table of all options, and setting one of them in a struct. */

#include "config/config.h"
#include "config/value.h"

/* The section of the options of an mdev type; TYPE stands for each. */
#define CONFIG_MDEV_SECTION "mdev_TYPE"

typedef enum ConfigType {
        CONFIG_BOOL,
        CONFIG_U64,
        CONFIG_DOUBLE,
        CONFIG_SECONDS,  /* stored in microseconds */
        CONFIG_INTERVAL, /* the same; 0 is 60 s, < 0 is UINT64_MAX */
        CONFIG_STRING,
        CONFIG_LIST,   /* char **, NULL-terminated */
        CONFIG_MULTI,  /* the same, of an option that may stand several times: one item each */
        CONFIG_ENUM,   /* int */
        CONFIG_UNUSED, /* known from nova.conf and without effect here: taken in silence */
} ConfigType;

/* A word and its value; ends with a NULL word. */
typedef struct ConfigWord {
        const char *word;
        int value;
} ConfigWord;

/* An older name of an option, in its own section unless section is set. Ends with a NULL key. */
typedef struct ConfigOldName {
        const char *section, *key;
} ConfigOldName;

#define CONFIG_OLD_NAMES_MAX 2

typedef struct ConfigOption {
        const char *section, *key;
        ConfigOldName old[CONFIG_OLD_NAMES_MAX + 1]; /* the new name is preferred within a file */
        ConfigType type;
        size_t offset;             /* in Config, or in HostMdevType */
        const char *default_value; /* as one would write it; NULL: stays 0 or NULL */
        const char *allowed;       /* "allowed is …" */
        double min, max;           /* of numbers, before they become microseconds */
        const ConfigWord *words;
        ConfigForm form;       /* of strings and paths, and of each item of a list */
        bool empty_is_default; /* of strings: an empty text stands for the default */
        bool secret;
        bool of_auth;           /* [placement] auth_section says in which section it stands */
        const char *credential; /* name in $CREDENTIALS_DIRECTORY that goes before all files */
} ConfigOption;

/* Those of Config, and those of [mdev_TYPE], in HostMdevType, device_addresses first; each ends
 * with a NULL key. */
extern const ConfigOption config_options[], config_mdev_options[];

/* Whether options, or a section that later versions fill, are known by that name. */
bool config_knows_section(const char *section);

/* NULL when there is none. Finds old names too. */
const ConfigOption *config_find_option(const ConfigOption *options, const char *section,
                                       const char *key);

/* Sets the member of base from its text, freeing what was there (CONFIG_MULTI: adding to it). An
 * empty text is the default where it could be no value. -EINVAL with words ("x" is not allowed,
 * allowed is …; no secret is quoted), -ENOMEM. */
int config_option_set(const ConfigOption *option, void *base, const char *text, Error *reterr);

/* Frees the member of base. */
void config_option_done(const ConfigOption *option, void *base);
