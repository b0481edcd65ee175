/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One table of columns for each type of row. A column names the SQL expression and the member of a
 * struct. The table makes the list of a SELECT or an INSERT, reads a row of the result into the
 * struct, and binds the struct to parameters. So the order of the columns is defined in one place.
 *
 * The kind of a column follows from the type of the member at compile time. A member of a type
 * without a kind does not compile.
 *
 * The database file is hostile input. A value of another type, NULL in a column that is not
 * optional, a number out of range and a malformed or too long text are -EUCLEAN. The words name the
 * column and the row. */

#include "base/cpu-set.h"
#include "base/uuid.h"
#include "claims/store/sqlite.h"

typedef struct Column {
        const char *sql;
        enum {
                COLUMN_INT64,
                COLUMN_UINT64,
                COLUMN_UINT32,
                COLUMN_BOOL,
                COLUMN_DOUBLE,
                COLUMN_UUID,
                COLUMN_OWNED,    /* char *: a copy, which replaces the text of the member */
                COLUMN_BORROWED, /* const char *: valid until the next step of the statement */
                COLUMN_CHARS,    /* char[] */
                COLUMN_CPU_SET,
                COLUMN_NAMED, /* an enum, which is an int since it has a negative value */
        } kind;
        size_t offset, size; /* place and size of the member */
        uint64_t max;  /* largest number or enum value, not for int64_t; 0: the largest of the type,
                          but INT64_MAX for uint64_t */
        bool optional; /* NULL is valid (as "" or 0), and "" for a UUID */
        const char *(*to_text)(int value); /* names of COLUMN_NAMED, for values from 0 to max */
} Column;

typedef struct Row {
        const char *what; /* in error texts, before the number in column 0: "a device of claim" */
        const Column *columns;
        size_t n_columns;
        size_t size; /* size of the struct */
} Row;

#define COLUMN_MEMBER(struct_, member_) (&((struct_ *)0)->member_)
#define COLUMN_KIND(struct_, member_) \
        _Generic(COLUMN_MEMBER(struct_, member_), \
                int64_t *: COLUMN_INT64,          \
                uint64_t *: COLUMN_UINT64,        \
                unsigned *: COLUMN_UINT32,        \
                bool *: COLUMN_BOOL,              \
                double *: COLUMN_DOUBLE,          \
                Uuid *: COLUMN_UUID,              \
                char **: COLUMN_OWNED,            \
                const char **: COLUMN_BORROWED,   \
                CpuSet *: COLUMN_CPU_SET,         \
                int *: COLUMN_NAMED,              \
                char(*)[sizeof(*COLUMN_MEMBER(struct_, member_))]: COLUMN_CHARS)

/* A column, with any other designated initialisers. */
#define COLUMN(sql_, struct_, member_, ...)                                   \
        {                                                                     \
                .sql = (sql_), .kind = COLUMN_KIND(struct_, member_),         \
                .offset = offsetof(struct_, member_),                         \
                .size = sizeof(*COLUMN_MEMBER(struct_, member_)), __VA_ARGS__ \
        }

/* Defines NAME_row of these columns. */
#define ROW(name_, struct_, what_, ...)                                     \
        static const Column name_##_columns[] = { __VA_ARGS__ };            \
        const Row name_##_row = { .what = (what_),                          \
                                  .columns = name_##_columns,               \
                                  .n_columns = ARRAY_SIZE(name_##_columns), \
                                  .size = sizeof(struct_) }

/* Makes the SQL of a statement, owned by the caller. Three characters of sql are replaced, in their
 * order. A "%" becomes the columns of the next row of rows. A "#" becomes the same as items of a
 * JSON list in the column "value". A "$" becomes one "?" for each column so far. Returns NULL
 * without memory. */
char *columns_format(const char *sql, const Row *const rows[]);

/* Reads the current row of the statement, from the column first on, into the struct at base. Texts
 * that base owned before are replaced. base must be initialised if the row has owned members. After
 * a failure, base owns the members that were read. Returns -EUCLEAN or -ENOMEM with words. */
int row_read(Sqlite *sqlite, sqlite3_stmt *statement, int first, const Row *row, void *base,
             Error *reterr);

/* Frees the members that the struct at base owns by its row, and zeroes it. */
void row_done(const Row *row, void *base);

/* Returns -EUCLEAN with words for the current row of the statement. column: the expression whose
 * value has the problem; NULL: the values contradict each other. */
int row_damaged(const Sqlite *sqlite, sqlite3_stmt *statement, const Row *row, const char *column,
                const char *problem, Error *reterr);

/* Binds the members of the struct at base to the parameters from the number first on. */
int row_bind(Sqlite *sqlite, sqlite3_stmt *statement, int first, const Row *row, const void *base,
             Error *reterr);
