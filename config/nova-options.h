/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The sections and options that Nova and its libraries define, in all versions of Nova that
 * tests/lint/nova-options.py has seen. An option of theirs that this agent does not use is ignored
 * without a warning. */

#include <stdbool.h>

/* Returns true if Nova or one of its libraries has a section of that name; case does not matter. */
bool nova_defines_section(const char *section);

/* Returns true if Nova or one of its libraries defines the option. Knows the sections that the
 * agent reads, too; of others it knows no option. */
bool nova_defines_option(const char *section, const char *key);
