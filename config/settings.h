/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finds options in configuration files and sets them. Errors about an entry begin with its
 * place. */

#include "config/file.h"
#include "config/table.h"

/* Replaces the references in the values of a section that count for an option of this agent, as
 * oslo.config does. section NULL: all sections.
 *
 *   $name, ${name}    the option of that name in the same section, else in [DEFAULT]
 *   ${section.name}   the option of another section
 *   $$, \$            a dollar sign
 *
 * The references in the value of a referenced option are replaced too. An option that no file sets
 * has its default, if this agent knows the option. Other text after a dollar sign stays.
 *
 * In a section with a name, such as [device_shapes NAME], the last value of each option counts,
 * known to the agent or not. Values that do not count change only if a reference leads to them.
 * Returns -EINVAL with words that name file, line and option, or -ENOMEM. Errors are a reference to
 * no option, a circle, and a chain of more than 16 values that are not replaced yet. So are a
 * reference to a secret from a value that is none, and a result that is too long. */
int config_expand(ConfigSettings *settings, const char *section, Error *reterr);

/* Returns the last entry of that name; NULL: there is none. Borrowed. */
const ConfigEntry *config_settings_find(const ConfigSettings *settings, const char *section,
                                        const char *key);

/* Returns the entry that sets the option; NULL: there is none. Borrowed. The last file with one of
 * the option's names counts. Within that file the new name wins over old ones, and then the last
 * entry wins. The first old name of the table wins over the second one. */
const ConfigEntry *config_settings_find_option(const ConfigSettings *settings,
                                               const ConfigOption *option);

/* Returns all entries of an option, under all its names, in the order of oslo.config: by file, then
 * the old names first, then by line. The caller frees the array. NULL: memory ran out. */
const ConfigEntry **config_settings_list(const ConfigSettings *settings, const ConfigOption *option,
                                         size_t *ret_n);

/* Returns the header of a section in the last file that has it, or NULL. Borrowed. */
const ConfigSection *config_settings_find_section(const ConfigSettings *settings,
                                                  const char *section);

/* Writes the place of an entry before the words: "FILE:LINE: [section] key: ". Returns r. */
int config_entry_prefix(const ConfigEntry *entry, int r, Error *reterr);

/* Sets an option of base from an entry; entry NULL: to its default, and without a default the
 * member stays. Words about an entry begin with "FILE:LINE: [section] key: ". */
int config_set_from_entry(const ConfigOption *option, void *base, const ConfigEntry *entry,
                          Error *reterr);

/* Sets an option of base: from all its entries in the order of config_settings_list()
 * (CONFIG_MULTI), from the entry that counts, or to its default. References in the default are
 * replaced. */
int config_set_from_settings(const ConfigOption *option, void *base, ConfigSettings *settings,
                             Error *reterr);

/* Warns about each section that neither this agent nor Nova defines, except auth_section, and about
 * each such option in a section that the agent reads. Also warns about each secret of this agent
 * that has a value in a file that all users can read. Also warns about one option of Nova that the
 * agent does not implement, if it is true, and does not count it then. Returns the number of
 * options that are ignored without a warning: options of Nova or its libraries, and options in
 * sections that only Nova reads, or in auth_section. Options of [placement] that the agent knows
 * but does not use (CONFIG_UNUSED) are not in the number. */
size_t config_warn_entries(const ConfigSettings *settings);

/* Calls the warning of the settings, if there is one, with a formatted text. */
void config_warn(const ConfigSettings *settings, const char *format, ...) _printf_(2, 3);
