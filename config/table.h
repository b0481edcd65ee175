/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The table of all options, and the functions that set one of them in a struct. */

#include "config/config.h"
#include "config/value.h"

/* The section with the options of an mdev type. TYPE stands for the name of the type. */
#define CONFIG_MDEV_SECTION "mdev_TYPE"

/* The section with the options of a group of cards. NAME stands for any text. */
#define CONFIG_PREPARE_SECTION "device_prepare NAME"

/* The section with the options of devices that are cleaned after each guest. */
#define CONFIG_CLEAN_SECTION "device_clean NAME"

/* The section with the options of devices that are given out in partitions. */
#define CONFIG_SHAPES_SECTION "device_shapes NAME"

/* A word and its value. A table ends with a NULL word. */
typedef struct ConfigWord {
        const char *word;
        int value;
} ConfigWord;

#define CONFIG_OLD_NAMES_MAX 2

typedef struct ConfigOption {
        const char *section, *key;
        /* Older names, in the section of the option unless section is set. The new name wins within
         * a file. The list ends with a NULL key. */
        struct {
                const char *section, *key;
        } old[CONFIG_OLD_NAMES_MAX + 1];
        enum {
                CONFIG_BOOL,
                CONFIG_U64,
                CONFIG_DOUBLE,
                CONFIG_SECONDS,  /* stored in microseconds */
                CONFIG_INTERVAL, /* seconds, stored in microseconds; 0: 60 s, below 0: UINT64_MAX */
                CONFIG_STRING,
                CONFIG_LIST,   /* char **, NULL-terminated */
                CONFIG_MULTI,  /* char **, NULL-terminated, one item for each appearance of the
                                  option */
                CONFIG_ENUM,   /* int */
                CONFIG_UNUSED, /* known from nova.conf, without effect and warning here */
        } type;
        size_t offset;             /* in Config, or the struct of a section's kind */
        const char *default_value; /* as in a file; NULL: the member stays 0 or NULL */
        const char *allowed;       /* end of the sentence "must be …" */
        double min, max;           /* limits of numbers, before the conversion to microseconds */
        const ConfigWord *words;
        ConfigForm form;       /* form of strings, and of each item of a list */
        bool empty_is_default; /* for strings: an empty text means the default */
        bool secret;
        bool of_auth;           /* [placement] auth_section names the section that has it */
        const char *credential; /* name in $CREDENTIALS_DIRECTORY; wins over all files */
} ConfigOption;

/* The options of Config, those of [mdev_TYPE] in HostMdevType, those of [device_prepare NAME] in
 * HostPrepare, those of [device_clean NAME] in HostClean, and those of [device_shapes NAME] in
 * HostShapes. The first option of the middle three is device_addresses. Each table ends with a NULL
 * key. */
extern const ConfigOption config_options[], config_mdev_options[], config_prepare_options[],
        config_clean_options[], config_shapes_options[];

/* A kind of sections with names, such as [device_shapes NAME]. HostConfig has an array of structs
 * for each kind, one struct for each section. The other members are offsets in HostConfig and in
 * such a struct. */
typedef struct ConfigKind {
        const char *prefix;          /* text before the name, with the blank if there is one */
        const char *section;         /* section in the options: "device_shapes NAME" */
        const ConfigOption *options; /* members of the struct */
        const char *only_key;        /* only option of the kind; NULL: all options */
        size_t items, n_items;       /* array of structs and their number */
        size_t item_size;            /* 0: an old prefix of another kind */
        size_t item_name;            /* char *, the name */
} ConfigKind;

/* All kinds. The table ends with a NULL prefix. */
extern const ConfigKind config_kinds[];

/* Finds the kind of a section, and its name, borrowed from section. ret_name can be NULL. Upper and
 * lower case of the prefix are equal. NULL: the section has no name. */
const ConfigKind *config_find_kind(const char *section, const char **ret_name);

/* Returns the name of a section whose kind has these options, borrowed, or NULL for another
 * section. */
const char *config_section_name(const char *section, const ConfigOption *options);

/* Finds an option by its present or an old name. NULL: there is none. */
const ConfigOption *config_find_option(const ConfigOption *options, const char *section,
                                       const char *key);

/* Sets the member of base from a text and frees its old value; CONFIG_MULTI adds an item and
 * ignores an empty text. For other types an empty text means the default. But a string with a
 * default takes an empty text as a value, and rejects it if its form does, unless empty_is_default.
 * CONFIG_UNUSED sets nothing. Returns -EINVAL with words ("x": must be …), which quote no secret
 * and no text with "@", or -ENOMEM. A text that is not allowed leaves the member as it was. */
int config_option_set(const ConfigOption *option, void *base, const char *text, Error *reterr);

/* Frees a string or list of base and sets it to NULL. Strings are wiped. Other members stay. */
void config_option_done(const ConfigOption *option, void *base);
