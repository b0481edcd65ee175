/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Formats, reads and binds rows by their tables of columns. A value is checked by the kind of its
 * column: its SQL type, NULL, the range of a number (not of int64_t or double), the length of a
 * text, and the form of a UUID, a CPU set or an enum. The first bad value ends the read of a row
 * with -EUCLEAN; the members that were read before stay. Reading never converts a value to another
 * SQL type. A text has less than TEXT_SIZE_MAX bytes, or fits with its NUL into its array, and has
 * no NUL inside. NULL is valid only for an optional column, and means "", 0 or no UUID. Whether the
 * values of a row agree with each other is not checked here. Binding trusts the values of the
 * program, and checks nothing. */

#include "claims/store/columns.h"

#include <assert.h>
#include <string.h>

/* Bytes of the longest text, with its NUL. The largest request over D-Bus has 256 KiB. */
#define TEXT_SIZE_MAX (16 * 1024 * 1024)

/* Writes the list of columns, as SQL expressions or as items of a JSON list. */
static void write_columns(FILE *file, const Row *row, bool items)
{
        for (size_t i = 0; i < row->n_columns; i++) {
                fputs(i > 0 ? ", " : "", file);
                if (items)
                        fprintf(file, "json_extract(value, '$[%zu]')", i);
                else
                        fputs(row->columns[i].sql, file);
        }
}

char *columns_format(const char *sql, const Row *const rows[])
{
        char *text = NULL;
        size_t size, n = 0;
        FILE *file = open_memstream(&text, &size);

        if (!file)
                return NULL;
        for (; *sql; sql++) {
                if (*sql == '%' || *sql == '#') {
                        assert(*rows);
                        write_columns(file, *rows, *sql == '#');
                        n += (*rows++)->n_columns;
                } else if (*sql == '$') {
                        for (size_t i = 0; i < n; i++)
                                fputs(i > 0 ? ", ?" : "?", file);
                } else {
                        fputc(*sql, file);
                }
        }
        if (fclose(file) == 0)
                return text;
        free(text);
        return NULL;
}

/* One value of the row that is read, with its column and the names for an error message. */
typedef struct Cell {
        Sqlite *sqlite;
        sqlite3_stmt *statement;
        sqlite3_value *value; /* unprotected, so only the thread of the connection can use it */
        int type;
        const Row *row;
        const Column *column;
} Cell;

int row_damaged(const Sqlite *sqlite, sqlite3_stmt *statement, const Row *row, const char *column,
                const char *problem, Error *reterr)
{
        char key[24] = "", what[160];

        if (sqlite3_column_type(statement, 0) == SQLITE_INTEGER)
                snprintf(key, sizeof(key), " %lld", (long long)sqlite3_column_int64(statement, 0));
        snprintf(what, sizeof(what), "%s%s%s%s %s", column ? column : "", column ? " of " : "",
                 row->what, key, problem);
        return sqlite_damaged(sqlite, what, reterr);
}

static int damaged(const Cell *cell, const char *problem, Error *reterr)
{
        return row_damaged(cell->sqlite, cell->statement, cell->row, cell->column->sql, problem,
                           reterr);
}

/* Checks the range of a number, but not of an int64_t, and stores it by the type of the member. */
static int read_integer(const Cell *cell, void *member, Error *reterr)
{
        int64_t value = sqlite3_value_int64(cell->value);
        uint64_t max = cell->column->max;

        if (max == 0)
                max = cell->column->kind == COLUMN_UINT64   ? INT64_MAX
                      : cell->column->kind == COLUMN_UINT32 ? UINT32_MAX
                                                            : 1;
        if (cell->column->kind == COLUMN_INT64)
                *(int64_t *)member = value;
        else if (value < 0 || (uint64_t)value > max)
                return damaged(cell, "is out of range", reterr);
        else if (cell->column->kind == COLUMN_UINT64)
                *(uint64_t *)member = (uint64_t)value;
        else if (cell->column->kind == COLUMN_UINT32)
                *(unsigned *)member = (unsigned)value;
        else
                *(bool *)member = value != 0;
        return 0;
}

/* Finds the value of an enum by its text. */
static int parse_name(const Column *column, const char *text, int *ret)
{
        for (int value = 0; value <= (int)column->max; value++)
                if (strcmp(text, column->to_text(value)) == 0) {
                        *ret = value;
                        return 0;
                }
        return -EINVAL;
}

/* Stores a text by the kind of its column. Returns -EINVAL for a malformed text, which read_text()
 * reports as -EUCLEAN, or -ENOMEM. */
static int parse_text(const Cell *cell, const char *text, void *member)
{
        char **owned = member, *copy;

        switch (cell->column->kind) {
        case COLUMN_OWNED:
                if (*owned && strcmp(text, *owned) == 0) /* member has this text already */
                        return 0;
                copy = strdup(text);
                if (!copy)
                        return -ENOMEM;
                free(*owned);
                *owned = copy;
                return 0;
        case COLUMN_BORROWED:
                *(const char **)member = text;
                return 0;
        case COLUMN_CHARS:
                strcpy(member, text);
                return 0;
        case COLUMN_NAMED:
                return parse_name(cell->column, text, member);
        case COLUMN_CPU_SET:
                return cpu_set_parse(text, member, NULL);
        default:
                *(Uuid *)member = UUID_NULL;
                return cell->column->optional && !text[0] ? 0 : uuid_from_text(text, member);
        }
}

/* Checks the length of a text, and that it has no NUL inside. */
static int read_text(const Cell *cell, void *member, Error *reterr)
{
        const char *text = "";
        size_t size = 0;
        int r;

        if (cell->type != SQLITE_NULL) {
                text = (const char *)sqlite3_value_text(cell->value);
                size = (size_t)sqlite3_value_bytes(cell->value);
        }
        if (!text)
                return error_oom(reterr);
        if (size >= (cell->column->kind == COLUMN_CHARS ? cell->column->size : TEXT_SIZE_MAX))
                return damaged(cell, "is too long", reterr);
        r = strlen(text) == size ? parse_text(cell, text, member) : -EINVAL;
        return r == -ENOMEM ? error_oom(reterr) : r < 0 ? damaged(cell, "is malformed", reterr) : 0;
}

/* Compares the SQL type of a value with the kind of its column, and stores the value. NULL is valid
 * for optional columns only. */
static int read_cell(const Cell *cell, void *member, Error *reterr)
{
        int type = cell->column->kind <= COLUMN_BOOL     ? SQLITE_INTEGER
                   : cell->column->kind == COLUMN_DOUBLE ? SQLITE_FLOAT
                                                         : SQLITE_TEXT;

        if (cell->type == SQLITE_NULL && !cell->column->optional)
                return damaged(cell, "is NULL", reterr);
        if (cell->type != SQLITE_NULL && cell->type != type)
                return damaged(cell, "has another type", reterr);
        if (type == SQLITE_INTEGER)
                return read_integer(cell, member, reterr);
        if (type == SQLITE_TEXT)
                return read_text(cell, member, reterr);
        *(double *)member = sqlite3_value_double(cell->value);
        return 0;
}

int row_read(Sqlite *sqlite, sqlite3_stmt *statement, int first, const Row *row, void *base,
             Error *reterr)
{
        Cell cell = { .sqlite = sqlite, .statement = statement, .row = row };
        int r = 0;

        for (int i = 0; r == 0 && i < (int)row->n_columns; i++) {
                cell.column = &row->columns[i];
                cell.value = sqlite3_column_value(statement, first + i);
                cell.type = sqlite3_value_type(cell.value);
                r = read_cell(&cell, (char *)base + cell.column->offset, reterr);
        }
        return r;
}

void row_done(const Row *row, void *base)
{
        for (size_t i = 0; i < row->n_columns; i++) {
                void *member = (char *)base + row->columns[i].offset;

                if (row->columns[i].kind == COLUMN_OWNED)
                        free(*(char **)member);
                else if (row->columns[i].kind == COLUMN_CPU_SET)
                        cpu_set_done(member);
        }
        memset(base, 0, row->size);
}

/* Returns the value of a member for SQLite. Its type is 0 if memory ran out. If the value is a new
 * text, *ret_text is set to it, and the caller frees it. */
static SqliteValue get_value(const Column *column, const void *member, char **ret_text)
{
        switch (column->kind) {
        case COLUMN_INT64:
                return SQLITE_VALUE(*(const int64_t *)member);
        case COLUMN_UINT64:
                return SQLITE_VALUE(*(const uint64_t *)member);
        case COLUMN_UINT32:
                return SQLITE_VALUE(*(const unsigned *)member);
        case COLUMN_BOOL:
                return SQLITE_VALUE(*(const bool *)member);
        case COLUMN_DOUBLE:
                return SQLITE_VALUE(*(const double *)member);
        case COLUMN_OWNED:
        case COLUMN_BORROWED:
                return SQLITE_VALUE(*(const char *const *)member);
        case COLUMN_NAMED:
                return SQLITE_VALUE(column->to_text(*(const int *)member));
        case COLUMN_CPU_SET:
                *ret_text = cpu_set_format(member);
                return *ret_text ? SQLITE_VALUE(*ret_text) : (SqliteValue){ .type = 0 };
        default: /* texts in arrays of char, also uuids */
                return SQLITE_VALUE((const char *)member);
        }
}

/* Frees the text of a CPU set after each bind, because SQLite has its own copy. */
int row_bind(Sqlite *sqlite, sqlite3_stmt *statement, int first, const Row *row, const void *base,
             Error *reterr)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < row->n_columns; i++) {
                const Column *column = &row->columns[i];
                _cleanup_free_ char *text = NULL;
                SqliteValue value = get_value(column, (const char *)base + column->offset, &text);

                r = value.type == 0 ? error_oom(reterr)
                                    : sqlite_bind(sqlite, statement, first + (int)i, value, reterr);
        }
        return r;
}
