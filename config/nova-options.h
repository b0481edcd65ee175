/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The sections and options that Nova and its libraries define, in all versions of Nova that
 * tests/lint/nova-options.py has read. If this agent does not use such an option, it is ignored
 * without a warning. */

#include <stdbool.h>

/* Checks whether Nova or one of its libraries has a section of that name, in letters of either
 * case. */
bool nova_defines_section(const char *section);

/* Checks whether Nova or one of its libraries defines the option. Only options of sections that the
 * agent reads are known. */
bool nova_defines_option(const char *section, const char *key);
