/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* libini_config reports a wrong name only by "Invalid argument", ends a value at a NUL, drops what
 * stands before the first section and needs quadratic time. So a text is looked over line by line
 * first; what passes is parsed by the library alone. */

#include "agent/config/file.h"

#include "base/array.h"
#include "base/read-file.h"
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <ini_configobj.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

DEFINE_CLEANUP(struct ini_cfgobj *, ini_config_destroy);
DEFINE_CLEANUP(struct ini_cfgfile *, ini_config_file_destroy);
DEFINE_CLEANUP(char **, ini_config_free_errors);
DEFINE_CLEANUP(char **, ini_free_section_list);
DEFINE_CLEANUP(char **, ini_free_attribute_list);

/* A file that is being read: what was there before stands before first_section and first_entry. */
typedef struct Reader {
        ConfigSettings *settings;
        const char *path;
        size_t first_section, first_entry;
        bool world_readable;
} Reader;

void config_settings_done(ConfigSettings *settings)
{
        for (size_t i = 0; i < settings->n_sections; i++)
                free(settings->sections[i].name);
        for (size_t i = 0; i < settings->n_entries; i++) {
                free(settings->entries[i].section);
                free(settings->entries[i].key);
                /* any of them may be a secret */
                text_free_secret(settings->entries[i].value);
        }
        free(settings->sections);
        free(settings->entries);
        *settings = (ConfigSettings){};
}

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

static const char *find_bad_name(const char *line, size_t n)
{
        char end = line[0] == '[' ? ']' : '=';
        const char *name_end = memrchr(line, end, n);

        if (end == '=')
                name_end = memchr(line, end, n);
        if (!name_end)
                return NULL; /* the library has words for that */
        for (const char *c = line; c < name_end; c++)
                if (*c < 0x20 || *c > 0x7e || *c == '!')
                        return end == ']' ? "a section's name with a character that is not allowed"
                                          : "an option's name with a character that is not allowed";
        return NULL;
}

static char *copy_trimmed(const char *text, size_t n)
{
        while (n > 0 && isspace((unsigned char)*text)) {
                text++;
                n--;
        }
        while (n > 0 && isspace((unsigned char)text[n - 1]))
                n--;
        return strndup(text, n);
}

static bool has_section(const Reader *reader, const char *name)
{
        for (size_t i = reader->first_section; i < reader->settings->n_sections; i++)
                if (strcasecmp(reader->settings->sections[i].name, name) == 0)
                        return true;
        return false;
}

static int add_section(const Reader *reader, const char *line, size_t n, unsigned number)
{
        ConfigSettings *settings = reader->settings;
        _cleanup_free_ char *name = NULL;
        const char *end = memrchr(line, ']', n);

        if (!end)
                return 0;
        name = copy_trimmed(line + 1, (size_t)(end - line - 1));
        if (!name)
                return -ENOMEM;
        if (name[0] == '\0' || has_section(reader, name))
                return 0;
        if (array_grow(&settings->sections, sizeof(ConfigSection), settings->n_sections,
                       &settings->n_sections_allocated) < 0)
                return -ENOMEM;
        settings->sections[settings->n_sections++] =
                (ConfigSection){ .file = reader->path, .name = TAKE_PTR(name), .line = number };
        return 0;
}

/* Looks a text over and notes where the sections begin. */
static int scan_text(const Reader *reader, const char *text, size_t n, Error *reterr)
{
        size_t n_settings = 0;
        unsigned number = 1;
        const char *bad;

        for (const char *line = text, *end = text + n; line < end; number++) {
                const char *newline = memchr(line, '\n', (size_t)(end - line));
                size_t length = (size_t)((newline ? newline : end) - line);
                bool is_setting = length > 0 && !strchr("#; \t\r", line[0]);

                bad = find_bad_text(line, length);
                if (!bad && is_setting)
                        bad = find_bad_name(line, length);
                /* The library would drop it without a word. */
                if (!bad && is_setting && line[0] != '[' &&
                    reader->settings->n_sections == reader->first_section)
                        bad = "an option before the first section; [DEFAULT] may be missing";
                if (bad)
                        return error_setf(reterr, EINVAL, "%s:%u: %s", reader->path, number, bad);
                if (is_setting && ++n_settings > CONFIG_FILE_MAX_SETTINGS)
                        return error_setf(reterr, EINVAL, "%s:%u: more than %d settings in a file",
                                          reader->path, number, CONFIG_FILE_MAX_SETTINGS);
                if (is_setting && line[0] == '[' && add_section(reader, line, length, number) < 0)
                        return error_oom(reterr);
                line += length + 1;
        }
        return 0;
}

/* The library's words are written for programmers where people make mistakes most. */
static const char *syntax_error_words(unsigned code)
{
        switch (code) {
        case ERR_NOEQUAL:
                return "not of the form OPTION = VALUE";
        case ERR_NOCLOSESEC:
                return "the ']' at the end of the section's name is missing";
        case ERR_SPACE:
        case ERR_TAB:
                return "begins with white space, but continues no value";
        default:
                return NULL;
        }
}

static int syntax_error(const Reader *reader, struct ini_cfgobj *ini, int code, Error *reterr)
{
        _cleanup_(ini_config_free_errorsp) char **errors = NULL;
        unsigned kind, line;
        int n = 0;

        if (ini_config_error_count(ini) == 0 || ini_config_get_errors(ini, &errors) != 0 ||
            !errors || !errors[0])
                return error_setf(reterr, EINVAL, "%s: is not in INI form: %s", reader->path,
                                  strerror(code));
        if (sscanf(errors[0], "Error (%u) on line %u: %n", &kind, &line, &n) != 2 || n == 0)
                return error_setf(reterr, EINVAL, "%s: %s", reader->path, errors[0]);
        return error_setf(reterr, EINVAL, "%s:%u: %s", reader->path, line,
                          syntax_error_words(kind) ?: errors[0] + n);
}

static char *copy_value(const char *text)
{
        char *value = copy_trimmed(text, strlen(text));
        size_t n = value ? strlen(value) : 0;

        if (n >= 2 && value[0] == value[n - 1] && (value[0] == '"' || value[0] == '\'')) {
                memmove(value, value + 1, n - 2);
                value[n - 2] = '\0';
        }
        return value;
}

static int add_entry(const Reader *reader, const char *section, const char *key,
                     struct value_obj *value)
{
        ConfigSettings *settings = reader->settings;
        ConfigEntry *entry;
        const char *text;
        uint32_t line;

        if (value_get_concatenated(value, &text) != 0 || value_get_line(value, &line) != 0)
                return -EINVAL;
        if (array_grow(&settings->entries, sizeof(ConfigEntry), settings->n_entries,
                       &settings->n_entries_allocated) < 0)
                return -ENOMEM;
        entry = &settings->entries[settings->n_entries++];
        *entry = (ConfigEntry){
                .file = reader->path,
                .section =
                        strdup(strcasecmp(section, INI_DEFAULT_SECTION) == 0 ? "DEFAULT" : section),
                .key = strdup(key),
                .value = copy_value(text ?: ""),
                .line = line,
                .world_readable = reader->world_readable,
        };
        return entry->section && entry->key && entry->value ? 0 : -ENOMEM;
}

/* Every value of a name, which may have several. */
static int add_values(const Reader *reader, struct ini_cfgobj *ini, const char *section,
                      const char *key)
{
        int which = INI_GET_FIRST_VALUE;

        for (;;) {
                struct value_obj *value = NULL;
                int r = -ini_get_config_valueobj(section, key, ini, which, &value);

                if (r < 0 || !value)
                        return r;
                r = add_entry(reader, section, key, value);
                if (r < 0)
                        return r;
                which = INI_GET_NEXT_VALUE;
        }
}

static bool is_repeated(char *const keys[], int i)
{
        for (int j = 0; j < i; j++)
                if (strcasecmp(keys[j], keys[i]) == 0)
                        return true;
        return false;
}

static int add_entries(const Reader *reader, struct ini_cfgobj *ini, char *section)
{
        _cleanup_(ini_free_attribute_listp) char **keys = NULL;
        int n = 0, failed = 0, r;

        keys = ini_get_attribute_list(ini, section, &n, &failed);
        if (!keys)
                return failed ? -failed : -ENOMEM;
        for (int i = 0; i < n; i++) {
                if (is_repeated(keys, i))
                        continue;
                r = add_values(reader, ini, section, keys[i]);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int compare_lines(const void *a, const void *b)
{
        const ConfigEntry *x = a, *y = b;

        return x->line < y->line ? -1 : x->line > y->line;
}

static int collect_entries(const Reader *reader, struct ini_cfgobj *ini, Error *reterr)
{
        _cleanup_(ini_free_section_listp) char **sections = NULL;
        ConfigSettings *settings = reader->settings;
        int n = 0, failed = 0, r;

        sections = ini_get_section_list(ini, &n, &failed);
        if (!sections)
                return failed == 0 ? 0
                                   : error_setf(reterr, failed, "%s: %s", reader->path,
                                                strerror(failed));
        for (int i = 0; i < n; i++) {
                r = add_entries(reader, ini, sections[i]);
                if (r < 0)
                        return error_setf(reterr, r, "%s: %s", reader->path, strerror(-r));
        }
        if (settings->n_entries > reader->first_entry)
                qsort(settings->entries + reader->first_entry,
                      settings->n_entries - reader->first_entry, sizeof(ConfigEntry),
                      compare_lines);
        return 0;
}

static int parse_text(const Reader *reader, char *text, size_t n, Error *reterr)
{
        _cleanup_(ini_config_destroyp) struct ini_cfgobj *ini = NULL;
        _cleanup_(ini_config_file_destroyp) struct ini_cfgfile *source = NULL;
        int r;

        r = ini_config_create(&ini);
        if (r == 0)
                r = ini_config_file_from_mem(text, (uint32_t)n, &source);
        if (r != 0)
                return error_setf(reterr, r, "%s: %s", reader->path, strerror(r));

        r = ini_config_parse(source, INI_STOP_ON_ANY,
                             INI_MS_MERGE | INI_MV1S_ALLOW | INI_MV2S_ALLOW,
                             INI_PARSE_NO_C_COMMENTS, ini);
        if (r == ENOMEM)
                return error_oom(reterr);
        if (r != 0)
                return syntax_error(reader, ini, r, reterr);
        return collect_entries(reader, ini, reterr);
}

static int read_error(const char *path, int r, Error *reterr)
{
        switch (r) {
        case -EISDIR:
                return error_setf(reterr, EINVAL, "%s: is a folder, not a file", path);
        case -EINVAL:
        case -ENXIO: /* a socket */
                return error_setf(reterr, EINVAL, "%s: is not a regular file", path);
        case -EFBIG:
                return error_setf(reterr, EINVAL, "%s: is larger than %d bytes", path,
                                  CONFIG_FILE_MAX_BYTES);
        default:
                return error_setf(reterr, r, "%s: cannot be read: %s", path, strerror(-r));
        }
}

int config_file_read(ConfigSettings *settings, const char *path, Error *reterr)
{
        static const char bom[] = "\xef\xbb\xbf";
        _cleanup_(text_free_secretp) char *text = NULL;
        Reader reader = { .settings = settings,
                          .path = path,
                          .first_section = settings->n_sections,
                          .first_entry = settings->n_entries };
        size_t n, skip;
        mode_t mode;
        int r;

        r = read_file_text(path, CONFIG_FILE_MAX_BYTES, &text, &n, &mode);
        if (r < 0)
                return read_error(path, r, reterr);
        reader.world_readable = mode & S_IROTH;
        skip = n >= 3 && memcmp(text, bom, 3) == 0 ? 3 : 0;

        r = scan_text(&reader, text + skip, n - skip, reterr);
        return r < 0 ? r : parse_text(&reader, text + skip, n - skip, reterr);
}
