/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Options are found in configuration files and set from them, with the place of a bad value in the
 * words. */

#include "config/file.h"
#include "config/table.h"

/* Adds the files in that order; the paths are borrowed as long as the settings live. Errors of
 * config_file_read(). */
int config_settings_read(ConfigSettings *settings, char *const paths[], Error *reterr);

/* Obeys [placement] auth_section, keystoneauth's reference: what authentication needs is read from
 * that section (of another service, with options of its own) and not from [placement]. -EINVAL with
 * words when there is no such section. */
int config_settings_follow_auth(ConfigSettings *settings, Error *reterr);

/* Replaces the references in the values that count for an option of this agent, as oslo.config
 * does:
 *
 *   $name, ${name}    the option of that name in the same section, else in [DEFAULT]
 *   ${section.name}   the option of another section
 *   $$, \\$           a dollar sign
 *
 * The value of a referenced option has its own references replaced. An option that no file sets has
 * its default, if this agent knows the option. Other text after a dollar sign stays as it is.
 *
 * Other values are replaced only where one of these refers to them. -EINVAL with words that name
 * file, line and option if a reference leads nowhere or in a circle, -ENOMEM. */
int config_expand(ConfigSettings *settings, Error *reterr);

/* The option that an entry sets: of its own section, or as one of [placement] in auth_section. NULL
 * when there is none. */
const ConfigOption *config_settings_option_of(const ConfigSettings *settings,
                                              const ConfigEntry *entry);

/* Returns the last entry of that name, NULL if there is none; borrowed. */
const ConfigEntry *config_settings_find(const ConfigSettings *settings, const char *section,
                                        const char *key);

/* Returns the entry that sets the option, NULL if there is none; borrowed. The last file that has
 * one of its names counts; in it the new name is preferred to the old ones, and the last entry
 * counts. */
const ConfigEntry *config_settings_find_option(const ConfigSettings *settings,
                                               const ConfigOption *option);

/* Returns all entries of an option, under all its names, in oslo.config's order: by file, in a file
 * the old names first, then by line. The caller frees the array. NULL: no memory. */
const ConfigEntry **config_settings_list(const ConfigSettings *settings, const ConfigOption *option,
                                         size_t *ret_n);

/* Returns the last header of a section, or NULL. */
const ConfigSection *config_settings_find_section(const ConfigSettings *settings,
                                                  const char *section);

/* Puts its place before the words: "FILE:LINE: [section] key: ". Returns r. */
int config_entry_prefix(const ConfigEntry *entry, int r, Error *reterr);

/* Sets an option of base from its entry, or to its default when entry is NULL. Words begin with
 * "FILE:LINE: [section] key: ". */
int config_set_from_entry(const ConfigOption *option, void *base, const ConfigEntry *entry,
                          Error *reterr);

/* Sets an option of base from all its entries, in the order of reading (CONFIG_MULTI), or from the
 * last, or from its default, in which references are replaced. */
int config_set_from_settings(const ConfigOption *option, void *base, ConfigSettings *settings,
                             Error *reterr);

/* Warns about each section that neither this agent nor Nova defines, and about each such option of
 * a section that the agent reads. Returns the number of options that belong to Nova or its
 * libraries alone, which are ignored. */
size_t config_warn_unknown(const ConfigSettings *settings);

/* Calls the warning of the settings, if there is one, with a text in that format. */
void config_warn(const ConfigSettings *settings, const char *format, ...) _printf_(2, 3);
