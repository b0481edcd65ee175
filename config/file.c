/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Reads configuration files in the syntax of oslo.config's parser (oslo_config/iniparser.py), so
 * that a nova.conf has the same meaning as in Nova, with the exceptions below. A text is read line
 * by line:
 *
 *   [section]        opens a section, or opens it again
 *   key = value      or "key: value"; the first of '=' and ':' counts
 *     more           continues the value: the line begins with a blank or a tab
 *   # or ;           comment, in the first column
 *
 * Each line but a continuation ends the value before it, also an empty line, one of white space
 * alone, or a comment. The main structure is Reader, which appends to ConfigSettings. Invariants:
 * the reader does not change an entry after its value has ended, and a value is wiped when it is
 * freed, because it can be a secret. The first error ends the reading, and what was read before
 * stays. Limits: those of file.h, which are errors.
 *
 * Unlike oslo.config, this reader trims the name of a section, and takes "[default]" for [DEFAULT].
 * It skips a byte order mark, keeps a value of one quotation mark, and does not end a line at a
 * carriage return. The callers compare names without regard to case. */

#include "config/file.h"

#include "base/array.h"
#include "base/read-file.h"
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#define NOTHING_OPEN SIZE_MAX

/* A file during reading. Its sections begin at index first_section of the settings. n_settings
 * counts headers of sections and options. */
typedef struct Reader {
        ConfigSettings *settings;
        const char *path;
        size_t first_section, n_settings;
        char *section; /* the open section; NULL: none yet */
        size_t open;   /* index of the entry that the next line can continue; or NOTHING_OPEN */
        size_t n_value, n_allocated; /* length of that value, and size of its memory */
        unsigned line;
        bool world_readable;
} Reader;

void config_settings_done(ConfigSettings *settings)
{
        for (size_t i = 0; i < settings->n_sections; i++)
                free(settings->sections[i].name);
        for (size_t i = 0; i < settings->n_entries; i++) {
                free(settings->entries[i].section);
                free(settings->entries[i].key);
                /* each value can be a secret */
                text_free_secret(settings->entries[i].value);
        }
        free(settings->sections);
        free(settings->entries);
        free(settings->auth_section);
        *settings = (ConfigSettings){};
}

/* Stores an error with the place of the current line. The line is not quoted. */
static int refuse(const Reader *reader, const char *words, Error *reterr)
{
        return error_setf(reterr, EINVAL, "%s:%u: %s", reader->path, reader->line, words);
}

/* Returns a description of the first character that is not allowed; NULL: there is none. Static. */
static const char *find_bad_text(const char *line, size_t n)
{
        size_t length;

        for (size_t i = 0; i < n; i += length) {
                unsigned char c = (unsigned char)line[i];

                if ((c < 0x20 && c != '\t' && c != '\r') || c == 0x7f)
                        return "a control character";
                length = text_sequence_length(line + i);
                if (length == 0)
                        return "text that is not UTF-8";
        }
        return NULL;
}

static bool is_name(const char *text)
{
        for (; *text; text++)
                if (*text < 0x20 || *text > 0x7e)
                        return false;
        return true;
}

/* Returns the length of the white space character at the text of n bytes, 0 if there is none. As in
 * oslo.config, it can be one of Unicode, such as a no-break space from a web page. */
static size_t space_length(const char *text, size_t n)
{
        static const char *const spaces[] = { "\xc2\x85", "\u00a0", "\u1680", "\u2028",
                                              "\u2029",   "\u202f", "\u205f", "\u3000" };

        if (n > 0 && isspace((unsigned char)*text))
                return 1;
        for (size_t i = 0; i < ARRAY_SIZE(spaces); i++)
                if (strlen(spaces[i]) <= n && memcmp(text, spaces[i], strlen(spaces[i])) == 0)
                        return strlen(spaces[i]);
        /* U+2000 to U+200A */
        return n >= 3 && memcmp(text, "\xe2\x80", 2) == 0 && (text[2] & 0xff) >= 0x80 &&
                               (text[2] & 0xff) <= 0x8a
                       ? 3
                       : 0;
}

static const char *skip_space(const char *text, size_t *n)
{
        for (size_t length; (length = space_length(text, *n)) > 0; *n -= length)
                text += length;
        return text;
}

/* Returns the length of the text without white space at its end. */
static size_t trim_end(const char *text, size_t n)
{
        for (size_t length = 1; length <= MIN(n, (size_t)3); length++)
                if (space_length(text + n - length, length) == length) {
                        n -= length;
                        length = 0;
                }
        return n;
}

static char *copy_trimmed(const char *text, size_t n)
{
        text = skip_space(text, &n);
        return strndup(text, trim_end(text, n));
}

static bool has_section(const Reader *reader, const char *name)
{
        for (size_t i = reader->first_section; i < reader->settings->n_sections; i++)
                if (strcasecmp(reader->settings->sections[i].name, name) == 0)
                        return true;
        return false;
}

/* Opens the section of a header. Its first header in the file is recorded. n: length of the line,
 * at least 1. */
static int read_section(Reader *reader, const char *line, size_t n, Error *reterr)
{
        ConfigSettings *settings = reader->settings;
        char *name;

        if (line[n - 1] != ']')
                return refuse(reader,
                              memchr(line, ']', n) ? "text after the ']' of the section's name"
                                                   : "no ']' at the end of the section's name",
                              reterr);
        free(reader->section);
        reader->section = name = copy_trimmed(line + 1, n - 2);
        if (!name)
                return error_oom(reterr);
        if (name[0] == '\0')
                return refuse(reader, "a section without a name", reterr);
        if (!is_name(name))
                return refuse(reader, "a section's name with a character that is not allowed",
                              reterr);
        if (has_section(reader, name))
                return 0;
        name = strdup(name);
        if (!name || array_grow(&settings->sections, sizeof(ConfigSection), settings->n_sections,
                                &settings->n_sections_allocated) < 0) {
                free(name);
                return error_oom(reterr);
        }
        settings->sections[settings->n_sections++] =
                (ConfigSection){ .file = reader->path, .name = name, .line = reader->line };
        return 0;
}

/* Copies a value without white space around it and without one pair of quotes. The caller frees. */
static char *copy_value(const char *text, size_t n)
{
        char *value = copy_trimmed(text, n);

        n = value ? strlen(value) : 0;
        if (n >= 2 && value[0] == value[n - 1] && (value[0] == '"' || value[0] == '\'')) {
                memmove(value, value + 1, n - 2);
                value[n - 2] = '\0';
        }
        return value;
}

/* Appends an entry and opens it for continuation. Takes ownership of key and value, also if they
 * are NULL because memory ran out. */
static int add_entry(Reader *reader, char *key, char *value)
{
        ConfigSettings *settings = reader->settings;
        const char *section = reader->section;
        char *copy = strdup(strcasecmp(section, "DEFAULT") == 0 ? "DEFAULT" : section);

        if (!key || !value || !copy ||
            array_grow(&settings->entries, sizeof(ConfigEntry), settings->n_entries,
                       &settings->n_entries_allocated) < 0) {
                free(key);
                text_free_secret(value);
                free(copy);
                return -ENOMEM;
        }
        reader->open = settings->n_entries++;
        reader->n_value = strlen(value);
        reader->n_allocated = reader->n_value + 1;
        settings->entries[reader->open] = (ConfigEntry){
                .file = reader->path,
                .section = copy,
                .key = key,
                .value = value,
                .line = reader->line,
                .world_readable = reader->world_readable,
        };
        return 0;
}

size_t config_file_find_name(const char *line, size_t n)
{
        size_t n_name = 0;

        while (n_name < n && line[n_name] != '=' && line[n_name] != ':')
                n_name++;
        return n_name;
}

static int read_setting(Reader *reader, const char *line, size_t n, Error *reterr)
{
        size_t n_key = config_file_find_name(line, n);
        char *key;

        if (n_key == n)
                return refuse(reader, "the line is not of the form OPTION = VALUE", reterr);
        if (!reader->section)
                return refuse(reader, "an option before the first section. Is [DEFAULT] missing?",
                              reterr);
        key = copy_trimmed(line, n_key);
        if (key && (key[0] == '\0' || !is_name(key))) {
                free(key);
                return refuse(reader,
                              n_key == 0 ? "an option without a name"
                                         : "an option's name with a character that is not allowed",
                              reterr);
        }
        return add_entry(reader, key, copy_value(line + n_key + 1, n - n_key - 1)) < 0
                       ? error_oom(reterr)
                       : 0;
}

/* Appends a line to the value of the open entry. The size of the memory doubles, so that many short
 * lines need only linear time. */
static int continue_value(Reader *reader, const char *line, size_t n, Error *reterr)
{
        ConfigEntry *entry;

        if (reader->open == NOTHING_OPEN)
                return refuse(reader,
                              "the line begins with white space, but there is no value to continue",
                              reterr);
        entry = &reader->settings->entries[reader->open];
        line = skip_space(line, &n);
        if (reader->n_value + n + 2 > reader->n_allocated) {
                size_t size = 2 * reader->n_allocated + n + 2;
                char *value = malloc(size);

                if (!value)
                        return error_oom(reterr);
                memcpy(value, entry->value, reader->n_value);
                text_free_secret(entry->value);
                entry->value = value;
                reader->n_allocated = size;
        }
        entry->value[reader->n_value++] = '\n';
        memcpy(entry->value + reader->n_value, line, n);
        reader->n_value += n;
        entry->value[reader->n_value] = '\0';
        return 0;
}

/* Reads one line of n bytes, without its newline. */
static int read_line(Reader *reader, const char *line, size_t n, Error *reterr)
{
        const char *bad = find_bad_text(line, n);
        bool continues = n > 0 && (line[0] == ' ' || line[0] == '\t');

        if (bad)
                return refuse(reader, bad, reterr);
        n = trim_end(line, n);
        if (n > 0 && continues)
                return continue_value(reader, line, n, reterr);
        reader->open = NOTHING_OPEN;
        if (n == 0 || line[0] == '#' || line[0] == ';')
                return 0;
        if (++reader->n_settings > CONFIG_FILE_MAX_SETTINGS)
                return error_setf(reterr, EINVAL, "%s:%u: more than %d settings in a file",
                                  reader->path, reader->line, CONFIG_FILE_MAX_SETTINGS);
        return line[0] == '[' ? read_section(reader, line, n, reterr)
                              : read_setting(reader, line, n, reterr);
}

/* Stores why a file could not be read. r: a negative errno. */
static int read_error(const char *path, int r, Error *reterr)
{
        switch (r) {
        case -EISDIR:
                return error_setf(reterr, EINVAL, "%s is a folder, not a file", path);
        case -EINVAL:
        case -ENXIO: /* a socket */
                return error_setf(reterr, EINVAL, "%s is not a regular file", path);
        case -EFBIG:
                return error_setf(reterr, EINVAL, "%s is larger than %d bytes", path,
                                  CONFIG_FILE_MAX_BYTES);
        default:
                return error_setf(reterr, r, "Cannot read %s: %s", path, strerror(-r));
        }
}

int config_file_read(ConfigSettings *settings, const char *path, Error *reterr)
{
        static const char bom[] = "\xef\xbb\xbf";
        _cleanup_(text_free_secretp) char *text = NULL;
        Reader reader = { .settings = settings,
                          .path = path,
                          .first_section = settings->n_sections,
                          .open = NOTHING_OPEN };
        size_t n, skip;
        mode_t mode;
        int r;

        r = read_file_text(path, CONFIG_FILE_MAX_BYTES, &text, &n, &mode);
        if (r < 0)
                return read_error(path, r, reterr);
        reader.world_readable = mode & S_IROTH;
        skip = n >= 3 && memcmp(text, bom, 3) == 0 ? 3 : 0;

        for (const char *line = text + skip, *end = text + n; line < end && r >= 0;) {
                const char *newline = memchr(line, '\n', (size_t)(end - line));
                size_t length = (size_t)((newline ? newline : end) - line);

                reader.line++;
                r = read_line(&reader, line, length, reterr);
                line += length + 1;
        }
        explicit_bzero(text, n); /* a secret can follow a NUL */
        free(reader.section);
        return r;
}
