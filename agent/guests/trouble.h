/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Why claims cannot be used: the claim database cannot be opened, or did not take a write. One line
 * is logged when it begins, one when it ends. */

#include "base/error.h"
#include "base/macros.h"

typedef struct DatabaseTrouble {
        Error error; /* code 0: none */
        bool is_logged;
        bool is_of_write; /* the file is open, and a write is worth trying */
} DatabaseTrouble;

/* result is one of claims.h, with its words; 0 ends the trouble. path is that of the file. */
void database_trouble_set(DatabaseTrouble *trouble, const char *path, int result,
                          const Error *words);

/* The same of a file that stays open, until a write succeeds: nothing of what is the caller's own
 * fault, of want of memory, or of a file that is opened anew (database_is_lost()). */
void database_trouble_note(DatabaseTrouble *trouble, const char *path, int result,
                           const Error *words);

/* The file is not what it was, or is damaged: to be closed and opened anew. */
bool database_is_lost(int result);
